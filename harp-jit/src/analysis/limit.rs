//! How wide values are known to be, and why no wider.

use super::cause::Cause;
use crate::width::Width;

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
