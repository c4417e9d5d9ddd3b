//! Why and where a run stopped before its end.

use std::fmt;
use std::time::Duration;

use harp_isa::{DecodeError, Opcode, RegClass};
use thiserror::Error;

use crate::interrupt::Interrupt;

/// A run that stopped before its end, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Trap {
    /// What happened.
    #[source]
    pub kind: TrapKind,
    /// The core.
    pub core: u16,
    /// The warp; the lowest one involved, if the trap involves several.
    pub warp: u8,
    /// The address of the instruction that trapped, or that the warp would issue next.
    pub pc: u64,
    /// The lanes that trapped, lane 0 in the lowest bit.
    pub lanes: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrapKind {
    /// An access to an address at which there is neither memory nor a device.
    #[error(
        "{} address {address:#x}, where there is neither memory nor a device",
        if *store { "stored to" } else { "loaded from" }
    )]
    BadAddress {
        /// The address that the first of the trap's lanes used.
        address: u64,
        /// Whether it was a store (an atomic operation counts as one).
        store: bool,
    },
    /// A store or an atomic operation on read-only memory.
    #[error("stored to address {address:#x}: memory below {limit:#x} is read-only")]
    ReadOnly {
        /// The address that the first of the trap's lanes used.
        address: u64,
        /// The first address that may be stored to.
        limit: u64,
    },
    /// An atomic operation on an address that is not a multiple of its size.
    #[error("atomic operation on address {address:#x}, which is not a multiple of {size}")]
    Misaligned {
        /// The address that the first of the trap's lanes used.
        address: u64,
        /// Bytes of the operation.
        size: u8,
    },
    /// A division by zero.
    #[error("division by zero")]
    DivideByZero,
    /// A jump, call or other change of control on whose predicate the active lanes disagree. The
    /// trap's lanes are those whose predicate is true.
    #[error("the active lanes disagree on the predicate of a `{}`", opcode.mnemonic())]
    DivergentBranch {
        /// The instruction.
        opcode: Opcode,
    },
    /// The executing lanes disagree on the target of a jump, or on how many lanes it activates.
    /// The trap's lanes are those that disagree with the first one.
    #[error("the executing lanes disagree on the operands of a `{}`", opcode.mnemonic())]
    DivergentTarget {
        /// The instruction.
        opcode: Opcode,
    },
    /// Bytes that are not an instruction of the machine.
    #[error("invalid instruction")]
    InvalidInstruction(#[source] DecodeError),
    /// A privileged instruction in user mode.
    #[error("privileged instruction `{}` in user mode", opcode.mnemonic())]
    Privileged {
        /// The instruction.
        opcode: Opcode,
    },
    /// The instruction `trap`.
    #[error("`trap` instruction")]
    GuestTrap,
    /// A `join` with nothing on the divergence stack.
    #[error("`join` on an empty divergence stack")]
    StackUnderflow,
    /// A `split` with the divergence stack full.
    #[error("`split` with all {limit} entries of the divergence stack in use")]
    StackOverflow {
        /// Entries that the stack holds.
        limit: usize,
    },
    /// More lanes were to be activated than a warp has.
    #[error("activation of {given} lanes, a warp has {limit}")]
    TooManyLanes {
        /// The lanes asked for.
        given: u64,
        /// The lanes of a warp.
        limit: u8,
    },
    /// A `clone` to a lane that the warp does not have.
    #[error("`clone` to lane {given}, a warp has {limit} lanes")]
    NoSuchLane {
        /// The lane's number.
        given: u64,
        /// The lanes of a warp.
        limit: u8,
    },
    /// A `csr` or `ballot` with an invalid index.
    #[error("`{}` with invalid index {given}", opcode.mnemonic())]
    BadIndex {
        /// The instruction.
        opcode: Opcode,
        /// The index.
        given: i64,
    },
    /// A strict `wspawn` when every warp had been started.
    #[error("`wspawn` with all {limit} warps started")]
    NoWarpLeft {
        /// The warps of a core.
        limit: u8,
    },
    /// Warps wait at barriers and no warp is left that could release them.
    #[error("deadlock: {}", Waits(waiting))]
    Deadlock {
        /// All warps that wait, in the order of warps; at least one.
        waiting: Vec<BarrierWait>,
    },
    /// A `bar` that not all lanes reach together; see
    /// [`DivergentBarriers`](crate::DivergentBarriers). The trap's lanes are those that executed it.
    #[error("divergent `bar`: {} should have reached it together", LaneSet(*expected))]
    DivergentBarrier {
        /// The lanes that should execute it.
        expected: u64,
    },
    /// With address translation, an access to a page without a mapping.
    #[error("{access} address {address:#x}, in a page that is not mapped")]
    PageMiss {
        /// The virtual address that the first of the trap's lanes used.
        address: u64,
        /// What it was used for.
        access: PageAccess,
    },
    /// With address translation, an access that the page's mapping does not permit.
    #[error(
        "{access} address {address:#x}, which its page does not permit in {} mode",
        if *supervisor { "supervisor" } else { "user" }
    )]
    PagePermission {
        /// The virtual address that the first of the trap's lanes used.
        address: u64,
        /// What it was used for.
        access: PageAccess,
        /// Whether the warp was in supervisor mode.
        supervisor: bool,
    },
    /// Where [`MachineConfig::audit_shared`](crate::MachineConfig::audit_shared) asks for it, a read of a shared register
    /// that others have written since the trap's lanes have.
    #[error(
        "read from `{}{number}` {shared:#x}, where the lane itself has last written {own:#x}",
        match class { RegClass::Gpr => "%s", RegClass::Pred => "@s" }
    )]
    SharedMismatch {
        /// Whether it is a general register or a predicate.
        class: RegClass,
        /// Its number among the shared ones.
        number: u8,
        /// What it holds.
        shared: u64,
        /// What the first of the trap's lanes has last written to it, or has begun with.
        own: u64,
    },
    /// More mappings than a core holds.
    #[error("`tlbadd` with all {limit} mappings in use")]
    TlbFull {
        /// The mappings that a core holds.
        limit: usize,
    },
    /// An interrupt with no handler set by `skep`.
    #[error("interrupt {} without a handler: {cause}", interrupt.number())]
    NoHandler {
        /// The interrupt.
        interrupt: Interrupt,
        /// Why it was raised.
        cause: Box<TrapKind>,
    },
    /// An interrupt whose instruction would have to be repeated, while interrupts are off.
    #[error("double fault: interrupt {} while interrupts are off: {cause}", interrupt.number())]
    DoubleFault {
        /// The interrupt.
        interrupt: Interrupt,
        /// Why it was raised.
        cause: Box<TrapKind>,
    },
    /// A `reti` before any interrupt.
    #[error("`reti` before any interrupt")]
    NothingSaved,
    /// The registers and divergence stacks of the core's warps need more host memory than the core's share of
    /// [`MachineConfig::state_limit`](crate::MachineConfig::state_limit), or than the host has.
    #[error("the warps of a core need more than {limit} bytes of host memory")]
    OutOfHostMemory {
        /// The core's share, in bytes.
        limit: u64,
    },
    /// The core has issued as many instructions as it may.
    #[error("out of fuel after {limit} instructions")]
    OutOfFuel {
        /// The limit.
        limit: u64,
    },
    /// The run took longer than [`MachineConfig::time_limit`](crate::MachineConfig::time_limit).
    #[error("the run has taken longer than {limit:?}")]
    TimeLimit {
        /// The limit.
        limit: Duration,
    },
    /// The run's [`CancelToken`](crate::CancelToken) was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// A warp's pc is outside the memory.
    #[error("the pc is outside the memory of {size:#x} bytes")]
    BadPc {
        /// Bytes of memory.
        size: u64,
    },
}

impl TrapKind {
    /// The interrupt that a guest gets instead, where it handles interrupts; `None` for a trap that always
    /// stops the run.
    pub fn interrupt(&self) -> Option<Interrupt> {
        Some(match self {
            TrapKind::GuestTrap => Interrupt::Trap,
            TrapKind::PageMiss { .. } => Interrupt::PageMiss,
            TrapKind::PagePermission { .. } => Interrupt::PagePermission,
            TrapKind::InvalidInstruction(_) | TrapKind::Privileged { .. } => Interrupt::Invalid,
            TrapKind::DivergentBranch { .. } => Interrupt::DivergentBranch,
            TrapKind::DivideByZero => Interrupt::DivideByZero,
            _ => return None,
        })
    }

    /// The machine-readable name of the kind: the variant's, in lower case with underscores.
    pub fn name(&self) -> &'static str {
        match self {
            TrapKind::BadAddress { .. } => "bad_address",
            TrapKind::ReadOnly { .. } => "read_only",
            TrapKind::Misaligned { .. } => "misaligned",
            TrapKind::DivideByZero => "divide_by_zero",
            TrapKind::DivergentBranch { .. } => "divergent_branch",
            TrapKind::DivergentTarget { .. } => "divergent_target",
            TrapKind::InvalidInstruction(_) => "invalid_instruction",
            TrapKind::Privileged { .. } => "privileged",
            TrapKind::GuestTrap => "guest_trap",
            TrapKind::StackUnderflow => "stack_underflow",
            TrapKind::StackOverflow { .. } => "stack_overflow",
            TrapKind::TooManyLanes { .. } => "too_many_lanes",
            TrapKind::NoSuchLane { .. } => "no_such_lane",
            TrapKind::BadIndex { .. } => "bad_index",
            TrapKind::NoWarpLeft { .. } => "no_warp_left",
            TrapKind::Deadlock { .. } => "deadlock",
            TrapKind::DivergentBarrier { .. } => "divergent_barrier",
            TrapKind::PageMiss { .. } => "page_miss",
            TrapKind::PagePermission { .. } => "page_permission",
            TrapKind::SharedMismatch { .. } => "shared_mismatch",
            TrapKind::TlbFull { .. } => "tlb_full",
            TrapKind::NoHandler { .. } => "no_handler",
            TrapKind::DoubleFault { .. } => "double_fault",
            TrapKind::NothingSaved => "nothing_saved",
            TrapKind::OutOfHostMemory { .. } => "out_of_host_memory",
            TrapKind::OutOfFuel { .. } => "out_of_fuel",
            TrapKind::TimeLimit { .. } => "time_limit",
            TrapKind::Cancelled => "cancelled",
            TrapKind::BadPc { .. } => "bad_pc",
        }
    }

    /// The address that a handler finds in `%r1`.
    pub(crate) fn page_address(&self) -> Option<u64> {
        match *self {
            TrapKind::PageMiss { address, .. } | TrapKind::PagePermission { address, .. } => {
                Some(address)
            }
            _ => None,
        }
    }
}

/// The kind of an access to memory through address translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PageAccess {
    /// An instruction is fetched.
    Fetch,
    /// A load.
    Load,
    /// A store.
    Store,
    /// An atomic operation, which needs the permissions of a load and of a store.
    Atomic,
}

impl fmt::Display for PageAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageAccess::Fetch => "fetched from",
            PageAccess::Load => "loaded from",
            PageAccess::Store => "stored to",
            PageAccess::Atomic => "operated on atomically",
        })
    }
}

/// A warp that waits at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierWait {
    /// The warp.
    pub warp: u8,
    /// The address of its `bar`.
    pub pc: u64,
    /// Its active lanes.
    pub lanes: u64,
    /// The barrier's number.
    pub barrier: u64,
    /// How many warps must wait there to release it.
    pub wanted: u64,
}

/// Prints `warp 0 waits at barrier 5 for 2 warps at pc 0x10, warp 1 ...`.
struct Waits<'a>(&'a [BarrierWait]);

impl fmt::Display for Waits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, BarrierWait { warp, pc, barrier, wanted, .. }) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}warp {warp} at barrier {barrier} for {wanted} warps (pc {pc:#x})")?;
        }
        f.write_str("; no other warp runs")
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trap { kind, core, warp, pc, lanes } = self;
        write!(f, "{kind} (core {core}, warp {warp}, pc {pc:#x}, {})", LaneSet(*lanes))
    }
}

/// Prints `lane 3` or `lanes 0-3 8`.
struct LaneSet(u64);

impl fmt::Display for LaneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.count_ones() {
            0 => return f.write_str("no lanes"),
            1 => return write!(f, "lane {}", self.0.trailing_zeros()),
            _ => f.write_str("lanes")?,
        }
        let mut rest = self.0;
        while rest != 0 {
            let first = rest.trailing_zeros();
            let run = (rest >> first).trailing_ones();
            match run {
                1 => write!(f, " {first}")?,
                _ => write!(f, " {first}-{}", first + run - 1)?,
            }
            rest &= !(u64::MAX >> (64 - run) << first);
        }
        Ok(())
    }
}
