//! Objects as text, in the layout of the original disassembler.

use std::fmt;

use super::{Chunk, Object, Permissions, Reference};
use crate::Layout;
use crate::arch::ArchId;
use crate::disassemble::disassemble;
use crate::instruction::Instruction;

impl Object {
    /// The disassembly: a listing for people, chunk by chunk. Entry and global marks of data are
    /// not shown. Code that does not decode is shown as an error in a comment.
    pub fn display(&self) -> impl fmt::Display + '_ {
        Listing(self)
    }
}

struct Listing<'a>(&'a Object);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listing(object) = *self;
        let mut permissions = None;
        for (index, chunk) in object.chunks.iter().enumerate() {
            if permissions != Some(chunk.permissions) {
                writeln!(f, ".perm {}", letters(chunk.permissions))?;
                permissions = Some(chunk.permissions);
            }
            if chunk.alignment != 0 {
                writeln!(f, ".align {:#x}", chunk.alignment)?;
            }
            if chunk.permissions.contains(Permissions::EXECUTE) {
                code(f, chunk, index == object.entry, object.arch)?;
            } else {
                data(f, chunk, object.arch)?;
            }
        }
        Ok(())
    }
}

fn letters(permissions: Permissions) -> String {
    let all = [(Permissions::READ, 'r'), (Permissions::WRITE, 'w'), (Permissions::EXECUTE, 'x')];
    all.into_iter().filter(|&(bit, _)| permissions.contains(bit)).map(|(_, c)| c).collect()
}

fn code(f: &mut fmt::Formatter<'_>, chunk: &Chunk, entry: bool, arch: ArchId) -> fmt::Result {
    if entry {
        f.write_str("\n.entry\n")?;
    }
    if chunk.global {
        f.write_str("\n.global\n")?;
    }
    if !chunk.name.is_empty() {
        write!(f, "{}:", chunk.name)?;
    }
    for (offset, instruction) in disassemble(&chunk.data, 0, arch) {
        match instruction {
            Ok(instruction) => {
                let name = reference_of(&instruction, offset, chunk, arch).map(|r| r.name.as_str());
                writeln!(f, "\t{}", instruction.display_with(arch, |_| name))?;
            }
            Err(error) => writeln!(f, "\t/* {error} */")?,
        }
    }
    if chunk.data.is_empty() { f.write_str("\n") } else { Ok(()) }
}

/// The reference that fills the immediate of the instruction at `offset`.
fn reference_of<'a>(
    instruction: &Instruction,
    offset: u64,
    chunk: &'a Chunk,
    arch: ArchId,
) -> Option<&'a Reference> {
    let immediate = Layout::new(arch).immediate_offset(instruction.op.opcode()) as u64;
    chunk.references.iter().find(|reference| reference.byte_offset == offset + immediate)
}

fn data(f: &mut fmt::Formatter<'_>, chunk: &Chunk, arch: ArchId) -> fmt::Result {
    if !chunk.name.is_empty() {
        writeln!(f, "{}:", chunk.name)?;
    }
    let size = usize::from(arch.word().bytes());
    for (index, word) in chunk.data.chunks(size).enumerate() {
        let offset = (index * size) as u64;
        match chunk.references.iter().find(|reference| reference.byte_offset == offset) {
            Some(reference) => writeln!(f, "  .word  {}", reference.name)?,
            None => {
                let value = word.iter().rev().fold(0, |v, &byte| v << 8 | u64::from(byte));
                writeln!(f, "  .word  {value:#x}")?;
            }
        }
    }
    Ok(())
}
