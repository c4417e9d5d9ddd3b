//! The parameters of an emulated machine, as plain data.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use bitflags::bitflags;
use harp_isa::ArchId;

/// The parameters of a [`Machine`](crate::Machine).
///
/// [`MachineConfig::new`] gives the values that launches use; every field may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfig {
    /// Word size, encoding, registers, lanes and warps of each core.
    pub arch: ArchId,
    /// Cores, at least 1. They share the memory and nothing else.
    pub cores: u16,
    /// The most instructions that a core may issue, all its warps together; one more is a trap.
    /// `None`: no limit. Because the limit counts per core, whether and where a run reaches it does not
    /// depend on the number of host threads.
    pub fuel: Option<u64>,
    /// The longest that a [`run`](crate::Machine::run) may take; afterwards each core that still runs traps as soon as
    /// a [`CancelToken`](crate::CancelToken) would end it. Where that is depends on the host. `None`: no limit.
    pub time_limit: Option<Duration>,
    /// The most entries that a warp's divergence stack holds. A `split` pushes one or two.
    pub divergence_depth: usize,
    /// The most host memory that registers and divergence stacks of all warps take together, in bytes;
    /// each core may take an equal share. More is an error when a machine is made, a trap in a run.
    /// Decoded code comes on top, a fixed multiple of the code's size. A core forgets it and decodes anew where
    /// it would exceed another such share.
    pub state_limit: u64,
    /// How traps, faults and console input are handled.
    pub interrupts: Interrupts,
    /// How addresses are translated.
    pub translation: Translation,
    /// How the base instruction set's floats are computed.
    pub floats: Floats,
    /// What a `split` does when control comes back to it, as in loops.
    pub reconvergence: Reconvergence,
    /// What a `bar` does if not all lanes reach it together.
    pub divergent_barriers: DivergentBarriers,
    /// What `wspawn` does when every warp has been started.
    pub spawn: SpawnPolicy,
    /// In which order the warps of a core run.
    pub schedule: Schedule,
    /// The most host threads that run cores; `None`: as many as the host offers. There are never more
    /// than there are cores, than 1024, or than the host can start. A machine with one thread runs on the
    /// caller's.
    pub host_threads: Option<NonZeroUsize>,
    /// Stores and atomic operations below this address, rounded up to a word, trap. 0 lets the guest
    /// write everywhere.
    pub read_only_below: u64,
    /// Whether there is a console, at the address whose only set bit is the top one.
    pub console: bool,
    /// The console's input: loads on core 0 take it byte by byte. When all is taken, and on the
    /// other cores, they get 0, unless there is a [`Console`](crate::Console) to ask.
    pub input: Vec<u8>,
    /// Which of the host's vector instructions may be used. The results are the same.
    pub simd: Simd,
    /// How instructions are carried out. The results are the same.
    pub path: Path,
    /// Whether a lane that reads from a shared register what it has not written itself traps, with
    /// [`TrapKind::SharedMismatch`](crate::TrapKind::SharedMismatch): a check of code that keeps values of lanes in shared
    /// registers because the lanes agree on them. A lane counts as having written what it executed with others. One that
    /// is cloned has written what its original has; one that `jalis` and the like activate begins with what is
    /// there. Takes the precise path; without effect where lanes share nothing.
    pub audit_shared: bool,
    /// What to count besides [`Stats`](crate::Stats); see [`Profile`](crate::Profile). Counting nothing
    /// costs nothing; a machine that counts anything takes the precise path.
    pub collect: Collect,
    /// Bytes of the segments in which [`Collect::MEMORY`] counts, such as a cache line's.
    pub segment_bytes: NonZeroU32,
}

impl MachineConfig {
    /// One core, no limit of fuel or time, 4096 divergence stack entries, 4 GiB for the warps' state, no guest
    /// handlers of interrupts, physical addresses, IEEE floats, reconvergence at joins alone, no divergent
    /// barriers, strict spawning, no read-only memory, a console without input, the default quantum, all host
    /// threads, the host's vector instructions, nothing audited or collected.
    pub fn new(arch: ArchId) -> MachineConfig {
        MachineConfig {
            arch,
            cores: 1,
            fuel: None,
            time_limit: None,
            divergence_depth: 4096,
            state_limit: 4 << 30,
            interrupts: Interrupts::Trap,
            translation: Translation::Physical,
            floats: Floats::Ieee,
            reconvergence: Reconvergence::Join,
            divergent_barriers: DivergentBarriers::Trap { outer_split: None },
            spawn: SpawnPolicy::Strict,
            schedule: Schedule::default(),
            host_threads: None,
            read_only_below: 0,
            console: true,
            input: Vec::new(),
            simd: Simd::Detect,
            path: Path::Fast,
            audit_shared: false,
            collect: Collect::empty(),
            segment_bytes: DEFAULT_SEGMENT_BYTES,
        }
    }
}

impl MachineConfig {
    /// The host memory that the warps of one core may take, in bytes.
    pub(crate) fn state_share(&self) -> u64 {
        self.state_limit / u64::from(self.cores.max(1))
    }
}

/// How the events that can interrupt a guest are handled (see [`Interrupt`](crate::Interrupt)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interrupts {
    /// The event stops the run with a trap; console input waits to be loaded. Launches use this.
    Trap,
    /// The warp continues in the handler that `skep` has set, as in the original emulator. Without a
    /// handler the run stops, but console input waits for one. While interrupts are off, `trap`, invalid
    /// instructions and divisions by zero are skipped, an instruction that would have to be repeated is a
    /// [`DoubleFault`](crate::TrapKind::DoubleFault), and console input waits. A trap that is not an
    /// interrupt stops the run in any case.
    Guest,
}

/// How addresses are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Translation {
    /// Not at all: addresses are physical. `tlbadd`, `tlbrm` and `tlbflush` still update the page table, but it
    /// is not used.
    Physical,
    /// By each core's page table, for fetches, loads, stores and atomic operations. At reset it holds page 0,
    /// mapped to itself, with all permissions. The lowest 65536 pages are as fast as without a table as long
    /// as they are mapped to themselves; other pages take the precise path.
    Tlb,
}

/// How `itof ftoi fadd fsub fmul fdiv fneg` compute. The float instructions of extension X, which the
/// original lacks, always follow IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Floats {
    /// As in IEEE 754, rounded to nearest, ties to even; `ftoi` saturates and turns a NaN into 0.
    Ieee,
    /// As in the original emulator: results are truncated, those above the largest exponent but one
    /// become 0, a NaN reads as infinity, `itof` takes 4-byte words as unsigned, `ftoi` wraps. Takes the
    /// precise path.
    Reference,
}

/// What a `split` does when control comes back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconvergence {
    /// It always pushes: a loop that lanes leave one after the other needs a `join` in each iteration.
    Join,
    /// Loops reconverge at their `split`. If that `split` pushed the two topmost entries of the stack, it
    /// pushes nothing: the lanes whose predicate is true stay active. If there are none it pops both
    /// entries, and all lanes that entered the loop go on together. If it pushed only the topmost entry,
    /// because the lanes agreed, and the same lanes are still active, it replaces that entry, or pops it if
    /// no predicate is true. Takes the precise path.
    Pdom,
}

/// What a `bar` does if not all lanes reach it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergentBarriers {
    /// The same as any other `bar`: only warps wait at barriers, not lanes.
    Allow,
    /// It traps unless all lanes that were last activated together execute it.
    Trap {
        /// The address of a `split` that may hold lanes back from barriers, if it pushed the lowest
        /// entry of the stack. A runtime library holds back lanes without work this way.
        outer_split: Option<u64>,
    },
}

/// What `wspawn` does when every warp has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnPolicy {
    /// It traps with [`TrapKind::NoWarpLeft`](crate::TrapKind::NoWarpLeft).
    Strict,
    /// It does nothing, as in the original emulator.
    Original,
}

/// In which order the warps of a core run. Race-free programs cannot tell the difference, except by
/// the order of atomic operations and console output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// In each machine step every runnable warp, in the order of warps, issues one instruction. This gives
    /// the step counts of the original emulator. A warp issues more at a time where this cannot be observed:
    /// if it runs alone, or until its next instruction that other warps may notice.
    Step,
    /// A warp runs until it stops, waits at a barrier or has issued this many instructions; then
    /// the next in the order of warps. Faster.
    Quantum(NonZeroU32),
    /// A pseudo-random sequence with this seed decides which core and which warp run next, and for how
    /// many instructions. This exposes races. All cores run on the caller's host thread, so that a run can
    /// be replayed.
    Seeded(u64),
}

impl Default for Schedule {
    /// A quantum of 16,384 instructions. What host code leaves to the interpreter where a quantum ends and the next one begins was a
    /// quarter of the time of short kernels with 4096.
    fn default() -> Schedule {
        Schedule::Quantum(NonZeroU32::new(16_384).expect("16384 is not zero"))
    }
}

/// Which of the host's vector instructions may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Simd {
    /// The widest that the emulator knows and the host has.
    Detect,
    /// Those that every host of this kind has.
    Baseline,
}

/// How instructions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Path {
    /// As fast as possible: on all lanes at once, except where the run is observed or the machine
    /// has features that only the precise path knows.
    Fast,
    /// Always lane by lane: slow, simple, and the reference for the fast path.
    Precise,
}

bitflags! {
    /// What a [`Profile`](crate::Profile) counts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Collect: u8 {
        /// [`Profile::opcodes`](crate::Profile::opcodes).
        const OPCODES = 1;
        /// [`Profile::lanes`](crate::Profile::lanes).
        const LANES = 1 << 1;
        /// [`Profile::depth`](crate::Profile::depth).
        const DEPTH = 1 << 2;
        /// [`Profile::branches`](crate::Profile::branches).
        const BRANCHES = 1 << 3;
        /// [`Profile::registers`](crate::Profile::registers).
        const REGISTERS = 1 << 4;
        /// [`Profile::memory`](crate::Profile::memory).
        const MEMORY = 1 << 5;
        /// [`Profile::scalars`](crate::Profile::scalars).
        const SCALARS = 1 << 6;
    }
}

/// The usual [`segment_bytes`](crate::MachineConfig::segment_bytes): a cache line.
pub const DEFAULT_SEGMENT_BYTES: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
