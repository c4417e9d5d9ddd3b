//! What checked launches find, and what they must not find, over the public interface.

use harp_isa::abi::MonitorWord;
use harp_runtime::jit::DivergenceStrategy;
use harp_runtime::jit::ir::AtomicRmwOp;
use harp_runtime::prelude::*;
use harp_runtime::{Checks, Element, Finding, FindingKind, Findings, Queue, QueueError, Target};

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/8/4", "4w24/12/32/16+x+s8/4"];
const WITH_X: [&str; 3] = ["4w32/16/32/16+x", "4b16/16/16/8+x", "8w32/32/8/8+x"];

fn options(divergence: DivergenceStrategy) -> CompileOptions {
    CompileOptions { report_accesses: true, divergence, ..CompileOptions::default() }
}

fn compiled(arch: ArchId, build: &dyn Fn(&mut KernelBuilder<'_>)) -> Kernel {
    compiled_with(arch, &options(DivergenceStrategy::default()), build)
}

fn compiled_with(
    arch: ArchId,
    options: &CompileOptions,
    build: &dyn Fn(&mut KernelBuilder<'_>),
) -> Kernel {
    let mut source = KernelSource::new("checked", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    source.compile(options).unwrap()
}

fn device(arch: &str) -> Device {
    Device::new(DeviceConfig::new(arch.parse().unwrap())).unwrap()
}

/// The findings of a launch; none if it found nothing.
fn findings(
    device: &Device,
    kernel: &Kernel,
    config: LaunchConfig,
    args: &[Arg],
) -> Option<Findings> {
    match device.launch(kernel, config.with_checks(Checks::all()), args) {
        Ok(_) => None,
        Err(LaunchError::Findings(findings)) => Some(*findings),
        Err(error) => panic!("{error}"),
    }
}

/// The only finding of a launch.
fn one(device: &Device, kernel: &Kernel, config: LaunchConfig, args: &[Arg]) -> Finding {
    let found = findings(device, kernel, config, args).expect("something is wrong");
    assert_eq!((found.list.len(), found.more, found.kernel.as_str()), (1, 0, "checked"), "{found}");
    found.list[0].clone()
}

fn line(finding: &Finding) -> u32 {
    let place = finding.access.place.as_ref().unwrap();
    assert!(place.file.ends_with("checks.rs"), "{place}");
    place.line
}

/// The word of the machine as an element, for kernels that run on all machines.
fn words(device: &Device, len: usize) -> (Box<dyn Fn() -> Arg>, Vec<u64>) {
    fn of<T: Element + From<u8>>(device: &Device, len: usize) -> (Box<dyn Fn() -> Arg>, Vec<u64>) {
        let buffer = device.buffer_from_slice(&vec![T::from(0); len]).unwrap().named("words");
        let address = buffer.address();
        (Box::new(move || Arg::from(&buffer)), vec![address])
    }
    match device.arch().word().bytes() {
        4 => of::<u32>(device, len),
        _ => of::<u64>(device, len),
    }
}

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
            let slot = jit_slot(b, bytes);
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

/// The address of a stack slot of that size.
fn jit_slot(b: &mut KernelBuilder<'_>, bytes: u32) -> Value {
    use harp_runtime::jit::ir::{StackSlotData, StackSlotKind};
    let word = b.word_int();
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
    let slot = b.inner().create_sized_stack_slot(slot);
    b.ins().stack_addr(word, slot, 0)
}

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
            let slot = jit_slot(b, 4);
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
        let FindingKind::Race { other } = &found.kind else { panic!("{found}") };
        assert_eq!((found.access.group, other.group), (Some([0, 0, 0]), Some([0, 0, 0])));
        assert_ne!(found.access.work_item, other.work_item);
        assert_ne!(found.access.place, other.place);
    }
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
        assert_eq!((&found.kind, found.count), (&FindingKind::Constant { parameter: 0 }, 40));
        assert_eq!(line(found), here.get(), "{arch}");
        assert!(found.to_string().starts_with("constant: store of i32 by work-item"), "{found}");
        device.launch(&kernel, grid.with_checks(only(false)), &same).unwrap();
        // A part of the buffer that is not the constant one.
        let parts = [Arg::from(&table.view(0..8).unwrap()), Arg::from(&table.view(8..40).unwrap())];
        device.launch(&kernel, LaunchConfig::grid_1d(32).with_checks(only(true)), &parts).unwrap();
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

/// What a work-item reports after it has written over its own stack may be anything.
#[test]
fn stacks_and_slots_that_are_nowhere() {
    let device = device("8w32/32/8/8+x");
    let word = device.arch().word();
    let kernel = compiled(device.arch(), &|b| {
        let (slot, aligned) = (jit_slot(b, 8), MemFlagsData::new().with_aligned());
        let nowhere = b.ins().iconst(types::I64, 0x7d3f_37d0_8d59_22d0);
        b.ins().store(aligned, nowhere, slot, 0);
        // What the first store reports.
        let own = MonitorWord::access_offset(0, word);
        for offset in [MonitorWord::Stack.offset(word), MonitorWord::Slot.offset(word), own] {
            let address = MonitorWord::first_address(word).wrapping_add(offset);
            let address = b.ins().iconst(types::I64, address.cast_signed());
            b.ins().store(aligned, nowhere, address, 0);
        }
    });
    let found = findings(&device, &kernel, LaunchConfig::grid_1d(1), &[]).unwrap();
    let is_outside = |one: &Finding| one.kind == FindingKind::OutOfBounds;
    assert!(found.list.len() == 4 && found.list.iter().all(is_outside), "{found}");
}

#[test]
fn every_strategy_and_optimization_finds_the_same() {
    use DivergenceStrategy::{Predicate, SplitJoin, Static};
    let device = device("4w32/16/32/16+x");
    for divergence in [SplitJoin, Predicate, Static] {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let options = CompileOptions { opt_level, ..options(divergence) };
            let kernel = compiled_with(device.arch(), &options, &|b| {
                let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
                let limit = b.scalar::<i32>("limit");
                let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, limit);
                b.if_then(inside, |b| {
                    let value = b.load(data, i);
                    let value = b.ins().iadd_imm_s(value, 1);
                    b.store(data, i, value);
                });
            });
            let data = device.buffer_zeroed::<i32>(50).unwrap();
            let grid = LaunchConfig::grid_1d(64);
            let args = |limit: i32| [Arg::from(&data), limit.into()];
            assert_eq!(findings(&device, &kernel, grid, &args(50)), None);
            assert_eq!(device.read(&data).unwrap(), [1; 50]);
            let found = findings(&device, &kernel, grid, &args(53)).unwrap();
            let counts: Vec<_> = found.list.iter().map(|one| one.count).collect();
            assert_eq!(counts, [3, 3], "{divergence:?} {opt_level:?}: {found}");
        }
    }
}

#[test]
fn checks_are_asked_for_and_findings_are_limited() {
    let device = device("harp32");
    let build = |b: &mut KernelBuilder<'_>| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        for by in 1..=5 {
            let at = b.ins().iadd_imm_s(i, 64 * by);
            // One place, so one finding.
            let value = b.load(data, at);
            b.store(data, i, value);
        }
    };
    let kernel = compiled(device.arch(), &build);
    let data = device.buffer_zeroed::<i32>(64).unwrap();
    let (grid, args) = (LaunchConfig::grid_1d(64), [Arg::from(&data)]);
    // Without checks it runs.
    let report = device.launch(&kernel, grid, &args).unwrap();
    assert_eq!(report.work_items(), 64);
    let mut checks = Checks::none();
    assert_eq!(device.launch(&kernel, grid.with_checks(checks), &args).map(|_| ()), Ok(()));
    (checks.bounds, checks.limit) = (true, 3);
    let error = device.launch(&kernel, grid.with_checks(checks), &args).unwrap_err();
    let LaunchError::Findings(found) = &error else { panic!("{error}") };
    assert_eq!((found.list.len(), found.more), (3, 2 * 64));
    assert!(error.to_string().contains("and 128 more"), "{error}");
    assert!(found.report.as_ref().is_some_and(|report| report.work_items() == 64));
    // There are numbers for so many work-items only.
    let wide = self::device("harp64");
    let kernel_64 = compiled(wide.arch(), &build);
    let data_64 = wide.buffer_zeroed::<i32>(64).unwrap();
    let huge = LaunchConfig::grid_1d(1 << 33).with_checks(Checks::all());
    let error = wide.launch(&kernel_64, huge, &[Arg::from(&data_64)]).unwrap_err();
    assert_eq!(error, LaunchError::GridTooLargeToCheck { given: 1 << 33, limit: (1 << 32) - 2 });
    // A kernel that does not report cannot be checked.
    let plain = compiled_with(device.arch(), &CompileOptions::default(), &build);
    let error = device.launch(&plain, grid.with_checks(Checks::all()), &args).unwrap_err();
    assert_eq!(error, LaunchError::NoReports { kernel: "checked".to_owned() });
    // A device may check all launches, those of queues, too.
    let config = DeviceConfig { checks: Some(Checks::all()), ..device.config().clone() };
    let device = Device::new(config).unwrap();
    let data = device.buffer_zeroed::<i32>(64).unwrap();
    let queue = Queue::new(&device).unwrap();
    let launch = queue.launch(&std::sync::Arc::new(kernel), grid, &[Arg::from(&data)]);
    assert!(matches!(launch.wait(), Err(QueueError::Launch(LaunchError::Findings(_)))));
}

#[test]
fn traps_tell_what_was_found_before() {
    for arch in MACHINES {
        let device = device(arch);
        // The element behind the buffer is stored, then the lanes trap.
        let kernel = compiled(device.arch(), &|b| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            let next = b.ins().iadd_imm_s(i, 1);
            let zero = b.ins().iconst(types::I32, 0);
            b.store(data, next, zero);
            b.assert(zero, "all fail");
        });
        let data = device.buffer_zeroed::<i32>(1).unwrap();
        let config = LaunchConfig::grid_1d(1).with_checks(Checks::all());
        let error = device.launch(&kernel, config, &[Arg::from(&data)]).unwrap_err();
        let LaunchError::Trap(trap) = &error else { panic!("{error}") };
        assert_eq!(trap.findings.as_ref().map(|findings| findings.list.len()), Some(1), "{error}");
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("assertion failed: all fail"), "{text}");
        assert_eq!(lines[1], "kernel `checked`: 1 finding", "{text}");
        assert!(lines[2].starts_with("  out of bounds: store of i32"), "{text}");
    }
}
