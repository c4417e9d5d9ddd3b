//! Accesses that break a promise: of types, of constant contents, of alignment.

use harp_runtime::jit::ir::AtomicRmwOp;
use harp_runtime::prelude::*;
use harp_runtime::{Checks, Finding, FindingKind};

use super::{MACHINES, WITH_X, compiled, device, findings, line, one};

#[test]
fn elements_of_another_type() {
    let device = device("4w32/16/32/16+x");
    let kernel = compiled(device.arch(), &|b| {
        let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
        let value = b.load_elem(types::I32, data, i);
        b.store_elem(value, data, i);
    });
    let grid = LaunchConfig::grid_1d(16);
    let bytes = device.buffer_zeroed::<u8>(64).unwrap();
    let found = findings(&device, &kernel, grid, &[Arg::from(&bytes)]).unwrap();
    let is_type = |one: &Finding| one.kind == FindingKind::ElementType { expected: types::I8 };
    assert!(found.list.len() == 2 && found.list.iter().all(is_type), "{found}");
    let floats = device.buffer_zeroed::<f32>(16).unwrap();
    assert_eq!(findings(&device, &kernel, grid, &[Arg::from(&floats)]).unwrap().list.len(), 2);
    for unsigned in [true, false] {
        let data = match unsigned {
            true => Arg::from(&device.buffer_zeroed::<u32>(16).unwrap()),
            false => Arg::from(&device.buffer_zeroed::<i32>(16).unwrap()),
        };
        assert_eq!(findings(&device, &kernel, grid, &[data]), None);
    }
}

#[test]
fn changes_of_constant_buffers() {
    for arch in MACHINES {
        let device = device(arch);
        let here = std::cell::Cell::new(0);
        let kernel = compiled(device.arch(), &|b| {
            let (table, out) = (b.constant_buffer::<u32>("table"), b.buffer::<u32>("out"));
            let i = b.global_id(0);
            let word = b.word_int();
            let zero = b.ins().iconst(word, 0);
            let value = b.load(table, zero);
            here.set(line!() + 1);
            b.store(out, i, value);
        });
        let table = device.buffer_zeroed::<u32>(40).unwrap();
        let out = device.buffer_zeroed::<u32>(40).unwrap();
        let grid = LaunchConfig::grid_1d(40);
        let args = [Arg::from(&table), Arg::from(&out)];
        assert_eq!(findings(&device, &kernel, grid, &args), None, "{arch}");
        let only = |constants| {
            let mut checks = Checks::none();
            checks.constants = constants;
            checks
        };
        let same = [Arg::from(&table), Arg::from(&table)];
        let error = device.launch(&kernel, grid.with_checks(only(true)), &same).unwrap_err();
        let LaunchError::Findings(findings) = error else { panic!("{error}") };
        let [found] = &findings.list[..] else { panic!("{findings}") };
        assert!(matches!(found.kind, FindingKind::Constant { parameter: 0, .. }), "{found}");
        assert_eq!(found.count, 40, "{found}");
        assert_eq!(line(found), here.get(), "{arch}");
        assert!(found.to_string().starts_with("constant: store of i32 by work-item"), "{found}");
        device.launch(&kernel, grid.with_checks(only(false)), &same).unwrap();
        // A part of the buffer that is not the constant one.
        let parts = [Arg::from(&table.view(0..8).unwrap()), Arg::from(&table.view(8..40).unwrap())];
        device.launch(&kernel, LaunchConfig::grid_1d(32).with_checks(only(true)), &parts).unwrap();
        // What is also out of bounds is one mistake.
        let [read, written] = [table.view(8..40).unwrap(), table.view(0..8).unwrap()];
        let parts = [Arg::from(&read), Arg::from(&written)];
        let found = one(&device, &kernel, LaunchConfig::grid_1d(12), &parts);
        assert_eq!((&found.kind, found.count), (&FindingKind::OutOfBounds, 4), "{found}");
    }
}

#[test]
fn addresses_that_are_not_aligned_as_promised() {
    for arch in MACHINES {
        let device = device(arch);
        let word = device.arch().word().bytes();
        let here = std::cell::Cell::new(0);
        // Work-items access parts that begin `by` bytes behind multiples of 8: 8 bytes, 4 and 2.
        let kernel = compiled(device.arch(), &|b| {
            let (data, by, i) =
                (b.param(ParamType::Pointer), b.scalar::<usize>("by"), b.global_id(0));
            let start = b.ins().imul_imm_s(i, 24);
            let start = b.ins().iadd(start, by);
            let start = b.ins().iadd(data, start);
            let aligned = MemFlagsData::new().with_aligned();
            here.set(line!() + 1);
            let value = b.ins().load(types::I64, aligned, start, 0);
            b.ins().store(aligned, value, start, 8);
            b.ins().uload32(aligned, start, 4);
            b.ins().istore16(aligned, value, start, 16);
            // These promise nothing.
            let half = b.ins().load(types::I16, MemFlagsData::new(), start, 20);
            b.ins().store(MemFlagsData::new().with_notrap(), half, start, 22);
        });
        let data = device.buffer_zeroed::<i64>(30).unwrap().named("parts");
        let grid = LaunchConfig::grid_1d(9);
        let checks = {
            let mut checks = Checks::none();
            checks.alignment = true;
            checks
        };
        let found = |by: usize| {
            let args = [Arg::from(&data), by.into()];
            match device.launch(&kernel, grid.with_checks(checks), &args) {
                Ok(_) => Vec::new(),
                Err(LaunchError::Findings(findings)) => findings.list,
                Err(error) => panic!("{error}"),
            }
        };
        let wanted = |by: usize| -> Vec<_> {
            let accesses = [(0, word), (1, word), (2, 4), (3, 2)];
            accesses
                .into_iter()
                .filter(|&(_, bytes)| !by.is_multiple_of(usize::from(bytes)))
                .collect()
        };
        for by in 0..9 {
            let found = found(by);
            let of = |one: &Finding| match one.kind {
                FindingKind::Misaligned { alignment } => (line(one) - here.get(), alignment),
                _ => panic!("{one}"),
            };
            assert_eq!(found.iter().map(of).collect::<Vec<_>>(), wanted(by), "{by} on {arch}");
            assert!(found.iter().all(|one| one.count == 9));
        }
        let text = found(1)[0].to_string();
        let address = data.address() + 1;
        let message = format!(", {address:#x} is no multiple of {word}: byte 1 of buffer `parts`");
        assert!(text.starts_with("misaligned: load of i64") && text.contains(&message), "{text}");
        let args = [Arg::from(&data), 1_usize.into()];
        device.launch(&kernel, grid.with_checks(Checks::none()), &args).unwrap();
    }
}

#[test]
fn a_misaligned_atomic_access_is_found_before_it_traps() {
    for arch in WITH_X {
        let device = device(arch);
        let kernel = compiled(device.arch(), &|b| {
            let (data, by) = (b.param(ParamType::Pointer), b.scalar::<usize>("by"));
            let (place, one) = (b.ins().iadd(data, by), b.ins().iconst(types::I32, 1));
            let flags = MemFlagsData::new().with_aligned();
            b.ins().atomic_rmw(types::I32, flags, AtomicRmwOp::Add, place, one);
        });
        let data = device.buffer_zeroed::<i32>(4).unwrap();
        let grid = LaunchConfig::grid_1d(1).with_checks(Checks::all());
        device.launch(&kernel, grid, &[Arg::from(&data), 4_usize.into()]).unwrap();
        let error = device.launch(&kernel, grid, &[Arg::from(&data), 2_usize.into()]).unwrap_err();
        let LaunchError::Trap(trap) = error else { panic!("{error}") };
        let found = trap.findings.unwrap();
        assert_eq!(found.list[0].kind, FindingKind::Misaligned { alignment: 4 }, "{found}");
    }
}
