//! The linker, which places the chunks of objects and resolves their references.
//!
//! Chunks are laid out in the order of the objects and of their chunks, each at the next multiple
//! of its alignment, with gaps filled with zeros. A name denotes the chunk of that name in the same object
//! that is not global, else the global chunk of that name in any object.

use std::ops::RangeInclusive;

mod error;
mod image;
mod names;

pub use error::{LinkError, LinkErrors, ObjectId, Site};
pub use image::{Image, Section, Symbol};

use crate::arch::ArchId;
use crate::error_list::Gathered;
use crate::object::{Chunk, Object, Reference};
use names::Names;

/// The largest image in bytes, gaps between chunks included.
pub const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// Links `objects` into an image whose first byte lies at `base`. Errors refer to the objects by their
/// index; [`link_named`] gives them names.
///
/// # Errors
///
/// If objects are for different machines, a name is missing, global in two objects or twice in one,
/// an address does not fit its field, or the image exceeds the address space or [`MAX_IMAGE_BYTES`].
/// If every chunk gets an address, all wrong names and references are reported.
pub fn link(objects: &[&Object], base: u64) -> Result<Image, LinkErrors> {
    let objects: Vec<(&str, &Object)> = objects.iter().map(|&object| ("", object)).collect();
    link_named(&objects, base)
}

/// As [`link`], with a name for each object that errors mention, such as the path of its file.
///
/// # Errors
///
/// Those of [`link`].
///
/// ```
/// use harp_isa::{ArchId, assemble, link_named};
///
/// let source = "main: jmpi start; jmpi stop; .word start";
/// let object = assemble(source, ArchId::HARP32, &[]).unwrap();
/// let errors = link_named(&[("main.hof", &object)], 0).unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "main.hof: `main` + 0x0: `start` is not defined, needed by 1 more reference\n\
///      main.hof: `main` + 0x4: `stop` is not defined"
/// );
/// ```
pub fn link_named(objects: &[(&str, &Object)], base: u64) -> Result<Image, LinkErrors> {
    let arch = objects.first().ok_or(LinkError::NoObjects)?.1.arch;
    let linker = Linker { objects, arch };
    linker.check_machines()?;
    let placed = linker.place(base)?;
    let mut errors = Gathered::new();
    let names = Names::collect(&linker, &placed, &mut errors);
    let mut bytes = Vec::new();
    for chunk in &placed {
        bytes.resize((chunk.address - base) as usize, 0);
        bytes.extend_from_slice(&chunk.chunk.data);
        let data = (chunk.address - base) as usize;
        for reference in &chunk.chunk.references {
            let Some(target) = names.resolve(chunk.object, &reference.name) else {
                continue;
            };
            if let Err(error) = linker.fill(chunk, reference, target, &mut bytes[data..]) {
                errors.push_with(|| error);
            }
        }
    }
    errors.finish()?;
    Ok(Image { arch, base, bytes, symbols: names.into_symbols(), sections: sections(&placed) })
}

/// The inputs of a link.
struct Linker<'a> {
    /// The objects with their names.
    objects: &'a [(&'a str, &'a Object)],
    arch: ArchId,
}

/// A chunk with its address.
struct Placed<'a> {
    object: usize,
    chunk: &'a Chunk,
    address: u64,
}

impl<'a> Linker<'a> {
    fn id(&self, index: usize) -> ObjectId {
        ObjectId { index, name: self.objects[index].0.to_owned() }
    }

    fn site(&self, from: &Placed<'_>, reference: &Reference) -> Box<Site> {
        Box::new(Site {
            object: self.id(from.object),
            chunk: from.chunk.name.clone(),
            offset: reference.byte_offset,
        })
    }

    fn check_machines(&self) -> Result<(), LinkErrors> {
        let expected = self.arch;
        let mut errors = Gathered::new();
        for (index, (_, object)) in self.objects.iter().enumerate() {
            let given = object.arch;
            if !given.is_object_compatible(expected) {
                let object = self.id(index);
                errors.push_with(|| LinkError::Incompatible { object, given, expected });
            }
        }
        errors.finish()
    }

    fn place(&self, base: u64) -> Result<Vec<Placed<'a>>, LinkErrors> {
        let address_space = u128::from(self.arch.word().mask()) + 1;
        let limit = address_space.min(u128::from(base) + u128::from(MAX_IMAGE_BYTES));
        let mut next = u128::from(base);
        let mut placed = Vec::new();
        let mut errors = Gathered::new();
        let chunks = self.objects.iter().enumerate();
        let chunks = chunks.flat_map(|(i, (_, o))| o.chunks.iter().map(move |chunk| (i, chunk)));
        for (object, chunk) in chunks {
            let address = next.next_multiple_of(u128::from(chunk.alignment.max(1)));
            let end = address + chunk.data.len() as u128;
            let (id, name) = (|| self.id(object), || chunk.name.clone());
            // An empty chunk may lie at the end of the address space only if its address still fits 64 bits.
            let Some(address) = u64::try_from(address).ok().filter(|_| end <= limit) else {
                // Those after it have no address either.
                errors.push_with(|| LinkError::TooLarge {
                    object: id(),
                    chunk: name(),
                    end,
                    limit,
                });
                break;
            };
            if let Some(given) = chunk.address.filter(|&given| given != address) {
                errors.push_with(|| LinkError::Bound {
                    object: id(),
                    chunk: name(),
                    given,
                    actual: address,
                });
            }
            placed.push(Placed { object, chunk, address });
            next = end;
        }
        errors.finish()?;
        Ok(placed)
    }

    /// Writes the value of `reference`, from `from` to the address `target`, into `data`, the chunk's bytes.
    fn fill(
        &self,
        from: &Placed<'_>,
        reference: &Reference,
        target: u64,
        data: &mut [u8],
    ) -> Result<(), LinkError> {
        let Reference { relative, base_offset, byte_offset, size_bits, shift, .. } = *reference;
        let word = self.arch.word();
        let bytes = usize::from(word.bytes());
        let start = usize::try_from(byte_offset).unwrap_or(usize::MAX);
        let place = start.checked_add(bytes).and_then(|end| data.get_mut(start..end));
        let fits = size_bits > 0 && u16::from(size_bits) + u16::from(shift) <= word.bits().into();
        let Some(place) = place.filter(|_| fits) else {
            let site = self.site(from, reference);
            return Err(LinkError::BadReference { site, bits: size_bits, shift });
        };
        let origin = if relative { i128::from(from.address) + i128::from(base_offset) } else { 0 };
        let value = i128::from(target) - origin;
        let limits = limits(size_bits, self.arch);
        if !limits.contains(&value) {
            let (name, site) = (reference.name.clone(), self.site(from, reference));
            return Err(LinkError::OutOfRange { name, site, relative, value, limits });
        }
        let mask = (u64::MAX >> (64 - size_bits)) << shift;
        let old = place.iter().rev().fold(0, |old, &byte| old << 8 | u64::from(byte));
        let new = (old & !mask) | ((value as u64) << shift & mask);
        place.copy_from_slice(&new.to_le_bytes()[..bytes]);
        Ok(())
    }
}

/// The values that fit a field: signed numbers, or, if the field is a whole word, any number modulo the word.
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
