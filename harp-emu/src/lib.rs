//! An emulator of HARP machines that runs in the host's process.

#![deny(unsafe_code)]

mod code;
mod config;
mod core;
mod exec;
mod machine;
mod memory;
mod simd;
mod stats;
mod trap;
mod warp;
mod word;

pub use config::{MachineConfig, Schedule, Simd, SpawnPolicy};
pub use machine::{Machine, MachineError};
pub use memory::{Memory, MemoryError};
pub use stats::{CoreStats, Stats, WarpStats};
pub use trap::{Trap, TrapKind};
