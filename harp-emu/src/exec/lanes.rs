//! Loops over lanes.
//!
//! Each loop runs over groups of [`GROUP`] lanes and, within a group, over values that were copied
//! out of the registers, so that the compiler need not prove that destination and sources differ.
//! Sources are passed by reference: a small array passed by value is one integer to the compiler, which then
//! loses what it knows about the elements (see `operand`).
//! Where all lanes of the machine execute, results are stored directly, also in lanes that the machine
//! lacks; otherwise they are blended with the old values.
//!
//! The precise path does none of this: it goes lane by lane.

#![expect(clippy::needless_range_loop, reason = "several registers are indexed in step")]

use std::cell::Cell;

use harp_isa::{Gpr, Pred};

use super::simd::sign_bits;
use super::{Exec, Flow, NEXT, Way};
use crate::notation;
use crate::warp::{FILE, GROUP, Reg};
use crate::word::Word;

/// An array of `length` words, whose element `i` is `value`. A macro and not a function with a closure, because
/// the fast paths' loop is too large for the compiler to still inline closures into it.
macro_rules! words {
    ($i:ident < $length:expr => $value:expr) => {{
        let mut words = [W::ZERO; $length];
        for $i in 0..$length {
            words[$i] = $value;
        }
        words
    }};
}
pub(super) use words;

/// An array with an element for each of `length` sources, at most [`SOURCES`]; element `k` is `value`. All are
/// initialized with `zero`, a constant.
///
/// This is unrolled by hand. Each operation would have several such loops, and whenever LLVM unrolls one it
/// recomputes what it knows about the fast paths' loop around it: an instance took more than twice as long to
/// build.
macro_rules! sources {
    ($k:ident < $length:expr, $zero:expr => $value:expr) => {{
        const { assert!($length <= SOURCES) };
        let mut sources = [$zero; $length];
        if $length > 0 {
            let $k = 0;
            sources[$k] = $value;
        }
        if $length > 1 {
            let $k = 1;
            sources[$k] = $value;
        }
        if $length > 2 {
            let $k = 2;
            sources[$k] = $value;
        }
        sources
    }};
}

/// The most sources that an operation has.
const SOURCES: usize = 3;

/// The register's index in its file.
#[inline(always)]
pub(super) fn index(reg: Gpr) -> usize {
    usize::from(reg.index()) % FILE
}

/// The predicate's index in its file.
#[inline(always)]
pub(super) fn pred_index(reg: Pred) -> usize {
    usize::from(reg.index()) % FILE
}

/// The lanes of `mask`, lowest first, as indices.
#[inline(always)]
pub(super) fn lanes_of(mask: u64) -> impl Iterator<Item = usize> {
    notation::lanes_of(mask).map(usize::from)
}

/// Which lanes of group number `group` are in `mask`, as words that are all ones or zero.
#[inline(always)]
pub(super) fn spread<W: Word>(mask: u64, group: usize) -> [W; GROUP] {
    let bits = W::from_u64(mask >> (group * GROUP) & 0xff);
    words!(i < GROUP => {
        let bit = W::from_u64(1 << i);
        if bits & bit == bit { W::ONES } else { W::ZERO }
    })
}

/// The bits that are set in any of the words.
#[inline(always)]
pub(super) fn any_bits<W: Word>(words: &[W; GROUP]) -> W {
    let [a, b, c, d, e, f, g, h] = *words;
    ((a | e) | (c | g)) | ((b | f) | (d | h))
}

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Makes `mask` the lanes that execute.
    #[inline(always)]
    pub(super) fn set_mask(&mut self, mask: u64) {
        if !P::PRECISE && !P::FULL && mask != self.mask {
            for c in 0..C {
                self.select[c] = spread::<W>(mask, c);
            }
        }
        self.mask = mask;
    }

    /// How many lanes execute.
    #[inline(always)]
    pub(super) fn executing(&self) -> u64 {
        if P::FULL { u64::from(self.env.lanes) } else { u64::from(self.mask.count_ones()) }
    }

    /// The first executing lane; there is one.
    #[inline(always)]
    pub(super) fn first(&self) -> usize {
        self.mask.trailing_zeros() as usize
    }

    #[inline(always)]
    pub(super) fn reg(&self, reg: Gpr) -> &Reg<W, C> {
        &self.warp.regs[index(reg)]
    }

    #[inline(always)]
    pub(super) fn lane(&self, reg: Gpr, lane: usize) -> W {
        self.reg(reg).as_flattened()[lane]
    }

    #[inline(always)]
    pub(super) fn pred(&self, pred: Pred) -> u64 {
        self.warp.preds[pred_index(pred)]
    }

    /// `dst` := `f` of the sources, in the executing lanes.
    #[inline(always)]
    pub(super) fn map<const K: usize>(
        &mut self,
        dst: Gpr,
        src: &[Gpr; K],
        f: impl Fn([W; K]) -> W,
    ) -> Flow {
        if P::PRECISE {
            for lane in lanes_of(self.mask) {
                let value = f(sources!(k < K, W::ZERO => self.lane(src[k], lane)));
                self.warp.regs[index(dst)].as_flattened_mut()[lane] = value;
            }
            return NEXT;
        }
        // Cells, because registers are looked up once for all groups, and may be the same.
        let regs = Cell::from_mut(&mut self.warp.regs).as_array_of_cells();
        let dst = regs[index(dst)].as_array_of_cells();
        let places = sources!(k < K, 0 => index(src[k]));
        for c in 0..C {
            let mut x = sources!(k < K, [W::ZERO; GROUP] => regs[places[k] % FILE].as_array_of_cells()[c].get());
            if let (true, Some(last)) = (P::SECOND, x.last_mut()) {
                *last = self.held[c];
            }
            let values = words!(i < GROUP => f(sources!(k < K, W::ZERO => x[k][i])));
            if P::FIRST {
                self.held[c] = values;
            }
            set_group::<W, P>(&dst[c], &values, &self.select[c]);
        }
        NEXT
    }

    /// `dst` := `f(src)`, in the executing lanes, for operations that the host has no vector instructions for.
    #[inline(always)]
    pub(super) fn map_apart(&mut self, dst: Gpr, src: Gpr, f: impl Fn(W) -> W) -> Flow {
        if P::PRECISE {
            return self.map(dst, &[src], |[a]| f(a));
        }
        let values = apply(self.reg(src), f);
        self.assign(dst, &values)
    }

    /// As [`map_apart`](Self::map_apart), with two sources.
    #[inline(always)]
    pub(super) fn map_two_apart(
        &mut self,
        dst: Gpr,
        a: Gpr,
        b: Gpr,
        f: impl Fn(W, W) -> W,
    ) -> Flow {
        if P::PRECISE {
            return self.map(dst, &[a, b], |[a, b]| f(a, b));
        }
        let values = combine(self.reg(a), self.reg(b), f);
        self.assign(dst, &values)
    }

    /// As [`map_two_apart`](Self::map_two_apart), with an immediate as second source.
    #[inline(always)]
    pub(super) fn map_imm_apart(
        &mut self,
        dst: Gpr,
        src: Gpr,
        imm: W,
        f: impl Fn(W, W) -> W,
    ) -> Flow {
        if P::PRECISE {
            return self.map(dst, &[src], |[a]| f(a, imm));
        }
        let values = combine_imm(self.reg(src), imm, f);
        self.assign(dst, &values)
    }

    /// `dst` := `f(src, imm)`, in the executing lanes.
    #[inline(always)]
    pub(super) fn map_imm(&mut self, dst: Gpr, src: Gpr, imm: i64, f: impl Fn(W, W) -> W) -> Flow {
        let imm = W::from_u64(imm.cast_unsigned());
        self.map(dst, &[src], |[a]| f(a, imm))
    }

    /// `dst` := `shift` of `src` by `imm` bits, in the executing lanes.
    ///
    /// Counts of a word's width or more all have the same result and get code of their own, so that the
    /// other code need not check the count in each lane.
    #[inline(always)]
    pub(super) fn shift_imm(
        &mut self,
        dst: Gpr,
        src: Gpr,
        imm: i64,
        shift: impl Fn(W, W) -> W,
    ) -> Flow {
        let (mut count, width) = (W::from_u64(imm.cast_unsigned()), u64::from(W::BITS));
        if P::FIRST {
            // The first of a pair has no larger count (see `step`). The mask lets the compiler drop the test.
            count = count & W::from_u64(width - 1);
        }
        if count.to_u64() < width {
            return self.map(dst, &[src], |[a]| shift(a, count));
        }
        let all = W::from_u64(width);
        self.map(dst, &[src], |[a]| shift(a, all))
    }

    /// `dst` := 1 where `src` is true, else 0, in the executing lanes.
    #[inline(always)]
    pub(super) fn pred_to_reg(&mut self, dst: Gpr, src: Pred) -> Flow {
        let bits = self.pred(src);
        let one = W::from_u64(1);
        let mut values: Reg<W, C> = [[one; GROUP]; C];
        for c in 0..C {
            let select = spread::<W>(bits, c);
            values[c] = words!(i < GROUP => select[i] & one);
        }
        self.assign(dst, &values)
    }

    /// `dst` := `value`, in the executing lanes.
    #[inline(always)]
    pub(super) fn fill(&mut self, dst: Gpr, value: W) -> Flow {
        self.map(dst, &[], |[]| value)
    }

    /// `dst` := `values`, in the executing lanes.
    #[inline(always)]
    pub(super) fn assign(&mut self, dst: Gpr, values: &Reg<W, C>) -> Flow {
        let reg = &mut self.warp.regs[index(dst)];
        if P::PRECISE {
            for lane in lanes_of(self.mask) {
                reg.as_flattened_mut()[lane] = values.as_flattened()[lane];
            }
        } else if P::FULL {
            *reg = *values;
        } else {
            for c in 0..C {
                let (old, select) = (reg[c], self.select[c]);
                reg[c] = words!(i < GROUP => (values[c][i] & select[i]) | (old[i] & !select[i]));
            }
        }
        NEXT
    }

    /// The lanes, executing or not, where `f` of the sources holds.
    #[inline(always)]
    pub(super) fn test<const K: usize>(&self, src: &[Gpr; K], f: impl Fn([W; K]) -> bool) -> u64 {
        if P::PRECISE {
            return lanes_of(self.full)
                .filter(|&lane| f(sources!(k < K, W::ZERO => self.lane(src[k], lane))))
                .fold(0, |bits, lane| bits | 1 << lane);
        }
        let mut bits = 0;
        for pair in 0..C.div_ceil(2) {
            let mut signs = [[0; GROUP]; 2];
            for (c, signs) in (2 * pair..C).zip(&mut signs) {
                let mut x = sources!(k < K, [W::ZERO; GROUP] => self.warp.regs[index(src[k])][c]);
                if let (true, Some(last)) = (P::SECOND, x.last_mut()) {
                    *last = self.held[c];
                }
                for i in 0..GROUP {
                    let holds = f(sources!(k < K, W::ZERO => x[k][i]));
                    signs[i] = if holds { -1 } else { 0 };
                }
            }
            bits |= u64::from(sign_bits(&signs)) << (pair * 2 * GROUP);
        }
        bits
    }

    /// `dst` := whether `f` of the sources holds, in the executing lanes.
    #[inline(always)]
    pub(super) fn compare<const K: usize>(
        &mut self,
        dst: Pred,
        src: &[Gpr; K],
        f: impl Fn([W; K]) -> bool,
    ) -> Flow {
        let bits = self.test(src, f);
        self.set_pred(dst, bits)
    }

    /// `dst` := `bits`, in the executing lanes.
    #[inline(always)]
    pub(super) fn set_pred(&mut self, dst: Pred, bits: u64) -> Flow {
        let pred = &mut self.warp.preds[pred_index(dst)];
        *pred = (*pred & !self.mask) | (bits & self.mask);
        NEXT
    }

    /// The value of `reg` in the first executing lane, and the executing lanes that have another.
    #[inline(always)]
    pub(super) fn first_and_rest(&self, reg: Gpr) -> (W, u64) {
        let value = self.lane(reg, self.first());
        let others = self.test(&[reg], |[x]| x != value) & self.mask;
        (value, others)
    }
}

/// Writes a group of a register in the lanes that execute.
#[inline(always)]
fn set_group<W: Word, P: Way>(dst: &Cell<[W; GROUP]>, values: &[W; GROUP], select: &[W; GROUP]) {
    if P::FULL {
        dst.set(*values);
    } else {
        let old = dst.get();
        dst.set(words!(i < GROUP => (values[i] & select[i]) | (old[i] & !select[i])));
    }
}

/// `f` of all words. Not inlined, because code with many live values takes the host's registers away from the
/// loop around it; and all paths share it if they share `f`.
#[inline(never)]
fn apply<W: Word, const C: usize>(words: &Reg<W, C>, f: impl Fn(W) -> W) -> Reg<W, C> {
    let mut all = *words;
    for word in all.as_flattened_mut() {
        *word = f(*word);
    }
    all
}

/// `f` of all words and the corresponding other ones, as [`apply`].
#[inline(never)]
fn combine<W: Word, const C: usize>(
    words: &Reg<W, C>,
    others: &Reg<W, C>,
    f: impl Fn(W, W) -> W,
) -> Reg<W, C> {
    let mut all = *words;
    for (word, other) in all.as_flattened_mut().iter_mut().zip(others.as_flattened()) {
        *word = f(*word, *other);
    }
    all
}

/// `f` of all words and an immediate, as [`apply`].
#[inline(never)]
fn combine_imm<W: Word, const C: usize>(
    words: &Reg<W, C>,
    imm: W,
    f: impl Fn(W, W) -> W,
) -> Reg<W, C> {
    let mut all = *words;
    for word in all.as_flattened_mut() {
        *word = f(*word, imm);
    }
    all
}
