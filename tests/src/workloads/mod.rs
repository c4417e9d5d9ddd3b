//! Functions to measure compilers by: what a front end of a plain language makes, at any size.
//!
//! [`generated`] writes one of about a given number of instructions, the same at every run:
//! arithmetic on variables, loads and stores, conditions, loops, calls. [`handwritten`] are small
//! ones as people write them. All compile for HARP and for hosts with 8-byte pointers, and all are correct
//! programs: [`DRIVER`] runs them.

use cranelift_codegen::ir::Function;
use harp_isa::WordSize;

use crate::functions::parse;

mod compile;
mod generate;
mod graphs;
#[cfg(feature = "native")]
mod native;

pub use compile::{code_bytes, instructions};
pub use generate::{MEMORY_BYTES, generated};
pub use graphs::Shape;
#[cfg(feature = "native")]
pub use native::Native;

/// Functions that are generated call this one.
pub const HELPER: &str = include_str!("helper.clif");

/// `%driver`, which calls `%generated` on memory of its own and gives a checksum of the result and of
/// that memory.
pub const DRIVER: &str = include_str!("driver.clif");

const HANDWRITTEN: &str = include_str!("handwritten.clif");

/// Greatest common divisor, a hash of bytes, insertion sort, matrix product, an interpreter's loop.
pub fn handwritten(word: WordSize) -> Vec<Function> {
    parse(word, HANDWRITTEN)
}
