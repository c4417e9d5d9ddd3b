//! What is checked.

use serde::{Deserialize, Serialize};

use crate::items::Items;

/// What a launch checks. The launch itself goes on to its end. It is interpreted, and takes up to seven times as long as
/// interpreting without.
///
/// # Limits
///
/// * Only what happens is found: other data may take other ways. Accesses are checked as the source has them, so also
///   those that the compiler leaves out.
/// * An address that was loaded from memory, or that a function got as an argument, may be in any buffer: an access
///   through it is out of bounds where there is nothing.
/// * There may be 2^32 - 2 work-items, where those of a group count as the next power of two: others are refused, see
///   [`too_many_items`].
/// * Only barriers order work-items: those of SPIR-V the accesses to the memory that they name, or that a fence before them
///   orders. Accesses that are in order because of an atomic flag or a lock are races
///   here. Of races at the same two places in the source one is described, the others are counted.
/// * Races are those within a launch. Launches of a device never run at the same time, so two of them in different queues
///   are not compared, although nothing says which one comes first.
/// * A work-item's stack counts as not written when the kernel begins. A function that is entered again at the same
///   depth finds the stack slots of the call before written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checks {
    /// Accesses outside of the buffer that the address was computed from, of the array in a work-group's memory, or of
    /// the stack slot.
    pub bounds: bool,
    /// Loads from bytes that nobody has written: of buffers that were allocated without contents, of
    /// memory of a work-group, of stack slots. What a front end marks as [copies](harp_jit::COPIED), as those of structures in
    /// OpenCL C, may read such bytes, which are then not written where they are copied to. So may loads of which nothing
    /// depends on what they read: it is not used, stored where it comes from, or moved from stack slot to stack slot.
    pub uninitialized: bool,
    /// Accesses that should be aligned at addresses that are not, of which the machine moves only a part or at which it
    /// traps: those of CLIF with the flag `aligned`, atomic ones, and of SPIR-V all but those of which the module says
    /// that they are aligned to less than their size. To accesses that are wider than the machine's word, alignment to a
    /// word is enough.
    pub alignment: bool,
    /// Accesses of two work-items to the same bytes, one of them a store, that no barrier orders, and barriers of which
    /// work-items of a group wait at different ones; atomic accesses are in order among themselves. Two stores of the same value are no race. Accesses of the
    /// host to buffers of queued commands, before it knows that these have ended, are refused.
    pub races: bool,
    /// Accesses whose type is not that of the buffer's elements. Kernels of compilers that move vectors and structures in
    /// pieces, such as clang, need this turned off.
    pub types: bool,
    /// Stores, also atomic ones, to buffers of which a parameter promises that nothing changes them: see
    /// [`Param::is_constant`](harp_jit::Param::is_constant). All bytes of the buffer count, read or not. C's `restrict` lets
    /// others write to those that the kernel does not read, so the finding may be harmless there.
    pub constants: bool,
    /// The most findings that are kept. Those at the same places in the source count as one.
    pub limit: usize,
}

impl Checks {
    /// All checks, and at most 100 findings.
    pub fn all() -> Checks {
        Checks {
            bounds: true,
            uninitialized: true,
            alignment: true,
            races: true,
            types: true,
            constants: true,
            limit: 100,
        }
    }

    /// None of the checks; for those that are turned on one by one.
    pub fn none() -> Checks {
        Checks {
            bounds: false,
            uninitialized: false,
            alignment: false,
            races: false,
            types: false,
            constants: false,
            limit: 100,
        }
    }
}

impl Default for Checks {
    fn default() -> Checks {
        Checks::all()
    }
}

/// How many numbers of work-items a launch over `grid` needs, in groups of these extents, and how many there are, if that is
/// fewer: such a launch cannot be checked.
pub fn too_many_items(grid: [u64; 3], group: Option<[u64; 3]>) -> Option<(u64, u64)> {
    let needed = Items::new(grid, group).needed().unwrap_or(u64::MAX);
    (needed > Items::MOST).then_some((needed, Items::MOST))
}
