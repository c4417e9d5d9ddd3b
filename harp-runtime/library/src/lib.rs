//! The runtime library: what runs on a machine beside the code that users write.
//!
//! It is assembly text in `asm/`, put together and assembled for one machine. On machines without the extension it uses base
//! instructions only. There are two kinds of images.
//!
//! # Launches
//!
//! [`assemble`] gives boot code and grid walker. It assumes that it is linked first, at address 0, followed by a chunk
//! [`ARGUMENTS`] and one [`KERNEL`]; that the host fills in the [descriptor](Descriptor) before the run; and that the kernel
//! keeps the calling convention of [`harp_isa::abi`]. It guarantees that each work-item of the grid runs the kernel once,
//! with its position where [`harp_isa::abi`] puts it, and that surplus lanes of the last chunk do not run it.
//!
//! There are three [walks](Walk) over a grid; a library holds one of them. Without work-groups, warps take
//! chunks of as many work-items as they have lanes. Each of the warps of all cores takes a run of chunks that follow
//! each other, which differ by one chunk at most; on machines with few registers warp `i` of `w` takes chunks `i`,
//! `i + w`, `i + 2w` and so on. With work-groups, each core has places for as many groups as its warps can
//! run at a time; of `p` places in all cores, place `i` takes groups `i`, `i + p` and so on.
//!
//! Kernels that take the [lock](harp_isa::abi::Lock) get a library with the lock, whose [words](LockPlace) the host fills in.
//!
//! # Calls
//!
//! [`call()`] gives boot code that calls one function on one lane, with the [words](CallWord) of the call. Functions that
//! start warps and lanes of their own, or take the lock, get [`warps`] beside it.
#![forbid(unsafe_code)]

mod call;
mod grid;
mod lane;
mod lock;
pub mod warps;
mod words;

pub use call::{CALL_CHUNK, CallWord, Callee, Ending, call};
pub use grid::{
    ARGUMENTS, DESCRIPTOR, Descriptor, Form, HELD_BACK, KERNEL, OUTER_SPLIT, RETURNS, Reach, Walk,
    assemble, kept_registers,
};
pub use lock::{LOCK_PLACE, LockPlace};
