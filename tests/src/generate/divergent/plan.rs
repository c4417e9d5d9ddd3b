//! What a kernel consists of, before any function has a body.

use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use harp_isa::WordSize;
use harp_jit::{DataAccess, ParamType};

use super::super::Family;
use super::super::choices::Choices;
use crate::oracle::{Address, Argument, Datum, Elements};

/// Bytes of a work-item's memory.
pub(super) const OWN_BYTES: u32 = 256;

/// Words in it: the fuel of calls, words to read and write, and from a place on what the kernel computed.
pub(super) const SCRATCH: u32 = 1;
pub(super) const SCRATCH_WORDS: u32 = 8;
pub(super) const RESULTS: u32 = 12;

/// Words that all work-items read: a power of two.
pub(super) const SHARED_WORDS: usize = 8;

/// The name of the datum with them.
pub(super) const SHARED: &str = "shared";

/// Entries of a table of functions, a power of two.
pub(super) const TABLE: usize = 4;

/// A function without a body.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) signature: Signature,
    /// The table with the functions that are called like this one.
    pub(super) table: usize,
}

/// A kernel without bodies.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) family: Family,
    pub(super) extents: [u64; 3],
    pub(super) args: Vec<Argument>,
    pub(super) functions: Vec<Planned>,
    pub(super) data: Vec<Datum>,
    /// Whether work-items may trap.
    pub(super) may_trap: bool,
    /// Whether they ask which lane runs them.
    pub(super) asks_for_lane: bool,
}

impl Plan {
    pub(super) fn new(choices: &mut Choices<'_>, family: Family) -> Plan {
        let extents = match choices.below(6) {
            0..=2 => [1 + choices.below(40) as u64, 1, 1],
            3 => [1 + choices.below(150) as u64, 1, 1],
            4 => [1 + choices.below(9) as u64, 1 + choices.below(5) as u64, 1],
            _ => [3, 1 + choices.below(3) as u64, 1 + choices.below(3) as u64],
        };
        let args = arguments(choices, family.word, extents.iter().product::<u64>() as usize);
        let functions = functions(choices, family);
        let may_trap = choices.once_in(6);
        let asks_for_lane = choices.once_in(6);
        let data = data(choices, family.word, &functions);
        Plan { family, extents, args, functions, data, may_trap, asks_for_lane }
    }

    /// The integer type of the word.
    pub(super) fn word(&self) -> Type {
        self.family.word_int()
    }

    /// The types of values: a word, something wider or narrower, and truth values.
    pub(super) fn types(&self) -> [Type; 3] {
        [self.word(), other(self.family), I8]
    }

    /// The functions that are called like this one, itself among them.
    pub(super) fn like(&self, table: usize) -> Vec<usize> {
        let all = self.functions.iter().enumerate().skip(1);
        all.filter(|(_, planned)| planned.table == table).map(|(index, _)| index).collect()
    }
}

/// An integer type that is not the word's.
fn other(family: Family) -> Type {
    match family.word {
        WordSize::Four => I64,
        WordSize::Eight => I32,
    }
}

/// The memory of the work-items, and a few numbers.
fn arguments(choices: &mut Choices<'_>, word: WordSize, items: usize) -> Vec<Argument> {
    let (size, bits) = (usize::from(word.bytes()), u32::from(word.bits()));
    let pattern: Vec<u64> = (0..23).map(|_| choices.int(bits)).collect();
    let calls = 2 + choices.below(10) as u64;
    let mut own = vec![0; items * OWN_BYTES as usize];
    for (item, bytes) in own.chunks_mut(OWN_BYTES as usize).enumerate() {
        for (at, bytes) in bytes.chunks_mut(size).enumerate() {
            let number = match at as u32 {
                0 => calls,
                at if at < RESULTS => {
                    let differs = item * (at as usize % 3) / (1 + at as usize % 5);
                    pattern[(at as usize + item * 7) % pattern.len()] ^ differs as u64
                }
                _ => 0,
            };
            bytes.copy_from_slice(&number.to_le_bytes()[..size]);
        }
    }
    let mut args = vec![Argument::Buffer(Elements::Ints, own)];
    let ty = if word == WordSize::Four { ParamType::I32 } else { ParamType::I64 };
    for _ in 0..3 {
        args.push(Argument::Scalar(ty, choices.int(bits)));
    }
    args
}

/// The kernel, and functions of one or two kinds. Each gets the address of the work-item's memory first.
fn functions(choices: &mut Choices<'_>, family: Family) -> Vec<Planned> {
    let word = family.word_int();
    let mut kernel = Signature::new(CallConv::Fast);
    kernel.params.push(AbiParam::new(word));
    let mut functions =
        vec![Planned { name: "kernel".to_owned(), signature: kernel, table: usize::MAX }];
    let count = if choices.below(2) == 0 { 0 } else { 1 + choices.below(4) };
    let mut kinds: Vec<Signature> = Vec::new();
    for index in 0..count {
        if index == 0 || (kinds.len() < 2 && choices.once_in(3)) {
            kinds.push(signature(choices, family));
        }
        let table = choices.below(kinds.len());
        let name = format!("f{}", index + 1);
        functions.push(Planned { name, signature: kinds[table].clone(), table });
    }
    functions
}

fn signature(choices: &mut Choices<'_>, family: Family) -> Signature {
    let types = [family.word_int(), other(family), I8];
    let mut signature = Signature::new(choices.one(&[CallConv::Fast, CallConv::Tail]));
    signature.params.push(AbiParam::new(types[0]));
    for _ in 0..choices.below(5) {
        signature.params.push(AbiParam::new(choices.one(&types)));
    }
    for _ in 0..choices.below(4) {
        signature.returns.push(AbiParam::new(choices.one(&types)));
    }
    signature
}

/// Numbers for all work-items, and a table of functions of each kind.
fn data(choices: &mut Choices<'_>, word: WordSize, functions: &[Planned]) -> Vec<Datum> {
    let size = usize::from(word.bytes());
    let numbers = (0..SHARED_WORDS).map(|_| choices.int(word.bits().into()).to_le_bytes());
    let shared = Datum {
        name: SHARED.to_owned(),
        bytes: numbers.flat_map(|number| number.into_iter().take(size)).collect(),
        access: DataAccess::ReadOnly,
        addresses: Vec::new(),
    };
    let mut data = vec![shared];
    for table in 0..2 {
        let alike = functions.iter().enumerate().filter(|(_, planned)| planned.table == table);
        let alike: Vec<usize> = alike.map(|(index, _)| index).collect();
        if alike.is_empty() {
            continue;
        }
        let entries = (0..TABLE).map(|at| (at * size, Address::Function(alike[at % alike.len()])));
        data.push(Datum {
            name: table_name(table),
            bytes: vec![0; TABLE * size],
            access: DataAccess::ReadOnly,
            addresses: entries.collect(),
        });
    }
    data
}

/// The name of the datum with addresses of functions.
pub(super) fn table_name(table: usize) -> String {
    format!("table{table}")
}
