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
//! All instructions of the base set and of extension X. The default configuration is that of a launch on a
//! device; [`MachineConfig`] turns on what the original machine has besides: guest handlers of
//! [interrupts](Interrupts), [address translation](Translation), the original's own
//! [floats](Floats). Some [`TrapKind`]s can interrupt a guest ([`TrapKind::interrupt`]); all others stop
//! the run.
//!
//! An instruction that raises an interrupt has had no effect in any lane, but it counts. In the byte encoding
//! an invalid instruction is taken to consist of guard and opcode. Interrupts by console input are exact for
//! [input given in advance](MachineConfig::input); a [`Console`] is asked at least once per quantum, or once in
//! 1024 machine steps. A sub-word access that crosses a page boundary is two accesses and needs both pages'
//! permission.
//!
//! Floats are the host's IEEE binary32 and binary64. As in Rust, it is unspecified which NaN an operation
//! yields, so tiers, paths and hosts may differ in it, and in nothing else. The core that stores to code sees the change at once. Other cores, and a running machine after
//! stores by the host, may execute what they decoded before, until the next [`run`](Machine::run). On the
//! precise path every change is seen at once.
//!
//! # What is here
//!
//! | to | types |
//! |---|---|
//! | choose the machine | [`MachineConfig`], whose fields are plain data: [`Interrupts`], [`Translation`], [`Floats`], [`Reconvergence`], [`DivergentBarriers`], [`SpawnPolicy`], [`Schedule`], [`Simd`], [`Path`], [`Collect`], [`DEFAULT_SEGMENT_BYTES`] |
//! | fill memory, run, step | [`Memory`], [`MemoryError`]; [`Machine`], [`MachineError`]; [`Console`] for input and output while it runs; [`Device`] for what lanes store outside of memory, in [`DeviceStore`]s of [`LaneStore`]s; [`CancelToken`] to end a run from another thread; [`Spare`] to make the next machine sooner, with [`SpareCode`] of what it runs |
//! | learn why a run stopped | [`Trap`], its [`TrapKind`], [`BarrierWait`] of a deadlock, [`PageAccess`] of a page fault, the [`Interrupt`] that a guest would get |
//! | learn what a run cost | [`Stats`], [`CoreStats`], [`WarpStats`] |
//! | inspect a machine between runs and steps | [`WarpView`], [`WarpStatus`], [`StackEntry`], [`SavedState`], [`PageMapping`] |
//! | run warps in host code | [`HostTier`], which makes a [`HostCode`] for each core; this gets a [`Frame`] with [`RegisterWords`], [`MemoryWords`] and a [`FrameStack`], or a [`Resume`], and returns a [`HostEnd`]; [`BarrierRule`] says who must come to barriers; [`compute`] is what an instruction means in one lane |
//! | observe every instruction | [`Observer`], which gets [`Issue`] and [`Retire`]; [`MemoryAccess`], [`AccessKind`], [`LaneAccess`]; [`TraceWriter`] writes a [`Trace`] in a [`TraceFormat`] |
//! | count more than statistics | [`Profile`]: [`OpcodeCounts`], [`LaneCounts`], [`BranchCounts`] and [`BranchMasks`] (at most [`LISTED_BRANCH_MASKS`] a branch), [`RegisterCounts`] and [`RegisterCount`], [`MemoryCounts`], each with [`Histogram`]s |
//!
//! Feature `json`, off by default: statistics, profiles and traps are `serde::Serialize`, and traces can be
//! written as lines of JSON.
//!
//! # How it is built
//!
//! From the ground up:
//!
//! | module | contents |
//! |---|---|
//! | `word`, `config`, `stats`, `interrupt` | words of 4 or 8 bytes; the machine's parameters; what is always counted; interrupts of a guest |
//! | `notation`, `json` | how masks and registers are written, in text and in JSON |
//! | `console`, `device`, `random`, `reference_float` | the console; devices outside; random schedules; the original's floats |
//! | `memory`, `warp`, `trap`, `tlb` | state: shared memory, a warp's registers and stack, the page table; why a run stopped |
//! | `inspect`, `observe`, `profile` | views of the state between instructions; observers of every instruction; what is counted on demand |
//! | `barrier`, `host_code` | the lanes that must come to barriers; what runs warps in another way, from outside |
//! | `exec` | execution of one warp: the effects of instructions, by family; the fast path, compiled for the host's vector instructions; decoded instructions by address |
//! | `core` | a core: which warp runs, many machine steps at once, barriers, spawning, cores that do not run |
//! | `machine` | host threads, each with its share of the cores, in turns |
//!
//! Registers are arrays over lanes, a structure of arrays; everything is generic over the word and
//! over the lanes rounded up to 16, 32 or 64. A predicate is a bit mask over lanes, and so is
//! the set of active lanes; an instruction executes in the lanes that are in both. Invariants:
//!
//! * a running warp has an active lane, and no lane beyond the machine's is ever active;
//! * an instruction that traps has not changed memory in any lane;
//! * the counts in [`Stats`] and the trap reported depend neither on the host's vector instructions
//!   nor, for race-free programs, on the number of host threads; except that after a trap the counts of
//!   the cores above the one that trapped depend on how far they had come.

mod barrier;
mod config;
mod console;
mod core;
mod device;
mod exec;
mod host_code;
mod inspect;
mod interrupt;
#[cfg(feature = "json")]
mod json;
mod machine;
mod memory;
mod notation;
mod observe;
mod profile;
mod random;
mod reference_float;
mod stats;
mod stop;
mod tlb;
mod trap;
mod warp;
mod word;

// The machine's parameters.
pub use config::{
    Collect, DEFAULT_SEGMENT_BYTES, DivergentBarriers, Floats, Interrupts, MachineConfig, Path,
    Reconvergence, Schedule, Simd, SpawnPolicy, Translation,
};
// Memory, and a machine to run on it.
pub use console::Console;
pub use device::{Device, DeviceStore, LaneStore};
pub use machine::{Machine, MachineError, Spare, SpareCode};
pub use memory::{Memory, MemoryError};
// Why a run stopped, and what it cost.
pub use interrupt::Interrupt;
pub use stats::{CoreStats, Stats, WarpStats};
pub use stop::CancelToken;
pub use trap::{BarrierWait, PageAccess, Trap, TrapKind};
// Another way to run warps.
pub use barrier::BarrierRule;
pub use host_code::{Frame, FrameStack, HostCode, HostEnd, HostTier, Resume, compute};
pub use word::{MemoryWords, RegisterWords};
// The state of a machine that is not running.
pub use inspect::{SavedState, StackEntry, WarpStatus, WarpView};
pub use tlb::PageMapping;
// Every instruction as it is issued.
pub use observe::{
    AccessKind, Issue, LaneAccess, MemoryAccess, Observer, Retire, Trace, TraceFormat, TraceWriter,
};
// What a run did, counted on demand.
pub use profile::{
    Activity, BranchCounts, BranchMasks, Histogram, LISTED_BRANCH_MASKS, LaneCounts, MemoryCounts,
    OpcodeCounts, Profile, RegisterCount, RegisterCounts, RegistersNamed, ScalarCounts,
};
