//! Tests of post-dominators, meeting points and uniformity on small functions.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Block, Function, Value};

use super::cause::Cause;
use super::{Flow, Known, Uniformity};
use crate::width::Width;

fn kernel(body: &str) -> Function {
    let text = format!(
        "function %f(i32) {{
            fn0 = %harp_lane_id() -> i32
            fn1 = %harp_warp_id() -> i32
            fn2 = %harp_assume_uniform(i32) -> i32
            fn3 = %use(i32)
        block0(v0: i32):
            v1 = call fn0()
            v2 = call fn1()
            {body}
        }}"
    );
    cranelift_reader::parse_functions(&text).unwrap().remove(0)
}

fn block(number: usize) -> Block {
    Block::new(number)
}

/// The numbers of the values among `values` that are divergent.
fn divergent(func: &Function, values: &[usize]) -> Vec<usize> {
    let facts = Uniformity::compute(func, Known::KERNEL);
    let is_divergent = |&number: &usize| facts.divergence(func, Value::new(number)).is_some();
    values.iter().copied().filter(is_divergent).collect()
}

/// The numbers of the blocks that end in a divergent branch.
fn branches(func: &Function) -> Vec<u32> {
    let facts = Uniformity::compute(func, Known::KERNEL);
    let all = func.layout.blocks();
    all.filter(|&block| facts.branch_divergence(block).is_some()).map(Block::as_u32).collect()
}

#[test]
fn lanes_meet_after_a_diamond() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: jump block3
        block2: jump block3
        block3: return",
    );
    let flow = Flow::compute(&func);
    for from in 0..3 {
        assert!(flow.levels().is_after(block(from), block(3)));
    }
    for other in 0..3 {
        assert!(!flow.levels().is_after(block(3), block(other)));
        assert!(!flow.levels().is_after(block(0), block(other)));
    }
    assert!(flow.reaches_return(block(3)));
}

#[test]
fn traps_and_endless_loops_do_not_count_as_ways_out() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: brif v2, block3, block4
        block2: brif v2, block4, block5
        block3: trap user1
        block4: return
        block5: jump block5",
    );
    let flow = Flow::compute(&func);
    for from in 0..3 {
        assert!(flow.levels().is_after(block(from), block(4)), "block{from}");
    }
    for nowhere in [3, 5] {
        assert!(!flow.levels().is_after(block(nowhere), block(4)));
        assert!(!flow.reaches_return(block(nowhere)));
    }
}

#[test]
fn several_returns_have_no_block_in_common() {
    let func = kernel(
        "   brif v1, block1, block2
        block1: return
        block2: return",
    );
    let flow = Flow::compute(&func);
    for end in [1, 2] {
        assert!(!flow.levels().is_after(block(0), block(end)));
    }
    assert!(flow.reaches_return(block(0)));
}

#[test]
fn unreachable_blocks_have_no_part_in_it() {
    let func = kernel(
        "   jump block2
        block1: jump block2
        block2: return",
    );
    let flow = Flow::compute(&func);
    assert_eq!(flow.predecessors(block(2)).collect::<Vec<_>>(), [block(0)]);
    assert_eq!(flow.blocks().collect::<Vec<_>>(), [block(0), block(2)]);
}

#[test]
fn divergence_follows_data() {
    let func = kernel(
        "   v3 = iadd v0, v2
            v4 = iadd v1, v3
            v5 = call fn2(v4)
            v6 = isub v5, v3
            v7 = load.i32 notrap aligned readonly can_move v0
            v8 = load.i32 notrap aligned v0
            v9 = load.i32 notrap aligned readonly can_move v4
            v10 = iconst.i32 5
            call fn3(v6)
            return",
    );
    assert_eq!(divergent(&func, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), [1, 4, 8, 9]);
}

#[test]
fn each_lane_has_its_own_stack() {
    let text = "function %f(i32) {
        ss0 = explicit_slot 8
    block0(v0: i32):
        v1 = stack_addr.i32 ss0
        v2 = load.i32 notrap aligned readonly v1
        return
    }";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    assert_eq!(divergent(&func, &[0, 1, 2]), [1, 2]);
}

#[test]
fn a_parameter_diverges_where_lanes_meet() {
    let body = |condition: &str| {
        kernel(&format!(
            "   v9 = iconst.i32 1
                brif {condition}, block1, block2
            block1: jump block3(v0)
            block2: jump block3(v9)
            block3(v3: i32): jump block4(v3)
            block4(v4: i32): return"
        ))
    };
    assert_eq!(divergent(&body("v1"), &[3, 4]), [3, 4]);
    assert!(divergent(&body("v2"), &[3, 4]).is_empty());
    let facts = Uniformity::compute(&body("v1"), Known::KERNEL);
    assert!(matches!(facts.divergence(&body("v1"), Value::new(3)), Some(Cause::Merge(_))));
}

#[test]
fn lanes_meet_before_the_post_dominator_too() {
    // block3 is reached from both sides of block0; block5 is where all paths end.
    let func = kernel(
        "   v9 = iconst.i32 1
            brif v1, block1, block2
        block1: brif v2, block3(v0), block5(v0)
        block2: jump block3(v9)
        block3(v3: i32): jump block4
        block4: jump block5(v9)
        block5(v5: i32): return",
    );
    assert_eq!(divergent(&func, &[3, 5]), [3, 5]);
    assert_eq!(branches(&func), [0]);
}

#[test]
fn a_uniform_loop_inside_a_divergent_branch_keeps_its_counter() {
    let func = kernel(
        "   v9 = iconst.i32 1
            brif v1, block1(v9), block4(v9)
        block1(v3: i32): v4 = icmp ult v3, v0
            brif v4, block2, block3
        block2: v5 = iadd v3, v9
            jump block1(v5)
        block3: call fn3(v3)
            jump block4(v3)
        block4(v6: i32): return",
    );
    assert_eq!(divergent(&func, &[3, 4, 5, 6]), [6]);
    assert_eq!(branches(&func), [0]);
}

#[test]
fn a_divergent_branch_inside_a_loop_does_not_reach_the_counter() {
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v4 = icmp ult v3, v0
            brif v4, block2, block5
        block2: v6 = icmp ult v1, v3
            brif v6, block3, block4(v9)
        block3: jump block4(v0)
        block4(v7: i32): v5 = iadd v3, v9
            jump block1(v5)
        block5: return",
    );
    assert_eq!(divergent(&func, &[3, 4, 5, 6, 7]), [6, 7]);
    assert_eq!(branches(&func), [2]);
}

#[test]
fn a_divergent_exit_makes_values_diverge_outside_only() {
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v5 = iadd v3, v9
            v4 = icmp ult v5, v1
            v8 = icmp ult v3, v0
            brif v4, block2, block3(v5)
        block2: brif v8, block1(v5), block3(v9)
        block3(v6: i32): v7 = iadd v3, v3
            v10 = iadd v9, v9
            brif v7, block4, block5
        block4: jump block5
        block5: return",
    );
    assert_eq!(divergent(&func, &[3, 5, 8, 4, 6, 7, 10]), [4, 6, 7]);
    assert_eq!(branches(&func), [1, 3]);
    let facts = Uniformity::compute(&func, Known::KERNEL);
    assert!(matches!(facts.divergence(&func, Value::new(7)), Some(Cause::Iteration { .. })));
}

#[test]
fn lanes_wait_for_each_other_at_the_end_of_a_round() {
    // All exits lead through block2, but the lanes that reach it are all in the same iteration.
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v5 = iadd v3, v9
            v4 = icmp ult v5, v1
            brif v4, block2, block3
        block2: v8 = icmp ult v3, v0
            brif v8, block3, block4
        block3: jump block1(v5)
        block4: v7 = iadd v3, v3
            return",
    );
    assert_eq!(divergent(&func, &[3, 5, 7, 8, 9]), [7]);
}

#[test]
fn a_uniform_exit_behind_a_divergent_branch_parts_iterations() {
    // Only the lanes in block2 test the uniform condition; the others may run one more iteration.
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v5 = iadd v3, v9
            v4 = icmp ult v5, v1
            brif v4, block2, block3
        block2: v8 = icmp ult v3, v0
            brif v8, block3, block4
        block3: v6 = icmp ult v5, v0
            brif v6, block1(v5), block4
        block4: v7 = iadd v3, v3
            return",
    );
    assert_eq!(divergent(&func, &[3, 5, 7, 8, 6]), [7]);
}

#[test]
fn a_bounds_check_does_not_part_iterations() {
    let func = kernel(
        "   v9 = iconst.i32 1
            jump block1(v9)
        block1(v3: i32): v5 = iadd v3, v9
            v4 = icmp ult v5, v1
            brif v4, block2, block3
        block2: trap user1
        block3: v8 = icmp ult v3, v0
            brif v8, block1(v5), block4
        block4: v7 = iadd v3, v3
            return",
    );
    assert!(divergent(&func, &[3, 5, 7, 8]).is_empty());
    assert_eq!(branches(&func), [1]);
}

#[test]
fn irreducible_control_flow_is_divergent() {
    let func = kernel(
        "   v9 = iconst.i32 1
            brif v2, block1, block2
        block1: brif v2, block2, block3
        block2: brif v2, block1, block3
        block3: return",
    );
    assert_eq!(divergent(&func, &[0, 2, 9]), [9]);
    let constant = Uniformity::compute(&func, Known::KERNEL).divergence(&func, Value::new(9));
    assert_eq!(constant, Some(Cause::Irreducible));
}

#[test]
fn the_chain_of_causes_ends_at_the_source() {
    let func = kernel(
        "   v3 = iadd v1, v0
            brif v3, block1, block2(v0)
        block1: jump block2(v2)
        block2(v4: i32): v5 = icmp eq v4, v0
            brif v5, block3, block4
        block3: jump block4
        block4: return",
    );
    let facts = Uniformity::compute(&func, Known::KERNEL);
    let text = facts.explain_branch(&func, block(2));
    assert_eq!(text, "block2 <- v5 <- v4 <- merge after inst3 <- v3 <- v1 <- %harp_lane_id");
    assert!(facts.dump(&func).contains("v3: divergent, v1\n"));
}

#[test]
fn values_are_as_wide_as_the_narrowest_thing_that_they_depend_on() {
    let text = "function %f(i32) {
        fn0 = %harp_lane_id() -> i32
        fn1 = %harp_warp_id() -> i32
        fn2 = %harp_group_id_x() -> i32
        fn3 = %harp_lane_count() -> i32
        fn4 = %harp_local_size_y() -> i32
        fn5 = %harp_core_id() -> i32
        fn6 = %harp_assume_uniform(i32) -> i32
        fn7 = %harp_any(i8) -> i8
        fn8 = %harp_ballot(i8) -> i32
        fn9 = %harp_shuffle(i32, i32) -> i32
        fn10 = %harp_group_memory() -> i32
    block0(v0: i32):
        v1 = call fn0()
        v2 = call fn1()
        v3 = call fn2()
        v4 = call fn3()
        v5 = call fn4()
        v6 = call fn5()
        v7 = iconst.i32 1
        v8 = iadd v0, v7
        v9 = iadd v3, v8
        v10 = iadd v2, v9
        v11 = iadd v1, v10
        v12 = call fn6(v1)
        v13 = call fn6(v3)
        v14 = icmp ult v1, v7
        v15 = icmp ult v0, v7
        v16 = call fn7(v14)
        v17 = call fn7(v15)
        v18 = call fn8(v15)
        v19 = call fn9(v7, v7)
        v20 = call fn10()
        v21 = load.i32 notrap aligned readonly can_move v20
        v22 = load.i32 notrap aligned readonly can_move v0
        return
    }";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let facts = Uniformity::compute(&func, Known::KERNEL);
    let of_width = |width| {
        let all = (0..23).filter(|&number| facts.width(&func, Value::new(number)) == width);
        all.collect::<Vec<usize>>()
    };
    assert_eq!(of_width(Width::Thread), [1, 11, 14, 19]);
    assert_eq!(of_width(Width::Warp), [2, 10, 12, 16, 18]);
    assert_eq!(of_width(Width::Group), [3, 5, 6, 9, 13, 20, 21]);
    assert_eq!(of_width(Width::Grid), [0, 4, 7, 8, 15, 17, 22]);
}

#[test]
fn what_warps_decide_differs_from_warp_to_warp() {
    // Warps choose a side at block0, and when to leave the loop.
    let func = kernel(
        "   v9 = iconst.i32 1
            brif v2, block1, block2
        block1: jump block3(v0)
        block2: jump block3(v9)
        block3(v3: i32): jump block4(v9)
        block4(v4: i32): v5 = iadd v4, v9
            v6 = icmp ult v5, v2
            brif v6, block4(v5), block5
        block5: v7 = iadd v5, v9
            v8 = iadd v3, v9
            return",
    );
    let facts = Uniformity::compute(&func, Known::KERNEL);
    let width = |number| facts.width(&func, Value::new(number));
    assert_eq!(
        [3, 4, 5, 6, 7, 8].map(width),
        [Width::Warp, Width::Grid, Width::Grid, Width::Warp, Width::Warp, Width::Warp]
    );
    assert!(branches(&func).is_empty());
    assert_eq!(facts.divergence(&func, Value::new(7)), None);
    assert!(facts.dump(&func).contains("v7: uniform in warp, v5 of the iteration left by"));
}

#[test]
fn lanes_that_leave_the_kernel_early_do_not_count_for_the_others() {
    let func = kernel(
        "   v9 = iconst.i32 1
            v8 = icmp ult v1, v0
            brif v8, block1, block4
        block1: jump block2(v9)
        block2(v3: i32): v4 = iadd v3, v9
            v5 = icmp ult v4, v0
            brif v5, block2(v4), block3
        block3: v6 = iadd v4, v9
            jump block4
        block4: return",
    );
    assert_eq!(divergent(&func, &[3, 4, 5, 6, 8, 9]), [8]);
    assert_eq!(branches(&func), [0]);
}

#[test]
fn a_block_that_is_a_loop_passes_on_what_it_gets_from_itself() {
    let func = kernel(
        "   jump block1(v2)
        block1(v3: i32): v4 = iadd v3, v2
            v5 = iadd v4, v1
            v6 = icmp ult v4, v0
            brif v2, block2, block1(v5)
        block2: return",
    );
    assert_eq!(divergent(&func, &[3, 4, 5, 6]), [3, 4, 5, 6]);
}
