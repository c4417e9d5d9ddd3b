//! What machines see of a core, whatever its word and lanes.

use std::any::Any;
use std::sync::Arc;

use super::still::Remains;
use crate::config::{MachineConfig, Translation};
use crate::console::SharedConsole;
use crate::device::SharedDevice;
use crate::exec::code::Codes;
use crate::host_code::{HostCode, HostTier};
use crate::inspect::Inspect;
use crate::observe::Observer;
use crate::profile::Profile;
use crate::stats::CoreStats;
use crate::tlb::PageMapping;
use crate::trap::{Trap, TrapKind};

/// A core with any word and number of lanes.
pub(crate) trait Core: Send {
    /// Resets the core.
    fn reset(&mut self, config: &MachineConfig, console: Option<&SharedConsole>);

    /// Gives the words that it stores to the device's addresses to `device`.
    fn set_device(&mut self, device: &SharedDevice);

    /// Forgets decoded code, which the host may have changed while the core was not running.
    fn resume(&mut self);

    /// Lets its warps run in host code.
    fn set_host_tier(&mut self, tier: &Arc<dyn HostTier>);

    /// Sends what it writes to `console`, and asks it for input.
    fn set_console(&mut self, console: &SharedConsole);

    /// Runs for a while. Returns whether the core has something left to do.
    fn turn(&mut self, observer: Option<&mut dyn Observer>) -> bool;

    /// Does one machine step, in which every warp that is ready issues one instruction. Returns whether the
    /// core has something left to do.
    fn step(&mut self, observer: Option<&mut dyn Observer>) -> bool;

    /// Lets warp number `warp` issue one instruction. Returns whether it was ready to.
    fn step_warp(&mut self, warp: u8, observer: Option<&mut dyn Observer>) -> bool;

    /// Stops the core with a trap of its lowest warp that is ready.
    fn halt(&mut self, kind: TrapKind);

    /// Why the core stopped before its end, if it did.
    fn trap(&self) -> Option<&Trap>;

    /// The instructions that it has issued.
    fn issued(&self) -> u64;

    /// What the core has cost so far.
    fn stats(&self) -> CoreStats;

    /// What it has written to the console.
    fn console(&self) -> &[u8];

    /// What has been collected, if anything is to be.
    fn profile(&self) -> Option<&Profile>;

    /// Where handlers of interrupts begin.
    fn interrupt_entry(&self) -> Option<u64>;

    /// Its table of pages.
    fn page_mappings(&self) -> Vec<PageMapping>;

    /// The warp with that number, if it has been started.
    fn warp(&self, warp: u8) -> Option<&dyn Inspect>;

    /// Leaves host memory and decoded code for a core of another machine, if that is worth it.
    fn spare(&mut self) -> Option<Box<dyn Spare>>;
}

/// What a core leaves for one of another machine.
pub(crate) trait Spare: Any + Send {
    /// Takes out the code that was decoded, if there is any.
    fn take_code(&mut self) -> Option<LeftCode>;

    /// Has this code instead of its own.
    fn put_code(&mut self, code: Option<LeftCode>);
}

/// The code that a core leaves: what it has decoded, and host code.
pub(crate) struct LeftCode {
    pub(super) decoded: Codes,
    pub(super) host: Option<Box<dyn HostCode>>,
}

impl LeftCode {
    /// None so far.
    pub(super) fn nothing(config: &MachineConfig) -> LeftCode {
        let translates = config.translation == Translation::Tlb;
        let decoded = Codes::new(config.arch, config.state_share(), translates);
        LeftCode { decoded, host: None }
    }
}

/// A core with all the state that it needs to run.
pub(crate) trait Whole: Core {
    /// Gives up everything but what can be inspected.
    fn remains(&mut self) -> Remains;

    /// Becomes core number `core` at reset.
    fn reuse(&mut self, config: &MachineConfig, core: u16);
}
