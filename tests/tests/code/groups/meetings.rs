//! Where lanes meet, seen by how many do: all of those with which the kernel begins.

use harp_jit::ir::Value;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{ArchId, Kernel, KernelBuilder, ParamType, Reduction};
use harp_runtime::LaunchConfig;

use super::{MACHINES, compile_all, compile_all_calling, device, run};

/// What a work-item needs to count the lanes that are with it.
struct Count {
    data: Value,
    item: Value,
    all: Value,
}

impl Count {
    /// Counts the lanes with which the kernel begins. Its parameter is an array of zeros.
    fn begin(b: &mut KernelBuilder<'_>) -> Count {
        let data = b.param(ParamType::Pointer);
        let (item, all) = (b.global_id(0), lanes(b));
        Count { data, item, all }
    }

    /// Adds 1 to the work-item's word, if as many lanes are here.
    fn here(&self, b: &mut KernelBuilder<'_>) {
        let (word, here) = (b.word_int(), lanes(b));
        let same = b.ins().icmp(IntCC::Equal, here, self.all);
        let same = b.ins().uextend(word, same);
        let before = b.load_elem(word, self.data, self.item);
        let after = b.ins().iadd(before, same);
        b.store_elem(after, self.data, self.item);
    }
}

fn lanes(b: &mut KernelBuilder<'_>) -> Value {
    let word = b.word_int();
    let one = b.ins().iconst(word, 1);
    b.reduce(Reduction::Iadd, one)
}

/// Launches kernels in which work-items count three times.
fn count_three_times(id: &str, kernels: &[Kernel]) {
    for kernel in kernels {
        let config = LaunchConfig::grid_1d(16).with_groups_1d(8);
        let out = run(&device(kernel.arch(), 1), kernel, config, &[0; 16]);
        assert_eq!(out, [3; 16], "{id}\n{}", kernel.disassembly());
    }
}

/// An inner loop that lanes leave in different rounds, with a barrier to which nobody comes. They count behind it, in the outer
/// loop.
fn loops_with_a_barrier_inside(b: &mut KernelBuilder<'_>) {
    let count = Count::begin(b);
    let word = b.word_int();
    let [outer, inner, wait, test, behind, exit] = std::array::from_fn(|_| b.create_block());
    let round = b.append_block_param(outer, word);
    let left = b.append_block_param(inner, word);
    let three = b.ins().iconst(word, 3);
    b.ins().jump(outer, &[three.into()]);

    b.switch_to_block(outer);
    let rounds = b.ins().band_imm_u(count.item, 3);
    b.ins().jump(inner, &[rounds.into()]);

    b.switch_to_block(inner);
    let value = b.load_elem(word, count.data, count.item);
    let never = b.ins().icmp_imm_s(IntCC::SignedLessThan, value, 0);
    b.ins().brif(never, wait, &[], test, &[]);

    b.switch_to_block(wait);
    b.barrier();
    b.ins().jump(test, &[]);

    b.switch_to_block(test);
    let less = b.ins().iadd_imm_s(left, -1);
    let more = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, less, 0);
    b.ins().brif(more, inner, &[less.into()], behind, &[]);

    b.switch_to_block(behind);
    count.here(b);
    let next = b.ins().iadd_imm_s(round, -1);
    b.ins().brif(next, outer, &[next.into()], exit, &[]);
    b.switch_to_block(exit);
}

#[test]
fn lanes_meet_behind_a_loop_in_which_others_might_wait() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        count_three_times(id, &compile_all(arch, loops_with_a_barrier_inside));
    }
}

/// Two ways lead back to one header, at which lanes count; on one of them, `call` calls a function.
fn loop_with_a_call(b: &mut KernelBuilder<'_>, call: impl FnOnce(&mut KernelBuilder<'_>)) {
    let count = Count::begin(b);
    let word = b.word_int();
    let [header, test, calls, back, exit] = std::array::from_fn(|_| b.create_block());
    let round = b.append_block_param(header, word);
    let three = b.ins().iconst(word, 3);
    b.ins().jump(header, &[three.into()]);

    b.switch_to_block(header);
    count.here(b);
    let next = b.ins().iadd_imm_s(round, -1);
    b.ins().brif(next, test, &[], exit, &[]);

    b.switch_to_block(test);
    let bit = b.ins().ushr(count.item, next);
    let is_set = b.ins().band_imm_u(bit, 1);
    b.ins().brif(is_set, calls, &[], back, &[]);

    b.switch_to_block(calls);
    call(b);
    b.ins().jump(header, &[next.into()]);

    b.switch_to_block(back);
    b.ins().jump(header, &[next.into()]);
    b.switch_to_block(exit);
}

#[test]
fn lanes_meet_at_a_header_though_some_call_a_function() {
    let text = "function %nothing() {
        block0:
            return
        }";
    for id in MACHINES {
        let kernels = compile_all_calling(id.parse().unwrap(), text, |b, nothing| {
            loop_with_a_call(b, |b| {
                b.ins().call(nothing, &[]);
            });
        });
        count_three_times(id, &kernels);
    }
}
