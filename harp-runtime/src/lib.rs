//! Devices, buffers and kernel launches: the face of the HARP toolchain.
//!
//! A [`Device`] is a HARP machine, of any [`ArchId`] and any number of cores, in
//! this process. [`Buffer`]s are typed arrays in its memory. [`Device::launch`] runs a kernel that
//! `harp-jit` compiled over a grid of work-items and gives a [`Report`] of what it cost, or a
//! [`LaunchError`] that says what went wrong where; a kernel that traps names the line of the
//! builder call that made the instruction.
//!
//! ```
//! use harp_runtime::prelude::*;
//!
//! // data[i] = data[i] * factor, on a machine with 8 registers, 16 lanes, 16 warps and 2 cores.
//! let arch: ArchId = "harp32".parse()?;
//! let mut source = KernelSource::new("scale", arch);
//! let mut b = KernelBuilder::new(&mut source);
//! let (data, factor) = (b.buffer::<i32>("data"), b.scalar::<i32>("factor"));
//! let i = b.global_id(0);
//! let old = b.load(data, i);
//! let new = b.ins().imul(old, factor);
//! b.store(data, i, new);
//! b.return_();
//! b.finalize()?;
//! let kernel = source.compile(&CompileOptions::default())?;
//!
//! let device = Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(arch) })?;
//! let data = device.buffer_from_slice(&[1, 2, 3, 4, 5])?;
//! let grid = LaunchConfig::grid_1d(data.len());
//! let report = device.launch(&kernel, grid, &[Arg::from(&data), Arg::from(10)])?;
//! assert_eq!(device.read(&data)?, [10, 20, 30, 40, 50]);
//! println!("{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Work-groups
//!
//! [`LaunchConfig::with_groups`] divides the grid into groups. The work-items of a group run at the same
//! time on the same core, share memory and can wait for each other:
//!
//! ```
//! use harp_runtime::prelude::*;
//!
//! // Each work-item takes the value of the next one in its group, the last one that of the first.
//! let arch: ArchId = "4w16/8/8/4".parse()?;
//! let mut source = KernelSource::new("rotate", arch);
//! let mut b = KernelBuilder::new(&mut source);
//! let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
//! let (own, size) = (b.local_id(0), b.local_size(0));
//! let shared = b.group_buffer::<i32>("shared", 32);
//! let value = b.load(data, i);
//! b.store(shared, own, value);
//! b.barrier();
//! let next = b.ins().iadd_imm_s(own, 1);
//! let next = b.ins().urem(next, size);
//! let value = b.load(shared, next);
//! b.store(data, i, value);
//! b.return_();
//! b.finalize()?;
//! let kernel = source.compile(&CompileOptions::default())?;
//!
//! let device = Device::new(DeviceConfig::new(arch))?;
//! let data = device.buffer_from_slice(&[1, 2, 3, 4, 5])?;
//! let groups = LaunchConfig::grid_1d(data.len()).with_groups_1d(3);
//! device.launch(&kernel, groups, &[Arg::from(&data)])?;
//! // The second group has two work-items: the grid is not a multiple of three.
//! assert_eq!(device.read(&data)?, [2, 3, 1, 5, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a launch does
//!
//! 1. Check the arguments against the kernel's parameters.
//! 2. Link an image of runtime library, argument block and kernel, once per kernel, and write it to
//!    the bottom of guest memory. Image and library are HARP code: without the extension in the
//!    [`ArchId`] they run on any HARP machine.
//! 3. Allocate the lanes' stacks and the work-groups' memory from the heap, until the launch ends.
//! 4. Run the machine. Boot code starts the warps, each warp starts its lanes, and all of them walk the
//!    grid: warps take chunks of as many work-items as they have lanes, or whole work-groups, in turn.
//!    The grid need not be a multiple of a warp's lanes or of a work-group.
//!
//! # Limits
//!
//! * On machines with 4-byte words, a grid's work-items plus the lanes of all warps and of one more must be
//!   fewer than 2^31.
//! * A work-group has at most as many work-items as a core has lanes, those of all its warps counted.
//! * Nothing keeps a kernel from reading memory that is not its own, or from writing to other
//!   buffers and stacks. Only accesses outside the guest's memory trap, and stores into the image,
//!   which include stores through null pointers.
//! * The host must be little-endian.
//!
//! # What is here
//!
//! **Memory.** A [`Device`], made from a [`DeviceConfig`], allocates [`Buffer`]s of an [`Element`] type. The errors
//! are [`DeviceError`], [`BufferError`], which names the buffer ([`BufferName`]), and [`OutOfMemory`].
//!
//! **Launches.** A [`LaunchConfig`] and an [`Arg`] for each parameter give a [`Report`] with what was [`Printed`], in
//! [`PrintedLine`]s, or a [`LaunchError`]: about a [`Parameter`], or a [`LaunchTrap`] at a [`TrapSite`], if the kernel
//! trapped. A [`LaunchObserver`] sees each [`Issue`] of a launch.
//! [`profile_to_json`] and [`profile_from_json`] ([`ProfileTextError`]) store and load the profiles in reports.
//!
//! **Caches.** A [`CodeCache`] compiles kernels that it does not have yet, in memory or in files; [`CacheStats`] says what
//! it did.
//!
//! **Checks.** What a launch checks ([`Checks`]) and finds is in [`Findings`]: each [`Finding`] of a [`FindingKind`] has
//! the [`Access`] and what it should have been to, a [`Target`].
//!
//! **Replays.** A [`Replay`] is a launch that can be run again, also from a file; a [`SavedReplay`] says where a
//! launch that failed was kept. It may fail with a [`ReplayError`].
//!
//! **Queues.** A [`Queue`] runs launches and copies while the host goes on; each gives an [`Event`] with its
//! [`EventTimes`], and may fail with a [`QueueError`].
//!
//! **Calls.** A [`Program`] calls one function on a bare machine and gives an [`Outcome`], or a [`ProgramError`] with a
//! [`ProgramTrap`].
#![forbid(unsafe_code)]

mod args;
mod buffer;
mod cache;
mod config;
mod device;
mod error;
mod finding;
mod heap;
mod image;
mod kept;
mod kernel;
mod launch;
mod memory;
mod observe;
mod profile;
mod program;
mod queue;
mod replay;
mod report;
mod sealed;
mod snapshot;
mod tier;

pub use args::Arg;
pub use buffer::{Buffer, BufferError, Element};
pub use cache::{CacheStats, CodeCache};
pub use config::{DEFAULT_FUEL, DeviceConfig, LaunchConfig};
pub use device::{Device, DeviceError};
pub use error::{LaunchError, LaunchTrap, Parameter, TrapSite};
pub use finding::Findings;
pub use heap::OutOfMemory;
pub use kept::SavedReplay;
pub use observe::LaunchObserver;
pub use profile::{ProfileTextError, profile_from_json, profile_to_json};
pub use program::{Outcome, Program, ProgramError, ProgramTrap};
pub use queue::{Event, EventTimes, Queue, QueueError};
pub use replay::Replay;
pub use report::{Printed, PrintedLine, Report};
pub use snapshot::ReplayError;
pub use tier::Tier;

/// Translations to host code, counted.
#[cfg(feature = "native")]
pub use harp_native::{LeaveCounts, TierStats};

/// What a launch costs, why it stopped, and how it is cancelled.
pub use harp_emu::{BarrierWait, CancelToken, CoreStats, Stats, Trap, TrapKind, WarpStats};
/// What an observer of a launch sees.
pub use harp_emu::{Issue, Retire};
/// Machines, and the size of their words.
pub use harp_isa::{ArchId, WordSize};
/// Builders and options of the code generator.
pub use harp_jit as jit;
/// What a launch checks, and what is found.
pub use harp_monitor::{Access, BufferName, Checks, Finding, FindingKind, Target};

/// Everything needed to build, compile and launch a kernel, in one import.
pub mod prelude {
    pub use harp_jit::prelude::*;

    pub use crate::{
        Arg, Buffer, CodeCache, Device, DeviceConfig, Element, LaunchConfig, LaunchError, Report,
    };
}
