//! Lazy cores, which keep only their inspectable state while they do not run.
//!
//! A running core keeps registers of 64 lanes and decoded code for fast access: tens of kilobytes. With
//! thousands of cores, most have not begun or have ended, and nearly all of their state is zero. A [`Lazy`]
//! core is made when it first runs, and when it has ended only its [`Remains`] are kept.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use super::make::at_reset;
use super::{Core, Lanes, Spare, Whole};
use crate::config::MachineConfig;
use crate::console::SharedConsole;
use crate::device::SharedDevice;
use crate::host_code::HostTier;
use crate::inspect::{Inspect, SavedState, WarpState};
use crate::memory::Memory;
use crate::observe::Observer;
use crate::profile::Profile;
use crate::stats::{CoreStats, WarpStats};
use crate::tlb::PageMapping;
use crate::trap::{Trap, TrapKind};
use crate::warp::{Entry, FILE, Reg, Warp};
use crate::word::Word;

/// The inspectable state of a core that does not run.
#[derive(Default)]
pub(crate) struct Remains {
    /// Machine steps.
    pub(super) steps: u64,
    /// The warps that were started.
    pub(super) warps: Vec<Box<dyn Inspect + Send>>,
    pub(super) console: Vec<u8>,
    pub(super) profile: Option<Box<Profile>>,
    pub(super) interrupt_entry: Option<u64>,
    pub(super) page_mappings: Vec<PageMapping>,
}

/// What lazy cores share.
pub(crate) struct Shared<'m> {
    config: MachineConfig,
    memory: &'m Memory,
    /// Unused cores, whose memory other cores reuse. Freeing it would fragment the host's memory.
    spare: Mutex<Vec<Box<dyn Whole + 'm>>>,
}

impl<'m> Shared<'m> {
    pub(crate) fn new(config: MachineConfig, memory: &'m Memory) -> Arc<Self> {
        Arc::new(Shared { config, memory, spare: Mutex::default() })
    }

    /// Core number `id` at reset. `None` if the host has no memory for it.
    fn take(&self, id: u16) -> Option<Box<dyn Whole + 'm>> {
        match self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(mut core) => {
                core.reuse(&self.config, id);
                Some(core)
            }
            None => at_reset(&self.config, self.memory, id, None),
        }
    }

    /// Makes a core spare, and returns its remains.
    fn put_back(&self, mut core: Box<dyn Whole + 'm>) -> Remains {
        let remains = core.remains();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(core);
        remains
    }
}

/// A core that exists while it runs.
pub(crate) struct Lazy<'m> {
    shared: Arc<Shared<'m>>,
    id: u16,
    console: Option<SharedConsole>,
    device: Option<SharedDevice>,
    host_tier: Option<Arc<dyn HostTier>>,
    state: State<'m>,
    /// Why the core could not be made, if it could not.
    trap: Option<Box<Trap>>,
}

enum State<'m> {
    /// At reset.
    Fresh(Remains),
    Live(Box<dyn Whole + 'm>),
    Ended(Remains),
}

impl<'m> Lazy<'m> {
    /// Core number `id` at reset. `None` if the host does not have memory for even one core.
    pub(crate) fn new(shared: Arc<Shared<'m>>, id: u16) -> Option<Self> {
        let state = State::Fresh(shared.put_back(shared.take(id)?));
        Some(Lazy { shared, id, console: None, device: None, host_tier: None, state, trap: None })
    }

    /// Makes a core at reset, or records a trap if the host has no memory for it.
    fn made(&mut self) -> Option<Box<dyn Whole + 'm>> {
        let core = self.shared.take(self.id);
        if core.is_none() {
            let kind = TrapKind::OutOfHostMemory { limit: self.shared.config.state_share() };
            self.trap = Some(Box::new(Trap { kind, core: self.id, warp: 0, pc: 0, lanes: 1 }));
        }
        core
    }

    /// The core, if it has not ended.
    fn live(&mut self) -> Option<&mut (dyn Whole + 'm)> {
        if let (State::Fresh(_), None) = (&self.state, &self.trap)
            && let Some(mut core) = self.made()
        {
            if let Some(console) = &self.console {
                core.set_console(console);
            }
            if let Some(device) = &self.device {
                core.set_device(device);
            }
            if let Some(tier) = &self.host_tier {
                core.set_host_tier(tier);
            }
            self.state = State::Live(core);
        }
        match &mut self.state {
            State::Live(core) => Some(&mut **core),
            State::Fresh(_) | State::Ended(_) => None,
        }
    }

    /// The core, or its remains.
    fn seen(&self) -> Result<&(dyn Whole + 'm), &Remains> {
        match &self.state {
            State::Live(core) => Ok(&**core),
            State::Fresh(remains) | State::Ended(remains) => Err(remains),
        }
    }

    /// Reduces the core to its remains if it has ended without a trap. Returns whether it has something left to do.
    fn rest(&mut self, goes_on: bool) -> bool {
        if !goes_on && self.trap().is_none() {
            let nothing = State::Ended(Remains::default());
            self.state = match mem::replace(&mut self.state, nothing) {
                State::Live(core) => State::Ended(self.shared.put_back(core)),
                other => other,
            };
        }
        goes_on
    }
}

impl Core for Lazy<'_> {
    fn reset(&mut self, config: &MachineConfig, console: Option<&SharedConsole>) {
        self.console = console.cloned();
        self.trap = None;
        match &mut self.state {
            State::Fresh(_) => {}
            State::Live(core) => core.reset(config, console),
            State::Ended(_) => {
                if let Some(core) = self.made() {
                    self.state = State::Fresh(self.shared.put_back(core));
                }
            }
        }
    }

    fn resume(&mut self) {
        if let State::Live(core) = &mut self.state {
            core.resume();
        }
    }

    fn set_host_tier(&mut self, tier: &Arc<dyn HostTier>) {
        self.host_tier = Some(tier.clone());
        if let State::Live(core) = &mut self.state {
            core.set_host_tier(tier);
        }
    }

    fn set_console(&mut self, console: &SharedConsole) {
        self.console = Some(console.clone());
        if let State::Live(core) = &mut self.state {
            core.set_console(console);
        }
    }

    fn set_device(&mut self, device: &SharedDevice) {
        self.device = Some(device.clone());
        if let State::Live(core) = &mut self.state {
            core.set_device(device);
        }
    }

    fn turn(&mut self, observer: Option<&mut dyn Observer>) -> bool {
        let goes_on = self.live().is_some_and(|core| core.turn(observer));
        self.rest(goes_on)
    }

    fn step(&mut self, observer: Option<&mut dyn Observer>) -> bool {
        let goes_on = self.live().is_some_and(|core| core.step(observer));
        self.rest(goes_on)
    }

    fn step_warp(&mut self, warp: u8, observer: Option<&mut dyn Observer>) -> bool {
        self.live().is_some_and(|core| core.step_warp(warp, observer))
    }

    fn halt(&mut self, kind: TrapKind) {
        if let Some(core) = self.live() {
            core.halt(kind);
        }
    }

    fn trap(&self) -> Option<&Trap> {
        self.trap.as_deref().or_else(|| self.seen().ok()?.trap())
    }

    fn issued(&self) -> u64 {
        match self.seen() {
            Ok(core) => core.issued(),
            Err(remains) => remains.warps.iter().map(|warp| warp.state().stats.steps).sum(),
        }
    }

    fn stats(&self) -> CoreStats {
        match self.seen() {
            Ok(core) => core.stats(),
            Err(remains) => {
                let mut warps: Vec<_> =
                    remains.warps.iter().map(|warp| warp.state().stats).collect();
                warps.resize(self.shared.config.arch.warps().into(), WarpStats::default());
                CoreStats { steps: remains.steps, warps }
            }
        }
    }

    fn console(&self) -> &[u8] {
        self.seen().map_or_else(|remains| &remains.console[..], |core| core.console())
    }

    fn profile(&self) -> Option<&Profile> {
        self.seen().map_or_else(|remains| remains.profile.as_deref(), |core| core.profile())
    }

    fn interrupt_entry(&self) -> Option<u64> {
        match self.seen() {
            Ok(core) => core.interrupt_entry(),
            Err(remains) => remains.interrupt_entry,
        }
    }

    fn page_mappings(&self) -> Vec<PageMapping> {
        match self.seen() {
            Ok(core) => core.page_mappings(),
            Err(remains) => remains.page_mappings.clone(),
        }
    }

    fn warp(&self, warp: u8) -> Option<&dyn Inspect> {
        match self.seen() {
            Ok(core) => core.warp(warp),
            Err(remains) => Some(&**remains.warps.get(usize::from(warp))?),
        }
    }

    fn spare(&mut self) -> Option<Box<dyn Spare>> {
        None
    }
}

impl<W: Word, const C: usize> Whole for Lanes<'_, W, C> {
    fn remains(&mut self) -> Remains {
        let lanes = self.env.lanes.into();
        let still = |warp: &Warp<W, C>| Box::new(Still::of(warp, lanes)) as Box<dyn Inspect + Send>;
        Remains {
            steps: self.stats().steps,
            warps: self.warps.iter().map(still).collect(),
            interrupt_entry: self.interrupt_entry(),
            page_mappings: self.page_mappings(),
            console: mem::take(&mut self.system.console.output),
            profile: self.profile.take(),
        }
    }

    fn reuse(&mut self, config: &MachineConfig, core: u16) {
        self.env.core = core;
        self.system.device = None;
        self.reset(config, None);
    }
}

/// The inspectable state of a warp, without registers and predicates that are zero.
struct Still<W> {
    state: WarpState,
    saved: Option<Box<SavedState>>,
    stack: Box<[Entry]>,
    /// Lanes that there is room for.
    lanes: usize,
    /// Registers by number, up to the last lane that is not zero.
    regs: Box<[(usize, Box<[W]>)]>,
    /// Predicates by number.
    preds: Box<[(usize, u64)]>,
}

impl<W: Word> Still<W> {
    /// The state of a warp of a machine with `lanes` lanes.
    fn of<const C: usize>(warp: &Warp<W, C>, lanes: usize) -> Still<W> {
        let row = |(number, reg): (usize, &Reg<W, C>)| {
            let lanes = &reg.as_flattened()[..lanes];
            let last = lanes.iter().rposition(|&word| word != W::ZERO)?;
            Some((number, Box::from(&lanes[..=last])))
        };
        let preds = warp.preds.iter().copied().enumerate();
        Still {
            state: warp.state(),
            saved: warp.saved().map(Box::new),
            stack: warp.stack.as_slice().into(),
            lanes: warp.regs[0].as_flattened().len(),
            regs: warp.regs.iter().enumerate().filter_map(row).collect(),
            preds: preds.filter(|&(_, bits)| bits != 0).collect(),
        }
    }
}

impl<W: Word> Inspect for Still<W> {
    fn state(&self) -> WarpState {
        self.state
    }

    fn saved(&self) -> Option<SavedState> {
        self.saved.as_deref().cloned()
    }

    fn gpr(&self, reg: usize, lane: usize) -> Option<u64> {
        let is_there = reg < FILE && lane < self.lanes;
        let row = self.regs.iter().find(|(number, _)| *number == reg);
        let word = row.and_then(|(_, row)| row.get(lane)).map_or(0, |word| word.to_u64());
        is_there.then_some(word)
    }

    fn pred(&self, pred: usize) -> u64 {
        self.preds.iter().find(|(number, _)| *number == pred).map_or(0, |&(_, bits)| bits)
    }

    fn stack(&self) -> &[Entry] {
        &self.stack
    }
}
