//! Looking on at launches, instruction by instruction.

use harp_emu::{Issue, Machine, Observer, Stats, Trap};

/// Who looks on at a launch: [`Device::launch_observed`](crate::Device::launch_observed).
pub trait LaunchObserver {
    /// A warp is about to issue an instruction, `offset` bytes behind the start of the kernel's code, which is where
    /// [`Kernel::place_at`](harp_jit::Kernel::place_at) counts from; `None`: it is the runtime library's.
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>);
}

/// An observer of any type that runs a machine compiled for it.
pub(crate) trait Watch {
    /// Runs `machine`, on which the kernel lies at `start`, under the eyes of this observer.
    fn watch(&mut self, machine: &mut Machine<'_>, start: u64) -> Result<Stats, Box<Trap>>;
}

impl<O: LaunchObserver> Watch for O {
    fn watch(&mut self, machine: &mut Machine<'_>, start: u64) -> Result<Stats, Box<Trap>> {
        machine.run_observed(&mut FromStart { start, observer: self })
    }
}

/// Counts addresses from the kernel's start.
struct FromStart<'a, O> {
    start: u64,
    observer: &'a mut O,
}

impl<O: LaunchObserver> Observer for FromStart<'_, O> {
    fn issue(&mut self, issue: &Issue<'_>) {
        self.observer.issue(issue.pc.checked_sub(self.start), issue);
    }
}
