//! The two binary encodings. All bit positions of HARP are in this folder.

use std::ops::RangeInclusive;

use thiserror::Error;

use crate::arch::{ArchId, Encoding};
use crate::instruction::Instruction;
use crate::opcode::{OpcodeFlags, OperandKind, Space};
use crate::operand::Operand;
use crate::reg::RegClass;
use crate::table::Opcode;

mod byte;
mod tables;
mod word;

/// The most operands of any instruction.
const MAX_OPERANDS: usize = 3;

/// The longest encoding of any instruction on any machine, in bytes.
pub const MAX_ENCODED_BYTES: usize = byte::MAX_BYTES;

/// Why an instruction has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The machine has fewer registers.
    #[error("`{}`: register {given} of the {} file; {arch} has {limit}", opcode.mnemonic(), class_name(*class))]
    Register {
        /// The instruction.
        opcode: Opcode,
        /// Which register file.
        class: RegClass,
        /// The register's number.
        given: u8,
        /// How many there are, with those that lanes share.
        limit: u8,
        /// The machine.
        arch: ArchId,
    },
    /// The immediate does not fit its field.
    #[error("`{}`: immediate {given} is not in {} to {} ({arch})", opcode.mnemonic(), limits.start(), limits.end())]
    Immediate {
        /// The instruction.
        opcode: Opcode,
        /// The immediate's value.
        given: i64,
        /// The values that fit.
        limits: RangeInclusive<i64>,
        /// The machine.
        arch: ArchId,
    },
    /// The machine lacks the instruction.
    #[error("{arch} has no `{}`", opcode.mnemonic())]
    Missing {
        /// The instruction.
        opcode: Opcode,
        /// The machine.
        arch: ArchId,
    },
}

fn class_name(class: RegClass) -> &'static str {
    match class {
        RegClass::Gpr => "general",
        RegClass::Pred => "predicate",
    }
}

/// Why bytes are not an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end within an instruction.
    #[error("{given} bytes are too few for an instruction of {needed}")]
    Truncated {
        /// Bytes given.
        given: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// No instruction of this machine has that number.
    #[error("{arch} has no instruction {space:?}")]
    Opcode {
        /// The number.
        space: Space,
        /// The machine.
        arch: ArchId,
    },
    /// A register field names a register that the machine lacks.
    #[error("`{}`: register {given} of the {} file; {arch} has {limit}", opcode.mnemonic(), class_name(*class))]
    Register {
        /// The instruction.
        opcode: Opcode,
        /// Which register file.
        class: RegClass,
        /// The field's value.
        given: u8,
        /// How many there are, with those that lanes share.
        limit: u8,
        /// The machine.
        arch: ArchId,
    },
}

/// Appends the encoding of `instruction` to `out`.
///
/// # Errors
///
/// If the machine lacks the instruction or a register, or the immediate does not fit. Nothing is
/// appended then.
pub fn encode(
    instruction: &Instruction,
    arch: ArchId,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut operands = [Operand::Imm(0); MAX_OPERANDS];
    let mut count = 0;
    instruction.op.for_each_operand(|operand| {
        operands[count] = operand;
        count += 1;
    });
    let operands = &operands[..count];
    check(instruction, operands, arch)?;
    match arch.encoding() {
        Encoding::Word => word::encode(instruction, operands, arch, out),
        Encoding::Byte => byte::encode(instruction, operands, arch, out),
    }
    Ok(())
}

/// The instruction at the start of `bytes`, and its size in bytes.
///
/// # Errors
///
/// If the bytes are too few, or are not an instruction of this machine. Bits that no field covers are
/// ignored.
pub fn decode(bytes: &[u8], arch: ArchId) -> Result<(Instruction, usize), DecodeError> {
    match arch.encoding() {
        Encoding::Word => word::decode(bytes, arch),
        Encoding::Byte => byte::decode(bytes, arch),
    }
}

/// Where the immediate of an instruction lies and what fits into it, on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    arch: ArchId,
}

impl Layout {
    /// The layout of `arch`.
    pub const fn new(arch: ArchId) -> Layout {
        Layout { arch }
    }

    /// The size of the instruction in bytes.
    pub fn size(self, opcode: Opcode) -> usize {
        match self.arch.encoding() {
            Encoding::Word => self.arch.word().bytes().into(),
            Encoding::Byte => byte::size(opcode, self.arch),
        }
    }

    /// The width of the instruction's immediate in bits; 0 if it has none.
    pub fn immediate_bits(self, opcode: Opcode) -> u8 {
        match self.arch.encoding() {
            Encoding::Word => word::immediate_bits(opcode, self.arch),
            Encoding::Byte if tables::registers_beside_immediate(opcode).is_none() => 0,
            Encoding::Byte => self.arch.word().bits(),
        }
    }

    /// The byte offset in the instruction of the word that a reference to the immediate patches: the start of
    /// the instruction in the word encoding, that of the field in the byte encoding.
    pub fn immediate_offset(self, opcode: Opcode) -> usize {
        match self.arch.encoding() {
            Encoding::Word => 0,
            Encoding::Byte => byte::immediate_offset(opcode),
        }
    }

    /// The number of bits below the immediate in the word that holds it: 0, except in the word encoding of
    /// extension instructions, whose number is below.
    pub fn immediate_shift(self, opcode: Opcode) -> u8 {
        match self.arch.encoding() {
            Encoding::Word => word::funct_bits(opcode),
            Encoding::Byte => 0,
        }
    }

    /// The immediates that encoding and decoding preserves.
    pub fn immediate_range(self, opcode: Opcode) -> RangeInclusive<i64> {
        match self.immediate_bits(opcode) {
            0 => 0..=0,
            bits => (i64::MIN >> (64 - bits))..=(i64::MAX >> (64 - bits)),
        }
    }

    /// Whether encoding and decoding preserves `imm` as the immediate of `opcode`.
    pub fn fits(self, opcode: Opcode, imm: i64) -> bool {
        self.immediate_range(opcode).contains(&imm)
    }

    /// Whether the machine has the instruction.
    pub fn has(self, opcode: Opcode) -> bool {
        exists(opcode, self.arch)
    }
}

/// Whether `arch` has the instruction.
fn exists(opcode: Opcode, arch: ArchId) -> bool {
    (arch.has_extension() || !opcode.is_extension())
        && (arch.word() == crate::WordSize::Eight || !opcode.flags().contains(OpcodeFlags::WORD8))
}

fn register_limit(class: RegClass, arch: ArchId) -> u8 {
    match class {
        RegClass::Gpr => arch.all_gprs(),
        RegClass::Pred => arch.all_preds(),
    }
}

/// Checks an instruction with these operands.
fn check(instruction: &Instruction, operands: &[Operand], arch: ArchId) -> Result<(), EncodeError> {
    let opcode = instruction.op.opcode();
    if !exists(opcode, arch) {
        return Err(EncodeError::Missing { opcode, arch });
    }
    let register = |class: RegClass, given: u8| {
        let limit = register_limit(class, arch);
        if given < limit {
            Ok(())
        } else {
            Err(EncodeError::Register { opcode, class, given, limit, arch })
        }
    };
    if let Some(guard) = instruction.guard {
        register(RegClass::Pred, guard.index())?;
    }
    for operand in operands {
        match *operand {
            Operand::Gpr(reg) => register(RegClass::Gpr, reg.index())?,
            Operand::Pred(reg) => register(RegClass::Pred, reg.index())?,
            Operand::Imm(given) => {
                let limits = Layout::new(arch).immediate_range(opcode);
                if !limits.contains(&given) {
                    return Err(EncodeError::Immediate { opcode, given, limits, arch });
                }
            }
        }
    }
    Ok(())
}

/// The operand that a decoded field denotes.
fn decoded_operand(
    opcode: Opcode,
    kind: OperandKind,
    field: u64,
    arch: ArchId,
) -> Result<Operand, DecodeError> {
    let Some((class, _)) = kind.register() else {
        return Ok(Operand::Imm(field.cast_signed()));
    };
    let given = u8::try_from(field).unwrap_or(u8::MAX);
    let limit = register_limit(class, arch);
    if given >= limit {
        return Err(DecodeError::Register { opcode, class, given, limit, arch });
    }
    Ok(match class {
        RegClass::Gpr => Operand::Gpr(crate::Gpr::new(given)),
        RegClass::Pred => Operand::Pred(crate::Pred::new(given)),
    })
}

/// The guard that a decoded field denotes.
fn decoded_guard(opcode: Opcode, field: u8, arch: ArchId) -> Result<crate::Pred, DecodeError> {
    let limit = arch.all_preds();
    if field >= limit {
        let class = RegClass::Pred;
        return Err(DecodeError::Register { opcode, class, given: field, limit, arch });
    }
    Ok(crate::Pred::new(field))
}
