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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::Block;

    /// Blocks with these predecessors, in reverse post-order.
    fn structure(from: &[&[usize]]) -> Structure {
        let edge = |&from: &usize| Edge { from, taken: None };
        let blocks = from
            .iter()
            .map(|from| Block { edges: from.iter().map(edge).collect(), ..Block::new(0, 0) });
        Structure { blocks: blocks.collect(), block_of: Vec::new() }
    }

    #[test]
    fn regions_begin_at_the_closest_dominator_and_loops_at_their_heads() {
        use Decided::{Entry, Round};
        // 0 to 1; from there to 2 or 3, both to 4; 5 is reached from 4 only.
        let diamond: &[&[usize]] = &[&[], &[0], &[1], &[1], &[2, 3], &[4]];
        // 1 is the head of a loop with 2 and 3, entered from 0; 4 is behind it.
        let rounds: &[&[usize]] = &[&[], &[0, 3], &[1], &[2], &[1, 2]];
        for (from, block, decided, region) in [
            (diamond, 4, Entry, &[1, 2, 3][..]),
            (rounds, 1, Round, &[1, 2, 3]),
            (rounds, 1, Entry, &[0]),
            (rounds, 4, Entry, &[1, 2]),
        ] {
            let structure = structure(from);
            let regions = Regions::new(&structure);
            assert!((1..from.len()).all(|block| regions.are_known(block)));
            assert!(!regions.are_known(0), "the function is entered there");
            let mut found = regions.of(block, decided).expect("it is known");
            found.sort_unstable();
            assert_eq!(found, region);
        }
        // 1 and 2 lead to each other, and both are entered from 0.
        let structure = structure(&[&[], &[0, 2], &[0, 1]]);
        let regions = Regions::new(&structure);
        assert!(!regions.are_known(1) && !regions.are_known(2));
    }
}
