//! Loops over lanes.
//!
//! Each loop runs over groups of [`GROUP`] lanes and, within a group, over values that were copied
//! out of the registers, so that the compiler need not prove that destination and sources differ.
//! Where all lanes of the machine execute, results are stored as they are, those of lanes that the
//! machine lacks included; otherwise they are blended with the old values.
//!
//! The precise way does without all that: one lane after the other.

#![expect(clippy::needless_range_loop, reason = "several registers are indexed in step")]

use std::array;

use harp_isa::{Gpr, Pred};

use super::{Exec, Flow, NEXT};
use crate::warp::{FILE, GROUP, Reg};
use crate::word::Word;

/// The register's place in its file.
#[inline(always)]
pub(super) fn index(reg: Gpr) -> usize {
    usize::from(reg.index()) % FILE
}

/// The predicate's place in its file.
#[inline(always)]
pub(super) fn pred_index(reg: Pred) -> usize {
    usize::from(reg.index()) % FILE
}

/// The lanes of `mask`, lowest first.
#[inline(always)]
pub(super) fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            lane
        })
    })
}

/// Which lanes of group number `group` are in `mask`, as words that are all ones or zero.
#[inline(always)]
pub(super) fn spread<W: Word>(mask: u64, group: usize) -> [W; GROUP] {
    let bits = W::from_u64(mask >> (group * GROUP) & 0xff);
    array::from_fn(|i| {
        let bit = W::from_u64(1 << i);
        if bits & bit == bit { W::ONES } else { W::default() }
    })
}

/// The bits that are set in any of the words.
#[inline(always)]
pub(super) fn any_bits<W: Word>(words: &[W; GROUP]) -> W {
    let [a, b, c, d, e, f, g, h] = *words;
    ((a | e) | (c | g)) | ((b | f) | (d | h))
}

impl<W: Word, const C: usize, const PRECISE: bool> Exec<'_, W, C, PRECISE> {
    /// How many lanes execute.
    #[inline(always)]
    pub(super) fn executing(&self) -> u64 {
        if self.mask == self.full {
            u64::from(self.env.lanes)
        } else {
            u64::from(self.mask.count_ones())
        }
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
        src: [Gpr; K],
        f: impl Fn([W; K]) -> W,
    ) -> Flow {
        if PRECISE {
            for lane in lanes_of(self.mask) {
                let value = f(src.map(|reg| self.lane(reg, lane)));
                self.warp.regs[index(dst)].as_flattened_mut()[lane] = value;
            }
            return NEXT;
        }
        let regs = &mut *self.warp.regs;
        let dst = index(dst);
        if self.mask == self.full {
            for c in 0..C {
                let x: [[W; GROUP]; K] = array::from_fn(|k| regs[index(src[k])][c]);
                regs[dst][c] = array::from_fn(|i| f(array::from_fn(|k| x[k][i])));
            }
        } else {
            for c in 0..C {
                let x: [[W; GROUP]; K] = array::from_fn(|k| regs[index(src[k])][c]);
                let old = regs[dst][c];
                let select = spread::<W>(self.mask, c);
                regs[dst][c] = array::from_fn(|i| {
                    let new = f(array::from_fn(|k| x[k][i]));
                    (new & select[i]) | (old[i] & !select[i])
                });
            }
        }
        NEXT
    }

    /// `dst` := `f(src, imm)`, in the executing lanes.
    #[inline(always)]
    pub(super) fn map_imm(&mut self, dst: Gpr, src: Gpr, imm: i64, f: impl Fn(W, W) -> W) -> Flow {
        let imm = W::from_u64(imm.cast_unsigned());
        self.map(dst, [src], |[a]| f(a, imm))
    }

    /// `dst` := 1 where `src` is true, else 0, in the executing lanes.
    #[inline(always)]
    pub(super) fn pred_to_reg(&mut self, dst: Gpr, src: Pred) -> Flow {
        let bits = self.pred(src);
        let one = W::from_u64(1);
        let values: Reg<W, C> = array::from_fn(|c| spread::<W>(bits, c).map(|select| select & one));
        self.assign(dst, &values)
    }

    /// `dst` := `value`, in the executing lanes.
    #[inline(always)]
    pub(super) fn fill(&mut self, dst: Gpr, value: W) -> Flow {
        self.map(dst, [], |[]| value)
    }

    /// `dst` := `values`, in the executing lanes.
    #[inline(always)]
    pub(super) fn assign(&mut self, dst: Gpr, values: &Reg<W, C>) -> Flow {
        let reg = &mut self.warp.regs[index(dst)];
        if PRECISE {
            for lane in lanes_of(self.mask) {
                reg.as_flattened_mut()[lane] = values.as_flattened()[lane];
            }
        } else if self.mask == self.full {
            *reg = *values;
        } else {
            for c in 0..C {
                let select = spread::<W>(self.mask, c);
                let old = reg[c];
                reg[c] = array::from_fn(|i| (values[c][i] & select[i]) | (old[i] & !select[i]));
            }
        }
        NEXT
    }

    /// The lanes, executing or not, where `f` of the sources holds.
    #[inline(always)]
    pub(super) fn test<const K: usize>(&self, src: [Gpr; K], f: impl Fn([W; K]) -> bool) -> u64 {
        if PRECISE {
            return lanes_of(self.full)
                .filter(|&lane| f(src.map(|reg| self.lane(reg, lane))))
                .fold(0, |bits, lane| bits | 1 << lane);
        }
        // Each word of these gathers its lanes' bits where they belong, so that a single reduction
        // at the end crosses lanes. Words of 4 bytes hold the bits of half the lanes.
        let mut halves = [[W::default(); GROUP]; 2];
        for c in 0..C {
            let x: [[W; GROUP]; K] = array::from_fn(|k| self.reg(src[k])[c]);
            let (half, shift) = (c * GROUP / W::BITS as usize, c * GROUP % W::BITS as usize);
            let old = halves[half];
            halves[half] = array::from_fn(|i| {
                let bit = W::from_u64(1 << (shift + i));
                old[i] | if f(array::from_fn(|k| x[k][i])) { bit } else { W::default() }
            });
        }
        let [low, high] = halves.map(|words| any_bits(&words).to_u64());
        low | high.checked_shl(W::BITS).unwrap_or(0)
    }

    /// `dst` := whether `f` of the sources holds, in the executing lanes.
    #[inline(always)]
    pub(super) fn compare<const K: usize>(
        &mut self,
        dst: Pred,
        src: [Gpr; K],
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
        let others = self.test([reg], |[x]| x != value) & self.mask;
        (value, others)
    }
}
