//! Read access to the state of a machine that is not running.

use std::fmt;

use harp_isa::{Gpr, Pred};

use crate::stats::WarpStats;
use crate::warp::{Entry, Status, Warp};
use crate::word::Word;

/// The state of a warp with any word and number of lanes.
pub(crate) trait Inspect {
    fn state(&self) -> WarpState;
    fn saved(&self) -> Option<SavedState>;
    fn gpr(&self, reg: usize, lane: usize) -> Option<u64>;
    fn pred(&self, pred: usize) -> u64;
    fn stack(&self) -> &[Entry];
}

/// The state that each warp has once, not per lane.
#[derive(Clone, Copy)]
pub(crate) struct WarpState {
    pc: u64,
    active: u64,
    active_count: u8,
    is_supervisor: bool,
    interrupts_enabled: bool,
    status: WarpStatus,
    pub(crate) stats: WarpStats,
}

impl<W: Word, const C: usize> Inspect for Warp<W, C> {
    fn state(&self) -> WarpState {
        WarpState {
            pc: self.pc,
            active: self.active,
            active_count: self.active_count,
            is_supervisor: self.supervisor,
            interrupts_enabled: self.interrupts,
            status: match self.status {
                Status::Ready => WarpStatus::Ready,
                Status::Waiting { id, warps, .. } => {
                    WarpStatus::Waiting { barrier: id, wanted: warps }
                }
                Status::Stopped => WarpStatus::Stopped,
            },
            stats: self.stats,
        }
    }

    fn saved(&self) -> Option<SavedState> {
        let shadow = self.shadow.as_deref()?;
        Some(SavedState {
            gprs: shadow.regs.iter().map(|word| word.to_u64()).collect(),
            preds: shadow.preds,
            active: shadow.active,
            active_count: shadow.active_count,
            is_supervisor: shadow.supervisor,
            interrupts_enabled: shadow.interrupts,
            pc: shadow.pc,
        })
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
}

/// What a warp is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarpStatus {
    /// It runs.
    Ready,
    /// It waits at a barrier.
    Waiting {
        /// The barrier's number.
        barrier: u64,
        /// How many warps must wait there to release it.
        wanted: u64,
    },
    /// It has stopped and will not run again.
    Stopped,
}

/// An entry of a warp's divergence stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackEntry {
    /// The active lanes after the `join` that pops the entry.
    pub mask: u64,
    /// Where control continues after that `join`; `None`: at the next instruction.
    pub resume: Option<u64>,
    /// The address of the instruction behind the `split` that pushed the entry.
    pub behind: u64,
}

impl Entry {
    /// The entry, for users.
    pub(crate) fn view(&self) -> StackEntry {
        let Entry { mask, resume, behind } = *self;
        StackEntry { mask, resume, behind }
    }
}

/// The state that an interrupt has saved for `reti`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// The general registers of lane 0, 64 of them; those that the machine lacks are 0.
    pub gprs: Vec<u64>,
    /// The predicates of lane 0, predicate i in bit i.
    pub preds: u64,
    /// The active lanes.
    pub active: u64,
    /// The number of lanes that were last activated together.
    pub active_count: u8,
    /// Whether the warp was in supervisor mode.
    pub is_supervisor: bool,
    /// Whether interrupts were enabled.
    pub interrupts_enabled: bool,
    /// The address at which the warp goes on.
    pub pc: u64,
}

/// A read-only view of a warp that has been started.
#[derive(Clone, Copy)]
pub struct WarpView<'a> {
    state: WarpState,
    warp: &'a dyn Inspect,
}

impl<'a> WarpView<'a> {
    pub(crate) fn new(warp: &'a dyn Inspect) -> WarpView<'a> {
        WarpView { state: warp.state(), warp }
    }

    /// The address of the instruction that it issues next, or of the `bar` at which it waits.
    pub fn pc(&self) -> u64 {
        self.state.pc
    }

    /// The active lanes, lane 0 in the lowest bit.
    pub fn active(&self) -> u64 {
        self.state.active
    }

    /// The number of lanes that were last activated together.
    pub fn active_count(&self) -> u8 {
        self.state.active_count
    }

    /// Whether it is in supervisor mode.
    pub fn is_supervisor(&self) -> bool {
        self.state.is_supervisor
    }

    /// Whether interrupts are enabled.
    pub fn interrupts_enabled(&self) -> bool {
        self.state.interrupts_enabled
    }

    /// The state that the last interrupt has saved; `None` if there was none.
    pub fn saved(&self) -> Option<SavedState> {
        self.warp.saved()
    }

    /// Whether it runs.
    pub fn status(&self) -> WarpStatus {
        self.state.status
    }

    /// A general register of a lane, zero-extended. Registers and lanes that the machine lacks have an
    /// undefined value, or are `None`.
    pub fn gpr(&self, reg: Gpr, lane: u8) -> Option<u64> {
        self.warp.gpr(reg.index().into(), lane.into())
    }

    /// The lanes in which a predicate is true. Lanes that the machine lacks may be among them.
    pub fn pred(&self, pred: Pred) -> u64 {
        self.warp.pred(pred.index().into())
    }

    /// The divergence stack. The last entry is the one that the next `join` pops.
    pub fn stack(&self) -> impl DoubleEndedIterator<Item = StackEntry> + ExactSizeIterator + '_ {
        self.warp.stack().iter().map(Entry::view)
    }

    /// What the warp has cost so far.
    pub fn stats(&self) -> WarpStats {
        self.state.stats
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
