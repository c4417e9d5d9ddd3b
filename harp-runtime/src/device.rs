//! The device: guest memory and the parameters of the machine that runs on it.
//!
//! Guest memory holds the image (code, launch descriptor, arguments) at address 0 and, above it, the
//! heap. Buffers are allocated from the heap, and so are the lanes' stacks during a launch.

use std::num::NonZeroUsize;

use harp_emu::{DivergentBarriers, Machine, MachineConfig, MachineError, Memory, MemoryError};
use harp_isa::ArchId;
use thiserror::Error;

use crate::heap::{ALIGNMENT, Heap};
use crate::image::ImageCache;

/// The most bytes at the bottom of guest memory that are reserved for the image. In small memories it
/// is a quarter of the memory.
const MAX_IMAGE_BYTES: u64 = 1 << 20;

/// The parameters of a [`Device`].
///
/// ```
/// use harp_runtime::{Device, DeviceConfig};
///
/// let config = DeviceConfig { cores: 4, ..DeviceConfig::new("harp64".parse()?) };
/// let device = Device::new(config)?;
/// assert_eq!(device.read(&device.buffer_from_slice(&[1.5_f64])?)?, [1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    /// The machine of each core.
    pub arch: ArchId,
    /// Cores, at least 1. They share the memory.
    pub cores: u16,
    /// Bytes of guest memory, a multiple of the word. The host allocates its pages when they are
    /// first touched.
    pub memory_bytes: u64,
    /// The most host threads that run cores; `None`: as many as the host offers.
    pub host_threads: Option<NonZeroUsize>,
    /// The most instructions that each core may issue in a launch; `None`: no limit, and a kernel that
    /// never ends blocks its caller forever.
    pub fuel: Option<u64>,
    /// The most entries of a warp's divergence stack. The runtime library uses two of them where a
    /// warp has surplus lanes, and one in other warps of work-groups.
    pub divergence_depth: usize,
}

impl DeviceConfig {
    /// One core, 256 MiB of memory (far below the 2 GiB that machines with 4-byte words can have), all
    /// host threads, no fuel limit, 4096 divergence stack entries.
    pub fn new(arch: ArchId) -> DeviceConfig {
        DeviceConfig {
            arch,
            cores: 1,
            memory_bytes: 256 << 20,
            host_threads: None,
            fuel: None,
            divergence_depth: 4096,
        }
    }
}

/// Why a device was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Guest memory of this size cannot be made.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A machine with these parameters cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// A HARP machine with its memory, on which [buffers](crate::Buffer) live and kernels run.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    memory: Memory,
    image_limit: u64,
    heap: Heap,
    pub(crate) images: ImageCache,
}

impl Device {
    /// A device with zeroed memory.
    ///
    /// # Errors
    ///
    /// If there are no cores, or the host cannot provide the memory.
    pub fn new(config: DeviceConfig) -> Result<Device, DeviceError> {
        let memory = Memory::new(config.arch.word(), config.memory_bytes)?;
        let image_limit = MAX_IMAGE_BYTES.min(memory.size() / 4) / ALIGNMENT * ALIGNMENT;
        let heap = Heap::new(image_limit..memory.size() / ALIGNMENT * ALIGNMENT);
        let images = ImageCache::new(config.arch);
        let device = Device { config, memory, image_limit, heap, images };
        device.machine(device.config.fuel, 0, None)?;
        Ok(device)
    }

    /// The device's parameters.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// The machine of each core.
    pub fn arch(&self) -> ArchId {
        self.config.arch
    }

    /// Guest memory, image and stacks included.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// The address at which the image must end.
    pub(crate) fn image_limit(&self) -> u64 {
        self.image_limit
    }

    /// A machine over the device's memory, in which the image at its bottom is read-only. The `split` at
    /// `outer_split` may hold lanes back from barriers.
    pub(crate) fn machine(
        &self,
        fuel: Option<u64>,
        image_bytes: u64,
        outer_split: Option<u64>,
    ) -> Result<Machine<'_>, MachineError> {
        let config = MachineConfig {
            cores: self.config.cores,
            fuel,
            divergence_depth: self.config.divergence_depth,
            host_threads: self.config.host_threads,
            read_only_below: image_bytes,
            divergent_barriers: DivergentBarriers::Trap { outer_split },
            // A kernel has no console: an access to its address traps.
            console: false,
            ..MachineConfig::new(self.config.arch)
        };
        Machine::new(config, &self.memory)
    }

    /// Writes to a place that is known to be inside the memory.
    pub(crate) fn put(&self, address: u64, data: &[u8]) {
        self.memory.write(address, data).expect("the heap and the image are inside the memory");
    }

    /// Reads from a place that is known to be inside the memory.
    pub(crate) fn get(&self, address: u64, out: &mut [u8]) {
        self.memory.read(address, out).expect("the heap and the image are inside the memory");
    }
}
