//! Benchmark kernels, with the inputs and checksums that make them comparable with other
//! implementations of the same work.

use std::error::Error;

use harp_isa::ArchId;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource};
use harp_runtime::Device;

mod opencl;
pub mod saxpy;

pub use harp_bench::array;
pub use harp_bench::{Generator, index_type};

/// FNV-1a over 32-bit words, the checksum of a workload's output.
pub fn checksum(words: impl IntoIterator<Item = u32>) -> u32 {
    words.into_iter().fold(2_166_136_261, |sum, word| (sum ^ word).wrapping_mul(16_777_619))
}

/// What launches come to: 32 bits of each element, or whatever the device reports.
pub type Output = Result<Vec<u32>, Box<dyn Error>>;

/// The kernel that `make` builds, and which returns behind that.
fn built(
    name: &str,
    arch: ArchId,
    make: impl FnOnce(&mut KernelBuilder<'_>),
) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new(name, arch);
    let mut b = KernelBuilder::new(&mut source);
    make(&mut b);
    b.return_();
    b.finalize()?;
    Ok(source)
}

/// A kernel with its data at several scales. At scale 1 and on 4-byte words it is the work of the
/// OpenCL program of the same name; each step of the scale halves the work in each dimension. On 8-byte words
/// an element of an array takes a word.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The kernel's name.
    pub name: &'static str,
    /// Builds the kernel for a machine.
    pub source: fn(ArchId) -> Result<KernelSource, BuildError>,
    /// Runs it at a scale; the output's elements.
    pub run: fn(&Device, &Kernel, u32) -> Output,
    /// What comes out, computed on the host.
    pub on_host: fn(u32) -> Vec<u32>,
    /// The [`checksum`] that an OpenCL implementation prints at scale 1.
    pub checksum: u32,
}

/// All workloads but saxpy, which has more to it.
pub const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "matmul",
        source: opencl::matmul,
        run: opencl::run_matmul,
        on_host: opencl::host_matmul,
        checksum: 561_552_837,
    },
    Workload {
        name: "bitonic",
        source: opencl::bitonic,
        run: opencl::run_bitonic,
        on_host: opencl::host_bitonic,
        checksum: 1_490_584_741,
    },
    Workload {
        name: "convolve",
        source: opencl::convolve,
        run: opencl::run_convolve,
        on_host: opencl::host_convolve,
        checksum: 2_697_177_558,
    },
];
