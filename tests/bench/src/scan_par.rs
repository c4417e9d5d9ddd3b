//! Scan-par: the work-items of a group look through one row for a value, each at elements a group's size
//! apart, and determine the first place in the group's memory.
//!
//! When lanes leave the loop, and when they take over a place that others found, depends on the data.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::{index_type, numbers};
use super::parts::{Search, Tree};
use super::{Input, MAX_GROUP, Scale, Work, group_size, word};

/// Elements of a row.
const ROW: usize = 2048;
/// The value looked for.
const VALUE: i32 = 7;

/// Parameters: the rows, the places found, the length of a row, and the value. A place equal to the length means
/// that the value was not found.
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
    let search = Search { rows, start, length, from: local, value, none: length };
    let own = search.build(b, |b, place| b.ins().iadd(place, size));
    let tree = Tree { values: firsts, local, size };
    tree.build(b, own, [places, group], |b, [mine, other]| {
        let is_before = b.ins().icmp(IntCC::UnsignedLessThan, other, mine);
        b.if_then(is_before, |b| b.store_elem(other, firsts, local));
    });
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, arch: ArchId) -> Work {
    let (groups, group) = (scale.of(16), group_size(arch));
    let mut next = numbers();
    let mut rows = Vec::with_capacity(groups * ROW);
    for _ in 0..groups {
        let skewed = next() % 8;
        // Whether the value is at place `at`, which belongs to work-item `at % group`.
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
