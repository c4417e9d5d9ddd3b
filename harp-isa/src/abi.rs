//! The calling convention and the memory layout that compiled kernels and the runtime library share.
//!
//! * The stack grows down; `%ra` is the last general register, `%sp` the one before, `%fp` the one
//!   before that. The lower half of the registers is caller-saved, the upper half callee-saved, and
//!   so is `%ra` (Gupta 2016, table 1). All predicates are caller-saved.
//! * Arguments come in `%r0`, `%r1`, ... of the lower half. A kernel takes one: the address of its
//!   [argument block](ArgumentBlock).
//! * Each lane's stack is a power of two in size and aligned to it. The [`LaneField`]s lie at its
//!   base, so any address within the stack gives them away: shift right, shift left. For that
//!   `%sp` never points past the end: it starts one word below.

use crate::arch::{ArchId, WordSize};
use crate::reg::Gpr;

/// The roles of the general registers on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRoles {
    gprs: u8,
}

impl RegisterRoles {
    /// The roles on `arch`.
    pub const fn new(arch: ArchId) -> RegisterRoles {
        RegisterRoles { gprs: arch.gprs() }
    }

    /// `%ra`, the return address. Never allocated: code emission uses it as scratch.
    pub const fn return_address(self) -> Gpr {
        Gpr::new(self.gprs - 1)
    }

    /// `%sp`, the stack pointer.
    pub const fn stack_pointer(self) -> Gpr {
        Gpr::new(self.gprs - 2)
    }

    /// `%fp`, an ordinary callee-saved register where a function needs no frame pointer.
    pub const fn frame_pointer(self) -> Gpr {
        Gpr::new(self.gprs - 3)
    }

    /// The registers that a call may change and that carry arguments.
    pub fn caller_saved(self) -> impl Iterator<Item = Gpr> {
        (0..self.gprs / 2).map(Gpr::new)
    }

    /// The registers that a call preserves and that code may use freely once it has saved them:
    /// the upper half without `%sp` and `%ra`.
    pub fn callee_saved(self) -> impl Iterator<Item = Gpr> {
        (self.gprs / 2..self.gprs - 2).map(Gpr::new)
    }
}

/// A word of the lane control block at the base of a lane's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LaneField {
    /// The lane's number in its warp.
    Lane,
    /// The warp's number in its core.
    Warp,
    /// The core's number.
    Core,
    /// The work-item's position in the grid, first dimension.
    GlobalIdX,
    /// Second dimension.
    GlobalIdY,
    /// Third dimension.
    GlobalIdZ,
    /// The work-item's position in the grid counted through all dimensions, the first fastest.
    LinearId,
    /// The lowest address that the lane's stack pointer may take.
    StackLimit,
    /// A word for the runtime library.
    Walker,
}

impl LaneField {
    /// Every field, in the order of their offsets.
    pub const ALL: [LaneField; 9] = [
        LaneField::Lane,
        LaneField::Warp,
        LaneField::Core,
        LaneField::GlobalIdX,
        LaneField::GlobalIdY,
        LaneField::GlobalIdZ,
        LaneField::LinearId,
        LaneField::StackLimit,
        LaneField::Walker,
    ];

    /// The offset from the base of the lane's stack, in bytes.
    pub const fn offset(self, word: WordSize) -> u32 {
        self as u32 * word.bytes() as u32
    }

    /// The size of the lane control block in bytes.
    pub const fn block_bytes(word: WordSize) -> u32 {
        Self::ALL.len() as u32 * word.bytes() as u32
    }

    /// The field that holds the position in the grid in dimension `dim`, 0 to 2.
    pub const fn global_id(dim: u8) -> Option<LaneField> {
        match dim {
            0 => Some(LaneField::GlobalIdX),
            1 => Some(LaneField::GlobalIdY),
            2 => Some(LaneField::GlobalIdZ),
            _ => None,
        }
    }
}

/// The words at the address that a kernel gets in `%r0`: the extent of the grid in its three
/// dimensions, then one word an argument. Nobody writes them during a launch.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentBlock;

impl ArgumentBlock {
    /// Words before the first argument.
    pub const HEADER_WORDS: u32 = 3;

    /// The byte offset of the grid's extent in dimension `dim`, 0 to 2.
    pub const fn grid_extent(dim: u8, word: WordSize) -> u32 {
        dim as u32 * word.bytes() as u32
    }

    /// The byte offset of argument `index`.
    pub const fn argument(index: u32, word: WordSize) -> u32 {
        (Self::HEADER_WORDS + index) * word.bytes() as u32
    }
}
