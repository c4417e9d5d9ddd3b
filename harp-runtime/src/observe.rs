//! Observers of launches, called for each instruction.

use harp_emu::{Issue, Machine, Observer, Stats, Trap};

/// An observer of a launch: see [`Device::launch_observed`](crate::Device::launch_observed).
pub trait LaunchObserver {
    /// A warp is about to issue an instruction, `offset` bytes behind the start of the kernel's code, which is where
    /// [`Kernel::place_at`](harp_jit::Kernel::place_at) counts from; `None`: it belongs to the runtime library.
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>);
}

/// A launch observer behind a trait object, which runs a machine with observation code for its own type.
pub(crate) trait Watch {
    /// Runs `machine`, whose kernel lies at `start`, and shows this observer every instruction.
    fn watch(&mut self, machine: &mut Machine<'_>, start: u64) -> Result<Stats, Box<Trap>>;
}

impl<O: LaunchObserver> Watch for O {
    fn watch(&mut self, machine: &mut Machine<'_>, start: u64) -> Result<Stats, Box<Trap>> {
        machine.run_observed(&mut FromStart { start, observer: self })
    }
}

/// Turns addresses into offsets from the kernel's start.
struct FromStart<'a, O> {
    start: u64,
    observer: &'a mut O,
}

impl<O: LaunchObserver> Observer for FromStart<'_, O> {
    fn issue(&mut self, issue: &Issue<'_>) {
        self.observer.issue(issue.pc.checked_sub(self.start), issue);
    }
}
