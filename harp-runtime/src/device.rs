//! The device: guest memory and the parameters of the machine that runs on it.
//!
//! Guest memory holds the image (code, launch descriptor, arguments) at address 0 and, above it, the
//! heap. Buffers are allocated from the heap, and so are the lanes' stacks during a launch.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harp_emu::{
    CancelToken, DivergentBarriers, Machine, MachineConfig, MachineError, Memory, MemoryError,
    Schedule, Spare,
};
use harp_isa::ArchId;
use harp_monitor::Races;
use thiserror::Error;

use crate::config::DeviceConfig;
use crate::heap::{ALIGNMENT, Heap};
use crate::image::{ImageCache, KernelImage};
use crate::memory::Buffers;
use crate::tier::HostCode;

/// The most bytes at the bottom of guest memory that are reserved for the image. In small memories it
/// is a quarter of the memory.
const MAX_IMAGE_BYTES: u64 = 16 << 20;

/// Instructions that a warp runs before the next one does, where warps may wait for the lock: about as many as an access
/// under the lock takes.
const LOCK_QUANTUM: NonZeroU32 = NonZeroU32::new(256).expect("256 is not zero");

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

/// A launch's own limits, instead of the device's, and what it checks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) fuel: Option<u64>,
    pub(crate) time: Option<Duration>,
    pub(crate) host_threads: Option<NonZeroUsize>,
    pub(crate) audit_shared: bool,
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
    host_code: HostCode,
    bottom: Mutex<Bottom>,
}

/// The bottom of the memory, which a launch has for itself.
#[derive(Debug)]
pub(crate) struct Bottom {
    pub(crate) images: ImageCache,
    /// What the last launch's machine has left, without the code that it ran.
    pub(crate) spare: Option<Spare>,
    /// What the last launch with checks has left.
    pub(crate) races: Races,
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
        let bottom = Mutex::new(Bottom { images, spare: None, races: Races::default() });
        let cancel_token = CancelToken::new();
        let buffers = Buffers::default();
        let host_code = HostCode::new(config.tier);
        let shared =
            Shared { config, memory, image_limit, heap, buffers, cancel_token, host_code, bottom };
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

    /// What was translated to host code, and how often it was left and why; `None` if nothing is, by the
    /// [tier](crate::DeviceConfig::tier) or on this host.
    #[cfg(feature = "native")]
    pub fn tier_stats(&self) -> Option<crate::TierStats> {
        self.shared.host_code.stats()
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
    ///
    /// The lock that an image may have is right as long as cores see the accesses of others in the same order, so they
    /// share a host thread. Warps that wait for it run until their quantum is over, so that is short.
    pub(crate) fn machine(
        &self,
        limits: Limits,
        image: Option<&KernelImage>,
        spare: Option<Spare>,
    ) -> Result<Machine<'_>, MachineError> {
        let outer_split = image.map(KernelImage::outer_split);
        let locks = image.is_some_and(|image| image.lock_place().is_some());
        let own = self.config();
        let own_threads = limits.host_threads.or(own.host_threads);
        let config = MachineConfig {
            cores: own.cores,
            fuel: limits.fuel.or(own.fuel),
            time_limit: limits.time.or(own.time_limit),
            divergence_depth: own.divergence_depth,
            host_threads: if locks { Some(NonZeroUsize::MIN) } else { own_threads },
            schedule: if locks { Schedule::Quantum(LOCK_QUANTUM) } else { Schedule::default() },
            read_only_below: image.map_or(0, KernelImage::read_only),
            divergent_barriers: DivergentBarriers::Trap { outer_split },
            // A kernel has no console: an access to its address traps.
            console: false,
            audit_shared: limits.audit_shared,
            ..MachineConfig::new(own.arch)
        };
        let mut machine = match spare {
            Some(spare) => Machine::with_spare(config, self.memory(), spare)?,
            None => Machine::new(config, self.memory())?,
        };
        machine.set_cancel_token(self.cancel_token());
        self.shared.host_code.serve(&mut machine, image);
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
