//! Benchmark kernels, with the inputs and checksums that make them comparable with other
//! implementations of the same work.

use std::error::Error;

use harp_isa::{ArchId, WordSize};
use harp_jit::{BuildError, Kernel, KernelSource, ParamType};
use harp_runtime::Device;

pub mod array;
pub mod bitonic;
pub mod convolve;
pub mod matmul;
pub mod saxpy;

/// The generator of all inputs: x' = x * 1664525 + 1013904223 modulo 2^32, of which the upper 24
/// bits are used (Knuth's constants as given in Numerical Recipes, 2nd edition, section 7.1).
#[derive(Clone, Debug)]
pub struct Generator(u32);

impl Generator {
    /// The seed that every workload starts from.
    pub const SEED: u32 = 12345;

    /// A generator at its start.
    pub fn new() -> Generator {
        Generator(Self::SEED)
    }
}

impl Default for Generator {
    fn default() -> Self {
        Generator::new()
    }
}

impl Iterator for Generator {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(self.0 >> 8)
    }
}

/// FNV-1a over 32-bit words, the checksum of a workload's output.
pub fn checksum(words: impl IntoIterator<Item = u32>) -> u32 {
    words.into_iter().fold(2_166_136_261, |sum, word| (sum ^ word).wrapping_mul(16_777_619))
}

/// Launches a kernel on so many elements; its results.
pub type Run = fn(&mut Device, &Kernel, u32) -> Result<Vec<u32>, Box<dyn Error>>;

/// A kernel with its data at several scales. At scale 1 and on 4-byte words it is the work of the
/// OpenCL program of the same name; each step of the scale halves the work in each dimension. On 8-byte words
/// an element of an array takes a word.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The kernel's name.
    pub name: &'static str,
    /// Builds the kernel for a machine.
    pub source: fn(ArchId) -> Result<KernelSource, BuildError>,
    /// Runs it at a scale; the output's elements, 32 bits of each.
    pub run: Run,
    /// What comes out, computed on the host.
    pub on_host: fn(u32) -> Vec<u32>,
    /// The [`checksum`] that an OpenCL implementation prints at scale 1.
    pub checksum: u32,
}

/// All workloads but saxpy, which has more to it.
pub const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "matmul",
        source: matmul::source,
        run: matmul::run,
        on_host: matmul::on_host,
        checksum: 561_552_837,
    },
    Workload {
        name: "bitonic",
        source: bitonic::source,
        run: bitonic::run,
        on_host: bitonic::on_host,
        checksum: 1_490_584_741,
    },
    Workload {
        name: "convolve",
        source: convolve::source,
        run: convolve::run,
        on_host: convolve::on_host,
        checksum: 2_697_177_558,
    },
];

/// A parameter that is as wide as an index.
pub(crate) fn index_type(arch: ArchId) -> ParamType {
    match arch.word() {
        WordSize::Four => ParamType::I32,
        WordSize::Eight => ParamType::I64,
    }
}
