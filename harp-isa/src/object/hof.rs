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
//! [`Reference::shift`], which the original format does not have, is in bits 8 to 15 of a
//! reference's flags. It is zero except in code that uses extension X.
//!
//! # What is read
//!
//! Files are not trusted. Reading takes memory in proportion to the file, except for chunks that are
//! larger in memory than in the file: their rest is zero, and all chunks of a file have at most
//! [`MAX_OBJECT_BYTES`]. [`write()`] preserves everything that is read: unknown permissions and flags are an
//! error, since they might change what the file means. [`read`] ignores the contents of padding and of places
//! that no offset leads to; [`read_exact`] refuses files that have anything there, so that writing the object
//! again gives the same bytes.

use thiserror::Error;

use super::{Chunk, MAX_OBJECT_BYTES, Object, Permissions, Reference};
use crate::arch::{ArchId, ArchIdError};

const MAGIC: &str = "HARP";
const GLOBAL: u64 = 1;
const RELATIVE: u64 = 1;
const SHIFT_POSITION: u32 = 8;
const REFERENCE_FLAGS: u64 = RELATIVE | (u8::MAX as u64) << SHIFT_POSITION;

/// Why bytes are not an object file, or an object cannot be written. Offsets are those of the item in the
/// file, or in the file that was to be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HofError {
    /// The file does not start with `HARP`.
    #[error("not a HARP object file: it does not start with `{MAGIC}`")]
    Magic,
    /// The architecture id in the file is bad.
    #[error("bad architecture id after `{MAGIC}` in the object file: {0}")]
    Arch(#[from] ArchIdError),
    /// The file ends within an item.
    #[error("the object file ends at byte {size}, within {item} at byte {offset}")]
    Truncated {
        /// The item that is cut off.
        item: &'static str,
        /// Where it starts.
        offset: u64,
        /// The size of the file.
        size: u64,
    },
    /// A name that is not UTF-8, or contains a NUL, which would end it.
    #[error("{item} at byte {offset} is not UTF-8 text without NUL")]
    Name {
        /// What the name is for.
        item: &'static str,
        /// Where it starts.
        offset: u64,
    },
    /// A chunk that is bound to address 0.
    #[error(
        "chunk {chunk} is bound to address 0, which in the file format marks chunks that are not bound"
    )]
    BoundToZero {
        /// The index of the chunk.
        chunk: usize,
    },
    /// A number beyond the limit of its item.
    #[error("{item} at byte {offset} is {given:#x}, the limit is {limit:#x}")]
    Limit {
        /// Which item.
        item: &'static str,
        /// Where it starts.
        offset: u64,
        /// Its value.
        given: u64,
        /// The largest value.
        limit: u64,
    },
    /// Bits that the format does not define.
    #[error("{item} at byte {offset} are {given:#x}, of which only {known:#x} are known")]
    UnknownBits {
        /// Which item.
        item: &'static str,
        /// Where it starts.
        offset: u64,
        /// Its value.
        given: u64,
        /// The bits that are defined.
        known: u64,
    },
    /// A chunk that does not start at a word of the file.
    #[error(
        "the offset of a chunk at byte {offset} is {given:#x}, which is not a multiple of {word}"
    )]
    Unaligned {
        /// The place of the offset in the file.
        offset: u64,
        /// The offset of the chunk.
        given: u64,
        /// Bytes of a word.
        word: u8,
    },
    /// A file that differs from what [`write()`] makes of its object.
    #[error(
        "the object file differs from the one that would be written from byte {offset} on: it has padding \
         that is not zero, unused bytes, or chunks in another order or with zeros left out"
    )]
    NotExact {
        /// The first byte that differs, or the size of the smaller one.
        offset: u64,
    },
    /// Chunks that share bytes of the file.
    #[error(
        "chunk {chunk} at byte {offset} has {given} bytes with its references, \
         and {limit} bytes of the file are outside of the chunks before"
    )]
    Overlap {
        /// The index of the chunk.
        chunk: usize,
        /// Where it starts.
        offset: u64,
        /// Its size in the file.
        given: u64,
        /// The bytes that are left.
        limit: u64,
    },
}

/// The bytes of the object file for `object`. [`read`] gives the same object again.
///
/// # Errors
///
/// If a number does not fit the machine's word, a name holds a NUL, a chunk is bound to address 0,
/// the entry is not a chunk, or the chunks have more than [`MAX_OBJECT_BYTES`].
pub fn write(object: &Object) -> Result<Vec<u8>, HofError> {
    let word = usize::from(object.arch.word().bytes());
    let mut file = Writer { bytes: Vec::new(), arch: object.arch };
    file.text(&format!("{MAGIC}{}", object.arch));
    let (entry, count) = (object.entry as u64, object.chunks.len() as u64);
    file.bounded("the entry index", entry, count.max(1) - 1)?;
    file.number("the number of chunks", count)?;
    let offsets = file.bytes.len();
    file.bytes.resize(offsets + object.chunks.len() * word, 0);
    let mut memory = MAX_OBJECT_BYTES;
    for (index, chunk) in object.chunks.iter().enumerate() {
        let start = file.bytes.len() as u64;
        let place = offsets + index * word;
        file.check("the offset of a chunk", place, start, object.arch.word().mask())?;
        file.bytes[place..place + word].copy_from_slice(&start.to_le_bytes()[..word]);
        write_chunk(&mut file, chunk, index, memory)?;
        memory -= chunk.data.len() as u64;
    }
    Ok(file.bytes)
}

fn write_chunk(
    file: &mut Writer,
    chunk: &Chunk,
    index: usize,
    memory: u64,
) -> Result<(), HofError> {
    file.name("the name of a chunk", &chunk.name)?;
    file.number("an alignment", chunk.alignment)?;
    file.number("permissions", chunk.permissions.bits().into())?;
    file.number("flags", if chunk.global { GLOBAL } else { 0 })?;
    if chunk.address == Some(0) {
        return Err(HofError::BoundToZero { chunk: index });
    }
    file.number("an address", chunk.address.unwrap_or(0))?;
    let size = chunk.data.len() as u64;
    file.bounded("the size of a chunk in memory", size, memory)?;
    file.number("the size of a chunk in the file", size)?;
    file.number("the number of references", chunk.references.len() as u64)?;
    for reference in &chunk.references {
        let relative = if reference.relative { RELATIVE } else { 0 };
        file.name("the name of a reference", &reference.name)?;
        file.number("flags", relative | u64::from(reference.shift) << SHIFT_POSITION)?;
        file.number("a base offset", reference.base_offset)?;
        file.number("a byte offset", reference.byte_offset)?;
        let limit = file.arch.word().bits().into();
        file.bounded("the size of a reference", reference.size_bits.into(), limit)?;
    }
    file.bytes.extend_from_slice(&chunk.data);
    file.pad();
    Ok(())
}

struct Writer {
    bytes: Vec<u8>,
    arch: ArchId,
}

impl Writer {
    fn pad(&mut self) {
        let size = self.bytes.len().next_multiple_of(self.arch.word().bytes().into());
        self.bytes.resize(size, 0);
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    fn name(&mut self, item: &'static str, name: &str) -> Result<(), HofError> {
        if name.contains('\0') {
            return Err(HofError::Name { item, offset: self.bytes.len() as u64 });
        }
        self.text(name);
        Ok(())
    }

    fn number(&mut self, item: &'static str, value: u64) -> Result<(), HofError> {
        self.bounded(item, value, u64::MAX)
    }

    /// Writes a number that must not exceed `limit`, and must fit a word.
    fn bounded(&mut self, item: &'static str, value: u64, limit: u64) -> Result<(), HofError> {
        let word = self.arch.word();
        self.check(item, self.bytes.len(), value, limit.min(word.mask()))?;
        self.bytes.extend_from_slice(&value.to_le_bytes()[..word.bytes().into()]);
        Ok(())
    }

    fn check(
        &self,
        item: &'static str,
        place: usize,
        given: u64,
        limit: u64,
    ) -> Result<(), HofError> {
        let offset = place as u64;
        if given <= limit { Ok(()) } else { Err(HofError::Limit { item, offset, given, limit }) }
    }
}

/// The object in the file `bytes`.
///
/// # Errors
///
/// If the bytes are not an object file. References are not checked: the linker does that.
pub fn read(bytes: &[u8]) -> Result<Object, HofError> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(HofError::Magic)?;
    let id = until_nul(rest, "the architecture id", MAGIC.len(), bytes.len())?;
    let arch: ArchId = id.parse()?;
    let word = arch.word().bytes();
    let mut file = Reader { bytes, position: 0, arch };
    file.text("the architecture id")?;
    let entry_offset = file.position;
    let entry = file.number("the entry index")?;
    // The offsets are in the file, so the file's size bounds their number before anything is allocated.
    let limit = (file.left() / u64::from(word)).saturating_sub(1);
    let count = file.bounded("the number of chunks", limit)?;
    let limit = count.max(1) - 1;
    if entry > limit {
        let (item, offset) = ("the entry index", entry_offset as u64);
        return Err(HofError::Limit { item, offset, given: entry, limit });
    }
    let mut budget = Budget { memory: MAX_OBJECT_BYTES, file: bytes.len() as u64 };
    let mut chunks = Vec::new();
    for index in 0..count as usize {
        let offset = file.position as u64;
        let given = file.bounded("the offset of a chunk", bytes.len() as u64)?;
        if given % u64::from(word) != 0 {
            return Err(HofError::Unaligned { offset, given, word });
        }
        let mut chunk = Reader { bytes, position: given as usize, arch };
        chunks.push(read_chunk(&mut chunk, index, &mut budget)?);
    }
    Ok(Object { arch, chunks, entry: entry as usize })
}

/// The object in the file `bytes`, if [`write()`] makes the same bytes from it.
///
/// # Errors
///
/// If the bytes are not an object file, or differ from what [`write()`] makes from the object.
pub fn read_exact(bytes: &[u8]) -> Result<Object, HofError> {
    let object = read(bytes)?;
    let written = write(&object)?;
    if written == bytes {
        return Ok(object);
    }
    let differs = written.iter().zip(bytes).position(|(ours, given)| ours != given);
    let offset = differs.unwrap_or(written.len().min(bytes.len())) as u64;
    Err(HofError::NotExact { offset })
}

/// How many bytes may still be allocated, and read. It refuses chunks that share bytes, which no writer makes:
/// they would turn a small file into any number of names and references.
struct Budget {
    memory: u64,
    file: u64,
}

fn read_chunk(file: &mut Reader<'_>, index: usize, budget: &mut Budget) -> Result<Chunk, HofError> {
    let offset = file.position as u64;
    let start = file.left();
    let name = file.text("the name of a chunk")?;
    let alignment = file.number("an alignment")?;
    let permissions = file.bits("permissions", Permissions::all().bits().into())?;
    let permissions = Permissions::from_bits_truncate(permissions as u8);
    let global = file.bits("the flags of a chunk", GLOBAL)? & GLOBAL != 0;
    let address = Some(file.number("an address")?).filter(|&address| address != 0);
    let memory = file.bounded("the size of a chunk in memory", budget.memory)?;
    budget.memory -= memory;
    let disk = file.bounded("the size of a chunk in the file", memory)?;
    let count = file.bounded("the number of references", file.left())?;
    let mut references = Vec::new();
    for _ in 0..count {
        references.push(read_reference(file)?);
    }
    let contents = file.take("the data of a chunk", disk as usize)?;
    let given = start - file.left();
    if given > budget.file {
        return Err(HofError::Overlap { chunk: index, offset, given, limit: budget.file });
    }
    budget.file -= given;
    // The rest consists of zero pages of the host, which cost nothing until they are accessed.
    let mut data = vec![0; memory as usize];
    data[..contents.len()].copy_from_slice(contents);
    Ok(Chunk { name, alignment, permissions, global, address, data, references })
}

fn read_reference(file: &mut Reader<'_>) -> Result<Reference, HofError> {
    let name = file.text("the name of a reference")?;
    let flags = file.bits("the flags of a reference", REFERENCE_FLAGS)?;
    let base_offset = file.number("a base offset")?;
    let byte_offset = file.number("a byte offset")?;
    let size = file.bounded("the size of a reference", file.arch.word().bits().into())?;
    Ok(Reference {
        name,
        relative: flags & RELATIVE != 0,
        base_offset,
        byte_offset,
        size_bits: size as u8,
        shift: (flags >> SHIFT_POSITION) as u8,
    })
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

    /// Takes `size` bytes; the next item starts at the next word of the file.
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

    fn bounded(&mut self, item: &'static str, limit: u64) -> Result<u64, HofError> {
        let offset = self.position as u64;
        let given = self.number(item)?;
        if given <= limit { Ok(given) } else { Err(HofError::Limit { item, offset, given, limit }) }
    }

    /// A number with no bits set other than `known`.
    fn bits(&mut self, item: &'static str, known: u64) -> Result<u64, HofError> {
        let offset = self.position as u64;
        let given = self.number(item)?;
        if given & !known == 0 {
            return Ok(given);
        }
        Err(HofError::UnknownBits { item, offset, given, known })
    }
}
