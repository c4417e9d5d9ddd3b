//! What decides by which way a block is reached.
//!
//! Where ways meet, it is the branches between there and the block that dominates it most closely. In which round
//! lanes are at the head of a loop, and by which way they came back there, is what those in the loop decide
//! (K. Ottenstein, R. Ballance and A. MacCabe, "The program dependence web", 1990: the gates of gated single
//! assignment).

use std::cell::OnceCell;

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::structure::{Edge, Structure};

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Decided {
    /// By which way a block is reached, a loop by which it is entered.
    Entry,
    /// By which way lanes come round a loop.
    Round,
}

/// The regions of blocks, found when they are asked for.
#[derive(Debug)]
pub(crate) struct Regions<'a> {
    structure: &'a Structure,
    dominators: OnceCell<Dominators<NodeIndex<usize>>>,
    found: Vec<[OnceCell<Option<Vec<usize>>>; 2]>,
}

impl<'a> Regions<'a> {
    pub(crate) fn new(structure: &'a Structure) -> Regions<'a> {
        let found = structure.blocks.iter().map(|_| Default::default()).collect();
        Regions { structure, dominators: OnceCell::new(), found }
    }

    /// Whether it is known what decides by which ways lanes come to a block. It is not in loops that have other
    /// entries than their heads, at the joins of splits, and where nobody asks what is open.
    pub(crate) fn are_known(&self, number: usize) -> bool {
        let block = &self.structure.blocks[number];
        let decided = block.edges.iter().map(|edge| Decided::of(edge, number));
        let mut regions = decided.map(|decided| self.of(number, decided));
        number > 0
            && block.joins.is_none()
            && block.knows_open()
            && regions.all(|region| region.is_some())
    }

    /// The blocks whose branches decide.
    pub(crate) fn of(&self, number: usize, decided: Decided) -> Option<&[usize]> {
        let found = &self.found[number][decided as usize];
        found.get_or_init(|| self.find(number, decided)).as_deref()
    }

    fn find(&self, number: usize, decided: Decided) -> Option<Vec<usize>> {
        let blocks = &self.structure.blocks;
        let until = match decided {
            Decided::Entry => self.dominator(number),
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

    /// The closest dominator of a block.
    fn dominator(&self, number: usize) -> usize {
        let dominators = self.dominators.get_or_init(|| {
            let mut graph = DiGraph::<(), (), usize>::default();
            self.structure.blocks.iter().for_each(|_| _ = graph.add_node(()));
            for (to, block) in self.structure.blocks.iter().enumerate() {
                block
                    .edges
                    .iter()
                    .for_each(|edge| _ = graph.add_edge(edge.from.into(), to.into(), ()));
            }
            simple_fast(&graph, NodeIndex::new(0))
        });
        dominators.immediate_dominator(NodeIndex::new(number)).map_or(0, NodeIndex::index)
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
        let block = |from: &&[usize]| Block {
            first: 0,
            last: 0,
            edges: from.iter().map(|&from| Edge { from, taken: None }).collect(),
            joins: None,
            open: Vec::new(),
        };
        Structure { blocks: from.iter().map(block).collect(), block_of: Vec::new() }
    }

    fn sorted(region: Option<&[usize]>) -> Option<Vec<usize>> {
        region.map(|region| {
            let mut region = region.to_vec();
            region.sort_unstable();
            region
        })
    }

    #[test]
    fn regions_begin_at_the_closest_dominator() {
        // 0 to 1; from there to 2 or 3, both to 4; 5 is reached from 4 only.
        let structure = structure(&[&[], &[0], &[1], &[1], &[2, 3], &[4]]);
        let regions = Regions::new(&structure);
        assert_eq!(sorted(regions.of(4, Decided::Entry)), Some(vec![1, 2, 3]));
        assert!((1..6).all(|block| regions.are_known(block)));
        assert!(!regions.are_known(0), "the function is entered there");
    }

    #[test]
    fn rounds_are_decided_in_the_loop() {
        // 1 is the head of a loop with 2 and 3, entered from 0; 4 is behind it.
        let structure = structure(&[&[], &[0, 3], &[1], &[2], &[1, 2]]);
        let regions = Regions::new(&structure);
        assert_eq!(sorted(regions.of(1, Decided::Round)), Some(vec![1, 2, 3]));
        assert_eq!(sorted(regions.of(1, Decided::Entry)), Some(vec![0]));
        assert_eq!(sorted(regions.of(4, Decided::Entry)), Some(vec![1, 2]));
        assert!(regions.are_known(1));
    }

    #[test]
    fn nothing_is_known_of_loops_with_several_entries() {
        // 1 and 2 lead to each other, and both are entered from 0.
        let structure = structure(&[&[], &[0, 2], &[0, 1]]);
        let regions = Regions::new(&structure);
        assert!(!regions.are_known(1));
        assert!(!regions.are_known(2));
    }
}
