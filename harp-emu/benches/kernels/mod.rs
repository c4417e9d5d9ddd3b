//! What the benches run: kernels, each as a guest program and as straight-line Rust, made from the
//! same list of operations.
//!
//! The Rust side is a bound for interpreters that work on whole registers: guest registers are
//! arrays over lanes, each operation is a loop over them, and the compiler may keep them in host
//! registers. Nothing is decoded, memory is not atomic, and loops count on the host.

#![allow(dead_code, reason = "each bench uses a part")]

#[macro_use]
mod rows;
mod bound;
mod guest;

use std::num::NonZeroUsize;

use harp_emu::{Machine, MachineConfig, Memory, Simd, Stats};
use harp_isa::{ArchId, Gpr};

pub(crate) use bound::{Host, run_bound};
pub(crate) use guest::program;

/// Words of the array that a memory kernel walks; a power of two.
pub(crate) const WORDS: usize = 4096;
/// Where the arrays start in guest memory.
pub(crate) const DATA: u64 = 0x1000;

/// The distance of two cores' arrays in bytes; a power of two.
pub(crate) const CORE_BYTES: u64 = 1 << 16;

/// Registers whose values the two sides have in common, by number.
pub(crate) const SHARED: usize = 8;

/// What a lane's registers hold at first: a multiple of the lane's number and a constant.
pub(crate) const START: [(u32, u32); SHARED] =
    [(77, 1), (91, 2), (45, 33), (13, 70), (5, 9), (3, 1000), (1, 6), (2, 7)];

/// What a kernel does most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Integer operations on registers, with the dependences of hashes.
    Alu,
    /// Two loads, a store and the arithmetic around them; lane after lane, word after word.
    UnitStride,
    /// A load and a store at addresses without an order, and the arithmetic that makes them.
    Scattered,
}

impl Kernel {
    pub(crate) const ALL: [Kernel; 3] = [Kernel::Alu, Kernel::UnitStride, Kernel::Scattered];
}

/// Which lanes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// All.
    Full,
    /// Three of four, the others held back by a `split`.
    Partial,
}

impl Mask {
    /// Whether a lane works.
    pub(crate) fn has(self, lane: usize) -> bool {
        self == Mask::Full || lane % 4 != 3
    }
}

/// A pair of things to time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) kernel: Kernel,
    pub(crate) mask: Mask,
    pub(crate) lanes: usize,
    pub(crate) simd: Simd,
    pub(crate) iterations: u32,
}

impl Case {
    /// A machine that runs the kernel on memory of its own.
    pub(crate) fn guest(&self) -> Guest {
        self.guest_with(1)
    }

    /// A machine of several cores, each of which runs the kernel.
    pub(crate) fn guest_with(&self, cores: u16) -> Guest {
        let arch: ArchId = format!("4w16/4/{}/1+x", self.lanes).parse().expect("an ArchID");
        let bytes = CORE_BYTES * (u64::from(cores) + 1);
        let memory = Memory::new(arch.word(), bytes).expect("some KiB");
        memory.write(0, &program(self, arch)).expect("the program fits");
        let config = MachineConfig { simd: self.simd, cores, ..MachineConfig::new(arch) };
        Guest { memory, config }
    }
}

/// A kernel's guest program in memory.
pub(crate) struct Guest {
    memory: Memory,
    config: MachineConfig,
}

impl Guest {
    /// Runs the kernel: instructions issued.
    pub(crate) fn run(&self) -> u64 {
        let mut machine = Machine::new(self.config.clone(), &self.memory).expect("a machine");
        machine.run().expect("no trap").issued()
    }

    /// Runs the kernel on that many host threads and data of zeros: what it cost, and memory after it.
    pub(crate) fn run_on(&self, threads: NonZeroUsize) -> (Stats, Vec<u8>) {
        let mut bytes = vec![0; (self.memory.size() - DATA) as usize];
        self.memory.write(DATA, &bytes).expect("in memory");
        let config = MachineConfig { host_threads: Some(threads), ..self.config.clone() };
        let mut machine = Machine::new(config, &self.memory).expect("a machine");
        let stats = machine.run().expect("no trap");
        self.memory.read(DATA, &mut bytes).expect("in memory");
        (stats, bytes)
    }

    /// Runs the kernel on fresh data: the shared registers of a lane, and the arrays.
    pub(crate) fn results(&self, lane: usize) -> ([u32; SHARED], Vec<u32>) {
        let mut bytes = vec![0; 8 * WORDS];
        self.memory.write(DATA, &bytes).expect("in memory");
        let mut machine = Machine::new(self.config.clone(), &self.memory).expect("a machine");
        machine.run().expect("no trap");
        let warp = machine.warp(0, 0).expect("it ran");
        let lane = u8::try_from(lane).expect("at most 64");
        let reg = |number: usize| warp.gpr(Gpr::new(number as u8), lane).expect("a register");
        let regs = std::array::from_fn(|number| reg(number) as u32);
        self.memory.read(DATA, &mut bytes).expect("in memory");
        let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("4")));
        (regs, words.collect())
    }
}

/// Checks that both sides compute the same.
///
/// # Panics
///
/// If they do not.
pub(crate) fn check(case: &Case) {
    let mut host = Host::new(case);
    host.reset();
    run_bound(&mut host);
    for lane in (0..case.lanes).filter(|&lane| case.mask.has(lane)) {
        let (regs, words) = case.guest().results(lane);
        assert_eq!(host.registers(lane), regs, "{case:?}: registers of lane {lane}");
        assert!(host.words() == words, "{case:?}: memory");
    }
}
