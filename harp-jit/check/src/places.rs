//! Where values are.
//!
//! A *place* is a general register, a predicate, or a word of the private part of the frame.

use std::ops::Range;

use harp_isa::{ArchId, Gpr, Operand, Pred};

use crate::record::{Entry, Holder};

/// A register or a word of the frame, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place(u32);

/// The numbers of places: registers, words of the frame, and places for what is known besides.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    arch: ArchId,
    /// Words of the frame, those last that stores through pointers may change: the offset of the first from the stack
    /// pointer at the entry, and their places.
    slots: Vec<(i64, Range<u32>)>,
}

/// The most results that are remembered at a time, and from block to block.
const REMEMBERED: u32 = 8;
const AVAILABLE: u32 = 16;

/// The places of registers, which come first: general ones and predicates take turns.
fn registers(arch: ArchId) -> u32 {
    2 * u32::from(arch.all_gprs().max(arch.all_preds()))
}

fn word(arch: ArchId) -> i64 {
    arch.word().bytes().into()
}

impl Places {
    pub(crate) fn new(entry: &Entry, arch: ArchId) -> Places {
        let mut next = registers(arch);
        let part = |range: &Range<i64>| {
            let first = next;
            next += (range.end.saturating_sub(range.start).max(0) / word(arch)) as u32;
            (range.start, first..next)
        };
        let slots = entry.private.iter().chain([&entry.scratch]).map(part).collect();
        Places { arch, slots }
    }

    pub(crate) fn gpr(reg: Gpr) -> Place {
        Place(2 * u32::from(reg.index()))
    }

    pub(crate) fn pred(reg: Pred) -> Place {
        Place(2 * u32::from(reg.index()) + 1)
    }

    /// The place that an operand names, if it is a register.
    pub(crate) fn operand(operand: Operand) -> Option<Place> {
        match operand {
            Operand::Gpr(reg) => Some(Places::gpr(reg)),
            Operand::Pred(reg) => Some(Places::pred(reg)),
            Operand::Imm(_) => None,
        }
    }

    /// The places that the checker follows.
    pub(crate) fn of(&self, holders: &[Holder]) -> impl Iterator<Item = Place> {
        holders.iter().filter_map(|holder| match *holder {
            Holder::Gpr(reg) => Some(Places::gpr(reg)),
            Holder::Pred(reg) => Some(Places::pred(reg)),
            Holder::Frame(offset) => self.slot(offset),
        })
    }

    /// The words of the frame that are not private.
    fn last(&self) -> Range<u32> {
        let none = registers(self.arch)..registers(self.arch);
        self.slots.last().map_or(none, |(_, places)| places.clone())
    }

    /// The place of a guarded instruction's result until the lanes that write it are known.
    pub(crate) fn result(&self) -> Place {
        Place(self.last().end)
    }

    /// Places for results that no register holds any more.
    pub(crate) fn remembered(&self) -> impl Iterator<Item = Place> + use<> {
        let first = self.last().end + 1;
        (first..first + REMEMBERED).map(Place)
    }

    /// The same from block to block.
    pub(crate) fn available(&self) -> impl Iterator<Item = Place> + use<> {
        let first = self.last().end + 1 + REMEMBERED;
        (first..first + AVAILABLE).map(Place)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        (self.last().end + 1 + REMEMBERED + AVAILABLE) as usize
    }

    /// The word of the frame at an offset from the stack pointer at the entry; a private one before
    /// others that lie there.
    pub(crate) fn slot(&self, offset: i64) -> Option<Place> {
        self.slots.iter().find_map(|(start, places)| {
            let distance = offset.saturating_sub(*start);
            let index = u32::try_from(distance / word(self.arch)).ok()?;
            let is_there = distance >= 0 && distance % word(self.arch) == 0;
            (is_there && index < places.end - places.start).then(|| Place(places.start + index))
        })
    }

    /// The words of the frame that an access to the bytes from `offset` on may touch.
    pub(crate) fn touched(&self, offset: i64, bytes: i64) -> impl Iterator<Item = Place> {
        let word = word(self.arch);
        let start = offset.saturating_sub(offset.rem_euclid(word));
        let starts = (start..offset.saturating_add(bytes)).step_by(word as usize);
        starts.filter_map(|start| self.slot(start))
    }

    /// What to call a place in a message; none if no instruction names it.
    pub(crate) fn name(&self, place: Place) -> Option<String> {
        match place.operand(self.arch) {
            Some(Operand::Gpr(reg)) => Some(self.arch.gpr_name(reg).to_string()),
            Some(Operand::Pred(reg)) => Some(self.arch.pred_name(reg).to_string()),
            _ if self.is_slot(place) => {
                Some(format!("word {} of the frame", place.0 - registers(self.arch)))
            }
            _ => None,
        }
    }

    pub(crate) fn is_slot(&self, place: Place) -> bool {
        (registers(self.arch)..self.last().end).contains(&place.0)
    }

    /// All words of the frame that are followed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Place> {
        (registers(self.arch)..self.last().end).map(Place)
    }

    /// The words that a call, or a store through a pointer, may change.
    pub(crate) fn exposed(&self) -> impl Iterator<Item = Place> {
        self.last().map(Place)
    }

    /// Whether only the code itself accesses a word of the frame.
    pub(crate) fn is_private(&self, place: Place) -> bool {
        (registers(self.arch)..self.last().start).contains(&place.0)
    }
}

impl Place {
    /// The register that it is, if it is one.
    fn operand(self, arch: ArchId) -> Option<Operand> {
        let register = (self.0 < registers(arch)).then_some((self.0 / 2) as u8)?;
        Some(match self.0 % 2 {
            0 => Operand::Gpr(Gpr::new(register)),
            _ => Operand::Pred(Pred::new(register)),
        })
    }

    /// Whether the lanes of a warp share it.
    pub(crate) fn is_shared(self, arch: ArchId) -> bool {
        self.operand(arch).is_some_and(|operand| arch.is_shared(operand))
    }

    pub(crate) fn is_pred(self, arch: ArchId) -> bool {
        matches!(self.operand(arch), Some(Operand::Pred(_)))
    }

    pub(crate) fn from_index(index: usize) -> Place {
        Place(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
