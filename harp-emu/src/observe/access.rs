//! The memory that an instruction is about to access.

use harp_isa::{Gpr, Op, Opcode, OpcodeFlags, Operand, Sharing, WordSize};

use super::Issue;
use crate::notation::lanes_of;

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes in one step.
    Atomic,
}

/// The memory that an instruction is about to access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Whether it loads, stores or both.
    pub kind: AccessKind,
    /// The access of each executing lane, lowest lane first.
    pub lanes: Vec<LaneAccess>,
}

/// The memory that a lane is about to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneAccess {
    /// The lane.
    pub lane: u8,
    /// The first address, as the guest computes it: before any translation, and whether or not there is
    /// memory or a device.
    pub address: u64,
    /// Bytes from there on, 1 to 8. A misaligned `ld` or `st` moves those up to the end of the word.
    pub bytes: u8,
}

impl Issue<'_> {
    /// The memory that the instruction is about to access; `None` for instructions that access none.
    /// Instruction fetch does not count.
    pub fn memory_access(&self) -> Option<MemoryAccess> {
        let op = self.instruction.op;
        let kind = AccessKind::of(op.opcode())?;
        let (base, offset) = address_operands(op);
        let word = self.arch.word();
        // In a row each lane's access follows that of the lane before.
        let distance = match op.sharing(self.arch) {
            Sharing::Row => op.opcode().access_bytes(word).unwrap_or_default(),
            Sharing::Each | Sharing::Once => 0,
        };
        let lane = |lane| {
            let base = self.state.gpr(base, lane).expect("the register is one of the machine's");
            let before = u64::from(lane) * u64::from(distance);
            let address = base.wrapping_add_signed(offset).wrapping_add(before) & word.mask();
            LaneAccess { lane, address, bytes: bytes_at(op.opcode(), word, address) }
        };
        Some(MemoryAccess { kind, lanes: lanes_of(self.executing).map(lane).collect() })
    }
}

impl AccessKind {
    /// What instructions with that opcode do with memory, if anything.
    pub fn of(opcode: Opcode) -> Option<AccessKind> {
        let flags = opcode.flags();
        let kinds = [
            (OpcodeFlags::LOAD, AccessKind::Load),
            (OpcodeFlags::STORE, AccessKind::Store),
            (OpcodeFlags::ATOMIC, AccessKind::Atomic),
        ];
        kinds.into_iter().find_map(|(flag, kind)| flags.contains(flag).then_some(kind))
    }

    /// `load`, `store` or `atomic`.
    pub const fn name(self) -> &'static str {
        match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        }
    }
}

/// The register that holds the address, and the offset that is added to it.
fn address_operands(op: Op) -> (Gpr, i64) {
    let mut address = (Gpr::new(0), 0);
    let mut descriptions = op.opcode().operands().iter();
    op.for_each_operand(|operand| {
        let name = descriptions.next().expect("the table describes every operand").name;
        match (name, operand) {
            ("base" | "addr", Operand::Gpr(reg)) => address.0 = reg,
            ("offset", Operand::Imm(offset)) => address.1 = offset,
            _ => {}
        }
    });
    address
}

/// The number of bytes that an access at `address` uses.
fn bytes_at(opcode: Opcode, word: WordSize, address: u64) -> u8 {
    match opcode {
        Opcode::Ld | Opcode::St => word.bytes() - (address % u64::from(word.bytes())) as u8,
        _ => opcode.access_bytes(word).unwrap_or_default(),
    }
}
