//! Object code: named chunks of code and data with references by name.
//!
//! The [assembler](crate::asm) and code generators make [`Object`]s, and the [linker](mod@crate::link)
//! links them. [`hof`] is their file format.

use bitflags::bitflags;

use crate::arch::ArchId;
use crate::opcode::OperandKind;
use crate::table::Opcode;
use crate::{Encoding, Layout};

mod exact;
pub mod hof;
#[cfg(feature = "serde")]
mod saved;
mod text;

/// The most bytes that the chunks of an object may have together, whether it is assembled or read: a few
/// bytes of text or of a file can ask for any amount. The linker has a limit of its own.
pub const MAX_OBJECT_BYTES: u64 = 1 << 26;

/// Code and data of one translation unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The machine it is for. Lanes and warps do not matter to the linker.
    pub arch: ArchId,
    /// The pieces, in the order in which the linker places them.
    pub chunks: Vec<Chunk>,
    /// The index of the chunk that is marked as the entry, 0 if none is. The mark is only for tools: a run
    /// starts at the beginning of the image anyway.
    pub entry: usize,
}

bitflags! {
    /// The permissions of user mode for a chunk.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Permissions: u8 {
        /// Load.
        const READ = 1;
        /// Store.
        const WRITE = 2;
        /// Fetch instructions; tools show such a chunk as code.
        const EXECUTE = 4;
    }
}

/// A piece of an object that the linker moves as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Chunk {
    /// The label at its beginning; empty if there is none.
    ///
    /// Consecutive chunks under one label share the name, which then denotes the first.
    pub name: String,
    /// Its address is a multiple of this number of bytes; 0 and 1 leave it anywhere.
    pub alignment: u64,
    /// The permissions of user mode.
    pub permissions: Permissions,
    /// Whether the name is visible to other objects.
    pub global: bool,
    /// The address that it must have, if it is bound to one.
    pub address: Option<u64>,
    /// Its contents, with placeholders where references lie.
    pub data: Vec<u8>,
    /// The places that the linker fills in.
    pub references: Vec<Reference>,
}

/// A field of a chunk that the linker fills with the address of a name.
///
/// The field lies in the little-endian machine word at `byte_offset`, `shift` bits above its least
/// significant bit, and is `size_bits` wide.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Reference {
    /// The name.
    pub name: String,
    /// Whether the field holds the distance from `base_offset`, not the address.
    pub relative: bool,
    /// The offset in the chunk at which distances start: the end of the instruction or datum.
    pub base_offset: u64,
    /// The offset in the chunk of the word that holds the field.
    pub byte_offset: u64,
    /// The width of the field in bits.
    pub size_bits: u8,
    /// The number of bits below the field. 0 except in the word encoding of extension X.
    pub shift: u8,
}

impl Reference {
    /// The reference that an instruction `opcode` at `offset` of its chunk makes to `name` through
    /// its immediate; relative where the operand is a displacement. `None` without an immediate.
    pub fn from_instruction(
        name: impl Into<String>,
        opcode: Opcode,
        offset: u64,
        arch: ArchId,
    ) -> Option<Reference> {
        let immediate = opcode.operands().iter().find(|o| o.kind.is_immediate())?;
        let layout = Layout::new(arch);
        Some(Reference {
            name: name.into(),
            relative: immediate.kind == OperandKind::Rel,
            base_offset: offset + layout.size(opcode) as u64,
            byte_offset: offset + layout.immediate_offset(opcode) as u64,
            size_bits: layout.immediate_bits(opcode),
            shift: layout.immediate_shift(opcode),
        })
    }

    /// The reference that a data word at `offset` of its chunk makes to `name`.
    pub fn from_word(name: impl Into<String>, offset: u64, arch: ArchId) -> Reference {
        Reference {
            name: name.into(),
            relative: false,
            base_offset: offset + u64::from(arch.word().bytes()),
            byte_offset: offset,
            size_bits: arch.word().bits(),
            shift: 0,
        }
    }
}

/// The placeholder immediate of a reference until it is linked, truncated to the field of `opcode`.
pub fn placeholder(opcode: Opcode, arch: ArchId) -> i64 {
    const UNRESOLVED: i64 = 0xa5;
    match (arch.encoding(), Layout::new(arch).immediate_bits(opcode)) {
        (_, 0) => 0,
        (Encoding::Byte, _) => UNRESOLVED,
        (Encoding::Word, bits) => (UNRESOLVED << (64 - bits)) >> (64 - bits),
    }
}
