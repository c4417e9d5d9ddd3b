//! How far a value is the same.

use std::fmt;

use super::cause::Cause;
use crate::intrinsic::{Dimension, Intrinsic};

/// Among whose lanes a value is the same, of those that execute its definition together, or, of different
/// warps, in the same round of every loop around it (Timofeev, "Scalarization across threads", 2016). From
/// least to most: what is the same for all that is known of a computation is as wide as the narrowest thing
/// that it depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Width {
    /// It differs, or may differ, from lane to lane: it is divergent.
    Thread,
    /// The lanes of a warp.
    Warp,
    /// Those of a work-group, whose warps all run on one core.
    Group,
    /// Those of the whole grid.
    #[default]
    Grid,
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Width::Thread => "divergent",
            Width::Warp => "uniform in warp",
            Width::Group => "uniform in group",
            Width::Grid => "uniform in grid",
        })
    }
}

/// A width, and why it is no wider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) width: Width,
    /// None if nothing limits it.
    pub(super) cause: Option<Cause>,
}

impl Limit {
    pub(super) fn new(width: Width, cause: Cause) -> Limit {
        Limit { width, cause: Some(cause).filter(|_| width < Width::Grid) }
    }

    pub(super) fn divergent(cause: Cause) -> Limit {
        Limit::new(Width::Thread, cause)
    }

    /// The narrower one.
    pub(super) fn and(self, other: Limit) -> Limit {
        if other.width < self.width { other } else { self }
    }

    /// At least as wide as a warp.
    pub(super) fn widened(self, cause: Cause) -> Limit {
        if self.width < Width::Warp { Limit::new(Width::Warp, cause) } else { self }
    }

    /// Why it is divergent; none if it is not.
    pub(super) fn divergence(self) -> Option<Cause> {
        self.cause.filter(|_| self.width == Width::Thread)
    }
}

/// How the width of an intrinsic's result comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is this one, whatever the operands are.
    Fixed(Width),
    /// All lanes that execute it together get the same, made of the operands of all of them: it is as wide
    /// as these are, a warp at least.
    Shared,
}

/// The rule for an intrinsic.
pub(crate) fn rule(intrinsic: Intrinsic) -> Rule {
    match intrinsic {
        Intrinsic::LaneId
        | Intrinsic::GlobalId(_)
        | Intrinsic::LocalId(_)
        | Intrinsic::LocalIndex
        | Intrinsic::Shuffle
        | Intrinsic::FrameEnd
        | Intrinsic::ReturnAddress => Rule::Fixed(Width::Thread),
        // Ballots also say which lanes execute them.
        Intrinsic::WarpId | Intrinsic::Ballot | Intrinsic::BallotHigh => Rule::Fixed(Width::Warp),
        // Groups at the grid's end are smaller.
        Intrinsic::CoreId
        | Intrinsic::GroupId(Dimension::X | Dimension::Y | Dimension::Z)
        | Intrinsic::GroupMemory
        | Intrinsic::LocalSize(_) => Rule::Fixed(Width::Group),
        Intrinsic::LaneCount | Intrinsic::Undef | Intrinsic::Barrier => Rule::Fixed(Width::Grid),
        Intrinsic::AssumeUniform | Intrinsic::Any | Intrinsic::All | Intrinsic::OfSomeLane => {
            Rule::Shared
        }
    }
}
