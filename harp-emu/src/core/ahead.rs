//! Many rounds at once, as if every warp that is ready had issued one instruction in each.
//!
//! Most instructions concern nobody but their warp and cannot trap (see `Slot::quiet`): when they are
//! carried out makes no difference. So each warp has a *clock*, the rounds that it has done, and knows how
//! many rounds it surely *stays quiet*: none but quiet instructions stand there in a row. The warp whose
//! quiet rounds end first goes on as it likes until another's end. So whatever is no quiet
//! instruction is carried out in its order, and who is behind has nothing but quiet instructions to catch
//! up with. A warp that is alone goes on to the end.
//!
//! What a warp asks of the core, or that it traps, ends it: the others catch up with that round, no
//! further, and what is left of the round is done warp by warp.

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
    number: usize,
    /// What the warp had issued before the first of the rounds.
    before: u64,
    /// Rounds that it surely stays quiet, those that it has done included.
    quiet: u64,
}

/// A warp's turn in a round. Turns are ordered as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    number: usize,
}

impl Turn {
    /// How many rounds a warp does before this turn.
    fn rounds_before(self, number: usize) -> u64 {
        self.round + u64::from(number < self.number)
    }
}

impl Clock {
    /// The first turn in which the warp may do anything that others notice.
    fn noticed(&self) -> Turn {
        Turn { round: self.quiet, number: self.number }
    }
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Does rounds until `until` instructions were issued since reset, or something happens that not only one
    /// warp is concerned with, but at least one round. Whether any warp ran.
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

    /// How many rounds may pass until the console is asked for input.
    fn rounds_unasked(&self) -> u64 {
        if self.may_be_interrupted(0) { CONSOLE_ROUNDS } else { u64::MAX }
    }

    /// Does at most so many rounds, in which neither fuel nor turn end.
    fn rounds_at_once(
        &mut self,
        rounds: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        // Input that is there comes before the first instruction; that more can interrupt ends the rounds.
        self.poll_console(0);
        let mut clocks = mem::take(&mut self.clocks);
        clocks.clear();
        let precisely = self.goes_precisely(observer.is_some());
        for (number, warp) in self.warps.iter().enumerate() {
            if warp.status == Status::Ready {
                let quiet = if precisely { 0 } else { self.quiet(warp) };
                clocks.push(Clock { number, before: warp.stats.steps, quiet });
            }
        }
        let end = Turn { round: rounds, number: 0 };
        let mut stopped = None;
        loop {
            // Who may be noticed first, and up to when it is alone.
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
            let clock = clocks[first];
            if let Some(why) = self.go_on(clock, alone, reborrow(&mut observer)) {
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

    /// How many instructions a warp surely stays quiet for.
    fn quiet(&self, warp: &Warp<W, C>) -> u64 {
        self.code.of(warp.supervisor).quiet(warp.pc)
    }

    /// Lets the warp that is the first to be noticed go on up to turn `end`; why it stopped before.
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
            match self.issue_counted(number, left, reborrow(&mut observer)) {
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
    fn done(&self, clock: Clock) -> u64 {
        self.warps[clock.number].stats.steps - clock.before
    }

    /// Lets the warps do all turns before `turn`, which they do quietly.
    fn catch_up(&mut self, clocks: &[Clock], turn: Turn) {
        for &clock in clocks {
            self.issue_quietly(clock, turn.rounds_before(clock.number));
        }
    }

    /// Lets a warp do so many rounds, if it has not yet, in which it stays quiet.
    fn issue_quietly(&mut self, clock: Clock, rounds: u64) {
        let left = rounds.saturating_sub(self.done(clock));
        if left > 0 {
            let end = self.issue_counted(clock.number, left, None);
            debug_assert!(matches!(end, End::Budget), "{end:?} where all is quiet");
        }
    }

    /// The warp with this clock has stopped: does what is left of that round.
    fn finish(
        &mut self,
        clocks: &[Clock],
        clock: Clock,
        why: End<W>,
        observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        let was_issued = matches!(why, End::Event { .. });
        let round = self.done(clock) - u64::from(was_issued);
        self.catch_up(clocks, Turn { round, number: clock.number });
        let lower = clocks.iter().take_while(|other| other.number < clock.number).count();
        let before = self.issued - lower as u64 - u64::from(was_issued);
        let outcome = self.end_round(clock, round, why, observer);
        self.rounds += round + u64::from(self.issued > before);
        outcome
    }

    /// Handles why a warp has stopped in a round; then the warps after it do the round.
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
