//! Every operation in many lanes: at the edges of its operands' types, with operands that trap, and at random.

use harp_jit::OptLevel;
use harp_tests::generate::{Family, Generated, Kind, directed, trapping};
use harp_tests::machines::{FEW, parsed};
use harp_tests::oracle::Case;
use harp_tests::random::{Counts, Reached, Target, WAYS, check_generated, together};

use super::{proved, run_all};

/// Kernels of an ordinary run.
const KERNELS: u64 = 800;

#[test]
fn random_kernels_with_all_operations_do_what_the_oracle_says() {
    let reached = run_all(0..KERNELS, proved(Kind::Lowerings));
    if reached.cases == KERNELS {
        for ending in ["results", "bad address", "division by zero", "trap user1"] {
            assert!(
                reached.endings.contains_key(ending),
                "no kernel ends by {ending}: {reached:#?}"
            );
        }
    }
}

/// Runs the cases of each family on some of its machines, at both levels.
fn check_cases(make: fn(Family) -> Vec<Case>) -> Reached {
    let mut families: Vec<Family> = parsed(FEW).map(Family::of).collect();
    families.sort();
    families.dedup();
    let mut reached = Reached::default();
    for family in families {
        let cases: Vec<Generated> = make(family).into_iter().map(Generated::from).collect();
        let archs = parsed(FEW).filter(|&arch| Family::of(arch) == family);
        let levels = [OptLevel::None, OptLevel::Speed];
        let targets = archs.flat_map(|arch| levels.map(|level| Target::new(arch, level, WAYS[4])));
        let targets: Vec<Target> = targets.collect();
        let checked = together(0..cases.len() as u64, &|| {}, |index, machines| {
            check_generated(&cases[index as usize], &targets, machines)
        });
        match checked {
            Ok(more) => reached += more,
            Err((index, failure)) => panic!("case {index} of {family:?}: {failure}"),
        }
    }
    assert_eq!(reached.refused, Counts::new());
    reached
}

#[test]
fn operations_agree_at_the_edges() {
    let reached = check_cases(directed);
    assert!(reached.runs > 1000, "{reached:?}");
    assert_eq!(reached.endings.len(), 1, "{:?}", reached.endings);
}

#[test]
fn operations_trap_where_they_should() {
    let reached = check_cases(trapping);
    for ending in ["results", "division by zero", "trap int_ovf", "trap bad_toint", "trap user17"] {
        assert!(
            reached.endings.contains_key(ending),
            "none ends by {ending}: {:?}",
            reached.endings
        );
    }
    assert!(!reached.constructs.contains_key("loop"), "{reached:?}");
}
