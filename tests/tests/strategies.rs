//! Random kernels under every way to manage divergence, against the oracle.
//!
//! `HARP_SEED=7` replays one kernel, `HARP_SEED=0..10000` runs many.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::ops::Range;
use std::sync::Arc;

use harp_jit::{
    ArchId, BranchProfile, CompileError, CompileOptions, DivergenceStrategy, Kernel, OptLevel,
    ProfileError, ProfileParams,
};
use harp_runtime::{Device, profile_from_json, profile_to_json};
use harp_tests::functions::checked;
use harp_tests::fuzzing::divergent::profiles_differ;
use harp_tests::fuzzing::kernels::ARCHS;
use harp_tests::fuzzing::random_bytes;
use harp_tests::generate;
use harp_tests::oracle::{Case, Expected, Observed, device};
use harp_tests::seeds;

/// The seeds of an ordinary run.
const SEEDS: Range<u64> = 0..60;

/// All ways, and whether they are given a profile.
fn strategies() -> [(DivergenceStrategy, bool); 6] {
    [
        (DivergenceStrategy::SplitJoin, false),
        (DivergenceStrategy::Predicate, false),
        (DivergenceStrategy::Static, false),
        (DivergenceStrategy::Profile(ProfileParams::default()), true),
        (DivergenceStrategy::Adaptive, false),
        (DivergenceStrategy::Adaptive, true),
    ]
}

/// What became of the kernels under one strategy.
#[derive(Debug, Default)]
struct Outcome {
    kernels: usize,
    divergent: usize,
    predicated: usize,
    /// Of the kernels that did not trap.
    warp_instructions: u64,
    uniform_predicated: usize,
}

#[test]
fn strategies_agree_with_the_oracle() {
    let given = seeds::from_environment();
    let whole = given.is_none();
    let mut outcomes = strategies().map(|_| Outcome::default());
    for seed in given.unwrap_or(SEEDS) {
        // Each seed on three of the machines, in turn.
        for turn in 0..3 {
            let arch = ARCHS[(seed as usize + 3 * turn) % ARCHS.len()].parse().unwrap();
            Run::new(seed, arch).all(&mut outcomes);
        }
    }
    for (strategy, outcome) in strategies().iter().zip(&outcomes) {
        println!("{strategy:?}: {outcome:?}");
    }
    let [split_join, predicate, by_number, profile, adaptive, counted] = &outcomes;
    assert_eq!(split_join.predicated, 0);
    if whole {
        assert!(2 * predicate.predicated > predicate.divergent, "{predicate:?}");
        assert!(by_number.predicated > 0 && by_number.predicated < predicate.predicated);
        assert!(profile.predicated > 0 && profile.predicated < predicate.predicated);
        assert!(adaptive.uniform_predicated > 0, "{adaptive:?}");
        let pure = split_join.warp_instructions.min(predicate.warp_instructions);
        assert!(counted.warp_instructions < pure, "{counted:?}");
    }
}

/// One kernel on one machine.
struct Run {
    seed: u64,
    arch: ArchId,
    case: Case,
    expected: Expected,
    device: Device,
}

impl Run {
    fn new(seed: u64, arch: ArchId) -> Run {
        let case = generate::kernel(&random_bytes(seed, 3000 >> (seed % 4)), arch).unwrap();
        let expected = case.expected().unwrap();
        Run { seed, arch, case, expected, device: device(arch).unwrap() }
    }

    fn options(&self, divergence: DivergenceStrategy) -> CompileOptions {
        let opt_level = if self.seed.is_multiple_of(3) { OptLevel::None } else { OptLevel::Speed };
        CompileOptions { opt_level, divergence, ..checked() }
    }

    fn all(&mut self, outcomes: &mut [Outcome]) {
        let mut profile = None;
        for ((strategy, with_profile), outcome) in strategies().into_iter().zip(outcomes) {
            let mut options = self.options(strategy);
            if with_profile {
                let Some(profile) = &profile else { continue };
                options.profile = Some(Arc::clone(profile));
            }
            let Some(kernel) = self.compile(&options) else { continue };
            let is_first = strategy == DivergenceStrategy::SplitJoin;
            let observed = if is_first {
                let (observed, counted) = self.profiled(&kernel);
                profile = self.counted_by_itself(counted).map(Arc::new);
                observed
            } else {
                self.case.observed(&kernel, &mut self.device).unwrap()
            };
            self.check(&observed, &kernel, strategy);
            // Only kernels that all strategies run are compared.
            if let (Observed::Memory(_, report), true) = (&observed, profile.is_some()) {
                outcome.warp_instructions += report.warp_instructions();
            }
            let stats = kernel.stats();
            outcome.kernels += 1;
            outcome.divergent += stats.divergent_branches;
            outcome.predicated += stats.predicated_divergent_branches;
            outcome.uniform_predicated +=
                stats.predicated_branches - stats.predicated_divergent_branches;
        }
    }

    /// None if the kernel holds what is not supported.
    fn compile(&self, options: &CompileOptions) -> Option<Kernel> {
        match self.case.compile_with(self.arch, options) {
            Ok(kernel) => Some(kernel),
            Err(error) if matches!(*error, CompileError::Unsupported { .. }) => None,
            Err(error) => {
                let Run { seed, arch, case, .. } = self;
                panic!("seed {seed} on {arch}, {:?}: {error}\n{case}", options.divergence)
            }
        }
    }

    /// A launch that is counted. There is no profile if it traps.
    fn profiled(&mut self, kernel: &Kernel) -> (Observed, Option<BranchProfile>) {
        let observed = self.case.observed_by(&mut self.device, |device, config, args| {
            device.launch(kernel, config.with_branch_profile(), args)
        });
        let observed = observed.unwrap();
        let profile = match &observed {
            Observed::Memory(_, report) => report.branches.clone(),
            Observed::Trap(_) => None,
        };
        (observed, profile)
    }

    /// The profile that the kernel makes itself. Whoever looks on, as `seen`, must see the same of the
    /// branches that are executed as branches.
    fn counted_by_itself(&mut self, seen: Option<BranchProfile>) -> Option<BranchProfile> {
        let strategy = DivergenceStrategy::SplitJoin;
        let options = CompileOptions { count_branches: true, ..self.options(strategy) };
        let kernel = self.compile(&options)?;
        let observed = self.case.observed(&kernel, &mut self.device).unwrap();
        self.check(&observed, &kernel, strategy);
        let Observed::Memory(_, report) = observed else { return None };
        let counted = report.branches.unwrap();
        if let Some(difference) = profiles_differ(&seen.unwrap(), &counted) {
            let Run { seed, arch, case, .. } = self;
            panic!("seed {seed} on {arch}: {difference}\n{case}");
        }
        Some(counted)
    }

    fn check(&self, observed: &Observed, kernel: &Kernel, strategy: DivergenceStrategy) {
        let lanes = self.arch.lanes().into();
        if let Some(difference) = self.case.difference(&self.expected, observed, lanes) {
            let Run { seed, arch, case, .. } = self;
            let code = kernel.disassembly();
            panic!("seed {seed} on {arch}, {strategy:?}: {difference}\n{case}\n{code}");
        }
    }
}

#[test]
fn profiles_survive_json_and_fit_one_kernel_only() {
    let arch = ArchId::HARP32;
    let profiles = (0..40).filter_map(|seed| {
        let mut run = Run::new(seed, arch);
        let kernel = run.compile(&run.options(DivergenceStrategy::SplitJoin))?;
        let (_, profile) = run.profiled(&kernel);
        profile.filter(|profile| profile.branches.len() > 1).map(|profile| (run, profile))
    });
    let [(run, profile), (other, _)] =
        <[_; 2]>::try_from(profiles.take(2).collect::<Vec<_>>()).ok().unwrap();
    for counts in &profile.branches {
        let ways = counts.unanimous_true + counts.unanimous_false + counts.divergent;
        assert_eq!(counts.executed, ways);
        let lanes: u64 = counts.warps.iter().flat_map(|warp| &warp.executed).sum();
        assert!(lanes >= counts.executed);
    }
    let text = profile_to_json(&profile);
    assert_eq!(profile_from_json(&text).unwrap(), profile);
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    assert!(profile_from_json(&newer).unwrap_err().to_string().contains("version 2"));
    assert!(profile_from_json("[]").is_err());

    let compile = |run: &Run, profile: &BranchProfile| {
        let mut options = run.options(DivergenceStrategy::Adaptive);
        options.profile = Some(Arc::new(profile.clone()));
        match run.case.compile_with(arch, &options) {
            Err(error) => match *error {
                CompileError::Profile(error) => Some(error),
                error => panic!("{error}"),
            },
            Ok(_) => None,
        }
    };
    assert_eq!(compile(&run, &profile), None);
    let error = compile(&other, &profile).unwrap();
    assert!(matches!(error, ProfileError::Stale { .. }), "{error}");
    let foreign = BranchProfile { function: "other".to_owned(), ..profile.clone() };
    assert!(matches!(compile(&run, &foreign).unwrap(), ProfileError::Function { .. }));
    let mut wrong = profile;
    wrong.branches[0].divergent += 1;
    assert!(matches!(compile(&run, &wrong).unwrap(), ProfileError::Inconsistent { .. }));
    let options = run.options(DivergenceStrategy::Profile(ProfileParams::default()));
    let error = run.case.compile_with(arch, &options).unwrap_err();
    assert!(matches!(*error, CompileError::Profile(ProfileError::Missing { .. })), "{error}");
}
