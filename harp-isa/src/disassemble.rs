//! Walks over flat code.

use crate::arch::{ArchId, Encoding};
use crate::encoding::{DecodeError, decode};
use crate::instruction::Instruction;

/// The instructions of `code`, whose first byte lies at `address`, with their addresses.
///
/// Where bytes are no instruction the iterator gives the error and goes on at the next place where
/// an instruction may start: a word further, or a byte in the byte encoding. An instruction cut off
/// by the end of `code` is the last item.
///
/// ```
/// use harp_isa::{ArchId, Instruction, Op, disassemble, encode};
///
/// let arch = ArchId::HARP32;
/// let mut code = Vec::new();
/// encode(&Instruction::new(Op::Nop {}), arch, &mut code)?;
/// encode(&Instruction::new(Op::Halt {}), arch, &mut code)?;
/// let lines: Vec<String> = disassemble(&code, 0x1000, arch)
///     .map(|(at, instruction)| Ok(format!("{at:#x} {}", instruction?.display(arch))))
///     .collect::<Result<_, harp_isa::DecodeError>>()?;
/// assert_eq!(lines, ["0x1000 nop ;", "0x1004 halt ;"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn disassemble(code: &[u8], address: u64, arch: ArchId) -> Disassembly<'_> {
    Disassembly { code, address, arch }
}

/// The iterator of [`disassemble`].
#[derive(Clone, Debug)]
pub struct Disassembly<'a> {
    code: &'a [u8],
    address: u64,
    arch: ArchId,
}

impl Iterator for Disassembly<'_> {
    type Item = (u64, Result<Instruction, DecodeError>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.code.is_empty() {
            return None;
        }
        let address = self.address;
        let (item, size) = match decode(self.code, self.arch) {
            Ok((instruction, size)) => (Ok(instruction), size),
            Err(error @ DecodeError::Truncated { .. }) => (Err(error), self.code.len()),
            Err(error) => (Err(error), skipped(self.arch)),
        };
        self.code = &self.code[size.min(self.code.len())..];
        self.address = address.wrapping_add(size as u64);
        Some((address, item))
    }
}

/// How far the next instruction may be from bytes that are none.
fn skipped(arch: ArchId) -> usize {
    match arch.encoding() {
        Encoding::Word => arch.word().bytes().into(),
        Encoding::Byte => 1,
    }
}
