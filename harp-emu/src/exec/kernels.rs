//! Operations on whole registers, for the fast path.
//!
//! `select` has words that are all ones in the lanes that execute, and zero in others, which keep their values;
//! without it all lanes execute, also those that the machine lacks. Within a group of lanes, kernels work on values
//! that were copied out of the registers, so that the compiler need not prove that destination and sources differ.
//! Loops over groups and lanes are plain `for` loops, because closures given to iterators may become functions of
//! their own, without the features of their caller.

#![expect(clippy::needless_range_loop, reason = "several registers are indexed in step")]

use std::cell::Cell;

use super::lanes::lanes_of;
use super::simd::sign_bits;
use crate::warp::GROUP;
use crate::word::{Cell as _, Word};

/// A group of lanes of a register.
pub(super) type Group<W> = Cell<[W; GROUP]>;

/// `N` registers of `C` groups, and `select`.
pub(super) type Rows<'a, W, const C: usize, const N: usize> =
    ([&'a [Group<W>; C]; N], Option<&'a [Group<W>; C]>);

/// What is done to the words of a lane: the old destination and up to two sources.
///
/// These are types of their own and not closures, because closures in methods of [`Exec`](super::Exec) would be
/// different ones for each number of lanes.
pub(super) trait Operation<W, T>: Copy {
    fn apply(self, old: W, a: W, b: W) -> T;
}

/// A constant.
#[derive(Clone, Copy)]
pub(super) struct Constant<W>(pub(super) W);
/// Of the first source.
#[derive(Clone, Copy)]
pub(super) struct One<F>(pub(super) F);
/// Of both sources.
#[derive(Clone, Copy)]
pub(super) struct Two<F>(pub(super) F);
/// Of the old destination and both sources.
#[derive(Clone, Copy)]
pub(super) struct Three<F>(pub(super) F);
/// Of the first source and an immediate.
#[derive(Clone, Copy)]
pub(super) struct Immediate<W, F>(pub(super) W, pub(super) F);

impl<W: Word> Operation<W, W> for Constant<W> {
    #[inline(always)]
    fn apply(self, _: W, _: W, _: W) -> W {
        self.0
    }
}
impl<W: Word, T, F: Fn(W) -> T + Copy> Operation<W, T> for One<F> {
    #[inline(always)]
    fn apply(self, _: W, a: W, _: W) -> T {
        (self.0)(a)
    }
}
impl<W: Word, T, F: Fn(W, W) -> T + Copy> Operation<W, T> for Two<F> {
    #[inline(always)]
    fn apply(self, _: W, a: W, b: W) -> T {
        (self.0)(a, b)
    }
}
impl<W: Word, F: Fn(W, W, W) -> W + Copy> Operation<W, W> for Three<F> {
    #[inline(always)]
    fn apply(self, old: W, a: W, b: W) -> W {
        (self.0)(old, a, b)
    }
}
impl<W: Word, T, F: Fn(W, W) -> T + Copy> Operation<W, T> for Immediate<W, F> {
    #[inline(always)]
    fn apply(self, _: W, a: W, _: W) -> T {
        (self.1)(a, self.0)
    }
}

/// An array of [`GROUP`] words, whose element `i` is `value`.
macro_rules! words {
    ($i:ident => $value:expr) => {{
        let mut words = [W::ZERO; GROUP];
        for $i in 0..GROUP {
            words[$i] = $value;
        }
        words
    }};
}

/// Which lanes of group number `group` are in `mask`, as words that are `one` or zero.
#[inline(always)]
fn spread_group<W: Word>(mask: u64, group: usize, one: W) -> [W; GROUP] {
    let bits = W::from_u64(mask >> (group * GROUP) & 0xff);
    words!(i => {
        let bit = W::from_u64(1 << i);
        if bits & bit == bit { one } else { W::ZERO }
    })
}

/// Whether all words are zero. In this form the compiler keeps them in vectors.
#[inline(always)]
fn are_zero<W: Word>(words: &[W; GROUP]) -> bool {
    let mut signs = [0; GROUP];
    for i in 0..GROUP {
        signs[i] = if words[i].is_zero() { -1 } else { 0 };
    }
    sign_bits(&signs) == u8::MAX
}

/// The words of `values` where `select` has ones, those of `old` elsewhere.
#[inline(always)]
fn blend<W: Word>(select: &Group<W>, values: [W; GROUP], old: &Group<W>) -> [W; GROUP] {
    let (select, old) = (select.get(), old.get());
    words!(i => (values[i] & select[i]) | (old[i] & !select[i]))
}

/// Writes `values(group number)` to a register, in the lanes that execute.
#[inline(always)]
fn assign<W: Word, const N: usize>(
    dst: &[Group<W>; N],
    select: Option<&[Group<W>; N]>,
    values: impl Fn(usize) -> [W; GROUP],
) {
    match select {
        None => {
            for c in 0..N {
                dst[c].set(values(c));
            }
        }
        Some(select) => {
            for c in 0..N {
                dst[c].set(blend(&select[c], values(c), &dst[c]));
            }
        }
    }
}

/// `dst` := `operation(dst, a, b)`.
///
/// Lanes that do not execute take zero in place of `a`: the small integers that they may hold are subnormal as floats, and
/// some hosts take a hundred times as long to multiply those by anything but zero.
#[inline(always)]
pub(super) fn map<W: Word, const N: usize, O: Operation<W, W>>(
    [dst, a, b]: [&[Group<W>; N]; 3],
    select: Option<&[Group<W>; N]>,
    operation: O,
) {
    match select {
        None => {
            for c in 0..N {
                let (old, x, y) = (dst[c].get(), a[c].get(), b[c].get());
                dst[c].set(words!(i => operation.apply(old[i], x[i], y[i])));
            }
        }
        Some(select) => {
            for c in 0..N {
                let (among, old) = (select[c].get(), dst[c].get());
                let (x, y) = (a[c].get(), b[c].get());
                let values = words!(i => operation.apply(old[i], x[i] & among[i], y[i]));
                dst[c].set(blend(&select[c], values, &dst[c]));
            }
        }
    }
}

/// `t` := `first(t, x, y)`, then `dst` := `second(a, t)`.
#[inline(always)]
pub(super) fn mix<W: Word, const N: usize, O: Operation<W, W>, F: Fn(W, W) -> W>(
    [t, x, y, dst, a]: [&[Group<W>; N]; 5],
    select: Option<&[Group<W>; N]>,
    first: O,
    second: F,
) {
    let held = |c: usize| {
        let (old, x, y) = (t[c].get(), x[c].get(), y[c].get());
        words!(i => first.apply(old[i], x[i], y[i]))
    };
    // Called when `t` has been written: `a` may be the same register.
    let mixed = |c: usize, held: [W; GROUP]| {
        let a = a[c].get();
        words!(i => second(a[i], held[i]))
    };
    match select {
        None => {
            for c in 0..N {
                let held = held(c);
                t[c].set(held);
                dst[c].set(mixed(c, held));
            }
        }
        Some(select) => {
            for c in 0..N {
                let held = held(c);
                t[c].set(blend(&select[c], held, &t[c]));
                dst[c].set(blend(&select[c], mixed(c, held), &dst[c]));
            }
        }
    }
}

/// The lanes, executing or not, where `operation(_, a, b)` holds.
#[inline(always)]
pub(super) fn test<W: Word, const N: usize, O: Operation<W, bool>>(
    [a, b]: [&[Group<W>; N]; 2],
    operation: O,
) -> u64 {
    let mut bits = 0;
    for c in 0..N {
        let (x, y) = (a[c].get(), b[c].get());
        let mut signs = [0; GROUP];
        for i in 0..GROUP {
            signs[i] = if operation.apply(W::ZERO, x[i], y[i]) { -1 } else { 0 };
        }
        bits |= u64::from(sign_bits(&signs)) << (c * GROUP);
    }
    bits
}

/// `t` := `first(t, x, y)`; then the lanes, executing or not, where `second` of `t` holds.
#[inline(always)]
pub(super) fn map_and_test<W: Word, const N: usize, O: Operation<W, W>, F: Fn(W) -> bool + Copy>(
    [t, x, y]: [&[Group<W>; N]; 3],
    select: Option<&[Group<W>; N]>,
    first: O,
    second: F,
) -> u64 {
    map([t, x, y], select, first);
    test([t, t], One(second))
}

/// `dst` := `operation(dst, a, b)`, in the lanes of `mask`, one after the other.
#[inline(never)]
pub(super) fn map_each<W: Word, O: Operation<W, W>>(
    [dst, a, b]: [&[Group<W>]; 3],
    mask: u64,
    operation: O,
) {
    for lane in lanes_of(mask) {
        let dst = word(dst, lane);
        dst.set(operation.apply(dst.get(), word(a, lane).get(), word(b, lane).get()));
    }
}

/// The lanes of `mask` where `operation(_, a, b)` holds, asked one after the other.
#[inline(never)]
pub(super) fn test_each<W: Word, O: Operation<W, bool>>(
    [a, b]: [&[Group<W>]; 2],
    mask: u64,
    operation: O,
) -> u64 {
    lanes_of(mask)
        .filter(|&lane| operation.apply(W::ZERO, word(a, lane).get(), word(b, lane).get()))
        .fold(0, |bits, lane| bits | 1 << lane)
}

/// A lane's word.
#[inline(always)]
pub(super) fn word<W: Word>(groups: &[Group<W>], lane: usize) -> &Cell<W> {
    &groups[lane / GROUP].as_array_of_cells()[lane % GROUP]
}

/// `dst` := `one` in the lanes of `bits`, else 0.
#[inline(always)]
pub(super) fn spread<W: Word, const N: usize>(
    [dst]: [&[Group<W>; N]; 1],
    select: Option<&[Group<W>; N]>,
    bits: u64,
    one: W,
) {
    assign(dst, select, |c| spread_group(bits, c, one));
}

/// Addresses that grow by the same distance from lane to lane and are all those of words in memory: the index
/// of the first word, and the distance in words.
struct Pattern {
    first: usize,
    step: usize,
}

/// The pattern of the addresses `base` + `offset` of all lanes.
#[inline(always)]
fn find_pattern<W: Word>(base: &[Group<W>], offset: W, cells: &[W::Cell]) -> Option<Pattern> {
    let [first, second, ..] = base[0].get();
    let distance = second.sub(first);
    let next_group = distance.mul(W::from_u64(GROUP as u64));
    let mut expected = words!(i => first.add(distance.mul(W::from_u64(i as u64))));
    let mut differ = [W::ZERO; GROUP];
    for group in base {
        let at = group.get();
        let old = differ;
        differ = words!(i => old[i] | (at[i] ^ expected[i]));
        let before = expected;
        expected = words!(i => before[i].add(next_group));
    }
    let (start, distance) = (first.add(offset).to_u64(), distance.to_u64());
    let aligned = (start | distance).is_multiple_of(W::BYTES as u64);
    if !aligned || !are_zero(&differ) {
        return None;
    }
    let (first, step) = (start as usize / W::BYTES, distance as usize / W::BYTES);
    // Memory is so small that neither the product nor the sum overflows.
    let inside = first < cells.len()
        && step < cells.len()
        && first + step * (base.len() * GROUP - 1) < cells.len();
    inside.then_some(Pattern { first, step })
}

/// The index of a word in memory.
#[inline(always)]
fn cell_index<W: Word>(address: W) -> usize {
    address.to_u64() as usize / W::BYTES
}

/// Whether accesses of `bytes` bytes at `base` + `offset` in the lanes of `mask` are inside of memory, not below
/// the word address `from`, and each within one word.
#[inline(always)]
pub(super) fn are_plain<W: Word>(
    base: &[Group<W>],
    offset: W,
    cells: &[W::Cell],
    mask: u64,
    from: u64,
    bytes: usize,
) -> bool {
    let last = W::from_u64((W::BYTES - bytes) as u64);
    let within_word = W::from_u64(W::BYTES as u64 - 1);
    let from = W::from_u64(from);
    let size = W::from_u64(size_of_val(cells) as u64).sub(from);
    let mut outside = [W::ZERO; GROUP];
    for (c, group) in base.iter().enumerate() {
        let at = group.get();
        let select = spread_group(mask, c, W::ONES);
        let is_outside = |x: W| x.sub(from) >= size || x & within_word > last;
        let old = outside;
        outside = words!(i => {
            old[i] | if is_outside(at[i].add(offset)) { select[i] } else { W::ZERO }
        });
    }
    are_zero(&outside)
}

/// Whether `mask` has all lanes of the groups.
#[inline(always)]
pub(super) fn is_whole<W: Word>(groups: &[Group<W>], mask: u64) -> bool {
    !mask << (64 - groups.len() * GROUP) == 0
}

/// Loads the words at `base` + `offset`, in the lanes of `mask`. Returns whether it did: if not, nothing has
/// changed.
///
/// If the addresses have a pattern, no other check is needed, and lanes that do not execute may load, too.
#[inline(always)]
pub(super) fn load<W: Word, const N: usize>(
    [dst, base]: [&[Group<W>; N]; 2],
    select: Option<&[Group<W>; N]>,
    offset: W,
    cells: &[W::Cell],
    mask: u64,
) -> bool {
    if let Some(Pattern { first, step }) = find_pattern(base, offset, cells) {
        match step {
            0 => {
                let word = cells[first].load();
                assign(dst, select, |_| [word; GROUP]);
            }
            1 => {
                let cells = &cells[first..][..N * GROUP];
                assign(dst, select, |c| words!(i => cells[c * GROUP + i].load()));
            }
            _ => assign(dst, select, |c| words!(i => cells[first + (c * GROUP + i) * step].load())),
        }
        return true;
    }
    if !are_plain(base, offset, cells, mask, 0, W::BYTES) {
        return false;
    }
    if is_whole(dst, mask) {
        for (dst, base) in dst.iter().zip(base) {
            let at = base.get();
            dst.set(words!(i => cells[cell_index(at[i].add(offset))].load()));
        }
        return true;
    }
    for lane in lanes_of(mask) {
        word(dst, lane).set(cells[cell_index(word(base, lane).get().add(offset))].load());
    }
    true
}

/// Stores words at `base` + `offset`, none below the word address `from`, in the lanes of `mask`, lowest first.
/// Returns whether it did: if not, nothing has changed.
#[inline(always)]
pub(super) fn store<W: Word, const N: usize>(
    [value, base]: [&[Group<W>; N]; 2],
    offset: W,
    cells: &[W::Cell],
    mask: u64,
    from: u64,
) -> bool {
    let whole = is_whole(value, mask);
    if whole
        && let Some(Pattern { first, step }) = find_pattern(base, offset, cells)
        && first >= from as usize / W::BYTES
    {
        if step == 1 {
            let cells = &cells[first..][..N * GROUP];
            for c in 0..N {
                let values = value[c].get();
                for i in 0..GROUP {
                    cells[c * GROUP + i].store(values[i]);
                }
            }
            return true;
        }
        for c in 0..N {
            let (first, values) = (first + c * GROUP * step, value[c].get());
            for i in 0..GROUP {
                cells[first + i * step].store(values[i]);
            }
        }
        return true;
    }
    if !are_plain(base, offset, cells, mask, from, W::BYTES) {
        return false;
    }
    if whole {
        for (value, base) in value.iter().zip(base) {
            let (values, at) = (value.get(), base.get());
            for i in 0..GROUP {
                cells[cell_index(at[i].add(offset))].store(values[i]);
            }
        }
        return true;
    }
    for lane in lanes_of(mask) {
        cells[cell_index(word(base, lane).get().add(offset))].store(word(value, lane).get());
    }
    true
}

/// Loads the words of a row, `GROUP` for each group of lanes, in the lanes that execute.
#[inline(always)]
pub(super) fn load_row<W: Word, const N: usize>(
    dst: &[Group<W>; N],
    select: Option<&[Group<W>; N]>,
    row: &[W::Cell],
) {
    assign(dst, select, |c| {
        let cells = &row[c * GROUP..][..GROUP];
        words!(i => cells[i].load())
    });
}

/// Stores to the words of a row, `GROUP` for each group of lanes, in the lanes of `mask`.
#[inline(always)]
pub(super) fn store_row<W: Word, const N: usize>(
    value: &[Group<W>; N],
    row: &[W::Cell],
    mask: u64,
) {
    if !is_whole(value, mask) {
        for lane in lanes_of(mask) {
            row[lane].store(word(value, lane).get());
        }
        return;
    }
    for c in 0..N {
        let (values, cells) = (value[c].get(), &row[c * GROUP..][..GROUP]);
        for i in 0..GROUP {
            cells[i].store(values[i]);
        }
    }
}
