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
    /// The numbers of barriers at which warps wait, and how many do at each: to look at all warps takes long.
    waiting: Vec<(u64, u64)>,
}

impl<W: Word, const C: usize> Warps<W, C> {
    /// No warp started.
    pub(super) fn new() -> Self {
        Warps { all: Vec::new(), started: 0, waiting: Vec::new() }
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
                self.all.push(Warp::new(r0, pc, supervisor));
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

    /// One more warp waits at barrier `id`. As soon as `wanted` do, they go on.
    pub(super) fn arrive(&mut self, id: u64, wanted: u64) {
        let place = self.waiting.iter().position(|&(barrier, _)| barrier == id);
        let place = place.unwrap_or_else(|| {
            self.waiting.push((id, 0));
            self.waiting.len() - 1
        });
        let count = &mut self.waiting[place].1;
        *count += 1;
        if *count == wanted {
            self.waiting.swap_remove(place);
            for warp in self.iter_mut() {
                if matches!(warp.status, Status::Waiting { id: other, .. } if other == id) {
                    warp.release();
                }
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
