//! Scan-par: the work-items of a group look through one row for a value, each at elements a group's size
//! apart, and agree on the first place in the group's memory.
//!
//! Lanes leave the loop, and take over what others found, as the data has it.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use harp_isa::ArchId;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::{Input, MAX_GROUP, Scale, Work, group_size, word};
use crate::kernels::{Generator, index_type};

/// Elements of a row.
const ROW: usize = 2048;
/// The value looked for.
const VALUE: i32 = 7;

/// Parameters: the rows, the places found, the length of a row, and the value. A place of the length is
/// none.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("scan-par", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let (rows, places) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let (length, value) = (b.param(index_type(arch)), b.param(index_type(arch)));
    let (local, size, group) = (b.local_id(0), b.local_size(0), b.group_id(0));
    let word = b.word_int();
    let firsts = b.group_array(word, MAX_GROUP as u32);
    let start = b.ins().imul(group, length);
    let first = b.declare_var(word);
    b.def_var(first, length);

    let [header, look, hit, next, done] = std::array::from_fn(|_| b.create_block());
    let place = b.append_block_param(header, word);
    b.ins().jump(header, &[local.into()]);
    b.switch_to_block(header);
    let more = b.ins().icmp(IntCC::UnsignedLessThan, place, length);
    b.ins().brif(more, look, &[], done, &[]);
    b.switch_to_block(look);
    let index = b.ins().iadd(start, place);
    let element = b.load_elem(word, rows, index);
    let is_it = b.ins().icmp(IntCC::Equal, element, value);
    b.ins().brif(is_it, hit, &[], next, &[]);
    b.switch_to_block(hit);
    b.def_var(first, place);
    b.ins().jump(done, &[]);
    b.switch_to_block(next);
    let after = b.ins().iadd(place, size);
    b.ins().jump(header, &[after.into()]);
    b.switch_to_block(done);
    b.seal_all_blocks();
    let own = b.use_var(first);
    b.store_elem(own, firsts, local);
    b.barrier();

    // Of `span` places the upper half is compared with the lower one.
    let span = b.declare_var(word);
    b.def_var(span, size);
    b.while_loop(
        |b| {
            let span = b.use_var(span);
            b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, span, 1)
        },
        |b| {
            let old = b.use_var(span);
            let rounded = b.ins().iadd_imm_s(old, 1);
            let half = b.ins().ushr_imm_u(rounded, 1);
            let partner = b.ins().iadd(local, half);
            let has_partner = b.ins().icmp(IntCC::UnsignedLessThan, partner, old);
            b.if_then(has_partner, |b| {
                let mine = b.load_elem(word, firsts, local);
                let other = b.load_elem(word, firsts, partner);
                let is_before = b.ins().icmp(IntCC::UnsignedLessThan, other, mine);
                b.if_then(is_before, |b| b.store_elem(other, firsts, local));
            });
            b.barrier();
            b.def_var(span, half);
        },
    );
    let is_first = b.ins().icmp_imm_u(IntCC::Equal, local, 0);
    b.if_then(is_first, |b| {
        let zero = b.ins().iconst(word, 0);
        let first = b.load_elem(word, firsts, zero);
        b.store_elem(first, places, group);
    });
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, arch: ArchId) -> Work {
    let (groups, group) = (scale.of(16), group_size(arch));
    let mut numbers = Generator::new().map(|number| number as usize);
    let mut next = move || numbers.next().expect("the generator never ends");
    let mut rows = Vec::with_capacity(groups * ROW);
    for _ in 0..groups {
        let skewed = next() % 8;
        // Whether the value is at a place, which is work-item `at % group`'s.
        rows.extend((0..ROW).map(|at| {
            let is_there = match input {
                Input::Random => next().is_multiple_of(12),
                Input::Skewed => at % 8 == skewed && next().is_multiple_of(16),
                Input::Unanimous => false,
                Input::Worst => at % group % 2 == 1,
            };
            if is_there { VALUE } else { VALUE + 1 + (next() & 0xff) as i32 }
        }));
    }
    Work {
        arrays: vec![rows, vec![-2; groups]],
        result: 1,
        params: vec![ROW as i32, VALUE],
        config: LaunchConfig::grid_1d(groups * group).with_groups_1d(group),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let place = |row: &[i32]| row.iter().position(|&element| element == VALUE).unwrap_or(ROW);
    work.arrays[0].chunks(ROW).map(|row| word(place(row) as i32)).collect()
}
