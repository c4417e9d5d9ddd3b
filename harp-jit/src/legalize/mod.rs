//! Brings functions to a form that instruction selection covers.
//!
//! It has three parts, around the two runs of the mid-end, which does well on their results:
//!
//! 1. [`before`]: what no later step expects is refused; what has several results or an address of its own
//!    is taken apart.
//! 2. [`between`]: integers of two words become pairs of words, floats that the machine lacks become calls
//!    or integers. The mid-end runs again if anything was done.
//! 3. [`after`]: all control flow is made explicit. Instruction selection cannot make control flow once it
//!    is planned which branches diverge, and the mid-end hides some: it turns branches to traps into
//!    conditional traps. So this part stands between the mid-end and the analyses.
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

use cranelift_codegen::ir::{Function, Opcode, types};
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

/// Where the code of a large operation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeCode {
    /// Into a routine of the library, which is called.
    Library,
    /// To where the operation is.
    InPlace,
}

/// The part before the mid-end. `check_alignment` puts checks in front of accesses to memory.
///
/// # Errors
///
/// The first operation that is not covered.
pub(crate) fn before(
    func: &mut Function,
    word: WordSize,
    check_alignment: bool,
) -> Result<(), Unsupported> {
    let opcodes = Opcodes::of(func);
    refusals::check_registers(func, &opcodes)?;
    frames::frame_values(func, word_int(word), &opcodes)?;
    refusals::check_intrinsics(func, &opcodes)?;
    refusals::check_calls(func, &opcodes)?;
    reductions::expand(func, word_int(word), &opcodes);
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

/// The part between the runs of the mid-end. Returns whether there was anything that is worth another run.
///
/// `i64` becomes two `i32` on 4-byte words, the low half first. `i128` is nothing that users may ask for,
/// but the mid-end makes comparisons of that type, which become those of two `i64` again.
///
/// `code` says where the code of operations goes for which there is a routine in the
/// [library](crate::library).
///
/// # Errors
///
/// The first operation on wide integers that is not covered.
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
    let integers = match arch.word() {
        WordSize::Four => wide::expand(func, types::I64, code, execution)?,
        WordSize::Eight => false,
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
