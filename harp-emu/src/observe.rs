//! Seeing a run instruction by instruction.

use harp_isa::Instruction;

use crate::inspect::WarpView;
use crate::trap::TrapKind;

/// Sees every instruction that a machine issues, in the order in which it issues them.
///
/// A run that is observed takes the precise path on one host thread; runs that are not pay nothing
/// for it. See [`Machine::run_observed`](crate::Machine::run_observed).
pub trait Observer {
    /// An instruction is about to be issued. Those that no lane executes are issued too.
    fn issue(&mut self, issue: &Issue<'_>);

    /// The instruction last issued has been carried out or has trapped. What it asks of other warps
    /// (barriers, new warps) comes after this.
    fn retire(&mut self, retire: &Retire<'_>);
}

/// An instruction about to be issued.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// The core.
    pub core: u16,
    /// The warp.
    pub warp: u8,
    /// The instruction's address.
    pub pc: u64,
    /// The instruction.
    pub instruction: Instruction,
    /// The lanes that execute it: active, and their guard is true.
    pub executing: u64,
    /// The warp before the instruction.
    pub state: WarpView<'a>,
}

/// An instruction that has been carried out or has trapped.
#[derive(Clone, Copy, Debug)]
pub struct Retire<'a> {
    /// The address at which the warp goes on; that of the instruction behind if it trapped.
    pub next: u64,
    /// Why it trapped, if it did.
    pub trap: Option<&'a TrapKind>,
    /// The warp after the instruction; its pc is not set yet.
    pub state: WarpView<'a>,
}
