//! The warps of a core that have been started, and memory for more.

use std::ops::{Deref, DerefMut};

use crate::warp::Warp;
use crate::word::Word;

/// The warps of a core that have been started, which are the lowest. The others take no memory, unless a core has
/// used it before: a run may have thousands of cores that use one warp each.
pub(super) struct Warps<W, const C: usize> {
    /// The started warps, then those that were started before a reset.
    all: Vec<Warp<W, C>>,
    started: usize,
}

impl<W: Word, const C: usize> Warps<W, C> {
    /// No warp started.
    pub(super) fn new() -> Self {
        Warps { all: Vec::new(), started: 0 }
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
    }

    /// Lets those of these warps go on, given as bits, that wait at a barrier.
    pub(super) fn release(&mut self, warps: u64) {
        let mut left = warps;
        while left != 0 {
            self[left.trailing_zeros() as usize].release();
            left &= left - 1;
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
