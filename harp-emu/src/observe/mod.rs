//! Observers of a run, instruction by instruction, and traces.
//!
//! An [`Observer`] is called before and after every instruction. The crate has two of its own: a
//! [`TraceWriter`] writes text or JSON, a [`Profile`](crate::Profile) counts.

mod access;
mod trace;

use harp_isa::{ArchId, Instruction};

pub use access::{AccessKind, LaneAccess, MemoryAccess};
pub use trace::{Trace, TraceFormat, TraceWriter};

use crate::inspect::WarpView;
use crate::trap::TrapKind;

/// Sees every instruction that a machine issues, in the order in which it issues them.
///
/// A run that is observed takes the precise path on one host thread; other runs pay nothing for it. See
/// [`Machine::run_observed`](crate::Machine::run_observed) and the methods `step_observed`,
/// `step_warp_observed` and `run_until_observed`.
///
/// A [`TraceWriter`] and a [`Profile`](crate::Profile) are observers; so is a pair of observers, and so
/// is an `Option`:
///
/// ```
/// # use harp_emu::{Machine, MachineConfig, Memory};
/// use harp_emu::{Issue, Observer, Trace, TraceFormat, TraceWriter};
///
/// /// The highest address of an instruction that was issued.
/// #[derive(Default)]
/// struct Highest(u64);
///
/// impl Observer for Highest {
///     fn issue(&mut self, issue: &Issue<'_>) {
///         self.0 = self.0.max(issue.pc);
///     }
/// }
///
/// # let arch = "4w8/8/4/1".parse()?;
/// # let memory = Memory::new(harp_isa::WordSize::Four, 4096)?;
/// # let mut code = Vec::new();
/// # for op in [harp_isa::Op::Nop {}, harp_isa::Op::Split {}, harp_isa::Op::Halt {}] {
/// #     harp_isa::encode(&op.into(), arch, &mut code)?;
/// # }
/// # memory.write(0, &code)?;
/// # let mut machine = Machine::new(MachineConfig::new(arch), &memory)?;
/// let mut highest = Highest::default();
/// let mut trace = TraceWriter::new(Trace::Divergence, TraceFormat::Text, Vec::new());
/// machine.run_observed(&mut (&mut highest, &mut trace))?;
/// assert_eq!(highest.0, 8);
/// let lines = String::from_utf8(trace.finish()?)?;
/// assert_eq!(lines, "core 0 warp 0 pc 0x4 split: 1000 -> 1000, push 1000, depth 0 -> 1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer {
    /// Called when an instruction is about to be issued. Instructions that no lane executes are issued too.
    fn issue(&mut self, issue: &Issue<'_>) {
        let _ = issue;
    }

    /// Called when the instruction last issued has been carried out or has trapped. Its effects on other
    /// warps (barriers, new warps) come after this.
    fn retire(&mut self, retire: &Retire<'_>) {
        let _ = retire;
    }
}

/// An instruction about to be issued.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// The machine.
    pub arch: ArchId,
    /// The core.
    pub core: u16,
    /// The warp.
    pub warp: u8,
    /// The instruction's address.
    pub pc: u64,
    /// The instruction.
    pub instruction: Instruction,
    /// The lanes that execute it: active, and their guard is true; lane 0 in the lowest bit. Only the first of them if
    /// the instruction is carried out once for all ([`Sharing::Once`](harp_isa::Sharing)).
    pub executing: u64,
    /// All lanes that are active and whose guard is true.
    pub enabled: u64,
    /// The warp before the instruction.
    pub state: WarpView<'a>,
}

/// An instruction that has been carried out or has trapped.
#[derive(Clone, Copy, Debug)]
pub struct Retire<'a> {
    /// The machine.
    pub arch: ArchId,
    /// The core.
    pub core: u16,
    /// The warp.
    pub warp: u8,
    /// The instruction's address.
    pub pc: u64,
    /// The instruction.
    pub instruction: Instruction,
    /// The lanes that executed it, as in [`Issue::executing`].
    pub executing: u64,
    /// The address at which the warp goes on, unless it stops. If this instruction trapped, the address of the
    /// instruction behind it.
    pub next: u64,
    /// Why it trapped, if it did. Then the run stops, or a guest's handler gets the interrupt.
    pub trap: Option<&'a TrapKind>,
    /// The warp after the instruction; its pc is not set yet.
    pub state: WarpView<'a>,
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn issue(&mut self, issue: &Issue<'_>) {
        (**self).issue(issue);
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        (**self).retire(retire);
    }
}

/// An optional observer.
impl<O: Observer> Observer for Option<O> {
    fn issue(&mut self, issue: &Issue<'_>) {
        if let Some(observer) = self {
            observer.issue(issue);
        }
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        if let Some(observer) = self {
            observer.retire(retire);
        }
    }
}

/// Two observers, called one after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn issue(&mut self, issue: &Issue<'_>) {
        self.0.issue(issue);
        self.1.issue(issue);
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        self.0.retire(retire);
        self.1.retire(retire);
    }
}
