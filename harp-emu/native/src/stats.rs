//! What a tier has done, counted.

use std::time::Duration;

use crate::frame::Leave;

/// What a [`Native`](crate::Native) tier has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierStats {
    /// Regions that were translated.
    pub regions: usize,
    /// Regions for which the host's code generator has no code.
    pub untranslated: usize,
    /// Bytes of their host code.
    pub code_bytes: usize,
    /// The time that it took to translate them.
    pub time: Duration,
    /// The longest that one took.
    pub longest: Duration,
    /// Regions that were given up, because they were left too soon, or where warps went on, or what they assume does not hold.
    pub given_up: usize,
    /// How often warps entered.
    pub visits: u64,
    /// Of these, behind a barrier at which host code had left them, with their state in place.
    pub went_on: u64,
    /// Instructions that were issued in host code.
    pub issued: u64,
    /// How often warps left, by reason.
    pub left: LeaveCounts,
}

/// Why and how often warps left host code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaveCounts {
    /// The budget did not suffice for another block.
    pub budget: u64,
    /// The next instruction is one that the interpreter does.
    pub foreign: u64,
    /// The next instruction is a barrier at which the warp may have to wait.
    pub barrier: u64,
    /// An access outside of plain memory, or a misaligned one.
    pub access: u64,
    /// A division by zero, a divergent branch, a full or empty divergence stack.
    pub trap: u64,
    /// What was assumed did not hold.
    pub guard: u64,
    /// Control left the region.
    pub end: u64,
    /// The registers were not as the entry expects.
    pub entry: u64,
}

impl LeaveCounts {
    /// One more.
    #[inline]
    pub(crate) fn count(&mut self, why: Leave) {
        *match why {
            Leave::Budget => &mut self.budget,
            Leave::Foreign => &mut self.foreign,
            Leave::Barrier => &mut self.barrier,
            Leave::Access => &mut self.access,
            Leave::Trap => &mut self.trap,
            Leave::Guard => &mut self.guard,
            Leave::End => &mut self.end,
            Leave::Entry => &mut self.entry,
        } += 1;
    }

    pub(crate) fn sum(&self) -> u64 {
        let &LeaveCounts { budget, foreign, barrier, access, trap, guard, end, entry } = self;
        budget + foreign + barrier + access + trap + guard + end + entry
    }

    pub(crate) fn add(&mut self, more: LeaveCounts) {
        self.budget += more.budget;
        self.foreign += more.foreign;
        self.barrier += more.barrier;
        self.access += more.access;
        self.trap += more.trap;
        self.guard += more.guard;
        self.end += more.end;
        self.entry += more.entry;
    }
}
