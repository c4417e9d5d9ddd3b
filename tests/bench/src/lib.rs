//! The seven data-parallel programs of harpbench (Gupta 2016, section 5.1), on which strategies of divergence
//! management are compared: vector sum, prefix sum, scan, scan-par, binary search, hashtable, bfs.
//!
//! Gupta names the programs and says what their branches depend on (section 5.2), but does not give their code:
//! the branches of vector sum and prefix sum depend on the numbers of lanes and warps, those of the two scans,
//! binary search and hashtable on data that lanes index, those of bfs on both. The programs use no instruction
//! of extension X and run on any machine; groups have as many work-items as a core has lanes, up to 256. Gupta's
//! machine is [`GUPTA`].
//!
//! Each program has four [inputs](Input), at two [scales](Scale). Inputs, sizes and results on the host
//! are fixed, so that numbers of different versions can be compared.
//!
//! [`peers`] has the kernels on which OpenCL implementations are compared.
#![forbid(unsafe_code)]

use harp_isa::ArchId;
use harp_jit::{BuildError, CompileError, Kernel, KernelSource, ProfileError};
use thiserror::Error;

use array::{Array, int};
pub use best::{Best, BestError, Chosen, Found};
pub use convergence::{Convergence, convergence_figure};
pub use data::{Generator, index_type};
pub use figures::{Figure, FigureKind, branch_figure, run_figures, structure_figure};
use harp_runtime::{Arg, BufferError, Device, DeviceError, LaunchConfig, LaunchError, Report};
pub use measure::{Bench, Row, Run, Strategy};
pub use summary::{Ratio, Summary};

pub mod array;
mod best;
mod bfs;
mod binary_search;
mod convergence;
mod data;
mod figures;
mod hashtable;
mod measure;
mod oracle;
mod parts;
pub mod peers;
mod prefix_sum;
pub mod scalar;
mod scan;
mod scan_par;
mod summary;
mod vector_sum;

/// The machine of Gupta's evaluation: `harp32`, 16 warps of 16 lanes.
pub const GUPTA: ArchId = ArchId::HARP32;

/// The most work-items of a group.
const MAX_GROUP: usize = 256;

/// The kind of data that a program works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Random data, on which lanes disagree now and then.
    Random,
    /// Most lanes do the same, a few something else.
    Skewed,
    /// All lanes of a warp do the same, as far as the program allows it.
    Unanimous,
    /// Lanes disagree as often, or wait for each other as long, as possible.
    Worst,
}

impl Input {
    /// Every input.
    pub const ALL: [Input; 4] = [Input::Random, Input::Skewed, Input::Unanimous, Input::Worst];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Input::Random => "random",
            Input::Skewed => "skewed",
            Input::Unanimous => "unanimous",
            Input::Worst => "worst",
        }
    }
}

/// The size of a program's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// For comparisons: about 10^5 warp instructions on [`GUPTA`].
    Full,
    /// For tests: an eighth of the full scale.
    Small,
}

impl Scale {
    /// The number at this scale, if it is `full` at the full scale.
    const fn of(self, full: usize) -> usize {
        match self {
            Scale::Full => full,
            Scale::Small => full / 8,
        }
    }
}

/// The data of one run, and how it is launched.
#[derive(Clone, Debug)]
pub struct Work {
    /// The kernel's first arguments: arrays of words.
    pub arrays: Vec<Vec<i32>>,
    /// The index of the array that holds the results afterwards.
    pub result: usize,
    /// The arguments after the arrays: words.
    pub params: Vec<i32>,
    /// Grid and groups.
    pub config: LaunchConfig,
}

/// The results and costs of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The results.
    pub result: Vec<u32>,
    /// What each launch did and cost.
    pub reports: Vec<Report>,
}

impl Outcome {
    /// Instructions that warps issued in all launches, the runtime library's included.
    pub fn warp_instructions(&self) -> u64 {
        self.reports.iter().map(Report::warp_instructions).sum()
    }

    /// Instructions that lanes executed in all launches, the runtime library's included.
    pub fn lane_instructions(&self) -> u64 {
        self.reports.iter().map(Report::lane_instructions).sum()
    }
}

/// A function that launches a kernel.
pub type Launch<'a> =
    &'a mut dyn FnMut(&Device, &Kernel, LaunchConfig, &[Arg]) -> Result<Report, LaunchError>;

/// Why a program was not measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HarpbenchError {
    /// Its kernel cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Its kernel cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The device cannot be made.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Its data does not fit the machine.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// A launch failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Its profile does not fit the kernel.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// One of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name in tables and its kernel's.
    pub name: &'static str,
    /// Builds the kernel.
    pub source: fn(ArchId) -> Result<KernelSource, BuildError>,
    /// The data it works on; on a machine with fewer lanes than Gupta's groups have work-items, groups are smaller.
    pub work: fn(Input, Scale, ArchId) -> Work,
    /// Launches the kernel as often as the work needs, each time with the given function.
    pub run_by: fn(&Device, &Kernel, &Work, Launch<'_>) -> Result<Outcome, HarpbenchError>,
    /// The results, computed on the host.
    pub on_host: fn(&Work) -> Vec<u32>,
}

/// All of them, in Gupta's order.
pub const PROGRAMS: [Program; 7] = [
    Program {
        name: "vecsum",
        source: vector_sum::source,
        work: vector_sum::work,
        run_by: once,
        on_host: vector_sum::on_host,
    },
    Program {
        name: "psum",
        source: prefix_sum::source,
        work: prefix_sum::work,
        run_by: once,
        on_host: prefix_sum::on_host,
    },
    Program {
        name: "scan",
        source: scan::source,
        work: scan::work,
        run_by: once,
        on_host: scan::on_host,
    },
    Program {
        name: "scan-par",
        source: scan_par::source,
        work: scan_par::work,
        run_by: once,
        on_host: scan_par::on_host,
    },
    Program {
        name: "binsearch",
        source: binary_search::source,
        work: binary_search::work,
        run_by: once,
        on_host: binary_search::on_host,
    },
    Program {
        name: "hashtable",
        source: hashtable::source,
        work: hashtable::work,
        run_by: once,
        on_host: hashtable::on_host,
    },
    Program {
        name: "bfs",
        source: bfs::source,
        work: bfs::work,
        run_by: bfs::run,
        on_host: bfs::on_host,
    },
];

impl Program {
    /// The program with this name.
    pub fn by_name(name: &str) -> Option<&'static Program> {
        PROGRAMS.iter().find(|program| program.name == name)
    }

    /// Runs the kernel as often as the work needs.
    ///
    /// # Errors
    ///
    /// If the data does not fit the device, or a launch fails.
    pub fn run(
        &self,
        device: &Device,
        kernel: &Kernel,
        work: &Work,
    ) -> Result<Outcome, HarpbenchError> {
        (self.run_by)(device, kernel, work, &mut |device, kernel, config, args| {
            device.launch(kernel, config, args)
        })
    }
}

/// Runs a program that takes one launch.
fn once(
    device: &Device,
    kernel: &Kernel,
    work: &Work,
    launch: Launch<'_>,
) -> Result<Outcome, HarpbenchError> {
    let arrays = buffers(device, work)?;
    let mut args: Vec<_> = arrays.iter().map(Array::arg).collect();
    args.extend(work.params.iter().map(|&param| int(device, param)));
    let report = launch(device, kernel, work.config, &args)?;
    Ok(Outcome { result: arrays[work.result].words(device)?, reports: vec![report] })
}

fn buffers(device: &Device, work: &Work) -> Result<Vec<Array>, BufferError> {
    let buffer = |array: &Vec<i32>| Array::of_ints(device, array);
    work.arrays.iter().map(buffer).collect()
}

/// Work-items of a group: as many as a core has lanes, up to [`MAX_GROUP`].
fn group_size(arch: ArchId) -> usize {
    (usize::from(arch.lanes()) * usize::from(arch.warps())).min(MAX_GROUP)
}

/// The word as a machine returns it.
fn word(value: i32) -> u32 {
    value.cast_unsigned()
}
