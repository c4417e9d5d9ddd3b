//! How things are named in JSON, the same in traces, statistics, profiles and traps.

use std::fmt;

use harp_isa::{Opcode, Operand, Pred};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::observe::lanes_of;
use crate::trap::{Trap, TrapKind};

/// An address or a value: a string, because numbers of 64 bits do not survive every reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex(pub(crate) u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// A register by its name in assembly text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register(pub(crate) Operand);

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Operand::Gpr(reg) => reg.fmt(f),
            Operand::Pred(pred) => pred.fmt(f),
            Operand::Imm(imm) => write!(f, "#{imm:#x}"),
        }
    }
}

impl Serialize for Register {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An opcode by its mnemonic.
pub(crate) fn opcode<S: Serializer>(opcode: &Opcode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(opcode.mnemonic())
}

/// A guard by its name, or null.
pub(crate) fn guard<S: Serializer>(guard: &Option<Pred>, serializer: S) -> Result<S::Ok, S::Error> {
    guard.map(|guard| Register(guard.into())).serialize(serializer)
}

/// The numbers of the lanes in a mask, as a list.
pub(crate) struct LaneList(pub(crate) u64);

impl Serialize for LaneList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lanes_of(self.0))
    }
}

/// An object: `kind` (see [`TrapKind::name`]), `message`, `core`, `warp`, `pc`, and `lanes`, a list of
/// lane numbers.
impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Trap", 6)?;
        object.serialize_field("kind", self.kind.name())?;
        object.serialize_field("message", &self.kind.to_string())?;
        object.serialize_field("core", &self.core)?;
        object.serialize_field("warp", &self.warp)?;
        object.serialize_field("pc", &Hex(self.pc))?;
        object.serialize_field("lanes", &LaneList(self.lanes))?;
        object.end()
    }
}

impl TrapKind {
    /// The name of the kind, for programs: the variant's, in lower case with underscores.
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
            TrapKind::TlbFull { .. } => "tlb_full",
            TrapKind::NoHandler { .. } => "no_handler",
            TrapKind::DoubleFault { .. } => "double_fault",
            TrapKind::NothingSaved => "nothing_saved",
            TrapKind::OutOfHostMemory { .. } => "out_of_host_memory",
            TrapKind::OutOfFuel { .. } => "out_of_fuel",
            TrapKind::BadPc { .. } => "bad_pc",
        }
    }
}
