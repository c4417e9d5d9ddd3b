//! What lanes tell each other, and in turns.

use harp_jit::ir::condcodes::IntCC;
use harp_jit::ir::{AtomicRmwOp, Value, types};
use harp_jit::{ArchId, KernelBuilder, ParamType, Reduction};
use harp_runtime::LaunchConfig;

use super::{compile, compile_all, device, run};

/// Machines of 8 lanes and more.
const OF_8_LANES: [&str; 5] =
    ["4w8/8/8/2", "8b32/16/8/2", "4w8/2/8/1+x", "harp64+x", "4w64/64/8/4"];

/// Votes and shuffles on both sides of a divergent branch, computed by hand for 8 lanes of value `i * 3`.
#[test]
fn votes_and_shuffles_are_among_the_lanes_that_execute_them() {
    for arch in OF_8_LANES.map(|id| id.parse::<ArchId>().unwrap()) {
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
            let out = run(&device(arch, 1), kernel, LaunchConfig::grid_1d(8), &words);
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
                assert_eq!(found, expected, "{arch}, row {}\n{}", row + 1, kernel.disassembly());
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
        let out = run(&device(arch, 1), &kernel, LaunchConfig::grid_1d(8), &[0; 8]);
        assert_eq!(out, [28, 24, 20, 16, 12, 8, 4, 0], "{id}");
    }
}

#[test]
fn ballots_have_a_bit_for_each_lane() {
    for (id, lanes) in [
        ("4w16/8/8/2+x", 8),
        ("4w16/8/64/1+x", 64),
        ("8w32/32/64/1+x", 64),
        ("4w8/8/8/2", 8),
        ("4w16/8/64/1", 64),
        ("8b8/2/64/1", 64),
    ] {
        let arch: ArchId = id.parse().unwrap();
        for kernel in compile_all(arch, |b| {
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
        }) {
            let words = vec![7; 2 * lanes];
            let out = run(&device(arch, 1), &kernel, LaunchConfig::grid_1d(lanes), &words);
            let (low, high) = if lanes == 8 { (0xaa, 0) } else { (0xaaaa_aaaa, 0xaaaa_aaaa) };
            assert!(out[..lanes].iter().all(|&word| word == low), "{id}: {out:x?}");
            assert_eq!(out[lanes..lanes + 2], [7, 7]);
            assert!(out[lanes + 2..].iter().all(|&word| word == high), "{id}: {out:x?}");
        }
    }
}

/// Tickets from a counter of the group, drawn by some lanes only, lowest lane first.
#[test]
fn atomics_count_the_lanes_that_execute_them() {
    for arch in ["4w16/8/8/4+x", "4w16/8/8/4", "8b8/2/8/4"].map(|id| id.parse().unwrap()) {
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
        let outs = kernels.iter().map(|kernel| run(&device(arch, 1), kernel, config, &[99; 40]));
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
}

/// A lock that all lanes of all warps take, also under a condition.
#[test]
fn locks_are_taken_by_one_lane_after_the_other() {
    for arch in ["4w32/16/8/4+x", "4w32/16/8/4", "8w8/2/8/4"].map(|id| id.parse().unwrap()) {
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
            let out = run(&device(arch, 1), kernel, LaunchConfig::grid_1d(100), &[0; 2]);
            assert_eq!(out, [0, 66]);
        }
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
        let out = run(&device(arch, 1), &kernel, LaunchConfig::grid_1d(7), &[0]);
        assert_eq!(out, [135], "{id}");
    }
}

/// In a loop, odd lanes may leave on their side of a branch, which none does before round 2: before, all lanes are together
/// behind the branch.
#[test]
fn lanes_are_together_again_where_others_could_have_left() {
    for arch in OF_8_LANES.map(|id| id.parse::<ArchId>().unwrap()) {
        let kernels = compile_all(arch, |b| {
            let data = b.param(ParamType::Pointer);
            let (i, word) = (b.global_id(0), b.word_int());
            let size = b.global_size(0);
            let limit = b.load_elem(word, data, i);
            let [head, odd, stays, votes, end] = [0; 5].map(|_| b.create_block());
            let round = b.append_block_param(head, word);
            let zero = b.ins().iconst(word, 0);
            b.ins().jump(head, &[zero.into()]);
            b.switch_to_block(head);
            let is_odd = b.ins().band_imm_u(i, 1);
            b.ins().brif(is_odd, odd, &[], votes, &[]);
            b.switch_to_block(odd);
            let leaves = b.ins().icmp(IntCC::Equal, round, limit);
            b.ins().brif(leaves, end, &[], stays, &[]);
            b.switch_to_block(stays);
            b.ins().jump(votes, &[]);
            b.switch_to_block(votes);
            let one = b.ins().iconst(word, 1);
            let count = b.reduce(Reduction::Iadd, one);
            let next = b.ins().iadd(round, one);
            let start = b.ins().imul(size, next);
            let index = b.ins().iadd(start, i);
            b.store_elem(count, data, index);
            let goes_on = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, next, 4);
            b.ins().brif(goes_on, head, &[next.into()], end, &[]);
            b.switch_to_block(end);
        });
        for kernel in &kernels {
            let mut words = vec![2; 8];
            words.resize(5 * 8, -1);
            let out = run(&device(arch, 1), kernel, LaunchConfig::grid_1d(8), &words);
            let left = [4, u32::MAX].repeat(4);
            assert_eq!(out[8..], [vec![8; 16], left.repeat(2)].concat(), "{arch}");
        }
    }
}
