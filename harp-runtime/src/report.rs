//! What a launch did and cost.

use std::fmt;
use std::time::Duration;

use harp_emu::Stats;
use harp_isa::ArchId;
use harp_jit::BranchProfile;

mod printed;

pub use printed::{Printed, PrintedLine};

/// What a launch did and cost: plain data, with a table as its text form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// The machine of each core.
    pub arch: ArchId,
    /// Cores.
    pub cores: u16,
    /// Work-items in each dimension.
    pub grid: [u64; 3],
    /// Work-items of a work-group in each dimension, if there were groups.
    pub group: Option<[u64; 3]>,
    /// Counts of instructions, loads and stores by core and warp, the runtime library's included.
    /// No cores if the grid was empty.
    pub stats: Stats,
    /// Wall time until the machine started: arguments checked, image linked if it was not yet,
    /// image and arguments written to guest memory.
    pub image_time: Duration,
    /// Wall time of the run.
    pub run_time: Duration,
    /// What the kernel's branches did, if the launch [asked for it](crate::LaunchConfig::branch_profile) or the
    /// kernel [counts them itself](harp_jit::CompileOptions::count_branches).
    pub branches: Option<BranchProfile>,
    /// What the kernel has [printed](harp_jit::KernelBuilder::print).
    pub printed: Printed,
}

impl Report {
    /// Instructions that the warps of all cores issued.
    pub fn warp_instructions(&self) -> u64 {
        self.stats.issued()
    }

    /// Instructions that lanes executed.
    pub fn lane_instructions(&self) -> u64 {
        self.stats.insts()
    }

    /// Work-items of the grid.
    pub fn work_items(&self) -> u64 {
        // An empty grid may have two extents whose product overflows.
        if self.grid.contains(&0) {
            return 0;
        }
        self.grid.iter().fold(1, |items, &extent| items.saturating_mul(extent))
    }

    /// Warp instructions per second of the run; 0 if none ran.
    pub fn warp_instructions_per_second(&self) -> f64 {
        match self.warp_instructions() {
            0 => 0.0,
            issued => issued as f64 / self.run_time.as_secs_f64(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { kernel, arch, cores, grid: [x, y, z], .. } = self;
        write!(f, "kernel `{kernel}`, grid {x} x {y} x {z}, ")?;
        if let Some([x, y, z]) = self.group {
            write!(f, "groups of {x} x {y} x {z}, ")?;
        }
        writeln!(f, "{arch}, cores: {cores}")?;
        let row = |f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, counts: [u64; 4]| {
            let [issued, executed, loads, stores] = counts;
            writeln!(f, "{name:>5}  {issued:>17}  {executed:>17}  {loads:>13}  {stores:>13}")
        };
        let head = ["core", "warp instructions", "lane instructions", "loads", "stores"];
        writeln!(
            f,
            "{:>5}  {:>17}  {:>17}  {:>13}  {:>13}",
            head[0], head[1], head[2], head[3], head[4]
        )?;
        if self.stats.cores.len() > 1 {
            for (number, core) in self.stats.cores.iter().enumerate() {
                let sum =
                    |count: fn(&harp_emu::WarpStats) -> u64| core.warps.iter().map(count).sum();
                row(
                    f,
                    &number,
                    [sum(|w| w.steps), sum(|w| w.insts), sum(|w| w.loads), sum(|w| w.stores)],
                )?;
            }
        }
        let stats = &self.stats;
        row(f, &"all", [stats.issued(), stats.insts(), stats.loads(), stats.stores()])?;
        let rate = self.warp_instructions_per_second() / 1e6;
        write!(
            f,
            "image {:.1?}, run {:.1?}: {rate:.1} M warp instructions/s",
            self.image_time, self.run_time
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_of_any_grid_are_a_number() {
        let work_items = |grid| {
            let (stats, time) = (Stats::default(), Duration::ZERO);
            let (kernel, arch) = (String::new(), ArchId::HARP32);
            Report {
                kernel,
                arch,
                cores: 1,
                grid,
                group: None,
                branches: None,
                printed: Printed::default(),
                stats,
                image_time: time,
                run_time: time,
            }
            .work_items()
        };
        assert_eq!(work_items([2, 3, 5]), 30);
        assert_eq!(work_items([u64::MAX, u64::MAX, 0]), 0);
        assert_eq!(work_items([u64::MAX, u64::MAX, 2]), u64::MAX);
    }
}
