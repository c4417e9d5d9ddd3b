//! The machine: cores over a shared memory, on host threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fmt, mem, thread};

use harp_isa::WordSize;
use thiserror::Error;

use crate::config::MachineConfig;
use crate::core::{self, Core};
use crate::inspect::{WarpStatus, WarpView};
use crate::memory::Memory;
use crate::observe::Observer;
use crate::stats::Stats;
use crate::trap::Trap;

/// However many are asked for. Near the limits of hosts a new thread may abort the process instead
/// of failing to start.
const MAX_HOST_THREADS: usize = 1024;

/// Why a machine was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A machine without cores.
    #[error("a machine has at least one core")]
    NoCores,
    /// The memory is made of words of another size.
    #[error("the memory's words have {memory} bytes, the machine's {machine}")]
    WordSize {
        /// Bytes of the memory's words.
        memory: u8,
        /// Bytes of the machine's.
        machine: u8,
    },
}

/// A HARP machine over a guest memory.
///
/// A machine is born at reset. It can run to its end, or step by step, and stands still in between
/// for everybody to look at.
pub struct Machine<'m> {
    config: MachineConfig,
    memory: &'m Memory,
    cores: Vec<Box<dyn Core + 'm>>,
}

impl<'m> Machine<'m> {
    /// A machine that runs what `memory` holds, at reset: each core has started its warp 0 at address
    /// 0, lane 0 active, in supervisor mode, `%r0` = (lanes << half a word) | core number.
    ///
    /// # Errors
    ///
    /// If there is no core, or the memory is for machines of the other word size.
    pub fn new(config: MachineConfig, memory: &'m Memory) -> Result<Machine<'m>, MachineError> {
        if config.cores == 0 {
            return Err(MachineError::NoCores);
        }
        let bytes = WordSize::bytes;
        if memory.word() != config.arch.word() {
            let (memory, machine) = (bytes(memory.word()), bytes(config.arch.word()));
            return Err(MachineError::WordSize { memory, machine });
        }
        let mut machine = Machine { config, memory, cores: Vec::new() };
        machine.reset();
        Ok(machine)
    }

    /// Goes back to reset. The memory stays as it is.
    pub fn reset(&mut self) {
        let cores = 0..self.config.cores;
        self.cores = cores.map(|id| core::at_reset(&self.config, self.memory, id)).collect();
    }

    /// Runs until no warp of any core is active.
    ///
    /// Whatever the outcome, [`stats`](Self::stats) and [`console`](Self::console) tell about
    /// everything since reset afterwards.
    ///
    /// # Errors
    ///
    /// The trap of the lowest core that traps. A core that traps stops the cores above it soon;
    /// those below go on, because one of them may trap too: so the trap reported does not depend
    /// on the number of host threads. How far the cores above it have come does. A core that has
    /// trapped stays where it is until [`reset`](Self::reset).
    pub fn run(&mut self) -> Result<Stats, Box<Trap>> {
        self.run_cores();
        self.outcome().map(|()| self.stats())
    }

    /// Runs like [`run`](Self::run), on this host thread, and tells `observer` all about it.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_observed(&mut self, observer: &mut dyn Observer) -> Result<Stats, Box<Trap>> {
        let cores = self.cores.iter_mut().enumerate();
        let mut share = cores.map(|(id, core)| (index(id), core)).collect();
        run_share(&mut share, &AtomicU32::new(u32::MAX), Some(observer));
        self.outcome().map(|()| self.stats())
    }

    /// One machine step: every warp that is ready, of every core, issues one instruction, whatever
    /// the schedule. Whether anything is left to do.
    ///
    /// # Errors
    ///
    /// The trap of the lowest core that has trapped.
    pub fn step(&mut self) -> Result<bool, Box<Trap>> {
        let mut goes_on = false;
        for core in &mut self.cores {
            goes_on |= core.step(None);
        }
        self.outcome().map(|()| goes_on)
    }

    /// One warp issues one instruction. Whether the warp exists and was ready to.
    ///
    /// # Errors
    ///
    /// The trap of the lowest core that has trapped.
    pub fn step_warp(&mut self, core: u16, warp: u8) -> Result<bool, Box<Trap>> {
        let core = self.cores.get_mut(usize::from(core));
        let was_ready = core.is_some_and(|core| core.step_warp(warp, None));
        self.outcome().map(|()| was_ready)
    }

    /// Steps until a warp is about to issue the instruction at `pc`: the core and the warp. `None`
    /// if the machine comes to its end before. Where one stands there already it is not stepped.
    ///
    /// # Errors
    ///
    /// The trap of the lowest core that has trapped.
    pub fn run_until(&mut self, pc: u64) -> Result<Option<(u16, u8)>, Box<Trap>> {
        loop {
            let found = self
                .warps()
                .find(|(_, _, warp)| warp.status() == WarpStatus::Ready && warp.pc() == pc);
            if let Some((core, warp, _)) = found {
                return Ok(Some((core, warp)));
            }
            if !self.step()? {
                return Ok(None);
            }
        }
    }

    /// The trap of the lowest core that has trapped.
    fn outcome(&self) -> Result<(), Box<Trap>> {
        match self.cores.iter().find_map(|core| core.trap()) {
            Some(trap) => Err(Box::new(trap.clone())),
            None => Ok(()),
        }
    }

    /// Runs all cores.
    fn run_cores(&mut self) {
        let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = self.config.host_threads.unwrap_or_else(available).get();
        let threads = most.min(self.config.cores.into()).min(MAX_HOST_THREADS);
        let lowest_trap = AtomicU32::new(u32::MAX);
        // Dealt out like cards, so that cores whose work is alike spread evenly.
        let mut shares: Vec<Share<'_, 'm>> = (0..threads).map(|_| Share::new()).collect();
        for (id, core) in self.cores.iter_mut().enumerate() {
            shares[id % threads].push((index(id), core));
        }
        // Who runs a share takes it out.
        let shares: Vec<_> = shares.into_iter().map(Mutex::new).collect();
        thread::scope(|scope| {
            let mut started = 1;
            for share in &shares[1..] {
                let lowest_trap = &lowest_trap;
                let run = move || run_share(&mut take(share), lowest_trap, None);
                if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                    // The host gives no more threads.
                    break;
                }
                started += 1;
            }
            // A core may wait for any other, so the cores for which there is no thread run in turns
            // with this thread's.
            let mut own = take(&shares[0]);
            own.extend(shares[started..].iter().flat_map(take));
            run_share(&mut own, &lowest_trap, None);
        });
    }

    /// What has been spent since reset.
    pub fn stats(&self) -> Stats {
        Stats { cores: self.cores.iter().map(|core| core.stats()).collect() }
    }

    /// What has been written to the console since reset: the bytes of core 0, then those of core 1,
    /// and so on.
    pub fn console(&self) -> Vec<u8> {
        self.cores.iter().flat_map(|core| core.console()).copied().collect()
    }

    /// A warp, if it has been started.
    pub fn warp(&self, core: u16, warp: u8) -> Option<WarpView<'_>> {
        self.cores.get(usize::from(core))?.warp(warp).map(WarpView)
    }

    /// Every warp that has been started, with the numbers of its core and its own.
    pub fn warps(&self) -> impl Iterator<Item = (u16, u8, WarpView<'_>)> {
        self.cores.iter().enumerate().flat_map(|(id, core)| {
            let started = (0..).map_while(|warp| Some((warp, core.warp(warp)?)));
            started.map(move |(warp, view)| (index(id), warp, WarpView(view)))
        })
    }

    /// The machine's parameters.
    pub fn config(&self) -> &MachineConfig {
        &self.config
    }
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The number of a core.
fn index(core: usize) -> u16 {
    u16::try_from(core).expect("the configuration counts cores in 16 bits")
}

/// Cores of a host thread with their numbers.
type Share<'a, 'm> = Vec<(u16, &'a mut Box<dyn Core + 'm>)>;

fn take<'a, 'm>(share: &Mutex<Share<'a, 'm>>) -> Share<'a, 'm> {
    mem::take(&mut *share.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs cores on this host thread, in turns, until each has ended or a core below it has trapped.
fn run_share(
    share: &mut Share<'_, '_>,
    lowest_trap: &AtomicU32,
    mut observer: Option<&mut dyn Observer>,
) {
    while !share.is_empty() {
        share.retain_mut(|(id, core)| {
            let stopped = lowest_trap.load(Ordering::Relaxed) < u32::from(*id);
            let goes_on = !stopped && core.turn(observer.as_deref_mut().map(|o| o as _));
            if core.trap().is_some() {
                lowest_trap.fetch_min(u32::from(*id), Ordering::Relaxed);
            }
            goes_on
        });
    }
}
