//! Known widths of values, each with its cause.

use super::cause::Cause;
use crate::width::Width;

/// A width, and the cause why it is not wider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) width: Width,
    /// None if the width is the widest.
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

    /// Widens it to at least a warp.
    pub(super) fn widened(self, cause: Cause) -> Limit {
        if self.width < Width::Warp { Limit::new(Width::Warp, cause) } else { self }
    }

    /// The cause of divergence; none if the value is not divergent.
    pub(super) fn divergence(self) -> Option<Cause> {
        self.cause.filter(|_| self.width == Width::Thread)
    }
}
