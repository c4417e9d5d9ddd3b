//! What compiling came to, in numbers.

/// What compiling a kernel came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileStats {
    /// CLIF instructions as they were built.
    pub clif_insts: usize,
    /// CLIF instructions after the mid-end and legalization.
    pub optimized_insts: usize,
    /// Machine instructions before register allocation, pseudo-instructions counted once.
    pub selected_insts: usize,
    /// Moves that the register allocator inserted, spills and reloads included.
    pub moves: usize,
    /// Words of spill slots.
    pub spill_slots: u32,
    /// Moves of predicates to and from spill slots.
    pub predicate_spills: usize,
    /// Conditional branches.
    pub branches: usize,
    /// Conditional branches on which lanes may disagree.
    pub divergent_branches: usize,
    /// Conditional branches, uniform ones among them, that became predicates.
    pub predicated_branches: usize,
    /// Those of them on which lanes may disagree. The other divergent branches split.
    pub predicated_divergent_branches: usize,
    /// Bytes of machine code.
    pub code_bytes: usize,
}
