//! An emulator of HARP machines that runs in the host's process: warps, lanes, predicates, the
//! divergence stack, memory shared by cores on several host threads, and a typed trap for whatever
//! goes wrong.
//!
//! It is made to be embedded: a [`Machine`] is a plain value over a [`Memory`] that the host fills
//! and reads, [`MachineConfig`] is plain data, nothing is printed, no input makes it panic, and a
//! program that never ends runs [out of fuel](MachineConfig::fuel).
//!
//! ```
//! use harp_emu::{Machine, MachineConfig, Memory, TrapKind};
//! use harp_isa::{ArchId, Gpr, Op};
//!
//! let arch: ArchId = "4w8/8/16/16".parse()?;
//! let (value, address) = (Gpr::new(1), Gpr::new(2));
//! let program = [
//!     Op::Ldi { dst: value, imm: 42 },
//!     Op::Ldi { dst: address, imm: 0x100 },
//!     Op::St { value, base: address, offset: 0 },
//!     Op::Trap {},
//! ];
//! let mut code = Vec::new();
//! for op in program {
//!     harp_isa::encode(&op.into(), arch, &mut code)?;
//! }
//!
//! let memory = Memory::new(arch.word(), 1 << 20)?;
//! memory.write(0, &code)?;
//! let mut machine = Machine::new(MachineConfig::new(arch), &memory)?;
//! let trap = machine.run().unwrap_err();
//! assert_eq!((trap.kind, trap.pc, trap.lanes), (TrapKind::GuestTrap, 12, 1));
//!
//! let mut word = [0; 4];
//! memory.read(0x100, &mut word)?;
//! assert_eq!(u32::from_le_bytes(word), 42);
//! assert_eq!(machine.stats().issued(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it implements
//!
//! All instructions of the base set and of extension X except those that only guest interrupt
//! handlers and address translation need (`tlbadd tlbflush tlbrm skep reti`), which trap as
//! [`Unsupported`](TrapKind::Unsupported). Everything that would interrupt a guest stops the run
//! with a [`Trap`] instead, so `di` and `ei` check the privilege and have no other effect.
//! There is no address translation: addresses are physical.
//!
//! Floats are the host's IEEE binary32 and binary64. Which NaN an operation yields is not
//! specified, as in Rust. A core decodes an instruction when it first reaches it; a program that
//! changes code that has run sees the change in the next run only.
//!
//! # How it is built
//!
//! | module | what |
//! |---|---|
//! | `machine` | host threads, each with its share of the cores, in turns |
//! | `core` | a core: which warp runs, barriers, spawning |
//! | `exec` | one warp at work: what instructions do, by family |
//! | `simd` | the interpreter's loop compiled for the host's vector instructions |
//! | `code` | decoded instructions by address |
//! | `warp`, `word`, `memory` | state: registers, words of 4 or 8 bytes, shared memory |
//! | `inspect`, `observe` | looking at the state between instructions, and at every instruction |
//!
//! Registers are arrays over lanes, a structure of arrays; everything is generic over the word and
//! over the lanes rounded up to 8, 16, 32 or 64. A predicate is a bit mask over lanes, and so is
//! the set of active lanes; an instruction executes in the lanes that are in both. Invariants:
//!
//! * a warp that runs has an active lane, and no lane beyond the machine's is ever active;
//! * an instruction that traps has not changed memory, in no lane;
//! * the counts in [`Stats`] and the trap reported depend neither on the host's vector instructions
//!   nor, for race-free programs, on the number of host threads; but after a trap the counts of the
//!   cores above the one that trapped tell how far they had come by then.

mod code;
mod config;
mod core;
mod exec;
mod inspect;
mod machine;
mod memory;
mod observe;
mod simd;
mod stats;
mod trap;
mod warp;
mod word;

pub use config::{MachineConfig, Path, Schedule, Simd, SpawnPolicy};
pub use inspect::{StackEntry, WarpStatus, WarpView};
pub use machine::{Machine, MachineError};
pub use memory::{Memory, MemoryError};
pub use observe::{Issue, Observer, Retire};
pub use stats::{CoreStats, Stats, WarpStats};
pub use trap::{Trap, TrapKind};
