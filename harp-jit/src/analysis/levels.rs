//! Control flow level by level: the blocks outside of all loops, and those of each loop.
//!
//! On a level, an inner loop is a single node, and the level's own back edges are cut, so the rest is an
//! acyclic graph. Edges back to the header and out of the loop lead to [`END`](Level::end): all lanes that
//! started an iteration together wait for each other there. This is the model of reconvergence that the
//! analysis assumes and the planner keeps: an iteration of a loop begins for all of its lanes at once, and
//! lanes that left a loop wait until the others have left it too.
//!
//! Blocks from which no return is reachable are *doomed*: lanes that enter them trap or run for ever, so no
//! lane waits for them. They have a level of their own; other levels do not see edges to it.
//!
//! Assumes that every cycle is a natural loop. Nodes are numbered in topological order.

use std::ops::Range;

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Block;
use cranelift_codegen::loop_analysis::{Loop, LoopAnalysis};
use smallvec::SmallVec;

use super::tree::{Span, Tree};

/// A node of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Block(Block),
    /// A loop of the next level down.
    Loop(Loop),
}

/// The index of a level in [`Levels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LevelId(usize);

impl LevelId {
    /// The blocks outside of loops from which a return is reachable.
    pub(crate) const LIVE: LevelId = LevelId(0);
    /// The blocks outside of loops from which no return is reachable.
    pub(crate) const DOOMED: LevelId = LevelId(1);
}

/// No node of a level.
const NONE: usize = usize::MAX;

/// One level.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    /// The loop whose blocks these are; none for the blocks outside of all loops.
    pub(crate) around: Option<Loop>,
    /// The nodes in topological order; the header of the loop is the first.
    pub(crate) nodes: Vec<Node>,
    /// The total number of blocks in the nodes before each one, including those of loops; the last entry is
    /// the total of all.
    pub(crate) blocks_before: Vec<usize>,
    /// The successors of each node, without repetitions, ascending.
    pub(crate) succs: Vec<SmallVec<[usize; 2]>>,
    /// The predecessors of each node on this level.
    pub(crate) preds: Vec<SmallVec<[usize; 2]>>,
    /// Whether each node also has an entry from outside the level.
    entered: Vec<bool>,
    /// The immediate post-dominators.
    pub(crate) ipdom: Vec<usize>,
    /// The dominator tree. A node's depth is the number of nodes that dominate it, including itself.
    dominators: Tree,
    /// The post-dominator tree, with the end as the root; for each node with the span from it up to its
    /// immediate post-dominator, exclusive.
    post_dominators: Tree,
    /// The span strictly between each node and its immediate post-dominator.
    between: Vec<Span>,
    /// The last child of each node in the dominator tree.
    last_child: Vec<usize>,
    /// The previous child of the same parent in the dominator tree.
    sibling: Vec<usize>,
}

impl Level {
    /// The number that stands for everything after the level.
    pub(crate) fn end(&self) -> usize {
        self.nodes.len()
    }

    /// The nearest node that post-dominates both, or the end.
    pub(crate) fn common_post_dominator(&self, a: usize, b: usize) -> usize {
        self.post_dominators.common(a, b)
    }

    /// Finds the nearest node that dominates `head`, all nodes between it and `end`, one of its
    /// post-dominators, and all predecessors of these nodes. It is `head` itself if they are entered through
    /// `head` alone, and none if they have an entry from outside the level, too. Also returns the last of
    /// these nodes, `head` included, before the end.
    ///
    /// A node that `head` does not dominate is reached past `head` through something that dominates both:
    /// through the immediate dominator of the first such node on the path.
    pub(crate) fn entered_through(&self, head: usize, end: usize) -> (Option<usize>, usize) {
        let rest = self.post_dominators.span(self.ipdom[head], end);
        let Span { shallowest, last } = self.between[head].and(rest);
        let last = last.map_or(head, |last| last.max(head));
        let depth = self.dominators.depth(head).min(shallowest.saturating_sub(1));
        let outer = self.dominators.at_depth(head, depth);
        (Some(outer).filter(|_| depth > 0), last)
    }

    /// The nodes where lanes that diverge at `node` meet. None unless the nodes between it and its immediate
    /// post-dominator are entered through `node` alone, and the latter is on this level.
    ///
    /// A node is a meeting point if two paths from `node` lead to it that share nothing else. The immediate
    /// post-dominator is one because it is the immediate one. In between, `node` dominates all nodes; it
    /// dominates one of them immediately exactly if no third node is on all paths to it.
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
        let between =
            children.filter(move |&child| child < after && self.preds[child][..] != [node]);
        Some(between.chain(parts.then_some(after)))
    }

    /// Computes dominators of an acyclic graph in one pass (after Cooper, Harvey, Kennedy 2001), and what is
    /// derived from them.
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

/// Where the lanes of a branch reconverge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reconvergence {
    /// The first block that they run together; none if they do not reconverge.
    pub(crate) end: Option<Block>,
    /// The loops, inner ones first, that they leave in different iterations.
    pub(crate) left: Vec<Loop>,
}

/// All levels of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    levels: Vec<Level>,
    of_loop: SecondaryMap<Loop, Option<LevelId>>,
    /// The position of each block, on its innermost level.
    places: SecondaryMap<Block, Option<(LevelId, usize)>>,
    /// The number of each block in reverse post-order.
    order: SecondaryMap<Block, usize>,
    /// The position of each loop, on the level around it.
    loop_places: SecondaryMap<Loop, Option<(LevelId, usize)>>,
    headers: SecondaryMap<Loop, Option<Block>>,
    /// The exit blocks of each loop; doomed ones only if the loop is doomed.
    exits: SecondaryMap<Loop, Vec<Block>>,
}

impl Levels {
    pub(super) fn compute(
        cfg: &ControlFlowGraph,
        dominators: &DominatorTree,
        loops: &LoopAnalysis,
        returning: &EntitySet<Block>,
    ) -> Levels {
        let mut result = Levels::default();
        result.levels.resize_with(2, Level::default);
        for around in loops.loops() {
            result.of_loop[around] = Some(LevelId(result.levels.len()));
            result.headers[around] = Some(loops.loop_header(around));
            result.levels.push(Level { around: Some(around), ..Level::default() });
        }
        let doomed = |block: Block| !returning.contains(block);
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
                for &to in &level.succs[node] {
                    if let Some(preds) = level.preds.get_mut(to) {
                        preds.push(node);
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
        level.succs.push(SmallVec::new());
        level.preds.push(SmallVec::new());
        level.entered.push(false);
        (id, level.nodes.len() - 1)
    }

    /// Adds an edge on every level that sees it.
    fn add_edge(&mut self, from: Block, to: Block, loops: &LoopAnalysis) {
        let mut place = self.places[from];
        while let Some((id, node)) = place {
            let around = self.levels[id.0].around;
            let target = self.node_at(id, to);
            // An edge that leads backwards on a level is a back edge.
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

    /// All levels, those of loops before those around them.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LevelId> + use<> {
        // Loops are numbered from the outermost to the innermost.
        (0..self.levels.len()).rev().map(LevelId)
    }

    pub(crate) fn level(&self, id: LevelId) -> &Level {
        &self.levels[id.0]
    }

    /// The level of a loop's blocks.
    pub(crate) fn of_loop(&self, around: Loop) -> LevelId {
        self.of_loop[around].expect("every loop has a level")
    }

    /// The level of a block and its node there; none if the block is unreachable.
    pub(crate) fn place(&self, block: Block) -> Option<(LevelId, usize)> {
        self.places[block]
    }

    /// The node on a level that is a block, or the loop that contains the block.
    pub(crate) fn node_at(&self, id: LevelId, block: Block) -> Option<usize> {
        let mut place = self.places[block]?;
        while place.0 != id {
            place = self.loop_places[self.levels[place.0.0].around?]?;
        }
        Some(place.1)
    }

    /// Whether both blocks are on one level and all lanes that run `block` run `after` later in the same iteration, unless they
    /// trap or run for ever.
    pub(crate) fn is_after(&self, block: Block, after: Block) -> bool {
        let (Some((level, from)), Some((other, to))) = (self.places[block], self.places[after])
        else {
            return false;
        };
        level == other && from != to && self.level(level).common_post_dominator(from, to) == to
    }

    /// The blocks of these nodes of a level, including those of loops, in reverse post-order.
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

    /// The first block that a node runs.
    pub(crate) fn first_block(&self, node: Node) -> Block {
        match node {
            Node::Block(block) => block,
            Node::Loop(inner) => self.headers[inner].expect("every loop has a header"),
        }
    }

    /// The exit blocks of a loop, that of its header first if there is one. If a return is reachable from the
    /// loop, only those from which one is reachable, too.
    pub(crate) fn exits(&self, around: Loop) -> &[Block] {
        &self.exits[around]
    }

    /// Where lanes that diverge at the end of `block` reconverge.
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
