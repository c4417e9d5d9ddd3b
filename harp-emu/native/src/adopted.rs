//! Regions that a core uses, what it sees of them, and whether they are worth it.

use std::mem::take;
use std::sync::Arc;

use harp_emu::{Frame, MemoryWords, RegisterWords};

use crate::frame::Leave;
use crate::lent::Lent;
use crate::observe::met;
use crate::record::Pace;
use crate::region::Met;
use crate::translated::{Tally, Translated};

/// The place of an instruction in a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// How many instructions there are from here to the end of the block.
    pub(crate) left: u64,
    /// For warps of which not all lanes are active, and for others.
    pub(crate) entries: [Option<Entrance>; 2],
}

/// An entry of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrance {
    /// The region's number.
    pub(crate) number: usize,
    /// The entry's.
    pub(crate) entry: usize,
}

/// What host code works on: registers, predicates, memory.
type Pieces<'a, 'b> = (&'a mut RegisterWords<'b>, &'a mut [u64; 64], MemoryWords<'b>);

/// A region that a core uses, and what it has seen of it.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(crate) translated: Arc<Translated>,
    /// What is not [told](Adopted::tell) yet.
    tally: Tally,
    /// After so many visits more it is judged.
    trial: u64,
    /// The visits from the last time to then. Each launch begins anew.
    trial_length: u64,
    /// What warps were like that came to an entry that did not expect them.
    met: Met,
    /// So many more of them are looked at.
    looks: u32,
}

/// Why a region is not worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What it assumes often does not hold.
    Fails,
    /// Warps often are not as its entries expect.
    IsUnexpected,
    /// It often leaves for accesses, which may be of words that are not aligned.
    HasOddWords,
    /// Its visits are short.
    IsShort,
    /// What was seen when it was formed is a part of what warps do by now.
    IsPart,
}

impl Adopted {
    pub(crate) fn new(translated: Arc<Translated>) -> Adopted {
        let (tally, met) = Default::default();
        let (trial, trial_length) = (FIRST_TRIAL, FIRST_TRIAL);
        Adopted { translated, tally, trial, trial_length, met, looks: LOOKS }
    }

    /// Runs the region on a warp, if that is as the entry expects at which it stands. Returns why it was left and how many
    /// instructions were issued; `None` if it cannot run. Where there are places at which it can be left, the next is `turn`.
    #[inline(always)]
    pub(crate) fn visit(
        &self,
        lent: &mut Lent,
        turn: &mut u64,
        is_as_expected: bool,
        (registers, predicates, memory): Pieces<'_, '_>,
    ) -> Option<(Leave, u64)> {
        let translated = &*self.translated;
        if translated.places > 0 {
            lent.raw.leaving = *turn % (translated.places + 1);
            *turn += 1;
        }
        let before = lent.raw.budget;
        let is_called = !is_as_expected
            || translated.function.call(&mut lent.raw, registers, predicates, memory);
        let why = is_called.then(|| lent.leave(&translated.rows, is_as_expected)).flatten()?;
        Some((why, before - lent.raw.budget))
    }

    /// Counts a visit in which that many instructions were issued, and which ended where no region has an entry or not.
    /// Returns whether it is to be judged.
    pub(crate) fn count(&mut self, why: Leave, issued: u64, is_nowhere: bool) -> bool {
        self.tally.left.count(why);
        self.tally.issued += issued;
        self.tally.ended += u64::from(is_nowhere);
        self.trial -= 1;
        self.trial == 0
    }

    /// Looks at a warp that is not as that entry expects.
    pub(crate) fn look_at(&mut self, entry: usize, frame: &Frame<'_>) {
        if self.looks == 0 {
            return;
        }
        self.looks -= 1;
        let Translated { region, rows, rules, .. } = &*self.translated;
        let key = region.entries[entry];
        let expected = &region.blocks[&key].state;
        self.met.add(key, met(frame, rules.shape, &rows.entries[entry], expected));
    }

    /// What warps were like that were not as expected.
    pub(crate) fn take_met(&mut self) -> Met {
        take(&mut self.met)
    }

    /// Adds what was seen of the region to what others have seen, and to what is `told`. Returns all that was seen of it.
    pub(crate) fn tell(&mut self, told: &mut Tally) -> Tally {
        let tally = take(&mut self.tally);
        self.begin_trial(FIRST_TRIAL);
        told.add(tally);
        self.translated.add(tally)
    }

    fn begin_trial(&mut self, visits: u64) {
        (self.trial, self.trial_length) = (visits, visits);
    }

    /// Judges it by what was seen, which is `told`, and begins the next trial. Without a pace all is worth it.
    pub(crate) fn judge(&mut self, pace: Option<Pace>, told: &mut Tally) -> Option<Fault> {
        let next = (2 * self.trial_length).min(LONGEST_TRIAL);
        let Tally { left, issued, ended } = self.tell(told);
        self.begin_trial(next);
        let pace = pace?;
        let (visits, failed) = (left.sum(), left.guard + left.entry);
        // One to a barrier, from which the warp goes on with its state in place, costs half as much as others.
        let halves = 2 * visits - left.barrier;
        // What fails after long is worth it all the same.
        if failed * 8 > visits && issued < WHOLE_ISSUED * failed {
            let is_guarded = left.guard > left.entry;
            return Some(if is_guarded { Fault::Fails } else { Fault::IsUnexpected });
        }
        let is_odd = left.access * 8 > visits && issued < WHOLE_ISSUED * left.access;
        if is_odd && !self.translated.rules.odd_words {
            return Some(Fault::HasOddWords);
        }
        if 2 * issued < pace.least_issued * halves {
            return Some(Fault::IsShort);
        }
        // Visits end soon where it does not go on.
        (2 * ended > visits && issued < WHOLE_ISSUED * visits).then_some(Fault::IsPart)
    }
}

/// A region is not known in part if it issues as many instructions in a visit, and does not fail if it does so before.
const WHOLE_ISSUED: u64 = 512;

/// Visits after which a region is judged for the first time in a launch, and from one time to the next at most.
const FIRST_TRIAL: u64 = 64;
const LONGEST_TRIAL: u64 = 4096;

/// How often a core looks at warps that come to a region and are not as it expects.
const LOOKS: u32 = 64;
