//! The machine: cores over a shared memory, on host threads.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use harp_isa::WordSize;
use thiserror::Error;

use crate::config::MachineConfig;
use crate::core::{self, Outcome};
use crate::memory::Memory;
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
#[derive(Debug)]
pub struct Machine<'m> {
    config: MachineConfig,
    memory: &'m Memory,
    stats: Stats,
    console: Vec<u8>,
}

impl<'m> Machine<'m> {
    /// A machine that runs what `memory` holds.
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
        Ok(Machine { config, memory, stats: Stats::default(), console: Vec::new() })
    }

    /// Runs from reset until no warp of any core is active: each core starts with warp 0 at address
    /// 0, lane 0 active, in supervisor mode, `%r0` = (lanes << half a word) | core number.
    ///
    /// Whatever the outcome, [`stats`](Self::stats) and [`console`](Self::console) tell about this
    /// run afterwards. A machine may run again; it starts from reset with the memory as it is.
    ///
    /// # Errors
    ///
    /// The trap of the lowest core that traps. A core that traps stops the cores above it soon;
    /// those below go on, because one of them may trap too: so the trap reported does not depend
    /// on the number of host threads. How far the cores above it have come does.
    pub fn run(&mut self) -> Result<Stats, Box<Trap>> {
        let outcomes = self.run_cores();
        self.console = outcomes.iter().flat_map(|outcome| &outcome.console).copied().collect();
        let mut trap = None;
        let mut cores = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            trap = trap.or(outcome.trap);
            cores.push(outcome.stats);
        }
        self.stats = Stats { cores };
        match trap {
            Some(trap) => Err(trap),
            None => Ok(self.stats.clone()),
        }
    }

    /// Runs all cores; their outcomes in the order of cores.
    fn run_cores(&self) -> Vec<Outcome> {
        let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = self.config.host_threads.unwrap_or_else(available).get();
        let threads = most.min(self.config.cores.into()).min(MAX_HOST_THREADS);
        let lowest_trap = AtomicU32::new(u32::MAX);
        // Dealt out like cards, so that cores whose work is alike spread evenly.
        let share = |first: usize| (0..self.config.cores).skip(first).step_by(threads);
        let mut outcomes: Vec<(u16, Outcome)> = thread::scope(|scope| {
            let (mut own, mut others) = (share(0).collect::<Vec<_>>(), Vec::new());
            for first in 1..threads {
                let (cores, lowest_trap) = (share(first), &lowest_trap);
                let run = move || self.run_share(cores, lowest_trap);
                match thread::Builder::new().spawn_scoped(scope, run) {
                    Ok(other) => others.push(other),
                    // The host gives no more threads. A core may wait for any other, so the cores
                    // that are left run in turns with this thread's.
                    Err(_) => {
                        own.extend((first..threads).flat_map(share));
                        break;
                    }
                }
            }
            let mut outcomes = self.run_share(own.into_iter(), &lowest_trap);
            for other in others {
                outcomes.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            outcomes
        });
        outcomes.sort_by_key(|&(core, _)| core);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Runs some of the cores on this host thread, in turns, until each has ended or a core below
    /// it has trapped.
    fn run_share(
        &self,
        cores: impl Iterator<Item = u16>,
        lowest_trap: &AtomicU32,
    ) -> Vec<(u16, Outcome)> {
        let mut running: Vec<_> =
            cores.map(|id| (id, core::at_reset(&self.config, self.memory, id))).collect();
        let mut outcomes = Vec::with_capacity(running.len());
        while !running.is_empty() {
            let mut still_running = Vec::with_capacity(running.len());
            for (id, mut core) in running {
                let stopped = lowest_trap.load(Ordering::Relaxed) < id.into();
                if !stopped && core.turn() {
                    still_running.push((id, core));
                    continue;
                }
                let outcome = core.finish();
                if outcome.trap.is_some() {
                    lowest_trap.fetch_min(id.into(), Ordering::Relaxed);
                }
                outcomes.push((id, outcome));
            }
            running = still_running;
        }
        outcomes
    }

    /// What the last run cost, whether it trapped or not.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What the last run wrote to the console: the bytes of core 0, then those of core 1, and so on.
    pub fn console(&self) -> &[u8] {
        &self.console
    }

    /// The machine's parameters.
    pub fn config(&self) -> &MachineConfig {
        &self.config
    }
}
