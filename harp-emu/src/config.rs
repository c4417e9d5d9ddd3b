//! What machine to emulate and how: plain data.

use std::num::{NonZeroU32, NonZeroUsize};

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
    /// `None`: no limit. Because the limit counts per core, whether and where it strikes does not
    /// depend on the number of host threads.
    pub fuel: Option<u64>,
    /// The most entries that a warp's divergence stack holds. A `split` pushes one or two.
    pub divergence_depth: usize,
    /// The most host memory that registers and divergence stacks of all warps take together, in bytes;
    /// each core may take an equal share. More is an error where a machine is made, a trap in a run.
    /// Decoded code comes on top, a fixed multiple of the code's size.
    pub state_limit: u64,
    /// What becomes of traps, faults and console input.
    pub interrupts: Interrupts,
    /// What addresses mean.
    pub translation: Translation,
    /// How the base instruction set's floats are computed.
    pub floats: Floats,
    /// What `split` does where control comes back to it.
    pub reconvergence: Reconvergence,
    /// What a `bar` does that not all lanes reach together.
    pub divergent_barriers: DivergentBarriers,
    /// What `wspawn` does when every warp has been started.
    pub spawn: SpawnPolicy,
    /// In which order the warps of a core run.
    pub schedule: Schedule,
    /// The most host threads on which cores run; `None`: as many as the host offers. There are
    /// never more than cores, than 1024 or than the host gives, and a machine with one thread runs
    /// on the caller's.
    pub host_threads: Option<NonZeroUsize>,
    /// Stores and atomic operations below this address, rounded up to a word, trap. 0 lets the guest
    /// write everywhere.
    pub read_only_below: u64,
    /// Whether the console answers at the address whose only set bit is the top one.
    pub console: bool,
    /// What loads from the console take, byte by byte, on core 0. When all is taken, and on the
    /// other cores, they get 0, unless there is a [`Console`](crate::Console) to ask.
    pub input: Vec<u8>,
    /// Which of the host's vector instructions may be used. The results are the same.
    pub simd: Simd,
    /// How instructions are carried out. The results are the same.
    pub path: Path,
    /// What to count besides [`Stats`](crate::Stats); see [`Profile`](crate::Profile). A machine that
    /// counts nothing pays nothing; one that counts anything takes the precise path.
    pub collect: Collect,
    /// Bytes of the segments in which [`Collect::MEMORY`] counts, such as a cache line's.
    pub segment_bytes: NonZeroU32,
}

impl MachineConfig {
    /// One core, no fuel limit, 4096 divergence stack entries, 4 GiB for the warps' state, no guest
    /// handlers of interrupts, physical addresses, IEEE floats, reconvergence at joins alone, no divergent
    /// barriers, strict spawning, no read-only memory, a
    /// console without input, the default quantum, all host threads, the host's vector instructions,
    /// nothing collected.
    pub fn new(arch: ArchId) -> MachineConfig {
        MachineConfig {
            arch,
            cores: 1,
            fuel: None,
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
            collect: Collect::empty(),
            segment_bytes: DEFAULT_SEGMENT_BYTES,
        }
    }
}

impl MachineConfig {
    /// What the warps of one core may take of the host's memory.
    pub(crate) fn state_share(&self) -> u64 {
        self.state_limit / u64::from(self.cores.max(1))
    }
}

/// What becomes of what interrupts a guest (see [`Interrupt`](crate::Interrupt)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interrupts {
    /// It stops the run with a trap; console input waits to be loaded. What launches do.
    Trap,
    /// The warp goes on in the handler that `skep` has set, as in the original emulator. Without a
    /// handler the run stops, but console input waits for one. While interrupts are off `trap`, invalid
    /// instructions and divisions by zero are skipped, whatever would have to be repeated is a
    /// [`DoubleFault`](crate::TrapKind::DoubleFault), and console input waits. What a guest cannot
    /// handle stops the run in any case.
    Guest,
}

/// What addresses mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Translation {
    /// What they say. `tlbadd`, `tlbrm` and `tlbflush` keep the table of pages, which nobody reads.
    Physical,
    /// Each core's table of pages translates them, for fetches, loads, stores and atomic operations. At
    /// reset it holds page 0, in its place, with all permissions. The lowest 65536 pages are as fast as
    /// without a table as long as they are mapped to themselves; what lies elsewhere takes the precise path.
    Tlb,
}

/// How `itof ftoi fadd fsub fmul fdiv fneg` compute. The float instructions of extension X, which the
/// original lacks, are IEEE 754's in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Floats {
    /// As IEEE 754 says, rounded to nearest, ties to even; `ftoi` saturates and makes 0 of a NaN.
    Ieee,
    /// As the original emulator: results are truncated, those above the largest exponent but one
    /// become 0, a NaN reads as infinity, `itof` takes 4-byte words as unsigned, `ftoi` wraps. Takes the
    /// precise path.
    Reference,
}

/// What `split` does where control comes back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconvergence {
    /// Pushes, always: a loop whose lanes leave one after the other needs a `join` in each round.
    Join,
    /// Loops reconverge at their `split`. If that `split` pushed the two uppermost entries of the stack, it
    /// pushes nothing: the lanes whose predicate is true stay active, and if there are none it pops both
    /// entries and all lanes that came into the loop go on together. Entries that it pushed
    /// when the lanes still agreed (one, for the lanes that are still active) it replaces, or, if no
    /// predicate is true, pops. Takes the precise path.
    Pdom,
}

/// What a `bar` does that not all lanes reach together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergentBarriers {
    /// As any other: a barrier is a matter of warps.
    Allow,
    /// Traps unless all lanes that were last activated together execute it.
    Trap {
        /// The address of a `split` that may hold lanes back from barriers, if it pushed the lowest
        /// entry of the stack: a runtime library's, for lanes without work.
        outer_split: Option<u64>,
    },
}

/// What `wspawn` does when every warp has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnPolicy {
    /// [`TrapKind::NoWarpLeft`](crate::TrapKind::NoWarpLeft).
    Strict,
    /// Nothing, as the original emulator.
    Original,
}

/// In which order the warps of a core run. Race-free programs cannot tell the difference, but for
/// what the order of atomic operations and console output shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// In each machine step every runnable warp, in the order of warps, issues one instruction, as
    /// in the original emulator, whose step counts come out of this. Warps run on where nobody can
    /// tell the difference: one that is alone, and several up to what others may notice.
    Step,
    /// A warp runs until it stops, waits at a barrier or has issued this many instructions; then
    /// the next in the order of warps. Faster.
    Quantum(NonZeroU32),
    /// Which core and which warp run next, and for how many instructions, is drawn from a
    /// pseudo-random sequence with this seed. Shakes out races. All cores run on the caller's host
    /// thread, so that a run can be replayed.
    Seeded(u64),
}

impl Default for Schedule {
    /// A quantum of 4096 instructions.
    fn default() -> Schedule {
        Schedule::Quantum(NonZeroU32::new(4096).expect("4096 is not zero"))
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
    /// Lane by lane, always: slow, simple, and the fast path's yardstick.
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
    }
}

/// The usual [`segment_bytes`](crate::MachineConfig::segment_bytes): a cache line.
pub const DEFAULT_SEGMENT_BYTES: NonZeroU32 = NonZeroU32::new(64).expect("64 is not zero");
