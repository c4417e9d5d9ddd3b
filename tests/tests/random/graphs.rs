//! Kernels with the blocks of control-flow graphs, known and random ones.

use cranelift_codegen::ir::{InstructionData, Opcode};
use harp_isa::WordSize;
use harp_jit::{OptLevel, ParamType};
use harp_tests::generate::graphs::{catalogue, filled};
use harp_tests::generate::{Family, Kind};
use harp_tests::machines::{ALL, Machines, parsed};
use harp_tests::oracle::{Argument, Case, Elements};
use harp_tests::random::{
    Counts, Proof, Selection, Target, WAYS, bytes_of, check_catalogue, check_generated, shrink,
};

use super::{ATTEMPTS, are_proved, run_all};

/// Random graphs of an ordinary run.
const GRAPHS: u64 = 1500;

/// Rounds of the catalogue: in each, every shape has other contents for each family of machines.
const ROUNDS: u64 = 2;

#[test]
fn every_shape_of_the_catalogue_does_in_each_lane_what_the_oracle_says() {
    let reached = match check_catalogue(0..ROUNDS, &|| {}) {
        Ok(reached) => reached,
        Err((named, round, failure)) => {
            let failure = shrink(Kind::Graphs, &[], failure, ATTEMPTS);
            let (name, source) = (named.name, named.source);
            panic!("`{name}` (of {source}) in round {round}, made smaller:\n{failure}");
        }
    };
    println!("{reached:#?}");
    assert_eq!(reached.refused, Counts::new(), "nothing that is generated may be refused");
    let contents = ROUNDS * catalogue().len() as u64;
    assert_eq!(reached.cases, 4 * contents);
    // All machines at both levels, and all strategies. A kernel that traps gives no profile.
    assert_eq!(reached.machines.len(), 2 * ALL.len(), "{:?}", reached.machines);
    assert_eq!(reached.strategies.len(), WAYS.len(), "{:?}", reached.strategies);
    let launches = 2 * ALL.len() as u64 * contents;
    assert_eq!(reached.runs + reached.unprofiled, launches);
    assert!(reached.unprofiled * 50 < launches, "{} kernels have no profile", reached.unprofiled);
}

#[test]
fn random_graphs_do_in_each_lane_what_the_oracle_says() {
    let selection = Selection { kind: Kind::Graphs, ..Selection::default() };
    let reached = run_all(0..GRAPHS, selection);
    if reached.cases == GRAPHS {
        let traps = reached.endings.keys().filter(|ending| ending.starts_with("trap"));
        assert!(traps.count() > 0, "no kernel ends by a trap: {reached:#?}");
    }
}

/// Seeds whose proof needs what no other does.
const HARD_PROOFS: [(u64, &str); 4] = [
    (115, "numbers that are gone behind a join are left out of what was known at the split"),
    (157, "lanes are parted in each round by a condition of what is spilled and loaded again"),
    (232, "lanes that left a loop in an earlier round keep a copy of what others copy later"),
    (304, "lanes are parted in each round by a condition of a number that was selected"),
];

#[test]
fn proofs_that_need_something_of_their_own_are_found() {
    are_proved(Kind::Graphs, &HARD_PROOFS);
}

/// Branches matter: with the sides of one swapped, the oracle says something else, or gives up, mostly.
#[test]
fn branches_have_effects() {
    let (mut seen, mut all) = (0, 0);
    for seed in 0..80 {
        let family = Family { word: WordSize::Four, extension: seed % 2 == 0 };
        let case = Kind::Graphs.generate(&bytes_of(Kind::Graphs, seed), family).case;
        let (effect, trace) = case.expected(8).expect("the oracle knows what is generated");
        let func = &case.functions[0];
        let brif = |inst| func.dfg.insts[inst].opcode() == Opcode::Brif;
        let branches = trace.executed.keys().filter(|(_, inst)| brif(*inst));
        for &(_, inst) in branches.step_by(2) {
            let mut other = case.clone();
            let data = &mut other.functions[0].dfg.insts[inst];
            let InstructionData::Brif { blocks, .. } = data else { unreachable!("a branch") };
            blocks.swap(0, 1);
            all += 1;
            seen += usize::from(!other.expected(8).is_ok_and(|(other, _)| other == effect));
        }
    }
    println!("{seen} of {all} branches have effects");
    // Three of four do. Others choose among blocks that come to the same.
    assert!(all > 100 && seen * 10 > all * 7, "{seen} of {all}");
}

/// All bytes give a kernel that the oracle knows and that ends, for all shapes: none at all, too.
#[test]
fn all_contents_end() {
    for (at, named) in catalogue().iter().enumerate() {
        for word in [WordSize::Four, WordSize::Eight] {
            let family = Family { word, extension: at % 2 == 0 };
            for bytes in [&[][..], &[0xff; 900]] {
                let case = filled(&named.shape, bytes, family).case;
                if let Err(error) = case.expected(8) {
                    panic!("{}: {error}\n{case}", named.name);
                }
            }
        }
    }
}

/// A latch of two loops. Lanes that stay in the inner one kept nothing of what the outer one began with.
const SHARED_LATCH: &str = "function %kernel(i32) fast {
    fn0 = %harp_global_id_x() -> i32
block0(v0: i32):
    v900 = load.i32 notrap aligned v0+36
    v901 = load.i32 notrap aligned v0+40
    v902 = call fn0()
    v5001 = iconst.i32 4
    v903 = imul v902, v5001
    v904 = iadd v900, v903
    v905 = load.i32 aligned v904
    v50 = iconst.i32 0
    jump block1(v905, v50, v901)
block1(v1: i32, v20: i32, v30: i32):
    jump block2(v20, v30)
block2(v2: i32, v3: i32):
    v8 = iadd v2, v1
    v5002 = iconst.i32 -1
    v4 = iadd v3, v5002
    v5003 = iconst.i32 0
    v5 = icmp sgt v4, v5003
    brif v5, block3, block4(v8)
block3:
    v5004 = iconst.i32 1
    v6 = band v3, v5004
    v5005 = iconst.i32 100
    v10 = iadd v1, v5005
    brif v6, block2(v8, v4), block1(v10, v8, v4)
block4(v7: i32):
    store aligned v7, v904
    return
}";

#[test]
fn a_latch_of_two_loops_keeps_what_the_outer_one_began_with() {
    let items = 0..8_u32;
    let case = case_of(SHARED_LATCH, items.clone(), 6);
    let right: Vec<u8> = items.flat_map(|item| (900 + 6 * item).to_le_bytes()).collect();
    assert_eq!(case.expected(1).expect("it ends").0.memory[0], right);
    does_right(case, Proof::No);
}

/// A loop that lanes leave in different rounds, in a cycle with two entries. Which way it is left is decided by a number
/// that is the same for all: the proof compares what a lane decided with what another decides in a later round.
const EXIT_BY_NUMBER: &str = "function %kernel(i32) fast {
    fn0 = %harp_global_id_x() -> i32
block0(v0: i32):
    v1 = load.i32 notrap aligned readonly can_move v0+36
    v2 = load.i32 notrap aligned readonly can_move v0+40
    v3 = call fn0()
    v4 = iconst.i32 4
    v5 = imul v3, v4
    v6 = iadd v1, v5
    v7 = iconst.i32 1
    v8 = iconst.i32 0
    brif v7, block2(v8), block3(v8)
block1:
    br_table v2, block4, [block5, block3(v7)]
block5:
    jump block2(v7)
block2(v9: i32):
    jump block3(v9)
block3(v10: i32):
    brif v10, block6, block4
block4:
    v11 = load.i32 notrap aligned v6
    v12 = isub v11, v7
    store aligned v12, v6
    br_table v11, block4, [block1]
block6:
    return
}";

#[test]
fn lanes_are_proved_to_leave_a_loop_the_same_way_in_different_rounds() {
    for way in [0, 1] {
        let case = case_of(EXIT_BY_NUMBER, (0..8).map(|item| item % 3), way);
        let (effect, _) = case.expected(1).expect("it ends");
        assert_eq!(effect.memory[0], [0xff; 32]);
        does_right(case, Proof::Required);
    }
}

/// The launch of a kernel that gets a buffer with a word for each of eight work-items, and a number.
fn case_of(text: &str, words: impl Iterator<Item = u32>, number: u64) -> Case {
    let func = cranelift_reader::parse_functions(text).expect("it is CLIF").remove(0);
    let content = words.flat_map(u32::to_le_bytes).collect();
    let args =
        vec![Argument::Buffer(Elements::Ints, content), Argument::Scalar(ParamType::I32, number)];
    Case::kernel(func, WordSize::Four, [8, 1, 1], args)
}

/// All machines with 4-byte words do as the oracle says, at both levels and by every strategy.
fn does_right(case: Case, prove: Proof) {
    let mut targets = Vec::new();
    for arch in parsed(ALL).filter(|arch| arch.word() == WordSize::Four) {
        for level in [OptLevel::None, OptLevel::Speed] {
            targets.extend(WAYS.map(|way| Target { prove, ..Target::new(arch, level, way) }));
        }
    }
    if let Err(failure) = check_generated(&case.into(), &targets, &mut Machines::default()) {
        panic!("{failure}");
    }
}
