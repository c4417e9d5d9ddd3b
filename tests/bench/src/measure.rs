//! Runs a program under one strategy of divergence management and counts what it costs.

use std::collections::HashSet;
use std::sync::Arc;

use harp_emu::Issue;
use harp_isa::{ArchId, Opcode};
use harp_jit::{
    Assignment, BranchProfile, CompileOptions, DivergenceReport, DivergenceStrategy, Kernel,
    KernelSource, ProfileError, ProfileParams,
};
use serde::Serialize;

use super::{Best, Found, HarpbenchError, Input, Launch, Outcome, Program, Scale, Work};
use harp_runtime::LaunchObserver;
use harp_runtime::{Device, DeviceConfig};

/// The most instructions that a launch may issue: many times what any program needs.
const FUEL: u64 = 1 << 32;

/// A strategy of divergence management, as tables name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// [`DivergenceStrategy::SplitJoin`].
    SplitJoin,
    /// [`DivergenceStrategy::Predicate`].
    Predicate,
    /// [`DivergenceStrategy::Static`].
    Static,
    /// [`DivergenceStrategy::Profile`], with a profile of the same input.
    Profile,
    /// [`DivergenceStrategy::Adaptive`] without a profile.
    Adaptive,
    /// [`DivergenceStrategy::Adaptive`] with a profile, of the same input unless stated otherwise.
    AdaptiveProfile,
    /// The cheapest [`Assignment`] that a search found.
    Best,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 7] = [
        Strategy::SplitJoin,
        Strategy::Predicate,
        Strategy::Static,
        Strategy::Profile,
        Strategy::Adaptive,
        Strategy::AdaptiveProfile,
        Strategy::Best,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::SplitJoin => "split-join",
            Strategy::Predicate => "predicate",
            Strategy::Static => "static",
            Strategy::Profile => "profile",
            Strategy::Adaptive => "adaptive",
            Strategy::AdaptiveProfile => "adaptive-profile",
            Strategy::Best => "best",
        }
    }

    /// The options with which kernels are compiled for it. `profile` is called if the strategy needs a profile,
    /// `assignment` is for [`Strategy::Best`].
    ///
    /// # Errors
    ///
    /// Those of `profile`.
    pub fn options<E>(
        self,
        profile: impl FnOnce() -> Result<Arc<BranchProfile>, E>,
        assignment: impl FnOnce() -> Result<Arc<Assignment>, E>,
    ) -> Result<CompileOptions, E> {
        let mut options = options(match self {
            Strategy::SplitJoin | Strategy::Best => DivergenceStrategy::SplitJoin,
            Strategy::Predicate => DivergenceStrategy::Predicate,
            Strategy::Static => DivergenceStrategy::Static,
            Strategy::Profile => DivergenceStrategy::Profile(ProfileParams::default()),
            Strategy::Adaptive | Strategy::AdaptiveProfile => DivergenceStrategy::Adaptive,
        });
        match self {
            Strategy::Profile | Strategy::AdaptiveProfile => options.profile = Some(profile()?),
            Strategy::Best => options.assignment = Some(assignment()?),
            _ => {}
        }
        Ok(options)
    }
}

/// Options for measurements. The kernels are not proved here, because the tests prove the same kernels.
pub(super) fn options(divergence: DivergenceStrategy) -> CompileOptions {
    CompileOptions { divergence, verify: false, ..CompileOptions::default() }
}

/// Options for [`DivergenceStrategy::Adaptive`] with this profile.
fn adaptive(profile: Arc<BranchProfile>) -> CompileOptions {
    CompileOptions { profile: Some(profile), ..options(DivergenceStrategy::Adaptive) }
}

/// A program with an input, for one machine.
#[derive(Debug)]
pub struct Bench {
    /// The program.
    pub program: &'static Program,
    /// The input.
    pub input: Input,
    /// Its scale.
    pub scale: Scale,
    source: KernelSource,
    work: Work,
    expected: Vec<u32>,
}

/// The results and counts of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results and what they cost.
    pub outcome: Outcome,
    /// How often warps executed the conditional branches that are left in the kernel.
    pub branches: u64,
    /// How often active lanes disagreed at these.
    pub divergent_executions: u64,
    /// `split`s and `join`s that warps issued, the runtime library's included.
    pub splits_and_joins: u64,
    /// Whether the host computes the same.
    pub correct: bool,
}

/// One line of the table of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The program's name.
    pub program: &'static str,
    /// The input's name.
    pub input: &'static str,
    /// The machine.
    pub arch: String,
    /// The strategy of divergence management.
    pub strategy: Strategy,
    /// The input that the profile is of, where the strategy has one.
    pub trained_on: Option<&'static str>,
    /// Instructions that warps issued in all launches, the runtime library's included.
    pub warp_instructions: u64,
    /// Instructions that lanes executed.
    pub lane_instructions: u64,
    /// How often warps executed the kernel's conditional branches.
    pub branches: u64,
    /// How often active lanes disagreed at these.
    pub divergent_executions: u64,
    /// Whether the host computes the same.
    pub correct: bool,
}

impl Bench {
    /// Makes the kernel and the input.
    ///
    /// # Errors
    ///
    /// If the machine cannot run the program.
    pub fn new(
        program: &'static Program,
        input: Input,
        scale: Scale,
        arch: ArchId,
    ) -> Result<Bench, HarpbenchError> {
        let source = (program.source)(arch)?;
        let work = (program.work)(input, scale, arch);
        let expected = (program.on_host)(&work);
        Ok(Bench { program, input, scale, source, work, expected })
    }

    /// The machine.
    pub fn arch(&self) -> ArchId {
        self.source.arch()
    }

    /// The kernel with these options.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled.
    pub fn compile(&self, options: &CompileOptions) -> Result<Kernel, HarpbenchError> {
        Ok(self.source.compile(options)?)
    }

    /// The decisions about the kernel's branches with these options.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled.
    pub fn explain(&self, options: &CompileOptions) -> Result<DivergenceReport, HarpbenchError> {
        Ok(self.source.explain(options)?)
    }

    /// Runs a kernel of the program. Returns the results, and whether the host computes the same.
    ///
    /// # Errors
    ///
    /// If a launch fails.
    pub fn outcome(&self, kernel: &Kernel) -> Result<(Outcome, bool), HarpbenchError> {
        let outcome = self.program.run(&self.device()?, kernel, &self.work)?;
        let correct = outcome.result == self.expected;
        Ok((outcome, correct))
    }

    /// Compiles and runs the program, and counts what it does.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled, or a launch fails.
    pub fn run(&self, options: &CompileOptions) -> Result<Run, HarpbenchError> {
        let kernel = self.compile(options)?;
        let mut counter = Counter::new(&kernel);
        let outcome = self.launches(&kernel, &mut |device, kernel, config, args| {
            device.launch_observed(kernel, config, args, &mut counter)
        })?;
        let Counter { branches, divergent_executions, splits_and_joins, .. } = counter;
        let correct = outcome.result == self.expected;
        Ok(Run { outcome, branches, divergent_executions, splits_and_joins, correct })
    }

    /// The branch profile with this input, counted by the kernel itself.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn profile(&self) -> Result<Arc<BranchProfile>, HarpbenchError> {
        let options = options(DivergenceStrategy::SplitJoin);
        let kernel = self.compile(&CompileOptions { count_branches: true, ..options })?;
        let mut profile: Option<BranchProfile> = None;
        self.launches(&kernel, &mut |device, kernel, config, args| {
            let report = device.launch(kernel, config, args)?;
            match (&mut profile, &report.branches) {
                (Some(sum), Some(counted)) => sum.merge(counted)?,
                (None, Some(counted)) => profile = Some(counted.clone()),
                (_, None) => {}
            }
            Ok(report)
        })?;
        let nothing = || ProfileError::Missing { function: self.source.name().to_owned() };
        Ok(Arc::new(profile.ok_or_else(nothing)?))
    }

    /// The table's line for a run under `strategy`.
    pub fn row(&self, strategy: Strategy, run: &Run) -> Row {
        let with_profile = matches!(strategy, Strategy::Profile | Strategy::AdaptiveProfile);
        Row {
            program: self.program.name,
            input: self.input.name(),
            arch: self.arch().to_string(),
            strategy,
            trained_on: with_profile.then_some(self.input.name()),
            warp_instructions: run.outcome.warp_instructions(),
            lane_instructions: run.outcome.lane_instructions(),
            branches: run.branches,
            divergent_executions: run.divergent_executions,
            correct: run.correct,
        }
    }

    /// The program's rows under some strategies, and the profile of its input. An assignment that `best` does not
    /// have is searched for.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn rows(
        &self,
        strategies: &[Strategy],
        best: &Best,
    ) -> Result<(Vec<Row>, Arc<BranchProfile>), HarpbenchError> {
        let profile = self.profile()?;
        let mut rows = Vec::new();
        for &strategy in strategies {
            let assignment = || -> Result<_, HarpbenchError> {
                Ok(match best.of(self)? {
                    Some(found) => found.assignment(),
                    None => Found::search(self)?.assignment(),
                })
            };
            let options = strategy.options(|| Ok(Arc::clone(&profile)), assignment)?;
            rows.push(self.row(strategy, &self.run(&options)?));
        }
        Ok((rows, profile))
    }

    /// The program's row under [`Strategy::AdaptiveProfile`] with the profile of another input.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn crossed(
        &self,
        trained_on: Input,
        profile: Arc<BranchProfile>,
    ) -> Result<Row, HarpbenchError> {
        let row = self.row(Strategy::AdaptiveProfile, &self.run(&adaptive(profile))?);
        Ok(Row { trained_on: Some(trained_on.name()), ..row })
    }

    /// Does the program's launches on a new device, each with `launch`.
    pub(super) fn launches(
        &self,
        kernel: &Kernel,
        launch: Launch<'_>,
    ) -> Result<Outcome, HarpbenchError> {
        (self.program.run_by)(&mut self.device()?, kernel, &self.work, launch)
    }

    fn device(&self) -> Result<Device, HarpbenchError> {
        let config = DeviceConfig { fuel: Some(FUEL), ..DeviceConfig::new(self.arch()) };
        Ok(Device::new(config)?)
    }
}

/// Counts branches, splits and joins.
struct Counter {
    /// The kernel's branches, by their offsets.
    sites: HashSet<u64>,
    branches: u64,
    divergent_executions: u64,
    splits_and_joins: u64,
}

impl Counter {
    fn new(kernel: &Kernel) -> Counter {
        let sites = kernel.entry().branches().map(|(offset, _)| offset).collect();
        let [branches, divergent_executions, splits_and_joins] = [0; 3];
        Counter { sites, branches, divergent_executions, splits_and_joins }
    }
}

impl LaunchObserver for Counter {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        let opcode = issue.instruction.op.opcode();
        self.splits_and_joins += u64::from(matches!(opcode, Opcode::Split | Opcode::Join));
        if offset.is_some_and(|offset| self.sites.contains(&offset)) {
            let unanimous = issue.executing == 0 || issue.executing == issue.state.active();
            self.branches += 1;
            self.divergent_executions += u64::from(!unanimous);
        }
    }
}
