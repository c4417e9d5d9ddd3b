//! Devices, buffers and kernel launches: the face of the HARP toolchain.
//!
//! A [`Device`] is a HARP machine, of any [`ArchId`](harp_isa::ArchId) and any number of cores, in
//! this process. [`Buffer`]s are typed arrays in its memory. [`Device::launch`] runs a kernel that
//! `harp-jit` compiled over a grid of work-items and gives a [`Report`] of what it cost, or a
//! [`LaunchError`] that says what went wrong where; a kernel that traps names the line of the
//! builder call that made the instruction.
//!
//! # What a launch does
//!
//! 1. Check the arguments against the kernel's parameters.
//! 2. Link an image of runtime library, argument block and kernel, once a kernel, and write it to
//!    the bottom of guest memory. Image and library are HARP code: without the extension in the
//!    [`ArchId`](harp_isa::ArchId) they run on any HARP machine.
//! 3. Take the lanes' stacks from the heap, for the time of the launch.
//! 4. Run the machine. Boot code starts the warps, each warp its lanes, and all of them walk the
//!    grid: warps take chunks of as many work-items as they have lanes, in turn. Grids that are no
//!    multiple of anything are normal.
//!
//! # Limits
//!
//! * A grid's work-items and those of one round of all warps together must be fewer than 2^31 on
//!   machines with 4-byte words.
//! * An argument takes one word: 8-byte integers and floats need machines with 8-byte words.
//! * Nothing keeps a kernel from reading or writing memory that is not its own: addresses outside
//!   the guest's memory trap, those of other buffers, stacks and code do not.
//! * The host must be little-endian.
#![forbid(unsafe_code)]

mod args;
mod buffer;
mod device;
mod heap;
mod image;
mod kernel;
mod launch;
mod library;
mod report;

pub use args::Arg;
pub use buffer::{Buffer, BufferError, Element};
pub use device::{Device, DeviceConfig, DeviceError};
pub use heap::OutOfMemory;
pub use launch::{LaunchConfig, LaunchError, LaunchTrap, TrapSite};
pub use report::Report;
