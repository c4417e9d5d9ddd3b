//! The order of blocks: a reverse post-order in which loops are contiguous, with a block of its own for each
//! critical edge.
//!
//! The register allocator recognizes loops by contiguous blocks, and emission lays them out so. The block of
//! an edge follows the branch or, if the edge leaves a loop, precedes its target.

use std::cmp::Reverse;

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst};
use cranelift_codegen::loop_analysis::LoopAnalysis;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::analysis::Graph;
use crate::vcode::BlockId;

/// What a VCode block was made from.
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
    /// The target of each side of a `brif`: the edge's block, or the CLIF target itself.
    sides: HashMap<(Inst, usize), BlockId>,
}

impl BlockOrder {
    /// Unreachable blocks are omitted.
    pub(super) fn new(func: &Function, graph: &Graph) -> BlockOrder {
        let Graph { cfg, loops, .. } = graph;
        let mut result = BlockOrder {
            order: Vec::with_capacity(func.dfg.num_blocks()),
            blocks: SecondaryMap::new(),
            sides: HashMap::new(),
        };
        let mut direct = Vec::with_capacity(func.dfg.num_blocks());
        // Edges that leave loops, by target.
        let mut leaving: SecondaryMap<Block, SmallVec<[(Inst, usize); 2]>> = SecondaryMap::new();
        leaving.resize(func.dfg.num_blocks());
        result.blocks.resize(func.dfg.num_blocks());
        for block in reverse_postorder(func, loops) {
            for (branch, side) in std::mem::take(&mut leaving[block]) {
                result.push_edge(branch, side);
            }
            result.blocks[block] = Some(BlockId::new(result.order.len()));
            result.order.push(Lowered::Block(block));
            let Some(branch) = func.layout.last_inst(block) else { continue };
            let calls = destinations(func, branch);
            if calls.len() != 2 {
                continue;
            }
            let targets = [0, 1].map(|side| calls[side].block(&func.dfg.value_lists));
            // The fall-through side comes first.
            for side in [1, 0] {
                let target = targets[side];
                let has_args = calls[side].len(&func.dfg.value_lists) > 0;
                let shared = cfg.pred_iter(target).nth(1).is_some();
                let leaves = loops
                    .innermost_loop(block)
                    .is_some_and(|inner| !loops.is_in_loop(target, inner));
                if !(has_args || shared || targets[0] == targets[1]) {
                    direct.push(((branch, side), target));
                } else if leaves && result.blocks[target].is_none() {
                    leaving[target].push((branch, side));
                } else {
                    result.push_edge(branch, side);
                }
            }
        }
        for (side, target) in direct {
            let target = result.block(target);
            result.sides.insert(side, target);
        }
        result
    }

    fn push_edge(&mut self, branch: Inst, successor: usize) {
        self.sides.insert((branch, successor), BlockId::new(self.order.len()));
        self.order.push(Lowered::Edge { branch, successor });
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (BlockId, Lowered)> + '_ {
        let count = self.order.len();
        (0..count).map(|index| (BlockId::new(index), self.order[index]))
    }

    /// The VCode block of a reachable CLIF block.
    pub(super) fn block(&self, block: Block) -> BlockId {
        self.blocks[block].expect("a reachable block's successors are reachable")
    }

    /// The target of side 0 (taken) or 1 of a `brif`.
    pub(super) fn successor(&self, branch: Inst, side: usize) -> BlockId {
        self.sides[&(branch, side)]
    }
}

/// The reachable blocks. Of a block's successors, those in more loops come first, then the fall-through one.
/// So the code after a loop follows the whole loop.
fn reverse_postorder(func: &Function, loops: &LoopAnalysis) -> Vec<Block> {
    // The search visits first what comes last in reverse post-order.
    let successors = |block| {
        let last = func.layout.last_inst(block);
        let mut successors: SmallVec<[Block; 2]> = last
            .into_iter()
            .flat_map(|inst| destinations(func, inst))
            .rev()
            .map(|call| call.block(&func.dfg.value_lists))
            .collect();
        successors.sort_by_key(|&successor| Reverse(loops.loop_level(successor).level()));
        successors
    };
    let mut order = Vec::with_capacity(func.dfg.num_blocks());
    let mut seen = EntitySet::with_capacity(func.dfg.num_blocks());
    let Some(entry) = func.layout.entry_block() else { return order };
    seen.insert(entry);
    let mut stack = vec![(entry, successors(entry))];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => stack.push((next, successors(next))),
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The call of successor 0 or 1 of a `brif`.
pub(super) fn successor_call(func: &Function, branch: Inst, successor: usize) -> BlockCall {
    destinations(func, branch)[successor]
}

fn destinations(func: &Function, inst: Inst) -> &[BlockCall] {
    func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)
}
