//! The properties of instructions and operands that rows of the instruction table state.

use bitflags::bitflags;

use crate::reg::RegClass;

/// How an instruction treats a register operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Written. If the instruction is predicated, lanes that it skips keep the old value, so the
    /// operand is then read as well ([`Role::under_guard`]).
    Def,
    /// Read.
    Use,
    /// Read and written.
    Mod,
}

impl Role {
    /// The role of the operand when the instruction is predicated: every write becomes partial.
    pub const fn under_guard(self) -> Role {
        match self {
            Role::Def | Role::Mod => Role::Mod,
            Role::Use => Role::Use,
        }
    }
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A general register.
    Gpr(Role),
    /// A predicate register.
    Pred(Role),
    /// An immediate, used as a value.
    Imm,
    /// A displacement in bytes from the next instruction.
    Rel,
}

impl OperandKind {
    /// Whether the operand is an immediate of either kind.
    pub const fn is_immediate(self) -> bool {
        matches!(self, OperandKind::Imm | OperandKind::Rel)
    }

    /// The register file and the role of a register operand.
    pub const fn register(self) -> Option<(RegClass, Role)> {
        match self {
            OperandKind::Gpr(role) => Some((RegClass::Gpr, role)),
            OperandKind::Pred(role) => Some((RegClass::Pred, role)),
            OperandKind::Imm | OperandKind::Rel => None,
        }
    }
}

/// One operand of an instruction, as the table describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandDesc {
    /// The operand's name in [`Op`](crate::Op).
    pub name: &'static str,
    /// Its kind and how it is used.
    pub kind: OperandKind,
}

/// An opcode number with the space that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The original 6-bit opcode.
    Base(u8),
    /// The `funct` number behind the escape opcode of extension X.
    Extension(u8),
}

bitflags! {
    /// Properties of an instruction that do not follow from its operands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct OpcodeFlags: u16 {
        /// Interrupt 3 in user mode.
        const PRIVILEGED = 1;
        /// May change the pc or the active mask: the active lanes must agree on its predicate.
        const CONTROL = 1 << 1;
        /// Acts once per warp, with operands from the first executing lane.
        const ONCE_PER_WARP = 1 << 2;
        /// Reads memory.
        const LOAD = 1 << 3;
        /// Writes memory.
        const STORE = 1 << 4;
        /// Reads and writes memory in one indivisible step.
        const ATOMIC = 1 << 5;
        /// Interrupt 5 where the divisor is zero.
        const DIVIDES = 1 << 6;
        /// Floating point.
        const FLOAT = 1 << 7;
        /// Lanes read each other's values.
        const CROSS_LANE = 1 << 8;
        /// Part of extension X although its number is in the base opcode space.
        const EXTENSION = 1 << 9;
        /// Exists on 8-byte words only.
        const WORD8 = 1 << 10;
    }
}
