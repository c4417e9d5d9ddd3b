//! Instructions with immediates on whose result all machines of an id agree.
//!
//! The original computes some on its host's wider integers, and so differently from what their description
//! says. Code for machines without extension X is to run there, so it does not hold them.

use harp_isa::{ArchId, Encoding, Layout, Opcode, WordSize};

/// Whether the machine's instruction has room for the immediate and means the same everywhere with it. Left
/// out are, on 4-byte words, `ori xori divi modi` with a negative immediate and, in bytes and without the
/// extension, accesses at a negative offset, to whose base the original adds the offset's 32 bits without
/// their sign; and shift counts at or above the width.
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
