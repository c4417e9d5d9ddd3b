//! Brings functions to a form that instruction selection covers.
//!
//! There are three parts, before, between and after two runs of the mid-end, which optimizes what they
//! produce:
//!
//! 1. [`before`]: refuses what no later step supports, and expands operations with several results or with an
//!    implicit address.
//! 2. [`between`]: integers of two words become pairs of words, and float operations that the machine lacks
//!    become calls or integer operations. If anything changed, the mid-end runs again.
//! 3. [`after`]: makes all control flow explicit. Instruction selection cannot add control flow once it is
//!    planned which branches diverge, and the mid-end hides some: it turns branches to traps into conditional
//!    traps. So this part comes between the mid-end and the analyses.
//!
//! Each part assumes a verified function. After the last one
//!
//! * there is no conditional trap and no overflow trap: they are branches to blocks with a single `trap`;
//! * `sdiv` cannot overflow: a branch checks for that (the machine itself detects division by zero);
//! * there is no `br_table`: it is a chain of comparisons and branches;
//! * at most one block returns;
//! * the two targets of every `brif` are different blocks.
//!
//! Everything else is unchanged. Instructions that replace another one keep its source location, and the
//! function computes the same as before.

use std::cmp::Ordering;

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{Function, InstBuilder, Opcode, Type, Value, types};
use harp_isa::{ArchId, WordSize};

use crate::abi::word_int;
use crate::error::Unsupported;
use crate::options::Execution;

mod alignment;
mod contents;
mod control;
mod float;
mod frames;
mod globals;
mod memory;
mod reductions;
mod refusals;
mod several_results;
mod structures;
mod switch;
#[cfg(test)]
mod tests;
mod traps;
mod wide;

pub(crate) use contents::Opcodes;
use contents::Types;
pub(crate) use control::one_return;
pub(crate) use wide::reachable;

/// Where to put the code of a large operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeCode {
    /// In a library routine, which is called.
    Library,
    /// At the operation itself.
    InPlace,
}

/// The part before the mid-end. With `check_alignment`, accesses to memory get alignment checks.
///
/// # Errors
///
/// The first operation that is not supported.
pub(crate) fn before(
    func: &mut Function,
    arch: ArchId,
    check_alignment: bool,
) -> Result<(), Unsupported> {
    let (opcodes, word) = (Opcodes::of(func), arch.word());
    refusals::check_registers(func, &opcodes)?;
    frames::frame_values(func, word_int(word), &opcodes)?;
    refusals::check_intrinsics(func, &opcodes)?;
    refusals::check_calls(func, &opcodes)?;
    reductions::expand(func, arch, &opcodes);
    globals::expand_global_values(func, word_int(word), &opcodes)?;
    structures::copy_structures(func, word_int(word))?;
    if check_alignment {
        alignment::check_alignment(func);
    }
    if opcodes.contain_any(&several_results::REPLACED) {
        several_results::single_results(func);
    }
    Ok(())
}

/// The part between the runs of the mid-end. Returns whether there was a change that is worth another run.
///
/// `i64` becomes two `i32` on 4-byte words, the low half first. Users cannot use `i128`, but the mid-end
/// makes comparisons of that type, which become comparisons of two `i64`.
///
/// `code` says where to put the code of operations for which the [library](crate::library) has a routine.
///
/// # Errors
///
/// The first operation on wide integers that is not supported.
pub(crate) fn between(
    func: &mut Function,
    arch: ArchId,
    execution: Execution,
    code: LargeCode,
) -> Result<bool, Unsupported> {
    let types = Types::of(func);
    if types.has_i128 {
        wide::expand(func, types::I128, code, execution)?;
    }
    let accesses = memory::expand(func, arch, execution)?;
    let floats = types.has_floats && float::expand(func, arch, code);
    // What was expanded may compute in `i64`.
    let may_be_wide = types.has_i64 || types.has_i128 || accesses || floats;
    let integers = match arch.word() {
        WordSize::Four if may_be_wide => wide::expand(func, types::I64, code, execution)?,
        _ => false,
    };
    Ok(accesses || floats || integers)
}

/// The part after the mid-end: see the [module](self).
pub(crate) fn after(func: &mut Function) {
    let opcodes = Opcodes::of(func);
    if opcodes.contain_any(&traps::REPLACED) {
        traps::explicit_traps(func);
    }
    if opcodes.contain(Opcode::BrTable) {
        switch::lower_br_tables(func);
    }
    one_return(func);
    control::distinct_targets(func);
}

/// The low bits of an integer, or all of them and zeros, as one of type `ty`.
fn resized(at: &mut FuncCursor<'_>, value: Value, ty: Type) -> Value {
    match at.func.dfg.value_type(value).bits().cmp(&ty.bits()) {
        Ordering::Less => at.ins().uextend(ty, value),
        Ordering::Equal => value,
        Ordering::Greater => at.ins().ireduce(ty, value),
    }
}
