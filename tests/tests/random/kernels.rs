//! Random kernels with all control flow there is, and kernels with calls of which much is known.

use cranelift_codegen::ir::{InstructionData, Opcode};
use harp_isa::WordSize;
use harp_tests::generate::{Family, Kind};
use harp_tests::random::{Reached, bytes_of};

use super::{are_proved, proved, run_all};

/// Kernels of an ordinary run.
const KERNELS: u64 = 1000;

#[test]
fn random_kernels_do_in_each_lane_what_the_oracle_says() {
    let reached = run_all(0..KERNELS, proved(Kind::Kernels));
    if reached.cases == KERNELS {
        assert!(reached.proved > 2 * KERNELS, "only {} were to be proved", reached.proved);
        for ending in ["results", "bad address", "division by zero", "trap user1"] {
            assert!(
                reached.endings.contains_key(ending),
                "no kernel ends by {ending}: {reached:#?}"
            );
        }
    }
}

/// Seeds behind those of an ordinary run whose proof needs what no other does.
const HARD_PROOFS: [(u64, &str); 16] = [
    (1223, "it is guessed on which values a warp may have to agree, and only those are compared"),
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
    are_proved(Kind::Kernels, &HARD_PROOFS);
}

/// Kernels of an ordinary run that call functions of which is known what they do.
const CALLS: u64 = 300;

#[test]
fn what_functions_and_callers_rely_on_is_proved() {
    let reached = run_all(0..CALLS, proved(Kind::Calls));
    let Reached { branches, divergent_branches: divergent, .. } = reached;
    println!("{divergent} of {branches} branches are divergent");
    if reached.cases == CALLS {
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
        let case = Kind::Kernels.generate(&bytes_of(Kind::Kernels, seed), family).case;
        let (effect, trace) = case.expected(lanes).expect("the oracle knows what is generated");
        let branches = trace.executed.keys().filter(|(function, inst)| {
            case.functions[*function].dfg.insts[*inst].opcode() == Opcode::Brif
        });
        for &(function, inst) in branches.step_by(3) {
            let mut other = case.clone();
            let data = &mut other.functions[function].dfg.insts[inst];
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
