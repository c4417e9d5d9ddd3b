//! Which blocks of machine code all lanes of a warp execute together.
//!
//! A block is *convergent* if, whenever the warp executes it, all lanes that entered the function execute it.
//! It is divergent if it is control dependent on a divergent branch, or on any branch in a block that is
//! divergent itself (Lee et al., "Convergence and scalarization for data-parallel architectures", CGO 2013,
//! sections 3.1 and 3.2 and figure 3). A block with a barrier is convergent in any case: the machine traps if
//! lanes are missing.
//!
//! There are three choices of branches that may be divergent, each of which proves more than the one before
//! ([`ConvergenceProof`]).

use petgraph::algo::dominators::simple_fast;
use petgraph::graph::{DiGraph, NodeIndex};
use serde::{Deserialize, Serialize};

use crate::vcode::{BlockId, MInst, VCode};

/// Why lanes are known to be together in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ConvergenceProof {
    /// By the structure of control flow alone: the block is not control dependent on any branch.
    Structure,
    /// By uniformity: the branches that the block is control dependent on are uniform.
    Uniformity,
    /// By early exits: some divergent branches before it lead straight to the end of the kernel, and all
    /// lanes that have not left early are together (Lee et al., section 3.4).
    EarlyExit,
}

/// A block of machine code, given as a range of byte offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlockConvergence {
    /// The offset of its first instruction.
    pub start: u64,
    /// The offset after its last instruction.
    pub end: u64,
    /// The first proof that applies that all lanes which entered the function execute it together. None if
    /// that is not known.
    pub proof: Option<ConvergenceProof>,
    /// Whether lanes that reach the block return and do nothing else before.
    pub returns: bool,
}

/// What is known of a block of VCode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockProof {
    /// [`BlockConvergence::proof`].
    pub(crate) proof: Option<ConvergenceProof>,
    /// [`BlockConvergence::returns`].
    pub(crate) returns: bool,
}

/// The proof for each block of a function. Only in a `kernel` do lanes that return end for good.
pub(crate) fn prove(vcode: &VCode, kernel: bool) -> Vec<BlockProof> {
    let graph = Graph::new(vcode);
    let splits = |block| matches!(last(vcode, block), MInst::CondBr { split: true, .. });
    let branches = |block| matches!(last(vcode, block), MInst::CondBr { .. });
    let exits = |block: BlockId| {
        let succs = &vcode.blocks[block.index()].succs;
        kernel && succs.iter().any(|&side| leads_to_end(vcode, side))
    };
    let proof = |(block, _)| BlockProof { proof: None, returns: leads_to_end(vcode, block) };
    let mut proofs: Vec<BlockProof> = vcode.blocks().map(proof).collect();
    // The simplest proof that holds is written last.
    let mut prove = |proof, parts: &dyn Fn(BlockId) -> bool| {
        for (known, divergent) in proofs.iter_mut().zip(graph.divergent(parts)) {
            if !divergent {
                known.proof = Some(proof);
            }
        }
    };
    prove(ConvergenceProof::EarlyExit, &|block| splits(block) && !exits(block));
    prove(ConvergenceProof::Uniformity, &splits);
    prove(ConvergenceProof::Structure, &branches);
    proofs
}

fn last(vcode: &VCode, block: BlockId) -> &MInst {
    &vcode.insts[vcode.blocks[block.index()].insts.end - 1]
}

/// Whether lanes that enter `block` return, and do nothing else before.
fn leads_to_end(vcode: &VCode, block: BlockId) -> bool {
    let mut block = block;
    // At most as many blocks as there are, unless they form a cycle.
    for _ in 0..vcode.blocks.len() {
        let insts = vcode.blocks[block.index()].insts.clone();
        let (end, before) = vcode.insts[insts].split_last().expect("a block has a terminator");
        match end {
            _ if before.iter().any(|inst| *inst != MInst::Join) => return false,
            MInst::Ret { .. } => return true,
            MInst::Jump { target, .. } => block = *target,
            _ => return false,
        }
    }
    false
}

/// The control flow of a function.
struct Graph<'a> {
    vcode: &'a VCode,
    /// The immediate post-dominators.
    after: Vec<Option<BlockId>>,
    /// Blocks from which no return is reachable.
    doomed: Vec<bool>,
}

impl<'a> Graph<'a> {
    fn new(vcode: &'a VCode) -> Graph<'a> {
        let mut graph: DiGraph<Option<BlockId>, ()> = DiGraph::new();
        let exit = graph.add_node(None);
        let nodes: Vec<NodeIndex> =
            vcode.blocks().map(|(id, _)| graph.add_node(Some(id))).collect();
        for (id, block) in vcode.blocks() {
            for succ in &block.succs {
                graph.add_edge(nodes[succ.index()], nodes[id.index()], ());
            }
            if matches!(last(vcode, id), MInst::Ret { .. } | MInst::TailCall { .. }) {
                graph.add_edge(exit, nodes[id.index()], ());
            }
        }
        let tree = simple_fast(&graph, exit);
        let above = nodes.iter().map(|&node| tree.immediate_dominator(node));
        let (doomed, after) =
            above.map(|above| (above.is_none(), above.and_then(|node| graph[node]))).unzip();
        Graph { vcode, after, doomed }
    }

    /// The divergent blocks, if lanes may diverge at the end of the blocks for which `parts` holds.
    fn divergent(&self, parts: &dyn Fn(BlockId) -> bool) -> Vec<bool> {
        let mut divergent = vec![false; self.vcode.blocks.len()];
        let ids = self.vcode.blocks().map(|(id, _)| id);
        let mut todo: Vec<BlockId> = ids.filter(|&id| parts(id)).collect();
        while let Some(branch) = todo.pop() {
            for block in self.decided(branch) {
                if !divergent[block.index()] && !self.has_barrier(block) {
                    divergent[block.index()] = true;
                    if self.succs(block).len() > 1 || self.doomed[block.index()] {
                        todo.push(block);
                    }
                }
            }
        }
        divergent
    }

    fn succs(&self, block: BlockId) -> &[BlockId] {
        &self.vcode.blocks[block.index()].succs
    }

    /// The blocks that are control dependent on `branch`. If no return is reachable from it, these are its
    /// successors.
    fn decided(&self, branch: BlockId) -> Vec<BlockId> {
        let end = self.after[branch.index()];
        let mut found = Vec::new();
        for &side in self.succs(branch) {
            let ways = std::iter::successors(Some(side), |block| self.after[block.index()]);
            found.extend(ways.take_while(|&block| Some(block) != end));
        }
        found
    }

    fn has_barrier(&self, block: BlockId) -> bool {
        let insts = &self.vcode.insts[self.vcode.blocks[block.index()].insts.clone()];
        insts.iter().any(|inst| matches!(inst, MInst::Barrier { .. }))
    }
}
