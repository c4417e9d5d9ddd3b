//! The operations on lanes from which everything else is built.
//!
//! On the fast path they are kernels on whole registers (see `kernels`); the precise path goes lane by lane, in
//! functions that machines of all numbers of lanes share. So operations are functions of words, such as
//! [`Word::add`], and not closures, which would be others for each number of lanes.

use std::cell::Cell;

use harp_isa::{Gpr, Pred};

use super::kernels::{Constant, Immediate, One, Operation, Rows, Three, Two};
use super::{Exec, Flow, NEXT, Way, kernels};
use crate::notation;
use crate::warp::{FILE, Reg};
use crate::word::Word;

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

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Makes `mask` the lanes that execute. Returns whether kernels need to be told, by
    /// [`spread_mask`](Self::spread_mask).
    #[inline(always)]
    pub(super) fn set_mask(&mut self, mask: u64) -> bool {
        if mask == self.mask {
            return false;
        }
        self.mask = mask;
        self.executing = mask.count_ones().into();
        mask != self.full
    }

    /// Tells kernels the lanes that execute, if not all do.
    #[inline(always)]
    pub(super) fn spread_mask(&mut self) {
        kernels::spread([&self.select], None, self.mask, W::ONES);
    }

    /// How many lanes execute.
    #[inline(always)]
    pub(super) fn executing(&self) -> u64 {
        self.executing
    }

    /// What kernels take: registers, and which lanes execute unless all do.
    #[inline(always)]
    pub(super) fn rows<const N: usize>(&mut self, regs: [Gpr; N]) -> Rows<'_, W, C, N> {
        let file = Cell::from_mut(&mut self.warp.regs).as_array_of_cells();
        let rows = regs.map(|reg| file[index(reg)].as_array_of_cells());
        (rows, (self.mask != self.full).then_some(&self.select))
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

    /// `dst` := `operation(dst, a, b)`, in the executing lanes.
    #[inline(always)]
    pub(super) fn map<O: Operation<W, W>>(
        &mut self,
        dst: Gpr,
        [a, b]: [Gpr; 2],
        operation: O,
    ) -> Flow {
        if P::PRECISE || P::ONCE {
            return self.map_apart(dst, [a, b], operation);
        }
        let (rows, select) = self.rows([dst, a, b]);
        kernels::map(rows, select, operation);
        NEXT
    }

    /// As [`map`](Self::map), for operations that the host has no vector instructions for.
    #[inline(always)]
    pub(super) fn map_apart<O: Operation<W, W>>(
        &mut self,
        dst: Gpr,
        [a, b]: [Gpr; 2],
        operation: O,
    ) -> Flow {
        if P::ONCE {
            let [old, a, b] = [dst, a, b].map(|reg| self.lane(reg, self.first()));
            return self.share(dst, operation.apply(old, a, b));
        }
        let mask = self.mask;
        let (rows, _) = self.rows([dst, a, b]);
        kernels::map_each(rows.map(<[_; C]>::as_slice), mask, operation);
        NEXT
    }

    /// `dst` := `f(src)`.
    #[inline(always)]
    pub(super) fn map_one(&mut self, dst: Gpr, src: Gpr, f: impl Fn(W) -> W + Copy) -> Flow {
        self.map(dst, [src, src], One(f))
    }

    /// `dst` := `f(a, b)`.
    #[inline(always)]
    pub(super) fn map_two(
        &mut self,
        dst: Gpr,
        a: Gpr,
        b: Gpr,
        f: impl Fn(W, W) -> W + Copy,
    ) -> Flow {
        self.map(dst, [a, b], Two(f))
    }

    /// `acc` := `f(acc, a, b)`.
    #[inline(always)]
    pub(super) fn map_three(
        &mut self,
        acc: Gpr,
        a: Gpr,
        b: Gpr,
        f: impl Fn(W, W, W) -> W + Copy,
    ) -> Flow {
        self.map(acc, [a, b], Three(f))
    }

    /// `dst` := `f(src, imm)`.
    #[inline(always)]
    pub(super) fn map_imm(
        &mut self,
        dst: Gpr,
        src: Gpr,
        imm: i64,
        f: impl Fn(W, W) -> W + Copy,
    ) -> Flow {
        self.map(dst, [src, src], Immediate(W::from_u64(imm.cast_unsigned()), f))
    }

    /// `dst` := shift of `src` by `imm` bits: by `less` if that is less than a word's width, else by `shift`.
    #[inline(always)]
    pub(super) fn shift_imm(
        &mut self,
        dst: Gpr,
        src: Gpr,
        imm: i64,
        less: impl Fn(W, W) -> W + Copy,
        shift: impl Fn(W, W) -> W + Copy,
    ) -> Flow {
        let count = W::from_u64(imm.cast_unsigned());
        if count.to_u64() < u64::from(W::BITS) {
            return self.map(dst, [src, src], Immediate(count, less));
        }
        self.map_apart(dst, [src, src], Immediate(count, shift))
    }

    /// `dst` := 1 where `src` is true, else 0, in the executing lanes.
    #[inline(always)]
    pub(super) fn pred_to_reg(&mut self, dst: Gpr, src: Pred) -> Flow {
        let bits = self.pred(src);
        if P::ONCE {
            return self.share(dst, W::from_u64(bits >> self.first() & 1));
        }
        if P::PRECISE {
            let reg = self.warp.regs[index(dst)].as_flattened_mut();
            for lane in lanes_of(self.mask) {
                reg[lane] = W::from_u64(bits >> lane & 1);
            }
            return NEXT;
        }
        let (rows, select) = self.rows([dst]);
        kernels::spread(rows, select, bits, W::from_u64(1));
        NEXT
    }

    /// `dst` := `value`.
    #[inline(always)]
    pub(super) fn fill(&mut self, dst: Gpr, value: W) -> Flow {
        self.map(dst, [dst, dst], Constant(value))
    }

    /// The lanes, executing or not, where `operation(_, a, b)` holds. Those beyond the machine's are undefined; so are all
    /// but the first executing one, if this is done once.
    #[inline(always)]
    pub(super) fn test<O: Operation<W, bool>>(&mut self, [a, b]: [Gpr; 2], operation: O) -> u64 {
        if P::ONCE {
            let lane = self.first();
            let holds = operation.apply(W::ZERO, self.lane(a, lane), self.lane(b, lane));
            return u64::from(holds) << lane;
        }
        let full = self.full;
        let (rows, _) = self.rows([a, b]);
        if P::PRECISE {
            return kernels::test_each(rows.map(<[_; C]>::as_slice), full, operation);
        }
        kernels::test(rows, operation)
    }

    /// `dst` := whether `f(src)` holds.
    #[inline(always)]
    pub(super) fn compare_one(
        &mut self,
        dst: Pred,
        src: Gpr,
        f: impl Fn(W) -> bool + Copy,
    ) -> Flow {
        let bits = self.test([src, src], One(f));
        self.set_pred(dst, bits)
    }

    /// `dst` := whether `f(a, b)` holds.
    #[inline(always)]
    pub(super) fn compare_two(
        &mut self,
        dst: Pred,
        a: Gpr,
        b: Gpr,
        f: impl Fn(W, W) -> bool + Copy,
    ) -> Flow {
        let bits = self.test([a, b], Two(f));
        self.set_pred(dst, bits)
    }

    /// `dst` := `bits`, in the executing lanes.
    #[inline(always)]
    pub(super) fn set_pred(&mut self, dst: Pred, bits: u64) -> Flow {
        if P::ONCE {
            return self.share_pred(dst, bits >> self.first() & 1 != 0);
        }
        let pred = &mut self.warp.preds[pred_index(dst)];
        *pred = (*pred & !self.mask) | (bits & self.mask);
        NEXT
    }

    /// Writes `value` to a shared register, which has it in all lanes.
    #[inline(always)]
    pub(super) fn share(&mut self, dst: Gpr, value: W) -> Flow {
        self.warp.share(index(dst), value);
        NEXT
    }

    /// Writes `value` to a shared predicate.
    #[inline(always)]
    pub(super) fn share_pred(&mut self, dst: Pred, value: bool) -> Flow {
        self.warp.share_pred(pred_index(dst), value);
        NEXT
    }

    /// The value of `reg` in the first executing lane, and the executing lanes that have another.
    #[inline(always)]
    pub(super) fn first_and_rest(&mut self, reg: Gpr) -> (W, u64) {
        let value = self.lane(reg, self.first());
        let others = self.test([reg, reg], Immediate(value, W::differs)) & self.mask;
        (value, others)
    }
}
