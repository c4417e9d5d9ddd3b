//! Returns and branches in the form that the analyses expect.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode,
};

/// Redirects every return to one block, with the results as its parameters.
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

/// A `brif` with equal targets becomes a jump if the arguments are equal, too. Otherwise each edge gets a
/// block of its own, so that code can be placed on a single edge.
pub(super) fn distinct_targets(func: &mut Function) {
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
pub(super) fn terminators(func: &Function, opcode: Opcode) -> Vec<Inst> {
    let last = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
    last.filter(|&inst| func.dfg.insts[inst].opcode() == opcode).collect()
}

/// Appends `block` to the layout; returns a cursor at its end with the source location of `inst`.
pub(super) fn append_block(func: &mut Function, block: Block, inst: Inst) -> FuncCursor<'_> {
    func.layout.append_block(block);
    let place = func.srcloc(inst);
    FuncCursor::new(func).with_srcloc(place).at_bottom(block)
}
