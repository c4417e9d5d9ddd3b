//! Hashtable: each work-item counts keys in a table of its own, with linear probing, and then looks some keys
//! up.
//!
//! How far a lane probes, and whether it finds the key or a free slot, depends on its keys. Tables are
//! private, because lanes cannot share one without atomic operations.

use harp_isa::ArchId;
use harp_jit::ir::Value;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelBuilder, KernelSource, ParamType};
use harp_runtime::LaunchConfig;

use super::data::numbers;
use super::{Input, Scale, Work, word};

/// Slots of a table, a power of two.
const SLOTS: usize = 16;
/// Keys that are counted: fewer than slots, so that one stays free.
const KEYS: usize = 10;
/// Keys that are looked up.
const QUERIES: usize = 6;
/// The factor of the hash function, for keys below 2^15.
const FACTOR: usize = 40_503;
/// The lowest bit of the product that the hash function takes.
const SHIFT: usize = 11;

/// Parameters: the keys, the queries, the tables' keys (0: free) and counts, and the answers. An answer is
/// the sum of the counts, each weighted by the number of its query.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("hashtable", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let [keys, queries, slots, counts, answers] =
        std::array::from_fn(|_| b.param(ParamType::Pointer));
    let (i, word) = (b.global_id(0), b.word_int());
    let table = b.ins().imul_imm_s(i, SLOTS as i64);
    let (zero, one) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));

    let first = b.ins().imul_imm_s(i, KEYS as i64);
    let end = b.ins().iconst(word, KEYS as i64);
    b.for_range_unsigned(zero, end, one, |b, k| {
        let index = b.ins().iadd(first, k);
        let key = b.load_elem(word, keys, index);
        let found = |b: &mut KernelBuilder<'_>, place| {
            let count = b.load_elem(word, counts, place);
            let count = b.ins().iadd_imm_s(count, 1);
            b.store_elem(count, counts, place);
        };
        let free = |b: &mut KernelBuilder<'_>, place| {
            b.store_elem(key, slots, place);
            b.store_elem(one, counts, place);
        };
        probe(b, key, [slots, table], found, free);
    });

    let answer = b.declare_var(word);
    let first = b.ins().imul_imm_s(i, QUERIES as i64);
    let end = b.ins().iconst(word, QUERIES as i64);
    b.for_range_unsigned(zero, end, one, |b, q| {
        let index = b.ins().iadd(first, q);
        let key = b.load_elem(word, queries, index);
        let found = |b: &mut KernelBuilder<'_>, place| {
            let count = b.load_elem(word, counts, place);
            let weight = b.ins().iadd_imm_s(q, 1);
            let weighed = b.ins().imul(count, weight);
            let old = b.use_var(answer);
            let sum = b.ins().iadd(old, weighed);
            b.def_var(answer, sum);
        };
        probe(b, key, [slots, table], found, |_, _| {});
    });
    let answer = b.use_var(answer);
    b.store_elem(answer, answers, i);
    b.return_();
    builder.finalize()?;
    Ok(source)
}

/// Looks for `key` in the table that starts at `table` in `slots`, from the key's hash onwards. Continues with
/// `if_found` or, if the key is missing, with `if_free`; both get the slot's place.
fn probe(
    b: &mut KernelBuilder<'_>,
    key: Value,
    [slots, table]: [Value; 2],
    if_found: impl FnOnce(&mut KernelBuilder<'_>, Value),
    if_free: impl FnOnce(&mut KernelBuilder<'_>, Value),
) {
    let word = b.word_int();
    let mask = SLOTS as i64 - 1;
    let [header, occupied, next, found, free, done] = std::array::from_fn(|_| b.create_block());
    let at = b.append_block_param(header, word);
    let product = b.ins().imul_imm_s(key, FACTOR as i64);
    let hash = b.ins().ushr_imm_u(product, SHIFT as i64);
    let start = b.ins().band_imm_u(hash, mask);
    b.ins().jump(header, &[start.into()]);
    b.switch_to_block(header);
    let place = b.ins().iadd(table, at);
    let slot = b.load_elem(word, slots, place);
    let is_it = b.ins().icmp(IntCC::Equal, slot, key);
    b.ins().brif(is_it, found, &[], occupied, &[]);
    b.switch_to_block(occupied);
    b.ins().brif(slot, next, &[], free, &[]);
    b.switch_to_block(next);
    let after = b.ins().iadd_imm_s(at, 1);
    let after = b.ins().band_imm_u(after, mask);
    b.ins().jump(header, &[after.into()]);
    for block in [header, occupied, next] {
        b.seal_block(block);
    }
    b.switch_to_block(found);
    if_found(b, place);
    b.ins().jump(done, &[]);
    b.switch_to_block(free);
    if_free(b, place);
    b.ins().jump(done, &[]);
    b.switch_to_block(done);
    for block in [found, free, done] {
        b.seal_block(block);
    }
}

/// The slot at which the search for a key starts.
fn hash(key: usize) -> usize {
    ((key * FACTOR) >> SHIFT) % SLOTS
}

pub(super) fn work(input: Input, scale: Scale, _arch: ArchId) -> Work {
    let items = scale.of(1024);
    let mut next = numbers();
    // Keys with the same hash, and one key for each hash.
    let colliding: Vec<usize> = (1..1 << 15).filter(|&key| hash(key) == 3).collect();
    let spread: Vec<usize> =
        (0..SLOTS).filter_map(|slot| (1..1 << 15).find(|&key| hash(key) == slot)).collect();
    let mut key = |item: usize, number: usize| match input {
        Input::Random => next() % 24 + 1,
        Input::Skewed if next().is_multiple_of(8) => next() % 24 + 1,
        Input::Skewed => 5,
        Input::Unanimous => number % 7 + 1,
        Input::Worst if item.is_multiple_of(2) => colliding[number],
        Input::Worst => spread[number],
    };
    let mut keys = Vec::with_capacity(items * KEYS);
    let mut queries = Vec::with_capacity(items * QUERIES);
    for item in 0..items {
        keys.extend((0..KEYS).map(|number| key(item, number) as i32));
        queries.extend((0..QUERIES).map(|number| key(item, KEYS - 1 - number) as i32));
    }
    let table = vec![0; items * SLOTS];
    Work {
        arrays: vec![keys, queries, table.clone(), table, vec![-1; items]],
        result: 4,
        params: Vec::new(),
        config: LaunchConfig::grid_1d(items),
    }
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let rows = work.arrays[0].chunks(KEYS).zip(work.arrays[1].chunks(QUERIES));
    let answer = |(keys, queries): (&[i32], &[i32])| {
        let count = |query: &i32| keys.iter().filter(|&key| key == query).count() as i32;
        word((1..).zip(queries).map(|(weight, query)| weight * count(query)).sum())
    };
    rows.map(answer).collect()
}
