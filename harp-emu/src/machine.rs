//! The machine: cores over a shared memory, on host threads.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::{fmt, mem, thread};

use harp_isa::{ArchId, WordSize};
use thiserror::Error;

use crate::config::{MachineConfig, Schedule, Translation};
use crate::console::{Console, SharedConsole};
use crate::core::{self, Core};
use crate::device::{Device, SharedDevice};
use crate::host_code::HostTier;
use crate::inspect::{WarpStatus, WarpView};
use crate::memory::Memory;
use crate::observe::Observer;
use crate::profile::Profile;
use crate::random::Random;
use crate::stats::Stats;
use crate::stop::{CancelToken, Stop};
use crate::tlb::PageMapping;
use crate::trap::{Trap, TrapKind};

/// The most host threads, however many are asked for. Near the host's limits a new thread may abort the
/// process instead of failing to start.
const MAX_HOST_THREADS: usize = 1024;

/// The host threads that may run at the same time, asked for once: the answer takes longer than a small launch.
static AVAILABLE: LazyLock<NonZeroUsize> =
    LazyLock::new(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

/// Why a machine was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A machine without cores.
    #[error("a machine has at least one core")]
    NoCores,
    /// The registers take more of the host's memory than they may (see
    /// [`MachineConfig::state_limit`]), or than there is.
    #[error("the first warps of all cores take {given} bytes of host memory, the limit is {limit}")]
    TooLarge {
        /// Bytes that they take.
        given: u64,
        /// The limit.
        limit: u64,
    },
    /// The memory is made of words of another size.
    #[error("the memory has words of {memory} bytes, the machine of {machine} bytes")]
    WordSize {
        /// Bytes of the memory's words.
        memory: u8,
        /// Bytes of the machine's.
        machine: u8,
    },
}

/// A HARP machine over a guest memory.
///
/// A new machine is at reset. It can run to its end, or step by step. In between its state can be inspected.
pub struct Machine<'m> {
    config: MachineConfig,
    cores: Vec<Box<dyn Core + 'm>>,
    console: Option<SharedConsole>,
    cancel_token: Option<CancelToken>,
    memory_bytes: u64,
    /// Whether a run or a step has begun. Between runs the host may change the code.
    has_run: bool,
}

/// What a machine [leaves](Machine::into_spare) for the next one: host memory for registers, and code that it has
/// decoded. The next machine starts sooner, and is otherwise like one made without.
pub struct Spare {
    kind: Kind,
    cores: Vec<Box<dyn core::Spare>>,
}

/// Code that a machine had decoded, taken out of [what it has left](Spare::take_code).
pub struct SpareCode {
    kind: Kind,
    cores: Vec<core::LeftCode>,
}

/// Of what kind cores and memory are: machines of one kind can use what others have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    arch: ArchId,
    cores: u16,
    translation: Translation,
    state_limit: u64,
    memory_bytes: u64,
}

impl Kind {
    fn of(config: &MachineConfig, memory_bytes: u64) -> Kind {
        let &MachineConfig { arch, cores, translation, state_limit, .. } = config;
        Kind { arch, cores, translation, state_limit, memory_bytes }
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for SpareCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareCode").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Spare {
    /// Takes the decoded code out: the next machine may run other code.
    pub fn take_code(&mut self) -> SpareCode {
        let cores = self.cores.iter_mut().filter_map(|core| core.take_code()).collect();
        SpareCode { kind: self.kind, cores }
    }

    /// The same with this code instead of its own. Code of a machine of another kind is of no use, and is dropped.
    ///
    /// What [`Machine::with_spare`] says of the memory concerns this code then, too.
    #[must_use]
    pub fn with_code(mut self, code: SpareCode) -> Spare {
        let fits = code.kind == self.kind;
        let mut codes = code.cores.into_iter().filter(|_| fits);
        self.cores.iter_mut().for_each(|core| core.put_code(codes.next()));
        self
    }
}

impl<'m> Machine<'m> {
    /// A machine that runs what `memory` holds, at reset: each core has started its warp 0 at address
    /// 0, with lane 0 active, in supervisor mode, and `%r0` = (lanes << half a word) | core number.
    ///
    /// # Errors
    ///
    /// If there is no core, the memory is for machines of the other word size, or the registers would take
    /// more of the host's memory than [`MachineConfig::state_limit`] permits or the host has.
    pub fn new(config: MachineConfig, memory: &'m Memory) -> Result<Machine<'m>, MachineError> {
        Machine::of_cores(config, memory, Vec::new())
    }

    /// As [`new`](Self::new), of what another machine has left. If that machine's configuration was of another kind,
    /// it is of no use, and is dropped.
    ///
    /// Decoded instructions below [`MachineConfig::read_only_below`] are taken over. The memory below this address
    /// must hold the same instructions as at the end of the other machine's last run, until this machine's first run
    /// begins; otherwise instructions may be executed that are not there any more.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_spare(
        config: MachineConfig,
        memory: &'m Memory,
        spare: Spare,
    ) -> Result<Machine<'m>, MachineError> {
        let fits = spare.kind == Kind::of(&config, memory.size());
        Machine::of_cores(config, memory, if fits { spare.cores } else { Vec::new() })
    }

    /// Leaves what another machine over the same memory can use.
    pub fn into_spare(mut self) -> Spare {
        let cores = self.cores.iter_mut().filter_map(|core| core.spare()).collect();
        Spare { kind: Kind::of(&self.config, self.memory_bytes), cores }
    }

    fn of_cores(
        config: MachineConfig,
        memory: &'m Memory,
        spare: Vec<Box<dyn core::Spare>>,
    ) -> Result<Machine<'m>, MachineError> {
        if config.cores == 0 {
            return Err(MachineError::NoCores);
        }
        let bytes = WordSize::bytes;
        if memory.word() != config.arch.word() {
            let (memory, machine) = (bytes(memory.word()), bytes(config.arch.word()));
            return Err(MachineError::WordSize { memory, machine });
        }
        let given = core::least_state(&config).saturating_mul(config.cores.into());
        let limit = config.state_limit;
        let too_large = MachineError::TooLarge { given, limit };
        if core::least_state(&config) > config.state_share() {
            return Err(too_large);
        }
        let cores = core::all_at_reset(&config, memory, spare).ok_or(too_large)?;
        let memory_bytes = memory.size();
        let (console, cancel_token) = (None, None);
        Ok(Machine { config, memory_bytes, cores, console, cancel_token, has_run: false })
    }

    /// Resets the machine. The memory stays as it is, and so does the console.
    pub fn reset(&mut self) {
        for core in &mut self.cores {
            core.reset(&self.config, self.console.as_ref());
        }
    }

    /// Sends what cores write to the console to `console`, byte by byte, instead of keeping it for
    /// [`console`](Self::console). Loads from the console take what is left of
    /// [`MachineConfig::input`], then ask `console`.
    pub fn set_console(&mut self, console: impl Console + 'static) {
        let console: SharedConsole = Arc::new(Mutex::new(console));
        self.cores.iter_mut().for_each(|core| core.set_console(&console));
        self.console = Some(console);
    }

    /// Gives the words that lanes store to `addresses` to `device`. These must lie in the upper half of the address
    /// space, above the console. Machines that translate addresses do not
    /// use it.
    pub fn set_device(&mut self, addresses: Range<u64>, device: Arc<Mutex<dyn Device>>) {
        let device = SharedDevice { addresses, device };
        self.cores.iter_mut().for_each(|core| core.set_device(&device));
    }

    /// Lets warps run in host code of `tier`, where it has some. The results are the same. It is not used where
    /// addresses are translated, on the precise path, or where a run is observed.
    pub fn set_host_tier(&mut self, tier: &Arc<dyn HostTier>) {
        self.cores.iter_mut().for_each(|core| core.set_host_tier(tier));
    }

    /// Lets `token` cancel this and later runs.
    pub fn set_cancel_token(&mut self, token: CancelToken) {
        self.cancel_token = Some(token);
    }

    /// Runs until no warp of any core is active.
    ///
    /// Whatever the outcome, [`stats`](Self::stats) and [`console`](Self::console) afterwards cover
    /// everything since reset.
    ///
    /// # Errors
    ///
    /// The first trap: that of the core which had issued the fewest instructions; of several such cores, the lowest. The
    /// others go on until they have issued more, because one of them may trap too, and no further, because they may wait
    /// for the one that has trapped. If the host stops the run, that is the trap of each core, unless one has trapped
    /// before. So the trap reported does not depend on the number of host threads, but the progress
    /// of the other cores does. A core that has trapped does not run again until [`reset`](Self::reset).
    pub fn run(&mut self) -> Result<Stats, Box<Trap>> {
        self.run_cores();
        self.outcome().map(|()| self.stats())
    }

    /// As [`run`](Self::run), on this host thread, with `observer` called for every instruction.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_observed(&mut self, observer: &mut dyn Observer) -> Result<Stats, Box<Trap>> {
        self.has_run = true;
        let order = self.order();
        let mut share = self.cores.iter_mut().collect();
        let first_trap = AtomicU64::new(u64::MAX);
        let stop = Stop::new(self.cancel_token.as_ref(), self.config.time_limit);
        run_share(&mut share, stop, &first_trap, order, Some(observer));
        self.outcome().map(|()| self.stats())
    }

    /// Does one machine step: every warp that is ready, of every core, issues one instruction, whatever
    /// the schedule. Returns whether anything is left to do.
    ///
    /// # Errors
    ///
    /// The first trap, as [`run`](Self::run) says.
    pub fn step(&mut self) -> Result<bool, Box<Trap>> {
        self.step_all(None)
    }

    /// As [`step`](Self::step), with `observer` called for every instruction.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_observed(&mut self, observer: &mut dyn Observer) -> Result<bool, Box<Trap>> {
        self.step_all(Some(observer))
    }

    /// Lets one warp issue one instruction. Returns whether the warp exists and was ready to.
    ///
    /// # Errors
    ///
    /// The first trap, as [`run`](Self::run) says.
    pub fn step_warp(&mut self, core: u16, warp: u8) -> Result<bool, Box<Trap>> {
        self.step_one(core, warp, None)
    }

    /// As [`step_warp`](Self::step_warp), with `observer` called for the instruction.
    ///
    /// # Errors
    ///
    /// As [`step_warp`](Self::step_warp).
    pub fn step_warp_observed(
        &mut self,
        core: u16,
        warp: u8,
        observer: &mut dyn Observer,
    ) -> Result<bool, Box<Trap>> {
        self.step_one(core, warp, Some(observer))
    }

    /// Steps until a warp is about to issue the instruction at `pc`, and returns its core and the warp. `None`
    /// if the machine ends before. If a warp is already there, no step is taken.
    ///
    /// # Errors
    ///
    /// The first trap, as [`run`](Self::run) says.
    pub fn run_until(&mut self, pc: u64) -> Result<Option<(u16, u8)>, Box<Trap>> {
        self.step_until(pc, None)
    }

    /// As [`run_until`](Self::run_until), with `observer` called for every instruction.
    ///
    /// # Errors
    ///
    /// As [`run_until`](Self::run_until).
    pub fn run_until_observed(
        &mut self,
        pc: u64,
        observer: &mut dyn Observer,
    ) -> Result<Option<(u16, u8)>, Box<Trap>> {
        self.step_until(pc, Some(observer))
    }

    /// Forgets code decoded in earlier runs, which the host may have changed since.
    fn forget_code(&mut self) {
        if mem::replace(&mut self.has_run, true) {
            self.cores.iter_mut().for_each(|core| core.resume());
        }
    }

    fn step_all(&mut self, mut observer: Option<&mut dyn Observer>) -> Result<bool, Box<Trap>> {
        self.has_run = true;
        let mut goes_on = false;
        for core in &mut self.cores {
            goes_on |= core.step(observer.as_deref_mut().map(|o| o as _));
        }
        self.outcome().map(|()| goes_on)
    }

    fn step_one(
        &mut self,
        core: u16,
        warp: u8,
        observer: Option<&mut dyn Observer>,
    ) -> Result<bool, Box<Trap>> {
        self.has_run = true;
        let core = self.cores.get_mut(usize::from(core));
        let was_ready = core.is_some_and(|core| core.step_warp(warp, observer));
        self.outcome().map(|()| was_ready)
    }

    fn step_until(
        &mut self,
        pc: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Option<(u16, u8)>, Box<Trap>> {
        loop {
            let found = self
                .warps()
                .find(|(_, _, warp)| warp.status() == WarpStatus::Ready && warp.pc() == pc);
            if let Some((core, warp, _)) = found {
                return Ok(Some((core, warp)));
            }
            if !self.step_all(observer.as_deref_mut().map(|o| o as _))? {
                return Ok(None);
            }
        }
    }

    /// The first trap, as [`run`](Self::run) says.
    fn outcome(&self) -> Result<(), Box<Trap>> {
        let traps = self.cores.iter().filter_map(|core| Some((core.issued(), core.trap()?)));
        let order = |(issued, trap): &(u64, &Trap)| match is_of_host(&trap.kind) {
            true => (true, 0),
            false => (false, *issued),
        };
        match traps.min_by_key(order) {
            Some((_, trap)) => Err(Box::new(trap.clone())),
            None => Ok(()),
        }
    }

    /// Runs all cores.
    fn run_cores(&mut self) {
        self.forget_code();
        let order = self.order();
        let most = match order {
            Some(_) => 1,
            None => self.config.host_threads.unwrap_or_else(|| *AVAILABLE).get(),
        };
        let threads = most.min(self.config.cores.into()).min(MAX_HOST_THREADS);
        let stop = Stop::new(self.cancel_token.as_ref(), self.config.time_limit);
        let first_trap = AtomicU64::new(u64::MAX);
        // Dealt out in turn, so that neighbouring cores, whose work is often similar, spread evenly.
        let mut shares: Vec<Share<'_, 'm>> = (0..threads).map(|_| Share::new()).collect();
        for (id, core) in self.cores.iter_mut().enumerate() {
            shares[id % threads].push(core);
        }
        // The thread that runs a share takes it out.
        let shares: Vec<_> = shares.into_iter().map(Mutex::new).collect();
        thread::scope(|scope| {
            let mut started = 1;
            for share in &shares[1..] {
                let first_trap = &first_trap;
                let run = move || run_share(&mut take(share), stop, first_trap, None, None);
                if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                    // The host cannot start more threads.
                    break;
                }
                started += 1;
            }
            // A core may wait for any other, so the cores for which there is no thread run in turns
            // with this thread's.
            let mut own = take(&shares[0]);
            own.extend(shares[started..].iter().flat_map(take));
            run_share(&mut own, stop, &first_trap, order, None);
        });
    }

    /// The random order in which cores take turns, if the schedule is seeded.
    fn order(&self) -> Option<Random> {
        match self.config.schedule {
            Schedule::Seeded(seed) => Some(Random::new(seed, self.config.cores.into())),
            Schedule::Step | Schedule::Quantum(_) => None,
        }
    }

    /// The counts since reset.
    pub fn stats(&self) -> Stats {
        Stats { cores: self.cores.iter().map(|core| core.stats()).collect() }
    }

    /// What has been collected since reset, all cores together; empty unless
    /// [`collect`](MachineConfig::collect) asks for something. As exact as [`stats`](Self::stats).
    pub fn profile(&self) -> Profile {
        let MachineConfig { arch, collect, segment_bytes, .. } = self.config;
        let mut all = Profile::new(arch, collect, segment_bytes);
        self.cores.iter().filter_map(|core| core.profile()).for_each(|one| all.merge(one));
        all
    }

    /// What has been written to the console since reset: the bytes of core 0, then those of core 1,
    /// and so on. Does not include what has gone to a [`Console`].
    pub fn console(&self) -> Vec<u8> {
        self.cores.iter().flat_map(|core| core.console()).copied().collect()
    }

    /// The address of a core's interrupt handler; `None` before `skep` has set it, or if there is no such
    /// core.
    pub fn interrupt_entry(&self, core: u16) -> Option<u64> {
        self.cores.get(usize::from(core))?.interrupt_entry()
    }

    /// A core's page table, by virtual address; empty if there is no such core. It is used with
    /// [`Translation::Tlb`] only.
    pub fn page_mappings(&self, core: u16) -> Vec<PageMapping> {
        self.cores.get(usize::from(core)).map_or_else(Vec::new, |core| core.page_mappings())
    }

    /// A warp, if it has been started.
    pub fn warp(&self, core: u16, warp: u8) -> Option<WarpView<'_>> {
        self.cores.get(usize::from(core))?.warp(warp).map(WarpView::new)
    }

    /// Every warp that has been started, with the numbers of its core and its own.
    pub fn warps(&self) -> impl Iterator<Item = (u16, u8, WarpView<'_>)> {
        self.cores.iter().enumerate().flat_map(|(id, core)| {
            let started = (0..).map_while(|warp| Some((warp, core.warp(warp)?)));
            started.map(move |(warp, view)| (index(id), warp, WarpView::new(view)))
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

/// Whether the host has stopped the run.
fn is_of_host(kind: &TrapKind) -> bool {
    matches!(kind, TrapKind::TimeLimit { .. } | TrapKind::Cancelled)
}

/// Cores of a host thread.
type Share<'a, 'm> = Vec<&'a mut Box<dyn Core + 'm>>;

fn take<'a, 'm>(share: &Mutex<Share<'a, 'm>>) -> Share<'a, 'm> {
    mem::take(&mut *share.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs cores on this host thread, in turns, until each has ended, or issued more instructions than one that has trapped:
/// the fewest of such are kept in `first_trap`. The order of turns is that of `share`, or random each time if there is an
/// `order`. `stop` may stop each core after a turn.
fn run_share(
    share: &mut Share<'_, '_>,
    stop: Stop<'_>,
    first_trap: &AtomicU64,
    mut order: Option<Random>,
    mut observer: Option<&mut dyn Observer>,
) {
    while !share.is_empty() {
        if let Some(random) = &mut order {
            // Fisher and Yates' shuffle.
            for last in (1..share.len()).rev() {
                share.swap(last, random.below(last as u64 + 1) as usize);
            }
        }
        share.retain_mut(|core| {
            let stopped = core.issued() > first_trap.load(Ordering::Relaxed);
            let mut goes_on = !stopped && core.turn(observer.as_deref_mut().map(|o| o as _));
            if let (true, Some(reason)) = (goes_on, stop.reason()) {
                core.halt(reason);
                goes_on = core.trap().is_none();
            }
            if core.trap().is_some_and(|trap| !is_of_host(&trap.kind)) {
                first_trap.fetch_min(core.issued(), Ordering::Relaxed);
            }
            goes_on
        });
    }
}
