//! Why and where a run stopped before its end.

use std::fmt;

use harp_isa::{DecodeError, Opcode};
use thiserror::Error;

/// A run that stopped before its end, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Trap {
    /// What happened.
    #[source]
    pub kind: TrapKind,
    /// The core.
    pub core: u16,
    /// The warp; the lowest one concerned, if the trap is not about one warp.
    pub warp: u8,
    /// The address of the instruction that trapped, or at which the warp stands.
    pub pc: u64,
    /// The lanes concerned, lane 0 in the lowest bit.
    pub lanes: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrapKind {
    /// No memory and no device answers at an address.
    #[error("{} address {address:#x}, where nothing answers", if *store { "stored to" } else { "loaded from" })]
    BadAddress {
        /// The address that the first lane concerned used.
        address: u64,
        /// Whether it was a store (an atomic operation counts as one).
        store: bool,
    },
    /// A store or an atomic operation on memory that may only be read.
    #[error("stored to address {address:#x}: memory below {limit:#x} is read-only")]
    ReadOnly {
        /// The address that the first lane concerned used.
        address: u64,
        /// The first address that may be stored to.
        limit: u64,
    },
    /// An atomic operation on an address that is no multiple of its size.
    #[error("atomic operation on address {address:#x}, which is no multiple of {size}")]
    Misaligned {
        /// The address that the first lane concerned used.
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
    /// Bytes that are no instruction of the machine.
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
    /// An instruction that this emulator does not implement.
    #[error("`{}` is not implemented", opcode.mnemonic())]
    Unsupported {
        /// The instruction.
        opcode: Opcode,
    },
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
    #[error("{given} lanes to be activated, a warp has {limit}")]
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
    /// A `csr` or `ballot` with an index that means nothing.
    #[error("`{}` with index {given}, which means nothing", opcode.mnemonic())]
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
    #[error(
        "deadlock: {waiting} warps wait at barriers and no other runs; the first at barrier {barrier}"
    )]
    Deadlock {
        /// How many warps wait.
        waiting: usize,
        /// The barrier at which the lowest of them waits.
        barrier: u64,
    },
    /// The core has issued as many instructions as it may.
    #[error("out of fuel after {limit} instructions")]
    OutOfFuel {
        /// The limit.
        limit: u64,
    },
    /// A warp's pc is outside the memory.
    #[error("the pc is outside the memory of {size:#x} bytes")]
    BadPc {
        /// Bytes of memory.
        size: u64,
    },
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
