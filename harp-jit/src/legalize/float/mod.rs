//! Replaces float operations that a machine lacks by others.
//!
//! | floats | machine | implementation |
//! |---|---|---|
//! | `f32` on 4-byte words, `f64` on 8-byte words | extension X | the machine's own; `ceil`, `floor` and `nearest` by those |
//! | the same | base | arithmetic is the machine's own; square root, `fma`, minimum, maximum and rounding on integers |
//! | `f32` on 8-byte words | extension X | the machine's own, in the low halves |
//! | the same | base | through `f64`, see below |
//! | `f64` on 4-byte words | any | all on integers; the values become `i64` |
//!
//! All of it is bit-exact, except for the bits of NaNs, which CLIF leaves unspecified.
//!
//! Sum, difference, product and quotient of `f32` are those of `f64`, rounded again. The double rounding is
//! harmless, because 53 bits are at least twice 24 plus two (Figueroa 1995). That does not hold for `fma`;
//! there the product is exact and the sum is rounded to odd.
//!
//! Operations that take hundreds of instructions (`tests/lowerings` has the sizes) are calls of routines of
//! the [library](crate::library), which contains that code once: arithmetic of `f64` on 4-byte words, and
//! square root and `fma` on integers. So is arithmetic of `f32` through `f64`, [except](singles) in small loops. All
//! others are expanded in place: a call would save little, costs registers, and separates a comparison from the
//! branch on it.
//!
//! Conversions that trap are checked with `trapnz` and `trapz`. On base machines the remaining saturating
//! conversions convert to a word, and only numbers that fit it.
//!
//! Assumes a verified function whose signature may have floats. Afterwards no value on a 4-byte machine is an
//! `f64`, and instruction selection has a rule for each remaining float operation.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{Block, DataFlowGraph, FuncRef, Function, Inst, Type, Value};
use harp_isa::{ArchId, WordSize};
use hashbrown::HashMap;

use super::LargeCode;
use super::wide::reachable;
use crate::aliases;
use crate::routine::Routine;

mod arithmetic;
mod compare;
mod convert;
mod fma;
mod format;
mod operations;
mod parts;
mod round;
mod singles;
mod soft;
#[cfg(test)]
mod tests;

use format::Format;

/// The properties of the machine that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) word: WordSize,
    pub(super) extension: bool,
}

/// How a machine computes in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With instructions of its own.
    Native,
    /// Through its own, wider format.
    Widened,
    /// On integers.
    Soft,
}

impl Machine {
    fn way(self, format: Format) -> Way {
        match (self.word, format) {
            (WordSize::Four, Format::DOUBLE) => Way::Soft,
            (WordSize::Eight, Format::SINGLE) if !self.extension => Way::Widened,
            _ => Way::Native,
        }
    }
}

/// Replaces what `arch` does not have; see the [module](self). Returns whether there was anything.
pub(super) fn expand(func: &mut Function, arch: ArchId, code: LargeCode) -> bool {
    if !has_floats(func) {
        return false;
    }
    let machine = Machine { word: arch.word(), extension: arch.has_extension() };
    let order = reachable(func);
    aliases::resolve_all(&mut func.dfg);
    let singles = match machine.way(Format::SINGLE) {
        Way::Widened if code == LargeCode::Library => singles::called(func, &order),
        _ => EntitySet::new(),
    };
    let mut floats = Floats {
        at: FuncCursor::new(func),
        machine,
        code,
        singles,
        routines: HashMap::new(),
        integers: SecondaryMap::new(),
        changed: false,
    };
    if machine.word == WordSize::Four {
        floats.signatures();
        for &block in &order {
            floats.block_params(block);
        }
    }
    // Definitions come before uses.
    for block in order {
        floats.block(block);
    }
    let changed = floats.changed;
    if changed {
        func.dfg.resolve_all_aliases();
    }
    changed
}

struct Floats<'f> {
    /// A cursor at the instruction that is replaced: new code goes before it.
    at: FuncCursor<'f>,
    machine: Machine,
    code: LargeCode,
    /// The blocks in which routines compute on `f32` through `f64`.
    singles: EntitySet<Block>,
    /// The routines declared so far.
    routines: HashMap<Routine, FuncRef>,
    /// The integers that replace `f64` values on 4-byte words.
    integers: SecondaryMap<Value, Option<Value>>,
    changed: bool,
}

impl Floats<'_> {
    /// Changes `f64` to integers in signatures.
    fn signatures(&mut self) {
        let func = &mut self.at.func.stencil;
        let called = func.dfg.signatures.values_mut();
        for signature in called.chain([&mut func.signature]) {
            for param in signature.params.iter_mut().chain(&mut signature.returns) {
                if param.value_type == F64 {
                    param.value_type = I64;
                    self.changed = true;
                }
            }
        }
    }

    fn block_params(&mut self, block: Block) {
        for param in self.at.func.dfg.block_params(block).to_vec() {
            if self.at.func.dfg.value_type(param) == F64 {
                let integer = self.at.func.dfg.replace_block_param(param, I64);
                self.integers[param] = Some(integer);
                self.changed = true;
            }
        }
    }

    fn block(&mut self, block: Block) {
        let mut next = self.at.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = self.at.func.layout.next_inst(inst);
            self.at.goto_inst(inst);
            self.at.use_srcloc(inst);
            match self.replacement(inst) {
                Some(value) => self.replace(inst, value),
                None if self.machine.word == WordSize::Four => self.retype(inst),
                None => {}
            }
        }
    }

    /// Replaces the result of an instruction by `value`.
    fn replace(&mut self, inst: Inst, value: Value) {
        let dfg = &mut self.at.func.dfg;
        let result = dfg.first_result(inst);
        if self.machine.word == WordSize::Four && dfg.value_type(result) == F64 {
            self.integers[result] = Some(value);
        } else {
            dfg.clear_results(inst);
            dfg.change_to_alias(result, value);
        }
        self.at.func.layout.remove_inst(inst);
        self.changed = true;
    }

    /// Changes an instruction that only moves floats to one that moves integers.
    fn retype(&mut self, inst: Inst) {
        let dfg = &mut self.at.func.dfg;
        let integer = |dfg: &DataFlowGraph, arg| self.integers[dfg.resolve_aliases(arg)];
        let mut changed = dfg.inst_values(inst).any(|arg| integer(dfg, arg).is_some());
        if changed {
            let mapped = dfg.inst_values(inst).map(|arg| integer(dfg, arg).unwrap_or(arg));
            let mapped: Vec<Value> = mapped.collect();
            dfg.overwrite_inst_values(inst, mapped.into_iter());
        }
        for index in 0..dfg.inst_results(inst).len() {
            let result = dfg.inst_results(inst)[index];
            if dfg.value_type(result) == F64 {
                let integer = dfg.replace_result(result, I64);
                self.integers[result] = Some(integer);
                changed = true;
            }
        }
        self.changed |= changed;
    }

    fn type_of(&self, value: Value) -> Type {
        self.at.func.dfg.value_type(value)
    }
}

/// Whether there are floats to replace. Functions with values that are not scalars, or of unknown float
/// formats, are left alone: they are refused later.
fn has_floats(func: &Function) -> bool {
    let (mut floats, mut others) = (false, false);
    let mut look = |ty: Type| {
        floats |= ty == F32 || ty == F64;
        others |= !ty.is_int() && ty != F32 && ty != F64;
    };
    for signature in func.dfg.signatures.values().chain([&func.signature]) {
        for param in signature.params.iter().chain(&signature.returns) {
            look(param.value_type);
        }
    }
    for block in func.layout.blocks() {
        let results = func.layout.block_insts(block).flat_map(|inst| func.dfg.inst_results(inst));
        for &value in func.dfg.block_params(block).iter().chain(results) {
            look(func.dfg.value_type(value));
        }
    }
    floats && !others
}
