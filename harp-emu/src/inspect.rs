//! Read access to the state of a machine that stands still.

use std::fmt;

use harp_isa::{Gpr, Pred};

use crate::stats::WarpStats;
use crate::warp::{Entry, Status, Warp};
use crate::word::Word;

/// The state of a warp, whatever its word and number of lanes.
pub(crate) trait Inspect {
    fn pc(&self) -> u64;
    fn active(&self) -> u64;
    fn active_count(&self) -> u8;
    fn is_supervisor(&self) -> bool;
    fn status(&self) -> WarpStatus;
    fn gpr(&self, reg: usize, lane: usize) -> Option<u64>;
    fn pred(&self, pred: usize) -> u64;
    fn stack(&self) -> &[Entry];
    fn stats(&self) -> WarpStats;
}

impl<W: Word, const C: usize> Inspect for Warp<W, C> {
    fn pc(&self) -> u64 {
        self.pc
    }

    fn active(&self) -> u64 {
        self.active
    }

    fn active_count(&self) -> u8 {
        self.active_count
    }

    fn is_supervisor(&self) -> bool {
        self.supervisor
    }

    fn status(&self) -> WarpStatus {
        match self.status {
            Status::Ready => WarpStatus::Ready,
            Status::Waiting { id, .. } => WarpStatus::Waiting { barrier: id },
            Status::Stopped => WarpStatus::Stopped,
        }
    }

    fn gpr(&self, reg: usize, lane: usize) -> Option<u64> {
        Some(self.regs.get(reg)?.as_flattened().get(lane)?.to_u64())
    }

    fn pred(&self, pred: usize) -> u64 {
        self.preds.get(pred).copied().unwrap_or(0)
    }

    fn stack(&self) -> &[Entry] {
        &self.stack
    }

    fn stats(&self) -> WarpStats {
        self.stats
    }
}

/// What a warp is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpStatus {
    /// It runs.
    Ready,
    /// It waits at a barrier.
    Waiting {
        /// The barrier's number.
        barrier: u64,
    },
    /// It has stopped and will not run again.
    Stopped,
}

/// An entry of a warp's divergence stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackEntry {
    /// The active lanes after the `join` that pops the entry.
    pub mask: u64,
    /// Where that `join` continues; `None`: after itself.
    pub resume: Option<u64>,
}

/// A look at a warp that has been started.
#[derive(Clone, Copy)]
pub struct WarpView<'a>(pub(crate) &'a dyn Inspect);

impl WarpView<'_> {
    /// The address of the instruction that it issues next, or of the `bar` at which it waits.
    pub fn pc(&self) -> u64 {
        self.0.pc()
    }

    /// The active lanes, lane 0 in the lowest bit.
    pub fn active(&self) -> u64 {
        self.0.active()
    }

    /// The number of lanes that were last activated together.
    pub fn active_count(&self) -> u8 {
        self.0.active_count()
    }

    /// Whether it is in supervisor mode.
    pub fn is_supervisor(&self) -> bool {
        self.0.is_supervisor()
    }

    /// Whether it runs.
    pub fn status(&self) -> WarpStatus {
        self.0.status()
    }

    /// A general register of a lane, zero-extended. Registers and lanes that the machine lacks hold
    /// anything; `None` beyond all machines.
    pub fn gpr(&self, reg: Gpr, lane: u8) -> Option<u64> {
        self.0.gpr(reg.index().into(), lane.into())
    }

    /// The lanes in which a predicate is true. Lanes that the machine lacks may be among them.
    pub fn pred(&self, pred: Pred) -> u64 {
        self.0.pred(pred.index().into())
    }

    /// The divergence stack, the entry that the next `join` pops last.
    pub fn stack(&self) -> impl ExactSizeIterator<Item = StackEntry> + '_ {
        self.0.stack().iter().map(|&Entry { mask, resume }| StackEntry { mask, resume })
    }

    /// What the warp has cost so far.
    pub fn stats(&self) -> WarpStats {
        self.0.stats()
    }
}

impl fmt::Debug for WarpView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WarpView")
            .field("pc", &self.pc())
            .field("active", &self.active())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
