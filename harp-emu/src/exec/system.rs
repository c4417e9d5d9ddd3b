//! The state of a core, besides its warps, that instructions change.

use super::audit::Audit;
use super::decoded::Decoded;
use crate::config::{MachineConfig, Translation};
use crate::console::{CoreConsole, SharedConsole};
use crate::device::SharedDevice;
use crate::tlb::Tlb;

/// A core's devices and tables.
pub(crate) struct System {
    pub(crate) console: CoreConsole,
    pub(crate) device: Option<SharedDevice>,
    /// Where the interrupt handler begins, once `skep` has set it.
    pub(crate) entry: Option<u64>,
    pub(crate) tlb: Tlb,
    /// What is left of the host memory that the core's warps may take, in bytes.
    pub(crate) state_left: u64,
    /// Ranges whose decoded code may have to be forgotten, since the run loop was last left, each as its first
    /// and last byte: stores, and pages that can no longer be fetched from.
    pub(crate) changed: Vec<(u64, u64)>,
    /// What lanes have written to shared registers, if that is to be checked.
    pub(crate) audit: Option<Box<Audit>>,
    /// The precise path's decoded instructions.
    pub(crate) decoded: Decoded,
}

impl System {
    pub(crate) fn at_reset(
        config: &MachineConfig,
        core: u16,
        outside: Option<SharedConsole>,
        device: Option<SharedDevice>,
    ) -> System {
        System {
            console: CoreConsole::new(core, &config.input, outside),
            device,
            entry: None,
            tlb: Tlb::at_reset(config.translation == Translation::Tlb),
            state_left: config.state_share(),
            changed: Vec::new(),
            audit: (config.audit_shared && config.arch.has_shared())
                .then(|| Box::new(Audit::new(config.arch))),
            decoded: Decoded::default(),
        }
    }
}
