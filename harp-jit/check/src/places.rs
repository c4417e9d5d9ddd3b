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
    word: i64,
    /// Words of the frame, those last that stores through pointers may change: the offset of the first from the stack
    /// pointer at the entry, and their places.
    slots: Vec<(i64, Range<u32>)>,
}

/// The most names that general registers and predicates have.
const CLASS: u32 = 64;

/// The most results that are remembered at a time, and from block to block.
const REMEMBERED: u32 = 8;
const AVAILABLE: u32 = 16;

impl Places {
    pub(crate) fn new(entry: &Entry, word: i64) -> Places {
        let mut next = 2 * CLASS;
        let part = |range: &Range<i64>| {
            let first = next;
            next += ((range.end - range.start).max(0) / word) as u32;
            (range.start, first..next)
        };
        let slots = entry.private.iter().chain([&entry.scratch]).map(part).collect();
        Places { word, slots }
    }

    pub(crate) fn gpr(reg: Gpr) -> Place {
        Place(u32::from(reg.index()))
    }

    pub(crate) fn pred(reg: Pred) -> Place {
        Place(CLASS + u32::from(reg.index()))
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
        self.slots.last().map_or(2 * CLASS..2 * CLASS, |(_, places)| places.clone())
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
            let index = u32::try_from(distance / self.word).ok()?;
            let is_there = distance >= 0 && distance % self.word == 0;
            (is_there && index < places.end - places.start).then(|| Place(places.start + index))
        })
    }

    /// The words of the frame that an access to the bytes from `offset` on may touch.
    pub(crate) fn touched(&self, offset: i64, bytes: i64) -> impl Iterator<Item = Place> {
        let start = offset.saturating_sub(offset.rem_euclid(self.word));
        let starts = (start..offset.saturating_add(bytes)).step_by(self.word as usize);
        starts.filter_map(|start| self.slot(start))
    }

    /// What to call a place in a message; none if no instruction names it.
    pub(crate) fn name(&self, arch: ArchId, place: Place) -> Option<String> {
        match place.0 {
            reg @ 0..CLASS => Some(arch.gpr_name(Gpr::new(reg as u8)).to_string()),
            reg if place.is_pred() => {
                Some(arch.pred_name(Pred::new((reg - CLASS) as u8)).to_string())
            }
            _ if self.is_slot(place) => Some(format!("word {} of the frame", place.0 - 2 * CLASS)),
            _ => None,
        }
    }

    pub(crate) fn is_slot(&self, place: Place) -> bool {
        (2 * CLASS..self.last().end).contains(&place.0)
    }

    /// All words of the frame that are followed.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Place> {
        (2 * CLASS..self.last().end).map(Place)
    }

    /// The words that a call, or a store through a pointer, may change.
    pub(crate) fn exposed(&self) -> impl Iterator<Item = Place> {
        self.last().map(Place)
    }

    /// Whether only the code itself accesses a word of the frame.
    pub(crate) fn is_private(&self, place: Place) -> bool {
        (2 * CLASS..self.last().start).contains(&place.0)
    }
}

impl Place {
    /// Whether the lanes of a warp share it.
    pub(crate) fn is_shared(self, arch: ArchId) -> bool {
        match u8::try_from(self.0) {
            Ok(reg) if self.is_pred() => arch.is_shared(Pred::new(reg - CLASS as u8)),
            Ok(reg) if self.0 < CLASS => arch.is_shared(Gpr::new(reg)),
            _ => false,
        }
    }

    pub(crate) fn is_pred(self) -> bool {
        (CLASS..2 * CLASS).contains(&self.0)
    }

    pub(crate) fn from_index(index: usize) -> Place {
        Place(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
