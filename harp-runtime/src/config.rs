//! The parameters of devices and launches.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use harp_isa::ArchId;
use harp_monitor::Checks;
use serde::{Deserialize, Serialize};

use crate::tier::Tier;

/// The parameters of a [`Device`](crate::Device).
///
/// ```
/// use harp_runtime::{Device, DeviceConfig};
///
/// let config = DeviceConfig { cores: 4, ..DeviceConfig::new("harp64".parse()?) };
/// let device = Device::new(config)?;
/// assert_eq!(device.read(&device.buffer_from_slice(&[1.5_f64])?)?, [1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConfig {
    /// The machine of each core.
    pub arch: ArchId,
    /// Cores, at least 1. They share the memory.
    pub cores: u16,
    /// Bytes of guest memory, a multiple of the word. The host allocates its pages when they are
    /// first touched.
    pub memory_bytes: u64,
    /// The most host threads that run cores; `None`: as many as the host offers.
    pub host_threads: Option<NonZeroUsize>,
    /// The most instructions that each core may issue in a launch; `None`: no limit. Without any limit a kernel that
    /// never ends blocks its caller until it is [cancelled](crate::Device::cancel_token).
    pub fuel: Option<u64>,
    /// The longest that a kernel may run in a launch; `None`: no limit.
    pub time_limit: Option<Duration>,
    /// The most entries of a warp's divergence stack. The runtime library uses two of them where a
    /// warp has surplus lanes, and one in other warps of work-groups.
    pub divergence_depth: usize,
    /// How kernels run. A [replay](crate::Replay) does not keep it.
    #[serde(skip)]
    pub tier: Tier,
    /// What launches check, unless they say it [themselves](crate::LaunchConfig::checks).
    pub checks: Option<Checks>,
    /// The folder to which launches that trap, or in which checks find something, are written as
    /// [replays](crate::Replay); `None`: they are not. Each launch then copies all memory that was ever used.
    #[serde(skip)]
    pub replays: Option<PathBuf>,
}

impl DeviceConfig {
    /// One core, 256 MiB of memory (far below the 2 GiB that machines with 4-byte words can have), all
    /// host threads, [`DEFAULT_FUEL`], no limit of time, 4096 divergence stack entries, [`Tier::Tiered`].
    pub fn new(arch: ArchId) -> DeviceConfig {
        DeviceConfig {
            arch,
            cores: 1,
            memory_bytes: 256 << 20,
            host_threads: None,
            fuel: Some(DEFAULT_FUEL),
            time_limit: None,
            divergence_depth: 4096,
            tier: Tier::default(),
            checks: None,
            replays: None,
        }
    }
}

/// The instructions that each core may issue in a launch unless another limit is given: enough for minutes of work, so
/// that a kernel that never ends is stopped. One that really works for longer needs more.
pub const DEFAULT_FUEL: u64 = 1 << 36;

/// The grid of a launch and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// Work-items in each dimension. If one of them is 0 nothing runs, which is not an error.
    pub grid: [u64; 3],
    /// The number of dimensions, 1 to 3, that kernels are told who ask for it. They are told of more where an extent is not 1.
    pub dimensions: u8,
    /// What kernels that ask for it add to the positions of work-items in each dimension:
    /// [`KernelBuilder::global_offset`](harp_jit::KernelBuilder::global_offset). It is an error if it is not 0 and the kernel
    /// does not. Reports and findings give positions without it.
    pub offset: [u64; 3],
    /// Work-items of a work-group in each dimension. The work-items of a group run at the same time on
    /// the same core, can wait for each other and share memory. If the grid is not a multiple of the
    /// groups, those at its end are smaller. `None`: there are no groups.
    pub group: Option<[u64; 3]>,
    /// The most instructions that each core may issue; `None`: the device's limit.
    pub fuel: Option<u64>,
    /// The longest that the kernel may run; `None`: the device's limit. Where a kernel is stopped that takes longer
    /// depends on the host.
    pub time_limit: Option<Duration>,
    /// Whether the emulator counts what the kernel's branches do, for [`Report::branches`](crate::Report::branches). Such a launch
    /// uses one host thread, and takes longer.
    ///
    /// Branches that were predicated or linearized are not in the code and cannot be counted. A kernel that
    /// [counts its branches itself](harp_jit::CompileOptions::count_branches) does so in every launch.
    pub branch_profile: bool,
    /// What is checked; `None`: what the device says. The kernel must be compiled to
    /// [report its accesses](harp_jit::CompileOptions::report_accesses). Such a launch uses one host thread.
    pub checks: Option<Checks>,
    /// Whether a lane that reads from a shared register what it has not written itself ends the launch, as
    /// [`TrapKind::SharedMismatch`](crate::TrapKind::SharedMismatch). Such a launch takes longer. Without effect on machines
    /// whose lanes share nothing.
    pub audit_shared: bool,
    /// Bytes of memory for what each lane [prints](harp_jit::KernelBuilder::print), if the kernel does: 4 KiB
    /// unless another size is given. A line takes two words, and one or two for each value. All lanes that run
    /// get as much; one lane runs many work-items if the grid is larger than the machine. What does not fit is
    /// [counted](crate::Printed::dropped).
    pub print_bytes: u32,
}

/// Bytes for what a lane prints, unless another size is given.
const PRINT_BYTES: u32 = 4 << 10;

impl LaunchConfig {
    /// A line of `x` work-items.
    pub fn grid_1d(x: usize) -> LaunchConfig {
        LaunchConfig { dimensions: 1, ..LaunchConfig::grid_3d(x, 1, 1) }
    }

    /// `x` times `y` work-items.
    pub fn grid_2d(x: usize, y: usize) -> LaunchConfig {
        LaunchConfig { dimensions: 2, ..LaunchConfig::grid_3d(x, y, 1) }
    }

    /// `x` times `y` times `z` work-items.
    pub fn grid_3d(x: usize, y: usize, z: usize) -> LaunchConfig {
        let grid = [x, y, z].map(|extent| extent as u64);
        LaunchConfig {
            grid,
            dimensions: 3,
            offset: [0; 3],
            group: None,
            fuel: None,
            time_limit: None,
            branch_profile: false,
            checks: None,
            audit_shared: false,
            print_bytes: PRINT_BYTES,
        }
    }

    /// What kernels are told when they ask for the number of dimensions: 1 to 3, and enough for the extents.
    pub(crate) fn told_dimensions(&self) -> u64 {
        u64::from(self.dimensions.min(3)).max(self.needed_dimensions() as u64)
    }

    /// The number of dimensions without those at the end in which the extent is 1.
    pub(crate) fn needed_dimensions(&self) -> usize {
        self.grid.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1)
    }

    /// The same grid with an offset.
    pub fn with_offset(self, offset: [usize; 3]) -> LaunchConfig {
        LaunchConfig { offset: offset.map(|offset| offset as u64), ..self }
    }

    /// The same grid in work-groups of `x` work-items in the first dimension.
    pub fn with_groups_1d(self, x: usize) -> LaunchConfig {
        self.with_groups([x, 1, 1])
    }

    /// The same grid in work-groups of `extents` work-items: at least one in each dimension, and altogether
    /// at most as many as all warps of a core have lanes.
    pub fn with_groups(self, extents: [usize; 3]) -> LaunchConfig {
        LaunchConfig { group: Some(extents.map(|extent| extent as u64)), ..self }
    }

    /// Whether the rows of the grid fill the warps of `arch`, so that it pays to
    /// [walk by rows](harp_jit::CompileOptions::by_rows): at most one lane in 32 is left over.
    pub fn fills_rows(&self, arch: ArchId) -> bool {
        let [row, others @ ..] = self.grid;
        let filled = u128::from(row).next_multiple_of(arch.lanes().into());
        others == [1, 1] || (filled - u128::from(row)) * 32 <= filled
    }

    /// The same grid with the kernel's branches counted.
    pub fn with_branch_profile(self) -> LaunchConfig {
        LaunchConfig { branch_profile: true, ..self }
    }

    /// The same grid with `bytes` of memory for what each lane prints.
    pub fn with_print_bytes(self, bytes: u32) -> LaunchConfig {
        LaunchConfig { print_bytes: bytes, ..self }
    }

    /// The same grid with these checks. What they find is [`LaunchError::Findings`](crate::LaunchError::Findings).
    ///
    /// ```
    /// use harp_runtime::prelude::*;
    /// use harp_runtime::Checks;
    ///
    /// let arch: ArchId = "harp32".parse()?;
    /// let mut source = KernelSource::new("shift", arch);
    /// let mut b = KernelBuilder::new(&mut source);
    /// let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// let next = b.ins().iadd_imm_s(i, 1);
    /// let value = b.load(data, next);
    /// b.store(data, i, value);
    /// b.return_();
    /// b.finalize()?;
    /// let options = CompileOptions { report_accesses: true, ..CompileOptions::default() };
    /// let kernel = source.compile(&options)?;
    ///
    /// let device = Device::new(DeviceConfig::new(arch))?;
    /// let data = device.buffer_zeroed::<i32>(100)?.named("numbers");
    /// let config = LaunchConfig::grid_1d(100).with_checks(Checks::all());
    /// let error = device.launch(&kernel, config, &[Arg::from(&data)]).unwrap_err();
    /// let LaunchError::Findings(findings) = error else { panic!("it reads behind the end, and others write") };
    /// assert_eq!(findings.list.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_checks(self, checks: Checks) -> LaunchConfig {
        LaunchConfig { checks: Some(checks), ..self }
    }

    /// The same grid with an audit of shared registers.
    pub fn with_audit(self) -> LaunchConfig {
        LaunchConfig { audit_shared: true, ..self }
    }

    /// The same grid with at most `fuel` instructions a core.
    pub fn with_fuel(self, fuel: u64) -> LaunchConfig {
        LaunchConfig { fuel: Some(fuel), ..self }
    }

    /// The same grid with at most `limit` for the kernel to run.
    pub fn with_time_limit(self, limit: Duration) -> LaunchConfig {
        LaunchConfig { time_limit: Some(limit), ..self }
    }
}
