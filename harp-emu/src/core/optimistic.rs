//! Lets a warp run ahead of the others, and takes it back if that was too far.
//!
//! In a loop that only computes, a warp has a branch every few instructions. A branch may trap, so it is not quiet, and
//! warps in such loops would alternate at each. But it is *private*: if it does not trap it affects only its warp. So
//! a warp that has done many private instructions in a row saves its state and does more of them, whatever the others
//! do meanwhile, as a logical process in Time Warp does (Jefferson 1985, Virtual Time). Only what stops the rounds can
//! show how far the warp has come: then its state is restored and it does again what it should have done. An
//! instruction that is not private is never done too early, so nothing but the warp has to be restored.
//!
//! A warp runs ahead at most as far as it has come since it last had something to do with the others, so that
//! what is done in vain is never more than what was needed.

use super::Lanes;
use super::ahead::{Clock, Turn};
use crate::exec::End;
use crate::stats::WarpStats;
use crate::warp::{FILE, Reg, Warp};
use crate::word::Word;

/// A warp must have done this many private instructions in a row before saving its state is worth it.
const STREAK: u64 = 64;

/// A warp runs at most this many rounds ahead.
const FARTHEST: u64 = 1 << 12;

/// What private instructions change in a warp.
pub(super) struct Checkpoint<W, const C: usize> {
    regs: [Reg<W, C>; FILE],
    preds: [u64; 2 * FILE],
    pc: u64,
    active: u64,
    active_count: u8,
    stats: WarpStats,
}

impl<W: Word, const C: usize> Checkpoint<W, C> {
    fn of(warp: &Warp<W, C>) -> Self {
        let &Warp { regs, preds, pc, active, active_count, stats, .. } = warp;
        Checkpoint { regs, preds, pc, active, active_count, stats }
    }

    fn restore(&self, warp: &mut Warp<W, C>) {
        let &Checkpoint { regs, preds, pc, active, active_count, stats } = self;
        (warp.regs, warp.preds, warp.stats) = (regs, preds, stats);
        (warp.pc, warp.active, warp.active_count) = (pc, active, active_count);
    }
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Lets the warp at `place` run ahead, if it is worth it. Without, it would be alone until the first of the turns;
    /// the second ends the rounds. Returns whether it has come any further.
    pub(super) fn runs_ahead(
        &mut self,
        clocks: &mut [Clock],
        place: usize,
        [alone, end]: [Turn; 2],
    ) -> bool {
        let clock = clocks[place];
        let done = self.done(clock);
        let streak = done - clock.private_since;
        if streak < STREAK || alone.rounds_before(clock.number) - done >= STREAK {
            return false;
        }
        let until = end.rounds_before(clock.number).min(done + streak.min(FARTHEST));
        if self.private(clock.number) == 0 || !self.save(clock.number, place) {
            clocks[place].private_since = done;
            return false;
        }
        self.run_privately(clock, place, until);
        let reached = self.done(clock);
        clocks[place].optimistic = reached > done;
        if reached < until {
            clocks[place].private_since = reached;
        }
        reached > done
    }

    /// Lets a warp do private instructions up to round `until`.
    fn run_privately(&mut self, clock: Clock, place: usize, until: u64) {
        loop {
            let left = until - self.done(clock);
            let budget = self.private(clock.number).min(left);
            if budget == 0 {
                return;
            }
            let end = self.issue(clock.number, budget, None);
            if !matches!(end, End::Budget) {
                // An instruction traps, whose turn has not come.
                let was_issued = matches!(end, End::Event { .. });
                let before = self.done(clock) - u64::from(was_issued);
                self.restore(clock.number, place);
                return self.issue_quietly(clock, before);
            }
        }
    }

    /// How many instructions of a warp from its next one on are private.
    fn private(&self, number: usize) -> u64 {
        let warp = &self.warps[number];
        self.code.of(warp.supervisor).private(warp.pc)
    }

    /// Saves the state of a warp at this place. Returns whether there was memory for it.
    fn save(&mut self, number: usize, place: usize) -> bool {
        let warp = &self.warps[number];
        let count = place + 1;
        if self.checkpoints.len() < count {
            let more = count - self.checkpoints.len();
            let bytes = size_of::<Checkpoint<W, C>>() as u64 * count as u64;
            if self.system.state_left < bytes || self.checkpoints.try_reserve(more).is_err() {
                return false;
            }
            self.checkpoints.resize_with(count, || Checkpoint::of(warp));
        }
        self.checkpoints[place] = Checkpoint::of(warp);
        true
    }

    /// Restores the state of a warp that was saved at this place.
    fn restore(&mut self, number: usize, place: usize) {
        let warp = &mut self.warps[number];
        let too_many = warp.stats.steps;
        self.checkpoints[place].restore(warp);
        self.issued -= too_many - warp.stats.steps;
    }

    /// Takes all warps that have gone further than they come before `turn` back to it.
    pub(super) fn take_back(&mut self, clocks: &[Clock], turn: Turn) {
        for (place, &clock) in clocks.iter().enumerate() {
            if clock.optimistic && self.done(clock) > turn.rounds_before(clock.number) {
                self.restore(clock.number, place);
            }
        }
    }
}
