//! A core: its warps, in which order they run, and what they do to each other.

use crate::code::Code;
use crate::config::{MachineConfig, Path, Schedule, SpawnPolicy};
use crate::exec::{self, Console, End, Env, Event, Exec};
use crate::inspect::Inspect;
use crate::memory::Memory;
use crate::observe::Observer;
use crate::simd::Level;
use crate::stats::{CoreStats, WarpStats};
use crate::trap::{Trap, TrapKind};
use crate::warp::{GROUP, Status, Warp};
use crate::word::Word;

/// A core whatever its word and number of lanes.
pub(crate) trait Core: Send {
    /// Runs for a while; whether the core has something left to do.
    fn turn(&mut self, observer: Option<&mut dyn Observer>) -> bool;

    /// One machine step: every warp that is ready issues one instruction. Whether the core has
    /// something left to do.
    fn step(&mut self, observer: Option<&mut dyn Observer>) -> bool;

    /// Warp number `warp` issues one instruction. Whether it was ready to.
    fn step_warp(&mut self, warp: u8, observer: Option<&mut dyn Observer>) -> bool;

    /// Why the core stopped before its end, if it did.
    fn trap(&self) -> Option<&Trap>;

    /// What the core has cost so far.
    fn stats(&self) -> CoreStats;

    /// What it has written to the console.
    fn console(&self) -> &[u8];

    /// The warp with that number, if it has been started.
    fn warp(&self, warp: u8) -> Option<&dyn Inspect>;
}

/// Core number `core` at reset. The memory has words of the machine's size.
pub(crate) fn at_reset<'m>(
    config: &MachineConfig,
    memory: &'m Memory,
    core: u16,
) -> Box<dyn Core + 'm> {
    match memory.cells::<u32>() {
        Some(cells) => with_word::<u32>(config, cells, core),
        None => {
            let cells = memory.cells::<u64>().expect("words have 4 bytes or 8");
            with_word::<u64>(config, cells, core)
        }
    }
}

/// Picks the number of groups that holds the machine's lanes.
fn with_word<'m, W: Word>(
    config: &MachineConfig,
    cells: &'m [W::Cell],
    core: u16,
) -> Box<dyn Core + 'm> {
    match usize::from(config.arch.lanes()).div_ceil(GROUP) {
        0 | 1 => Box::new(Lanes::<W, 1>::new(config, cells, core)),
        2 => Box::new(Lanes::<W, 2>::new(config, cells, core)),
        3 | 4 => Box::new(Lanes::<W, 4>::new(config, cells, core)),
        _ => Box::new(Lanes::<W, 8>::new(config, cells, core)),
    }
}

/// A core with words `W` and `C` groups of lanes.
struct Lanes<'m, W: Word, const C: usize> {
    env: Env<'m, W>,
    schedule: Schedule,
    spawn: SpawnPolicy,
    fuel: Option<u64>,
    level: Level,
    path: Path,
    code: Code,
    /// The warps that have been started, which are the lowest. The others take no room: many a run
    /// has thousands of cores of which each uses one.
    warps: Vec<Warp<W, C>>,
    console: Console,
    /// Rounds in which a warp ran.
    rounds: u64,
    /// Instructions issued.
    issued: u64,
    trap: Option<Box<Trap>>,
}

/// Instructions after which a core lets the others on its host thread run.
const TURN: u64 = 1 << 16;

impl<'m, W: Word, const C: usize> Lanes<'m, W, C> {
    fn new(config: &MachineConfig, cells: &'m [W::Cell], core: u16) -> Self {
        let arch = config.arch;
        let input = if core == 0 { config.input.iter().rev().copied().collect() } else { vec![] };
        let mut lanes = Lanes {
            env: Env {
                cells,
                lanes: arch.lanes(),
                warps: arch.warps(),
                core,
                cores: config.cores,
                divergence_depth: config.divergence_depth,
                writable_from: config
                    .read_only_below
                    .min(size_of_val(cells) as u64)
                    .next_multiple_of(W::BYTES as u64),
                has_console: config.console,
            },
            schedule: config.schedule,
            spawn: config.spawn,
            fuel: config.fuel,
            level: Level::detect(config.simd),
            path: config.path,
            code: Code::new(arch),
            warps: Vec::new(),
            console: Console { output: Vec::new(), input },
            rounds: 0,
            issued: 0,
            trap: None,
        };
        lanes.start(0, true);
        lanes
    }

    /// Starts the lowest warp that was never started; there is one.
    fn start(&mut self, pc: u64, supervisor: bool) -> &mut Warp<W, C> {
        let r0 = u64::from(self.env.lanes) << (W::BITS / 2) | u64::from(self.env.core);
        self.warps.push_mut(Warp::new(W::from_u64(r0), pc, supervisor))
    }

    /// Lets every warp that is ready run, in the order of warps, for its quantum. Whether any ran.
    fn round(
        &mut self,
        quantum: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<bool, Box<Trap>> {
        let mut ran = false;
        let mut number = 0;
        // A warp that is started in this round runs in it.
        while number < self.warps.len() {
            if self.warps[number].status == Status::Ready {
                self.quantum(number, quantum, reborrow(&mut observer))?;
                ran = true;
            }
            number += 1;
        }
        self.rounds += u64::from(ran);
        Ok(ran)
    }

    /// Lets a warp run until it stops, waits or has issued `quantum` instructions.
    fn quantum(
        &mut self,
        number: usize,
        quantum: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<(), Box<Trap>> {
        let mut left = quantum;
        while left > 0 && self.warps[number].status == Status::Ready {
            let budget = self.fuel.map_or(left, |limit| left.min(limit - self.issued));
            if budget == 0 {
                let limit = self.issued;
                let lanes = self.warps[number].active;
                return Err(self.trap_at(number, TrapKind::OutOfFuel { limit }, lanes));
            }
            let before = self.warps[number].stats.steps;
            let end = self.issue(number, budget, reborrow(&mut observer));
            let issued = self.warps[number].stats.steps - before;
            self.issued += issued;
            left -= issued;
            match end {
                End::Budget => {}
                End::Undecoded => {
                    let warp = &self.warps[number];
                    let (pc, lanes) = (warp.pc, warp.active);
                    if let Err(kind) = self.code.fill(pc, self.env.cells) {
                        return Err(self.trap_at(number, kind, lanes));
                    }
                }
                End::Event { event, next } => self.handle(number, event, next)?,
            }
        }
        Ok(())
    }

    /// Lets a warp issue at most `budget` instructions.
    fn issue(&mut self, number: usize, budget: u64, observer: Option<&mut dyn Observer>) -> End<W> {
        let warp = &mut self.warps[number];
        let name = u8::try_from(number).expect("at most 64 warps");
        if observer.is_none() && self.path == Path::Fast {
            let mut exec = Exec::<W, C, false>::new(warp, &self.env, &mut self.console, name);
            self.level.run(&mut exec, &self.code, budget)
        } else {
            let mut exec = Exec::<W, C, true>::new(warp, &self.env, &mut self.console, name);
            exec::run(&mut exec, &self.code, budget, observer)
        }
    }

    /// Does what an instruction of warp `number` asks for, and lets the warp go on at `next`.
    fn handle(&mut self, number: usize, event: Event<W>, next: u64) -> Result<(), Box<Trap>> {
        match event {
            Event::Stop => self.warps[number].status = Status::Stopped,
            Event::Spawn { pc, register, value } => {
                if self.warps.len() < self.env.warps.into() {
                    let started = self.start(pc, false);
                    started.regs[usize::from(register)][0][0] = value;
                } else if self.spawn == SpawnPolicy::Strict {
                    let kind = TrapKind::NoWarpLeft { limit: self.env.warps };
                    let lanes = self.warps[number].active;
                    return Err(self.trap_at(number, kind, lanes));
                }
                self.warps[number].pc = next;
            }
            Event::Barrier { id, warps } => {
                self.warps[number].status = Status::Waiting { id, next };
                let here = |warp: &Warp<W, C>| matches!(warp.status, Status::Waiting { id: other, .. } if other == id);
                let waiting = self.warps.iter().filter(|warp| here(warp)).count();
                if waiting as u64 == warps {
                    self.warps.iter_mut().filter(|warp| here(warp)).for_each(Warp::release);
                }
            }
            Event::Trap { kind, lanes } => return Err(self.trap_at(number, kind, lanes)),
        }
        Ok(())
    }

    /// A trap if warps wait when none is ready.
    fn check_deadlock(&self) -> Result<(), Box<Trap>> {
        let mut waiting =
            self.warps.iter().enumerate().filter_map(|(number, warp)| match warp.status {
                Status::Waiting { id, .. } => Some((number, warp.active, id)),
                _ => None,
            });
        let Some((number, lanes, barrier)) = waiting.next() else {
            return Ok(());
        };
        let waiting = 1 + waiting.count();
        Err(self.trap_at(number, TrapKind::Deadlock { waiting, barrier }, lanes))
    }

    fn trap_at(&self, number: usize, kind: TrapKind, lanes: u64) -> Box<Trap> {
        let warp = u8::try_from(number).expect("at most 64 warps");
        let pc = self.warps[number].pc;
        Box::new(Trap { kind, core: self.env.core, warp, pc, lanes })
    }
}

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// What a round or a part of it has come to: whether the core has something left to do.
    fn goes_on(&mut self, ran: Result<bool, Box<Trap>>) -> bool {
        let ended = match ran {
            Ok(true) => return true,
            Ok(false) => self.check_deadlock(),
            Err(trap) => Err(trap),
        };
        self.trap = ended.err();
        false
    }
}

impl<W: Word, const C: usize> Core for Lanes<'_, W, C> {
    fn turn(&mut self, mut observer: Option<&mut dyn Observer>) -> bool {
        let quantum = match self.schedule {
            Schedule::Step => 1,
            Schedule::Quantum(quantum) => quantum.get().into(),
        };
        let until = self.issued + TURN;
        while self.trap.is_none() && self.issued < until {
            let ran = self.round(quantum, reborrow(&mut observer));
            if !self.goes_on(ran) {
                return false;
            }
        }
        self.trap.is_none()
    }

    fn step(&mut self, observer: Option<&mut dyn Observer>) -> bool {
        if self.trap.is_some() {
            return false;
        }
        let ran = self.round(1, observer);
        self.goes_on(ran)
    }

    fn step_warp(&mut self, warp: u8, observer: Option<&mut dyn Observer>) -> bool {
        let number = usize::from(warp);
        let ready = self.warps.get(number).is_some_and(|warp| warp.status == Status::Ready);
        if self.trap.is_some() || !ready {
            return false;
        }
        self.trap = self.quantum(number, 1, observer).err();
        true
    }

    fn trap(&self) -> Option<&Trap> {
        self.trap.as_deref()
    }

    fn stats(&self) -> CoreStats {
        let steps = match self.schedule {
            Schedule::Step => self.rounds,
            Schedule::Quantum(_) => self.issued,
        };
        let mut warps: Vec<_> = self.warps.iter().map(|warp| warp.stats).collect();
        warps.resize(self.env.warps.into(), WarpStats::default());
        CoreStats { steps, warps }
    }

    fn console(&self) -> &[u8] {
        &self.console.output
    }

    fn warp(&self, warp: u8) -> Option<&dyn Inspect> {
        self.warps.get(usize::from(warp)).map(|warp| warp as &dyn Inspect)
    }
}

/// The same observer for a shorter while.
fn reborrow<'a>(observer: &'a mut Option<&mut dyn Observer>) -> Option<&'a mut dyn Observer> {
    match observer {
        Some(observer) => Some(&mut **observer),
        None => None,
    }
}
