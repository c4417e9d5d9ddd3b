//! Random kernels from control-flow graphs: bytes to a graph, and to a kernel with its blocks.
//!
//! Graphs are those of a [`catalogue`](catalogue()) of shapes that published tests and papers hold, changed and put
//! together at random, and plain random ones. Nothing here knows loops, regions or any other structure, and
//! nothing asks for it: a graph is filled block by block.
//!
//! What a block computes comes from its own parameters and from all blocks that dominate it, in integers of all
//! widths and in floats. Lanes branch on what is equal in all of them, on their ids and data, on counts,
//! or on mixtures. Work-items communicate through nothing, and write what they computed when they end.
//!
//! Everything ends, whatever the graph: blocks on cycles with several ways to go on count, alone or together with
//! others, and when its count is used up a block takes the way that is shortest to an end (`counts.rs` says which blocks
//! need not). The graph stays what it is.
//! Where a graph has blocks from which no way leads to an end, or that trap, no branch ever goes there.

use super::choices::Choices;
use super::{Family, Generated};

mod block;
mod catalogue;
mod cells;
mod counts;
mod fill;
mod marks;
mod random;
mod shape;
mod values;

pub use catalogue::{Named, catalogue};
pub use shape::Shape;

/// The kernel that `bytes` stand for on machines of this family.
pub fn kernel(bytes: &[u8], family: Family) -> Generated {
    let mut choices = Choices::new(bytes);
    let (shape, origin) = random::shape(&mut choices);
    fill::kernel(&shape, origin, &mut choices, family)
}

/// A kernel of this shape, with what `bytes` stand for in its blocks.
pub fn filled(shape: &Shape, bytes: &[u8], family: Family) -> Generated {
    fill::kernel(shape, random::KNOWN, &mut Choices::new(bytes), family)
}
