//! harpbench's programs on several machines, against the host.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::sync::Arc;

use harp_isa::ArchId;
use harp_jit::{CompileOptions, DivergenceStrategy, OptLevel};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::harpbench::{
    Bench, Best, GUPTA, Input, Outcome, PROGRAMS, Program, Scale, Strategy, Summary,
};

/// Every strategy that needs no profile.
const STRATEGIES: [DivergenceStrategy; 4] = [
    DivergenceStrategy::SplitJoin,
    DivergenceStrategy::Predicate,
    DivergenceStrategy::Static,
    DivergenceStrategy::Adaptive,
];

/// Runs a program on one core and compares its result with the host's.
fn check(program: &Program, input: Input, arch: ArchId, options: &CompileOptions) -> Outcome {
    let kernel = (program.source)(arch).unwrap().compile(options).unwrap();
    let config = DeviceConfig { fuel: Some(1 << 26), ..DeviceConfig::new(arch) };
    let device = Device::new(config).unwrap();
    let work = (program.work)(input, Scale::Small, arch);
    let outcome = program.run(&device, &kernel, &work).unwrap();
    let (expected, name) = ((program.on_host)(&work), program.name);
    let wrong = outcome.result.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "{name}, {input:?}, {arch}, {options:?}");
    assert_eq!(outcome.result.len(), expected.len(), "{name}, {input:?}");
    outcome
}

#[test]
fn programs_are_right_on_guptas_machine() {
    for program in &PROGRAMS {
        for divergence in STRATEGIES {
            let options =
                CompileOptions { divergence, check_code: true, ..CompileOptions::default() };
            let costs =
                Input::ALL.map(|input| check(program, input, GUPTA, &options).warp_instructions());
            // Inputs that cost the same would not be worth having; predicated code need not care.
            let mut different = costs.to_vec();
            different.sort_unstable();
            different.dedup();
            let split = divergence == DivergenceStrategy::SplitJoin;
            assert!(!split || different.len() >= 3, "{}: {costs:?}", program.name);
        }
    }
}

#[test]
fn programs_are_right_on_other_machines() {
    let machines = ["harp64", "4w32/16/32/8+x", "8b16/16/4/4", "4w9/2/3/5", "8w32/32/64/2+x"];
    for (id, strategy) in machines.into_iter().zip((0..STRATEGIES.len()).cycle()) {
        let arch: ArchId = id.parse().unwrap();
        for (program, index) in PROGRAMS.iter().zip(strategy..) {
            let divergence = STRATEGIES[index % STRATEGIES.len()];
            let options =
                CompileOptions { divergence, check_code: true, ..CompileOptions::default() };
            check(program, Input::Random, arch, &options);
            let options = CompileOptions { opt_level: OptLevel::None, ..options };
            check(program, Input::Worst, arch, &options);
        }
    }
}

/// How much the adaptive strategy may cost: with a profile of the same input, compared with the best
/// assignment of techniques that was found; with those of other inputs, in the mean; without one, in the
/// mean, compared with the better of the pure strategies.
#[test]
fn the_adaptive_strategy_keeps_its_bounds() {
    let best = Best::parse(include_str!("../../../docs/harpbench/best-small.jsonl")).unwrap();
    let mut rows = Vec::new();
    for program in &PROGRAMS {
        let cases =
            Input::ALL.map(|input| Bench::new(program, input, Scale::Small, GUPTA).unwrap());
        let mut profiles = Vec::new();
        for case in &cases {
            let (of_case, profile) = case.rows(&Strategy::ALL, &best).unwrap();
            rows.extend(of_case);
            profiles.push((case.input, profile));
        }
        for case in &cases {
            let others = profiles.iter().filter(|(input, _)| *input != case.input);
            rows.extend(
                others.map(|(input, profile)| case.crossed(*input, Arc::clone(profile)).unwrap()),
            );
        }
    }
    assert_eq!(rows.len(), PROGRAMS.len() * Input::ALL.len() * (Strategy::ALL.len() + 3));
    assert!(rows.iter().all(|row| row.correct));
    let summary = Summary::new(&rows);
    println!("{summary}");
    assert!(summary.profile_worst.unwrap().ratio <= 1.05);
    assert!(summary.cross_mean.unwrap() <= 1.1);
    let pure = summary.means[&Strategy::Predicate].min(1.0);
    assert!(summary.means[&Strategy::Adaptive] <= pure);
}

/// What is proved of a program is seen of it.
#[test]
fn what_is_proved_convergent_is() {
    for program in &PROGRAMS {
        for input in Input::ALL {
            let bench = Bench::new(program, input, Scale::Small, GUPTA).unwrap();
            let found = bench.convergence().unwrap();
            let proved: u64 = found.proved.values().sum();
            let name = program.name;
            let counts = [proved, found.never_apart, found.together, found.at_best, found.issued];
            assert!(counts.is_sorted(), "{name}, {input:?}: {found:?}");
            assert!(proved > 0, "{name}, {input:?}: {found:?}");
        }
    }
}

#[test]
fn programs_are_found_by_their_names() {
    for program in &PROGRAMS {
        assert_eq!(Program::by_name(program.name).unwrap().name, program.name);
    }
    assert!(Program::by_name("vecsum ").is_none());
}
