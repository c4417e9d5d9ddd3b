//! Issues instructions of a warp: on the precise path, in host code to which it is lent, or on the fast path.

use super::{Lanes, name};
use crate::exec::fast::{self, Host};
use crate::exec::{End, Env};
use crate::host_code::{Frame, FrameStack, HostTier};
use crate::observe::Observer;
use crate::word::Word;

/// Fewer instructions than this are not worth the way to host code and back.
const LEAST: u64 = 16;

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Lets a warp run in host code of this tier, where it has some. There is none for addresses that are translated, nor
    /// for machines with shared registers.
    pub(super) fn use_tier(&mut self, tier: &dyn HostTier) {
        let Env { translates, arch, .. } = self.env;
        let may_use = !translates && !arch.has_shared();
        self.host_code = may_use.then(|| tier.for_core(arch));
        self.host_pause = 0;
    }

    /// Lets a warp issue at most `budget` instructions.
    pub(super) fn issue(
        &mut self,
        number: usize,
        budget: u64,
        observer: Option<&mut dyn Observer>,
    ) -> End<W> {
        if self.goes_precisely(observer.is_some()) {
            return self.issue_precisely(number, budget, observer);
        }
        let mut left = budget;
        loop {
            let share = match self.host_code {
                None => left,
                Some(_) => self.interpreters_share(number, &mut left),
            };
            if share == 0 {
                return End::Budget;
            }
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
            left -= issued;
            self.host_pause = self.host_pause.saturating_sub(issued);
            if left == 0 || !matches!(end, End::Budget) {
                return end;
            }
        }
    }

    /// Issues what host code has for a warp, of `left` instructions. Returns how many the interpreter should issue before
    /// it asks again; 0 if none is left.
    fn interpreters_share(&mut self, number: usize, left: &mut u64) -> u64 {
        if *left < LEAST {
            return *left;
        }
        if self.host_pause == 0 {
            let before = self.warps[number].stats.steps;
            let Some(pause) = self.lend(number, *left) else { return *left };
            self.host_pause = pause.max(1);
            *left -= self.warps[number].stats.steps - before;
        }
        (*left).min(self.host_pause)
    }

    /// Lends a warp to the host code, and returns for how many instructions that does not want it again.
    fn lend(&mut self, number: usize, budget: u64) -> Option<u64> {
        let host_code = self.host_code.as_mut()?;
        let warp = &mut self.warps[number];
        let env = &self.env;
        let predicates = warp.preds.first_chunk_mut()?;
        let mut frame = Frame {
            registers: W::registers(warp.regs.as_flattened_mut().as_flattened_mut()),
            lane_words: C * crate::warp::GROUP,
            predicates,
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
        let pause = host_code.run(&mut frame);
        self.env.plain_stores_from = self.plain_stores_from();
        Some(pause)
    }

    /// Whether host code holds any of the bytes `first` to `last`.
    pub(super) fn host_code_has_any(&self, first: u64, last: u64) -> bool {
        let range = self.host_code.as_ref().map_or(0..0, |code| code.code());
        first < range.end && last >= range.start
    }

    /// Lets host code look at memory again.
    pub(super) fn forget_host_code(&mut self) {
        if let Some(code) = &mut self.host_code {
            code.forget();
        }
    }
}
