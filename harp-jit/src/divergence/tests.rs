//! Tests of plans: small functions run on a simulated warp.

use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;

use super::check::Imbalance;
use super::claims;
use super::{Decisions, Prepared, check, prepare};
use crate::analysis::{Known, Loads};
use crate::legalize;
use crate::plan::{Plan, Split};
use crate::profile::Branches;
use crate::times::Clock;
use crate::validate::{self, Inputs};

/// The limit of a warp's execution, in operations of lanes.
const FUEL: u64 = 40_000;

/// Inputs of a warp whose lanes have these numbers.
fn inputs(seed: u64, lanes: &[i64]) -> Inputs {
    let lanes = lanes.iter().map(|lane| lane.cast_unsigned()).collect();
    Inputs { seed, lanes, warp: 3, computes: true, undefined_differs: true }
}

const HEADER: &str = "
    fn0 = %harp_lane_id() -> i32
    fn1 = %emit(i32)
    fn2 = %harp_warp_id() -> i32
block0(v0: i32):
    v1 = call fn0()
    v2 = call fn2()
";

pub(super) fn verify(func: &Function) {
    let flags = settings::Flags::new(settings::builder());
    verify_function(func, &flags).unwrap_or_else(|errors| panic!("{errors}\n{}", func.display()));
}

/// A kernel with the lane number `v1` and the warp number `v2`.
fn kernel(body: &str) -> Function {
    let text = format!("function %f(i32) {{{HEADER}{body}}}");
    cranelift_reader::parse_functions(&text).unwrap().remove(0)
}

pub(super) fn planned(func: &Function) -> (Function, Plan) {
    managed(func, Loads::Each, |_| {})
}

/// The function with its divergence managed; `change` edits its canonical form before.
fn managed(func: &Function, loads: Loads, change: impl FnOnce(&mut Prepared)) -> (Function, Plan) {
    let mut func = func.clone();
    legalize::after(&mut func);
    let insts = func.dfg.num_insts();
    let mut prepared = prepare(func, Known::KERNEL, loads, insts, &Clock::new()).unwrap();
    prepared.facts.flow().check_meetings(&prepared.func);
    change(&mut prepared);
    verify(&prepared.func);
    let (func, _, plan) = prepared.manage(&Decisions::default(), &Branches::default()).unwrap();
    verify(&func);
    check(&func, &plan).unwrap_or_else(|error| panic!("{error}\n{}{plan}", func.display()));
    (func, plan)
}

/// Plans and runs a function; returns the plan and the number of splits at which lanes disagreed.
pub(super) fn runs(func: &Function) -> (Plan, usize) {
    runs_with(func, Loads::Each)
}

/// The same with loads of some kind.
pub(super) fn runs_with(func: &Function, loads: Loads) -> (Plan, usize) {
    let (after, plan) = managed(func, loads, |_| {});
    let mut reference = func.clone();
    legalize::after(&mut reference);
    let mut parted = 0;
    for (seed, lanes) in [(7, &[0, 1, 2, 3, 4, 5, 6, 7][..]), (8, &[-3, 5]), (9, &[2, 2, 2])] {
        let inputs = inputs(seed, lanes);
        let compared = validate::compared(&reference, (&after, &plan), &inputs, FUEL);
        let compared =
            compared.unwrap_or_else(|error| panic!("{error}\n{}\n{plan}", after.display()));
        parted += compared.parted;
    }
    let (claiming, claiming_plan) = managed(func, loads, claims::insert);
    claims_hold(&claiming, &claiming_plan);
    (plan, parted)
}

/// Checks that every value claimed to be uniform in a warp or the grid is so.
fn claims_hold(func: &Function, plan: &Plan) {
    let [first, second] = [3, 5].map(|warp| {
        // The analysis assumes any value for undefined ones.
        let inputs =
            Inputs { warp, undefined_differs: false, ..inputs(7, &[0, 1, 2, 3, 4, 5, 6, 7]) };
        claims::seen(func, validate::effects(func, plan, &inputs, FUEL))
    });
    claims::compare(&first, &second);
}

#[test]
fn a_diamond_gets_one_join() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: call fn1(v0)
            jump block3(v1)
        block2: jump block3(v2)
        block3(v3: i32): call fn1(v3)
            return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn an_if_without_else_joins_on_its_direct_edge_too() {
    let func = kernel(
        "   brif v1, block1, block2(v2)
        block1: jump block2(v0)
        block2(v3: i32): call fn1(v3)
            return",
    );
    let (after, plan) = planned(&func);
    let join = plan.splits().next().unwrap().join.unwrap();
    let sources = after.layout.blocks().filter(|&b| after.block_successors(b).any(|to| to == join));
    assert_eq!(sources.count(), 2);
    assert!(runs(&func).1 > 0);
}

#[test]
fn a_uniform_branch_is_left_alone() {
    let func = kernel(
        "   brif v2, block1, block2
        block1: jump block2
        block2: return",
    );
    let (after, plan) = planned(&func);
    assert_eq!(plan.splits().len(), 0);
    assert_eq!(after.layout.blocks().count(), 3);
}

#[test]
fn nested_branches_with_one_post_dominator_chain_their_joins() {
    let func = kernel(
        "   v9 = iconst.i32 2
            v8 = band v1, v9
            brif v1, block1, block4(v2)
        block1: brif v8, block2, block4(v1)
        block2: call fn1(v8)
            jump block4(v0)
        block4(v3: i32): call fn1(v3)
            return",
    );
    let (after, plan) = planned(&func);
    let joins: Vec<Block> = plan.splits().map(|split| split.join.unwrap()).collect();
    assert_eq!(joins.len(), 2);
    assert_eq!(after.block_successors(joins[1]).collect::<Vec<_>>(), [joins[0]]);
    assert!(runs(&func).1 > 0);
}

#[test]
fn a_uniform_loop_on_one_side_keeps_its_branch() {
    let func = kernel(
        "   v9 = iconst.i32 4
            v8 = iconst.i32 1
            v7 = iconst.i32 0
            brif v1, block1(v7), block3
        block1(v3: i32): v4 = icmp ult v3, v9
            brif v4, block2, block3
        block2: call fn1(v3)
            v5 = iadd v3, v8
            jump block1(v5)
        block3: return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn continue_in_a_uniform_loop_joins_at_the_latch() {
    let func = kernel(
        "   v9 = iconst.i32 4
            v8 = iconst.i32 1
            v7 = iconst.i32 0
            jump block1(v7)
        block1(v3: i32): v4 = icmp ult v3, v9
            brif v4, block2, block5
        block2: v6 = icmp ult v1, v3
            brif v6, block4, block3
        block3: call fn1(v3)
            jump block4
        block4: v5 = iadd v3, v8
            jump block1(v5)
        block5: return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn a_back_edge_can_be_the_place_of_the_join() {
    let func = kernel(
        "   jump block1
        block1: brif v2, block2, block5
        block2: brif v1, block1, block3
        block3: call fn1(v1)
            jump block1
        block5: return",
    );
    // The loop never ends (the warp's number does not change), so it is only planned.
    let (after, plan) = planned(&func);
    let join = plan.splits().next().unwrap().join.unwrap();
    assert_eq!(after.block_successors(join).count(), 1);
}

#[test]
fn a_block_of_two_conditions_is_run_once() {
    let func = kernel(
        "   v9 = iconst.i32 2
            v8 = band v1, v9
            brif v1, block2, block1
        block1: brif v8, block2, block3
        block2: call fn1(v1)
            jump block4
        block3: jump block4
        block4: return",
    );
    assert!(runs(&func).1 > 0);
}

#[test]
fn a_divergent_loop_is_masked() {
    let func = kernel(
        "   v9 = iconst.i32 1
            v8 = band v1, v0
            jump block1(v9)
        block1(v3: i32): v4 = icmp ult v3, v8
            brif v4, block2, block3
        block2: call fn1(v3)
            v5 = iadd v3, v9
            jump block1(v5)
        block3: call fn1(v3)
            return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 1);
    assert!(parted > 0);
}

#[test]
fn a_return_in_a_uniform_loop_is_a_divergent_loop() {
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v4 = icmp ult v3, v0
            brif v4, block2, block3
        block2: v5 = iadd v3, v9
            v6 = icmp eq v1, v5
            brif v6, block4, block1(v5)
        block3: call fn1(v3)
            return
        block4: call fn1(v5)
            return",
    );
    assert!(runs(&func).1 > 0);
}

/// block4 has an entry beside the divergent branch, so the region begins at the header and ends with the
/// iteration.
#[test]
fn a_loop_is_left_by_all_out_of_a_region_that_ends_with_the_round() {
    let func = kernel(
        "   v9 = iconst.i32 1
            v7 = iconst.i32 2
            v8 = band v1, v9
            v6 = band v1, v7
            v10 = iconst.i32 5
            v11 = iconst.i32 3
            jump block1(v9)
        block1(v3: i32): v4 = iadd v3, v9
            v5 = icmp eq v4, v11
            v12 = icmp uge v4, v10
            brif v5, block2, block3
        block2: brif v8, block4, block5
        block3: call fn1(v3)
            brif v12, block8, block4
        block4: call fn1(v8)
            jump block6
        block5: call fn1(v6)
            jump block6
        block6: jump block1(v4)
        block8: call fn1(v3)
            return",
    );
    assert!(runs(&func).1 > 0);
}

#[test]
fn returns_on_both_sides_join() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: call fn1(v0)
            return
        block2: return",
    );
    assert!(runs(&func).1 > 0);
}

#[test]
fn traps_do_not_move_the_join() {
    let func = kernel(
        "   v9 = iconst.i32 100
            v8 = icmp eq v1, v9
            trapnz v8, user1
            brif v1, block1, block2
        block1: trapnz v8, user2
            jump block2
        block2: call fn1(v1)
            return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 3);
    assert!(plan.splits().all(|split| split.join.is_some()));
    assert!(parted > 0);
}

#[test]
fn a_trap_block_may_be_shared() {
    let func = kernel(
        "   v9 = iconst.i32 6
            v8 = icmp eq v1, v9
            brif v8, block3, block1
        block1: call fn1(v1)
            v7 = icmp eq v1, v0
            brif v7, block3, block2
        block2: return
        block3: trap user1",
    );
    runs(&func);
}

#[test]
fn a_way_to_a_trap_may_come_from_behind_the_join() {
    // No return can be reached from block1, so block2 is where the lanes of block0 join.
    let func = kernel(
        "   brif v1, block1, block2
        block1: call fn1(v0)
            jump block3
        block2: brif v2, block1, block4
        block3: trap user1
        block4: return",
    );
    assert!(runs(&func).1 > 0);
}

#[test]
fn both_sides_may_trap() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: trap user1
        block2: trap user2",
    );
    let (plan, _) = runs(&func);
    assert_eq!(plan.splits().next().unwrap().join, None);
}

#[test]
fn divergent_tables_are_chains_of_splits() {
    let func = kernel(
        "   br_table v1, block4, [block1, block2, block1, block4, block3, block2]
        block1: call fn1(v0)
            jump block5
        block2: call fn1(v1)
            jump block5
        block3: call fn1(v2)
            jump block5
        block4: jump block5
        block5: call fn1(v0)
            return",
    );
    let (plan, parted) = runs(&func);
    assert_eq!(plan.splits().len(), 3);
    assert!(parted >= 3);
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let text = "   brif v1, block1, block2
        block1: jump block3
        block2: jump block3
        block3: return";
    let (after, good) = planned(&kernel(text));
    let split = good.splits().next().unwrap();
    let join = split.join.unwrap();
    let with = |joins: &[Block]| {
        let mut plan = Plan::default();
        plan.add(Split { join: None, ..split });
        plan.joins.extend(joins.iter().copied());
        check(&after, &plan)
    };
    assert_eq!(with(&[join]), Ok(()));
    assert!(matches!(with(&[]), Err(Imbalance::OpenAtReturn { .. })));
    let source = after.layout.inst_block(split.branch).unwrap();
    let sides: Vec<Block> = after.block_successors(source).collect();
    let [one, other] = sides[..] else { panic!("two sides") };
    assert!(matches!(with(&[one, other]), Err(Imbalance::TwoJoins { .. })));
    // The test does not depend on which of the two paths is found first.
    assert!(with(&[one]).is_err());
    assert!(with(&[join, other]).is_err());
    let entry = after.layout.entry_block().unwrap();
    assert_eq!(with(&[entry, join]), Err(Imbalance::NothingToJoin { block: entry }));
}

/// An inner loop around `edge`, which continues it or goes with other values to the header of the outer loop.
/// The inner loop reads `v10`, which the outer header gets from that edge.
fn on_to_the_outer_header(outer: &str, edge: &str) -> String {
    format!(
        "   v3 = iconst.i32 0
            v4 = iconst.i32 5
            jump block1(v1, v3, v4)
        block1(v10: i32, v11: i32, v12: i32):
            {outer}
        block5:
            jump block2(v11, v12)
        block2(v20: i32, v21: i32):
            v22 = iadd v20, v10
            v23 = iconst.i32 1
            v24 = isub v21, v23
            call fn1(v10)
            brif v24, block3, block4(v22)
        block3:
            v30 = iadd v1, v21
            v31 = band v30, v23
            v32 = iconst.i32 100
            v33 = iadd v10, v32
            {edge}
        block4(v40: i32):
            call fn1(v40)
            return"
    )
}

#[test]
fn lanes_that_stay_in_an_inner_loop_keep_what_others_set_anew() {
    let outer = [
        "jump block5",
        "brif v2, block5, block4(v12)",
        "v13 = iconst.i32 140
         v14 = icmp slt v10, v13
         brif v14, block5, block4(v12)",
        "v13 = iadd v10, v12
         v14 = icmp slt v13, v4
         brif v14, block4(v13), block5",
    ];
    let edges = [
        "brif v31, block2(v22, v24), block1(v33, v22, v24)",
        "brif v31, block1(v33, v22, v24), block2(v22, v24)",
        "brif v31, block6, block1(v33, v22, v24)
         block6: call fn1(v10)
             jump block2(v22, v24)",
    ];
    for outer in outer {
        for edge in edges {
            runs(&kernel(&on_to_the_outer_header(outer, edge)));
        }
    }
}
