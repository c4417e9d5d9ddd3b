//! Barriers, and memory that groups share.

use harp_bench::array::Array;
use harp_emu::TrapKind;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{ArchId, Kernel, KernelBuilder, ParamType};
use harp_runtime::{Device, DeviceConfig, LaunchConfig, LaunchError, LaunchTrap};

use super::{MACHINES, compile, compile_all, compile_all_calling, device, run};

/// As [`run`], for launches that end in a trap.
fn trap_of(arch: ArchId, kernel: &Kernel, config: LaunchConfig) -> LaunchTrap {
    let device = device(arch, 1);
    let array = Array::of_ints(&device, &[0; 256]).unwrap();
    match device.launch(kernel, config, &[array.arg()]) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("{other:?}"),
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
            let out = run(&device(arch, cores), &kernel, config, &words);
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
        let device = Device::new(config).unwrap();
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
        assert!(trap.place.is_some_and(|place| place.to_string().contains("barriers.rs")));
        // One of two warps.
        let trap = trap_of(arch, &under(16), grid);
        assert!(matches!(trap.trap.kind, TrapKind::Deadlock { .. }), "{trap}");
        // All, and none: the branch is divergent to the compiler, the lanes agree.
        for limit in [32, 0] {
            run(&device(arch, 1), &under(limit), grid, &[0; 64]);
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
        let out = run(&device(arch, 1), &kernel, config, &words);
        assert_eq!(out[64], size as u32);
    }
}

/// Two loops with one header: the inner one goes round as often as the lane likes, the outer one waits for the
/// group in every round. With `latch`, a block that both go back through.
fn loops_that_share_a_header(b: &mut KernelBuilder<'_>, latch: bool) {
    let data = b.param(ParamType::Pointer);
    let (local, global, size) = (b.local_index(), b.global_id(0), b.local_size(0));
    let word = b.word_int();
    let sums = b.group_array(word, 256);
    let [header, back, behind, exit] = std::array::from_fn(|_| b.create_block());
    // How far the inner loop still goes, the sum, and the round.
    let append =
        |b: &mut KernelBuilder<'_>, block| [word; 3].map(|ty| b.append_block_param(block, ty));
    let (here, back_params) = (append(b, header), append(b, back));
    let again = if latch { back } else { header };
    let zero = b.ins().iconst(word, 0);
    b.ins().jump(header, &[local.into(), zero.into(), zero.into()]);

    b.switch_to_block(header);
    let [rest, sum, round] = here;
    let sum = b.ins().iadd(sum, rest);
    let rest = b.ins().ushr_imm_u(rest, 1);
    b.ins().brif(rest, again, &[rest.into(), sum.into(), round.into()], behind, &[]);

    b.switch_to_block(behind);
    b.store_elem(sum, sums, local);
    b.barrier();
    let next = b.ins().iadd_imm_s(local, 1);
    let next = b.ins().urem(next, size);
    let other = b.load_elem(word, sums, next);
    b.barrier();
    let sum = b.ins().iadd(sum, other);
    let round = b.ins().iadd_imm_s(round, 1);
    let more = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, round, 3);
    b.ins().brif(more, again, &[local.into(), sum.into(), round.into()], exit, &[]);

    b.switch_to_block(back);
    b.ins().jump(header, &back_params.map(Into::into));
    b.switch_to_block(exit);
    b.store_elem(sum, data, global);
}

#[test]
fn a_barrier_behind_an_inner_loop_may_share_its_header() {
    const GROUP: usize = 12;
    let mut wanted: Vec<u32> = vec![0; GROUP];
    for _ in 0..3 {
        let halves = |lane: usize| (0..8).map(|times| (lane >> times) as u32).sum::<u32>();
        let sums: Vec<u32> = wanted.iter().enumerate().map(|(i, sum)| sum + halves(i)).collect();
        wanted = (0..GROUP).map(|lane| sums[lane] + sums[(lane + 1) % GROUP]).collect();
    }
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        for latch in [false, true] {
            for kernel in compile_all(arch, |b| loops_that_share_a_header(b, latch)) {
                let config = LaunchConfig::grid_1d(2 * GROUP).with_groups_1d(GROUP);
                let out = run(&device(arch, 1), &kernel, config, &[0; 2 * GROUP]);
                assert_eq!(out, [&wanted[..], &wanted[..]].concat(), "{id}, latch: {latch}");
            }
        }
    }
}

/// A tree of sums in which a work-item goes through the outer header only when it has a new sum; all wait in the inner loop.
/// With `branch`, the way to the inner loop is no straight line. `barrier` makes the barrier.
fn loops_that_wait_in_the_inner_one(
    b: &mut KernelBuilder<'_>,
    branch: bool,
    barrier: impl FnOnce(&mut KernelBuilder<'_>),
) {
    let data = b.param(ParamType::Pointer);
    let (local, global, size) = (b.local_index(), b.global_id(0), b.local_size(0));
    let word = b.word_int();
    let sums = b.group_array(word, 256);
    let [outer, inner, test, work, exit] = std::array::from_fn(|_| b.create_block());
    let [sum, span] = [word; 2].map(|ty| b.append_block_param(outer, ty));
    let inner_span = b.append_block_param(inner, word);
    let (start, one) = (b.load_elem(word, data, global), b.ins().iconst(word, 1));
    b.ins().jump(outer, &[start.into(), one.into()]);

    b.switch_to_block(outer);
    b.store_elem(sum, sums, local);
    if branch {
        let odd = b.ins().band_imm_u(local, 1);
        b.if_then(odd, |b| b.store_elem(sum, sums, local));
    }
    b.ins().jump(inner, &[span.into()]);

    b.switch_to_block(inner);
    barrier(b);
    let more = b.ins().icmp(IntCC::UnsignedLessThan, inner_span, size);
    b.ins().brif(more, test, &[], exit, &[]);

    b.switch_to_block(test);
    let next = b.ins().ishl_imm_u(inner_span, 1);
    let rest = b.ins().urem(local, next);
    b.ins().brif(rest, inner, &[next.into()], work, &[]);

    b.switch_to_block(work);
    let other = b.ins().iadd(local, inner_span);
    let other = b.load_elem(word, sums, other);
    let sum_of_both = b.ins().iadd(sum, other);
    b.ins().jump(outer, &[sum_of_both.into(), next.into()]);

    b.switch_to_block(exit);
    b.store_elem(sum, data, global);
}

/// Launches kernels with these loops.
fn sum_trees(id: &str, kernels: &[Kernel]) {
    const GROUP: usize = 8;
    let start: Vec<i32> = (0..2 * GROUP as i32).map(|n| n * n % 23).collect();
    let sum_from = |i: usize| -> u32 {
        let local = i % GROUP;
        let span = if local == 0 { GROUP } else { 1 << local.trailing_zeros() };
        start[i..i + span].iter().sum::<i32>() as u32
    };
    let wanted: Vec<u32> = (0..start.len()).map(sum_from).collect();
    for kernel in kernels {
        let config = LaunchConfig::grid_1d(2 * GROUP).with_groups_1d(GROUP);
        let out = run(&device(kernel.arch(), 1), kernel, config, &start);
        assert_eq!(out, wanted, "{id}\n{}", kernel.disassembly());
    }
}

#[test]
fn lanes_may_leave_a_loop_with_a_barrier_for_the_loop_around_it() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        for branch in [false, true] {
            let build = |b: &mut KernelBuilder<'_>| {
                loops_that_wait_in_the_inner_one(b, branch, |b| b.barrier());
            };
            sum_trees(id, &compile_all(arch, build));
        }
    }
}

#[test]
fn lanes_may_leave_a_loop_that_calls_a_function_with_a_barrier() {
    let text = "function %wait() {
            fn0 = %harp_barrier()
        block0:
            call fn0()
            return
        }";
    for id in MACHINES {
        let kernels = compile_all_calling(id.parse().unwrap(), text, |b, wait| {
            loops_that_wait_in_the_inner_one(b, false, |b| {
                b.ins().call(wait, &[]);
            });
        });
        sum_trees(id, &kernels);
    }
}
