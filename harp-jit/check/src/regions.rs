//! The branches that decide along which path a block is reached.
//!
//! Where ways meet, it is the branches between there and the block that dominates it most closely. In which round
//! lanes are at the head of a loop, and by which way they came back there, is what those in the loop decide
//! (K. Ottenstein, R. Ballance and A. MacCabe, "The program dependence web", 1990: the gates of gated single
//! assignment).

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::structure::{Edge, Structure};

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Decided {
    /// The path along which a block is reached, or a loop entered.
    Entry,
    /// The path along which lanes come round a loop.
    Round,
}

/// The regions of blocks.
#[derive(Debug)]
pub(crate) struct Regions<'a> {
    structure: &'a Structure,
    dominators: Dominators<NodeIndex<usize>>,
}

impl<'a> Regions<'a> {
    pub(crate) fn new(structure: &'a Structure) -> Regions<'a> {
        let blocks = structure.blocks.iter().enumerate();
        let edges =
            blocks.flat_map(|(to, block)| block.edges.iter().map(move |edge| (edge.from, to)));
        let mut graph: DiGraph<(), (), usize> = DiGraph::from_edges(edges);
        // Nothing may lead there.
        graph.add_node(());
        Regions { structure, dominators: simple_fast(&graph, NodeIndex::new(0)) }
    }

    /// Whether it is known what decides by which ways lanes come to a block. It is not in loops that have other
    /// entries than their heads, at the joins of splits, and where nobody asks what is open.
    pub(crate) fn are_known(&self, number: usize) -> bool {
        let block = &self.structure.blocks[number];
        let mut decided = block.edges.iter().map(|edge| Decided::of(edge, number));
        number > 0
            && block.joins.is_none()
            && block.knows_open()
            && decided.all(|decided| self.of(number, decided).is_some())
    }

    /// The blocks whose branches decide.
    pub(crate) fn of(&self, number: usize, decided: Decided) -> Option<Vec<usize>> {
        let blocks = &self.structure.blocks;
        let dominator = self.dominators.immediate_dominator(NodeIndex::new(number));
        let until = match decided {
            Decided::Entry => dominator.map_or(0, NodeIndex::index),
            Decided::Round => number,
        };
        let mut inside = vec![false; blocks.len()];
        inside[until] = true;
        let mut region = vec![until];
        let edges = blocks[number].edges.iter();
        let edges = edges.filter(|edge| Decided::of(edge, number) == decided);
        let mut todo: Vec<usize> = edges.map(|edge| edge.from).collect();
        while let Some(at) = todo.pop() {
            if std::mem::replace(&mut inside[at], true) {
                continue;
            }
            if at == number || at == 0 {
                return None;
            }
            region.push(at);
            todo.extend(blocks[at].edges.iter().map(|edge| edge.from));
        }
        Some(region)
    }
}

impl Decided {
    /// What is decided about lanes that come to a block along an edge. In reverse post-order, only loops lead
    /// back.
    pub(crate) fn of(edge: &Edge, to: usize) -> Decided {
        if edge.from >= to { Decided::Round } else { Decided::Entry }
    }
}
