//! Does many rounds at once, as if every warp that is ready had issued one instruction in each.
//!
//! Most instructions affect only their own warp and cannot trap (see `Slot::quiet`): it makes no difference
//! when they are executed. So each warp has a *clock*, the rounds that it has done, and a number of rounds
//! for which it surely *stays quiet*, because only quiet instructions follow in a row. The warp whose quiet
//! rounds end first runs alone until the quiet rounds of another warp end. So instructions that are not quiet
//! are executed in their order, and warps that are behind have only quiet instructions to catch up with. If
//! only one warp is ready it runs to the end of the rounds. A warp that has long had nothing to do with the others
//! may go further, and is taken back if that was too far (see [`optimistic`](super::optimistic)).
//!
//! A warp that traps or asks something of the core ends this: the other warps catch up to that round, no
//! further, and the rest of the round is done warp by warp.

use std::mem;

use super::{Lanes, reborrow};
use crate::exec::{End, Event};
use crate::observe::Observer;
use crate::trap::Trap;
use crate::warp::{Status, Warp};
use crate::word::Word;

/// Rounds after which a console that may interrupt a warp is asked again.
const CONSOLE_ROUNDS: u64 = 1024;

/// A warp that is ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) number: usize,
    /// Instructions that the warp had issued before the first of the rounds.
    before: u64,
    /// The number of rounds for which it surely stays quiet, including those that it has done.
    quiet: u64,
    /// The number of rounds after which it was last seen to have something to do with others.
    pub(super) private_since: u64,
    /// Whether the warp may have gone too far.
    pub(super) optimistic: bool,
}

/// A warp's turn in a round. Turns are ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    round: u64,
    number: usize,
}

impl Turn {
    /// How many rounds a warp does before this turn.
    pub(super) fn rounds_before(self, number: usize) -> u64 {
        self.round + u64::from(number < self.number)
    }
}

impl Clock {
    /// The first turn in which the warp may do something that other warps notice.
    fn noticed(&self) -> Turn {
        Turn { round: self.quiet, number: self.number }
    }
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Does rounds, at least one, until `until` instructions were issued since reset or a warp asks something of
    /// the core or traps. Returns whether any warp ran.
    pub(super) fn rounds(
        &mut self,
        until: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<bool, Box<Trap>> {
        let ready = self.warps.iter().filter(|warp| warp.status == Status::Ready).count() as u64;
        let fuel = self.fuel.map_or(u64::MAX, |limit| limit - self.issued);
        let left = fuel.min(until.saturating_sub(self.issued));
        let rounds = left.checked_div(ready).unwrap_or(0).min(self.rounds_unasked());
        if rounds < 2 || (ready > 1 && self.goes_precisely(observer.is_some())) {
            return self.round(1, reborrow(&mut observer));
        }
        self.rounds_at_once(rounds, observer).map(|()| true)
    }

    /// How many rounds may pass before the console must be asked for input.
    fn rounds_unasked(&self) -> u64 {
        if self.may_be_interrupted(0) { CONSOLE_ROUNDS } else { u64::MAX }
    }

    /// Does at most `rounds` rounds, for which both the fuel and the core's turn must suffice.
    fn rounds_at_once(
        &mut self,
        rounds: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        // Warps are saved and restored.
        self.settle_all();
        // Present input interrupts before the first instruction; an instruction that enables interrupts ends
        // the rounds.
        self.poll_console(0);
        let mut clocks = mem::take(&mut self.clocks);
        clocks.clear();
        let precisely = self.goes_precisely(observer.is_some());
        for (number, warp) in self.warps.iter().enumerate() {
            if warp.status == Status::Ready {
                let quiet = if precisely { 0 } else { self.quiet(warp) };
                let before = warp.stats.steps;
                clocks.push(Clock { number, before, quiet, private_since: 0, optimistic: false });
            }
        }
        let end = Turn { round: rounds, number: 0 };
        let mut stopped = None;
        loop {
            // The warp that may be noticed first, its turn, and the turn up to which no other warp may be.
            let (mut first, mut turn, mut alone) = (0, end, end);
            for (place, clock) in clocks.iter().enumerate() {
                let noticed = clock.noticed();
                if noticed < turn {
                    (first, alone, turn) = (place, turn, noticed);
                } else if noticed < alone {
                    alone = noticed;
                }
            }
            if turn == end {
                break;
            }
            // Before this turn nobody has stopped, so the warp has not gone too far.
            clocks[first].optimistic = false;
            let clock = clocks[first];
            let ran = !precisely && self.runs_ahead(&mut clocks, first, [alone, end]);
            if !ran && let Some(why) = self.go_on(clock, alone, reborrow(&mut observer)) {
                stopped = Some((clock, why));
                break;
            }
            let warp = &self.warps[clock.number];
            let quiet = if precisely { 0 } else { self.quiet(warp) };
            clocks[first].quiet = self.done(clock) + quiet;
        }
        let outcome = match stopped {
            None => {
                self.catch_up(&clocks, end);
                self.rounds += rounds;
                Ok(())
            }
            Some((clock, why)) => self.finish(&clocks, clock, why, observer),
        };
        self.clocks = clocks;
        outcome
    }

    /// The number of instructions for which a warp surely stays quiet.
    fn quiet(&self, warp: &Warp<W, C>) -> u64 {
        self.code.of(warp.supervisor).quiet(warp.pc)
    }

    /// Lets the warp that may be noticed first run up to turn `end`. Returns why it stopped before, if it did.
    fn go_on(
        &mut self,
        clock: Clock,
        end: Turn,
        mut observer: Option<&mut dyn Observer>,
    ) -> Option<End<W>> {
        let number = clock.number;
        let until = end.rounds_before(number);
        loop {
            let left = until - self.done(clock);
            if left == 0 {
                return None;
            }
            match self.issue(number, left, reborrow(&mut observer)) {
                End::Budget => {}
                End::Event { event: Event::CodeChanged, next } if !self.changes_code() => {
                    self.system.changed.clear();
                    self.warps[number].pc = next;
                }
                why => return Some(why),
            }
        }
    }

    /// The rounds that a warp has done.
    pub(super) fn done(&self, clock: Clock) -> u64 {
        self.warps[clock.number].stats.steps - clock.before
    }

    /// Lets the warps do all turns before `turn`, in which they stay quiet.
    fn catch_up(&mut self, clocks: &[Clock], turn: Turn) {
        for &clock in clocks {
            self.issue_quietly(clock, turn.rounds_before(clock.number));
        }
    }

    /// Lets a warp do its rounds up to `rounds`, in which it stays quiet.
    pub(super) fn issue_quietly(&mut self, clock: Clock, rounds: u64) {
        let left = rounds.saturating_sub(self.done(clock));
        if left > 0 {
            let end = self.issue(clock.number, left, None);
            debug_assert!(matches!(end, End::Budget), "{end:?} where all is quiet");
        }
    }

    /// Completes the round in which the warp with this clock has stopped.
    fn finish(
        &mut self,
        clocks: &[Clock],
        clock: Clock,
        why: End<W>,
        observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        let was_issued = matches!(why, End::Event { .. });
        let round = self.done(clock) - u64::from(was_issued);
        let turn = Turn { round, number: clock.number };
        self.take_back(clocks, turn);
        self.catch_up(clocks, turn);
        let lower = clocks.iter().take_while(|other| other.number < clock.number).count();
        let before = self.issued - lower as u64 - u64::from(was_issued);
        let outcome = self.end_round(clock, round, why, observer);
        self.rounds += round + u64::from(self.issued > before);
        outcome
    }

    /// Handles the reason why a warp has stopped in a round, then lets the warps after it do the round.
    fn end_round(
        &mut self,
        clock: Clock,
        round: u64,
        why: End<W>,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        self.handle_end(clock.number, why)?;
        let is_done = self.done(clock) > round;
        self.rest_of_round(clock.number + usize::from(is_done), 1, reborrow(&mut observer))?;
        Ok(())
    }
}
