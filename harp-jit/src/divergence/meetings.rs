//! Where the lanes of a program meet: they wait for each other there, or look at what others have.
//!
//! There the sides of a branch must not run one after the other, if lanes of both come there.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};

use crate::analysis::Callees;
use crate::intrinsic::Intrinsic;
use crate::plan::Own;

/// The blocks in which lanes may wait for others.
pub(super) fn waiting(func: &Function, callees: &dyn Callees) -> EntitySet<Block> {
    blocks_with(func, |inst| may_wait(func, inst, callees))
}

/// The blocks in which lanes of the program may wait for others, or look at what these have: by no call that is the compiler's
/// `own`.
pub(super) fn gathering(func: &Function, callees: &dyn Callees, own: &Own) -> EntitySet<Block> {
    blocks_with(func, |inst| gathers(func, inst, callees) && !own.contains(inst))
}

/// Whether lanes may wait for others at an instruction, or look at what these have.
pub(super) fn gathers(func: &Function, inst: Inst, callees: &dyn Callees) -> bool {
    let looks = Intrinsic::of_call(func, inst).is_some_and(|it| !it.is_private());
    looks || may_wait(func, inst, callees)
}

/// Whether they may anywhere in a function.
pub(crate) fn may_gather(func: &Function, callees: &dyn Callees) -> bool {
    !gathering(func, callees, &Own::new()).is_empty()
}

fn blocks_with(func: &Function, is_one: impl Fn(Inst) -> bool) -> EntitySet<Block> {
    let mut found = EntitySet::new();
    for block in func.layout.blocks() {
        if func.layout.block_insts(block).any(&is_one) {
            found.insert(block);
        }
    }
    found
}

fn may_wait(func: &Function, inst: Inst, callees: &dyn Callees) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => match Intrinsic::of_call(func, inst) {
            Some(intrinsic) => matches!(intrinsic, Intrinsic::Barrier(_)),
            None => callees.may_gather(func, func_ref),
        },
        data => data.opcode().is_call(),
    }
}
