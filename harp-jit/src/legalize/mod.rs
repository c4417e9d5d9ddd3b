//! Brings functions to a form that instruction selection covers.
//!
//! It has three steps, because the mid-end does well on the results of the first two:
//!
//! 1. [`single_results`], before the mid-end: operations with several results are taken apart.
//! 2. [`fit_word`], after the mid-end, which runs again if anything was done: integers of two words
//!    become pairs of words.
//! 3. [`legalize`]: all control flow is made explicit. Instruction selection cannot make control flow
//!    once it is planned which branches diverge, and the mid-end hides some: it turns branches to traps
//!    into conditional traps. So this step stands between the mid-end and the analyses.
//!
//! Each assumes a verified function. After the last
//!
//! * there is no conditional trap and no overflow trap: they are branches to blocks of one `trap`;
//! * `sdiv` cannot overflow: the check for it is a branch of its own (division by zero remains the
//!   machine's to find);
//! * there is no `br_table`: it is a chain of compares and branches;
//! * at most one block returns;
//! * the two targets of every `brif` are different blocks.
//!
//! All else is untouched, the instructions that replace another one keep its source location, and
//! what the function computes is the same.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, types,
};
use harp_isa::{ArchId, WordSize};

use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;
use crate::options::Execution;

mod alignment;
mod contents;
mod float;
mod frames;
mod globals;
mod memory;
mod pairs;
mod structures;
mod switch;
#[cfg(test)]
mod tests;
mod traps;
mod wide;

/// Refuses a pinned register.
///
/// # Errors
///
/// The first instruction that asks for it.
pub(crate) fn check_registers(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    let what = "a register that the program keeps for itself";
    refuse(func, opcodes, &[Opcode::GetPinnedReg, Opcode::SetPinnedReg], what)
}

/// Refuses calls of intrinsics with other parameters and results than these have, before floats become
/// integers: a call that means something else then could become one that is right.
///
/// # Errors
///
/// The first such call.
pub(crate) fn check_intrinsics(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    if !opcodes.contain_any(&[Opcode::Call]) {
        return Ok(());
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let Some(intrinsic) = Intrinsic::misused_by(func, inst) {
                let what = format!("`{intrinsic}` with such parameters and results");
                return Err(Unsupported { inst, block, what });
            }
        }
    }
    Ok(())
}

/// Refuses calls that catch exceptions, before the mid-end: their results are arguments of blocks, which
/// no later step expects.
///
/// # Errors
///
/// The first such call.
pub(crate) fn check_calls(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    let what = "a call that catches exceptions";
    refuse(func, opcodes, &[Opcode::TryCall, Opcode::TryCallIndirect], what)
}

/// Refuses instructions with one of the opcodes `refused`; those that occur in `func` are in `opcodes`.
fn refuse(
    func: &Function,
    opcodes: &Opcodes,
    refused: &[Opcode],
    what: &str,
) -> Result<(), Unsupported> {
    if !opcodes.contain_any(refused) {
        return Ok(());
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if refused.contains(&func.dfg.insts[inst].opcode()) {
                return Err(Unsupported { inst, block, what: what.to_owned() });
            }
        }
    }
    Ok(())
}

/// Where the code of a large operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeCode {
    /// Into a routine of the library, which is called.
    Library,
    /// To where the operation is.
    InPlace,
}

/// See [`alignment`].
pub(crate) use alignment::check_alignment;
pub(crate) use contents::Opcodes;
use contents::Types;
/// See [`frames`].
pub(crate) use frames::frame_values;
/// See [`globals`].
pub(crate) use globals::expand_global_values;
/// See [`structures`].
pub(crate) use structures::copy_structures;
pub(crate) use wide::reachable;

/// Takes operations with several integers as results apart: sums with carry, `isplit`. `opcodes` are those
/// that may occur.
pub(crate) fn single_results(func: &mut Function, opcodes: &Opcodes) {
    if opcodes.contain_any(&pairs::REPLACED) {
        pairs::single_results(func);
    }
}

/// Replaces integers that are wider than a word by pairs, the low half first. Returns whether that
/// was worth another run of the mid-end.
///
/// `i64` becomes two `i32` on 4-byte words. `i128` is nothing that users may ask for, but the mid-end
/// makes comparisons of that type, which become those of two `i64` again.
///
/// `code` says where the code of operations goes for which there is a routine in the
/// [library](crate::library).
///
/// # Errors
///
/// The first operation on wide integers that is not covered.
pub(crate) fn fit_word(
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
    let integers = match arch.word() {
        WordSize::Four => wide::expand(func, types::I64, code, execution)?,
        WordSize::Eight => false,
    };
    Ok(accesses || floats || integers)
}

/// See the [module](self).
pub(crate) fn legalize(func: &mut Function) {
    let opcodes = Opcodes::of(func);
    if opcodes.contain_any(&traps::REPLACED) {
        traps::explicit_traps(func);
    }
    if opcodes.contain(Opcode::BrTable) {
        switch::lower_br_tables(func);
    }
    one_return(func);
    distinct_targets(func);
}

/// Sends every return through one block, with the results as its parameters.
pub(crate) fn one_return(func: &mut Function) {
    let returns = terminators(func, Opcode::Return);
    if returns.len() < 2 {
        return;
    }
    let exit = func.dfg.make_block();
    let types: Vec<_> = func.signature.returns.iter().map(|result| result.value_type).collect();
    let results: Vec<_> =
        types.into_iter().map(|ty| func.dfg.append_block_param(exit, ty)).collect();
    let mut at = append_block(func, exit, returns[0]);
    at.ins().return_(&results);
    for inst in returns {
        let args: Vec<BlockArg> =
            func.dfg.inst_args(inst).iter().map(|&value| value.into()).collect();
        func.replace(inst).jump(exit, &args);
    }
}

/// A `brif` with equal targets becomes a jump if the arguments are equal too; else each edge gets a
/// block of its own, so that there is a place for what belongs to one edge only.
fn distinct_targets(func: &mut Function) {
    for inst in terminators(func, Opcode::Brif) {
        let InstructionData::Brif { arg, blocks, .. } = func.dfg.insts[inst] else { continue };
        let pool = &func.dfg.value_lists;
        let [target, other] = blocks.map(|call| call.block(pool));
        if target != other {
            continue;
        }
        let [on_true, on_false] = blocks.map(|call| call.args(pool).collect::<Vec<_>>());
        if on_true == on_false {
            func.replace(inst).jump(target, &on_true);
            continue;
        }
        let [on_true, on_false] = [on_true, on_false].map(|args| {
            let edge = func.dfg.make_block();
            append_block(func, edge, inst).ins().jump(target, &args);
            edge
        });
        func.replace(inst).brif(arg, on_true, &[], on_false, &[]);
    }
}

/// The terminators with this opcode, in layout order.
fn terminators(func: &Function, opcode: Opcode) -> Vec<Inst> {
    let last = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
    last.filter(|&inst| func.dfg.insts[inst].opcode() == opcode).collect()
}

/// Puts `block` at the end of the layout, ready for instructions with the source location of `inst`.
fn append_block(func: &mut Function, block: Block, inst: Inst) -> FuncCursor<'_> {
    func.layout.append_block(block);
    let place = func.srcloc(inst);
    FuncCursor::new(func).with_srcloc(place).at_bottom(block)
}
