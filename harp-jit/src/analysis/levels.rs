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

use std::ops::Range;

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};

use super::PostDominators;
use super::tree::{Span, Tree};

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

/// No node of a level.
const NONE: usize = usize::MAX;

/// One level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    /// The loop whose blocks these are; none outside of all loops.
    pub(crate) around: Option<Loop>,
    /// In topological order; the header of the loop is the first.
    pub(crate) nodes: Vec<Node>,
    /// How many blocks the nodes before each one have together, those of loops included; at the end, all.
    pub(crate) blocks_before: Vec<usize>,
    /// Where each node leads, without repetitions, ascending.
    pub(crate) succs: Vec<Vec<usize>>,
    /// Whence each node is reached on this level.
    pub(crate) preds: Vec<Vec<usize>>,
    /// Whether each node is reached from elsewhere, too.
    entered: Vec<bool>,
    /// The immediate post-dominators.
    pub(crate) ipdom: Vec<usize>,
    /// The dominators. A node's depth is how many nodes dominate it, itself included.
    dominators: Tree,
    /// The post-dominators again, the end as the root; of each node is known what lies from it to its
    /// immediate post-dominator, which is not included.
    post_dominators: Tree,
    /// What lies between each node and its immediate post-dominator, both apart.
    between: Vec<Span>,
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

    /// The nearest node that post-dominates both, or the end.
    pub(crate) fn common_post_dominator(&self, a: usize, b: usize) -> usize {
        self.post_dominators.common(a, b)
    }

    /// The nearest node that dominates `head` and all that lies between it and `end`, one of its
    /// post-dominators, and everything whence that is entered: `head` itself if it is entered through that
    /// alone. None if it is entered from outside of the level, too. And the last of those nodes, `head`
    /// included, that is before the end.
    ///
    /// What `head` does not dominate is entered past it through something that dominates both: of those that
    /// are entered so directly the immediate dominator.
    pub(crate) fn entered_through(&self, head: usize, end: usize) -> (Option<usize>, usize) {
        let rest = self.post_dominators.span(self.ipdom[head], end);
        let Span { shallowest, last } = self.between[head].and(rest);
        let last = last.map_or(head, |last| last.max(head));
        let depth = self.dominators.depth(head).min(shallowest.saturating_sub(1));
        let outer = self.dominators.at_depth(head, depth);
        (Some(outer).filter(|_| depth > 0), last)
    }

    /// The nodes where lanes meet that go different ways behind `node`. None unless the nodes between it
    /// and its immediate post-dominator are entered through it alone, and the latter is on this level.
    ///
    /// A node is such a meeting point if two ways lead to it from `node` that share nothing else. So is the
    /// immediate post-dominator, by its being the immediate one. Between, all is dominated by `node`, and
    /// what it dominates immediately is what no other node is on all ways to.
    pub(super) fn meetings(&self, node: usize) -> Option<impl Iterator<Item = usize> + '_> {
        let after = self.ipdom[node];
        let entered = self.between[node].shallowest <= self.dominators.depth(node);
        if after == self.end() || entered {
            return None;
        }
        let parts = self.succs[node].len() > 1;
        let first = Some(self.last_child[node]).filter(|&child| parts && child != NONE);
        let children = std::iter::successors(first, |&child| {
            Some(self.sibling[child]).filter(|&next| next != NONE)
        });
        let between = children.filter(move |&child| child < after && self.preds[child] != [node]);
        Some(between.chain(parts.then_some(after)))
    }

    /// Dominators of an acyclic graph in one pass (after Cooper, Harvey, Kennedy 2001), and what follows
    /// from them.
    fn compute_dominators(&mut self) {
        let count = self.nodes.len();
        self.last_child = vec![NONE; count];
        self.sibling = vec![NONE; count];
        self.dominators = Tree::new(count);
        for node in 0..count {
            let root = self.dominators.root();
            let preds = self.preds[node].iter().copied().filter(|_| !self.entered[node]);
            let above = preds.reduce(|a, b| self.dominators.common(a, b)).unwrap_or(root);
            self.dominators.add(node, above, Span::NOTHING);
            if above != root {
                self.sibling[node] = self.last_child[above];
                self.last_child[above] = node;
            }
        }
        self.ipdom = vec![count; count];
        self.between = vec![Span::NOTHING; count];
        self.post_dominators = Tree::new(count);
        for node in (0..count).rev() {
            let succs = self.succs[node].iter().copied();
            let after = succs.reduce(|a, b| self.post_dominators.common(a, b)).unwrap_or(count);
            let spans = self.succs[node].iter().map(|&to| self.post_dominators.span(to, after));
            let between = spans.fold(Span::NOTHING, Span::and);
            let own = Span { shallowest: self.dominators.depth(node), last: Some(node) };
            self.ipdom[node] = after;
            self.between[node] = between;
            self.post_dominators.add(node, after, own.and(between));
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
    /// The number of each block in reverse post-order.
    order: SecondaryMap<Block, usize>,
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
        for (number, block) in blocks().enumerate() {
            result.order[block] = number;
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
        for id in result.ids() {
            let counts = result.level(id).nodes.iter().map(|&node| match node {
                Node::Block(_) => 1,
                Node::Loop(inner) => {
                    result.level(result.of_loop(inner)).blocks_before.last().copied().unwrap_or(0)
                }
            });
            let before = counts.scan(0, |sum, count| {
                *sum += count;
                Some(*sum)
            });
            result.levels[id.0].blocks_before = std::iter::once(0).chain(before).collect();
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

    /// The blocks of these nodes of a level, with those of loops, in reverse post-order.
    pub(crate) fn blocks(&self, id: LevelId, nodes: Range<usize>) -> Vec<Block> {
        let mut todo: Vec<Node> = self.level(id).nodes[nodes].to_vec();
        let mut found = Vec::new();
        while let Some(node) = todo.pop() {
            match node {
                Node::Block(block) => found.push(block),
                Node::Loop(inner) => todo.extend(&self.level(self.of_loop(inner)).nodes),
            }
        }
        found.sort_unstable_by_key(|&block| self.order[block]);
        found
    }

    /// The block that is run first in a node.
    pub(crate) fn first_block(&self, node: Node) -> Block {
        match node {
            Node::Block(block) => block,
            Node::Loop(inner) => self.headers[inner].expect("every loop has a header"),
        }
    }

    /// The blocks behind a loop, the one behind its header first if there is one; if a return can be reached from the
    /// loop, only those from which one can, too.
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
