//! Warps that wait at barriers in host code and go on there, one after the other.

use super::host_code::{Barrier, LEAST};
use super::{Lanes, name};
use crate::host_code::{HostCode, HostEnd, Resume};
use crate::warp::Status;
use crate::word::Word;

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Lets warps from `number` on that host code has left at barriers go on there, each for its quantum, as long as
    /// nobody else has to do anything. Returns the warp whose turn it is then, and what is left of its quantum.
    pub(super) fn go_on_together(&mut self, number: usize, quantum: u64) -> (usize, u64) {
        if self.unsettled == 0 || self.host_pause > 0 || self.env.handles_interrupts {
            return (number, quantum);
        }
        let Some(mut code) = self.host_code.take() else { return (number, quantum) };
        let (next, left, pause) = self.go_on_in(&mut *code, number, quantum);
        self.host_code = Some(code);
        if let Some(pause) = pause {
            self.settle(next);
            self.host_pause = pause;
        }
        (next, left)
    }

    /// As [`go_on_together`](Self::go_on_together), in this host code. Returns also for how many instructions that rests, if
    /// it ends where the warp is.
    fn go_on_in(
        &mut self,
        code: &mut dyn HostCode,
        mut number: usize,
        quantum: u64,
    ) -> (usize, u64, Option<u64>) {
        // The instructions that the core has issued when the warp's quantum ends.
        let mut until = self.issued + quantum;
        loop {
            while self.warps.get(number).is_some_and(|warp| warp.status != Status::Ready) {
                number += 1;
                until = self.issued + quantum;
            }
            let left = until - self.issued;
            let budget = self.fuel.map_or(left, |limit| left.min(limit - self.issued));
            if number >= self.warps.len() || budget < LEAST || !self.is_unsettled(number) {
                return (number, left, None);
            }
            let warp = &mut self.warps[number];
            let Some(predicates) = warp.preds.first_chunk_mut() else {
                return (number, left, None);
            };
            let mut resume = Resume {
                warp: name(number).into(),
                registers: W::registers(warp.regs.as_flattened_mut().as_flattened_mut()),
                predicates,
                memory: W::memory(self.env.cells),
                plain_stores_from: self.env.plain_stores_from,
                pc: warp.pc,
                budget,
            };
            let Some(end) = code.go_on(&mut resume) else { return (number, left, None) };
            let issued = budget - resume.budget;
            warp.pc = resume.pc;
            warp.stats.steps += issued;
            self.issued += issued;
            match end {
                HostEnd::Pause(pause) => return (number, until - self.issued, Some(pause)),
                HostEnd::Barrier { id, warps, insts, next } => {
                    self.count_bar(number, insts);
                    self.wait(number, Barrier { id, warps, next });
                }
            }
        }
    }
}
