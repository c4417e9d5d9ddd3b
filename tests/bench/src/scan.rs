//! Scan: each work-item looks through a row of its own for a value, one element after the other.
//!
//! When a lane leaves the loop depends on the data.

use harp_isa::ArchId;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::{index_type, numbers};
use super::parts::Search;
use super::{Input, Scale, Work, word};

/// Elements of a row.
const ROW: usize = 48;
/// The value looked for.
const VALUE: i32 = 7;

/// Parameters: the rows, the places found, the length of a row, and the value.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("scan", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let (rows, places) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let (length, value) = (b.param(index_type(arch)), b.param(index_type(arch)));
    let (i, word) = (b.global_id(0), b.word_int());
    let start = b.ins().imul(i, length);
    let (none, from) = (b.ins().iconst(word, -1), b.ins().iconst(word, 0));
    let search = Search { rows, start, length, from, value, none };
    let found = search.build(b, |b, place| b.ins().iadd_imm_s(place, 1));
    b.store_elem(found, places, i);
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, _arch: ArchId) -> Work {
    let items = scale.of(1024);
    let mut next = numbers();
    let mut rows = Vec::with_capacity(items * ROW);
    for item in 0..items {
        // The place of the value; behind the row's end the row does not contain it.
        let place = match input {
            Input::Random => next() % (ROW + 8),
            Input::Skewed if next().is_multiple_of(32) => ROW,
            Input::Skewed => next() % 4,
            Input::Unanimous => ROW / 2,
            Input::Worst if item.is_multiple_of(2) => ROW,
            Input::Worst => item / 2 % 4,
        };
        // The other elements are random numbers that differ from the value.
        rows.extend((0..ROW).map(|at| match at.cmp(&place) {
            std::cmp::Ordering::Equal => VALUE,
            _ => VALUE + 1 + (next() & 0xff) as i32,
        }));
    }
    Work {
        arrays: vec![rows, vec![-2; items]],
        result: 1,
        params: vec![ROW as i32, VALUE],
        config: LaunchConfig::grid_1d(items),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let place = |row: &[i32]| row.iter().position(|&element| element == VALUE);
    let rows = work.arrays[0].chunks(ROW);
    rows.map(|row| place(row).map_or(word(-1), |place| place as u32)).collect()
}
