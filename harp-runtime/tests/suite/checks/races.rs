//! Accesses of several work-items to the same memory.

use harp_runtime::jit::ir::AtomicRmwOp;
use harp_runtime::prelude::*;
use harp_runtime::{FindingKind, Target};

use super::{MACHINES, compiled, device, findings, one, stack_slot, words};

#[test]
fn races_within_a_group() {
    for arch in MACHINES {
        let device = device(arch);
        let kernel = |waits: bool| {
            compiled(device.arch(), &move |b| {
                let word = b.word_int();
                let tile = b.group_array(word, 8);
                let (own, to) = (b.local_id(0), b.param(ParamType::Pointer));
                let i = b.global_id(0);
                b.store_elem(i, tile, own);
                if waits {
                    b.barrier();
                }
                let seven = b.word_const(7);
                let other = b.ins().isub(seven, own);
                let value = b.load_elem(word, tile, other);
                b.store_elem(value, to, i);
            })
        };
        let to = words(&device, 64).0;
        let groups = LaunchConfig::grid_1d(64).with_groups_1d(8);
        assert_eq!(findings(&device, &kernel(true), groups, &[to()]), None, "{arch}");
        let found = one(&device, &kernel(false), groups, &[to()]);
        let FindingKind::Race { other, .. } = &found.kind else { panic!("{found}") };
        assert_eq!((found.access.group, other.group), (Some([0, 0, 0]), Some([0, 0, 0])));
        assert_ne!(found.access.work_item, other.work_item);
        assert_ne!(found.access.place, other.place);
    }
}

#[test]
fn races_through_pointers_that_are_loaded() {
    let device = device("harp32");
    let kernel = compiled(device.arch(), &|b| {
        let word = b.word_int();
        let (shared, slot) = (b.group_array(word, 4), stack_slot(b, word.bytes()));
        let (i, zero) = (b.global_id(0), b.word_const(0));
        b.store_elem(shared, slot, zero);
        let loaded = b.load_elem(word, slot, zero);
        b.store_elem(i, loaded, zero);
    });
    let found = one(&device, &kernel, LaunchConfig::grid_1d(8).with_groups_1d(8), &[]);
    assert!(matches!(found.kind, FindingKind::Race { .. }), "{found}");
    assert!(matches!(found.target, Some(Target::Group { bytes: 16, .. })), "{found}");
}

#[test]
fn work_items_of_a_group_wait_at_the_same_barrier() {
    let device = device("4w32/16/8/4");
    let kernel = |apart: bool| {
        compiled(device.arch(), &move |b| {
            let (to, own, i) = (b.buffer::<i32>("to"), b.local_id(0), b.global_id(0));
            let low = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, own, 8);
            let value = b.word_const(1);
            // Only whole warps part, else they would trap.
            if apart {
                b.if_else(low, |b| b.barrier(), |b| b.barrier());
            } else {
                b.if_then(low, |b| b.store(to, i, value));
                b.barrier();
            }
            b.store(to, i, value);
        })
    };
    let to = device.buffer_zeroed::<i32>(32).unwrap();
    let groups = LaunchConfig::grid_1d(32).with_groups_1d(16);
    assert_eq!(findings(&device, &kernel(false), groups, &[Arg::from(&to)]), None);
    let found = one(&device, &kernel(true), groups, &[Arg::from(&to)]);
    let FindingKind::Barriers { other } = &found.kind else { panic!("{found}") };
    assert_eq!((found.count, found.access.group), (2, other.group));
    assert_ne!(found.access.place, other.place);
    assert!(found.to_string().starts_with("different barriers: barrier by work-item ("), "{found}");
}

#[test]
fn races_between_groups_and_work_items() {
    let device = device("4w32/16/32/16+x");
    let (all, none) = (device.buffer_zeroed::<i32>(4096).unwrap(), LaunchConfig::grid_1d(256));
    // Neighbours read what others write.
    let neighbours = compiled(device.arch(), &|b| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let next = b.ins().iadd_imm_s(i, 1);
        let value = b.load(data, next);
        b.store(data, i, value);
    });
    let found = one(&device, &neighbours, none, &[Arg::from(&all)]);
    assert!(matches!(found.kind, FindingKind::Race { .. }), "{found}");
    // A barrier orders only its own group.
    let barrier = |by: i64| {
        compiled(device.arch(), &move |b| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            b.store(data, i, i);
            b.barrier();
            let other = b.ins().bxor_imm_s(i, by);
            let value = b.load(data, other);
            b.barrier();
            b.store(data, i, value);
        })
    };
    let groups = none.with_groups_1d(16);
    assert_eq!(findings(&device, &barrier(15), groups, &[Arg::from(&all)]), None);
    let found = findings(&device, &barrier(16), groups, &[Arg::from(&all)]).unwrap();
    assert!(found.list.iter().all(|one| matches!(one.kind, FindingKind::Race { .. })), "{found}");
    // Two stores to one place, of different values and of the same.
    let stores = |same: bool| {
        compiled(device.arch(), &move |b| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            let zero = b.word_const(0);
            let value = if same { zero } else { i };
            b.store(data, zero, value);
        })
    };
    assert_eq!(findings(&device, &stores(true), none, &[Arg::from(&all)]), None);
    let found = one(&device, &stores(false), none, &[Arg::from(&all)]);
    assert_eq!(found.count, 255);
    // Atomic operations are in order, but not with others.
    let counts = |reads: bool| {
        compiled(device.arch(), &move |b| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            let (zero, one) = (b.word_const(0), b.word_const(1));
            b.atomic(AtomicRmwOp::Add, data, zero, one);
            let at = if reads { zero } else { b.ins().iadd_imm_s(i, 1) };
            let value = b.load(data, at);
            let to = b.ins().iadd_imm_s(i, 300);
            b.store(data, to, value);
        })
    };
    assert_eq!(findings(&device, &counts(false), none, &[Arg::from(&all)]), None);
    let found = findings(&device, &counts(true), none, &[Arg::from(&all)]).unwrap();
    assert!(!found.list.is_empty());
    // Neighbouring bytes of a word are no race.
    let bytes = compiled(device.arch(), &|b| {
        let (data, i) = (b.buffer::<u8>("data"), b.global_id(0));
        let value = b.ins().ireduce(types::I8, i);
        b.store(data, i, value);
    });
    let data = device.buffer_zeroed::<u8>(256).unwrap();
    assert_eq!(findings(&device, &bytes, none, &[Arg::from(&data)]), None);
}
