//! Random kernels from control-flow graphs: bytes to a graph, and to a kernel with its blocks.
//!
//! Graphs are those of a [`catalogue`](catalogue()) of shapes that published tests and papers hold, changed and put
//! together at random, and plain random ones. Nothing here knows loops, regions or any other structure, and
//! nothing asks for it: a graph is filled block by block.
//!
//! A block computes from its own parameters and the values of all blocks that dominate it, in integers of all widths
//! and in floats. Branches depend on uniform values, on ids and data, on counts, or on mixtures of these. Work-items
//! do not communicate, and write their results when they end.
//!
//! Every run ends, whatever the graph: blocks on cycles with several successors count visits, alone or together with
//! others, and a block whose count is used up takes the shortest path to an end (`counts.rs` says which blocks need not
//! count). The graph itself does not change.
//! Edges into blocks from which no path leads to an end, or that trap, are never taken.

use super::choices::Choices;
use super::{Family, Generated, together};

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

/// A kernel of this shape, whose blocks are filled as `bytes` say, with what work-items may do together.
pub fn filled(shape: &Shape, bytes: &[u8], family: Family) -> Generated {
    let kernel = fill::kernel(shape, random::KNOWN, &mut Choices::new(bytes), family);
    together(kernel, bytes)
}
