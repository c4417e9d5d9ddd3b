//! Facts about a legalized function: its control-flow graph, where lanes that part meet again, and
//! which values and branches are the same in all lanes.
//!
//! Nothing here changes the function. The facts hold until somebody else does.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Opcode};
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};

mod cause;
mod post_dominators;
mod sync;
#[cfg(test)]
mod tests;
mod uniformity;

pub(crate) use post_dominators::PostDominators;
pub(crate) use uniformity::{Params, Uniformity};

/// The control flow of a function. Only blocks that the entry reaches count.
pub(crate) struct Flow {
    cfg: ControlFlowGraph,
    dominators: DominatorTree,
    post_dominators: PostDominators,
    loops: LoopAnalysis,
    /// The number of each block in reverse post-order.
    positions: SecondaryMap<Block, usize>,
}

impl Flow {
    pub(crate) fn compute(func: &Function) -> Flow {
        let cfg = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &cfg);
        let mut loops = LoopAnalysis::new();
        loops.compute(func, &cfg, &dominators);
        let post_dominators = PostDominators::compute(func, &cfg, &dominators);
        let mut positions = SecondaryMap::new();
        for (position, &block) in dominators.cfg_postorder().iter().rev().enumerate() {
            positions[block] = position;
        }
        Flow { cfg, dominators, post_dominators, loops, positions }
    }

    /// The blocks in reverse post-order: each before those that it dominates.
    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + '_ {
        self.dominators.cfg_postorder().iter().rev().copied()
    }

    pub(crate) fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.cfg.succ_iter(block)
    }

    pub(crate) fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        let all = self.cfg.pred_iter(block).map(|pred| pred.block);
        all.filter(|&pred| self.dominators.is_reachable(pred))
    }

    /// Where `block` comes in [`blocks`](Flow::blocks).
    pub(crate) fn position(&self, block: Block) -> usize {
        self.positions[block]
    }

    /// The closest block that dominates both.
    pub(crate) fn common_dominator(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let later = if self.position(a) > self.position(b) { &mut a } else { &mut b };
            *later = self.dominators.idom(*later).expect("the entry dominates all blocks");
        }
        a
    }

    /// The closest block that dominates `block`; none for the entry.
    pub(crate) fn immediate_dominator(&self, block: Block) -> Option<Block> {
        self.dominators.idom(block)
    }

    /// Whether a loop holds `block`.
    pub(crate) fn is_in_loop(&self, block: Block) -> bool {
        self.loops.innermost_loop(block).is_some()
    }

    fn dominates(&self, above: Block, below: Block) -> bool {
        self.dominators.block_dominates(above, below)
    }

    pub(crate) fn post_dominators(&self) -> &PostDominators {
        &self.post_dominators
    }

    /// The loops around `block`, the innermost first.
    fn loops_around(&self, block: Block) -> impl Iterator<Item = Loop> + '_ {
        let innermost = self.loops.innermost_loop(block);
        std::iter::successors(innermost, |&inner| self.loops.loop_parent(inner))
    }

    /// Whether every cycle has a block that dominates it, so that the natural loops are all cycles.
    fn is_reducible(&self) -> bool {
        let mut seen = EntitySet::new();
        self.blocks().all(|block| {
            seen.insert(block);
            let mut back = self.successors(block).filter(|&to| seen.contains(to));
            back.all(|header| self.dominates(header, block))
        })
    }

    /// The region of a branch: the blocks that its lanes can run before they reach the branch's
    /// immediate post-dominator, in no particular order. It holds `branch` itself if they can come
    /// back to it. Without a post-dominator it is all that `branch` reaches.
    pub(crate) fn region(&self, branch: Block) -> Vec<Block> {
        let end = self.post_dominators.immediate(branch);
        reachable(self.successors(branch), end, |block| self.successors(block))
    }
}

/// The blocks that can be reached from `start` without entering `end`.
pub(crate) fn reachable<I: Iterator<Item = Block>>(
    start: impl Iterator<Item = Block>,
    end: Option<Block>,
    successors: impl Fn(Block) -> I,
) -> Vec<Block> {
    let mut seen = EntitySet::new();
    let mut found = Vec::new();
    let mut todo: Vec<Block> = start.collect();
    while let Some(block) = todo.pop() {
        if Some(block) != end && seen.insert(block) {
            found.push(block);
            todo.extend(successors(block));
        }
    }
    found
}

/// Whether `block` ends in a trap: lanes that enter it stop the launch.
pub(crate) fn ends_in_trap(func: &Function, block: Block) -> bool {
    let last = func.layout.last_inst(block);
    last.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Trap)
}
