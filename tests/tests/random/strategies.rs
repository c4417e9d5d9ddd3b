//! All ways to manage divergence against each other, and profiles.

use std::sync::Arc;

use harp_jit::{
    ArchId, BranchProfile, CompileError, CompileOptions, DivergenceStrategy, ModuleError, OptLevel,
    ProfileError, ProfileParams,
};
use harp_runtime::{LaunchConfig, profile_from_json, profile_to_json};
use harp_tests::generate::{Family, Kind};
use harp_tests::machines::{Machines, Setup};
use harp_tests::oracle::{Case, options};
use harp_tests::random::{
    Counts, Reached, Selection, WAYS, bytes_of, case_of, check_generated, together,
};

/// Kernels that are run by all strategies.
const KERNELS: u64 = 60;

#[test]
fn strategies_differ_as_they_should() {
    let selection = Selection { kind: Kind::Kernels, every_way: true, ..Selection::default() };
    // Instructions by strategy, of kernels that do not trap: those have a profile.
    let run = |seed, machines: &mut Machines| {
        let (generated, targets) = case_of(seed, selection);
        let (mut all, mut issued) = (Reached::default(), Counts::new());
        for target in targets {
            let reached = check_generated(&generated, &[target], machines)?;
            issued.insert(format!("{} {target}", target.way.name), reached.issued);
            all += reached;
        }
        if all.unprofiled == 0 {
            let counted = issued.into_iter().map(|(name, count)| {
                (format!("issued {}", name.split(' ').next().unwrap_or_default()), count)
            });
            counted.for_each(|(name, count)| *all.constructs.entry(name).or_default() += count);
        }
        Ok(all)
    };
    let reached = together(0..KERNELS, &|| {}, run);
    let reached = reached.unwrap_or_else(|(seed, failure): (_, Box<_>)| {
        panic!("seed {seed} (kernels): {}", harp_tests::random::Failure::to_string(&failure))
    });
    let predicated = |way: &str| reached.predicated_branches[way];
    assert_eq!(predicated("split-join"), 0);
    let divergent = reached.divergent_branches / WAYS.len() as u64;
    assert!(2 * predicated("predicate") > divergent, "{reached:#?}");
    for way in ["static", "profile"] {
        assert!((1..predicated("predicate")).contains(&predicated(way)), "{way}: {reached:#?}");
    }
    assert!(reached.constructs.contains_key("uniform branches that became predicates"));
    let issued = |way: &str| reached.constructs[&format!("issued {way}")];
    let pure = issued("split-join").min(issued("predicate"));
    assert!(issued("adaptive-profile") < pure, "{reached:#?}");
}

/// A kernel, and a profile of it; none if it traps.
fn profiled(seed: u64, arch: ArchId) -> Option<(Case, BranchProfile)> {
    let bytes = bytes_of(Kind::Lowerings, seed);
    let case = Kind::Lowerings.generate(&bytes, Family::of(arch)).case;
    let compiled = case.compile(arch, with(DivergenceStrategy::SplitJoin)).ok()?;
    let mut machines = Machines::default();
    let observed =
        machines.run(&case, &compiled, Setup::new(arch), LaunchConfig::with_branch_profile).ok()?;
    Some((case, observed.report?.branches?))
}

fn with(divergence: DivergenceStrategy) -> CompileOptions {
    CompileOptions { divergence, ..options(OptLevel::Speed) }
}

#[test]
fn profiles_survive_json_and_fit_one_kernel_only() {
    let arch = ArchId::HARP32;
    let profiles = (0..200).filter_map(|seed| profiled(seed, arch));
    let profiles = profiles.filter(|(_, profile)| profile.branches.len() > 1);
    let [(case, profile), (other, _)] =
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

    let compile = |case: &Case, profile: &BranchProfile| {
        let profile = Some(Arc::new(profile.clone()));
        let options = CompileOptions { profile, ..with(DivergenceStrategy::Adaptive) };
        match case.compile(arch, options) {
            Err(ModuleError::Compile(CompileError::Profile(error))) => Some(error),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        }
    };
    assert_eq!(compile(&case, &profile), None);
    let error = compile(&other, &profile).unwrap();
    assert!(matches!(error, ProfileError::Stale { .. }), "{error}");
    let foreign = BranchProfile { function: "other".to_owned(), ..profile.clone() };
    assert!(matches!(compile(&case, &foreign).unwrap(), ProfileError::Function { .. }));
    let mut wrong = profile;
    wrong.branches[0].divergent += 1;
    assert!(matches!(compile(&case, &wrong).unwrap(), ProfileError::Inconsistent { .. }));
    let options = with(DivergenceStrategy::Profile(ProfileParams::default()));
    let Err(ModuleError::Compile(error)) = case.compile(arch, options) else {
        panic!("no profile")
    };
    assert!(matches!(error, CompileError::Profile(ProfileError::Missing { .. })), "{error}");
}
