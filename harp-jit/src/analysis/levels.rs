//! Control flow level by level: the blocks outside of all loops, and those of each loop.
//!
//! On a level, a loop within is a single node, and the level's own back edges are cut, so what is left
//! is an acyclic graph. Edges back to the header and out of the loop lead to [`END`](Level::end): all
//! lanes that started a round together wait for each other there. That is the model of reconvergence
//! that the analysis assumes and the planner keeps: a round of a loop begins for all of its lanes at
//! once, and lanes that left a loop wait until the others have left it too.
//!
//! Blocks from which no return can be reached are *doomed*: lanes that enter them trap or run for
//! ever, so nobody waits for them. They have a level of their own; other levels do not see the edges
//! that lead to it.
//!
//! Assumes that every cycle is a natural loop. Nodes are numbered in topological order.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};

use super::PostDominators;

/// What a level consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Block(Block),
    /// A loop of the next level down.
    Loop(Loop),
}

/// The number of a level in [`Levels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LevelId(usize);

impl LevelId {
    /// The blocks outside of loops from which a return can be reached.
    pub(crate) const LIVE: LevelId = LevelId(0);
    /// Those from which none can.
    pub(crate) const DOOMED: LevelId = LevelId(1);
}

/// Above all nodes of a level: the immediate dominator of its entries.
pub(crate) const ROOT: usize = usize::MAX;

/// One level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    /// The loop whose blocks these are; none outside of all loops.
    pub(crate) around: Option<Loop>,
    /// In topological order; the header of the loop is the first.
    pub(crate) nodes: Vec<Node>,
    /// Where each node leads, without repetitions, ascending.
    pub(crate) succs: Vec<Vec<usize>>,
    /// Whence each node is reached on this level.
    pub(crate) preds: Vec<Vec<usize>>,
    /// Whether each node is reached from elsewhere, too.
    entered: Vec<bool>,
    /// The immediate dominators.
    pub(crate) idom: Vec<usize>,
    /// The immediate post-dominators.
    pub(crate) ipdom: Vec<usize>,
    /// How many nodes dominate each node.
    depth: Vec<usize>,
    /// Of all nodes on ways from a node to its immediate post-dominator, both apart, the least number of
    /// dominators.
    shallowest: Vec<usize>,
    /// The last of the nodes that each node dominates immediately.
    last_child: Vec<usize>,
    /// The one before each node of those with the same immediate dominator.
    sibling: Vec<usize>,
}

impl Level {
    /// The number that stands for everything behind the level.
    pub(crate) fn end(&self) -> usize {
        self.nodes.len()
    }

    /// The nearest node that dominates both.
    pub(crate) fn common_dominator(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if a == ROOT || b == ROOT {
                return ROOT;
            }
            if a > b {
                a = self.idom[a];
            } else {
                b = self.idom[b];
            }
        }
        a
    }

    /// The nearest node that post-dominates both, or the end.
    pub(crate) fn common_post_dominator(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if a < b {
                a = self.ipdom[a];
            } else {
                b = self.ipdom[b];
            }
        }
        a
    }

    /// The nodes where lanes meet that go different ways behind `node`. None unless the nodes between it
    /// and its immediate post-dominator are entered through it alone, and the latter is on this level.
    ///
    /// A node is such a meeting point if two ways lead to it from `node` that share nothing else. So is the
    /// immediate post-dominator, by its being the immediate one. Between, all is dominated by `node`, and
    /// what it dominates immediately is what no other node is on all ways to.
    pub(super) fn meetings(&self, node: usize) -> Option<impl Iterator<Item = usize> + '_> {
        let after = self.ipdom[node];
        if after == self.end() || self.shallowest[node] <= self.depth[node] {
            return None;
        }
        let parts = self.succs[node].len() > 1;
        let first = Some(self.last_child[node]).filter(|&child| parts && child != ROOT);
        let children = std::iter::successors(first, |&child| {
            Some(self.sibling[child]).filter(|&next| next != ROOT)
        });
        let between = children.filter(move |&child| child < after && self.preds[child] != [node]);
        Some(between.chain(parts.then_some(after)))
    }

    /// Dominators of an acyclic graph in one pass (after Cooper, Harvey, Kennedy 2001).
    fn compute_dominators(&mut self) {
        let count = self.nodes.len();
        self.idom = vec![ROOT; count];
        for node in 0..count {
            if !self.entered[node] && !self.preds[node].is_empty() {
                let preds = self.preds[node].iter().copied();
                let common = preds.reduce(|a, b| self.common_dominator(a, b));
                self.idom[node] = common.expect("it has predecessors");
            }
        }
        self.ipdom = vec![count; count];
        for node in (0..count).rev() {
            let succs = self.succs[node].iter().copied();
            let common = succs.reduce(|a, b| self.common_post_dominator(a, b));
            self.ipdom[node] = common.unwrap_or(count);
        }
        self.compute_tree();
    }

    /// What follows from the dominators.
    fn compute_tree(&mut self) {
        let count = self.nodes.len();
        self.depth = vec![0; count];
        self.last_child = vec![ROOT; count];
        self.sibling = vec![ROOT; count];
        for node in 0..count {
            let above = self.idom[node];
            if above != ROOT {
                self.depth[node] = self.depth[above] + 1;
                self.sibling[node] = self.last_child[above];
                self.last_child[above] = node;
            }
        }
        self.shallowest = vec![usize::MAX; count];
        for node in (0..count).rev() {
            let mut least = usize::MAX;
            for &succ in &self.succs[node] {
                let mut next = succ;
                while next != self.ipdom[node] {
                    least = least.min(self.depth[next]).min(self.shallowest[next]);
                    next = self.ipdom[next];
                }
            }
            self.shallowest[node] = least;
        }
    }
}

/// Where the lanes of a branch meet again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reconvergence {
    /// The first block that they run together; none if they do not come together.
    pub(crate) end: Option<Block>,
    /// The loops, inner ones first, that they leave in different rounds.
    pub(crate) left: Vec<Loop>,
}

/// All levels of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    levels: Vec<Level>,
    of_loop: SecondaryMap<Loop, Option<LevelId>>,
    /// Where each block stands, on the innermost level.
    places: SecondaryMap<Block, Option<(LevelId, usize)>>,
    /// Where each loop stands, on the level around it.
    loop_places: SecondaryMap<Loop, Option<(LevelId, usize)>>,
    headers: SecondaryMap<Loop, Option<Block>>,
    /// The blocks behind each loop, those that are doomed only if the loop is.
    exits: SecondaryMap<Loop, Vec<Block>>,
}

impl Levels {
    pub(super) fn compute(
        cfg: &ControlFlowGraph,
        dominators: &DominatorTree,
        loops: &LoopAnalysis,
        post_dominators: &PostDominators,
    ) -> Levels {
        let mut result = Levels::default();
        result.levels.resize_with(2, Level::default);
        for around in loops.loops() {
            result.of_loop[around] = Some(LevelId(result.levels.len()));
            result.headers[around] = Some(loops.loop_header(around));
            result.levels.push(Level { around: Some(around), ..Level::default() });
        }
        let doomed = |block: Block| !post_dominators.reaches_return(block);
        let outermost = |block| if doomed(block) { LevelId::DOOMED } else { LevelId::LIVE };
        let blocks = || dominators.cfg_postorder().iter().rev().copied();
        for block in blocks() {
            let level_of = |around: Option<Loop>, levels: &Levels| {
                around.and_then(|around| levels.of_loop[around]).unwrap_or(outermost(block))
            };
            let innermost = loops.innermost_loop(block);
            if let Some(starts) = loops.is_loop_header(block) {
                let level = level_of(loops.loop_parent(starts), &result);
                result.loop_places[starts] = Some(result.add(level, Node::Loop(starts)));
            }
            let level = level_of(innermost, &result);
            result.places[block] = Some(result.add(level, Node::Block(block)));
        }
        for block in blocks() {
            for to in cfg.succ_iter(block).filter(|&to| doomed(block) || !doomed(to)) {
                result.add_edge(block, to, loops);
            }
            for to in cfg.succ_iter(block).filter(|&to| !doomed(block) && doomed(to)) {
                if let Some(node) = result.node_at(LevelId::DOOMED, to) {
                    result.levels[LevelId::DOOMED.0].entered[node] = true;
                }
            }
        }
        for level in &mut result.levels {
            for node in 0..level.nodes.len() {
                level.succs[node].sort_unstable();
                level.succs[node].dedup();
                for to in level.succs[node].clone() {
                    if to < level.nodes.len() {
                        level.preds[to].push(node);
                    }
                }
            }
            level.compute_dominators();
        }
        result
    }

    fn add(&mut self, id: LevelId, node: Node) -> (LevelId, usize) {
        let level = &mut self.levels[id.0];
        level.nodes.push(node);
        level.succs.push(Vec::new());
        level.preds.push(Vec::new());
        level.entered.push(false);
        (id, level.nodes.len() - 1)
    }

    /// Enters an edge on every level that sees it.
    fn add_edge(&mut self, from: Block, to: Block, loops: &LoopAnalysis) {
        let mut place = self.places[from];
        while let Some((id, node)) = place {
            let around = self.levels[id.0].around;
            let target = self.node_at(id, to);
            // Whatever leads backwards on a level is a back edge.
            let target = target.filter(|&target| target > node);
            let succ = target.unwrap_or(self.levels[id.0].end());
            self.levels[id.0].succs[node].push(succ);
            let Some(around) = around.filter(|&around| !loops.is_in_loop(to, around)) else {
                return;
            };
            let exits = &mut self.exits[around];
            if !exits.contains(&to) {
                exits.push(to);
            }
            place = self.loop_places[around];
        }
    }

    /// All levels, loops before those around them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LevelId> + use<> {
        // Loops are numbered from the outside to the inside.
        (0..self.levels.len()).rev().map(LevelId)
    }

    pub(crate) fn level(&self, id: LevelId) -> &Level {
        &self.levels[id.0]
    }

    /// The level of a loop's blocks.
    pub(crate) fn of_loop(&self, around: Loop) -> LevelId {
        self.of_loop[around].expect("every loop has a level")
    }

    /// The level of a block and its number there; none if it cannot be reached.
    pub(crate) fn place(&self, block: Block) -> Option<(LevelId, usize)> {
        self.places[block]
    }

    /// The number on a level of a block, or of the loop around it.
    pub(crate) fn node_at(&self, id: LevelId, block: Block) -> Option<usize> {
        let mut place = self.places[block]?;
        while place.0 != id {
            place = self.loop_places[self.levels[place.0.0].around?]?;
        }
        Some(place.1)
    }

    /// The block that is run first in a node.
    pub(crate) fn first_block(&self, node: Node) -> Block {
        match node {
            Node::Block(block) => block,
            Node::Loop(inner) => self.headers[inner].expect("every loop has a header"),
        }
    }

    /// The blocks behind a loop; if a return can be reached from the loop, only those from which one
    /// can, too.
    pub(crate) fn exits(&self, around: Loop) -> &[Block] {
        &self.exits[around]
    }

    /// Where the lanes meet again that part at the end of `block`.
    pub(crate) fn reconvergence(&self, block: Block) -> Reconvergence {
        let mut left = Vec::new();
        let mut place = self.places[block];
        while let Some((id, node)) = place {
            let level = self.level(id);
            let after = level.ipdom[node];
            if after < level.end() {
                return Reconvergence { end: Some(self.first_block(level.nodes[after])), left };
            }
            let Some(around) = level.around else { break };
            left.push(around);
            if let [exit] = self.exits[around][..] {
                return Reconvergence { end: Some(exit), left };
            }
            place = self.loop_places[around];
        }
        Reconvergence { end: None, left }
    }
}
