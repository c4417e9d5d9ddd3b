//! Tests of what is added to loops that wait, as the CLIF shows it.

use cranelift_codegen::ir::{Block, Function};

use super::super::tests::verify;
use super::*;
use crate::analysis::Known;

/// The ways back that a kernel with a lock at `v0` and data at `v1` gets: from which block to which header.
fn ways(body: &str) -> Vec<(Block, Block)> {
    let text = format!(
        "function %f(i32, i32) {{
            fn0 = %harp_barrier()
            fn1 = %harp_lane_id() -> i32
            fn2 = %harp_any(i8) -> i8
        block0(v0: i32, v1: i32):
            v2 = iconst.i32 0
            v3 = iconst.i32 1
            v4 = call fn1()
            {body}
        }}"
    );
    let mut func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
    extend(&mut func, Known::KERNEL.callees);
    verify(&func);
    let found = ways_in(&func);
    extend(&mut func, Known::KERNEL.callees);
    assert_eq!(ways_in(&func), found, "{}", func.display());
    assert_eq!(forget_ways(&mut func), !found.is_empty());
    verify(&func);
    assert_eq!(ways_in(&func), [], "{}", func.display());
    found
}

fn ways_in(func: &Function) -> Vec<(Block, Block)> {
    let way_from = |block| {
        let [to, _] = super::way(func, func.layout.last_inst(block)?)?;
        Some((block, to.block(&func.dfg.value_lists)))
    };
    func.layout.blocks().filter_map(way_from).collect()
}

/// The same of a kernel that begins with a loop which takes the lock, and goes on in block 2.
fn behind_lock(body: &str) -> Vec<(Block, Block)> {
    ways(&format!(
        "jump block1
        block1:
            v5 = atomic_cas.i32 v0, v2, v3
            brif v5, block1, block2
        {body}"
    ))
}

fn way(from: u32, to: u32) -> (Block, Block) {
    (Block::from_u32(from), Block::from_u32(to))
}

#[test]
fn a_lock_is_given_back_in_the_loop() {
    let found = ways(
        "jump block1
        block1:
            v5 = atomic_rmw.i32 xchg v0, v3
            brif v5, block1, block2
        block2:
            v6 = load.i32 v1
            brif v6, block3, block4
        block3:
            store v4, v1
            jump block4
        block4:
            atomic_store v2, v0
            store v2, v1
            return",
    );
    assert_eq!(found, [way(4, 1)]);
}

#[test]
fn a_lock_may_be_given_back_on_several_ways() {
    let found = behind_lock(
        "block2:
            brif v4, block3, block4
        block3:
            atomic_store v2, v0
            jump block5
        block4:
            store v4, v1
            atomic_store v2, v0
            jump block5
        block5:
            v6 = atomic_rmw.i32 add v1, v3
            return",
    );
    assert_eq!(found, [way(3, 1), way(4, 1)]);
}

#[test]
fn all_writes_count_where_one_way_has_none_to_the_lock() {
    let found = behind_lock(
        "block2:
            brif v4, block3, block4
        block3:
            atomic_store v2, v0
            jump block4
        block4:
            v6 = atomic_rmw.i32 add v1, v3
            return",
    );
    assert_eq!(found, [way(4, 1)]);
}

/// `if (lane) { while (!flag) {} } flag = 1`: the loop is entered behind the branch, and by the way back.
#[test]
fn what_the_loop_uses_is_handed_on() {
    let found = ways(
        "brif v4, block1, block3
        block1:
            v5 = iadd v0, v4
            jump block2
        block2:
            v6 = atomic_load.i32 v5
            brif v6, block3, block2
        block3:
            atomic_store v3, v0
            return",
    );
    assert_eq!(found, [way(3, 2)]);
}

#[test]
fn others_may_write_on_another_way() {
    let found = ways(
        "brif v4, block1, block2
        block1:
            v5 = atomic_load.i32 v0
            brif v5, block3, block1
        block2:
            atomic_store v3, v0
            jump block3
        block3:
            store v4, v1
            return",
    );
    assert_eq!(found, [way(3, 1)]);
}

/// `for (..) { while (!flag[i]) {} } flag[mine] = 1`
#[test]
fn the_write_may_stand_behind_a_loop_around() {
    let found = ways(
        "jump block1(v2)
        block1(v5: i32):
            v6 = icmp ult v5, v4
            brif v6, block2, block5
        block2:
            v7 = iadd v0, v5
            jump block3
        block3:
            v8 = atomic_load.i32 v7
            brif v8, block4, block3
        block4:
            v9 = iadd v5, v3
            jump block1(v9)
        block5:
            v10 = iadd v0, v4
            atomic_store v3, v10
            return",
    );
    assert_eq!(found, [way(0, 3), way(5, 3)]);
}

/// Those that need not wait return by themselves, and those that do wait in a loop.
#[test]
fn others_may_write_where_no_way_from_the_loop_leads() {
    let found = ways(
        "brif v4, block1, block5
        block1:
            jump block2
        block2:
            v5 = atomic_load.i32 v0
            brif v5, block3, block2
        block3:
            v6 = load.i32 v1
            brif v6, block1, block4
        block4:
            atomic_store v3, v0
            return
        block5:
            atomic_store v3, v0
            return",
    );
    assert_eq!(found, [way(0, 2), way(6, 2)]);
}

#[test]
fn accesses_that_a_fence_orders_count() {
    let spin = |fence: &str| {
        ways(&format!(
            "jump block1
            block1:
                {fence}
                v5 = load.i32 v0
                brif v5, block2, block1
            block2:
                store v3, v1
                {fence}
                return"
        ))
    };
    assert_eq!(spin("sequence_point"), [way(2, 1)]);
    assert_eq!(spin("fence"), [way(2, 1)]);
    assert_eq!(spin(""), []);
}

#[test]
fn an_exchange_that_is_repeated_waits_for_nobody() {
    let found = ways(
        "v5 = load.i32 v0
            jump block1(v5)
        block1(v6: i32):
            v7 = iadd v6, v4
            v8 = atomic_cas.i32 v0, v6, v7
            v9 = icmp eq v8, v6
            brif v9, block2, block1(v8)
        block2:
            v10 = atomic_rmw.i32 add v1, v3
            return",
    );
    assert_eq!(found, []);
}

#[test]
fn loops_that_count_wait_for_nobody() {
    let found = ways(
        "jump block1(v2)
        block1(v5: i32):
            v6 = atomic_rmw.i32 add v0, v5
            v7 = iadd v5, v3
            v10 = iconst.i32 10
            v8 = icmp ult v7, v10
            brif v8, block1(v7), block2
        block2:
            v9 = atomic_rmw.i32 add v1, v3
            return",
    );
    assert_eq!(found, []);
}

/// Nobody may come to the vote or the barrier in another round than the program's.
#[test]
fn no_way_crosses_a_place_where_work_items_gather() {
    for gathers in ["call fn0()", "v9 = ireduce.i8 v4\n v10 = call fn2(v9)"] {
        let behind = |before: &str, after: &str, inside: &str| {
            ways(&format!(
                "jump block1
                block1:
                    {inside}
                    v5 = atomic_rmw.i32 xchg v0, v3
                    brif v5, block1, block2
                block2:
                    {before}
                    atomic_store v2, v0
                    {after}
                    jump block3
                block3:
                    atomic_store v2, v1
                    return"
            ))
        };
        assert_eq!(behind(gathers, "", ""), []);
        assert_eq!(behind("", gathers, ""), [way(2, 1)]);
        assert_eq!(behind("", "", gathers), []);
        let beside = ways(&format!(
            "jump block1
            block1:
                v5 = atomic_rmw.i32 xchg v0, v3
                brif v5, block1, block2
            block2:
                brif v4, block3, block4
            block3:
                {gathers}
                jump block4
            block4:
                atomic_store v2, v0
                return"
        ));
        assert_eq!(beside, []);
        let around = ways(&format!(
            "jump block1
            block1:
                jump block2
            block2:
                v5 = atomic_load.i32 v0
                brif v5, block3, block2
            block3:
                atomic_store v2, v0
                {gathers}
                brif v4, block1, block4
            block4:
                return"
        ));
        assert_eq!(around, [way(3, 2)]);
    }
}
