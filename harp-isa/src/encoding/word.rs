//! The fixed-width encoding. From the most significant bit: predicated (1), guard (p), opcode (6),
//! registers (r each), immediate (what remains). An instruction of the extension has the opcode
//! [`ESCAPE`] and its number in the last 6 bits, below the immediate.

use fields::{Reader, Writer};

use crate::arch::ArchId;
use crate::encoding::{DecodeError, MAX_OPERANDS, decoded_guard, decoded_operand, tables};
use crate::instruction::Instruction;
use crate::opcode::Space;
use crate::operand::Operand;
use crate::reg::Pred;
use crate::table::{Op, Opcode};

const OPCODE_BITS: u8 = 6;
/// The opcode of all instructions of the extension.
const ESCAPE: u8 = 0x3f;

/// Bits of the number of an extension instruction, 0 for a base instruction.
pub(super) const fn funct_bits(opcode: Opcode) -> u8 {
    match opcode.space() {
        Space::Base(_) => 0,
        Space::Extension(_) => OPCODE_BITS,
    }
}

/// The width of the immediate of `opcode`; 0 if it has none.
pub(super) fn immediate_bits(opcode: Opcode, arch: ArchId) -> u8 {
    let Some(registers) = tables::registers_beside_immediate(opcode) else { return 0 };
    let before = 1 + arch.pred_bits() + OPCODE_BITS + registers * arch.gpr_bits();
    arch.word().bits() - before - funct_bits(opcode)
}

/// Appends an instruction with these operands, which have been checked.
pub(super) fn encode(
    instruction: &Instruction,
    operands: &[Operand],
    arch: ArchId,
    out: &mut Vec<u8>,
) {
    let opcode = instruction.op.opcode();
    let mut word = Writer::new(arch.word().bits());
    word.put(1, instruction.guard.is_some().into());
    word.put(arch.pred_bits(), instruction.guard.map_or(0, Pred::index).into());
    let (number, funct) = match opcode.space() {
        Space::Base(number) => (number, None),
        Space::Extension(funct) => (ESCAPE, Some(funct)),
    };
    word.put(OPCODE_BITS, number.into());
    for operand in operands {
        match *operand {
            Operand::Gpr(reg) => word.put(arch.gpr_bits(), reg.index().into()),
            Operand::Pred(reg) => word.put(arch.gpr_bits(), reg.index().into()),
            Operand::Imm(imm) => word.put(immediate_bits(opcode, arch), imm.cast_unsigned()),
        }
    }
    if let Some(funct) = funct {
        word.put_last(OPCODE_BITS, funct.into());
    }
    let bytes = word.finish().to_le_bytes();
    out.extend_from_slice(&bytes[..arch.word().bytes().into()]);
}

pub(super) fn decode(bytes: &[u8], arch: ArchId) -> Result<(Instruction, usize), DecodeError> {
    let size = usize::from(arch.word().bytes());
    let Some(bytes) = bytes.get(..size) else {
        return Err(DecodeError::Truncated { given: bytes.len(), needed: size });
    };
    let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let mut fields = Reader::new(word, arch.word().bits());
    let predicated = fields.take(1) != 0;
    let guard = fields.take(arch.pred_bits()) as u8;
    let space = match fields.take(OPCODE_BITS) as u8 {
        ESCAPE => Space::Extension(fields.last(OPCODE_BITS) as u8),
        number => Space::Base(number),
    };
    let opcode = tables::lookup(space, arch)?;
    let guard = predicated.then(|| decoded_guard(opcode, guard, arch)).transpose()?;
    let mut operands = [Operand::Imm(0); MAX_OPERANDS];
    let descriptions = opcode.operands();
    for (operand, description) in operands.iter_mut().zip(descriptions) {
        let field = if description.kind.is_immediate() {
            fields.take_signed(immediate_bits(opcode, arch))
        } else {
            fields.take(arch.gpr_bits())
        };
        *operand = decoded_operand(opcode, description.kind, field, arch)?;
    }
    let op = Op::from_operands(opcode, &operands[..descriptions.len()])
        .expect("operands were made to the table's description");
    Ok((Instruction { guard, op }, size))
}

/// Bit fields from the most significant bit down.
mod fields {
    pub(super) struct Writer {
        word: u64,
        left: u8,
    }

    impl Writer {
        pub(super) fn new(bits: u8) -> Self {
            Self { word: 0, left: bits }
        }

        pub(super) fn put(&mut self, bits: u8, value: u64) {
            self.left -= bits;
            self.word |= (value & mask(bits)) << self.left;
        }

        /// Fills the lowest bits, whatever is between.
        pub(super) fn put_last(&mut self, bits: u8, value: u64) {
            self.word |= value & mask(bits);
        }

        pub(super) fn finish(self) -> u64 {
            self.word
        }
    }

    pub(super) struct Reader {
        word: u64,
        left: u8,
    }

    impl Reader {
        pub(super) fn new(word: u64, bits: u8) -> Self {
            Self { word, left: bits }
        }

        pub(super) fn take(&mut self, bits: u8) -> u64 {
            self.left -= bits;
            self.word >> self.left & mask(bits)
        }

        pub(super) fn take_signed(&mut self, bits: u8) -> u64 {
            let unused = 64 - bits;
            ((self.take(bits) << unused).cast_signed() >> unused).cast_unsigned()
        }

        pub(super) fn last(&self, bits: u8) -> u64 {
            self.word & mask(bits)
        }
    }

    fn mask(bits: u8) -> u64 {
        u64::MAX.checked_shr(64 - u32::from(bits)).unwrap_or(0)
    }
}
