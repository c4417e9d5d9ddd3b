//! The plan of a case, before any function has a body.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use harp_isa::WordSize;
use harp_jit::{DataAccess, ParamType};

use super::super::Family;
use super::super::choices::Choices;
use super::super::clif::signature;
use super::config::Config;
use super::rows::TYPES;
use crate::oracle::{Address, Argument, Datum, Elements, Start};

/// Bytes of a work-item's memory.
pub(super) const OWN_BYTES: u32 = 256;

/// Words in it: the fuel of calls, words to read and write, and from a place on what the kernel computed.
pub(super) const SCRATCH: u32 = 1;
pub(super) const SCRATCH_WORDS: u32 = 8;
pub(super) const RESULTS: u32 = 12;

/// Where all widths are accessed: two blocks from the start on, and then what the kernel computed, in 8 bytes each.
pub(super) const RICH_RESULTS: u32 = 2 * BLOCK as u32;

/// Bytes of a piece of memory that is read and written in all widths: a stack slot, or a part of one, or of a
/// datum. Its start is aligned to 16 bytes in data, to a word on the stack.
pub(super) const BLOCK: usize = 32;

/// Words that all work-items read: a power of two.
pub(super) const SHARED_WORDS: usize = 8;

/// Entries of a table of functions, a power of two.
pub(super) const TABLE: usize = 4;

/// The names of data.
pub(super) const SHARED: &str = "shared";
pub(super) const FUEL: &str = "fuel";
pub(super) const NUMBERS: &str = "numbers";
pub(super) const FAR: &str = "far";
pub(super) const CONSTANTS: &str = "constants";
pub(super) const POINTER: &str = "pointer";

/// Where the block of the large datum begins.
pub(super) const FAR_START: usize = 5000 - BLOCK - 8;

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    /// The address of the work-item's memory, or, in a kernel, of its arguments.
    Own,
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
    /// The table with the functions that are called like this one.
    pub(super) table: usize,
}

/// A case without bodies.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) config: &'static Config,
    pub(super) family: Family,
    pub(super) start: Start,
    pub(super) functions: Vec<Planned>,
    pub(super) data: Vec<Datum>,
    /// Whether functions may trap.
    pub(super) may_trap: bool,
    /// Whether work-items ask which lane runs them.
    pub(super) asks_for_lane: bool,
}

impl Plan {
    pub(super) fn new(config: &'static Config, choices: &mut Choices<'_>, family: Family) -> Plan {
        let kernel = if config.lanes { Some(launch(config, choices, family)) } else { None };
        let functions = match (config.lanes, config.rich) {
            (true, rich) => kernel_functions(choices, family, !rich),
            (false, _) => functions(choices, family.word_int()),
        };
        let may_trap = choices.once_in(config.traps);
        let asks_for_lane = config.lanes && choices.once_in(6);
        let data = if config.rich {
            rich_data(choices, family.word, config.lanes, &functions)
        } else {
            data(choices, family.word, &functions)
        };
        let start = kernel.unwrap_or_else(|| Start::Call(call_args(choices, &functions[0])));
        Plan { config, family, start, functions, data, may_trap, asks_for_lane }
    }

    /// The integer type of the word.
    pub(super) fn word(&self) -> Type {
        self.family.word_int()
    }

    /// The types of values where there are few: a word, something wider or narrower, and truth values.
    pub(super) fn types(&self) -> &'static [Type] {
        match (self.config.rich, self.family.word) {
            (true, _) => &TYPES,
            (false, WordSize::Four) => &[I32, I64, I8],
            (false, WordSize::Eight) => &[I64, I32, I8],
        }
    }
}

/// The functions that are called by this table; no kernel.
pub(super) fn like(functions: &[Planned], table: usize) -> Vec<usize> {
    (0..functions.len()).filter(|&index| functions[index].table == table).collect()
}

/// The grid, the memory of the work-items, what all of them read, and a few numbers.
fn launch(config: &Config, choices: &mut Choices<'_>, family: Family) -> Start {
    let extents = match choices.below(6) {
        0..=2 => [1 + choices.below(40) as u64, 1, 1],
        3 => [1 + choices.below(150) as u64, 1, 1],
        4 => [1 + choices.below(9) as u64, 1 + choices.below(5) as u64, 1],
        _ => [3, 1 + choices.below(3) as u64, 1 + choices.below(3) as u64],
    };
    let (size, bits) = (usize::from(family.word.bytes()), u32::from(family.word.bits()));
    let pattern: Vec<u64> = (0..23).map(|_| choices.int(bits)).collect();
    let calls = 2 + choices.below(10) as u64;
    let first = if config.rich { pattern[22] } else { calls };
    let results = if config.rich { RICH_RESULTS / size as u32 } else { RESULTS };
    let items = extents.iter().product::<u64>() as usize;
    let words = OWN_BYTES as usize / size;
    let numbers = (0..items * words).map(|at| match (at / words, at % words) {
        (_, 0) => first,
        (item, at) if at < results as usize => {
            let differs = item * (at % 3) / (1 + at % 5);
            pattern[(at + item * 7) % pattern.len()] ^ differs as u64
        }
        _ => 0,
    });
    let own = numbers.flat_map(|number| number.to_le_bytes().into_iter().take(size)).collect();
    let mut args = vec![Argument::Buffer(Elements::Ints, own)];
    args.extend((0..3).map(|_| Argument::Scalar(family.word_param(), choices.int(bits))));
    if config.rich {
        let table: Vec<u8> = (0..BLOCK / 8).flat_map(|_| choices.bits().to_le_bytes()).collect();
        args.push(Argument::Buffer(Elements::Ints, table));
        args.push(Argument::Scalar(ParamType::I8, choices.int(8)));
        args.push(Argument::Scalar(ParamType::F32, choices.f32().into()));
        if family.word == WordSize::Eight {
            args.push(Argument::Scalar(ParamType::F64, choices.f64()));
            args.push(Argument::Scalar(ParamType::I32, choices.int(32)));
        }
    }
    Start::Launch { extents, args }
}

/// The kernel, and perhaps functions of one or two kinds. Each gets the address of the work-item's memory first.
fn kernel_functions(choices: &mut Choices<'_>, family: Family, others: bool) -> Vec<Planned> {
    let kernel = signature(CallConv::Fast, [family.word_int()], []);
    let (name, params) = ("kernel".to_owned(), vec![Param::Own]);
    let mut functions = vec![Planned { name, params, signature: kernel, table: usize::MAX }];
    let count = if !others || choices.below(2) == 0 { 0 } else { 1 + choices.below(4) };
    let mut kinds: Vec<Signature> = Vec::new();
    for index in 0..count {
        if index == 0 || (kinds.len() < 2 && choices.once_in(3)) {
            kinds.push(few_types(choices, family));
        }
        let table = choices.below(kinds.len());
        let signature = kinds[table].clone();
        let numbers = signature.params[1..].iter().map(|param| Param::Value(param.value_type));
        let params = [Param::Own].into_iter().chain(numbers).collect();
        functions.push(Planned { name: format!("f{}", index + 1), params, signature, table });
    }
    functions
}

fn few_types(choices: &mut Choices<'_>, family: Family) -> Signature {
    let other = if family.word == WordSize::Four { I64 } else { I32 };
    let types = [family.word_int(), other, I8];
    let conv = choices.one(&[CallConv::Fast, CallConv::Tail]);
    let mut some =
        |count| -> Vec<Type> { (0..choices.below(count)).map(|_| choices.one(&types)).collect() };
    let (params, returns) = (some(5), some(4));
    signature(conv, [types[0]].into_iter().chain(params), returns)
}

/// One function or several, of which the first one is called.
fn functions(choices: &mut Choices<'_>, word: Type) -> Vec<Planned> {
    let mut functions: Vec<Planned> = Vec::new();
    for index in 0..1 + choices.below(4) {
        let name = format!("f{index}");
        let twin = (index > 1 && choices.below(2) == 0).then(|| choices.below(index - 1) + 1);
        let planned = match twin {
            Some(twin) => Planned { name, ..functions[twin].clone() },
            None => all_types(choices, word, name, &functions),
        };
        functions.push(planned);
    }
    functions
}

/// A function with parameters and results of its own, though the results may be another's: then tail
/// calls are possible.
fn all_types(choices: &mut Choices<'_>, word: Type, name: String, others: &[Planned]) -> Planned {
    let index = others.len();
    let conv = choices.one(&[CallConv::Fast, CallConv::Tail, CallConv::Tail, CallConv::SystemV]);
    let mut signature = Signature::new(conv);
    let most = if choices.once_in(5) { 14 } else { 5 };
    let mut params = Vec::new();
    for _ in 0..choices.below(most) {
        // The first function is called from outside, where there are no blocks.
        let (param, ty) = if index > 0 && choices.once_in(6) {
            (Param::Block, word)
        } else {
            let ty = choices.one(&TYPES);
            (Param::Value(ty), ty)
        };
        params.push(param);
        let abi = AbiParam::new(ty);
        signature.params.push(if index > 0 { extended(choices, abi) } else { abi });
    }
    let most = if choices.once_in(6) { 9 } else { 4 };
    signature.returns = if index > 0 && choices.below(3) > 0 {
        others[choices.below(index)].signature.returns.clone()
    } else {
        let count = choices.below(most);
        let mut result = || {
            let ty = choices.one(&TYPES);
            extended(choices, AbiParam::new(ty))
        };
        (0..count).map(|_| result()).collect()
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

/// Arguments for a call of the function.
fn call_args(choices: &mut Choices<'_>, function: &Planned) -> Vec<DataValue> {
    let args = function.signature.params.iter().map(|param| match param.value_type {
        F32 => DataValue::F32(Ieee32::with_bits(choices.f32())),
        F64 => DataValue::F64(Ieee64::with_bits(choices.f64())),
        ty => DataValue::read_from_slice_le(&choices.int(ty.bits()).to_le_bytes(), ty),
    });
    args.collect()
}

/// Numbers for all work-items, and a table of functions of each kind.
fn data(choices: &mut Choices<'_>, word: WordSize, functions: &[Planned]) -> Vec<Datum> {
    let numbers = choices.words(SHARED_WORDS, word);
    let mut data = vec![Datum::new(SHARED, numbers, DataAccess::ReadOnly)];
    data.extend(tables(word, functions));
    data
}

/// The fuel for all calls together, numbers that functions write, one place far into its datum,
/// numbers that they only read, an address of some numbers, and a table of functions of each kind. Work-items write
/// none of them, and need no fuel.
fn rich_data(
    choices: &mut Choices<'_>,
    word: WordSize,
    lanes: bool,
    functions: &[Planned],
) -> Vec<Datum> {
    let [numbers, constants, block] = [(); 3].map(|()| choices.words(BLOCK / 8, WordSize::Eight));
    let mut far = vec![0; 5000];
    far[FAR_START..FAR_START + BLOCK].copy_from_slice(&block);
    let fuel = 4 + choices.below(5) as u32 * 5;
    let written = if lanes { DataAccess::ReadOnly } else { DataAccess::ReadWrite };
    let pointer = vec![0; usize::from(word.bytes())];
    let mut data = vec![
        Datum::new(FUEL, fuel.to_le_bytes().to_vec(), written),
        Datum::new(NUMBERS, numbers, written),
        Datum::new(FAR, far, written),
        Datum::new(CONSTANTS, constants, DataAccess::ReadOnly),
        Datum::new(POINTER, pointer, DataAccess::ReadOnly),
    ];
    data[4].addresses.push((0, Address::Datum(1)));
    data.extend(tables(word, functions));
    data
}

/// A table of functions of each kind.
fn tables(word: WordSize, functions: &[Planned]) -> impl Iterator<Item = Datum> {
    let size = usize::from(word.bytes());
    (0..functions.len()).filter_map(move |table| {
        let alike = like(functions, table);
        let entry = |at| (at * size, Address::Function(alike[at % alike.len()]));
        let table = Datum::new(&table_name(table), vec![0; TABLE * size], DataAccess::ReadOnly);
        (!alike.is_empty()).then(|| Datum { addresses: (0..TABLE).map(entry).collect(), ..table })
    })
}

/// The name of the datum with addresses of functions.
pub(super) fn table_name(table: usize) -> String {
    format!("table{table}")
}
