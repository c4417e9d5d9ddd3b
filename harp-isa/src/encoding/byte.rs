//! The byte-stream encoding: guard byte, opcode byte, one byte per register, immediates as unaligned
//! little-endian words.

use crate::arch::ArchId;
use crate::encoding::{DecodeError, MAX_OPERANDS, decoded_guard, decoded_operand, tables};
use crate::instruction::Instruction;
use crate::opcode::Space;
use crate::operand::Operand;
use crate::reg::Pred;
use crate::table::{Op, Opcode};

const NOT_PREDICATED: u8 = 0xff;
/// Opcode bytes from here on are instructions of the extension.
const FIRST_EXTENSION: u8 = 0x40;
/// The longest instruction: guard and opcode, two registers, an immediate of 8 bytes.
pub(super) const MAX_BYTES: usize = 2 + 2 + 8;

fn registers(opcode: Opcode) -> usize {
    opcode.operands().iter().filter(|o| !o.kind.is_immediate()).count()
}

/// The offset of the immediate, which, if any, comes last.
pub(super) fn immediate_offset(opcode: Opcode) -> usize {
    2 + registers(opcode)
}

pub(super) fn size(opcode: Opcode, arch: ArchId) -> usize {
    let immediates = opcode.operands().len() - registers(opcode);
    immediate_offset(opcode) + immediates * usize::from(arch.word().bytes())
}

/// Appends an instruction with these operands, which have been checked.
pub(super) fn encode(
    instruction: &Instruction,
    operands: &[Operand],
    arch: ArchId,
    out: &mut Vec<u8>,
) {
    out.push(instruction.guard.map_or(NOT_PREDICATED, Pred::index));
    out.push(match instruction.op.opcode().space() {
        Space::Base(number) => number,
        Space::Extension(funct) => FIRST_EXTENSION + funct,
    });
    for operand in operands {
        match *operand {
            Operand::Gpr(reg) => out.push(reg.index()),
            Operand::Pred(reg) => out.push(reg.index()),
            Operand::Imm(imm) => {
                out.extend_from_slice(&imm.to_le_bytes()[..arch.word().bytes().into()]);
            }
        }
    }
}

pub(super) fn decode(bytes: &[u8], arch: ArchId) -> Result<(Instruction, usize), DecodeError> {
    let truncated = |needed| DecodeError::Truncated { given: bytes.len(), needed };
    let &[guard, number, ref rest @ ..] = bytes else {
        return Err(truncated(2));
    };
    let space = match number.checked_sub(FIRST_EXTENSION) {
        Some(funct) => Space::Extension(funct),
        None => Space::Base(number),
    };
    let opcode = tables::lookup(space, arch)?;
    let size = size(opcode, arch);
    if bytes.len() < size {
        return Err(truncated(size));
    }
    let guard =
        (guard != NOT_PREDICATED).then(|| decoded_guard(opcode, guard, arch)).transpose()?;
    let mut operands = [Operand::Imm(0); MAX_OPERANDS];
    let descriptions = opcode.operands();
    let mut rest = rest.iter();
    for (operand, description) in operands.iter_mut().zip(descriptions) {
        let width = if description.kind.is_immediate() { arch.word().bytes() } else { 1 };
        let field = rest
            .by_ref()
            .take(width.into())
            .enumerate()
            .fold(0, |field, (i, &byte)| field | u64::from(byte) << (8 * i));
        let field = if description.kind.is_immediate() {
            arch.word().sign_extend(field).cast_unsigned()
        } else {
            field
        };
        *operand = decoded_operand(opcode, description.kind, field, arch)?;
    }
    let op = Op::from_operands(opcode, &operands[..descriptions.len()])
        .expect("operands were made to the table's description");
    Ok((Instruction { guard, op }, size))
}
