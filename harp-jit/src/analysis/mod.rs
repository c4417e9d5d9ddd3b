//! Facts about a legalized function: its control-flow graph, where divergent lanes reconverge, and which
//! values and branches are uniform.
//!
//! Nothing here changes the function. The facts hold until the function changes.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockCall, DataFlowGraph, Function, Inst, Opcode, Value};
use cranelift_codegen::loop_analysis::Loop;

mod calls;
mod cause;
mod graph;
mod levels;
mod limit;
mod live;
mod once;
mod solver;
mod sync;
#[cfg(test)]
mod tests;
mod tree;
mod uniformity;
mod uses;

pub(crate) use calls::{Arguments, Callees, FunctionFacts, Known, Params, ResultFact};
#[cfg(test)]
pub(crate) use cause::Cause;
pub(crate) use graph::Graph;
pub(crate) use levels::{Level, LevelId, Levels, Node};
pub(crate) use live::LiveRanges;
pub(crate) use once::{Loads, deciding_loads};
pub(crate) use uniformity::Uniformity;

/// The control flow of a function, without unreachable blocks.
pub(crate) struct Flow {
    graph: Graph,
    /// The blocks from which a return is reachable.
    returning: EntitySet<Block>,
    levels: Levels,
    /// Blocks with several predecessors from which no return is reachable.
    doomed_meetings: Vec<Block>,
}

/// Where an instruction may branch, and what it passes there.
pub(crate) fn edges(dfg: &DataFlowGraph, inst: Inst) -> &[BlockCall] {
    dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)
}

impl Flow {
    #[cfg(test)]
    pub(crate) fn compute(func: &Function) -> Flow {
        Flow::of(func, Graph::compute(func))
    }

    /// The control flow of the function with this graph.
    fn of(func: &Function, graph: Graph) -> Flow {
        let Graph { cfg, dominators, loops } = &graph;
        let returning = returning(func, &graph);
        let levels = Levels::compute(cfg, dominators, loops, &returning);
        let mut flow = Flow { graph, returning, levels, doomed_meetings: Vec::new() };
        let doomed = flow.blocks().filter(|&block| !flow.reaches_return(block));
        let ways = |&block: &Block| {
            let forward = flow.predecessors(block).filter(|&pred| !flow.dominates(block, pred));
            forward.count() > 1
        };
        flow.doomed_meetings = doomed.filter(ways).collect();
        flow
    }

    /// The graph of the blocks.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Blocks from which no return is reachable and that have several predecessors, not counting back edges.
    fn doomed_meetings(&self) -> &[Block] {
        &self.doomed_meetings
    }

    /// The blocks where lanes that diverge at the end of `block` meet, except doomed ones. None unless the
    /// case is simple: the region is entered through `block` alone, and all lanes leave it in the same
    /// iteration of the loop around it.
    fn plain_meetings(&self, func: &Function, block: Block) -> Option<Vec<Block>> {
        let (id, node) = self.levels.place(block)?;
        let level = self.levels.level(id);
        let mut sides: Vec<Block> = func.block_successors(block).collect();
        sides.sort_unstable();
        if sides.is_sorted_by(|a, b| a < b) {
            let meetings = level.meetings(node)?;
            return Some(meetings.map(|node| self.levels.first_block(level.nodes[node])).collect());
        }
        None
    }

    /// Checks that the meeting points of simple cases are those found by paths, except doomed blocks.
    #[cfg(test)]
    pub(crate) fn check_meetings(&self, func: &Function) {
        let live = self.blocks().filter(|&block| self.reaches_return(block));
        for block in live.filter(|&block| func.block_successors(block).count() > 1) {
            let Some(mut plain) = self.plain_meetings(func, block) else { continue };
            let end = self.levels.reconvergence(block).end;
            let mut wanted = sync::meeting_points(func, self, block, &self.region(block, end), end);
            wanted.retain(|&meeting| self.reaches_return(meeting));
            plain.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(plain, wanted, "of {block}\n{}", func.display());
        }
    }

    /// The blocks in reverse post-order: dominators come first.
    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + '_ {
        self.graph.dominators.cfg_postorder().iter().rev().copied()
    }

    pub(crate) fn successors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.graph.cfg.succ_iter(block)
    }

    pub(crate) fn predecessors(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        let all = self.graph.cfg.pred_iter(block).map(|pred| pred.block);
        all.filter(|&pred| self.graph.dominators.is_reachable(pred))
    }

    /// The values that edges pass for parameter number `index` of a block.
    pub(crate) fn passed<'a>(
        &'a self,
        func: &'a Function,
        block: Block,
        index: usize,
    ) -> impl Iterator<Item = Value> + 'a {
        let dfg = &func.dfg;
        let branches = self.predecessors(block).filter_map(|pred| func.layout.last_inst(pred));
        let edges = branches.flat_map(|branch| edges(dfg, branch));
        edges
            .filter(move |edge| edge.block(&dfg.value_lists) == block)
            .filter_map(move |edge| edge.args(&dfg.value_lists).nth(index)?.as_value())
    }

    /// The closest block that dominates `block`; none for the entry.
    pub(crate) fn immediate_dominator(&self, block: Block) -> Option<Block> {
        self.graph.dominators.idom(block)
    }

    /// Whether `block` is in a loop.
    pub(crate) fn is_in_loop(&self, block: Block) -> bool {
        self.graph.loops.innermost_loop(block).is_some()
    }

    pub(crate) fn dominates(&self, above: Block, below: Block) -> bool {
        self.graph.dominators.block_dominates(above, below)
    }

    /// Whether a return is reachable from `block`.
    pub(crate) fn reaches_return(&self, block: Block) -> bool {
        self.returning.contains(block)
    }

    /// Whether `block` lies outside of the innermost loop around `home`.
    pub(crate) fn leaves_loop(&self, home: Block, block: Block) -> bool {
        let innermost = self.graph.loops.innermost_loop(home);
        innermost.is_some_and(|around| !self.graph.loops.is_in_loop(block, around))
    }

    /// The control flow level by level.
    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The loops around `block`, the innermost first.
    fn loops_around(&self, block: Block) -> impl Iterator<Item = Loop> + '_ {
        let innermost = self.graph.loops.innermost_loop(block);
        std::iter::successors(innermost, |&inner| self.graph.loops.loop_parent(inner))
    }

    /// Whether the natural loops are all cycles.
    fn is_reducible(&self) -> bool {
        is_reducible(&self.graph.cfg, &self.graph.dominators)
    }

    /// The region of a branch: the blocks that its lanes can run before they reconverge at `end`, in no
    /// particular order. It contains `branch` itself if lanes can come back to it. Without an end it is
    /// everything reachable from `branch`.
    fn region(&self, branch: Block, end: Option<Block>) -> Vec<Block> {
        reachable(self.successors(branch), end, |block| self.successors(block))
    }
}

/// Whether every cycle has a block that dominates it.
pub(crate) fn is_reducible(cfg: &ControlFlowGraph, dominators: &DominatorTree) -> bool {
    let mut seen = EntitySet::new();
    dominators.cfg_postorder().iter().rev().all(|&block| {
        seen.insert(block);
        let mut back = cfg.succ_iter(block).filter(|&to| seen.contains(to));
        back.all(|header| dominators.block_dominates(header, block))
    })
}

/// The blocks reachable from `start` without entering `end`.
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

/// The blocks from which a return is reachable.
///
/// A trap is none: lanes that enter its block never continue, so others need not wait for them at the end of the function.
/// Otherwise one bounds check would move the reconvergence point of every branch around it there.
fn returning(func: &Function, graph: &Graph) -> EntitySet<Block> {
    let Graph { cfg, dominators, .. } = graph;
    let blocks = dominators.cfg_postorder().iter().copied();
    let returns =
        |&block: &Block| cfg.succ_iter(block).next().is_none() && !ends_in_trap(func, block);
    let mut todo: Vec<Block> = blocks.filter(returns).collect();
    let mut found = EntitySet::with_capacity(func.dfg.num_blocks());
    while let Some(block) = todo.pop() {
        if found.insert(block) {
            let preds = cfg.pred_iter(block).map(|pred| pred.block);
            todo.extend(preds.filter(|&pred| dominators.is_reachable(pred)));
        }
    }
    found
}

/// Whether `block` ends in a trap, which stops the launch.
fn ends_in_trap(func: &Function, block: Block) -> bool {
    let last = func.layout.last_inst(block);
    last.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Trap)
}
