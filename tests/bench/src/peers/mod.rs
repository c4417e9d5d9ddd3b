//! The eight kernels on which OpenCL implementations are compared, with their inputs and checksums, and the same on the
//! host.

use std::error::Error;

use harp_isa::{ArchId, WordSize};
use harp_jit::{BranchProfile, BuildError, Kernel, KernelSource};
use harp_runtime::{Arg, Device, LaunchConfig, LaunchError, Report};

mod arrays;
mod graph;
mod int;
mod matrices;
mod pictures;

/// FNV-1a over 32-bit words, the checksum of a workload's output.
pub fn checksum(words: impl IntoIterator<Item = u32>) -> u32 {
    words.into_iter().fold(2_166_136_261, |sum, word| (sum ^ word).wrapping_mul(16_777_619))
}

/// The SPIR-V module of the OpenCL program's kernels for addresses of a machine's words, as clang makes it with or without
/// optimizations: one kernel for each of the [`WORKLOADS`], of the same name.
pub fn module(word: WordSize, is_optimized: bool) -> &'static [u8] {
    match (word, is_optimized) {
        (WordSize::Four, false) => include_bytes!("../../peers/kernels.32.O0.spv"),
        (WordSize::Four, true) => include_bytes!("../../peers/kernels.32.O2.spv"),
        (WordSize::Eight, false) => include_bytes!("../../peers/kernels.64.O0.spv"),
        (WordSize::Eight, true) => include_bytes!("../../peers/kernels.64.O2.spv"),
    }
}

/// Does a launch.
pub type Launch<'a> = dyn FnMut(LaunchConfig, &[Arg]) -> Result<Report, LaunchError> + 'a;

/// What launches come to: 32 bits of each element, or whatever the device reports.
pub type Output = Result<Vec<u32>, Box<dyn Error>>;

/// A kernel with its data at several scales: the work of the OpenCL program of the same name. Each step of the scale
/// halves the work in each dimension.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The kernel's name.
    pub name: &'static str,
    /// Builds the kernel for a machine.
    pub source: fn(ArchId) -> Result<KernelSource, BuildError>,
    /// Does all launches of it at a scale; the output's elements.
    pub launches: fn(&Device, &mut Launch<'_>, u32) -> Output,
    /// What comes out, computed on the host.
    pub on_host: fn(u32) -> Vec<u32>,
    /// What may come out instead, where `a * b + c` is rounded once, as OpenCL C allows.
    contracted: &'static [fn(u32) -> Vec<u32>],
    /// The [`checksum`]s that the OpenCL program gives at the [`SCALES`].
    pub checksums: [u32; SCALES.len()],
}

impl Workload {
    /// Whether this may come out at a scale.
    pub fn is_right(&self, output: &[u32], scale: u32) -> bool {
        let mut right = std::iter::once(&self.on_host).chain(self.contracted);
        right.any(|host| output == host(scale))
    }

    /// Runs it at a scale; the output's elements.
    pub fn run(&self, device: &Device, kernel: &Kernel, scale: u32) -> Output {
        (self.launches)(device, &mut |config, args| device.launch(kernel, config, args), scale)
    }

    /// Runs it at a scale, and counts what branches do.
    pub fn profile(
        &self,
        device: &Device,
        kernel: &Kernel,
        scale: u32,
    ) -> Result<BranchProfile, Box<dyn Error>> {
        let mut profile: Option<BranchProfile> = None;
        let mut launch = |config: LaunchConfig, args: &[Arg]| {
            let report = device.launch(kernel, config.with_branch_profile(), args)?;
            if let (None, Some(branches)) = (&profile, &report.branches) {
                profile = Some(branches.clone());
            }
            Ok(report)
        };
        (self.launches)(device, &mut launch, scale)?;
        Ok(profile.expect("a launch that counts has a profile"))
    }
}

/// The scales of which checksums are known.
pub const SCALES: [u32; 3] = [1, 3, 4];

macro_rules! workloads {
    ($($name:ident of $module:ident, run by $run:ident, as $on_host:ident $(or $contracted:ident)?: $checksums:expr;)*) => {
        /// All workloads.
        pub const WORKLOADS: [Workload; [$(stringify!($name)),*].len()] = [$(
            Workload {
                name: stringify!($name),
                source: $module::$name,
                launches: $module::$run,
                on_host: $module::$on_host,
                contracted: &[$($module::$contracted)?],
                checksums: $checksums,
            },
        )*];
    };
}

workloads! {
    saxpy of matrices, run by run_saxpy, as host_saxpy: [113_679_813, 1_159_404_997, 1_865_643_461];
    matmul of matrices, run by run_matmul, as host_matmul: [561_552_837, 4_024_147_397, 418_360_773];
    mandelbrot of pictures, run by run_mandelbrot, as host_mandelbrot or contracted_mandelbrot:
        [3_396_655_898, 3_104_514_068, 1_998_972_497];
    bitonic of arrays, run by run_bitonic, as host_bitonic: [1_490_584_741, 595_718_623, 2_846_790_909];
    reduce of arrays, run by run_reduce, as host_reduce: [2_973_482_437, 3_355_198_917, 3_869_856_197];
    binsearch of arrays, run by run_binsearch, as host_binsearch:
        [2_412_932_922, 780_598_525, 2_720_043_205];
    convolve of pictures, run by run_convolve, as host_convolve:
        [2_697_177_558, 1_876_245_666, 3_831_110_792];
    bfs of graph, run by run_bfs, as host_bfs: [1_693_004_737, 3_121_161_338, 1_046_814_064];
}
