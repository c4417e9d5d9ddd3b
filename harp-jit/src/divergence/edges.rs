//! The edges of a function, each named by its terminator and side.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstBuilder, Type};
use smallvec::SmallVec;

use crate::analysis::edges;

/// An edge: one side of the terminator of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Block,
    pub(super) inst: Inst,
    pub(super) side: usize,
}

/// The number of a terminator's edges.
pub(super) fn destinations(func: &Function, inst: Inst) -> usize {
    edges(&func.dfg, inst).len()
}

/// The edges to a block from reachable blocks, in layout order.
pub(super) fn edges_to(
    func: &Function,
    cfg: &ControlFlowGraph,
    block: Block,
) -> SmallVec<[Edge; 4]> {
    let mut insts: SmallVec<[(Block, Inst); 4]> =
        cfg.pred_iter(block).map(|pred| (pred.block, pred.inst)).collect();
    insts.sort_unstable();
    insts.dedup();
    let edges = insts.into_iter().flat_map(|(from, inst)| {
        (0..destinations(func, inst)).map(move |side| Edge { from, inst, side })
    });
    edges.filter(|edge| edge.target(func) == block).collect()
}

/// Creates a block that forwards its parameters to `to`.
pub(super) fn hand_on(func: &mut Function, to: Block) -> Block {
    let block = func.dfg.make_block();
    let types: Vec<Type> = func.dfg.block_param_types(to).collect();
    let params: Vec<BlockArg> =
        types.into_iter().map(|ty| func.dfg.append_block_param(block, ty).into()).collect();
    func.layout.append_block(block);
    FuncCursor::new(func).at_bottom(block).ins().jump(to, &params);
    block
}

impl Edge {
    /// The edge's target.
    pub(super) fn target(self, func: &Function) -> Block {
        edges(&func.dfg, self.inst)[self.side].block(&func.dfg.value_lists)
    }

    /// The arguments that the edge passes.
    pub(super) fn arguments(self, func: &Function) -> SmallVec<[BlockArg; 4]> {
        edges(&func.dfg, self.inst)[self.side].args(&func.dfg.value_lists).collect()
    }

    /// Redirects the edge.
    pub(super) fn redirect(self, func: &mut Function, to: Block, args: &[BlockArg]) {
        let dfg = &mut func.dfg;
        let call = BlockCall::new(to, args.iter().copied(), &mut dfg.value_lists);
        let calls = dfg.insts[self.inst]
            .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        calls[self.side] = call;
    }
}
