//! A core: its warps, the order in which they run, and how they affect each other.

mod ahead;
mod crowds;
mod faults;
mod host_code;
mod make;
mod optimistic;
mod still;
mod together;
mod traits;
mod warps;

use std::mem;
use std::sync::Arc;

use harp_isa::Gpr;

use crowds::Crowds;
use host_code::Barrier;
pub(crate) use make::{all_at_reset, least_state};
pub(crate) use traits::{Core, LeftCode, Spare, Whole};
use warps::Warps;

use crate::barrier::BarrierRule;
use crate::config::{
    Floats, Interrupts, MachineConfig, Path, Reconvergence, Schedule, SpawnPolicy, Translation,
};
use crate::console::SharedConsole;
use crate::device::SharedDevice;
use crate::exec::code::Codes;
use crate::exec::simd::Level;
use crate::exec::system::System;
use crate::exec::{End, Env, Event, Exec, Precise};
use crate::host_code::{HostCode, HostTier};
use crate::inspect::Inspect;
use crate::observe::Observer;
use crate::profile::Profile;
use crate::random::Random;
use crate::stats::{CoreStats, WarpStats};
use crate::tlb::PageMapping;
use crate::trap::{Trap, TrapKind};
use crate::warp::{Status, Warp};
use crate::word::Word;

/// A core with words `W` and `C` groups of lanes.
struct Lanes<'m, W: Word, const C: usize> {
    env: Env<'m, W>,
    schedule: Schedule,
    spawn: SpawnPolicy,
    fuel: Option<u64>,
    level: Level,
    path: Path,
    code: Codes,
    /// Host code for what has been decoded, if there is to be some.
    host_code: Option<Box<dyn HostCode>>,
    /// That of another machine's core, which a tier may use again.
    host_code_before: Option<Box<dyn HostCode>>,
    /// The instructions to issue, of whatever warps, before host code is asked again.
    host_pause: u64,
    /// The warps of whose state host code still has a part, as bits: none between turns.
    unsettled: u64,
    warps: Warps<W, C>,
    crowds: Crowds,
    system: System,
    /// The source of a seeded schedule.
    random: Option<Random>,
    /// What is collected, if anything is to be.
    profile: Option<Box<Profile>>,
    /// Rounds in which a warp has issued an instruction.
    rounds: u64,
    /// The clocks of many rounds at once, kept to reuse their memory.
    clocks: Vec<ahead::Clock>,
    /// The state of warps before they ran ahead, by the place of their clocks; kept for the same reason.
    checkpoints: Vec<optimistic::Checkpoint<W, C>>,
    /// Instructions issued.
    issued: u64,
    trap: Option<Box<Trap>>,
}

/// Instructions after which a core lets the others on its host thread run, unless the schedule's quantum is shorter than
/// usual: then it is sooner.
const TURN: u64 = 1 << 16;
const SHORTEST_TURN: u64 = 1 << 12;
/// Quanta in a turn.
const QUANTA: u64 = 16;

impl<'m, W: Word, const C: usize> Lanes<'m, W, C> {
    fn new(
        config: &MachineConfig,
        cells: &'m [W::Cell],
        core: u16,
        spare: Option<Left<W, C>>,
    ) -> Option<Self> {
        let Left { mut warps, code, clocks, checkpoints } = spare.unwrap_or_else(Left::nothing);
        let LeftCode { decoded: mut code, host: host_code } =
            code.unwrap_or_else(|| LeftCode::nothing(config));
        warps.clear();
        let arch = config.arch;
        let size = size_of_val(cells) as u64;
        let read_only_below = config.read_only_below.min(size).next_multiple_of(W::BYTES as u64);
        if code.has_any(read_only_below, u64::MAX) {
            code.forget_all();
        }
        let translates = config.translation == Translation::Tlb;
        let mut lanes = Lanes {
            env: Env {
                cells,
                arch,
                lanes: arch.lanes(),
                warps: arch.warps(),
                core,
                cores: config.cores,
                divergence_depth: config.divergence_depth,
                state_share: config.state_share(),
                read_only_below,
                plain_stores_from: read_only_below,
                has_console: config.console,
                handles_interrupts: config.interrupts == Interrupts::Guest,
                barriers: BarrierRule::new(config.divergent_barriers, arch),
                translates,
                reference_floats: config.floats == Floats::Reference,
                pdom: config.reconvergence == Reconvergence::Pdom,
            },
            schedule: config.schedule,
            spawn: config.spawn,
            fuel: config.fuel,
            level: Level::detect(config.simd),
            path: config.path,
            code,
            host_code: None,
            host_code_before: host_code.filter(|code| code.code().end <= read_only_below),
            host_pause: 0,
            unsettled: 0,
            crowds: Crowds::default(),
            warps,
            system: System::at_reset(config, core, None, None),
            random: seeded(config, core),
            profile: Profile::wanted(config),
            rounds: 0,
            clocks,
            checkpoints,
            issued: 0,
            trap: None,
        };
        lanes.env.plain_stores_from = lanes.plain_stores_from();
        lanes.start(0, true)?;
        Some(lanes)
    }

    /// `%r0` of a warp that starts.
    fn first_register(&self) -> W {
        W::from_u64(u64::from(self.env.lanes) << (W::BITS / 2) | u64::from(self.env.core))
    }

    /// Starts the lowest warp that was never started, which must exist. `None` if its memory exceeds the
    /// core's share, or the host has none left.
    fn start(&mut self, pc: u64, supervisor: bool) -> Option<&mut Warp<W, C>> {
        let left = self.system.state_left.checked_sub(Warp::<W, C>::STATE_BYTES)?;
        let (limit, registers) = (self.env.warps.into(), self.env.arch.all_gprs().into());
        let first = self.first_register();
        let warp = self.warps.start([limit, registers], first, pc, supervisor)?;
        self.system.state_left = left;
        if let Some(audit) = &mut self.system.audit {
            audit.start();
        }
        Some(warp)
    }

    /// Lets every warp that is ready run for its quantum, in the order of warps. Returns whether any ran.
    fn round(
        &mut self,
        quantum: u64,
        observer: Option<&mut dyn Observer>,
    ) -> Result<bool, Box<Trap>> {
        let before = self.issued;
        let ran = self.rest_of_round(0, quantum, observer);
        self.rounds += u64::from(self.issued > before);
        ran
    }

    /// As [`round`](Self::round), from warp `number` on.
    fn rest_of_round(
        &mut self,
        mut number: usize,
        quantum: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<bool, Box<Trap>> {
        let mut ran = false;
        // A warp that is started in this round runs in it.
        while number < self.warps.len() {
            let before = self.issued;
            let (next, left) = self.go_on_together(number, quantum);
            ran |= self.issued > before;
            number = next;
            if self.warps.get(number).is_some_and(|warp| warp.status == Status::Ready) {
                self.quantum(number, left, reborrow(&mut observer))?;
                ran = true;
            }
            number += 1;
        }
        Ok(ran)
    }

    /// Lets a random ready warp run for a random number of instructions. Returns whether any ran.
    fn draw(&mut self, mut observer: Option<&mut dyn Observer>) -> Result<bool, Box<Trap>> {
        let is_ready = |&number: &usize| self.warps[number].status == Status::Ready;
        let ready: Vec<usize> = (0..self.warps.len()).filter(is_ready).collect();
        let (Some(random), false) = (&mut self.random, ready.is_empty()) else {
            return Ok(false);
        };
        let number = ready[random.below(ready.len() as u64) as usize];
        let quantum = random.length();
        self.quantum(number, quantum, reborrow(&mut observer))?;
        Ok(true)
    }

    /// Lets a warp run until it stops, waits or has issued `quantum` instructions.
    fn quantum(
        &mut self,
        number: usize,
        quantum: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        let until = self.issued + quantum;
        while self.issued < until && self.warps[number].status == Status::Ready {
            let left = until - self.issued;
            let budget = self.fuel.map_or(left, |limit| left.min(limit - self.issued));
            if budget == 0 {
                let limit = self.issued;
                self.settle(number);
                let lanes = self.warps[number].active;
                return Err(self.trap_at(number, TrapKind::OutOfFuel { limit }, lanes));
            }
            self.poll_console(number);
            let mut left = budget;
            if self.host_code.is_some()
                && !self.goes_precisely(observer.is_some())
                && let Some(barrier) = self.visit(number, &mut left)
            {
                // Work-groups that wait often are mostly here.
                self.wait(number, barrier);
            } else if left > 0 {
                let end = self.issue(number, left, reborrow(&mut observer));
                self.handle_end(number, end)?;
            }
        }
        Ok(())
    }

    /// Handles the reason why warp `number` returned from a run of instructions.
    fn handle_end(&mut self, number: usize, end: End<W>) -> Result<(), Box<Trap>> {
        match end {
            End::Budget => Ok(()),
            End::Undecoded => {
                let Warp { pc, supervisor, .. } = self.warps[number];
                match self.code.fill(pc, self.env.cells, &self.system.tlb, supervisor) {
                    Ok(()) => {
                        self.env.plain_stores_from = self.plain_stores_from();
                        Ok(())
                    }
                    Err(_) if self.env.translates => {
                        let end = self
                            .count(number, |core| core.precisely(number).run_precisely(1, None));
                        self.handle_end(number, end)
                    }
                    Err(kind) => self.no_instruction(number, kind),
                }
            }
            End::NoInstruction(kind) => self.no_instruction(number, kind),
            End::Event { event, next } => self.handle(number, event, next),
        }
    }

    /// Counts what warp `number` issues.
    fn count(&mut self, number: usize, issue: impl FnOnce(&mut Self) -> End<W>) -> End<W> {
        let before = self.warps[number].stats.steps;
        let end = issue(self);
        self.issued += self.warps[number].stats.steps - before;
        end
    }

    /// Whether all warps take the precise path.
    fn goes_precisely(&self, is_observed: bool) -> bool {
        let Env { reference_floats, pdom, .. } = self.env;
        let is_watched = is_observed || self.profile.is_some() || self.system.audit.is_some();
        is_watched || reference_floats || pdom || self.path == Path::Precise
    }

    /// Whether the last instruction has changed decoded code.
    fn changes_code(&self) -> bool {
        let mut changed = self.system.changed.iter();
        changed.any(|&(first, last)| {
            self.code.has_any(first, last) || self.host_code_has_any(first, last)
        })
    }

    /// The first address of a word from which on stores concern neither read-only memory nor decoded
    /// code.
    fn plain_stores_from(&self) -> u64 {
        let host_code = self.host_code.as_ref().map_or(0, |code| code.code().end);
        let code = self.code.end().max(host_code).min(size_of_val(self.env.cells) as u64);
        self.env.read_only_below.max(code.next_multiple_of(W::BYTES as u64))
    }

    /// Warp `number`, ready to execute on the precise path.
    fn precisely(&mut self, number: usize) -> Exec<'_, W, C, Precise> {
        Exec::new(&mut self.warps[number], &self.env, &mut self.system, name(number))
    }

    /// As [`issue`](Self::issue), on the precise path.
    fn issue_precisely(
        &mut self,
        number: usize,
        budget: u64,
        observer: Option<&mut dyn Observer>,
    ) -> End<W> {
        let warp = &mut self.warps[number];
        let profile = self.profile.as_deref_mut();
        let is_watched = observer.is_some() || profile.is_some();
        let mut exec = Exec::<W, C, Precise>::new(warp, &self.env, &mut self.system, name(number));
        match is_watched {
            true => exec.run_precisely(budget, Some(&mut (profile, observer))),
            false => exec.run_precisely(budget, None),
        }
    }

    /// Does what an instruction of warp `number` asks of the core, and lets the warp go on at `next`.
    fn handle(&mut self, number: usize, event: Event<W>, next: u64) -> Result<(), Box<Trap>> {
        if self.changes_code() {
            // Everything is forgotten, since programs that change their code are rare.
            self.code.forget_all();
            self.forget_host_code();
        }
        self.system.changed.clear();
        match event {
            Event::Stop => self.warps[number].status = Status::Stopped,
            Event::Spawn { pc, register, value } => {
                self.spawn(number, pc, register, value)?;
                self.warps[number].pc = next;
            }
            Event::Barrier { id, warps } => self.wait(number, Barrier { id, warps, next }),
            Event::Unmasked | Event::CodeChanged => self.warps[number].pc = next,
            Event::Trap { kind, lanes } => return self.fault(number, kind, lanes, next),
        }
        Ok(())
    }

    /// Lets warp `number` wait at a barrier, until as many do as it is for.
    #[inline(always)]
    fn wait(&mut self, number: usize, Barrier { id, warps, next }: Barrier) {
        let others = self.crowds.come(number, id, warps);
        let warp = &mut self.warps[number];
        match others {
            Some(others) => {
                warp.pc = next;
                self.warps.release(others);
            }
            None => warp.status = Status::Waiting { id, warps, next },
        }
    }

    /// Starts a warp at `pc` for warp `number`, with `value` in a register.
    fn spawn(&mut self, number: usize, pc: u64, register: u8, value: W) -> Result<(), Box<Trap>> {
        let is_shared = self.env.arch.is_shared_gpr(Gpr::new(register));
        let kind = if self.warps.len() < self.env.warps.into() {
            match self.start(pc, false) {
                Some(started) => {
                    if !is_shared {
                        started.regs[usize::from(register)][0][0] = value;
                        return Ok(());
                    }
                    started.share(register.into(), value);
                    if let Some(audit) = &mut self.system.audit {
                        audit.start_with(Gpr::new(register), value.to_u64());
                    }
                    return Ok(());
                }
                None => TrapKind::OutOfHostMemory { limit: self.env.state_share },
            }
        } else if self.spawn == SpawnPolicy::Strict {
            TrapKind::NoWarpLeft { limit: self.env.warps }
        } else {
            return Ok(());
        };
        let lanes = self.warps[number].active;
        Err(self.trap_at(number, kind, lanes))
    }
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Records the result of a round or a part of it. Returns whether the core has something left to do.
    fn goes_on(&mut self, ran: Result<bool, Box<Trap>>) -> bool {
        let ended = match ran {
            Ok(true) => return true,
            Ok(false) => {
                self.settle_all();
                self.check_deadlock()
            }
            Err(trap) => Err(trap),
        };
        self.trap = ended.err();
        false
    }

    /// Runs warps for a while. Returns whether the core has something left to do.
    fn take_turn(&mut self, mut observer: Option<&mut dyn Observer>) -> bool {
        let usual = match self.schedule {
            Schedule::Quantum(quantum) => {
                (QUANTA * u64::from(quantum.get())).clamp(SHORTEST_TURN, TURN)
            }
            Schedule::Step | Schedule::Seeded(_) => TURN,
        };
        let turn = self.random.as_mut().map_or(usual, Random::length);
        let until = self.issued + turn;
        while self.trap.is_none() && self.issued < until {
            let ran = match self.schedule {
                Schedule::Step => self.rounds(until, reborrow(&mut observer)),
                Schedule::Quantum(quantum) => {
                    self.round(quantum.get().into(), reborrow(&mut observer))
                }
                Schedule::Seeded(_) => self.draw(reborrow(&mut observer)),
            };
            if !self.goes_on(ran) {
                return false;
            }
        }
        self.trap.is_none()
    }
}

impl<W: Word, const C: usize> Core for Lanes<'_, W, C> {
    fn reset(&mut self, config: &MachineConfig, console: Option<&SharedConsole>) {
        let core = self.env.core;
        let device = self.system.device.take();
        self.system = System::at_reset(config, core, console.cloned(), device);
        self.warps.clear();
        self.crowds.clear();
        self.start(0, true)
            .expect("warps keep their memory, so there is always enough for the first");
        self.random = seeded(config, core);
        self.profile = Profile::wanted(config);
        (self.rounds, self.issued, self.trap) = (0, 0, None);
        self.resume();
    }

    fn resume(&mut self) {
        self.code.forget_all();
        self.host_code_before = None;
        self.forget_host_code();
    }

    fn set_host_tier(&mut self, tier: &Arc<dyn HostTier>) {
        self.use_tier(&**tier);
    }

    fn set_console(&mut self, console: &SharedConsole) {
        self.system.console.connect(console);
    }

    fn set_device(&mut self, device: &SharedDevice) {
        self.system.device = Some(device.clone());
    }

    fn turn(&mut self, observer: Option<&mut dyn Observer>) -> bool {
        let goes_on = self.take_turn(observer);
        self.settle_all();
        goes_on
    }

    fn step(&mut self, observer: Option<&mut dyn Observer>) -> bool {
        if self.trap.is_some() {
            return false;
        }
        // Between steps the host may read and write everything, code included.
        let path = mem::replace(&mut self.path, Path::Precise);
        let ran = self.round(1, observer);
        self.path = path;
        self.goes_on(ran)
    }

    fn step_warp(&mut self, warp: u8, observer: Option<&mut dyn Observer>) -> bool {
        let number = usize::from(warp);
        let ready = self.warps.get(number).is_some_and(|warp| warp.status == Status::Ready);
        if self.trap.is_some() || !ready {
            return false;
        }
        let path = mem::replace(&mut self.path, Path::Precise);
        self.trap = self.quantum(number, 1, observer).err();
        self.path = path;
        true
    }

    fn halt(&mut self, kind: TrapKind) {
        let ready = self.warps.iter().position(|warp| warp.status == Status::Ready);
        if let (Some(number), None) = (ready, &self.trap) {
            self.trap = Some(self.trap_at(number, kind, self.warps[number].active));
        }
    }

    fn trap(&self) -> Option<&Trap> {
        self.trap.as_deref()
    }

    fn issued(&self) -> u64 {
        self.issued
    }

    fn stats(&self) -> CoreStats {
        let steps = match self.schedule {
            Schedule::Step => self.rounds,
            Schedule::Quantum(_) | Schedule::Seeded(_) => self.issued,
        };
        let mut warps: Vec<_> = self.warps.iter().map(|warp| warp.stats).collect();
        warps.resize(self.env.warps.into(), WarpStats::default());
        CoreStats { steps, warps }
    }

    fn console(&self) -> &[u8] {
        &self.system.console.output
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    fn interrupt_entry(&self) -> Option<u64> {
        self.system.entry
    }

    fn page_mappings(&self) -> Vec<PageMapping> {
        self.system.tlb.mappings().collect()
    }

    fn warp(&self, warp: u8) -> Option<&dyn Inspect> {
        self.warps.get(usize::from(warp)).map(|warp| warp as &dyn Inspect)
    }

    fn spare(&mut self) -> Option<Box<dyn Spare>> {
        if let Some(code) = &mut self.host_code {
            code.rest();
        }
        let decoded = mem::replace(&mut self.code, Codes::new(self.env.arch, 0, false));
        Some(Box::new(Left {
            warps: mem::replace(&mut self.warps, Warps::new()),
            code: Some(LeftCode { decoded, host: self.host_code.take() }),
            clocks: mem::take(&mut self.clocks),
            checkpoints: mem::take(&mut self.checkpoints),
        }))
    }
}

/// What a core leaves for one of another machine: host memory, and code that it has decoded.
struct Left<W, const C: usize> {
    warps: Warps<W, C>,
    code: Option<LeftCode>,
    clocks: Vec<ahead::Clock>,
    checkpoints: Vec<optimistic::Checkpoint<W, C>>,
}

impl<W: Word, const C: usize> Left<W, C> {
    fn nothing() -> Self {
        Left { warps: Warps::new(), code: None, clocks: Vec::new(), checkpoints: Vec::new() }
    }
}

impl<W: Word, const C: usize> Spare for Left<W, C> {
    fn take_code(&mut self) -> Option<LeftCode> {
        self.code.take()
    }

    fn put_code(&mut self, code: Option<LeftCode>) {
        self.code = code;
    }
}

/// The number of a warp, as instructions see it.
fn name(warp: usize) -> u8 {
    u8::try_from(warp).expect("at most 64 warps")
}

/// The pseudo-random sequence for the schedule of core number `core`, if the schedule is seeded.
fn seeded(config: &MachineConfig, core: u16) -> Option<Random> {
    match config.schedule {
        Schedule::Seeded(seed) => Some(Random::new(seed, core.into())),
        Schedule::Step | Schedule::Quantum(_) => None,
    }
}

/// The same observer with a shorter lifetime.
fn reborrow<'a>(observer: &'a mut Option<&mut dyn Observer>) -> Option<&'a mut dyn Observer> {
    match observer {
        Some(observer) => Some(&mut **observer),
        None => None,
    }
}
