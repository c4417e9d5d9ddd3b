//! Objects as exact text, from which the assembler makes the same object, down to the last reference.
//!
//! The text uses `.chunk` for all properties of a chunk, so that it does not depend on the assembler's
//! marks and defaults at that place. Contents are shown as instructions and words where assembling these
//! gives the same bytes and references, else as bytes and `.ref`s.

use std::fmt;

use super::text::{Quoted, letters};
use super::{Chunk, Object, Permissions, Reference, placeholder};
use crate::arch::ArchId;
use crate::encoding::{decode, encode};
use crate::instruction::Instruction;
use crate::operand::Operand;

/// The least number of zero words that is shown as `.space`.
const SPACE: usize = 16;

impl Object {
    /// The object as text that states everything about it, with the assembler's
    /// [extensions](crate::asm#extensions). Assembled for the same machine, which a comment names, it
    /// gives an equal object, with the same [bytes](super::hof).
    ///
    /// The object must be one that [`hof::write`](super::hof::write) accepts: others the assembler may refuse
    /// too.
    ///
    /// ```
    /// use harp_isa::{ArchId, assemble};
    ///
    /// let source = ".perm x\n.global\nmain: jali %ra, print\n.perm r\n.byte 3";
    /// let object = assemble(source, ArchId::HARP32, &[])?;
    /// let text = object.display_exact().to_string();
    /// assert_eq!(
    ///     text,
    ///     "/* machine: 4w8/8/16/16 */\n\n\
    ///      .chunk \"main\" \"xge\" 0x0\n\tjali %r7 \"print\";\n\n\
    ///      .chunk \"main\" \"r\" 0x4\n\t.byte 0x3\n"
    /// );
    /// assert_eq!(assemble(&text, ArchId::HARP32, &[]), Ok(object));
    /// # Ok::<(), harp_isa::AsmErrors>(())
    /// ```
    pub fn display_exact(&self) -> impl fmt::Display + '_ {
        Exact(self)
    }
}

struct Exact<'a>(&'a Object);

impl fmt::Display for Exact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exact(object) = *self;
        writeln!(f, "/* machine: {} */", object.arch)?;
        for (index, chunk) in object.chunks.iter().enumerate() {
            header(f, chunk, index == object.entry)?;
            Contents::new(chunk, object.arch).write(f)?;
        }
        Ok(())
    }
}

fn header(f: &mut fmt::Formatter<'_>, chunk: &Chunk, entry: bool) -> fmt::Result {
    let permissions = letters(chunk.permissions);
    let global = if chunk.global { "g" } else { "" };
    let entry = if entry { "e" } else { "" };
    write!(f, "\n.chunk {} ", Quoted(&chunk.name))?;
    write!(f, "\"{permissions}{global}{entry}\" {:#x}", chunk.alignment)?;
    match chunk.address {
        Some(address) => writeln!(f, " {address:#x}"),
        None => writeln!(f),
    }
}

/// A walk over the contents of a chunk.
struct Contents<'a> {
    chunk: &'a Chunk,
    arch: ArchId,
    word: usize,
    /// Byte offset and index of the references, in this order.
    by_offset: Vec<(u64, usize)>,
    /// The index of the first reference that was not shown yet. They are shown in their order.
    next: usize,
}

impl<'a> Contents<'a> {
    fn new(chunk: &'a Chunk, arch: ArchId) -> Contents<'a> {
        let references = chunk.references.iter().enumerate();
        let mut by_offset: Vec<_> =
            references.map(|(index, reference)| (reference.byte_offset, index)).collect();
        by_offset.sort_unstable();
        Contents { chunk, arch, word: arch.word().bytes().into(), by_offset, next: 0 }
    }

    fn write(mut self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_code = self.chunk.permissions.contains(Permissions::EXECUTE);
        let mut offset = 0;
        while offset < self.chunk.data.len() {
            let zeros = self.zero_words(offset);
            offset += if zeros >= SPACE {
                writeln!(f, "\t.space {zeros}")?;
                zeros * self.word
            } else if let Some(instruction) = self.instruction(offset).filter(|_| is_code) {
                self.write_instruction(f, offset, &instruction)?
            } else {
                self.write_data(f, offset)?
            };
        }
        self.write_references(f, self.chunk.references.len())
    }

    /// How many words from `offset` on are zero, up to the next reference.
    fn zero_words(&self, offset: usize) -> usize {
        let after = self.by_offset.partition_point(|&(place, _)| place < offset as u64);
        let end = self.by_offset.get(after).map_or(u64::MAX, |&(place, _)| place);
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(self.chunk.data.len());
        let zeros = self.chunk.data[offset..end].iter().take_while(|&&byte| byte == 0);
        zeros.count() / self.word
    }

    /// The instruction at `offset`, if its text assembles to these bytes.
    fn instruction(&self, offset: usize) -> Option<Instruction> {
        let bytes = &self.chunk.data[offset..];
        let (instruction, size) = decode(bytes, self.arch).ok()?;
        let mut again = Vec::new();
        encode(&instruction, self.arch, &mut again).ok()?;
        (again == bytes[..size]).then_some(instruction)
    }

    /// Shows the instruction at `offset`, and returns its size.
    fn write_instruction(
        &mut self,
        f: &mut fmt::Formatter<'_>,
        offset: usize,
        instruction: &Instruction,
    ) -> Result<usize, fmt::Error> {
        let (arch, opcode) = (self.arch, instruction.op.opcode());
        let mut immediate = None;
        instruction.op.for_each_operand(|operand| {
            if let Operand::Imm(value) = operand {
                immediate = Some(value);
            }
        });
        let mut name = None;
        if immediate == Some(placeholder(opcode, arch)) {
            let size = crate::Layout::new(arch).immediate_offset(opcode);
            name = self.take_reference(f, offset + size, |reference| {
                Reference::from_instruction("", opcode, offset as u64, arch)
                    .is_some_and(|plain| plain == *reference)
            })?;
        }
        let name = name.map(|name| Quoted(name).to_string());
        writeln!(f, "\t{}", instruction.display_with(arch, |_| name.as_deref()))?;
        Ok(crate::Layout::new(arch).size(opcode))
    }

    /// Shows a word, or a byte where no whole word is left, and returns its size.
    fn write_data(
        &mut self,
        f: &mut fmt::Formatter<'_>,
        offset: usize,
    ) -> Result<usize, fmt::Error> {
        let rest = &self.chunk.data[offset..];
        // In the byte encoding an instruction may start at the next byte.
        let is_code = self.chunk.permissions.contains(Permissions::EXECUTE);
        let steps_by_bytes = is_code && self.arch.encoding() == crate::Encoding::Byte;
        let Some(word) = rest.get(..self.word).filter(|_| !steps_by_bytes) else {
            writeln!(f, "\t.byte {:#x}", rest[0])?;
            return Ok(1);
        };
        let value = word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let arch = self.arch;
        let mut name = None;
        if value == 0 {
            name = self.take_reference(f, offset, |reference| {
                Reference::from_word("", offset as u64, arch) == *reference
            })?;
        }
        match name {
            Some(name) => writeln!(f, "\t.word {}", Quoted(name))?,
            None => writeln!(f, "\t.word {value:#x}")?,
        }
        Ok(self.word)
    }

    /// The name of the first reference at byte `place` that is not shown yet, if, apart from its name, it equals
    /// `plain`. It then counts as shown, and those before it are shown.
    fn take_reference(
        &mut self,
        f: &mut fmt::Formatter<'_>,
        place: usize,
        plain: impl FnOnce(&Reference) -> bool,
    ) -> Result<Option<&'a str>, fmt::Error> {
        let at = (place as u64, self.next);
        let found = self.by_offset.partition_point(|&reference| reference < at);
        let Some(&(offset, index)) = self.by_offset.get(found) else {
            return Ok(None);
        };
        let reference = &self.chunk.references[index];
        let nameless = Reference { name: String::new(), ..*reference };
        if offset != place as u64 || !plain(&nameless) {
            return Ok(None);
        }
        self.write_references(f, index)?;
        self.next = index + 1;
        Ok(Some(&reference.name))
    }

    /// Shows the references before index `end` that were not shown yet.
    fn write_references(&mut self, f: &mut fmt::Formatter<'_>, end: usize) -> fmt::Result {
        for reference in &self.chunk.references[self.next..end] {
            let Reference { name, relative, base_offset, byte_offset, size_bits, shift } =
                reference;
            let kind = if *relative { "r" } else { "" };
            write!(f, "\t.ref {} \"{kind}\" ", Quoted(name))?;
            writeln!(f, "{base_offset:#x} {byte_offset:#x} {size_bits} {shift}")?;
        }
        self.next = end;
        Ok(())
    }
}
