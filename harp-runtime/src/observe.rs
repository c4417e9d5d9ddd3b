//! Observers of launches, called for each instruction.

use std::io::Write;

use harp_emu::{Issue, Machine, Observer, Retire, Stats, TraceWriter, Trap};

/// An observer of a launch: see [`Device::launch_observed`](crate::Device::launch_observed).
pub trait LaunchObserver {
    /// A warp is about to issue an instruction, `offset` bytes behind the start of the kernel's code, which is where
    /// [`Kernel::place_at`](harp_jit::Kernel::place_at) counts from; `None`: it belongs to the runtime library.
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>);

    /// The instruction last issued has been carried out or has trapped.
    fn retire(&mut self, retire: &Retire<'_>) {
        let _ = retire;
    }
}

/// A trace of a launch. Its addresses are those of the device's memory.
impl<W: Write> LaunchObserver for TraceWriter<W> {
    fn issue(&mut self, _: Option<u64>, issue: &Issue<'_>) {
        Observer::issue(self, issue);
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        Observer::retire(self, retire);
    }
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

    fn retire(&mut self, retire: &Retire<'_>) {
        self.observer.retire(retire);
    }
}
