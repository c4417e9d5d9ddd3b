//! Objects as text, in the layout of the original disassembler.

use std::collections::HashMap;
use std::fmt;

use super::{Chunk, Object, Permissions};
use crate::Layout;
use crate::arch::ArchId;
use crate::disassemble::disassemble;
use crate::instruction::Instruction;
use crate::symbol::is_symbol;

impl Object {
    /// The disassembly: a human-readable listing, chunk by chunk, byte for byte that of the original.
    ///
    /// Assembled again it gives the same program, except for what the layout cannot express: marks of
    /// data, and the machine, are not shown; data is padded to a whole word; data without alignment gets
    /// the assembler's; only the names of references are shown; code that does not decode is shown as an
    /// error in a comment. [`display_exact`](Self::display_exact) shows everything.
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

/// A name, in quotes unless it is a symbol: names in files can be any text, which could look like lines of
/// the listing.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_symbol(self.0) { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// Any text as the assembler reads it between double quotes.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("\\n")?,
                '"' | '\\' => write!(f, "\\{c}")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

pub(super) fn letters(permissions: Permissions) -> String {
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
        write!(f, "{}:", Name(&chunk.name))?;
    }
    let names = Names::new(chunk);
    for (offset, instruction) in disassemble(&chunk.data, 0, arch) {
        match instruction {
            Ok(instruction) => {
                let name = names.of_instruction(&instruction, offset, arch);
                let name = name.map(|name| Name(name).to_string());
                writeln!(f, "\t{}", instruction.display_with(arch, |_| name.as_deref()))?;
            }
            Err(error) => writeln!(f, "\t/* {error} */")?,
        }
    }
    if chunk.data.is_empty() { f.write_str("\n") } else { Ok(()) }
}

/// The names that a chunk refers to, by the byte offset of the reference. Of several references at one
/// offset the first counts.
struct Names<'a>(HashMap<u64, &'a str>);

impl<'a> Names<'a> {
    fn new(chunk: &'a Chunk) -> Names<'a> {
        let references = chunk.references.iter().rev();
        Names(references.map(|reference| (reference.byte_offset, &*reference.name)).collect())
    }

    fn at(&self, offset: u64) -> Option<&'a str> {
        self.0.get(&offset).copied()
    }

    /// The name that fills the immediate of the instruction at `offset`.
    fn of_instruction(
        &self,
        instruction: &Instruction,
        offset: u64,
        arch: ArchId,
    ) -> Option<&'a str> {
        let immediate = Layout::new(arch).immediate_offset(instruction.op.opcode());
        self.at(offset + immediate as u64)
    }
}

fn data(f: &mut fmt::Formatter<'_>, chunk: &Chunk, arch: ArchId) -> fmt::Result {
    if !chunk.name.is_empty() {
        writeln!(f, "{}:", Name(&chunk.name))?;
    }
    let names = Names::new(chunk);
    let size = usize::from(arch.word().bytes());
    for (index, word) in chunk.data.chunks(size).enumerate() {
        let offset = (index * size) as u64;
        match names.at(offset) {
            Some(name) => writeln!(f, "  .word  {}", Name(name))?,
            None => {
                let value = word.iter().rev().fold(0, |v, &byte| v << 8 | u64::from(byte));
                writeln!(f, "  .word  {value:#x}")?;
            }
        }
    }
    Ok(())
}
