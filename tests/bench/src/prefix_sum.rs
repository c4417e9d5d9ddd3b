//! Prefix sum: one group walks over a vector in tiles of its size and sums each tile in steps of doubling
//! distance (Hillis and Steele, "Data parallel algorithms", CACM 1986), alternating between two copies.
//!
//! The branches depend on the numbers of work-items and the vector's length: whether a work-item has an
//! element, whether the element counts, which depends on its position in a period, and whether the work-item has
//! another at the step's distance to its left.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::{Generator, index_type};
use super::{Input, MAX_GROUP, Scale, Work, group_size, word};

/// Parameters: the vector, the sums, the vector's length, the period, and how many elements of it count.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("psum", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let (vector, sums) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let [length, period, counting] = std::array::from_fn(|_| b.param(index_type(arch)));
    let (local, size) = (b.local_id(0), b.local_size(0));
    let word = b.word_int();
    let tiles = b.group_array(word, 2 * MAX_GROUP as u32);
    let zero = b.ins().iconst(word, 0);
    let carry = b.declare_var(word);

    b.for_range_unsigned(zero, length, size, |b, start| {
        let i = b.ins().iadd(start, local);
        let exists = b.ins().icmp(IntCC::UnsignedLessThan, i, length);
        let sum = b.declare_var(word);
        b.def_var(sum, zero);
        b.if_then(exists, |b| {
            let place = b.ins().urem(i, period);
            let counts = b.ins().icmp(IntCC::UnsignedLessThan, place, counting);
            b.if_then(counts, |b| {
                let element = b.load_elem(word, vector, i);
                b.def_var(sum, element);
            });
        });
        let copy = b.declare_var(word);
        b.def_var(copy, zero);
        let distance = b.declare_var(word);
        let one = b.ins().iconst(word, 1);
        b.def_var(distance, one);
        b.while_loop(
            |b| {
                let distance = b.use_var(distance);
                b.ins().icmp(IntCC::UnsignedLessThan, distance, size)
            },
            |b| {
                let (from, far) = (b.use_var(copy), b.use_var(distance));
                let (own, place) = (b.use_var(sum), b.ins().iadd(from, local));
                b.store_elem(own, tiles, place);
                b.barrier();
                let has_left = b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, local, far);
                b.if_then(has_left, |b| {
                    let place = b.ins().isub(place, far);
                    let left = b.load_elem(word, tiles, place);
                    let both = b.ins().iadd(own, left);
                    b.def_var(sum, both);
                });
                // Switch to the other copy: warps that are ahead must not overwrite what others still read.
                let other = b.ins().bxor_imm_u(from, MAX_GROUP as i64);
                b.def_var(copy, other);
                let double = b.ins().iadd(far, far);
                b.def_var(distance, double);
            },
        );
        let (own, before) = (b.use_var(sum), b.use_var(carry));
        let total = b.ins().iadd(own, before);
        b.if_then(exists, |b| b.store_elem(total, sums, i));

        // The next tile starts from the last work-item's sum.
        let copy = b.use_var(copy);
        let last = b.ins().iadd_imm_s(size, -1);
        let is_last = b.ins().icmp(IntCC::Equal, local, last);
        b.if_then(is_last, |b| b.store_elem(total, tiles, copy));
        b.barrier();
        let next = b.load_elem(word, tiles, copy);
        b.def_var(carry, next);
        b.barrier();
    });
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, arch: ArchId) -> Work {
    let group = group_size(arch);
    let (most, lanes) = (scale.of(4096), usize::from(arch.lanes()));
    let [length, period, counting] = match input {
        Input::Random => [most - most / 7, 7, 4],
        Input::Skewed => [most - group.min(most) + 1, 64, 61],
        Input::Unanimous => [most, 64, 64],
        Input::Worst => [most - lanes.div_ceil(2), 2, 1],
    };
    let vector = Generator::new().take(length).map(|number| (number & 0xff) as i32).collect();
    Work {
        arrays: vec![vector, vec![-1; length]],
        result: 1,
        params: [length, period, counting].map(|param| param as i32).to_vec(),
        config: LaunchConfig::grid_1d(group).with_groups_1d(group),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let [period, counting] = [work.params[1], work.params[2]].map(|param| param as usize);
    let elements = work.arrays[0].iter().enumerate();
    let sums = elements.scan(0, |sum, (i, element)| {
        *sum += if i % period < counting { *element } else { 0 };
        Some(word(*sum))
    });
    sums.collect()
}
