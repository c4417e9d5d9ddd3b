//! The edges of a function, by their terminators and sides.

use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst};

/// How many edges a terminator has.
pub(super) fn destinations(func: &Function, inst: Inst) -> usize {
    let dfg = &func.dfg;
    dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables).len()
}

/// Where an edge leads.
pub(super) fn target(func: &Function, inst: Inst, side: usize) -> Block {
    let dfg = &func.dfg;
    let calls = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
    calls[side].block(&dfg.value_lists)
}

/// What an edge passes.
pub(super) fn arguments(func: &Function, inst: Inst, side: usize) -> Vec<BlockArg> {
    let dfg = &func.dfg;
    let calls = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
    calls[side].args(&dfg.value_lists).collect()
}

/// Lets an edge lead elsewhere.
pub(super) fn redirect(func: &mut Function, inst: Inst, side: usize, to: Block, args: &[BlockArg]) {
    let dfg = &mut func.dfg;
    let call = BlockCall::new(to, args.iter().copied(), &mut dfg.value_lists);
    let calls =
        dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[side] = call;
}
