//! Reads of what nobody has written, races, barriers that not all work-items reach.

use harp_runtime::jit::ir::AtomicRmwOp;
use harp_runtime::{FindingKind, TrapKind};

use super::{Case, GROUP, ITEMS, MACHINES, Outcome, check, is_race, outcome};

#[test]
fn uninitialized_memory() {
    check(
        |finding| finding.kind == FindingKind::Uninitialized,
        &[
            [
                ("a buffer that nobody has written", &|k| k.read(k.raw, k.i)),
                ("a buffer that the work-item has written", &|k| {
                    k.write(k.raw, k.i, k.i);
                    k.read(k.raw, k.i);
                }),
            ],
            [
                ("half of a buffer", &|k| {
                    let (is_low, raw, i) = (k.is_below(k.i, ITEMS / 2), k.raw, k.i);
                    k.b.if_then(is_low, |b| b.store(raw, i, i));
                    k.read(k.raw, k.i);
                }),
                ("half of a buffer, of which that half is read", &|k| {
                    let (is_low, raw, to, i) = (k.is_below(k.i, ITEMS / 2), k.raw, k.to, k.i);
                    k.b.if_then(is_low, |b| b.store(raw, i, i));
                    k.b.if_then(is_low, |b| {
                        let value = b.load(raw, i);
                        b.store(to, i, value);
                    });
                }),
            ],
            [
                ("a group's memory, in which only the first item writes", &|k| {
                    let (tile, is_first) = (k.tile("tile", GROUP), k.is_below(k.own, 1));
                    let (own, i) = (k.own, k.i);
                    k.b.if_then(is_first, |b| b.store(tile, own, i));
                    k.b.barrier();
                    k.read(tile, k.own);
                }),
                ("a group's memory, where the first item writes", &|k| {
                    let (tile, is_first) = (k.tile("tile", GROUP), k.is_below(k.own, 1));
                    let (own, i, zero) = (k.own, k.i, k.int(0));
                    k.b.if_then(is_first, |b| b.store(tile, own, i));
                    k.b.barrier();
                    k.read(tile, zero);
                }),
            ],
            [
                ("the second element of a slot", &|k| {
                    let (slot, zero, one) = (k.slot(2), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.read(slot, one);
                }),
                ("the first element of a slot", &|k| {
                    let (slot, zero) = (k.slot(2), k.int(0));
                    k.write(slot, zero, k.i);
                    k.read(slot, zero);
                }),
            ],
        ],
    );
}

#[test]
fn races_within_a_group() {
    check(
        |finding| is_race(finding, true),
        &[
            [
                ("a neighbour's value without a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 1));
                    k.write(tile, k.own, k.i);
                    k.write(tile, at, k.own);
                }),
                ("a neighbour's value behind a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 1));
                    k.write(tile, k.own, k.i);
                    k.b.barrier();
                    k.write(tile, at, k.own);
                }),
            ],
            [
                ("all items add to one element", &|k| {
                    let (tile, zero) = (k.tile("sum", 1), k.int(0));
                    k.write(tile, zero, zero);
                    k.b.barrier();
                    let sum = k.b.load(tile, zero);
                    let sum = k.b.ins().iadd(sum, k.i);
                    k.write(tile, zero, sum);
                }),
                ("all items add to one element atomically", &|k| {
                    let (tile, zero) = (k.tile("sum", 1), k.int(0));
                    k.write(tile, zero, zero);
                    k.b.barrier();
                    k.b.atomic(AtomicRmwOp::Add, tile, zero, k.i);
                }),
            ],
            [
                ("in a buffer, a neighbour of the group", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, k.i, k.i);
                    k.write(k.raw, at, k.own);
                }),
                ("in a buffer, each its own element", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, at, k.i);
                    k.write(k.raw, at, k.own);
                }),
            ],
            [
                ("the next round begins before all have read", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 3));
                    for round in 0..2 {
                        let value = k.plus(k.i, round);
                        k.write(tile, k.own, value);
                        k.b.barrier();
                        k.read(tile, at);
                    }
                }),
                ("each round ends with a barrier", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.xor(k.own, 3));
                    for round in 0..2 {
                        let value = k.plus(k.i, round);
                        k.write(tile, k.own, value);
                        k.b.barrier();
                        k.read(tile, at);
                        k.b.barrier();
                    }
                }),
            ],
        ],
    );
}

#[test]
fn races_between_groups() {
    check(
        |finding| is_race(finding, false),
        &[
            [
                ("the same element of the next group", &|k| {
                    let at = k.xor(k.i, GROUP);
                    k.write(k.raw, k.i, k.i);
                    k.b.barrier();
                    k.write(k.raw, at, k.own);
                }),
                ("the mirrored element of the own group", &|k| {
                    let at = k.xor(k.i, GROUP - 1);
                    k.write(k.raw, k.i, k.i);
                    k.b.barrier();
                    k.write(k.raw, at, k.own);
                }),
            ],
            [
                ("the first item of each group writes one element", &|k| {
                    let (is_first, to, group, zero) =
                        (k.is_below(k.own, 1), k.to, k.group, k.int(0));
                    k.b.if_then(is_first, |b| b.store(to, zero, group));
                }),
                ("the first item of each group writes the same value", &|k| {
                    let (is_first, to, seven, zero) =
                        (k.is_below(k.own, 1), k.to, k.int(7), k.int(0));
                    k.b.if_then(is_first, |b| b.store(to, zero, seven));
                }),
            ],
            [
                ("a group reads what the others count", &|k| {
                    let (is_first, to, raw, group, zero, one) =
                        (k.is_below(k.own, 1), k.to, k.raw, k.group, k.int(0), k.int(1));
                    k.b.if_then(is_first, |b| {
                        b.atomic(AtomicRmwOp::Add, to, zero, one);
                        let value = b.load(to, zero);
                        b.store(raw, group, value);
                    });
                }),
                ("a group counts, and takes what it has got", &|k| {
                    let (is_first, to, raw, group, zero, one) =
                        (k.is_below(k.own, 1), k.to, k.raw, k.group, k.int(0), k.int(1));
                    k.b.if_then(is_first, |b| {
                        let value = b.atomic(AtomicRmwOp::Add, to, zero, one);
                        b.store(raw, group, value);
                    });
                }),
            ],
        ],
    );
}

#[test]
fn divergent_barriers() {
    let pairs: [[Case<'_>; 2]; 4] = [
        [
            ("half of the group", &|k| {
                let is_low = k.is_below(k.own, GROUP / 2);
                k.b.if_then(is_low, |b| b.barrier());
            }),
            ("all of the group", &|k| {
                let is_low = k.is_below(k.own, GROUP);
                k.b.if_then(is_low, |b| b.barrier());
            }),
        ],
        [
            ("a round for each item's number", &|k| {
                let (zero, one, own) = (k.int(0), k.int(1), k.own);
                k.b.for_range(zero, own, one, |b, _| b.barrier());
            }),
            ("a round for each group's number", &|k| {
                let (zero, one, group) = (k.int(0), k.int(1), k.group);
                k.b.for_range(zero, group, one, |b, _| b.barrier());
            }),
        ],
        [
            ("some have returned", &|k| {
                let is_low = k.is_below(k.own, 3);
                k.b.return_if(is_low);
                k.b.barrier();
            }),
            ("a whole group has returned", &|k| {
                let is_low = k.is_below(k.group, 1);
                k.b.return_if(is_low);
                k.b.barrier();
            }),
        ],
        [
            ("two barriers on two paths", &|k| {
                let is_low = k.is_below(k.own, 1);
                k.b.if_else(is_low, |b| b.barrier(), |b| b.barrier());
            }),
            ("one barrier behind two paths", &|k| {
                let (is_low, to, i) = (k.is_below(k.own, 1), k.to, k.i);
                k.b.if_else(is_low, |b| b.store(to, i, i), |_| {});
                k.b.barrier();
            }),
        ],
    ];
    for arch in MACHINES {
        for [(wrong, build), (near, right)] in &pairs {
            match outcome(arch, build) {
                Outcome::Trapped(TrapKind::DivergentBarrier { .. } | TrapKind::Deadlock { .. }) => {
                }
                Outcome::Trapped(kind) => panic!("{wrong} on {arch}: {kind:?}"),
                Outcome::Found(list) => panic!("{wrong} on {arch}: {list:?}"),
                Outcome::Right => panic!("{wrong} on {arch}: nothing was found"),
            }
            assert!(matches!(outcome(arch, right), Outcome::Right), "{near} on {arch}");
        }
    }
}
