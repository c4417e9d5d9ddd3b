//! Data objects as chunks.
//!
//! References have no addends in the linker's format. So the address of a place inside a datum is the address
//! of a label there, and the datum is cut into chunks at such places. Chunks of alignment 1 follow each other
//! directly.

use std::iter;

use cranelift_module::{DataDescription, Init, ModuleRelocTarget};
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Permissions, Reference};

use super::ModuleError;

/// The largest datum in bytes.
const MAX_BYTES: usize = 1 << 30;

/// A datum and the addresses that it holds.
#[derive(Clone, Debug)]
pub(super) struct Data {
    bytes: Vec<u8>,
    alignment: u64,
    /// The size of a word.
    word: u64,
    /// The words that hold addresses, in order.
    addresses: Vec<Address>,
}

/// A word that holds an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    /// The offset of the word in the datum.
    at: u64,
    /// The name of the function or datum that it points to.
    pub(super) target: String,
    /// The offset in the target.
    pub(super) offset: i64,
}

impl Data {
    /// Checks a description. `name_of` gives the linker's names.
    pub(super) fn new(
        name: &str,
        description: &DataDescription,
        arch: ArchId,
        name_of: impl Fn(&ModuleRelocTarget) -> String,
    ) -> Result<Data, ModuleError> {
        let fail = |what, given, limit| {
            Err(ModuleError::Data { name: name.to_owned(), what, given, limit })
        };
        let bytes = match &description.init {
            Init::Uninitialized => {
                return Err(ModuleError::NoContents { name: name.to_owned() });
            }
            Init::Zeros { size } if *size > MAX_BYTES => {
                return fail("its size in bytes", *size as i64, Some(MAX_BYTES as i64));
            }
            Init::Zeros { size } => vec![0; *size],
            Init::Bytes { contents } => contents.to_vec(),
        };
        let word = u64::from(arch.word().bytes());
        let functions = description.function_relocs.iter();
        let functions = functions.map(|&(at, id)| (at, description.function_decls.get(id), 0));
        let data = description.data_relocs.iter();
        let data = data.map(|&(at, id, addend)| (at, description.data_decls.get(id), addend));
        let mut addresses = Vec::new();
        for (at, target, offset) in functions.chain(data) {
            let Some(target) = target else {
                return fail("its address of something undeclared at offset", at.into(), None);
            };
            if u64::from(at) + word > bytes.len() as u64 {
                let limit = bytes.len() as i64 - word as i64;
                return fail("the offset of an address in it", at.into(), Some(limit));
            }
            addresses.push(Address { at: at.into(), target: name_of(target), offset });
        }
        addresses.sort();
        Ok(Data { bytes, alignment: description.align.unwrap_or(word), word, addresses })
    }

    /// The names that the datum refers to.
    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(|address| address.target.as_str())
    }

    /// The addresses in this datum that point into the middle of a datum, another or itself.
    pub(super) fn inner_addresses(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter().filter(|address| address.offset != 0)
    }

    /// Whether there can be a label at this offset from the start.
    pub(super) fn has_place(&self, offset: i64) -> bool {
        let inside = |address: &Address, offset: u64, word: u64| {
            (address.at + 1..address.at + word).contains(&offset)
        };
        u64::try_from(offset).is_ok_and(|offset| {
            offset <= self.bytes.len() as u64
                && !self.addresses.iter().any(|address| inside(address, offset, self.word))
        })
    }

    /// The length in bytes, which is also the limit of label offsets.
    pub(super) fn len(&self) -> i64 {
        self.bytes.len() as i64
    }

    /// The datum as chunks: the first has the datum's name, and one more begins at each of the `labels`,
    /// which are [places](Data::has_place) in it in ascending order. `label` names these.
    pub(super) fn chunks(
        &self,
        name: &str,
        permissions: Permissions,
        global: bool,
        arch: ArchId,
        labels: &[i64],
        label: impl Fn(&str, i64) -> String,
    ) -> Vec<Chunk> {
        let starts = iter::once(0).chain(labels.iter().map(|&at| at.unsigned_abs()));
        let ends = starts.clone().skip(1).chain([self.bytes.len() as u64]);
        let pieces = starts.zip(ends).map(|(start, end)| {
            let addresses = self.addresses.iter().filter(|a| (start..end).contains(&a.at));
            let references = addresses.map(|address| {
                let target = label(&address.target, address.offset);
                Reference::from_word(target, address.at - start, arch)
            });
            Chunk {
                name: label(name, start.cast_signed()),
                alignment: if start == 0 { self.alignment } else { 1 },
                permissions,
                global: global && start == 0,
                address: None,
                data: self.bytes[start as usize..end as usize].to_vec(),
                references: references.collect(),
            }
        });
        pieces.collect()
    }
}
