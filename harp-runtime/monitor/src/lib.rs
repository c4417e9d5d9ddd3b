//! Checks of what kernels do with memory, in the manner of Oclgrind and Compute Sanitizer.
//!
//! A kernel that was compiled with
//! [`CompileOptions::report_accesses`](harp_jit::CompileOptions::report_accesses) stores the address of each access, before it
//! makes it, to a device of the machine. This device is a [`Monitor`]. It knows
//!
//! * what the addresses may point into, [`Regions`]: each access of the program names the parameters, arrays, slots and data that its
//!   address was computed from;
//! * which bytes were never written, [`Unwritten`];
//! * who accessed each word last, and what orders work-items, [`Races`].
//!
//! What is wrong is described by [`Finding`]s, those at the same place in the source as one. The monitor knows nothing of
//! devices, buffers and launches: their owner makes one for each launch, of its [`Extents`] and the code that reports
//! ([`CheckedFunction`]), sets it as the machine's device, and takes what it [`Found`] when the machine has stopped.
#![forbid(unsafe_code)]

mod checks;
mod finding;
mod items;
mod monitor;
mod ordered;
mod races;
mod regions;
mod unwritten;

pub use checks::{Checks, too_many_items};
pub use finding::{Access, BufferName, Finding, FindingKind, Target};
pub use monitor::{CheckedFunction, Extents, Found, Ignored, Monitor, PlaceOf, WordAt};
pub use races::Races;
pub use regions::{Argument, GroupPlaces, Regions};
pub use unwritten::Unwritten;
