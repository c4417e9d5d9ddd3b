//! The warps that are lent to host code: what it keeps of each from one visit to the next.

use harp_emu::{BarrierRule, Frame, HostEnd, Resume};

use crate::frame::{Leave, NOWHERE, RawFrame};
use crate::rows::{Held, Rows, are_rows, read_firsts};
use crate::shape::Shape;
use crate::state::Level;
use crate::translated::Translated;

/// What is kept of a warp.
///
/// A warp may have left for one instruction, which writes no register of which host code knows anything behind it. If it
/// has issued that and nothing else, all is as expected where it goes on.
#[derive(Debug)]
pub(crate) struct Lent {
    /// Not behind a pointer: allocations of this size are whole pages apart, and all frames would share the same few lines of
    /// the host's first cache.
    pub(crate) raw: RawFrame,
    held: Held,
    /// Why it was left, as long as its state is not given back.
    left: Option<Leave>,
    /// The number of the region in which it was; of none if regions have other numbers now.
    number: Option<usize>,
    /// The exit of that region at which `held` knows all rows.
    exit: Option<u64>,
    /// The registers that the instruction writes for which it was left, as bits.
    foreign: u64,
    /// The instructions that it will have issued.
    steps: u64,
    /// Where it will be.
    pc: u64,
}

impl Lent {
    /// A warp that was not here yet.
    pub(crate) fn nowhere(barriers: BarrierRule) -> Lent {
        Lent {
            raw: RawFrame::new(barriers),
            held: Held::nothing(),
            left: None,
            number: None,
            exit: None,
            foreign: 0,
            steps: 0,
            pc: NOWHERE,
        }
    }

    /// Another warp follows.
    pub(crate) fn forget(&mut self) {
        self.forget_region();
        self.held.begin();
        (self.left, self.pc) = (None, NOWHERE);
    }

    /// Regions get other numbers. What is not given back yet stays.
    pub(crate) fn forget_region(&mut self) {
        (self.number, self.exit) = (None, None);
    }

    /// The barrier at which it is.
    pub(crate) fn barrier(&self) -> HostEnd {
        // No two neighbours of the frame follow each other in this: read as one, they would wait for what was just written.
        let ([id, warps, insts], next) = (self.raw.barrier, self.raw.next);
        HostEnd::Barrier { id, insts, next, warps }
    }

    /// Takes the state of a warp that comes to an entry of a region. Returns whether it is as that expects.
    pub(crate) fn arrive(
        &mut self,
        translated: &Translated,
        [number, entry]: [usize; 2],
        shape: &Shape,
        frame: &Frame<'_>,
    ) -> bool {
        let expected = &translated.rows.entries[entry];
        let is_untouched = self.steps == frame.stats.steps && self.pc == *frame.pc;
        // At its head, a region assumes more than what holds behind the instruction before.
        let goes_on = is_untouched && self.number == Some(number) && entry > 0;
        let raw = &mut self.raw;
        if !is_untouched {
            self.held.forget();
        }
        (self.number, self.exit) = (Some(number), None);
        // A register may be a row in the lanes that read it only, and hold anything in the others, lane 0 included. Where the
        // warp goes on, `raw` has lane 0 of each row since it was found to be one.
        let unknown = if goes_on { self.foreign } else { u64::MAX };
        read_firsts(&frame.registers, unknown, expected, *frame.active, &mut raw.scalars, shape);
        raw.begin(entry, *frame.pc, frame.plain_stores_from, frame.budget);
        raw.take(frame);
        goes_on
            || stands(raw, translated.region.levels(entry), shape)
                && are_rows(&frame.registers, expected, *frame.active, &raw.scalars, shape)
    }

    /// The region in which it waited at the barrier before `pc`.
    #[inline]
    pub(crate) fn waited_before(&self, pc: u64) -> Option<usize> {
        self.number.filter(|_| self.left == Some(Leave::Barrier) && self.raw.next == pc)
    }

    /// Prepares a warp that waited at a barrier for the way behind it, in the same region. Returns whether that goes on
    /// there.
    #[inline(always)]
    pub(crate) fn go_on(&mut self, rows: &Rows, shape: &Shape, warp: &mut Resume<'_>) -> bool {
        let raw = &mut self.raw;
        let exit = rows.exits.get(raw.exit as usize);
        let Some(number) = exit.and_then(|exit| exit.behind) else { return false };
        let Some(entry) = rows.entries.get(number) else { return false };
        self.held.settle(&mut warp.registers, entry.vectors, &raw.scalars, shape);
        raw.begin(number, warp.pc, warp.plain_stores_from, warp.budget);
        true
    }

    /// The warp has left the region, or was not as its entry expects. Returns why; `None` if there is no such exit.
    #[inline(always)]
    pub(crate) fn leave(&mut self, rows: &Rows, is_as_expected: bool) -> Option<Leave> {
        let raw = &mut self.raw;
        let why = match is_as_expected {
            true => *Leave::ALL.get(raw.leave as usize)?,
            false => Leave::Entry,
        };
        self.foreign = 0;
        // Host code, too, may find that a warp is not as expected. Then it has done nothing.
        if why != Leave::Entry {
            let exit = rows.exits.get(raw.exit as usize)?;
            let is_another = self.exit != Some(raw.exit);
            self.held.take(exit, rows.stored, is_another, &mut raw.scalars);
            (self.exit, self.foreign) = (Some(raw.exit), exit.foreign);
        }
        self.left = Some(why);
        Some(why)
    }

    /// Whether it was not as an entry expects.
    pub(crate) fn is_refused(&self) -> bool {
        self.left == Some(Leave::Entry)
    }

    /// Gives the warp's state back, apart from pc, budget and steps, unless it is already.
    pub(crate) fn settle(&mut self, shape: &Shape, frame: &mut Frame<'_>) {
        let Some(why) = self.left.take() else { return };
        let raw = &self.raw;
        self.held.settle(&mut frame.registers, u64::MAX, &raw.scalars, shape);
        self.held.forget_some(self.foreign);
        raw.give(frame);
        (self.steps, self.pc) = match why {
            // The instruction is still to be issued.
            Leave::Foreign => (frame.stats.steps + 1, raw.next),
            Leave::Barrier => (frame.stats.steps, raw.next),
            _ => (frame.stats.steps, NOWHERE),
        };
    }
}

/// Whether the topmost entries of the divergence stack are those of these levels.
fn stands(raw: &RawFrame, levels: &[Level], shape: &Shape) -> bool {
    let mut entries = raw.top().iter().rev().peekable();
    levels.iter().rev().all(|level| {
        let Some(top) = entries.next().filter(|entry| entry.behind == level.behind) else {
            return false;
        };
        let lowest = match top.resume == NOWHERE {
            true => Some(top),
            false => {
                entries.next_if(|entry| entry.behind == level.behind && entry.resume == NOWHERE)
            }
        };
        lowest.is_some_and(|entry| {
            level.was_full.is_none_or(|was_full| (entry.mask == shape.full()) == was_full)
        })
    })
}
