//! Kernel parameters: what the launch is told of them, and how each type is stored in the argument block.

use std::fmt;
use std::sync::Arc;

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use harp_isa::WordSize;
use serde::{Deserialize, Serialize};

use crate::abi::word_int;
use crate::scalar::Scalar;

/// The type of a kernel parameter.
///
/// Each parameter takes one word of the argument block, `SizedPointer` two; on machines with 4-byte words `I64` and
/// `F64` take two, the low half first. Integers and floats smaller than the word are stored in its low bits; the bits
/// above are not read.
///
/// The types that Rust's have, with what is known of pointers' targets, come from
/// [`buffer`](crate::KernelBuilder::buffer), [`scalar`](crate::KernelBuilder::scalar) and
/// [`group_param`](crate::KernelBuilder::group_param).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ParamType {
    /// An address in the device's memory, one word.
    Pointer,
    /// The address of a buffer, one word, and its size in bytes, another one. The launch's argument is the buffer.
    SizedPointer,
    /// 8 bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// IEEE binary16, as 16 bits: in kernels and among a launch's arguments it is an integer.
    F16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// 0 or 1 in 8 bits.
    Bool,
    /// An unsigned integer of a word; the launch checks that its argument fits.
    Word,
    /// The address of memory that each work-group shares, one word. Its size is the launch's argument.
    Group,
}

impl ParamType {
    /// The CLIF type of its value on a machine with this word size: of a buffer, its address.
    pub fn clif_type(self, word: WordSize) -> Type {
        match self {
            ParamType::Pointer | ParamType::SizedPointer | ParamType::Word | ParamType::Group => {
                word_int(word)
            }
            ParamType::I8 | ParamType::Bool => types::I8,
            ParamType::I16 | ParamType::F16 => types::I16,
            ParamType::I32 => types::I32,
            ParamType::I64 => types::I64,
            ParamType::F32 => types::F32,
            ParamType::F64 => types::F64,
        }
    }

    /// How many words of the argument block a parameter of this type takes.
    pub fn words(self, word: WordSize) -> u32 {
        let value = self.clif_type(word).bytes().div_ceil(word.bytes().into());
        value + u32::from(self == ParamType::SizedPointer)
    }

    /// Loads the parameter from its words at `offset` of the argument block. Of group memory that is the offset
    /// in the memory of the work-group.
    pub fn load(self, at: &mut FuncCursor<'_>, block: Value, offset: i32, word: WordSize) -> Value {
        let (word_ty, ty) = (word_int(word), self.clif_type(word));
        let flags = argument_flags();
        if ty.bytes() >= word_ty.bytes() {
            return at.ins().load(ty, flags, block, offset);
        }
        let loaded = at.ins().load(word_ty, flags, block, offset);
        let bits = at.ins().ireduce(ty.as_int(), loaded);
        if ty.is_float() { at.ins().bitcast(ty, MemFlagsData::new(), bits) } else { bits }
    }
}

/// Flags of loads from the argument block: no lane writes it during a launch, and its address is valid.
pub(super) fn argument_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move()
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParamType::Pointer => "pointer",
            ParamType::SizedPointer => "buffer",
            ParamType::I8 => "i8",
            ParamType::I16 => "i16",
            ParamType::I32 => "i32",
            ParamType::I64 => "i64",
            ParamType::F16 => "f16",
            ParamType::F32 => "f32",
            ParamType::F64 => "f64",
            ParamType::Bool => "bool",
            ParamType::Word => "word",
            ParamType::Group => "group memory",
        })
    }
}

/// A parameter of a kernel, as a launch needs to know it.
///
/// ```
/// # use harp_jit::prelude::*;
/// # let mut source = KernelSource::new("scale", "harp32".parse()?);
/// # let mut b = KernelBuilder::new(&mut source);
/// let (x, a) = (b.buffer::<f32>("x"), b.param(ParamType::F32));
/// # let (i, _) = (b.global_id(0), a);
/// # b.load(x, i);
/// # b.return_();
/// # b.finalize()?;
/// let [x, a] = source.params() else { panic!("there are two") };
/// assert_eq!((x.name(), x.ty(), x.element()), (Some("x"), ParamType::Pointer, Some(types::F32)));
/// assert_eq!((a.name(), a.ty(), a.element()), (None, ParamType::F32, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "SavedParam", from = "SavedParam")]
#[non_exhaustive]
pub struct Param {
    name: Option<Arc<str>>,
    ty: ParamType,
    element: Option<Type>,
    constant: bool,
}

impl Param {
    /// A parameter without a name, of whose elements nothing is known if it is a pointer.
    pub fn unnamed(ty: ParamType) -> Param {
        Param { name: None, ty, element: None, constant: false }
    }

    /// A parameter of which this is known; `element` is the type of what it points to.
    pub fn new(name: Option<&str>, ty: ParamType, element: Option<Type>) -> Param {
        Param { name: name.map(Arc::from), ty, element, constant: false }
    }

    /// The same parameter with a promise: nothing changes what it points to while the kernel runs. Loads from there with the
    /// flag `readonly` rely on it; [checked](crate::MemoryAccess) launches find stores that break it.
    #[must_use]
    pub fn with_constant_contents(self) -> Param {
        Param { constant: true, ..self }
    }

    /// The name, if it was built with one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The type.
    pub fn ty(&self) -> ParamType {
        self.ty
    }

    /// Whether nothing changes what it points to while the kernel runs, as the kernel promises.
    pub fn is_constant(&self) -> bool {
        self.constant
    }

    /// The CLIF type of the elements that it points to, if that was given.
    pub fn element(&self) -> Option<Type> {
        self.element
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        self.ty.fmt(f)?;
        if let Some(element) = self.element {
            write!(f, " of {element}")?;
        }
        if self.constant { f.write_str(", constant") } else { Ok(()) }
    }
}

/// A [`Param`] as it is saved.
#[derive(Serialize, Deserialize)]
struct SavedParam {
    name: Option<String>,
    ty: ParamType,
    element: Option<Scalar>,
    constant: bool,
}

impl From<Param> for SavedParam {
    fn from(Param { name, ty, element, constant }: Param) -> SavedParam {
        let name = name.map(|name| name.to_string());
        SavedParam { name, ty, element: element.map(Scalar), constant }
    }
}

impl From<SavedParam> for Param {
    fn from(SavedParam { name, ty, element, constant }: SavedParam) -> Param {
        let element = element.map(|Scalar(element)| element);
        Param { name: name.map(Arc::from), ty, element, constant }
    }
}
