//! What machine to emulate and how: plain data.

use std::num::{NonZeroU32, NonZeroUsize};

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
    /// other cores, they get 0.
    pub input: Vec<u8>,
    /// Which of the host's vector instructions may be used. The results are the same.
    pub simd: Simd,
    /// How instructions are carried out. The results are the same.
    pub path: Path,
}

impl MachineConfig {
    /// One core, no fuel limit, 4096 divergence stack entries, strict spawning, no read-only memory, a
    /// console without input, the default quantum, all host threads, the host's vector instructions.
    pub fn new(arch: ArchId) -> MachineConfig {
        MachineConfig {
            arch,
            cores: 1,
            fuel: None,
            divergence_depth: 4096,
            spawn: SpawnPolicy::Strict,
            schedule: Schedule::default(),
            host_threads: None,
            read_only_below: 0,
            console: true,
            input: Vec::new(),
            simd: Simd::Detect,
            path: Path::Fast,
        }
    }
}

/// What `wspawn` does when every warp has been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpawnPolicy {
    /// [`TrapKind::NoWarpLeft`](crate::TrapKind::NoWarpLeft).
    Strict,
    /// Nothing, as the original emulator.
    Original,
}

/// In which order the warps of a core run. Race-free programs cannot tell the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// In each machine step every runnable warp, in the order of warps, issues one instruction, as
    /// in the original emulator, whose step counts come out of this.
    Step,
    /// A warp runs until it stops, waits at a barrier or has issued this many instructions; then
    /// the next in the order of warps. Faster.
    Quantum(NonZeroU32),
}

impl Default for Schedule {
    /// A quantum of 4096 instructions.
    fn default() -> Schedule {
        Schedule::Quantum(NonZeroU32::new(4096).expect("4096 is not zero"))
    }
}

/// Which of the host's vector instructions may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// The widest that the emulator knows and the host has.
    Detect,
    /// Those that every host of this kind has.
    Baseline,
}

/// How instructions are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// As fast as possible: on all lanes at once, except where the run is observed or the machine
    /// has features that only the precise path knows.
    Fast,
    /// Lane by lane, always: slow, simple, and the fast path's yardstick.
    Precise,
}
