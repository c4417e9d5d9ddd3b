//! The order of blocks: reverse post-order, with a block of its own for each critical edge.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst};
use hashbrown::HashMap;

use crate::vcode::BlockId;

/// What a block of VCode stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lowered {
    /// A block of the function.
    Block(Block),
    /// The edge from a branch to one of its successors.
    Edge { branch: Inst, successor: usize },
}

#[derive(Debug)]
pub(super) struct BlockOrder {
    order: Vec<Lowered>,
    blocks: SecondaryMap<Block, Option<BlockId>>,
    /// Where each side of a `brif` leads: the edge's block, or the target itself.
    sides: HashMap<(Inst, usize), BlockId>,
}

impl BlockOrder {
    /// Unreachable blocks are left out.
    pub(super) fn new(func: &Function) -> BlockOrder {
        let cfg = ControlFlowGraph::with_function(func);
        let domtree = DominatorTree::with_function(func, &cfg);
        let mut result =
            BlockOrder { order: Vec::new(), blocks: SecondaryMap::new(), sides: HashMap::new() };
        let mut direct = Vec::new();
        for &block in domtree.cfg_postorder().iter().rev() {
            result.blocks[block] = Some(BlockId::new(result.order.len()));
            result.order.push(Lowered::Block(block));
            let Some(branch) = func.layout.last_inst(block) else { continue };
            let calls = func.dfg.insts[branch]
                .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
            if calls.len() != 2 {
                continue;
            }
            let targets = [0, 1].map(|side| calls[side].block(&func.dfg.value_lists));
            // The side that falls through comes first.
            for side in [1, 0] {
                let has_args = calls[side].len(&func.dfg.value_lists) > 0;
                let shared = cfg.pred_iter(targets[side]).count() > 1;
                if has_args || shared || targets[0] == targets[1] {
                    result.sides.insert((branch, side), BlockId::new(result.order.len()));
                    result.order.push(Lowered::Edge { branch, successor: side });
                } else {
                    direct.push(((branch, side), targets[side]));
                }
            }
        }
        for (side, target) in direct {
            let target = result.block(target);
            result.sides.insert(side, target);
        }
        result
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (BlockId, Lowered)> + '_ {
        let count = self.order.len();
        (0..count).map(|index| (BlockId::new(index), self.order[index]))
    }

    /// The block of VCode for a reachable block of the function.
    pub(super) fn block(&self, block: Block) -> BlockId {
        self.blocks[block].expect("a reachable block's successors are reachable")
    }

    /// Where side 0 (taken) or 1 of a `brif` leads.
    pub(super) fn successor(&self, branch: Inst, side: usize) -> BlockId {
        self.sides[&(branch, side)]
    }
}

/// The call of successor 0 or 1 of a `brif`.
pub(super) fn successor_call(func: &Function, branch: Inst, successor: usize) -> BlockCall {
    func.dfg.insts[branch].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
        [successor]
}
