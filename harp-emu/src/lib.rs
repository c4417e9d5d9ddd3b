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
//! All instructions of the base set and of extension X. What a launch on a device needs is the default;
//! what the original machine has besides is chosen in [`MachineConfig`]: guest handlers of
//! [interrupts](Interrupts), [address translation](Translation), the original's own
//! [floats](Floats). A guest may be interrupted by what a [`TrapKind`] names; everything else that goes
//! wrong stops the run.
//!
//! An instruction that raises an interrupt has done nothing, in no lane, but it counts. Behind an invalid
//! instruction the byte encoding goes on after guard and opcode. Interrupts by console input are exact for
//! [input given in advance](MachineConfig::input); a [`Console`] is asked at least once a quantum, or once in
//! 1024 machine steps. A sub-word access that crosses the border of a page is two; it needs both pages' permission.
//!
//! Floats are the host's IEEE binary32 and binary64. Which NaN an operation yields is not
//! specified, as in Rust. Stores to code are seen at once by the core that stores. Other cores, and a
//! running machine after stores by the host, may see what they decoded before, but not after the next
//! [`run`](Machine::run); on the precise path everybody sees everything at once.
//!
//! # How it is built
//!
//! | module | what |
//! |---|---|
//! | `machine` | host threads, each with its share of the cores, in turns |
//! | `core` | a core: which warp runs, many machine steps at once, barriers, spawning, cores that do not run |
//! | `exec` | one warp at work: what instructions do, by family |
//! | `simd` | the interpreter's loop compiled for the host's vector instructions |
//! | `code` | decoded instructions by address |
//! | `warp`, `word`, `memory` | state: registers, words of 4 or 8 bytes, shared memory |
//! | `system`, `tlb`, `console` | state of a core: the handler's place, the table of pages, the console |
//! | `interrupt`, `reference_float`, `random` | entering and leaving handlers; the original's floats; drawn schedules |
//! | `inspect`, `observe` | looking at the state between instructions, and at every instruction |
//! | `stats`, `profile`, `json` | what is always counted, what is counted on demand, and its JSON form |
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
mod console;
mod core;
mod decoded;
mod exec;
mod inspect;
mod interrupt;
mod json;
mod machine;
mod memory;
mod observe;
mod profile;
mod random;
mod reference_float;
mod simd;
mod stats;
mod system;
mod tlb;
mod trap;
mod warp;
mod word;

pub use config::{
    DivergentBarriers, Floats, Interrupts, MachineConfig, Path, Reconvergence, Schedule, Simd,
    SpawnPolicy, Translation,
};
pub use console::Console;
pub use inspect::{SavedState, StackEntry, WarpStatus, WarpView};
pub use interrupt::Interrupt;
pub use machine::{Machine, MachineError};
pub use memory::{Memory, MemoryError};
pub use observe::{
    AccessKind, Issue, LaneAccess, MemoryAccess, Observer, Retire, Trace, TraceFormat, TraceWriter,
};
pub use profile::{
    BranchCounts, BranchMasks, Collect, DEFAULT_SEGMENT_BYTES, Histogram, LISTED_BRANCH_MASKS,
    LaneCounts, MemoryCounts, OpcodeCounts, Profile, RegisterCount, RegisterCounts,
};
pub use stats::{CoreStats, Stats, WarpStats};
pub use tlb::{PageAccess, PageMapping};
pub use trap::{BarrierWait, Trap, TrapKind};
