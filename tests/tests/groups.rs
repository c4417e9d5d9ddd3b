//! Work-groups: places in them, their memory, barriers, and what lanes tell each other.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value, condcodes::IntCC, types};
use harp_emu::TrapKind;
use harp_jit::{
    ArchId, BuildErrorKind, CompileError, CompileOptions, DivergenceStrategy, Kernel,
    KernelBuilder, KernelSource, Linkage, Module, OptLevel, ParamType,
};
use harp_runtime::{
    Device, DeviceConfig, LaunchConfig, LaunchError, LaunchTrap, Program, ProgramError,
};
use harp_tests::kernels::array::Array;

/// Both word sizes and encodings, with and without the extension, few registers and many, one lane and
/// many, one warp and many.
const MACHINES: [&str; 9] = [
    "harp32",
    "harp64+x",
    "4w32/16/32/8+x",
    "4w64/64/16/4",
    "8b16/16/8/4",
    "4b8/2/4/8",
    "4w9/8/3/5",
    "8w13/4/64/1",
    "4w8/2/1/16",
];

fn device(arch: ArchId, cores: u16) -> Device {
    Device::new(DeviceConfig { cores, fuel: Some(1 << 24), ..DeviceConfig::new(arch) }).unwrap()
}

fn build(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new("test", arch);
    let mut b = KernelBuilder::new(&mut source);
    kernel(&mut b);
    b.return_();
    b.finalize().unwrap();
    source
}

fn compile(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    proved(build(arch, kernel).compile(&CompileOptions::default()).unwrap())
}

/// A kernel whose finished code keeps lanes together, barriers and votes under divergent branches included.
fn proved(kernel: Kernel) -> Kernel {
    kernel.check().unwrap_or_else(|error| panic!("{error}\n{}", kernel.disassembly()));
    kernel
}

/// The same kernel under every strategy that needs no profile, with and without the mid-end.
fn compile_all(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> Vec<Kernel> {
    let source = build(arch, kernel);
    let strategies = [
        DivergenceStrategy::SplitJoin,
        DivergenceStrategy::Predicate,
        DivergenceStrategy::Static,
        DivergenceStrategy::Adaptive,
    ];
    let options = strategies.into_iter().flat_map(|divergence| {
        [OptLevel::None, OptLevel::Speed].map(|opt_level| CompileOptions {
            divergence,
            opt_level,
            ..CompileOptions::default()
        })
    });
    options.map(|options| proved(source.compile(&options).unwrap())).collect()
}

/// Launches a kernel whose parameter is an array of words; the array afterwards, of 32 bits each.
fn run(device: &mut Device, kernel: &Kernel, config: LaunchConfig, words: &[i32]) -> Vec<u32> {
    let array = Array::of_ints(device, words).unwrap();
    device.launch(kernel, config, &[array.arg()]).unwrap();
    array.words(device).unwrap()
}

/// As [`run`], for launches that end in a trap.
fn trap_of(arch: ArchId, kernel: &Kernel, config: LaunchConfig) -> LaunchTrap {
    let mut device = device(arch, 1);
    let array = Array::of_ints(&device, &[0; 256]).unwrap();
    match device.launch(kernel, config, &[array.arg()]) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("{other:?}"),
    }
}

fn grid([x, y, z]: [usize; 3]) -> LaunchConfig {
    LaunchConfig::grid_3d(x, y, z)
}

/// Words of a work-item's record.
const RECORD: usize = 17;

/// Each work-item adds 1 to the first word of its record and writes all that it knows of its place to the
/// others.
fn places_kernel(arch: ArchId) -> Kernel {
    compile(arch, |b| {
        let out = b.param(ParamType::Pointer);
        let mut values: Vec<Value> = Vec::new();
        for dim in 0..3 {
            values.push(b.global_id(dim));
            values.push(b.local_id(dim));
            values.push(b.group_id(dim));
            values.push(b.local_size(dim));
            values.push(b.group_size(dim));
        }
        values.push(b.local_index());
        let (x, y, z) = (b.global_id(0), b.global_id(1), b.global_id(2));
        let (wide, high) = (b.global_size(0), b.global_size(1));
        let plane = b.ins().imul(z, high);
        let row = b.ins().iadd(plane, y);
        let row = b.ins().imul(row, wide);
        let item = b.ins().iadd(row, x);
        let start = b.ins().imul_imm_s(item, RECORD as i64);
        let count = b.load_elem(b.word_int(), out, start);
        let count = b.ins().iadd_imm_s(count, 1);
        b.store_elem(count, out, start);
        for (index, value) in (1..).zip(values) {
            let index = b.ins().iadd_imm_s(start, index);
            b.store_elem(value, out, index);
        }
    })
}

fn check_places(device: &mut Device, kernel: &Kernel, extent: [usize; 3], group: [usize; 3]) {
    let items: usize = extent.iter().product();
    let config = grid(extent).with_groups(group);
    let words = run(device, kernel, config, &vec![0; (items + 1) * RECORD]);
    for item in 0..items {
        let at = [item % extent[0], item / extent[0] % extent[1], item / (extent[0] * extent[1])];
        let mut expected = vec![1];
        let mut index = 0;
        let mut stride = 1;
        for dim in 0..3 {
            let (id, local) = (at[dim] / group[dim], at[dim] % group[dim]);
            let size = group[dim].min(extent[dim] - id * group[dim]);
            expected.extend([at[dim], local, id, size, group[dim]]);
            index += local * stride;
            stride *= size;
        }
        expected.push(index);
        let record = words[item * RECORD..][..RECORD].iter().map(|&word| word as usize);
        let arch = kernel.arch();
        let found: Vec<usize> = record.collect();
        assert_eq!(found, expected, "{arch}, {extent:?} by {group:?}, work-item {item}");
    }
    assert!(words[items * RECORD..].iter().all(|&word| word == 0), "surplus lanes wrote");
}

#[test]
fn each_work_item_knows_its_place_in_its_group() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        let kernel = places_kernel(arch);
        assert!(kernel.uses_groups());
        let most = usize::from(arch.lanes()) * usize::from(arch.warps());
        for cores in [1, 3] {
            let mut device = device(arch, cores);
            for (extent, group) in [
                ([1, 1, 1], [1, 1, 1]),
                ([37, 1, 1], [5, 1, 1]),
                ([50, 1, 1], [most, 1, 1]),
                ([100, 1, 1], [15, 1, 1]),
                ([9, 7, 3], [2, 3, 2]),
                ([3, 5, 4], [1, 1, 15]),
                ([17, 2, 1], [8, 1, 1]),
            ] {
                check_places(&mut device, &kernel, extent, group);
            }
        }
    }
}

/// Groups sum their work-items' values in their memory, as a tree.
fn reduce_kernel(arch: ArchId) -> Kernel {
    compile(arch, |b| {
        let data = b.param(ParamType::Pointer);
        let (local, global) = (b.local_index(), b.global_id(0));
        let (size, group) = (b.local_size(0), b.group_id(0));
        let word = b.word_int();
        let sums = b.group_array(word, 256);
        let value = b.load_elem(word, data, global);
        b.store_elem(value, sums, local);
        let span = b.declare_var(word);
        b.def_var(span, size);
        b.barrier();
        b.while_loop(
            |b| {
                let span = b.use_var(span);
                b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, span, 1)
            },
            |b| {
                let old = b.use_var(span);
                let more = b.ins().iadd_imm_s(old, 1);
                let one = b.ins().iconst(word, 1);
                let half = b.ins().ushr(more, one);
                let other = b.ins().iadd(local, half);
                let has_other = b.ins().icmp(IntCC::UnsignedLessThan, other, old);
                b.if_then(has_other, |b| {
                    let (x, y) = (b.load_elem(word, sums, local), b.load_elem(word, sums, other));
                    let sum = b.ins().iadd(x, y);
                    b.store_elem(sum, sums, local);
                });
                b.barrier();
                b.def_var(span, half);
            },
        );
        let is_first = b.ins().icmp_imm_u(IntCC::Equal, local, 0);
        b.if_then(is_first, |b| {
            let zero = b.ins().iconst(word, 0);
            let sum = b.load_elem(word, sums, zero);
            let base = b.global_size(0);
            let index = b.ins().iadd(base, group);
            b.store_elem(sum, data, index);
        });
    })
}

#[test]
fn groups_reduce_in_their_memory_with_barriers() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        let kernel = reduce_kernel(arch);
        let most = usize::from(arch.lanes()) * usize::from(arch.warps());
        for (cores, items, size) in
            [(1, 200, 1), (1, 200, 7), (1, 333, most.min(256)), (2, 333, 11), (3, 100, 16)]
        {
            let size = size.min(most);
            let groups = items / size + usize::from(items % size != 0);
            let input: Vec<i32> = (0..items as i32).map(|i| i * i + 1).collect();
            let mut words = input.clone();
            words.resize(items + groups + 1, -1);
            let config = LaunchConfig::grid_1d(items).with_groups_1d(size);
            let out = run(&mut device(arch, cores), &kernel, config, &words);
            let mut expected: Vec<u32> =
                input.chunks(size).map(|group| group.iter().sum::<i32>() as u32).collect();
            expected.push(u32::MAX);
            assert_eq!(out[items..], expected, "{id}, {items} items in groups of {size}");
        }
    }
}

/// A launch gives the same counts whatever the number of host threads.
#[test]
fn counts_do_not_depend_on_host_threads() {
    let arch: ArchId = "4w16/8/8/4".parse().unwrap();
    let kernel = reduce_kernel(arch);
    let stats = |threads| {
        let host_threads = std::num::NonZeroUsize::new(threads);
        let config = DeviceConfig { cores: 4, host_threads, ..DeviceConfig::new(arch) };
        let mut device = Device::new(config).unwrap();
        let array = Array::of_ints(&device, &[3; 1200]).unwrap();
        let config = LaunchConfig::grid_1d(1000).with_groups_1d(19);
        let report = device.launch(&kernel, config, &[array.arg()]).unwrap();
        (report.stats, array.words(&device).unwrap())
    };
    assert_eq!(stats(1), stats(3));
}

#[test]
fn barriers_that_lanes_do_not_reach_together_are_traps() {
    for id in ["harp32", "harp64+x"] {
        let arch: ArchId = id.parse().unwrap();
        let under = |limit: i64| {
            compile(arch, move |b| {
                b.param(ParamType::Pointer);
                let index = b.local_index();
                let inside = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, limit);
                b.if_then(inside, |b| b.barrier());
            })
        };
        let grid = LaunchConfig::grid_1d(64).with_groups_1d(32);
        // Some lanes of a warp.
        let trap = trap_of(arch, &under(20), grid);
        let TrapKind::DivergentBarrier { expected } = trap.trap.kind else { panic!("{trap}") };
        assert_eq!((expected, trap.trap.lanes), (0xffff, 0xf), "{trap}");
        assert!(trap.place.is_some_and(|place| place.to_string().contains("groups.rs")));
        // One of two warps.
        let trap = trap_of(arch, &under(16), grid);
        assert!(matches!(trap.trap.kind, TrapKind::Deadlock { .. }), "{trap}");
        // All, and none: the branch is divergent to the compiler, the lanes agree.
        for limit in [32, 0] {
            run(&mut device(arch, 1), &under(limit), grid, &[0; 64]);
        }
    }
}

/// Surplus lanes of a group's last warp do not wait and are not waited for.
#[test]
fn surplus_lanes_have_no_part_in_barriers() {
    let arch: ArchId = "4w16/8/8/4".parse().unwrap();
    let kernel = reduce_kernel(arch);
    for size in [1, 3, 7, 8, 9, 23, 25, 31, 32] {
        let words = vec![1; 64 + 64];
        let config = LaunchConfig::grid_1d(64).with_groups_1d(size);
        let out = run(&mut device(arch, 1), &kernel, config, &words);
        assert_eq!(out[64], size as u32);
    }
}

/// Votes and shuffles on both sides of a divergent branch, computed by hand for 8 lanes of value `i * 3`.
#[test]
fn votes_and_shuffles_are_among_the_lanes_that_execute_them() {
    for id in ["4w8/8/8/2", "8b32/16/8/2", "4w8/2/8/1+x", "harp64+x", "4w64/64/8/4"] {
        let arch: ArchId = id.parse().unwrap();
        let kernels = compile_all(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let size = b.global_size(0);
            let value = b.load_elem(word, data, i);
            let store = |b: &mut KernelBuilder<'_>, row: i64, value: Value| {
                let start = b.ins().imul_imm_s(size, row);
                let index = b.ins().iadd(start, i);
                b.store_elem(value, data, index);
            };
            let store_truth = |b: &mut KernelBuilder<'_>, row: i64, truth: Value| {
                let value = b.ins().uextend(word, truth);
                store(b, row, value);
            };
            // All lanes: 3 comes before 4, 21 is the largest.
            let small = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, value, 4);
            let any = b.any(small);
            store_truth(b, 1, any);
            let all = b.all(small);
            store_truth(b, 2, all);
            let next = b.ins().iadd_imm_s(i, 1);
            let shuffled = b.shuffle(value, next);
            store(b, 3, shuffled);
            // Lanes 0 to 2 and the others.
            let low = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, i, 3);
            b.if_else(
                low,
                |b| {
                    let large = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, value, 6);
                    let any = b.any(large);
                    store_truth(b, 4, any);
                    let all = b.all(low);
                    store_truth(b, 5, all);
                    let shuffled = b.shuffle(value, next);
                    store(b, 6, shuffled);
                },
                |b| {
                    let large = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, value, 20);
                    let any = b.any(large);
                    store_truth(b, 4, any);
                    let all = b.all(large);
                    store_truth(b, 5, all);
                    let four = b.ins().iconst(word, 4);
                    let shuffled = b.shuffle(value, four);
                    store(b, 6, shuffled);
                },
            );
            // Together again, and a number that no lane has.
            let minus = b.ins().iconst(word, -1);
            let shuffled = b.shuffle(value, minus);
            store(b, 7, shuffled);
        });
        for kernel in &kernels {
            let mut words: Vec<i32> = (0..8).map(|i| i * 3).collect();
            words.resize(8 * 8, -1);
            let out = run(&mut device(arch, 1), kernel, LaunchConfig::grid_1d(8), &words);
            let expected: [[u32; 8]; 7] = [
                [1; 8],
                [0; 8],
                [3, 6, 9, 12, 15, 18, 21, 21],
                [0, 0, 0, 1, 1, 1, 1, 1],
                [1, 1, 1, 0, 0, 0, 0, 0],
                [3, 6, 6, 12, 12, 12, 12, 12],
                [0, 3, 6, 9, 12, 15, 18, 21],
            ];
            for (row, expected) in expected.iter().enumerate() {
                let found = &out[(row + 1) * 8..][..8];
                assert_eq!(found, expected, "{id}, row {}\n{}", row + 1, kernel.disassembly());
            }
        }
    }
}

/// Values wider than a word, narrower ones and floats.
#[test]
fn values_of_every_type_are_shuffled() {
    for id in ["4w16/8/8/2", "4w16/8/8/2+x", "harp64"] {
        let arch: ArchId = id.parse().unwrap();
        let kernel = compile(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let seven = b.ins().iconst(word, 7);
            let other = b.ins().isub(seven, i);
            let wide = if word == types::I64 { i } else { b.ins().uextend(types::I64, i) };
            let high = b.ins().ishl_imm_u(wide, 33);
            let both = b.ins().bor(high, wide);
            let shuffled = b.shuffle(both, other);
            let low = b.ins().ushr_imm_u(shuffled, 33);
            let narrow = b.ins().ireduce(types::I8, i);
            let narrow = b.shuffle(narrow, other);
            let narrow = b.ins().uextend(types::I64, narrow);
            let float = b.ins().fcvt_from_uint(types::F64, i);
            let float = b.shuffle(float, other);
            let float = b.ins().fcvt_to_uint_sat(types::I64, float);
            let sum = b.ins().iadd(low, shuffled);
            let sum = b.ins().iadd(sum, narrow);
            let sum = b.ins().iadd(sum, float);
            let sum = if word == types::I64 { sum } else { b.ins().ireduce(word, sum) };
            b.store_elem(sum, data, i);
        });
        let out = run(&mut device(arch, 1), &kernel, LaunchConfig::grid_1d(8), &[0; 8]);
        assert_eq!(out, [28, 24, 20, 16, 12, 8, 4, 0], "{id}");
    }
}

#[test]
fn ballots_have_a_bit_for_each_lane() {
    for (id, lanes) in [("4w16/8/8/2+x", 8), ("4w16/8/64/1+x", 64), ("8w32/32/64/1+x", 64)] {
        let arch: ArchId = id.parse().unwrap();
        let kernel = compile(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let odd = b.ins().band_imm_u(i, 1);
            let store = |b: &mut KernelBuilder<'_>, row: i64, value: Value| {
                let size = b.global_size(0);
                let start = b.ins().imul_imm_s(size, row);
                let index = b.ins().iadd(start, i);
                let value = if word == types::I64 { b.ins().ushr_imm_u(value, 32) } else { value };
                b.store_elem(value, data, index);
            };
            let low = b.ballot(odd, 0);
            store(b, 0, low);
            // Under a condition only those count that meet it.
            let above = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, i, 1);
            b.if_then(above, |b| {
                let part = if word == types::I64 { 0 } else { 1 };
                let high = b.ballot(odd, part);
                store(b, 1, high);
            });
        });
        let words = vec![7; 2 * lanes];
        let out = run(&mut device(arch, 1), &kernel, LaunchConfig::grid_1d(lanes), &words);
        let (low, high) = if lanes == 8 { (0xaa, 0) } else { (0xaaaa_aaaa, 0xaaaa_aaaa) };
        assert!(out[..lanes].iter().all(|&word| word == low), "{id}: {out:x?}");
        assert_eq!(out[lanes..lanes + 2], [7, 7]);
        assert!(out[lanes + 2..].iter().all(|&word| word == high), "{id}: {out:x?}");
    }
    let source = build(ArchId::HARP32, |b| {
        let i = b.global_id(0);
        let mask = b.ballot(i, 0);
        let data = b.param(ParamType::Pointer);
        b.store_elem(mask, data, i);
    });
    let error = source.compile(&CompileOptions::default()).unwrap_err();
    assert!(matches!(error, CompileError::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("ballot"), "{error}");
}

/// Tickets from a counter of the group, drawn by some lanes only, lowest lane first.
#[test]
fn atomics_count_the_lanes_that_execute_them() {
    let arch: ArchId = "4w16/8/8/4+x".parse().unwrap();
    let kernels = compile_all(arch, |b| {
        let data = b.param(ParamType::Pointer);
        let (global, local, word) = (b.global_id(0), b.local_index(), b.word_int());
        let counter = b.group_array(word, 1);
        let zero = b.ins().iconst(word, 0);
        let is_first = b.ins().icmp_imm_u(IntCC::Equal, local, 0);
        b.if_then(is_first, |b| b.store_elem(zero, counter, zero));
        b.barrier();
        let odd = b.ins().band_imm_u(global, 1);
        b.if_then(odd, |b| {
            let one = b.ins().iconst(word, 1);
            let ticket = b.atomic_elem(AtomicRmwOp::Add, one, counter, zero);
            b.store_elem(ticket, data, global);
        });
        b.barrier();
        let total = b.load_elem(word, counter, zero);
        b.if_then(is_first, |b| b.store_elem(total, data, global));
    });
    let config = LaunchConfig::grid_1d(40).with_groups_1d(16);
    let outs = kernels.iter().map(|kernel| run(&mut device(arch, 1), kernel, config, &[99; 40]));
    let outs: Vec<_> = outs.collect();
    for (group, out) in outs.iter().flat_map(|out| out.chunks(16).enumerate()) {
        let items = out.len();
        assert_eq!(out[0] as usize, items / 2, "group {group}");
        // Tickets of a warp rise with the lanes; which warp comes first is not said.
        let mut tickets: Vec<u32> = out.iter().copied().skip(1).step_by(2).collect();
        assert!(tickets.chunks(4).all(<[u32]>::is_sorted), "{tickets:?}");
        tickets.sort_unstable();
        assert_eq!(tickets, (0..items as u32 / 2).collect::<Vec<_>>());
        assert!(out.iter().skip(2).step_by(2).all(|&word| word == 99));
    }
}

/// A lock that all lanes of all warps take, also under a condition.
#[test]
fn locks_are_taken_by_one_lane_after_the_other() {
    let arch: ArchId = "4w32/16/8/4+x".parse().unwrap();
    let kernels = compile_all(arch, |b| {
        let data = b.param(ParamType::Pointer);
        let (i, word) = (b.global_id(0), b.word_int());
        let [zero, one] = [0, 1].map(|value| b.ins().iconst(word, value));
        let third = b.ins().urem_imm_u(i, 3);
        b.if_then(third, |b| {
            b.for_each_active_lane(|b| {
                b.while_loop(|b| b.compare_exchange_elem(zero, one, data, zero), |_| {});
                // Not atomic: the lock makes it so.
                let count = b.load_elem(word, data, one);
                let count = b.ins().iadd_imm_s(count, 1);
                b.store_elem(count, data, one);
                b.atomic_elem(AtomicRmwOp::Xchg, zero, data, zero);
            });
        });
    });
    for kernel in &kernels {
        let out = run(&mut device(arch, 1), kernel, LaunchConfig::grid_1d(100), &[0; 2]);
        assert_eq!(out, [0, 66]);
    }
}

/// Lanes take turns in the order of their numbers, by base instructions, too.
#[test]
fn active_lanes_take_turns_in_order() {
    for id in ["harp32", "8b16/8/8/2"] {
        let arch: ArchId = id.parse().unwrap();
        let kernel = compile(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let zero = b.ins().iconst(word, 0);
            let odd = b.ins().band_imm_u(i, 1);
            b.if_then(odd, |b| {
                b.for_each_active_lane(|b| {
                    let old = b.load_elem(word, data, zero);
                    let shifted = b.ins().imul_imm_s(old, 10);
                    let new = b.ins().iadd(shifted, i);
                    b.store_elem(new, data, zero);
                });
            });
        });
        let out = run(&mut device(arch, 1), &kernel, LaunchConfig::grid_1d(7), &[0]);
        assert_eq!(out, [135], "{id}");
    }
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let arch = ArchId::HARP32;
    let mut device = device(arch, 1);
    let kernel = compile(arch, |b| b.barrier());
    let line = LaunchConfig::grid_1d(100);
    let error = device.launch(&kernel, line, &[]).unwrap_err();
    assert_eq!(error, LaunchError::NoGroups { kernel: "test".into() });
    let error = device.launch(&kernel, line.with_groups_1d(257), &[]).unwrap_err();
    assert_eq!(error, LaunchError::GroupTooLarge { given: [257, 1, 1], limit: 256 });
    let error = device.launch(&kernel, line.with_groups([4, 0, 1]), &[]).unwrap_err();
    assert_eq!(error, LaunchError::GroupEmpty { given: [4, 0, 1] });
    let report = device.launch(&kernel, line.with_groups_1d(256), &[]).unwrap();
    assert_eq!(report.group, Some([256, 1, 1]));
    // Twice the device's memory for each of 16 groups.
    let kernel = compile(arch, |b| {
        b.group_array(types::I32, 1 << 25);
    });
    let grid = LaunchConfig::grid_1d(16).with_groups_1d(1);
    let error = device.launch(&kernel, grid, &[]).unwrap_err();
    assert!(matches!(error, LaunchError::Stacks(_)), "{error}");
}

/// Functions take part: kernels that call them use groups, single calls have none.
#[test]
fn functions_use_the_groups_of_their_kernels() {
    let arch = ArchId::HARP32;
    let text = "function %wait(i32) -> i32 {
            fn0 = %harp_barrier()
            fn1 = %harp_local_size_x() -> i32
            fn2 = %harp_any(i8) -> i8
        block0(v0: i32):
            call fn0()
            v1 = call fn1()
            v2 = icmp ugt v0, v1
            v3 = call fn2(v2)
            v4 = uextend.i32 v3
            v5 = iadd v1, v4
            return v5
        }";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut module = Module::new(arch, CompileOptions::default());
    let wait = module.declare_function("wait", Linkage::Local, &func.signature).unwrap();
    let signature = func.signature.clone();
    module.define_function(wait, &func).unwrap();
    let mut source = KernelSource::new("test", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
    let wait = module.declare_func_in_func(wait, b.inner().func).unwrap();
    let call = b.ins().call(wait, &[i]);
    let result = b.inner().inst_results(call)[0];
    b.store_elem(result, data, i);
    b.return_();
    b.finalize().unwrap();
    let kernel = module.compile_kernel(&source).unwrap();
    assert!(kernel.uses_groups());
    let config = LaunchConfig::grid_1d(42).with_groups_1d(40);
    let out = run(&mut device(arch, 1), &kernel, config, &[0; 42]);
    // A group of 40 has no work-item above 40; of those of the group of two both are.
    assert_eq!((&out[..40], &out[40..]), (&[40; 40][..], &[3, 3][..]));
    let error = Program::new(&module.finish().unwrap(), "wait", &signature).unwrap_err();
    assert!(matches!(error, ProgramError::UsesGroups { name } if name == "wait"));
}

#[test]
fn misuse_is_named_with_its_place() {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let mut kind = |build: &mut dyn FnMut(&mut KernelBuilder<'_>)| {
        let mut b = KernelBuilder::new(&mut source);
        build(&mut b);
        b.return_();
        b.finalize().unwrap_err().kind
    };
    for build in [
        (|b, dim| b.local_id(dim)) as fn(&mut KernelBuilder<'_>, u8) -> Value,
        |b, dim| b.group_id(dim),
        |b, dim| b.local_size(dim),
        |b, dim| b.group_size(dim),
        |b, dim| b.group_count(dim),
    ] {
        let found = kind(&mut |b| {
            build(b, 3);
        });
        assert_eq!(found, BuildErrorKind::Dimension { given: 3 });
    }
    let too_much = kind(&mut |b| {
        b.group_array(types::I32, 1 << 25);
        b.group_array(types::F64, 1 << 25);
    });
    assert_eq!(too_much, BuildErrorKind::GroupMemory { given: 3 << 27, limit: 1 << 28 });
    let part = kind(&mut |b| {
        let i = b.global_id(0);
        b.ballot(i, 2);
    });
    assert_eq!(part, BuildErrorKind::BallotPart { given: 2 });
}
