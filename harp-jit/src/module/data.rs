//! Data objects as chunks.

use cranelift_module::{DataDescription, Init, ModuleRelocTarget};
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Permissions, Reference};

use super::ModuleError;

/// The largest datum in bytes.
const MAX_BYTES: usize = 1 << 30;

/// A datum with its references.
#[derive(Clone, Debug)]
pub(super) struct Data {
    bytes: Vec<u8>,
    alignment: u64,
    /// Offsets of words that hold addresses, and the names of these.
    addresses: Vec<(u64, String)>,
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
            Init::Uninitialized => return fail("its contents are not given", 0, 0),
            Init::Zeros { size } if *size > MAX_BYTES => {
                return fail("too large", *size as i64, MAX_BYTES as i64);
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
        for (at, target, addend) in functions.chain(data) {
            let Some(target) = target else {
                return fail("an address of something that is not declared", at.into(), 0);
            };
            if addend != 0 {
                return fail("an address with something added to it", addend, 0);
            }
            if u64::from(at) + word > bytes.len() as u64 {
                let limit = bytes.len() as i64 - word as i64;
                return fail("an address beyond its end", at.into(), limit);
            }
            addresses.push((at.into(), name_of(target)));
        }
        addresses.sort();
        Ok(Data { bytes, alignment: description.align.unwrap_or(word), addresses })
    }

    /// The names that it refers to.
    pub(super) fn references(&self) -> impl Iterator<Item = &str> {
        self.addresses.iter().map(|(_, name)| name.as_str())
    }

    pub(super) fn chunk(
        &self,
        name: &str,
        permissions: Permissions,
        global: bool,
        arch: ArchId,
    ) -> Chunk {
        let references = self.addresses.iter();
        let references =
            references.map(|(at, target)| Reference::from_word(target.as_str(), *at, arch));
        Chunk {
            name: name.to_owned(),
            alignment: self.alignment,
            permissions,
            global,
            address: None,
            data: self.bytes.clone(),
            references: references.collect(),
        }
    }
}
