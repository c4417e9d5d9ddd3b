//! Binary search: each work-item looks for a key of its own in a sorted array.
//!
//! The half in which a lane continues, and when it is done, depend on its key.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::{index_type, numbers};
use super::{Input, Scale, Work, word};

/// Elements of the sorted array: each is twice its index.
const LENGTH: usize = 4095;

/// Parameters: the sorted array, its length, the keys, and the places found.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("binsearch", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let [sorted, keys, places] = std::array::from_fn(|_| b.param(ParamType::Pointer));
    let length = b.param(index_type(arch));
    let (i, word) = (b.global_id(0), b.word_int());
    let key = b.load_elem(word, keys, i);
    let (zero, minus_one) = (b.ins().iconst(word, 0), b.ins().iconst(word, -1));
    let [low, high, found] = std::array::from_fn(|_| b.declare_var(word));
    let last = b.ins().iadd_imm_s(length, -1);
    b.def_var(low, zero);
    b.def_var(high, last);
    b.def_var(found, minus_one);

    let [header, look, hit, miss, above, below, done] = std::array::from_fn(|_| b.create_block());
    b.ins().jump(header, &[]);
    b.switch_to_block(header);
    let (from, to) = (b.use_var(low), b.use_var(high));
    let more = b.ins().icmp(IntCC::SignedLessThanOrEqual, from, to);
    b.ins().brif(more, look, &[], done, &[]);
    b.switch_to_block(look);
    let sum = b.ins().iadd(from, to);
    let middle = b.ins().ushr_imm_u(sum, 1);
    let element = b.load_elem(word, sorted, middle);
    let is_it = b.ins().icmp(IntCC::Equal, element, key);
    b.ins().brif(is_it, hit, &[], miss, &[]);
    b.switch_to_block(hit);
    b.def_var(found, middle);
    b.ins().jump(done, &[]);
    b.switch_to_block(miss);
    let is_above = b.ins().icmp(IntCC::SignedLessThan, element, key);
    b.ins().brif(is_above, above, &[], below, &[]);
    b.switch_to_block(above);
    let after = b.ins().iadd_imm_s(middle, 1);
    b.def_var(low, after);
    b.ins().jump(header, &[]);
    b.switch_to_block(below);
    let before = b.ins().iadd_imm_s(middle, -1);
    b.def_var(high, before);
    b.ins().jump(header, &[]);
    b.switch_to_block(done);
    b.seal_all_blocks();
    let found = b.use_var(found);
    b.store_elem(found, places, i);
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, _arch: ArchId) -> Work {
    let items = scale.of(2048);
    let mut next = numbers();
    // Odd keys are not in the array: their search takes all 12 steps.
    let key = |item: usize| match input {
        Input::Random => next() % (2 * LENGTH),
        Input::Skewed if next().is_multiple_of(16) => next() % (2 * LENGTH),
        Input::Skewed => next() % 8 + LENGTH,
        Input::Unanimous => LENGTH / 3 * 2 + 1,
        // Alternately the middle, found at once, and a key whose search takes longest.
        Input::Worst if item.is_multiple_of(2) => LENGTH / 2 * 2,
        Input::Worst => 2 * (next() % LENGTH) + 1,
    };
    let keys = (0..items).map(key).map(|key| key as i32).collect();
    let sorted = (0..LENGTH as i32).map(|index| 2 * index).collect();
    Work {
        arrays: vec![sorted, keys, vec![-2; items]],
        result: 2,
        params: vec![LENGTH as i32],
        config: LaunchConfig::grid_1d(items),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let place = |key: &i32| work.arrays[0].binary_search(key);
    work.arrays[1].iter().map(|key| place(key).map_or(word(-1), |place| place as u32)).collect()
}
