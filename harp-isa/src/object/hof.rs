//! The HARP object format, the file form of an [`Object`].
//!
//! Every item is padded with zeros to a machine word, and every number is a little-endian word:
//!
//! * `HARP`, the architecture id, NUL; index of the entry chunk; number of chunks; the offset of
//!   each chunk from the start of the file;
//! * a chunk: name, NUL; alignment; permissions; flags (bit 0: global); address, 0 if unbound; size
//!   in memory; size in the file; number of references; the references; the data;
//! * a reference: name, NUL; flags (bit 0: relative); base offset; byte offset; size in bits.
//!
//! [`Reference::shift`], which the original format does not have, stands in bits 8 to 15 of a
//! reference's flags. It is zero except in code that uses extension X.

use thiserror::Error;

use super::{Chunk, Object, Permissions, Reference};
use crate::arch::{ArchId, ArchIdError};

const MAGIC: &str = "HARP";
const GLOBAL: u64 = 1;
const RELATIVE: u64 = 1;
const SHIFT_POSITION: u32 = 8;

/// The most bytes that the chunks of a file may have together in memory. The file states their
/// sizes, so a few bytes could ask for any amount.
pub const MAX_OBJECT_BYTES: u64 = 1 << 28;

/// Why bytes are no object file, or an object has no file form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HofError {
    /// The file does not start with `HARP`.
    #[error("no HARP object file: it does not start with `{MAGIC}`")]
    Magic,
    /// The architecture id in the file is bad.
    #[error("bad architecture id in the object file: {0}")]
    Arch(#[from] ArchIdError),
    /// The file ends within an item.
    #[error("the object file ends at byte {size}, within {item} at byte {offset}")]
    Truncated {
        /// What is cut off.
        item: &'static str,
        /// Where it starts.
        offset: u64,
        /// The size of the file.
        size: u64,
    },
    /// A name that is no text, or that a NUL would cut.
    #[error("{item} at byte {offset} is no UTF-8 text without NUL")]
    Name {
        /// What the name is for.
        item: &'static str,
        /// Where it starts; in an object to be written, the index of the chunk.
        offset: u64,
    },
    /// A chunk that is bound to address 0.
    #[error(
        "chunk {chunk} is bound to address 0, by which the file format marks chunks that are not bound"
    )]
    BoundToZero {
        /// The index of the chunk.
        chunk: usize,
    },
    /// A number that its item cannot have.
    #[error("{item} is {given:#x}, the limit is {limit:#x}")]
    Limit {
        /// Which item.
        item: &'static str,
        /// Its value.
        given: u64,
        /// The largest value.
        limit: u64,
    },
}

/// The file form of `object`.
///
/// # Errors
///
/// If a number does not fit the machine's word, a name holds a NUL, or a chunk is bound to address 0.
pub fn write(object: &Object) -> Result<Vec<u8>, HofError> {
    let mut file = Writer::new(object.arch);
    file.text(&format!("{MAGIC}{}", object.arch));
    file.number("the entry index", object.entry as u64)?;
    file.number("the number of chunks", object.chunks.len() as u64)?;
    let bodies = object
        .chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| write_chunk(chunk, index, object.arch))
        .collect::<Result<Vec<_>, _>>()?;
    let table = bodies.len() * usize::from(object.arch.word().bytes());
    let mut offset = file.bytes.len() + table;
    for body in &bodies {
        file.number("the offset of a chunk", offset as u64)?;
        offset += body.len();
    }
    for body in bodies {
        file.bytes.extend_from_slice(&body);
    }
    Ok(file.bytes)
}

fn write_chunk(chunk: &Chunk, index: usize, arch: ArchId) -> Result<Vec<u8>, HofError> {
    let mut file = Writer::new(arch);
    file.name("the name of a chunk", &chunk.name, index)?;
    file.number("an alignment", chunk.alignment)?;
    file.number("permissions", chunk.permissions.bits().into())?;
    file.number("flags", if chunk.global { GLOBAL } else { 0 })?;
    if chunk.address == Some(0) {
        return Err(HofError::BoundToZero { chunk: index });
    }
    file.number("an address", chunk.address.unwrap_or(0))?;
    file.number("the size of a chunk", chunk.data.len() as u64)?;
    file.number("the size of a chunk", chunk.data.len() as u64)?;
    file.number("the number of references", chunk.references.len() as u64)?;
    for reference in &chunk.references {
        let relative = if reference.relative { RELATIVE } else { 0 };
        file.name("the name of a reference", &reference.name, index)?;
        file.number("flags", relative | u64::from(reference.shift) << SHIFT_POSITION)?;
        file.number("a base offset", reference.base_offset)?;
        file.number("a byte offset", reference.byte_offset)?;
        file.number("the size of a reference", reference.size_bits.into())?;
    }
    file.bytes.extend_from_slice(&chunk.data);
    file.pad();
    Ok(file.bytes)
}

struct Writer {
    bytes: Vec<u8>,
    arch: ArchId,
}

impl Writer {
    fn new(arch: ArchId) -> Writer {
        Writer { bytes: Vec::new(), arch }
    }

    fn pad(&mut self) {
        let size = self.bytes.len().next_multiple_of(self.arch.word().bytes().into());
        self.bytes.resize(size, 0);
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    fn name(&mut self, item: &'static str, name: &str, chunk: usize) -> Result<(), HofError> {
        if name.contains('\0') {
            return Err(HofError::Name { item, offset: chunk as u64 });
        }
        self.text(name);
        Ok(())
    }

    fn number(&mut self, item: &'static str, value: u64) -> Result<(), HofError> {
        let limit = self.arch.word().mask();
        if value > limit {
            return Err(HofError::Limit { item, given: value, limit });
        }
        self.bytes.extend_from_slice(&value.to_le_bytes()[..self.arch.word().bytes().into()]);
        Ok(())
    }
}

/// The object in the file `bytes`.
///
/// # Errors
///
/// If the bytes are no object file. References are not checked: the linker does that.
pub fn read(bytes: &[u8]) -> Result<Object, HofError> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(HofError::Magic)?;
    let id = until_nul(rest, "the architecture id", 0, bytes.len())?;
    let arch: ArchId = id.parse()?;
    let mut file = Reader { bytes, position: 0, arch };
    file.text("the architecture id")?;
    let entry = file.number("the entry index")?;
    let count = file.number("the number of chunks")?;
    // The offsets stand in the file, so their number is bounded before anything is allocated.
    let limit = file.left() / u64::from(arch.word().bytes());
    bounded("the number of chunks", count, limit)?;
    bounded("the entry index", entry, count.max(1) - 1)?;
    let offsets = (0..count)
        .map(|_| file.number("the offset of a chunk"))
        .collect::<Result<Vec<_>, HofError>>()?;
    let mut budget = Budget { memory: MAX_OBJECT_BYTES, file: bytes.len() as u64 };
    let chunks = offsets
        .into_iter()
        .map(|offset| {
            bounded("the offset of a chunk", offset, bytes.len() as u64)?;
            read_chunk(&mut Reader { bytes, position: offset as usize, arch }, &mut budget)
        })
        .collect::<Result<Vec<_>, HofError>>()?;
    Ok(Object { arch, chunks, entry: entry as usize })
}

/// How many bytes may still be made, and read: chunks that share their bytes, which no writer makes,
/// would turn a small file into any number of names and references.
struct Budget {
    memory: u64,
    file: u64,
}

fn read_chunk(file: &mut Reader<'_>, budget: &mut Budget) -> Result<Chunk, HofError> {
    let start = file.left();
    let name = file.text("the name of a chunk")?;
    let alignment = file.number("an alignment")?;
    let permissions = file.number("permissions")?;
    let permissions =
        u8::try_from(permissions).ok().and_then(Permissions::from_bits).ok_or(HofError::Limit {
            item: "permissions",
            given: permissions,
            limit: Permissions::all().bits().into(),
        })?;
    let global = file.number("flags")? & GLOBAL != 0;
    let address = Some(file.number("an address")?).filter(|&address| address != 0);
    let memory = file.number("the size of a chunk in memory")?;
    bounded("the size of a chunk in memory", memory, budget.memory)?;
    budget.memory -= memory;
    let disk = file.number("the size of a chunk in the file")?;
    bounded("the size of a chunk in the file", disk, memory)?;
    let count = file.number("the number of references")?;
    bounded("the number of references", count, file.left())?;
    let references =
        (0..count).map(|_| read_reference(file)).collect::<Result<Vec<_>, HofError>>()?;
    let mut data = file.take("the data of a chunk", disk as usize)?.to_vec();
    data.resize(memory as usize, 0);
    let size = start - file.left();
    bounded(
        "the size of a chunk with its references, outside of other chunks,",
        size,
        budget.file,
    )?;
    budget.file -= size;
    Ok(Chunk { name, alignment, permissions, global, address, data, references })
}

fn read_reference(file: &mut Reader<'_>) -> Result<Reference, HofError> {
    let name = file.text("the name of a reference")?;
    let flags = file.number("the flags of a reference")?;
    let base_offset = file.number("a base offset")?;
    let byte_offset = file.number("a byte offset")?;
    let size = file.number("the size of a reference")?;
    bounded("the size of a reference", size, file.arch.word().bits().into())?;
    Ok(Reference {
        name,
        relative: flags & RELATIVE != 0,
        base_offset,
        byte_offset,
        size_bits: size as u8,
        shift: (flags >> SHIFT_POSITION) as u8,
    })
}

fn bounded(item: &'static str, given: u64, limit: u64) -> Result<(), HofError> {
    if given <= limit { Ok(()) } else { Err(HofError::Limit { item, given, limit }) }
}

fn until_nul<'a>(
    bytes: &'a [u8],
    item: &'static str,
    offset: usize,
    size: usize,
) -> Result<&'a str, HofError> {
    let (offset, size) = (offset as u64, size as u64);
    let end = bytes.iter().position(|&byte| byte == 0);
    let end = end.ok_or(HofError::Truncated { item, offset, size })?;
    str::from_utf8(&bytes[..end]).map_err(|_| HofError::Name { item, offset })
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    arch: ArchId,
}

impl<'a> Reader<'a> {
    fn left(&self) -> u64 {
        self.bytes.len().saturating_sub(self.position) as u64
    }

    /// `size` bytes; the next item starts at the next word of the file.
    fn take(&mut self, item: &'static str, size: usize) -> Result<&'a [u8], HofError> {
        let start = self.position;
        let taken = start.checked_add(size).and_then(|end| self.bytes.get(start..end));
        let taken = taken.ok_or(HofError::Truncated {
            item,
            offset: start as u64,
            size: self.bytes.len() as u64,
        })?;
        self.position = (start + size).next_multiple_of(self.arch.word().bytes().into());
        Ok(taken)
    }

    fn text(&mut self, item: &'static str) -> Result<String, HofError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let text = until_nul(rest, item, self.position, self.bytes.len())?;
        self.take(item, text.len() + 1)?;
        Ok(text.to_owned())
    }

    fn number(&mut self, item: &'static str) -> Result<u64, HofError> {
        let bytes = self.take(item, self.arch.word().bytes().into())?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}
