//! A module with a call or a launch of its first function: the input of the oracle and of a machine.
//!
//! Both must agree on how it ends and on the memory afterwards. Addresses differ between the two, so functions
//! must not let an address reach a result or memory. Neither CLIF nor the machine specifies the bits of a NaN,
//! so every NaN among results and in buffers of floats is replaced by one NaN before they are compared, and
//! functions must not turn a NaN's bits, its sign included, into anything else.

use std::fmt;
use std::slice;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{AbiParam, Function, Type, types};
use harp_isa::WordSize;
use harp_jit::text::argument_words;
use harp_jit::{DataAccess, ParamType};

use super::ItemTrap;

/// The element type of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Integers of any size: compared bit for bit.
    Ints,
    /// Floats of 4 bytes.
    F32,
    /// Floats of 8 bytes.
    F64,
}

impl Elements {
    /// Those of buffers with values of one type.
    pub fn of(ty: Type) -> Elements {
        match ty {
            types::F32 => Elements::F32,
            types::F64 => Elements::F64,
            _ => Elements::Ints,
        }
    }

    /// The bytes with all NaNs made equal.
    pub(super) fn canonical(self, mut bytes: Vec<u8>) -> Vec<u8> {
        let ty = match self {
            Elements::Ints => return bytes,
            Elements::F32 => types::F32,
            Elements::F64 => types::F64,
        };
        for bytes in bytes.chunks_exact_mut(ty.bytes() as usize) {
            canonical(DataValue::read_from_slice_le(bytes, ty)).write_to_slice_le(bytes);
        }
        bytes
    }
}

/// The value, or the one NaN in place of all.
pub(super) fn canonical(value: DataValue) -> DataValue {
    match value {
        DataValue::F32(x) if x.is_nan() => DataValue::F32(Ieee32::with_float(f32::NAN)),
        DataValue::F64(x) if x.is_nan() => DataValue::F64(Ieee64::with_float(f64::NAN)),
        other => other,
    }
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A pointer to a buffer with this content.
    Buffer(Elements, Vec<u8>),
    /// The bits of a number. There are no pointers among them.
    Scalar(ParamType, u64),
}

impl Argument {
    /// The elements and contents of a buffer; none if it is a number.
    pub(super) fn buffer(&self) -> Option<(Elements, &[u8])> {
        match self {
            Argument::Buffer(elements, bytes) => Some((*elements, bytes)),
            Argument::Scalar(..) => None,
        }
    }

    /// The type of the parameter that takes it.
    pub fn ty(&self) -> ParamType {
        match self {
            Argument::Buffer(..) => ParamType::Pointer,
            Argument::Scalar(ty, _) => *ty,
        }
    }
}

/// The target of an address in data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// The function with this index.
    Function(usize),
    /// The datum with this index.
    Datum(usize),
}

/// A datum of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The linker's name.
    pub name: String,
    /// The initial contents.
    pub bytes: Vec<u8>,
    /// Whether functions may write it. Functions of a kernel never do.
    pub access: DataAccess,
    /// The offsets of words that hold addresses.
    pub addresses: Vec<(usize, Address)>,
}

impl Datum {
    /// A datum without addresses.
    pub fn new(name: &str, bytes: Vec<u8>, access: DataAccess) -> Datum {
        Datum { name: name.to_owned(), bytes, access, addresses: Vec::new() }
    }
}

/// How the first function of a module is started.
#[derive(Clone, Debug)]
pub enum Start {
    /// By a call on one lane, with these arguments.
    Call(Vec<DataValue>),
    /// As a kernel.
    Launch {
        /// Work-items in each dimension.
        extents: [u64; 3],
        /// One a parameter.
        args: Vec<Argument>,
    },
}

/// A module and a start of its first function. Names in CLIF are the linker's.
#[derive(Clone, Debug)]
pub struct Case {
    /// The word of the machines that it can run on.
    pub word: WordSize,
    /// The functions; the first one is started.
    pub functions: Vec<Function>,
    /// The data.
    pub data: Vec<Datum>,
    /// How.
    pub start: Start,
    /// Whether work-items wait for each other: how often, and so what branches do, is up to the machine.
    pub waits: bool,
}

/// How a case should end. Values are equal if their bits are.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The results of a call, of which a kernel has none. All NaNs of a type are the same.
    Values(Vec<DataValue>),
    /// One of these traps, whichever comes first, by work-items. There is at least one.
    Traps(Vec<ItemTrap>),
}

impl PartialEq for Ending {
    fn eq(&self, other: &Ending) -> bool {
        match (self, other) {
            (Ending::Values(values), Ending::Values(others)) => are_same(values, others),
            (Ending::Traps(traps), Ending::Traps(others)) => traps == others,
            _ => false,
        }
    }
}

pub(super) fn are_same(values: &[DataValue], others: &[DataValue]) -> bool {
    values.len() == others.len() && values.iter().zip(others).all(|(x, y)| x.bitwise_eq(y))
}

/// The expected effect of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// How it ends.
    pub ending: Ending,
    /// What memory holds then, in order: after a call the data that functions may write; after a launch the
    /// buffers, unless it traps.
    pub memory: Vec<Vec<u8>>,
}

impl Case {
    /// The kernel of a launch, alone.
    pub fn kernel(func: Function, word: WordSize, extents: [u64; 3], args: Vec<Argument>) -> Case {
        let start = Start::Launch { extents, args };
        Case { word, functions: vec![func], data: Vec::new(), start, waits: false }
    }

    /// How many work-items there are.
    pub fn items(&self) -> u64 {
        match &self.start {
            Start::Call(_) => 1,
            Start::Launch { extents, .. } => extents.iter().product(),
        }
    }

    /// The data that functions may write.
    pub(super) fn written(&self) -> impl Iterator<Item = (usize, &Datum)> {
        let data = self.data.iter().enumerate();
        data.filter(|(_, datum)| datum.access == DataAccess::ReadWrite)
    }
}

/// Values in parentheses.
pub(super) fn list(values: &[DataValue]) -> String {
    let values: Vec<String> = values.iter().map(DataValue::to_string).collect();
    format!("({})", values.join(", "))
}

/// Data and functions, as `harp compile` takes them, which knows no addresses in data: they are zeros there. The start
/// stands in comments.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Start::Launch { extents, args } = &self.start {
            writeln!(f, "; grid {extents:?}")?;
            for (index, arg) in args.iter().enumerate() {
                match arg {
                    Argument::Buffer(elements, bytes) => {
                        writeln!(f, "; argument {index}: {} bytes of {elements:?}", bytes.len())?;
                    }
                    Argument::Scalar(ty, bits) => {
                        writeln!(f, "; argument {index}: {ty} {bits:#x}")?;
                    }
                }
            }
            let mut buffers = args.iter().filter_map(Argument::buffer);
            buffers.try_for_each(|(_, bytes)| writeln!(f, "; buffer: {bytes:02x?}"))?;
        }
        for datum in &self.data {
            if datum.access == DataAccess::ReadOnly {
                writeln!(f, "; %{} is read-only", datum.name)?;
            }
            for &(at, address) in &datum.addresses {
                let name = match address {
                    Address::Function(index) => self.functions[index].name.to_string(),
                    Address::Datum(index) => format!("%{}", self.data[index].name),
                };
                writeln!(f, "; %{}+{at} has the address of {name}", datum.name)?;
            }
            let zeros = datum.bytes.iter().rev().take_while(|&&byte| byte == 0).count();
            write!(f, "; data: %{} i8", datum.name)?;
            for byte in &datum.bytes[..datum.bytes.len() - zeros] {
                write!(f, " {byte:#x}")?;
            }
            writeln!(f, " 0*{zeros}")?;
        }
        self.functions.iter().try_for_each(|func| write!(f, "{}", func.display()))?;
        let Start::Call(args) = &self.start else { return Ok(()) };
        writeln!(f, "; call: {}{}", self.functions[0].name, list(args))?;
        for arg in args.iter().filter(|arg| matches!(arg.ty(), types::F32 | types::F64)) {
            let words =
                argument_words(slice::from_ref(arg), &[AbiParam::new(arg.ty())], WordSize::Eight);
            writeln!(f, "; {arg} has the bits {:#x}", words[0])?;
        }
        Ok(())
    }
}
