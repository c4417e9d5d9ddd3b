//! Counts of what a run cost.

use std::fmt;

/// What a run cost. The counts of a race-free program depend only on the program, the machine and
/// (for [`CoreStats::steps`]) the schedule. But after a trap the cores above the one that trapped are
/// stopped wherever they are, so their counts depend on the host too.
///
/// Its text form is that of the original emulator's statistics: totals, then a section per warp. With
/// more than one core the sections name the core too.
///
/// In JSON it is an object with the totals `steps issued insts loads stores divergence_high_water`,
/// named like the methods here, and a list `cores`. A core's object has the same fields and a list
/// `warps`. A warp's object has the same fields except `issued`, which would equal its `steps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// One entry per core.
    pub cores: Vec<CoreStats>,
}

/// What a run cost one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreStats {
    /// Machine steps under [`Schedule::Step`](crate::Schedule::Step): rounds in which every
    /// runnable warp issued an instruction, the one that a trap ends included. Under the other schedules,
    /// which have no such rounds, the instructions issued.
    pub steps: u64,
    /// One entry per hardware warp, those that never ran included.
    pub warps: Vec<WarpStats>,
}

/// What a run cost one warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct WarpStats {
    /// Instructions issued, those that no lane executed included.
    pub steps: u64,
    /// Instructions executed, one for each lane that executes. `split` and `join` count one for each lane
    /// that the last `jalis`, `jalrs` or `jmprt` activated, `halt` counts one.
    pub insts: u64,
    /// Loads, one for each lane that executes; atomic operations count as load and store.
    pub loads: u64,
    /// Stores, one for each lane that executes.
    pub stores: u64,
    /// The most entries that the divergence stack held.
    pub divergence_high_water: usize,
}

impl CoreStats {
    /// Instructions issued by all warps.
    pub fn issued(&self) -> u64 {
        self.warps.iter().map(|warp| warp.steps).sum()
    }

    /// Instructions executed by all lanes of all warps.
    pub fn insts(&self) -> u64 {
        self.warps.iter().map(|warp| warp.insts).sum()
    }

    /// Loads of all lanes.
    pub fn loads(&self) -> u64 {
        self.warps.iter().map(|warp| warp.loads).sum()
    }

    /// Stores of all lanes.
    pub fn stores(&self) -> u64 {
        self.warps.iter().map(|warp| warp.stores).sum()
    }

    /// The most entries that any divergence stack held.
    pub fn divergence_high_water(&self) -> usize {
        self.warps.iter().map(|warp| warp.divergence_high_water).max().unwrap_or(0)
    }
}

impl Stats {
    /// Instructions issued by all warps of all cores.
    pub fn issued(&self) -> u64 {
        self.cores.iter().map(CoreStats::issued).sum()
    }

    /// Instructions executed by all lanes of all warps of all cores.
    pub fn insts(&self) -> u64 {
        self.cores.iter().map(CoreStats::insts).sum()
    }

    /// Loads of all lanes.
    pub fn loads(&self) -> u64 {
        self.cores.iter().map(CoreStats::loads).sum()
    }

    /// Stores of all lanes.
    pub fn stores(&self) -> u64 {
        self.cores.iter().map(CoreStats::stores).sum()
    }

    /// The steps of the core that took the most.
    pub fn steps(&self) -> u64 {
        self.cores.iter().map(|core| core.steps).max().unwrap_or(0)
    }

    /// The most entries that any divergence stack held.
    pub fn divergence_high_water(&self) -> usize {
        self.cores.iter().map(CoreStats::divergence_high_water).max().unwrap_or(0)
    }

    /// Every warp with the numbers of its core and its own.
    pub fn warps(&self) -> impl Iterator<Item = (usize, usize, &WarpStats)> {
        let cores = self.cores.iter().enumerate();
        cores.flat_map(|(c, core)| core.warps.iter().enumerate().map(move |(w, s)| (c, w, s)))
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Total steps: {}", self.steps())?;
        writeln!(f, "Total insts: {}", self.insts())?;
        for (core, warp, stats) in self.warps() {
            match self.cores.len() {
                1 => writeln!(f, "=== Warp {warp} ===")?,
                _ => writeln!(f, "=== Core {core} Warp {warp} ===")?,
            }
            let WarpStats { steps, insts, loads, stores, .. } = stats;
            writeln!(f, "Steps: {steps}\nInsts: {insts}\nLoads: {loads}\nStores: {stores}")?;
        }
        Ok(())
    }
}
