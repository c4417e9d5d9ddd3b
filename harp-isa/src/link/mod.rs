//! The linker: places the chunks of objects and fills their references in.
//!
//! Chunks are laid out in the order of the objects and of their chunks, each at the next multiple
//! of its alignment, gaps filled with zeros. A name means the chunk of that name in the same object
//! that is not global, else the global chunk of that name in any object.

use std::collections::HashMap;
use std::ops::RangeInclusive;

mod error;
mod image;

pub use error::{LinkError, Site};
pub use image::{Image, Section, Symbol};

use crate::arch::ArchId;
use crate::object::{Chunk, Object, Reference};

/// The largest image in bytes, gaps between chunks included.
pub const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// Links `objects` into an image whose first byte lies at `base`.
///
/// # Errors
///
/// If objects are for different machines, a name is missing, global in two objects or twice in one,
/// an address does not fit its field, or the image exceeds the address space or [`MAX_IMAGE_BYTES`].
pub fn link(objects: &[&Object], base: u64) -> Result<Image, LinkError> {
    let arch = objects.first().ok_or(LinkError::NoObjects)?.arch;
    check_machines(objects, arch)?;
    let placed = place(objects, base, arch)?;
    let names = Names::collect(&placed)?;
    let mut bytes = Vec::new();
    for chunk in &placed {
        bytes.resize((chunk.address - base) as usize, 0);
        bytes.extend_from_slice(&chunk.chunk.data);
        let data = (chunk.address - base) as usize;
        for reference in &chunk.chunk.references {
            let target = names.resolve(chunk, reference)?;
            chunk.fill(reference, target, arch, &mut bytes[data..])?;
        }
    }
    Ok(Image { arch, base, bytes, symbols: names.into_symbols(), sections: sections(&placed) })
}

fn check_machines(objects: &[&Object], expected: ArchId) -> Result<(), LinkError> {
    match objects.iter().position(|object| !object.arch.is_object_compatible(expected)) {
        None => Ok(()),
        Some(object) => {
            Err(LinkError::Incompatible { object, given: objects[object].arch, expected })
        }
    }
}

/// A chunk with the address that it got.
struct Placed<'a> {
    object: usize,
    chunk: &'a Chunk,
    address: u64,
}

fn place<'a>(
    objects: &[&'a Object],
    base: u64,
    arch: ArchId,
) -> Result<Vec<Placed<'a>>, LinkError> {
    let address_space = u128::from(arch.word().mask()) + 1;
    let limit = address_space.min(u128::from(base) + u128::from(MAX_IMAGE_BYTES));
    let mut next = u128::from(base);
    let mut placed = Vec::new();
    for (object, chunks) in objects.iter().enumerate().map(|(i, object)| (i, &object.chunks)) {
        for chunk in chunks {
            let address = next.next_multiple_of(u128::from(chunk.alignment.max(1)));
            let end = address + chunk.data.len() as u128;
            let name = || chunk.name.clone();
            // An empty chunk may stand at the end of the address space only where its address is
            // still a number.
            let Some(address) = u64::try_from(address).ok().filter(|_| end <= limit) else {
                return Err(LinkError::TooLarge { object, chunk: name(), end, limit });
            };
            if let Some(given) = chunk.address.filter(|&given| given != address) {
                return Err(LinkError::Bound { object, chunk: name(), given, actual: address });
            }
            placed.push(Placed { object, chunk, address });
            next = end;
        }
    }
    Ok(placed)
}

/// What names mean.
struct Names<'a> {
    /// By name: the chunk and its object.
    global: HashMap<&'a str, (u64, usize)>,
    /// By object and name.
    local: HashMap<(usize, &'a str), u64>,
}

impl<'a> Names<'a> {
    fn collect(placed: &[Placed<'a>]) -> Result<Names<'a>, LinkError> {
        let mut names = Names { global: HashMap::new(), local: HashMap::new() };
        let mut before = None;
        for &Placed { object, chunk, address } in placed {
            let name = chunk.name.as_str();
            // Chunks that follow each other under one label share its name.
            let continues = before.replace((object, name)) == Some((object, name));
            if name.is_empty() {
                continue;
            }
            let is_global_here = names.global.get(name).is_some_and(|&(_, first)| first == object);
            if !continues && (is_global_here || names.local.contains_key(&(object, name))) {
                let (first, second) = (object, object);
                return Err(LinkError::Duplicate { name: name.to_owned(), first, second });
            }
            if !chunk.global {
                names.local.entry((object, name)).or_insert(address);
                continue;
            }
            let (_, first) = *names.global.entry(name).or_insert((address, object));
            if first != object {
                return Err(LinkError::Duplicate { name: name.to_owned(), first, second: object });
            }
        }
        Ok(names)
    }

    fn resolve(&self, from: &Placed<'_>, reference: &Reference) -> Result<u64, LinkError> {
        let name = reference.name.as_str();
        let local = self.local.get(&(from.object, name)).copied();
        let found = local.or_else(|| self.global.get(name).map(|&(address, _)| address));
        found.ok_or_else(|| LinkError::Unresolved {
            name: name.to_owned(),
            site: from.site(reference),
        })
    }

    fn into_symbols(self) -> Vec<Symbol> {
        let global =
            self.global.into_iter().map(|(name, (address, object))| (name, address, true, object));
        let local =
            self.local.into_iter().map(|((object, name), address)| (name, address, false, object));
        let mut symbols: Vec<Symbol> = global
            .chain(local)
            .map(|(name, address, global, object)| Symbol {
                name: name.to_owned(),
                address,
                global,
                object,
            })
            .collect();
        symbols.sort_by(|a, b| (&a.name, a.address, a.object).cmp(&(&b.name, b.address, b.object)));
        symbols
    }
}

impl Placed<'_> {
    fn site(&self, reference: &Reference) -> Box<Site> {
        Box::new(Site {
            object: self.object,
            chunk: self.chunk.name.clone(),
            offset: reference.byte_offset,
        })
    }

    /// Writes what `reference` to the address `target` amounts to into `data`, the chunk's bytes.
    fn fill(
        &self,
        reference: &Reference,
        target: u64,
        arch: ArchId,
        data: &mut [u8],
    ) -> Result<(), LinkError> {
        let Reference { relative, base_offset, byte_offset, size_bits, shift, .. } = *reference;
        let word = usize::from(arch.word().bytes());
        let start = usize::try_from(byte_offset).unwrap_or(usize::MAX);
        let place = start.checked_add(word).and_then(|end| data.get_mut(start..end));
        let fits =
            size_bits > 0 && u16::from(size_bits) + u16::from(shift) <= arch.word().bits().into();
        let Some(place) = place.filter(|_| fits) else {
            return Err(LinkError::BadReference {
                site: self.site(reference),
                bits: size_bits,
                shift,
            });
        };
        let origin = if relative { i128::from(self.address) + i128::from(base_offset) } else { 0 };
        let value = i128::from(target) - origin;
        let limits = limits(size_bits, arch);
        if !limits.contains(&value) {
            return Err(LinkError::OutOfRange {
                name: reference.name.clone(),
                site: self.site(reference),
                relative,
                value,
                limits,
            });
        }
        let mask = (u64::MAX >> (64 - size_bits)) << shift;
        let old = place.iter().rev().fold(0, |old, &byte| old << 8 | u64::from(byte));
        let new = (old & !mask) | ((value as u64) << shift & mask);
        place.copy_from_slice(&new.to_le_bytes()[..word]);
        Ok(())
    }
}

/// The values that a field keeps: as a signed number, or, where it is a whole word, modulo the word.
fn limits(bits: u8, arch: ArchId) -> RangeInclusive<i128> {
    let half = 1_i128 << (bits - 1);
    if bits == arch.word().bits() { (1 - 2 * half)..=(2 * half - 1) } else { -half..=(half - 1) }
}

fn sections(placed: &[Placed<'_>]) -> Vec<Section> {
    placed
        .iter()
        .filter(|placed| !placed.chunk.data.is_empty())
        .map(|&Placed { chunk, address, .. }| Section {
            address,
            size: chunk.data.len() as u64,
            permissions: chunk.permissions,
        })
        .collect()
}
