//! Accesses outside of what a kernel was given.

use harp_isa::abi::MonitorWord;
use harp_runtime::prelude::*;
use harp_runtime::{Finding, FindingKind, Target};

use super::{MACHINES, WITH_X, compiled, device, findings, line, one, stack_slot, words};

#[test]
fn a_load_behind_the_end_of_its_buffer() {
    for arch in MACHINES {
        let device = device(arch);
        let here = std::cell::Cell::new(0);
        let kernel = compiled(device.arch(), &|b| {
            let (from, to, by) =
                (b.param(ParamType::Pointer), b.param(ParamType::Pointer), b.scalar::<usize>("by"));
            let i = b.global_id(0);
            let at = b.ins().iadd(i, by);
            let word = b.word_int();
            here.set(line!() + 1);
            let value = b.load_elem(word, from, at);
            b.store_elem(value, to, i);
        });
        let (from, to) = (words(&device, 40), words(&device, 40));
        let grid = LaunchConfig::grid_1d(40);
        let args = |by: usize| [from.0(), to.0(), by.into()];
        assert_eq!(findings(&device, &kernel, grid, &args(0)), None, "{arch}");
        let found = one(&device, &kernel, grid, &args(3));
        assert_eq!(
            (&found.kind, found.count, line(&found)),
            (&FindingKind::OutOfBounds, 3, here.get())
        );
        assert_eq!(found.access.work_item, [37, 0, 0], "{arch}");
        let bytes = u64::from(device.arch().word().bytes());
        assert_eq!(found.access.address, from.1[0] + 40 * bytes);
        let Some(Target::Buffer { parameter, buffer, bytes: size, .. }) = &found.target else {
            panic!("{found}")
        };
        assert_eq!((*parameter, buffer.0.as_deref(), *size), (Some(0), Some("words"), 40 * bytes));
        assert!(found.to_string().contains("buffer `words`, parameter 0"), "{found}");
        // Before the start.
        let found =
            one(&device, &kernel, grid, &args(usize::MAX & device.arch().word().mask() as usize));
        assert_eq!((found.count, found.access.work_item), (1, [0, 0, 0]));
    }
}

#[test]
fn accesses_through_the_null_pointer_are_of_no_wrong_type() {
    for arch in MACHINES {
        let device = device(arch);
        let kernel = compiled(device.arch(), &|b| {
            let (from, to, i) =
                (b.param(ParamType::Pointer), b.buffer::<i32>("to"), b.global_id(0));
            let value = b.load_elem(types::I32, from, i);
            b.store(to, i, value);
        });
        let to = device.buffer_zeroed::<i32>(4).unwrap();
        let args = [Arg::address(0), Arg::from(&to)];
        let found = one(&device, &kernel, LaunchConfig::grid_1d(4), &args);
        assert_eq!((&found.kind, found.count), (&FindingKind::OutOfBounds, 4), "{arch}: {found}");
        assert!(found.to_string().contains("buffer `null`, parameter 0"), "{found}");
    }
}

#[test]
fn a_store_to_the_next_buffer_and_a_view_that_ends_before() {
    for arch in WITH_X {
        let device = device(arch);
        let kernel = compiled(device.arch(), &|b| {
            let (to, i) = (b.buffer::<u8>("to"), b.global_id(0));
            let value = b.ins().iconst(types::I8, 7);
            b.store(to, i, value);
        });
        let all = device.buffer_zeroed::<u8>(128).unwrap();
        let _next = device.buffer_zeroed::<u8>(128).unwrap();
        let grid = LaunchConfig::grid_1d(65);
        assert_eq!(findings(&device, &kernel, grid, &[Arg::from(&all)]), None);
        let found = one(&device, &kernel, grid, &[Arg::from(&all.view(..64).unwrap())]);
        assert_eq!((found.count, found.access.address), (1, all.address() + 64));
        let found = one(&device, &kernel, LaunchConfig::grid_1d(131), &[Arg::from(&all)]);
        assert_eq!((found.count, found.access.work_item[0]), (3, 128));
    }
}

#[test]
fn pointers_that_are_chosen_at_run_time_may_be_to_either_buffer() {
    let device = device("4w32/16/32/16+x");
    let kernel = compiled(device.arch(), &|b| {
        let (x, y) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
        let (i, n) = (b.global_id(0), b.param(ParamType::I32));
        let odd = b.ins().band_imm_u(i, 1);
        let chosen = b.ins().select(odd, x, y);
        let at = b.ins().imul(i, n);
        let value = b.load_elem(types::I32, chosen, at);
        b.store_elem(value, chosen, at);
    });
    let [x, y] = [(); 2].map(|()| device.buffer_zeroed::<i32>(64).unwrap());
    let args = |n: i32| [Arg::from(&x), Arg::from(&y), n.into()];
    let grid = LaunchConfig::grid_1d(64);
    assert_eq!(findings(&device, &kernel, grid, &args(1)), None);
    let found = findings(&device, &kernel, grid, &args(3)).unwrap();
    assert_eq!(found.list.len(), 2, "{found}");
}

#[test]
fn pointers_that_are_loaded_may_be_to_anything() {
    let device = device("4w32/16/32/16+x");
    let kernel = compiled(device.arch(), &|b| {
        let word = b.word_int();
        let (places, mask) = (b.param(ParamType::Pointer), b.scalar::<i32>("mask"));
        let (slot, i) = (stack_slot(b, word.bytes()), b.global_id(0));
        let loaded = b.load_elem(word, places, i);
        let aligned = b.ins().band(loaded, mask);
        let (odd, second) = (b.ins().band_imm_u(i, 1), b.ins().band_imm_u(i, 2));
        let loaded = b.ins().select(second, aligned, loaded);
        let chosen = b.ins().select(odd, loaded, slot);
        let zero = b.word_const(0);
        b.store_elem(i, chosen, zero);
    });
    let data = device.buffer_zeroed::<i32>(16).unwrap();
    let place = |i: usize| (data.address() as usize + 4 * i) as u32;
    let places = device.buffer_from_slice(&(0..16).map(place).collect::<Vec<_>>()).unwrap();
    let args = [Arg::from(&places), (-4).into()];
    assert_eq!(findings(&device, &kernel, LaunchConfig::grid_1d(16), &args), None);
    let wanted = (0..16).map(|i| if i % 2 == 1 { i } else { 0 });
    assert!(device.read(&data).unwrap().into_iter().eq(wanted));
}

#[test]
fn group_memory_and_stack_slots_have_ends() {
    for arch in ["harp32", "4w32/16/32/16+x", "8w32/32/8/8"] {
        let device = device(arch);
        let kernel = compiled(device.arch(), &|b| {
            let word = b.word_int();
            let first = b.group_array(word, 8);
            let _second = b.group_array(word, 8);
            let (own, by) = (b.local_id(0), b.scalar::<usize>("by"));
            let at = b.ins().iadd(own, by);
            b.store_elem(own, first, at);
        });
        let groups = LaunchConfig::grid_1d(32).with_groups_1d(8);
        assert_eq!(findings(&device, &kernel, groups, &[0_usize.into()]), None, "{arch}");
        let found = one(&device, &kernel, groups, &[1_usize.into()]);
        assert_eq!((found.count, found.access.group), (4, Some([0, 0, 0])));
        assert!(matches!(found.target, Some(Target::Group { .. })), "{found}");

        let kernel = compiled(device.arch(), &|b| {
            let word = b.word_int();
            let bytes = 4 * word.bytes();
            let slot = stack_slot(b, bytes);
            let (i, last) = (b.word_const(0), b.scalar::<usize>("last"));
            let value = b.global_id(0);
            b.store_elem(value, slot, i);
            b.store_elem(value, slot, last);
        });
        assert_eq!(findings(&device, &kernel, LaunchConfig::grid_1d(9), &[3_usize.into()]), None);
        let found = one(&device, &kernel, LaunchConfig::grid_1d(9), &[4_usize.into()]);
        assert!(matches!(found.target, Some(Target::Stack { .. })), "{found}");
        assert_eq!(found.count, 9);
    }
}

/// What a work-item reports after it has written over its own stack may be anything.
#[test]
fn stacks_and_slots_that_are_nowhere() {
    let device = device("8w32/32/8/8+x");
    let word = device.arch().word();
    let kernel = compiled(device.arch(), &|b| {
        let (slot, aligned) = (stack_slot(b, 8), MemFlagsData::new().with_aligned());
        let nowhere = b.ins().iconst(types::I64, 0x7d3f_37d0_8d59_22d0);
        b.ins().store(aligned, nowhere, slot, 0);
        // What the first store reports.
        let own = MonitorWord::access_offset(0, word);
        let [stack, slot] =
            [MonitorWord::Stack, MonitorWord::Slot].map(|of| of.offset(word).into());
        for offset in [stack, slot, own] {
            let address = MonitorWord::first_address(word).wrapping_add(offset);
            let address = b.ins().iconst(types::I64, address.cast_signed());
            b.ins().store(aligned, nowhere, address, 0);
        }
    });
    let found = findings(&device, &kernel, LaunchConfig::grid_1d(1), &[]).unwrap();
    let is_outside = |one: &Finding| one.kind == FindingKind::OutOfBounds;
    assert!(found.list.len() == 4 && found.list.iter().all(is_outside), "{found}");
}
