//! Instructions whose immediates mean the same on all machines of an id.
//!
//! The original machine computes some of them on its host's wider integers, so their results differ from
//! their description. Code for machines without extension X must run there, so it avoids them.

use harp_isa::{ArchId, Encoding, Layout, Opcode, WordSize};

/// Whether the immediate fits the instruction and means the same everywhere. Excluded are, on 4-byte words,
/// `ori xori divi modi` with a negative immediate; in the byte encoding without the extension, accesses at a
/// negative offset, whose 32 bits the original machine adds to the base without their sign; and shift counts
/// of at least the width.
pub(crate) fn fits(arch: ArchId, opcode: Opcode, imm: i64) -> bool {
    let narrow = arch.word() == WordSize::Four;
    let allowed = match opcode {
        Opcode::Shli | Opcode::Shri => (0..arch.word().bits().into()).contains(&imm),
        Opcode::Ori | Opcode::Xori | Opcode::Divi | Opcode::Modi => imm >= 0 || !narrow,
        Opcode::Ld | Opcode::St => {
            imm >= 0 || !narrow || arch.encoding() == Encoding::Word || arch.has_extension()
        }
        _ => true,
    };
    allowed && Layout::new(arch).fits(opcode, imm)
}
