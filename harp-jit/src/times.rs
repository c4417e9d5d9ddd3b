//! Times of the pipeline's stages.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// Cranelift's verifier and mid-end, and fitting values to words.
    MidEnd,
    /// Replacement of operations that the machine lacks.
    Legalization,
    /// Uniformity, post-dominators, levels of loops, regions.
    Analysis,
    /// Rewriting of control flow for divergent lanes; decisions about branches.
    Divergence,
    /// Selection of instructions, and if-conversion.
    Selection,
    /// Shared registers, on machines that have any.
    Sharing,
    /// Register allocation.
    Allocation,
    /// Machine code, and the records about it.
    Emission,
}

impl Stage {
    /// Every stage, in the order of the pipeline.
    pub const ALL: [Stage; 8] = [
        Stage::MidEnd,
        Stage::Legalization,
        Stage::Analysis,
        Stage::Divergence,
        Stage::Selection,
        Stage::Sharing,
        Stage::Allocation,
        Stage::Emission,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stage::MidEnd => "mid-end",
            Stage::Legalization => "legalization",
            Stage::Analysis => "analysis",
            Stage::Divergence => "divergence",
            Stage::Selection => "selection",
            Stage::Sharing => "sharing",
            Stage::Allocation => "allocation",
            Stage::Emission => "emission",
        })
    }
}

/// Wall time of each stage, checks included where they are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    times: [Duration; Stage::ALL.len()],
}

impl StageTimes {
    /// The time of one stage.
    pub fn of(&self, stage: Stage) -> Duration {
        self.times[stage as usize]
    }

    /// The total of all stages.
    pub fn total(&self) -> Duration {
        self.times.iter().sum()
    }
}

/// Measures stages; each lasts until the next one begins.
#[derive(Debug)]
pub(crate) struct Clock(RefCell<Running>);

#[derive(Debug)]
struct Running {
    times: StageTimes,
    stage: Stage,
    since: Instant,
}

impl Clock {
    /// Starts the clock at the pipeline's beginning.
    pub(crate) fn new() -> Clock {
        let (times, stage, since) = (StageTimes::default(), Stage::MidEnd, Instant::now());
        Clock(RefCell::new(Running { times, stage, since }))
    }

    /// Begins a stage, or continues it.
    pub(crate) fn begin(&self, stage: Stage) {
        let mut running = self.0.borrow_mut();
        let now = Instant::now();
        let (last, passed) = (running.stage as usize, now - running.since);
        running.times.times[last] += passed;
        (running.stage, running.since) = (stage, now);
    }

    /// The times of the stages so far.
    pub(crate) fn times(self) -> StageTimes {
        let Running { mut times, stage, since } = self.0.into_inner();
        times.times[stage as usize] += since.elapsed();
        times
    }
}
