//! What a run of a warp does: how it ends, what its lanes do to others and to memory, and why it is stuck.

use std::ops::Range;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Returned,
    Trapped,
    OutOfFuel,
    /// The record ends before the run does.
    Unrecorded,
    /// The run depends on a value that the program itself leaves undefined.
    Undefined,
}

/// Why a run is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Two lanes take different sides of a branch without `split`.
    Parted { op: usize, lanes: [usize; 2] },
    /// A join without a split.
    NothingToJoin { block: usize },
    /// Lanes return while others wait.
    OpenReturn { op: usize },
    /// A block or an instruction without code.
    NoCode { block: usize },
    /// A lane's effect is not the recorded one.
    Differs { op: usize, event: Option<usize>, operand: Option<Operand> },
}

/// An operand that differs from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) index: usize,
    pub(super) wanted: u64,
    pub(super) given: u64,
}

/// An effect of a lane.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) op: usize,
    /// A key of everything in it except its operands.
    pub(super) key: u64,
    /// The time: the number of blocks run before.
    #[cfg(test)]
    pub(super) time: u64,
    /// A range of [`Record::values`].
    pub(super) operands: Range<usize>,
    pub(super) results: Range<usize>,
}

/// The effects of one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) events: Vec<Event>,
    pub(super) values: Vec<u64>,
    /// Whether the lane returned or trapped.
    pub(super) ended: bool,
}
