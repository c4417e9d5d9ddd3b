//! The warps of a core that have been started, and memory for more.

use std::ops::{Deref, DerefMut};

use crate::warp::{Status, Warp};
use crate::word::Word;

/// The warps of a core that have been started, which are the lowest. The others take no memory, unless a core has
/// used it before: a run may have thousands of cores that use one warp each.
pub(super) struct Warps<W, const C: usize> {
    /// The started warps, then those that were started before a reset.
    all: Vec<Warp<W, C>>,
    started: usize,
    /// The barriers at which warps wait, or waited: to look at all warps takes long.
    waiting: Vec<Crowd>,
    /// The place among these at which the last warp came.
    last: usize,
}

/// The warps that wait at a barrier.
struct Crowd {
    /// The barrier's number.
    id: u64,
    count: u64,
    /// Which these are, as bits.
    warps: u64,
}

impl<W: Word, const C: usize> Warps<W, C> {
    /// No warp started.
    pub(super) fn new() -> Self {
        Warps { all: Vec::new(), started: 0, waiting: Vec::new(), last: 0 }
    }

    /// Starts the next of at most `limit` warps, which have that many registers: see [`Warp::new`]. `None` if the host
    /// has no memory left.
    pub(super) fn start(
        &mut self,
        [limit, registers]: [usize; 2],
        r0: W,
        pc: u64,
        supervisor: bool,
    ) -> Option<&mut Warp<W, C>> {
        let next = self.started;
        match self.all.get_mut(next) {
            Some(warp) => warp.restart(registers, r0, pc, supervisor),
            None => {
                self.reserve(limit)?;
                self.all.push(Warp::new(r0, pc, supervisor)?);
            }
        }
        self.started = next + 1;
        self.all.get_mut(next)
    }

    /// Makes room for one more warp. Moving warps is expensive, so there is room for as many again after a move.
    fn reserve(&mut self, limit: usize) -> Option<()> {
        let made = self.all.len();
        if made == self.all.capacity() {
            self.all.try_reserve_exact(made.min(limit - made).max(1)).ok()?;
        }
        Some(())
    }

    /// Forgets that warps were started.
    pub(super) fn clear(&mut self) {
        self.started = 0;
        self.waiting.clear();
    }

    /// Whether no warp waits at any barrier.
    pub(super) fn none_waits(&self) -> bool {
        self.waiting.iter().all(|crowd| crowd.count == 0)
    }

    /// Warp `number` waits at barrier `id`, until `wanted` warps do.
    pub(super) fn wait(&mut self, number: usize, id: u64, wanted: u64, next: u64) {
        let place = self.place(id);
        let crowd = &mut self.waiting[place];
        crowd.count += 1;
        if crowd.count != wanted {
            crowd.warps |= 1 << number;
            self[number].status = Status::Waiting { id, warps: wanted, next };
            return;
        }
        crowd.count = 0;
        let mut left = std::mem::take(&mut crowd.warps);
        self[number].pc = next;
        while left != 0 {
            self[left.trailing_zeros() as usize].release();
            left &= left - 1;
        }
    }

    /// The place of the warps that wait at barrier `id`. Mostly these are those to which the last one came.
    fn place(&mut self, id: u64) -> usize {
        if self.waiting.get(self.last).is_none_or(|crowd| crowd.id != id) {
            self.last = self.find(id);
        }
        self.last
    }

    /// The same, among all barriers; one at which nobody waits makes room.
    #[cold]
    fn find(&mut self, id: u64) -> usize {
        let crowds = &mut self.waiting;
        if let Some(here) = crowds.iter().position(|crowd| crowd.id == id) {
            return here;
        }
        let crowd = Crowd { id, count: 0, warps: 0 };
        match crowds.iter().position(|crowd| crowd.count == 0) {
            Some(free) => {
                crowds[free] = crowd;
                free
            }
            None => {
                crowds.push(crowd);
                crowds.len() - 1
            }
        }
    }
}

impl<W, const C: usize> Deref for Warps<W, C> {
    type Target = [Warp<W, C>];

    fn deref(&self) -> &[Warp<W, C>] {
        &self.all[..self.started]
    }
}

impl<W, const C: usize> DerefMut for Warps<W, C> {
    fn deref_mut(&mut self) -> &mut [Warp<W, C>] {
        &mut self.all[..self.started]
    }
}
