//! Tables from numbers to opcodes.

use crate::arch::ArchId;
use crate::encoding::{DecodeError, exists};
use crate::opcode::Space;
use crate::table::Opcode;

const NUMBERS: usize = 64;

const fn index_of(extension: bool) -> [Option<Opcode>; NUMBERS] {
    let mut table = [None; NUMBERS];
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let opcode = Opcode::ALL[i];
        let (number, matches) = match opcode.space() {
            Space::Base(number) => (number, !extension),
            Space::Extension(number) => (number, extension),
        };
        if matches {
            assert!(table[number as usize].is_none(), "two rows of the table share a number");
            table[number as usize] = Some(opcode);
        }
        i += 1;
    }
    table
}

static BASE: [Option<Opcode>; NUMBERS] = index_of(false);
static EXTENSION: [Option<Opcode>; NUMBERS] = index_of(true);

/// For each opcode with an immediate, the number of its other operands.
static REGISTERS: [Option<u8>; Opcode::ALL.len()] = {
    let mut table = [None; Opcode::ALL.len()];
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let operands = Opcode::ALL[i].operands();
        let (mut registers, mut at) = (0, 0);
        while at < operands.len() {
            registers += !operands[at].kind.is_immediate() as u8;
            at += 1;
        }
        if (registers as usize) < operands.len() {
            table[Opcode::ALL[i] as usize] = Some(registers);
        }
        i += 1;
    }
    table
};

/// The number of registers that an instruction with an immediate has; none of one without.
pub(super) fn registers_beside_immediate(opcode: Opcode) -> Option<u8> {
    REGISTERS[opcode as usize]
}

/// The instruction of `arch` with that number.
pub(super) fn lookup(space: Space, arch: ArchId) -> Result<Opcode, DecodeError> {
    let found = match space {
        Space::Base(number) => BASE.get(usize::from(number)),
        Space::Extension(number) => EXTENSION.get(usize::from(number)),
    };
    found
        .copied()
        .flatten()
        .filter(|&opcode| exists(opcode, arch))
        .ok_or(DecodeError::Opcode { space, arch })
}
