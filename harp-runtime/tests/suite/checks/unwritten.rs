//! Loads of memory that nobody has written.

use harp_runtime::FindingKind;
use harp_runtime::jit::COPIED;
use harp_runtime::jit::ir::MemFlagsData;
use harp_runtime::prelude::*;

use super::{WITH_X, compiled, device, findings, line, one, stack_slot};

#[test]
fn memory_that_nobody_has_written() {
    let device = device("4w32/16/32/16+x");
    let sum = compiled(device.arch(), &|b| {
        let (from, to, i) = (b.buffer::<i32>("from"), b.buffer::<i32>("to"), b.global_id(0));
        let value = b.load(from, i);
        b.store(to, i, value);
    });
    let grid = LaunchConfig::grid_1d(100);
    let from = device.buffer_uninitialized::<i32>(100).unwrap();
    let to = device.buffer_uninitialized::<i32>(100).unwrap();
    let found = one(&device, &sum, grid, &[Arg::from(&from), Arg::from(&to)]);
    assert_eq!((&found.kind, found.count), (&FindingKind::Uninitialized, 100));
    // A part of it is written by the host.
    device.fill(&from.view(10..90).unwrap(), 1).unwrap();
    let found = one(&device, &sum, grid, &[Arg::from(&from), Arg::from(&to)]);
    assert_eq!((found.count, found.access.work_item), (20, [0, 0, 0]));
    // What a launch has written is written.
    assert_eq!(findings(&device, &sum, grid, &[Arg::from(&to), Arg::from(&from)]), None);
    assert_eq!(findings(&device, &sum, grid, &[Arg::from(&from), Arg::from(&to)]), None);
    // After a launch that was not checked nothing is known, so nothing is found.
    let from = device.buffer_uninitialized::<i32>(100).unwrap();
    device.launch(&sum, grid, &[Arg::from(&to), Arg::from(&from)]).unwrap();
    assert_eq!(findings(&device, &sum, grid, &[Arg::from(&from), Arg::from(&to)]), None);
}

#[test]
fn group_memory_and_slots_begin_unwritten_for_each_group_and_work_item() {
    let device = device("4w32/16/8/4");
    let kernel = |initialize: bool| {
        compiled(device.arch(), &move |b| {
            let (tile, to) = (b.group_buffer::<i32>("tile", 8), b.buffer::<i32>("to"));
            let (own, i) = (b.local_id(0), b.global_id(0));
            if initialize {
                b.store(tile, own, i);
            } else {
                // Only the first group does.
                let first = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, i, 8);
                b.if_then(first, |b| b.store(tile, own, i));
            }
            b.barrier();
            let value = b.load(tile, own);
            b.store(to, i, value);
        })
    };
    let to = device.buffer_zeroed::<i32>(64).unwrap();
    let groups = LaunchConfig::grid_1d(64).with_groups_1d(8);
    assert_eq!(findings(&device, &kernel(true), groups, &[Arg::from(&to)]), None);
    let found = one(&device, &kernel(false), groups, &[Arg::from(&to)]);
    assert_eq!((&found.kind, found.count), (&FindingKind::Uninitialized, 56));
    assert_ne!(found.access.group, Some([0, 0, 0]));

    let kernel = |all: bool| {
        compiled(device.arch(), &move |b| {
            let (to, i) = (b.buffer::<i32>("to"), b.global_id(0));
            let slot = stack_slot(b, 4);
            let zero = b.word_const(0);
            if all {
                b.store_elem(i, slot, zero);
            } else {
                let low = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, i, 32);
                b.if_then(low, |b| b.store_elem(i, slot, zero));
            }
            let value = b.load_elem(types::I32, slot, zero);
            b.store(to, i, value);
        })
    };
    assert_eq!(
        findings(&device, &kernel(true), LaunchConfig::grid_1d(64), &[Arg::from(&to)]),
        None
    );
    let found = one(&device, &kernel(false), LaunchConfig::grid_1d(64), &[Arg::from(&to)]);
    assert_eq!((&found.kind, found.count), (&FindingKind::Uninitialized, 32));
}

#[test]
fn copies_take_what_was_not_written_with_them() {
    for arch in WITH_X {
        let device = device(arch);
        let here = std::cell::Cell::new(0);
        // Bytes 0 and 1 of each element are written, all four are copied, and byte `read` of the copy is read.
        let kernel = compiled(device.arch(), &|b| {
            let (out, read, i) = (b.buffer::<u8>("out"), b.scalar::<usize>("read"), b.global_id(0));
            let slots = [stack_slot(b, 4), stack_slot(b, 4)];
            let one = b.ins().iconst(types::I8, 1);
            let plain = MemFlagsData::new();
            for byte in 0..2 {
                b.ins().store(plain, one, slots[0], byte);
            }
            let copied = plain.with_aligned().with_trap_code(Some(COPIED));
            let value = b.ins().load(types::I32, copied, slots[0], 0);
            b.ins().store(copied, value, slots[1], 0);
            let at = b.ins().iadd(slots[1], read);
            here.set(line!() + 1);
            let value = b.ins().load(types::I8, plain, at, 0);
            b.store(out, i, value);
        });
        let out = device.buffer_zeroed::<u8>(40).unwrap();
        let grid = LaunchConfig::grid_1d(40);
        for byte in 0..4_usize {
            let args = [Arg::from(&out), Arg::from(byte)];
            if byte < 2 {
                assert_eq!(findings(&device, &kernel, grid, &args), None, "{byte} on {arch}");
                continue;
            }
            let found = one(&device, &kernel, grid, &args);
            let wanted = (&FindingKind::Uninitialized, 40, here.get());
            assert_eq!((&found.kind, found.count, line(&found)), wanted, "{byte} on {arch}");
        }
    }
}
