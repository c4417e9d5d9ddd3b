//! The dominators of blocks in the order in which they are written.
//!
//! A block's place is final when it is begun: what it does not know yet are edges from blocks that it dominates, and such edges
//! change no dominators. Ancestors are found through pointers that skip many of them (Myers, "An applicative random-access
//! stack", Information Processing Letters 17, 1983).

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::Block;

/// The tree of the blocks that are begun. Those without predecessors are roots, and those that several roots lead to.
#[derive(Default)]
pub(super) struct Dominators {
    places: SecondaryMap<Block, Option<Place>>,
    begun: u32,
}

#[derive(Clone, Copy)]
struct Place {
    /// The immediate dominator; the block itself if it has none.
    above: Block,
    /// A dominator further up; the block itself if it has none.
    far: Block,
    depth: u32,
    /// How many blocks were begun before.
    number: u32,
}

impl Dominators {
    /// Adds a block that branches lead to from these blocks, unless it is begun already.
    pub(super) fn begin(&mut self, block: Block, from: impl IntoIterator<Item = Block>) {
        if self.places[block].is_some() {
            return;
        }
        let mut from = from.into_iter();
        let first = from.next();
        let above = from.fold(first, |above, other| self.common(above?, other));
        let (above, far, depth) =
            above.and_then(|above| self.below(above)).unwrap_or((block, block, 0));
        let place = Place { above, far, depth, number: self.begun };
        self.places[block] = Some(place);
        self.begun += 1;
    }

    /// For a block right below another: that one, the dominator further up, and the depth.
    fn below(&self, above: Block) -> Option<(Block, Block, u32)> {
        let place = self.places[above]?;
        let far = self.places[place.far]?;
        let further = self.places[far.far]?;
        let equal = place.depth - far.depth == far.depth - further.depth;
        Some((above, if equal { far.far } else { above }, place.depth + 1))
    }

    /// The immediate dominator of a block, if it is begun and no root.
    pub(super) fn above(&self, block: Block) -> Option<Block> {
        self.places[block].map(|place| place.above).filter(|&above| above != block)
    }

    /// Whether `first` was begun before `second`; both are begun.
    pub(super) fn is_before(&self, first: Block, second: Block) -> bool {
        self.places[first].map(|place| place.number) < self.places[second].map(|place| place.number)
    }

    /// Whether each way to `below` leads through `above`, which is another block.
    pub(super) fn strictly_dominates(&self, above: Block, below: Block) -> bool {
        let Some(Place { depth, .. }) = self.places[above] else { return false };
        above != below && self.at_depth(below, depth) == Some(above)
    }

    /// The dominator at this depth; the block itself if it is not below.
    fn at_depth(&self, mut block: Block, depth: u32) -> Option<Block> {
        loop {
            let place = self.places[block]?;
            if place.depth <= depth {
                return Some(block);
            }
            let far = self.places[place.far]?;
            block = if far.depth >= depth { place.far } else { place.above };
        }
    }

    /// The nearest block that dominates both or is one of them.
    fn common(&self, first: Block, second: Block) -> Option<Block> {
        let depths = [self.places[first]?.depth, self.places[second]?.depth];
        let least = depths[0].min(depths[1]);
        let (mut first, mut second) = (self.at_depth(first, least)?, self.at_depth(second, least)?);
        while first != second {
            let (one, other) = (self.places[first]?, self.places[second]?);
            if one.depth == 0 {
                return None;
            }
            (first, second) =
                if one.far == other.far { (one.above, other.above) } else { (one.far, other.far) };
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cranelift_codegen::entity::EntityRef;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any graph without back edges, against the definition: a block's dominators are itself and those that all of its
        /// predecessors have.
        #[test]
        fn are_those_of_the_definition(graph in vec(vec(any::<prop::sample::Index>(), 0..4), 1..80)) {
            let mut tree = Dominators::default();
            let mut sets: Vec<BTreeSet<usize>> = Vec::new();
            for (block, from) in graph.iter().enumerate() {
                let from = from.iter().filter(|_| block > 0).map(|at| at.index(block));
                let from: Vec<usize> = from.collect();
                tree.begin(Block::new(block), from.iter().map(|&from| Block::new(from)));
                let all = from.iter().map(|&from| sets[from].clone());
                let mut own = all.reduce(|one, other| &one & &other).unwrap_or_default();
                let nearest = own.iter().copied().max_by_key(|&above| sets[above].len());
                prop_assert_eq!(tree.above(Block::new(block)), nearest.map(Block::new));
                for other in 0..block {
                    let dominates = tree.strictly_dominates(Block::new(other), Block::new(block));
                    prop_assert_eq!(dominates, own.contains(&other));
                    prop_assert!(!tree.strictly_dominates(Block::new(block), Block::new(other)));
                }
                own.insert(block);
                sets.push(own);
            }
        }
    }
}
