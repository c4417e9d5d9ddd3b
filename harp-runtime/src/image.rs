//! Images: the runtime library, an argument block and a kernel, linked at address 0.
//!
//! The library comes first: boot code then lies at address 0, and the descriptor and the argument block
//! are within reach of the immediates of every machine. The kernel, of any size, comes last.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use harp_emu::SpareCode;
use harp_isa::abi::{ArgumentBlock, LaunchGrid, LaunchMemory, LaunchOffset, Lock};
use harp_isa::link::Section;
use harp_isa::object::{Chunk, Permissions};
use harp_isa::{ArchId, Image, Layout, LinkErrors, Object, Opcode, link};
use harp_library::{Form, Reach, Walk};

use crate::kernel::KernelParts;

/// Index of the library among the linked objects.
const LIBRARY_OBJECT: usize = 0;
/// Index of the kernel with its functions and data.
const KERNEL_OBJECT: usize = 2;

/// How many images a device keeps.
const CACHED_IMAGES: usize = 64;
/// Of so many it keeps the code that machines had decoded, with what host code knows of each warp.
const DECODED_IMAGES: usize = 8;

/// A linked image and the addresses in it that a launch needs.
#[derive(Debug)]
pub(crate) struct KernelImage {
    image: Image,
    descriptor: u64,
    arguments: u64,
    outer_split: u64,
    held_back: u64,
    lock_place: Option<u64>,
    launch_memory: Option<u64>,
    launch_offset: Option<u64>,
    launch_grid: Option<u64>,
    kernel: Range<u64>,
    read_only: u64,
}

impl KernelImage {
    fn new(
        libraries: &Libraries,
        kernel: KernelParts<'_>,
        walk: Walk,
    ) -> Result<KernelImage, LinkErrors> {
        let (code, code_bytes) = renamed(kernel);
        let block = argument_block(kernel, &code);
        let form = Form { walk, locks: refers_to(&code, Lock::TAKE) };
        let image = link(&[libraries.before(&block, form), &block, &code], 0)?;
        let address = |name| image.symbol(name).expect("the link resolved the name");
        let start = address(harp_library::KERNEL);
        let (descriptor, arguments) =
            (address(harp_library::DESCRIPTOR), address(harp_library::ARGUMENTS));
        let outer_split = address(harp_library::OUTER_SPLIT);
        let held_back = address(harp_library::HELD_BACK);
        let lock_place = form.locks.then(|| address(harp_library::LOCK_PLACE));
        let launch_memory = image.symbol(LaunchMemory::SYMBOL);
        let launch_offset = image.symbol(LaunchOffset::SYMBOL);
        let launch_grid = image.symbol(LaunchGrid::SYMBOL);
        let is_written = |section: &&Section| section.permissions.contains(Permissions::WRITE);
        let written = image.sections.iter().filter(is_written).map(|section| section.address);
        let read_only = written.min().unwrap_or(image.bytes.len() as u64);
        let kernel = start..start + code_bytes;
        Ok(KernelImage {
            descriptor,
            arguments,
            outer_split,
            held_back,
            lock_place,
            launch_memory,
            launch_offset,
            launch_grid,
            kernel,
            read_only,
            image,
        })
    }

    /// How many bytes at the image's start the guest may not write: all up to writable data.
    pub(crate) fn read_only(&self) -> u64 {
        self.read_only
    }

    /// The image, with a descriptor and arguments of zeros.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// The address of the launch descriptor.
    pub(crate) fn descriptor(&self) -> u64 {
        self.descriptor
    }

    /// The address of the argument block.
    pub(crate) fn arguments(&self) -> u64 {
        self.arguments
    }

    /// The address of the `split` that holds surplus lanes back from the kernel.
    pub(crate) fn outer_split(&self) -> u64 {
        self.outer_split
    }

    /// The address at which the lanes that it holds back go on.
    #[cfg(feature = "native")]
    pub(crate) fn held_back(&self) -> u64 {
        self.held_back
    }

    /// The address of the words about the lock, if the kernel takes it.
    pub(crate) fn lock_place(&self) -> Option<u64> {
        self.lock_place
    }

    /// The address of the words about the launch's memory, if the kernel refers to them.
    pub(crate) fn launch_memory(&self) -> Option<u64> {
        self.launch_memory
    }

    /// The address of the words of the launch's offset, if the kernel refers to them.
    pub(crate) fn launch_offset(&self) -> Option<u64> {
        self.launch_offset
    }

    /// The address of the words about the launch's grid, if the kernel refers to them.
    pub(crate) fn launch_grid(&self) -> Option<u64> {
        self.launch_grid
    }

    /// The addresses of the kernel's code.
    pub(crate) fn kernel(&self) -> Range<u64> {
        self.kernel.clone()
    }

    /// The addresses behind the library's calls of the kernel.
    #[cfg(feature = "native")]
    pub(crate) fn returns(&self) -> Vec<u64> {
        harp_library::RETURNS.iter().filter_map(|name| self.image.symbol(name)).collect()
    }

    /// The label of the runtime library at or before `address`, and the distance to it; `None`
    /// outside the library.
    pub(crate) fn library_symbol(&self, address: u64) -> Option<(&str, u64)> {
        let (symbol, distance) = self.image.symbol_before(address)?;
        (symbol.object == LIBRARY_OBJECT).then_some((symbol.name.as_str(), distance))
    }

    /// The function or datum of the kernel's module at or before `address`, and the distance to it.
    pub(crate) fn kernel_symbol(&self, address: u64) -> Option<(&str, u64)> {
        if address >= self.image.bytes.len() as u64 {
            return None;
        }
        let (symbol, distance) = self.image.symbol_before(address)?;
        (symbol.object == KERNEL_OBJECT).then_some((symbol.name.as_str(), distance))
    }
}

/// The runtime library in its forms, each assembled when it is first needed.
#[derive(Debug)]
struct Libraries {
    arch: ArchId,
    /// By walk, then by whether it has the lock.
    forms: [[Reaches; 2]; 3],
}

/// A form of the library.
#[derive(Debug, Default)]
struct Reaches {
    near: OnceLock<Object>,
    far: OnceLock<Object>,
}

impl Libraries {
    /// The library whose call reaches a kernel that lies behind the argument block.
    fn before(&self, block: &Object, form: Form) -> &Object {
        let reaches = &self.forms[form.walk as usize][usize::from(form.locks)];
        let near =
            reaches.near.get_or_init(|| harp_library::assemble(self.arch, form, Reach::Near));
        let size = |object: &Object| {
            object.chunks.iter().map(|c| c.data.len() as u64 + c.alignment).sum::<u64>()
        };
        let distance = size(near) + size(block);
        let limit = *Layout::new(self.arch).immediate_range(Opcode::Jali).end();
        if u64::try_from(limit).is_ok_and(|limit| distance <= limit) {
            return near;
        }
        reaches.far.get_or_init(|| harp_library::assemble(self.arch, form, Reach::Far))
    }
}

/// Whether code refers to this name.
fn refers_to(object: &Object, name: &str) -> bool {
    object.chunks.iter().flat_map(|chunk| &chunk.references).any(|r| r.name == name)
}

/// The kernel's object, with the entry renamed to the name that the library calls, and the size of the
/// entry's code.
fn renamed(kernel: KernelParts<'_>) -> (Object, u64) {
    let mut object = Object::clone(kernel.object);
    let mut bytes = 0;
    for chunk in &mut object.chunks {
        if chunk.name == kernel.name && chunk.global {
            harp_library::KERNEL.clone_into(&mut chunk.name);
            bytes += chunk.data.len() as u64;
        }
        for reference in chunk.references.iter_mut().filter(|r| r.name == kernel.name) {
            harp_library::KERNEL.clone_into(&mut reference.name);
        }
    }
    (object, bytes)
}

/// The argument block, and of the words about the launch those that the kernel's `code` refers to.
fn argument_block(kernel: KernelParts<'_>, code: &Object) -> Object {
    let word = usize::from(kernel.object.arch.word().bytes());
    let chunk = |name: &str, words: usize| Chunk {
        name: name.to_owned(),
        alignment: word as u64,
        permissions: Permissions::READ,
        global: true,
        address: None,
        data: vec![0; words * word],
        references: Vec::new(),
    };
    let words = ArgumentBlock::HEADER_WORDS as usize + kernel.argument_words();
    let mut chunks = vec![chunk(harp_library::ARGUMENTS, words)];
    let asked = [
        (LaunchMemory::SYMBOL, LaunchMemory::ALL.len()),
        (LaunchOffset::SYMBOL, LaunchOffset::ALL.len()),
        (LaunchGrid::SYMBOL, LaunchGrid::ALL.len()),
    ];
    let asked = asked.into_iter().filter(|(name, _)| refers_to(code, name));
    chunks.extend(asked.map(|(name, words)| chunk(name, words)));
    Object { arch: kernel.object.arch, chunks, entry: 0 }
}

/// The library of one machine and the most recently linked images.
#[derive(Debug)]
pub(crate) struct ImageCache {
    libraries: Libraries,
    /// The image that was used last comes last.
    images: Vec<CachedImage>,
}

#[derive(Debug)]
struct CachedImage {
    name: String,
    argument_words: usize,
    walk: Walk,
    object: Arc<Object>,
    image: Arc<KernelImage>,
    /// What the last machine that ran it has decoded, unless one has it.
    code: Option<SpareCode>,
}

impl CachedImage {
    fn is_of(&self, kernel: KernelParts<'_>, walk: Walk) -> bool {
        self.name == kernel.name
            && self.walk == walk
            && self.argument_words == kernel.argument_words()
            && (Arc::ptr_eq(&self.object, kernel.object) || self.object == *kernel.object)
    }
}

impl ImageCache {
    /// An empty cache for kernels of `arch`.
    pub(crate) fn new(arch: ArchId) -> ImageCache {
        let libraries = Libraries { arch, forms: Default::default() };
        ImageCache { libraries, images: Vec::new() }
    }

    /// The image of `kernel` with the library's `walk`, linked now unless it is in the cache.
    pub(crate) fn image(
        &mut self,
        kernel: KernelParts<'_>,
        walk: Walk,
    ) -> Result<Arc<KernelImage>, LinkErrors> {
        if let Some(place) = self.images.iter().rposition(|cached| cached.is_of(kernel, walk)) {
            self.images[place..].rotate_left(1);
            return Ok(Arc::clone(&self.images[self.images.len() - 1].image));
        }
        let image = Arc::new(KernelImage::new(&self.libraries, kernel, walk)?);
        if self.images.len() == CACHED_IMAGES {
            self.images.remove(0);
        }
        self.images.push(CachedImage {
            name: kernel.name.to_owned(),
            argument_words: kernel.argument_words(),
            walk,
            object: Arc::clone(kernel.object),
            image: Arc::clone(&image),
            code: None,
        });
        Ok(image)
    }

    /// Takes the code out that the last machine that ran `image` has left.
    pub(crate) fn take_code(&mut self, image: &Arc<KernelImage>) -> Option<SpareCode> {
        self.cached(image)?.code.take()
    }

    /// Keeps what a machine that ran `image` has decoded, as long as few others are used.
    pub(crate) fn keep_code(&mut self, image: &Arc<KernelImage>, code: SpareCode) {
        if let Some(cached) = self.cached(image) {
            cached.code = Some(code);
        }
        let older = self.images.len().saturating_sub(DECODED_IMAGES);
        self.images[..older].iter_mut().for_each(|cached| cached.code = None);
    }

    /// The place of an image.
    fn cached(&mut self, image: &Arc<KernelImage>) -> Option<&mut CachedImage> {
        self.images.iter_mut().rfind(|cached| Arc::ptr_eq(&cached.image, image))
    }
}
