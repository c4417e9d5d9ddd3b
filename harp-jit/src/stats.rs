//! Statistics of a compilation.

use serde::{Deserialize, Serialize};

/// Statistics of a kernel's compilation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompileStats {
    /// CLIF instructions as built.
    pub clif_insts: usize,
    /// CLIF instructions after the mid-end and legalization.
    pub optimized_insts: usize,
    /// Machine instructions before register allocation; a pseudo-instruction counts as one.
    pub selected_insts: usize,
    /// Moves that the register allocator inserted, including spills and reloads.
    pub moves: usize,
    /// Words of spill slots.
    pub spill_slots: u32,
    /// Moves of predicates to and from spill slots.
    pub predicate_spills: usize,
    /// Conditional branches.
    pub branches: usize,
    /// Conditional branches on which lanes may disagree.
    pub divergent_branches: usize,
    /// Conditional branches, including uniform ones, that were replaced by predicates.
    pub predicated_branches: usize,
    /// Predicated branches on which lanes may disagree. The other divergent branches split.
    pub predicated_divergent_branches: usize,
    /// Bytes of machine code.
    pub code_bytes: usize,
}
