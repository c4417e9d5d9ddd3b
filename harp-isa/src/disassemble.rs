//! Disassembly of flat code.

use std::fmt;

use crate::arch::{ArchId, Encoding};
use crate::encoding::{DecodeError, decode};
use crate::instruction::Instruction;

/// The instructions of `code`, whose first byte lies at `address`, with their addresses.
///
/// For bytes that are not an instruction the iterator yields the error, and goes on at the next place where
/// an instruction may start: one word further, or one byte in the byte encoding. An instruction cut off
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

/// A listing of an image with one line per instruction: its address, its bytes in the order of memory, and
/// its text. Bytes that are not an instruction are shown with the reason in a comment.
///
/// An image does not tell code from data, so data is shown as the instructions that its bytes happen to
/// encode. In the byte encoding, decoding behind data may start at a wrong byte; after some instructions it
/// usually is in step again.
///
/// ```
/// use harp_isa::{ArchId, listing};
///
/// let image = [0, 0, 0x40, 0x0b, 0, 0, 0xc0, 0x0f, 0xff];
/// assert_eq!(
///     listing(&image, 0x1000, ArchId::HARP32).to_string(),
///     "0x00001000  00 00 40 0b  halt ;\n\
///      0x00001004  00 00 c0 0f  /* 4w8/8/16/16 has no instruction Extension(0) */\n\
///      0x00001008  ff           /* 1 bytes are too few for an instruction of 4 */\n"
/// );
/// ```
pub fn listing(code: &[u8], address: u64, arch: ArchId) -> impl fmt::Display + '_ {
    Listing(disassemble(code, address, arch))
}

struct Listing<'a>(Disassembly<'a>);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.clone();
        let arch = rest.arch;
        let digits = 2 * usize::from(arch.word().bytes());
        // The longest instruction has an immediate, or three registers.
        let column = match arch.encoding() {
            Encoding::Word => usize::from(arch.word().bytes()),
            Encoding::Byte => (4 + usize::from(arch.word().bytes())).max(5),
        };
        loop {
            let code = rest.code;
            let Some((address, instruction)) = rest.next() else {
                return Ok(());
            };
            let bytes = &code[..code.len() - rest.code.len()];
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            write!(f, "{address:#0width$x}  ", width = digits + 2)?;
            write!(f, "{:<width$}  ", hex.join(" "), width = 3 * column - 1)?;
            match instruction {
                Ok(instruction) => writeln!(f, "{}", instruction.display(arch))?,
                Err(error) => writeln!(f, "/* {error} */")?,
            }
        }
    }
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

/// How many bytes to skip where there is no instruction.
fn skipped(arch: ArchId) -> usize {
    match arch.encoding() {
        Encoding::Word => arch.word().bytes().into(),
        Encoding::Byte => 1,
    }
}
