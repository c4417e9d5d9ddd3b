//! Post-dominators with a virtual exit that only returns lead to.
//!
//! A block that ends in a trap has no edge to the virtual exit: lanes that enter it never continue, so others
//! need not wait for them at the end of the function. Otherwise one bounds check would move the reconvergence
//! point of every branch around it there.
//!
//! Post-dominators are dominators of the reversed graph (Cooper, Harvey, Kennedy 2001, through
//! petgraph).

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::DiGraph;

use super::ends_in_trap;

/// The immediate post-dominator of a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum After {
    /// None: no return is reachable.
    #[default]
    Nothing,
    /// The virtual exit: the block returns, or its paths to returns share no other block.
    Exit,
    Block(Block),
}

/// The immediate post-dominator of each block.
pub(crate) struct PostDominators {
    after: SecondaryMap<Block, After>,
    /// The pre-order number of each block in the tree, and the last number in its subtree.
    spans: SecondaryMap<Block, (usize, usize)>,
}

impl PostDominators {
    pub(super) fn compute(
        func: &Function,
        cfg: &ControlFlowGraph,
        dominators: &DominatorTree,
    ) -> PostDominators {
        let blocks = dominators.cfg_postorder();
        let mut graph: DiGraph<Option<Block>, ()> =
            DiGraph::with_capacity(blocks.len() + 1, 2 * blocks.len());
        let exit = graph.add_node(None);
        let mut nodes = SecondaryMap::with_default(exit);
        nodes.resize(func.dfg.num_blocks());
        for &block in blocks {
            nodes[block] = graph.add_node(Some(block));
        }
        for &block in blocks {
            let mut ends = true;
            for successor in cfg.succ_iter(block) {
                ends = false;
                graph.add_edge(nodes[successor], nodes[block], ());
            }
            if ends && !ends_in_trap(func, block) {
                graph.add_edge(exit, nodes[block], ());
            }
        }
        let tree = simple_fast(&graph, exit);
        let mut after = SecondaryMap::with_capacity(func.dfg.num_blocks());
        let (mut todo, mut before): (Vec<Block>, SecondaryMap<Block, Vec<Block>>) =
            Default::default();
        for &block in blocks {
            if let Some(node) = tree.immediate_dominator(nodes[block]) {
                after[block] = graph[node].map_or(After::Exit, After::Block);
                graph[node].map_or(&mut todo, |next| &mut before[next]).push(block);
            }
        }
        let mut order = Vec::with_capacity(blocks.len());
        while let Some(block) = todo.pop() {
            order.push(block);
            todo.extend(&before[block]);
        }
        let mut spans = SecondaryMap::with_capacity(func.dfg.num_blocks());
        for (number, &block) in order.iter().enumerate().rev() {
            let inside = before[block].iter().map(|&block: &Block| {
                let (_, last): (usize, usize) = spans[block];
                last
            });
            spans[block] = (number, inside.max().unwrap_or(number));
        }
        PostDominators { after, spans }
    }

    /// The first block after `block` that all paths from it to a return share. None if there is no such
    /// block, or if no return is reachable.
    #[cfg(test)]
    pub(crate) fn immediate(&self, block: Block) -> Option<Block> {
        match self.after[block] {
            After::Block(after) => Some(after),
            After::Exit | After::Nothing => None,
        }
    }

    /// Whether all paths from `block` to a return lead through `after`.
    pub(crate) fn is_after(&self, block: Block, after: Block) -> bool {
        let (number, _) = self.spans[block];
        let (first, last) = self.spans[after];
        self.reaches_return(block)
            && self.reaches_return(after)
            && (first + 1..=last).contains(&number)
    }

    /// Whether a return is reachable from `block`.
    pub(crate) fn reaches_return(&self, block: Block) -> bool {
        self.after[block] != After::Nothing
    }
}
