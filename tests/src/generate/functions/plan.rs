//! What a module consists of, before any function has a body.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, F64, I8, I32};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use harp_isa::WordSize;
use harp_jit::DataAccess;

use super::super::choices::Choices;
use super::rows::TYPES;
use crate::oracle::{Address, Datum};

/// Bytes of a piece of memory that functions read and write: a stack slot, or a part of one, or of a
/// datum. Its start is aligned to 16 bytes in data, to a word on the stack.
pub(super) const BLOCK: usize = 32;

/// Entries of a table of functions, a power of two.
pub(super) const TABLE: usize = 4;

/// The names of data.
pub(super) const FUEL: &str = "fuel";
pub(super) const NUMBERS: &str = "numbers";
pub(super) const FAR: &str = "far";
pub(super) const CONSTANTS: &str = "constants";
pub(super) const POINTER: &str = "pointer";

/// Where the block of the large datum begins.
pub(super) const FAR_START: usize = 5000 - BLOCK - 8;

/// What a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    /// A number.
    Value(Type),
    /// The address of a block that it may write.
    Block,
}

/// A function without a body.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) signature: Signature,
    /// The table with functions like this one.
    pub(super) table: usize,
}

/// A module without bodies.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) word: WordSize,
    pub(super) functions: Vec<Planned>,
    pub(super) data: Vec<Datum>,
    /// Whether functions may trap.
    pub(super) may_trap: bool,
}

impl Plan {
    pub(super) fn new(choices: &mut Choices<'_>, word: WordSize) -> Plan {
        let count = 1 + choices.below(4);
        let mut functions: Vec<Planned> = Vec::new();
        for index in 0..count {
            let name = format!("f{index}");
            let twin = (index > 1 && choices.below(2) == 0).then(|| choices.below(index - 1) + 1);
            let planned = match twin {
                Some(twin) => Planned { name, ..functions[twin].clone() },
                None => {
                    let models: Vec<&Signature> =
                        functions.iter().map(|function| &function.signature).collect();
                    planned(choices, word, name, &models, index)
                }
            };
            functions.push(planned);
        }
        let may_trap = choices.once_in(4);
        let data = data(choices, word, &functions);
        Plan { word, functions, data, may_trap }
    }

    /// The integer type of the word.
    pub(super) fn word_int(&self) -> Type {
        word_int(self.word)
    }

    /// The functions that are called like this one, itself among them.
    pub(super) fn like(&self, table: usize) -> Vec<usize> {
        let all = self.functions.iter().enumerate();
        all.filter(|(_, planned)| planned.table == table).map(|(index, _)| index).collect()
    }

    /// Arguments for the first function.
    pub(super) fn args(&self, choices: &mut Choices<'_>) -> Vec<DataValue> {
        let params = self.functions[0].signature.params.iter();
        let args = params.map(|param| match param.value_type {
            F32 => DataValue::F32(Ieee32::with_bits(choices.f32())),
            F64 => DataValue::F64(Ieee64::with_bits(choices.f64())),
            ty => {
                let bits = choices.int(ty.bits());
                DataValue::from_integer(bits.into(), ty).expect("it is an integer type")
            }
        });
        args.collect()
    }
}

fn word_int(word: WordSize) -> Type {
    match word {
        WordSize::Four => I32,
        WordSize::Eight => cranelift_codegen::ir::types::I64,
    }
}

/// A function with parameters and results of its own, though the results may be another's: then tail
/// calls are possible.
fn planned(
    choices: &mut Choices<'_>,
    word: WordSize,
    name: String,
    models: &[&Signature],
    index: usize,
) -> Planned {
    let conv = choices.one(&[CallConv::Fast, CallConv::Tail, CallConv::Tail, CallConv::SystemV]);
    let mut signature = Signature::new(conv);
    let most = if choices.once_in(5) { 14 } else { 5 };
    let mut params = Vec::new();
    for _ in 0..choices.below(most) {
        // The first function is called from outside, where there are no blocks.
        let param = match index > 0 && choices.once_in(6) {
            true => Param::Block,
            false => Param::Value(choices.one(&TYPES)),
        };
        let mut abi = AbiParam::new(match param {
            Param::Block => word_int(word),
            Param::Value(ty) => ty,
        });
        if index > 0 {
            abi = extended(choices, abi);
        }
        params.push(param);
        signature.params.push(abi);
    }
    let most = if choices.once_in(6) { 9 } else { 4 };
    signature.returns = match models {
        [_, ..] if choices.below(3) > 0 => choices.one(models).returns.clone(),
        _ => (0..choices.below(most))
            .map(|_| {
                let result = AbiParam::new(choices.one(&TYPES));
                extended(choices, result)
            })
            .collect(),
    };
    Planned { name, params, signature, table: index }
}

/// With the bits above a narrow integer said to be something, sometimes.
fn extended(choices: &mut Choices<'_>, param: AbiParam) -> AbiParam {
    if !param.value_type.is_int() || param.value_type.bits() > 16 {
        return param;
    }
    match choices.below(4) {
        2 => param.uext(),
        3 => param.sext(),
        _ => param,
    }
}

/// The fuel for all calls together, numbers that functions write, one place far into its datum,
/// numbers that they only read, an address of some numbers, and a table of functions of each kind.
fn data(choices: &mut Choices<'_>, word: WordSize, functions: &[Planned]) -> Vec<Datum> {
    let mut numbers = |size: usize, from: usize| {
        let mut bytes = vec![0; size];
        for word in bytes[from..from + BLOCK].chunks_mut(8) {
            word.copy_from_slice(&choices.int(64).to_le_bytes());
        }
        bytes
    };
    let (numbers_bytes, constants) = (numbers(BLOCK, 0), numbers(BLOCK, 0));
    let far = numbers(5000, FAR_START);
    let fuel = 4 + choices.below(5) as u32 * 5;
    let datum = |name: &str, bytes: Vec<u8>, access, addresses| Datum {
        name: name.to_owned(),
        bytes,
        access,
        addresses,
    };
    let bytes = usize::from(word.bytes());
    let mut data = vec![
        datum(FUEL, fuel.to_le_bytes().to_vec(), DataAccess::ReadWrite, vec![]),
        datum(NUMBERS, numbers_bytes, DataAccess::ReadWrite, vec![]),
        datum(FAR, far, DataAccess::ReadWrite, vec![]),
        datum(CONSTANTS, constants, DataAccess::ReadOnly, vec![]),
        datum(POINTER, vec![0; bytes], DataAccess::ReadOnly, vec![(0, Address::Datum(1))]),
    ];
    for table in 0..functions.len() {
        let alike = functions.iter().enumerate().filter(|(_, planned)| planned.table == table);
        let alike: Vec<usize> = alike.map(|(index, _)| index).collect();
        if alike.is_empty() {
            continue;
        }
        let entries = (0..TABLE).map(|at| (at * bytes, Address::Function(alike[at % alike.len()])));
        let addresses = entries.collect();
        data.push(datum(
            &table_name(table),
            vec![0; TABLE * bytes],
            DataAccess::ReadOnly,
            addresses,
        ));
    }
    data
}

/// The name of the datum with addresses of functions.
pub(super) fn table_name(table: usize) -> String {
    format!("table{table}")
}

/// An `i8`, which is enough for a truth value.
pub(super) const TRUTH: Type = I8;
