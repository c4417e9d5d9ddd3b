//! The warps that are lent to host code: what it keeps of each from one visit to the next.

use harp_emu::{Frame, HostEnd, RegisterWords};

use crate::frame::{Leave, NOWHERE, RawFrame};
use crate::rows::{Held, are_rows, read_firsts};
use crate::rules::Level;
use crate::shape::Shape;
use crate::translated::Translated;

/// What is kept of a warp.
///
/// A warp may have left for one instruction, which writes no register of which host code knows anything behind it. If it
/// has issued that and nothing else, all is as expected where it goes on.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) raw: Box<RawFrame>,
    held: Held,
    /// The number of the region in which it was.
    number: usize,
    /// The exit of that region at which `held` knows all rows.
    exit: Option<u64>,
    /// The instructions that it will have issued.
    steps: u64,
    /// Where it will be.
    pc: u64,
    /// Whether it is at a barrier: then nothing else of it changes.
    waits: bool,
}

impl Lent {
    /// A warp that was not here yet.
    pub(crate) fn nowhere() -> Lent {
        Lent {
            raw: Box::new(RawFrame::new()),
            held: Held::nothing(),
            number: 0,
            exit: None,
            steps: 0,
            pc: NOWHERE,
            waits: false,
        }
    }

    /// Regions get other numbers. What is not written yet stays.
    pub(crate) fn forget_region(&mut self) {
        (self.pc, self.exit) = (NOWHERE, None);
    }

    /// Writes the registers that are not written yet.
    pub(crate) fn settle(&mut self, registers: &mut RegisterWords<'_>, shape: &Shape) {
        self.held.settle(registers, u64::MAX, &self.raw.scalars, shape);
    }

    /// The barrier at which it is.
    pub(crate) fn barrier(&self) -> HostEnd {
        let ([id, warps, insts], next) = (self.raw.barrier, self.raw.next);
        HostEnd::Barrier { id, warps, insts, next }
    }

    /// Takes the state of a warp that comes to an entry of a region. Returns whether it is as that expects.
    pub(crate) fn arrive(
        &mut self,
        translated: &Translated,
        [number, entry]: [usize; 2],
        shape: &Shape,
        frame: &mut Frame<'_>,
    ) -> bool {
        let expected = &translated.rows.entries[entry];
        let is_untouched = self.steps == frame.stats.steps && self.pc == *frame.pc;
        // At its head, a region assumes more than what holds behind the instruction before.
        let goes_on = is_untouched && self.number == number && entry > 0;
        let (raw, registers) = (&mut *self.raw, &mut frame.registers);
        if goes_on && self.waits {
            self.held.settle(registers, expected.vectors, &raw.scalars, shape);
            raw.go_on(frame);
            return true;
        }
        self.held.settle(registers, u64::MAX, &raw.scalars, shape);
        if !is_untouched {
            self.held.forget();
        }
        (self.number, self.exit) = (number, None);
        read_firsts(registers, &expected.rows, &mut raw.scalars, shape);
        raw.take(frame);
        goes_on
            || stands(raw, translated.region.levels(entry), shape)
                && are_rows(&frame.registers, &expected.rows, &raw.scalars, shape)
    }

    /// Gives the warp's state back. `None` if there is no such exit.
    pub(crate) fn leave(
        &mut self,
        translated: &Translated,
        why: Leave,
        shape: &Shape,
        frame: &mut Frame<'_>,
    ) -> Option<()> {
        let raw = &mut *self.raw;
        let mut foreign = 0;
        if why != Leave::Entry {
            let exit = translated.rows.exits.get(raw.exit as usize)?;
            let is_another = self.exit != Some(raw.exit);
            self.held.take(exit, translated.rows.stored, is_another, &mut raw.scalars);
            (self.exit, foreign) = (Some(raw.exit), exit.foreign);
        }
        self.waits = why == Leave::Barrier;
        if !self.waits {
            self.held.settle(&mut frame.registers, u64::MAX, &raw.scalars, shape);
            self.held.forget_some(foreign);
        }
        raw.give(frame);
        (self.steps, self.pc) = match why {
            Leave::Foreign | Leave::Barrier => (frame.stats.steps + 1, raw.next),
            _ => (frame.stats.steps, NOWHERE),
        };
        Some(())
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
