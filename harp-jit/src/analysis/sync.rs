//! Meeting points: where lanes that took different sides of a branch meet.
//!
//! A block is a meeting point if two paths from the branch lead to it that share only their ends (Karrenberg
//! and Hack, "Improving performance of OpenCL on CPUs", CC 2012, section 5). By Menger's theorem that holds
//! exactly if no single block lies on all paths from the branch. So in the graph of the branch's region, with
//! a node of its own for each edge that leaves the branch, the immediate dominator of a meeting point is the
//! branch. The region ends where all lanes have reconverged.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function};
use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};

use super::Flow;

/// The blocks in `region` of `branch`, and its `end`, where lanes that took different sides meet.
pub(super) fn meeting_points(
    func: &Function,
    flow: &Flow,
    branch: Block,
    region: &[Block],
    end: Option<Block>,
) -> Vec<Block> {
    let mut graph: DiGraph<(), ()> = DiGraph::new();
    let mut nodes: SecondaryMap<Block, Option<NodeIndex>> = SecondaryMap::new();
    let root = graph.add_node(());
    nodes[branch] = Some(root);
    for &block in region.iter().chain(&end) {
        nodes[block].get_or_insert_with(|| graph.add_node(()));
    }
    // Each edge counts here, even if both lead to one block.
    for successor in func.block_successors(branch) {
        let edge = graph.add_node(());
        graph.add_edge(root, edge, ());
        if let Some(node) = nodes[successor] {
            graph.add_edge(edge, node, ());
        }
    }
    for &block in region.iter().filter(|&&block| block != branch) {
        for successor in flow.successors(block) {
            if let (Some(from), Some(to)) = (nodes[block], nodes[successor]) {
                graph.add_edge(from, to, ());
            }
        }
    }
    let tree = simple_fast(&graph, root);
    let all = region.iter().chain(&end).copied().filter(|&block| block != branch);
    all.filter(|&block| nodes[block].and_then(|node| tree.immediate_dominator(node)) == Some(root))
        .collect()
}
