//! What a program promises about one of its functions.

/// A function that keeps the calling convention of [`harp_isa::abi`] and returns nothing, and the addresses behind its
/// calls, or the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Callee {
    pub(crate) start: u64,
    /// Bytes of its code.
    pub(crate) bytes: u64,
    /// How many registers hold arguments.
    pub(crate) arguments: u8,
    pub(crate) returns: [Option<u64>; RETURNS],
    /// Lanes that do not call it where others do.
    pub(crate) held_back: Option<HeldLanes>,
}

/// Lanes that a split around calls holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldLanes {
    /// The address behind the split.
    pub(crate) behind: u64,
    /// The registers that these lanes may read, and those that have called, too, as bits.
    pub(crate) reads: u64,
}

impl Callee {
    /// The address behind its code.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// The most calls of a [`Callee`] that are known.
pub(crate) const RETURNS: usize = 4;
