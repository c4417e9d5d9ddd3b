//! Vector sum: each group sums those elements of a part of a vector that count. Its work-items take elements
//! a group's size apart and then add their sums in a tree in the group's memory.
//!
//! The branches depend only on the numbers of work-items: whether an element counts depends on its position
//! in a period, and in each step of the tree half of the work-items remain.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::{Generator, index_type};
use super::parts::Tree;
use super::{Input, MAX_GROUP, Scale, Work, group_size, word};

/// Elements that a work-item takes.
const SHARE: usize = 8;

/// Parameters: the vector, the groups' sums, the period, and how many elements of it count.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("vecsum", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let (vector, sums) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let (period, counting) = (b.param(index_type(arch)), b.param(index_type(arch)));
    let (local, size, group) = (b.local_id(0), b.group_size(0), b.group_id(0));
    let word = b.word_int();
    let values = b.group_array(word, MAX_GROUP as u32);

    let sum = b.declare_var(word);
    let part = b.ins().imul_imm_s(size, SHARE as i64);
    let start = b.ins().imul(group, part);
    let first = b.ins().iadd(start, local);
    let end = b.ins().iadd(start, part);
    b.for_range_unsigned(first, end, size, |b, i| {
        let place = b.ins().urem(i, period);
        let counts = b.ins().icmp(IntCC::UnsignedLessThan, place, counting);
        b.if_then(counts, |b| {
            let element = b.load_elem(word, vector, i);
            let old = b.use_var(sum);
            let new = b.ins().iadd(old, element);
            b.def_var(sum, new);
        });
    });
    let own = b.use_var(sum);
    let tree = Tree { values, local, size };
    tree.build(b, own, [sums, group], |b, [mine, other]| {
        let sum = b.ins().iadd(mine, other);
        b.store_elem(sum, values, local);
    });
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, arch: ArchId) -> Work {
    let group = group_size(arch);
    let part = group * SHARE;
    // The last part is a whole one, too.
    let elements = scale.of(32_768).next_multiple_of(part);
    let [period, counting] = match input {
        Input::Random => [7, 4],
        Input::Skewed => [64, 61],
        Input::Unanimous => [64, 64],
        Input::Worst => [2, 1],
    };
    let vector = Generator::new().take(elements).map(|number| (number & 0xffff) as i32).collect();
    Work {
        arrays: vec![vector, vec![-1; elements / part]],
        result: 1,
        params: vec![period, counting],
        config: LaunchConfig::grid_1d(elements / SHARE).with_groups_1d(group),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let part = work.config.group.expect("the work has groups")[0] as usize * SHARE;
    let [period, counting] = [work.params[0], work.params[1]].map(|param| param as usize);
    let sum = |(number, elements): (usize, &[i32])| {
        let places = (number * part..).zip(elements);
        word(places.filter(|(i, _)| i % period < counting).map(|(_, element)| element).sum())
    };
    work.arrays[0].chunks(part).enumerate().map(sum).collect()
}
