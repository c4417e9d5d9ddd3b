//! The graph of a function's blocks, which several stages look at.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::Function;
use cranelift_codegen::loop_analysis::LoopAnalysis;

/// The edges between blocks, the blocks that dominate others, and the loops. It holds until a block or an edge changes.
pub(crate) struct Graph {
    pub(crate) cfg: ControlFlowGraph,
    pub(crate) dominators: DominatorTree,
    pub(crate) loops: LoopAnalysis,
}

impl Graph {
    pub(crate) fn compute(func: &Function) -> Graph {
        let cfg = ControlFlowGraph::with_function(func);
        let dominators = DominatorTree::with_function(func, &cfg);
        Graph::with_dominators(func, cfg, dominators)
    }

    /// The graph of which all but the loops is known.
    pub(crate) fn with_dominators(
        func: &Function,
        cfg: ControlFlowGraph,
        dominators: DominatorTree,
    ) -> Graph {
        let mut loops = LoopAnalysis::new();
        loops.compute(func, &cfg, &dominators);
        Graph { cfg, dominators, loops }
    }
}
