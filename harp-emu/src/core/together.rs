//! Warps that wait at barriers in host code and go on there, one after the other.

use super::host_code::{Barrier, LEAST};
use super::{Lanes, name};
use crate::host_code::{Resume, Resumes};
use crate::warp::Status;
use crate::word::Word;

/// The warps of a round, from the one on whose turn it is.
struct Together<'c, 'm, W: Word, const C: usize> {
    core: &'c mut Lanes<'m, W, C>,
    number: usize,
    quantum: u64,
    /// The instructions that the core has issued when the warp's quantum ends.
    until: u64,
    /// Those that the warp may issue at most.
    budget: u64,
    /// For how many instructions host code rests, if it ends where the warp is.
    pause: Option<u64>,
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Lets warps from `number` on that host code has left at barriers go on there, each for its quantum, as long as
    /// nobody else has to do anything. Returns the warp whose turn it is then, and what is left of its quantum.
    pub(super) fn go_on_together(&mut self, number: usize, quantum: u64) -> (usize, u64) {
        if self.unsettled == 0 || self.host_pause > 0 || self.env.handles_interrupts {
            return (number, quantum);
        }
        let Some(mut code) = self.host_code.take() else { return (number, quantum) };
        let until = self.issued + quantum;
        let mut warps = Together { core: self, number, quantum, until, budget: 0, pause: None };
        code.go_on(&mut warps);
        let Together { number, until, pause, .. } = warps;
        self.host_code = Some(code);
        if let Some(pause) = pause {
            self.settle(number);
            self.host_pause = pause;
        }
        (number, until - self.issued)
    }
}

impl<W: Word, const C: usize> Together<'_, '_, W, C> {
    /// Counts what the warp has issued: as many instructions, of which `insts` are not counted yet.
    fn count(&mut self, issued: u64, insts: u64, pc: u64) {
        let warp = &mut self.core.warps[self.number];
        warp.stats.steps += issued;
        warp.stats.insts += insts;
        warp.pc = pc;
        self.core.issued += issued;
    }
}

impl<W: Word, const C: usize> Resumes for Together<'_, '_, W, C> {
    fn next(&mut self) -> Option<Resume<'_>> {
        let core = &mut *self.core;
        while core.warps.get(self.number)?.status != Status::Ready {
            self.number += 1;
            self.until = core.issued + self.quantum;
        }
        let left = self.until - core.issued;
        self.budget = core.fuel.map_or(left, |limit| left.min(limit - core.issued));
        if self.budget < LEAST || !core.is_unsettled(self.number) {
            return None;
        }
        let warp = &mut core.warps[self.number];
        Some(Resume {
            warp: name(self.number).into(),
            registers: W::registers(warp.regs.as_flattened_mut().as_flattened_mut()),
            predicates: warp.preds.first_chunk_mut()?,
            memory: W::memory(core.env.cells),
            plain_stores_from: core.env.plain_stores_from,
            pc: warp.pc,
            budget: self.budget,
        })
    }

    fn waits(&mut self, id: u64, warps: u64, insts: u64, next: u64, pc: u64, left: u64) {
        self.count(self.budget - left + 1, insts, pc);
        self.core.wait(self.number, Barrier { id, warps, next });
    }

    fn leaves(&mut self, pause: u64, pc: u64, left: u64) {
        self.count(self.budget - left, 0, pc);
        self.pause = Some(pause);
    }
}
