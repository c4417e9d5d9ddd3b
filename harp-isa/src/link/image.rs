//! Images, the output of the linker.

use crate::arch::ArchId;
use crate::object::Permissions;

/// Code and data at their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The machine it is for: that of the first object.
    pub arch: ArchId,
    /// The address of the first byte.
    pub base: u64,
    /// The contents.
    pub bytes: Vec<u8>,
    /// All names, sorted by name, then by address.
    pub symbols: Vec<Symbol>,
    /// The chunks that are not empty, by address.
    pub sections: Vec<Section>,
}

/// A name of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: String,
    /// The address of the chunk that it labels.
    pub address: u64,
    /// Whether it is visible to all objects.
    pub global: bool,
    /// The index of the object that it comes from.
    pub object: usize,
}

/// The place of a chunk in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The address of the first byte.
    pub address: u64,
    /// The size in bytes.
    pub size: u64,
    /// What user mode may do with it.
    pub permissions: Permissions,
}

impl Image {
    /// The address of `name`: the global one, else the only local one.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let first = self.symbols.partition_point(|symbol| symbol.name.as_str() < name);
        let rest = &self.symbols[first..];
        let named = &rest[..rest.partition_point(|symbol| symbol.name == name)];
        match (named.iter().find(|symbol| symbol.global), named) {
            (Some(symbol), _) | (None, [symbol]) => Some(symbol.address),
            _ => None,
        }
    }

    /// Overwrites the word at `address` with as many low bits of `value`.
    ///
    /// # Panics
    ///
    /// If the image does not have all of the word.
    pub fn put_word(&mut self, address: u64, value: u64) {
        let bytes = usize::from(self.arch.word().bytes());
        let at = (address - self.base) as usize;
        self.bytes[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// The nearest symbol at or before `address`, and the distance to it.
    pub fn symbol_before(&self, address: u64) -> Option<(&Symbol, u64)> {
        let before = self.symbols.iter().filter(|symbol| symbol.address <= address);
        let nearest = before.max_by_key(|symbol| symbol.address)?;
        Some((nearest, address - nearest.address))
    }
}
