//! Issues instructions of a warp: on the precise path, in host code to which it is lent, or on the fast path.

use super::{Lanes, name};
use crate::exec::fast::{self, Host};
use crate::exec::{End, Env, Event};
use crate::host_code::{Frame, FrameStack, HostCode, HostEnd, HostTier};
use crate::observe::Observer;
use crate::word::Word;

/// Fewer instructions than this are not worth the way to host code and back.
pub(super) const LEAST: u64 = 16;

/// The `bar` that a warp has issued, and where it goes on.
pub(super) struct Barrier {
    pub(super) id: u64,
    pub(super) warps: u64,
    pub(super) next: u64,
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Lets a warp run in host code of this tier, where it has some. There is none for addresses that are translated.
    pub(super) fn use_tier(&mut self, tier: &dyn HostTier) {
        let Env { translates, arch, barriers, .. } = self.env;
        let lane_words = C * crate::warp::GROUP;
        let before = self.host_code_before.take();
        self.host_code = (!translates).then(|| tier.for_core(arch, lane_words, barriers, before));
        (self.host_pause, self.unsettled) = (0, 0);
    }

    /// Lets a warp issue at most `budget` instructions, and counts them.
    pub(super) fn issue(
        &mut self,
        number: usize,
        budget: u64,
        observer: Option<&mut dyn Observer>,
    ) -> End<W> {
        if self.goes_precisely(observer.is_some()) {
            return self.count(number, |core| core.issue_precisely(number, budget, observer));
        }
        let mut left = budget;
        loop {
            if let Some(Barrier { id, warps, next }) = self.visit(number, &mut left) {
                return End::Event { event: Event::Barrier { id, warps }, next };
            }
            let share = match self.host_pause {
                0 => left,
                pause => left.min(pause),
            };
            if share == 0 {
                return End::Budget;
            }
            self.settle(number);
            let before = self.warps[number].stats.steps;
            let host = Host {
                warp: &mut self.warps[number],
                env: &self.env,
                system: &mut self.system,
                number: name(number),
            };
            let end = match share {
                1 if self.host_code.is_some() => fast::run_one(host, &self.code),
                _ => fast::run(self.level, host, &self.code, share),
            };
            let issued = self.warps[number].stats.steps - before;
            self.issued += issued;
            left -= issued;
            self.host_pause = self.host_pause.saturating_sub(issued);
            if left == 0 || !matches!(end, End::Budget) {
                return end;
            }
        }
    }

    /// Issues what host code has for a warp, of `left` instructions, if it wants to be asked. Returns the barrier at which the
    /// warp is then, if it is at one. Otherwise the interpreter goes on.
    pub(super) fn visit(&mut self, number: usize, left: &mut u64) -> Option<Barrier> {
        if self.host_pause > 0 || *left < LEAST {
            return None;
        }
        self.settle(number);
        match self.lend(number, left)? {
            HostEnd::Pause(pause) => {
                self.host_pause = pause.max(1);
                None
            }
            HostEnd::Barrier { id, warps, insts, next } => {
                self.unsettled |= 1 << number;
                *left -= 1;
                self.count_bar(number, insts);
                Some(Barrier { id, warps, next })
            }
        }
    }

    /// Counts the `bar` at which host code has left a warp.
    pub(super) fn count_bar(&mut self, number: usize, insts: u64) {
        let stats = &mut self.warps[number].stats;
        stats.steps += 1;
        stats.insts += insts;
        self.issued += 1;
    }

    /// Lends a warp to the host code.
    fn lend(&mut self, number: usize, left: &mut u64) -> Option<HostEnd> {
        let (code, mut frame) = self.lent(number, *left)?;
        let end = code.run(&mut frame);
        let issued = *left - frame.budget;
        *left = frame.budget;
        self.env.plain_stores_from = frame.plain_stores_from;
        self.issued += issued;
        Some(end)
    }

    /// A warp as it is lent to the host code.
    fn lent(&mut self, number: usize, budget: u64) -> Option<(&mut dyn HostCode, Frame<'_>)> {
        // A core that may be interrupted looks for that behind each barrier.
        let passes_alone = self.crowds.none_waits() && !self.env.handles_interrupts;
        let warp = &mut self.warps[number];
        let env = &self.env;
        let frame = Frame {
            passes_alone,
            registers: W::registers(warp.regs.as_flattened_mut().as_flattened_mut()),
            predicates: warp.preds.first_chunk_mut()?,
            memory: W::memory(env.cells),
            plain_stores_from: env.plain_stores_from,
            pc: &mut warp.pc,
            active: &mut warp.active,
            active_count: warp.active_count,
            stack: FrameStack { entries: &mut warp.stack, limit: env.divergence_depth },
            stats: &mut warp.stats,
            budget,
            place: [u16::from(name(number)), env.core, env.cores],
        };
        Some((&mut **self.host_code.as_mut()?, frame))
    }

    /// Whether host code still has a part of a warp's state.
    pub(super) fn is_unsettled(&self, number: usize) -> bool {
        self.unsettled >> number & 1 != 0
    }

    /// Lets host code give the state of a warp back, before anybody else looks at it.
    pub(super) fn settle(&mut self, number: usize) {
        if self.is_unsettled(number) {
            self.unsettled &= !(1 << number);
            if let Some((code, mut frame)) = self.lent(number, 0) {
                code.settle(&mut frame);
            }
        }
    }

    /// The same of all warps.
    pub(super) fn settle_all(&mut self) {
        while self.unsettled != 0 {
            self.settle(self.unsettled.trailing_zeros() as usize);
        }
    }

    /// Whether host code holds any of the bytes `first` to `last`.
    pub(super) fn host_code_has_any(&self, first: u64, last: u64) -> bool {
        let range = self.host_code.as_ref().map_or(0..0, |code| code.code());
        first < range.end && last >= range.start
    }

    /// Lets host code look at memory again.
    pub(super) fn forget_host_code(&mut self) {
        self.settle_all();
        if let Some(code) = &mut self.host_code {
            code.forget();
        }
    }
}
