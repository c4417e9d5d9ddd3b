//! Random kernels with all control flow there is, run by all strategies on many machines, against
//! cranelift-interpreter lane by lane.
//!
//! `HARP_SEED=7` replays one random kernel, `HARP_SEED=0..10000` runs many; the example `kernels` runs more
//! of them, with progress.

use std::ops::Range;
use std::thread::available_parallelism;

use cranelift_codegen::ir::{InstructionData, Opcode};
use harp_isa::{ArchId, WordSize};
use harp_tests::fuzzing::divergent::{
    ARCHS, CONSTRUCTS, Counts, Kernels, Proof, Reached, Selection, Unproved, WAYS, bytes_of, run,
    shrink,
};
use harp_tests::generate::Family;
use harp_tests::generate::divergent::kernel;
use harp_tests::seeds;

/// Kernels of an ordinary run.
const KERNELS: u64 = 1000;

/// How many smaller kernels are tried when one fails.
const ATTEMPTS: usize = 1500;

#[test]
fn random_kernels_do_in_each_lane_what_the_oracle_says() {
    let given = seeds::from_environment();
    let ordinary = given.is_none();
    let reached = run_all(Kernels::ControlFlow, given.unwrap_or(0..KERNELS));
    println!("{reached:#?}");
    if ordinary {
        assert_not_vacuous(&reached);
        assert!(reached.proved > 2 * KERNELS, "only {} were to be proved", reached.proved);
    }
}

/// Runs the kernels of all seeds, each of which must agree with the oracle and be proved.
fn run_all(kernels: Kernels, seeds: Range<u64>) -> Reached {
    let count = seeds.end.saturating_sub(seeds.start);
    let threads = available_parallelism().map_or(1, usize::from);
    let selection = Selection { kernels, prove: Proof::Counted, ..Selection::default() };
    let reached = match run(seeds.start, count, selection, threads, &|_| {}) {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            let failure = shrink(kernels, &bytes_of(seed), failure, ATTEMPTS);
            panic!("seed {seed} (HARP_SEED={seed} replays it), made smaller:\n{failure}");
        }
    };
    assert_eq!(reached.refused, Counts::new(), "nothing that is generated may be refused");
    assert_eq!(unproved(&reached), [""; 0], "all finished code is proved to keep lanes together");
    reached
}

fn unproved(reached: &Reached) -> Vec<String> {
    reached.unproved.iter().map(Unproved::to_string).collect()
}

/// Seeds behind those of an ordinary run whose proof needs what no other does.
const HARD_PROOFS: [(u64, &str); 15] = [
    (2392, "what is spilled to a large frame is followed word by word"),
    (2888, "both sides of a split load the same from memory that nobody writes"),
    (4634, "what is known of each lane of many pairs is brought in one lane after the other"),
    (5090, "both sides go round the same loop, one after the other"),
    (6488, "lanes are parted by a condition that is computed again in each round of a loop"),
    (7338, "a loop is entered in several ways, and what one of them leaves is not meant"),
    (8695, "both sides decide the same, and forget what they decided"),
    (8714, "lanes that left a loop earlier hold what others take from further out"),
    (9856, "what is computed from a few numbers decides for all lanes"),
    (10745, "a load from memory that nobody writes is guarded, and keeps what was there"),
    (12655, "a register that is tested was loaded from the frame, where the value stays"),
    (13620, "both sides go round the same loop, and what else they may do is never done"),
    (14224, "a predicate that nobody looks at is moved over another"),
    (15633, "a predicate is taken from one that it was exchanged for, which is known anyway"),
    (19219, "lanes that went the same way at a split further out held the same there"),
];

#[test]
fn proofs_that_need_something_of_their_own_are_found() {
    let selection = Selection { prove: Proof::Counted, ..Selection::default() };
    for (seed, why) in HARD_PROOFS {
        let reached = run(seed, 1, selection, 1, &|_| {}).expect("the kernel does what it should");
        assert_eq!(unproved(&reached), [""; 0], "{why}");
        assert!(reached.proved > 0, "{seed}");
    }
}

/// Kernels of an ordinary run that call functions of which is known what they do.
const CALLS: u64 = 300;

#[test]
fn what_functions_and_callers_rely_on_is_proved() {
    let given = seeds::from_environment();
    let ordinary = given.is_none();
    let reached = run_all(Kernels::Calls, given.unwrap_or(0..CALLS));
    let Reached { branches, divergent_branches: divergent, .. } = reached;
    println!("{divergent} of {branches} branches are divergent");
    if ordinary {
        // If nothing were known of arguments and results, half of them would be.
        assert!(divergent * 5 < branches * 2, "{divergent} of {branches}");
    }
}

/// Branches matter: with the sides of one swapped, the oracle says something else, mostly. Else much of what
/// is compared would not depend on control flow.
#[test]
fn branches_have_effects() {
    let (mut seen, mut all) = (0, 0);
    for seed in 0..60 {
        let lanes = 8;
        let family = Family { word: WordSize::Four, extension: seed % 2 == 0 };
        let generated = kernel(&bytes_of(seed), family);
        let case = &generated.case;
        let (effect, trace) = case.expected(lanes).expect("the oracle knows what is generated");
        let branches = trace.executed.keys().filter(|(function, inst)| {
            case.module.functions[*function].dfg.insts[*inst].opcode() == Opcode::Brif
        });
        for &(function, inst) in branches.step_by(3) {
            let mut other = case.clone();
            let data = &mut other.module.functions[function].dfg.insts[inst];
            let InstructionData::Brif { blocks, .. } = data else { unreachable!("a branch") };
            blocks.swap(0, 1);
            all += 1;
            // It may go to where the oracle gives up.
            seen += usize::from(!other.expected(lanes).is_ok_and(|(other, _)| other == effect));
        }
    }
    println!("{seen} of {all} branches have effects");
    assert!(all > 100 && seen * 5 > all * 3, "{seen} of {all}");
}

/// What the generator can make, all of it must have been made, compiled and run.
fn assert_not_vacuous(reached: &Reached) {
    assert_eq!(reached.kernels, KERNELS);
    let there = |name: &&str| reached.constructs.contains_key(*name);
    let missing: Vec<&str> = CONSTRUCTS.into_iter().filter(|name| !there(name)).collect();
    assert_eq!(missing, [""; 0], "constructs that never ran");
    for arch in ARCHS {
        let arch = arch.parse::<ArchId>().expect("the list holds machines").to_string();
        let runs = |(name, _): &(&String, &u64)| name.split(' ').next() == Some(&arch);
        assert_eq!(reached.machines.iter().filter(runs).count(), 2, "levels of {arch} that ran");
    }
    for way in WAYS {
        assert!(reached.strategies.contains_key(way.name), "{way:?} never ran");
    }
    for name in ["predicate", "adaptive"] {
        assert!(reached.predicated_branches[name] > 0, "{name} predicates nothing: {reached:#?}");
    }
    for ending in ["results", "bad address", "division by zero", "trap user1"] {
        assert!(reached.endings.contains_key(ending), "no kernel ends by {ending}: {reached:#?}");
    }
    assert!(reached.divergent_branches * 3 > reached.branches, "hardly anything diverges");
}
