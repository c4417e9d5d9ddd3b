//! The device: guest memory and the parameters of the machine that runs on it.
//!
//! Guest memory holds the image (code, launch descriptor, arguments) at address 0 and, above it, the
//! heap. Buffers are allocated from the heap, and so are the lanes' stacks during a launch.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harp_emu::{
    CancelToken, DivergentBarriers, Machine, MachineConfig, MachineError, Memory, MemoryError,
    Spare,
};
use harp_isa::ArchId;
use thiserror::Error;

use crate::checks::Checks;
use crate::heap::{ALIGNMENT, Heap};
use crate::image::{ImageCache, KernelImage};
use crate::memory::Buffers;

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
    /// The most instructions that each core may issue in a launch; `None`: no limit. Without any limit a kernel that
    /// never ends blocks its caller until it is [cancelled](Device::cancel_token).
    pub fuel: Option<u64>,
    /// The longest that a kernel may run in a launch; `None`: no limit.
    pub time_limit: Option<Duration>,
    /// The most entries of a warp's divergence stack. The runtime library uses two of them where a
    /// warp has surplus lanes, and one in other warps of work-groups.
    pub divergence_depth: usize,
    /// What launches check, unless they say it [themselves](crate::LaunchConfig::checks).
    pub checks: Option<Checks>,
}

impl DeviceConfig {
    /// One core, 256 MiB of memory (far below the 2 GiB that machines with 4-byte words can have), all
    /// host threads, [`DEFAULT_FUEL`], no limit of time, 4096 divergence stack entries.
    pub fn new(arch: ArchId) -> DeviceConfig {
        DeviceConfig {
            arch,
            cores: 1,
            memory_bytes: 256 << 20,
            host_threads: None,
            fuel: Some(DEFAULT_FUEL),
            time_limit: None,
            divergence_depth: 4096,
            checks: None,
        }
    }
}

/// The instructions that each core may issue in a launch unless another limit is given: enough for minutes of work, so
/// that a kernel that never ends is stopped. One that really works for longer needs more.
pub const DEFAULT_FUEL: u64 = 1 << 36;

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

/// A launch's own limits, instead of the device's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) fuel: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) host_threads: Option<NonZeroUsize>,
}

/// A HARP machine with its memory, on which [buffers](crate::Buffer) live and kernels run.
///
/// A device is a handle: its clones are the same device. Host threads may share it; the launches of all of them run one
/// after the other.
#[derive(Clone, Debug)]
pub struct Device {
    shared: Arc<Shared>,
}

/// What the handles of a device share.
#[derive(Debug)]
struct Shared {
    config: DeviceConfig,
    memory: Memory,
    image_limit: u64,
    heap: Heap,
    buffers: Buffers,
    cancel_token: CancelToken,
    bottom: Mutex<Bottom>,
}

/// The bottom of the memory, which a launch has for itself.
#[derive(Debug)]
pub(crate) struct Bottom {
    pub(crate) images: ImageCache,
    /// What the last launch's machine has left, and the image that it ran.
    pub(crate) spare: Option<(Arc<KernelImage>, Spare)>,
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
        let bottom = Mutex::new(Bottom { images: ImageCache::new(config.arch), spare: None });
        let cancel_token = CancelToken::new();
        let buffers = Buffers::default();
        let shared = Shared { config, memory, image_limit, heap, buffers, cancel_token, bottom };
        let device = Device { shared: Arc::new(shared) };
        device.machine(Limits::default(), None, None)?;
        Ok(device)
    }

    /// Waits until no launch runs, and keeps others from running.
    pub(crate) fn bottom(&self) -> MutexGuard<'_, Bottom> {
        // What a launch that panicked has left is as good as any: images are complete, and a machine's memory is
        // not left before its end.
        self.shared.bottom.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device's parameters.
    pub fn config(&self) -> &DeviceConfig {
        &self.shared.config
    }

    /// The machine of each core.
    pub fn arch(&self) -> ArchId {
        self.shared.config.arch
    }

    /// Guest memory, image and stacks included.
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// The token that cancels the device's launches, from any thread. A launch that is cancelled ends with a
    /// [trap](crate::LaunchError::Trap); so do all later ones until the token is reset.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// use harp_runtime::prelude::*;
    /// use harp_runtime::TrapKind;
    ///
    /// let mut source = KernelSource::new("forever", "harp32".parse()?);
    /// let mut b = KernelBuilder::new(&mut source);
    /// b.while_loop(|b| b.ins().iconst(types::I8, 1), |_| {});
    /// b.return_();
    /// b.finalize()?;
    /// let kernel = source.compile(&CompileOptions::default())?;
    ///
    /// let device = Device::new(DeviceConfig::new("harp32".parse()?))?;
    /// let token = device.cancel_token();
    /// let other = thread::spawn(move || {
    ///     thread::sleep(Duration::from_millis(10));
    ///     token.cancel();
    /// });
    /// let error = device.launch(&kernel, LaunchConfig::grid_1d(1), &[]).unwrap_err();
    /// assert!(matches!(error, LaunchError::Trap(trap) if trap.trap.kind == TrapKind::Cancelled));
    /// # other.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_token(&self) -> CancelToken {
        self.shared.cancel_token.clone()
    }

    pub(crate) fn buffers(&self) -> &Buffers {
        &self.shared.buffers
    }

    pub(crate) fn heap(&self) -> &Heap {
        &self.shared.heap
    }

    /// The address at which the image must end.
    pub(crate) fn image_limit(&self) -> u64 {
        self.shared.image_limit
    }

    /// A machine over the device's memory: for launches, in which the image at its bottom is read-only. It may be made
    /// of what a machine that ran the same image has left.
    pub(crate) fn machine(
        &self,
        limits: Limits,
        image: Option<&KernelImage>,
        spare: Option<Spare>,
    ) -> Result<Machine<'_>, MachineError> {
        let outer_split = image.map(KernelImage::outer_split);
        let own = self.config();
        let config = MachineConfig {
            cores: own.cores,
            fuel: limits.fuel.or(own.fuel),
            time_limit: limits.time.or(own.time_limit),
            divergence_depth: own.divergence_depth,
            host_threads: limits.host_threads.or(own.host_threads),
            read_only_below: image.map_or(0, KernelImage::read_only),
            divergent_barriers: DivergentBarriers::Trap { outer_split },
            // A kernel has no console: an access to its address traps.
            console: false,
            ..MachineConfig::new(own.arch)
        };
        let mut machine = match spare {
            Some(spare) => Machine::with_spare(config, self.memory(), spare)?,
            None => Machine::new(config, self.memory())?,
        };
        machine.set_cancel_token(self.cancel_token());
        Ok(machine)
    }

    /// Writes to a place that is known to be inside the memory.
    pub(crate) fn put(&self, address: u64, data: &[u8]) {
        self.memory().write(address, data).expect("the heap and the image are inside the memory");
    }

    /// Reads from a place that is known to be inside the memory.
    pub(crate) fn get(&self, address: u64, out: &mut [u8]) {
        self.memory().read(address, out).expect("the heap and the image are inside the memory");
    }
}
