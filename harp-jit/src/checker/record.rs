//! What the compiler says about the code that it made: plain data for the checker.
//!
//! There are two kinds. *Claims* are what machine code cannot show: which memory nobody writes during a
//! launch, what the user promised to be uniform, which registers carry arguments and which of them callers make
//! sure are uniform, which results of a call are: what one function claims there is proved of the others. The
//! *skeleton* is the function before registers were allocated, as far as lanes part by it: its blocks and
//! their successors, and for every instruction its opcode, its guard and its predicate operands, by the
//! numbers of virtual registers. No claim says that a branch, a guard or a value computed by code is
//! uniform.

use std::ops::Range;

use harp_isa::{Gpr, Opcode, Pred};
use smallvec::SmallVec;

/// A predicate before registers were allocated, by its number.
pub(crate) type Name = u32;

/// Parameters with their arguments.
pub(crate) type Passes = SmallVec<[(Name, Name); 1]>;

/// What is said about a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) entry: Entry,
    /// The successors of each block, the side that a true condition takes first. Block 0 is the entry.
    pub(crate) successors: Vec<SmallVec<[u32; 2]>>,
    /// The predicates that each block passes to the parameters of its only successor.
    pub(crate) passes: Vec<Passes>,
    /// Predicates that nobody looks at: any will do in their place.
    pub(crate) free: Vec<Name>,
    /// Results of which callers know that they are uniform if what these registers hold at the entry is.
    pub(crate) promises: Vec<(Gpr, Regs)>,
    /// What holds nothing that is meant once each block was left, besides what is noted on instructions.
    pub(crate) undefined: Vec<Holders>,
    /// Notes on instructions by offset, ascending.
    pub(crate) notes: Vec<(u32, Note)>,
}

/// What a function finds when it is entered, and of its frame what nobody else touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whether only one lane runs the code, so that all is uniform.
    pub(crate) single_lane: bool,
    /// Registers with arguments.
    pub(crate) arguments: Vec<Gpr>,
    /// Those that are equal in all lanes.
    pub(crate) uniform: Vec<Gpr>,
    /// The size of a lane's stack is two to the power of this.
    pub(crate) lane_stack_log2: u32,
    /// Bytes of the frame, counted from the stack pointer at the entry, that only the code itself
    /// accesses, relative to the stack pointer: spill slots and saved registers.
    pub(crate) private: Vec<Range<i64>>,
    /// The same, but only as long as the code neither calls nor stores through other registers.
    pub(crate) scratch: Range<i64>,
}

/// What is said about one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The block that it belongs to.
    pub(crate) block: u32,
    /// Its place among the instructions of the block, those left out later included.
    pub(crate) position: u32,
    /// What holds nothing that is meant, from here on.
    pub(crate) undefined: Holders,
    pub(crate) role: Role,
}

/// Places.
pub(crate) type Holders = SmallVec<[Holder; 1]>;

/// Where a value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    Gpr(Gpr),
    Pred(Pred),
    /// The word of the frame so many bytes above the stack pointer at the entry.
    Frame(i64),
}

/// What an instruction is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Moves, frames, parts of longer sequences: the predicate that guards it, and the one that it
    /// computes, if they were selected.
    Part { guard: Option<Name>, defines: Option<Name> },
    /// An instruction that was selected.
    Selected(Selected),
    /// Calls what takes arguments from `hands`, those in `asks` to be uniform, and returns results in `returns`,
    /// having taken `popped` bytes off the stack. Those results in `depends` are uniform if what is in the registers
    /// beside them is.
    Call { hands: Regs, asks: Regs, returns: Regs, popped: i64, depends: Vec<(Gpr, Regs)> },
    /// Leaves the function: results, or arguments of the function called in its place, are in `hands`. What that
    /// one asks for, and on what those results depend that are promised, is as for a call.
    Leave { hands: Regs, asks: Regs, depends: Vec<(Gpr, Regs)> },
}

/// Registers.
pub(crate) type Regs = SmallVec<[Gpr; 4]>;

/// An instruction that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) opcode: Opcode,
    pub(crate) guard: Option<Name>,
    /// The predicate operands in the order in which they stand.
    pub(crate) predicates: SmallVec<[Named; 3]>,
    pub(crate) claims: Claims,
    /// Whether the predicate that it computes may say where lanes go. That only says what is worth following,
    /// it is not relied on.
    pub(crate) steers: bool,
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Def(Name),
    Use(Name),
    Mod { old: Name, new: Name },
}

/// What code cannot show about an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// It loads from memory that nobody writes during the launch.
    pub(crate) read_only: bool,
    /// The user promised that its result is uniform.
    pub(crate) uniform: bool,
    /// It is guarded, and where the guard is false its result means nothing.
    pub(crate) old_is_dead: bool,
}
