//! Loads and stores, of whole registers on the fast path.
//!
//! All lanes' addresses are checked before anything is read or written, at once if they grow by the same distance
//! from lane to lane (see `kernels`). Accesses to anything but memory, to words that are not aligned, or to pages
//! that are not in place (see `paged`) are left to the precise path (see `memory`).

use std::cell::Cell;

use harp_isa::Gpr;

use super::kernels::{Group, are_plain, is_whole, word};
use super::lanes::lanes_of;
use super::memory::{Extend, Width, load_bytes, store_bytes};
use super::operand::Operand;
use super::step::Step;
use super::{Exec, Flow, NEXT, OTHER, Way, kernels};
use crate::trap::PageAccess;
use crate::warp::{GROUP, Reg};
use crate::word::{Cell as _, Word};

impl<'a, W: Word, const C: usize, P: Way> Exec<'a, W, C, P> {
    #[inline(always)]
    pub(super) fn load_word(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        if P::PRECISE {
            return self
                .rarely(|exec| exec.load_each(dst, base, offset, Width::Word, Extend::Zero));
        }
        if P::ONCE {
            return self.load_once(dst, base, offset, W::BYTES, Extend::Zero);
        }
        let offset = W::from_u64(offset.cast_unsigned());
        self.in_place(base, offset, PageAccess::Load)?;
        let (cells, mask) = (self.env.cells, self.mask);
        let (rows, select) = self.rows([dst, base]);
        let done = kernels::load(rows, select, offset, cells, mask);
        self.loaded(done)
    }

    #[inline(always)]
    pub(super) fn store_word(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        if P::PRECISE {
            return self.rarely(|exec| exec.store_each(value, base, offset, Width::Word));
        }
        if P::ONCE {
            return self.store_once(value, base, offset, W::BYTES);
        }
        let offset = W::from_u64(offset.cast_unsigned());
        self.in_place(base, offset, PageAccess::Store)?;
        let (cells, mask, from) = (self.env.cells, self.mask, self.env.plain_stores_from);
        let (rows, _) = self.rows([value, base]);
        let done = kernels::store(rows, offset, cells, mask, from);
        self.stored(done)
    }

    /// Loads `bytes` bytes, at most a word.
    #[inline(always)]
    pub(super) fn load_narrow(
        &mut self,
        dst: Gpr,
        base: Gpr,
        offset: i64,
        bytes: usize,
        extend: Extend,
    ) -> Flow {
        if P::PRECISE {
            let width = Width::Bytes(bytes);
            return self.rarely(|exec| exec.load_each(dst, base, offset, width, extend));
        }
        if P::ONCE {
            return self.load_once(dst, base, offset, bytes, extend);
        }
        let offset = W::from_u64(offset.cast_unsigned());
        self.in_place(base, offset, PageAccess::Load)?;
        let (cells, mask) = (self.env.cells, self.mask);
        let ([dst, base], _) = self.rows([dst, base]);
        let done = gather_narrow(dst, base, offset, cells, mask, bytes, extend);
        self.loaded(done)
    }

    /// Stores `bytes` bytes, at most a word.
    #[inline(always)]
    pub(super) fn store_narrow(
        &mut self,
        value: Gpr,
        base: Gpr,
        offset: i64,
        bytes: usize,
    ) -> Flow {
        if P::PRECISE {
            let width = Width::Bytes(bytes);
            return self.rarely(|exec| exec.store_each(value, base, offset, width));
        }
        if P::ONCE {
            return self.store_once(value, base, offset, bytes);
        }
        let offset = W::from_u64(offset.cast_unsigned());
        self.in_place(base, offset, PageAccess::Store)?;
        let (cells, mask, from) = (self.env.cells, self.mask, self.env.plain_stores_from);
        let ([value, base], _) = self.rows([value, base]);
        let done = scatter_narrow(value, base, offset, cells, mask, bytes, from);
        self.stored(done)
    }

    /// Loads or stores at addresses that follow each other: see [`Sharing::Row`](harp_isa::Sharing).
    #[inline(always)]
    pub(super) fn access_row(&mut self, step: &Step) -> Flow {
        let reg = Gpr::given;
        match *step {
            Step::Ld { dst, base, offset } => self.load_row(reg(dst), reg(base), offset),
            Step::St { value, base, offset } => self.store_row(reg(value), reg(base), offset),
            _ => self.access_narrow_row(step),
        }
    }

    #[inline(always)]
    fn load_row(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        let offset = W::from_u64(offset.cast_unsigned());
        let (cells, mask) = (self.env.cells, self.mask);
        if let Some(row) = self.plain_row(base, offset, 0) {
            let ([dst], select) = self.rows([dst]);
            kernels::load_row(dst, select, row);
            return self.loaded(true);
        }
        let mut row = self.row_of(base, W::BYTES);
        self.all_in_place(&row, offset, PageAccess::Load)?;
        let ([dst], select) = self.rows([dst]);
        let done = kernels::load([dst, groups(&mut row)], select, offset, cells, mask);
        self.loaded(done)
    }

    #[inline(always)]
    fn store_row(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        let offset = W::from_u64(offset.cast_unsigned());
        let (cells, mask, from) = (self.env.cells, self.mask, self.env.plain_stores_from);
        if let Some(row) = self.plain_row(base, offset, from) {
            let ([value], _) = self.rows([value]);
            kernels::store_row(value, row, mask);
            return self.stored(true);
        }
        let mut row = self.row_of(base, W::BYTES);
        self.all_in_place(&row, offset, PageAccess::Store)?;
        let ([value], _) = self.rows([value]);
        let done = kernels::store([value, groups(&mut row)], offset, cells, mask, from);
        self.stored(done)
    }

    /// The words of a row from `base` + `offset` on, for all lanes that registers have room for, if they are aligned, in
    /// memory from the word address `from` on, and nothing is translated.
    #[inline(always)]
    fn plain_row(&self, base: Gpr, offset: W, from: u64) -> Option<&'a [W::Cell]> {
        let address = self.lane(base, 0).add(offset).to_u64();
        if self.env.translates || address < from || !address.is_multiple_of(W::BYTES as u64) {
            return None;
        }
        let env = self.env;
        env.cells.get(address as usize / W::BYTES..)?.get(..C * GROUP)
    }

    /// As [`access_row`](Self::access_row), of less than words.
    #[inline(never)]
    fn access_narrow_row(&mut self, step: &Step) -> Flow {
        let reg = Gpr::given;
        match *step {
            Step::Ldb { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 1, Extend::Zero)
            }
            Step::Ldbs { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 1, Extend::Sign)
            }
            Step::Ldh { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 2, Extend::Zero)
            }
            Step::Ldhs { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 2, Extend::Sign)
            }
            Step::Ldw { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 4, Extend::Zero)
            }
            Step::Ldws { dst, base, offset } => {
                self.load_narrow_row(reg(dst), reg(base), offset, 4, Extend::Sign)
            }
            Step::Stb { value, base, offset } => {
                self.store_narrow_row(reg(value), reg(base), offset, 1)
            }
            Step::Sth { value, base, offset } => {
                self.store_narrow_row(reg(value), reg(base), offset, 2)
            }
            Step::Stw { value, base, offset } => {
                self.store_narrow_row(reg(value), reg(base), offset, 4)
            }
            _ => OTHER,
        }
    }

    fn load_narrow_row(
        &mut self,
        dst: Gpr,
        base: Gpr,
        offset: i64,
        bytes: usize,
        extend: Extend,
    ) -> Flow {
        let offset = W::from_u64(offset.cast_unsigned());
        let mut row = self.row_of(base, bytes);
        self.all_in_place(&row, offset, PageAccess::Load)?;
        let (cells, mask) = (self.env.cells, self.mask);
        let ([dst], _) = self.rows([dst]);
        let done = gather_narrow(dst, groups(&mut row), offset, cells, mask, bytes, extend);
        self.loaded(done)
    }

    fn store_narrow_row(&mut self, value: Gpr, base: Gpr, offset: i64, bytes: usize) -> Flow {
        let offset = W::from_u64(offset.cast_unsigned());
        let mut row = self.row_of(base, bytes);
        self.all_in_place(&row, offset, PageAccess::Store)?;
        let (cells, mask, from) = (self.env.cells, self.mask, self.env.plain_stores_from);
        let ([value], _) = self.rows([value]);
        let done = scatter_narrow(value, groups(&mut row), offset, cells, mask, bytes, from);
        self.stored(done)
    }

    /// Counts loads if they were done; else leaves them to the precise path.
    #[inline(always)]
    fn loaded(&mut self, done: bool) -> Flow {
        if !done {
            return OTHER;
        }
        self.warp.stats.loads += self.executing();
        NEXT
    }

    /// As [`loaded`](Self::loaded), for stores.
    #[inline(always)]
    fn stored(&mut self, done: bool) -> Flow {
        if !done {
            return OTHER;
        }
        self.warp.stats.stores += self.executing();
        NEXT
    }
}

/// A register as kernels take it.
#[inline(always)]
fn groups<W: Word, const C: usize>(reg: &mut Reg<W, C>) -> &[Group<W>; C] {
    Cell::from_mut(reg).as_array_of_cells()
}

/// Loads `bytes` bytes at `base` + `offset`, in the lanes of `mask`. Returns whether it did: if not, nothing has
/// changed.
#[inline(never)]
fn gather_narrow<W: Word>(
    dst: &[Group<W>],
    base: &[Group<W>],
    offset: W,
    cells: &[W::Cell],
    mask: u64,
    bytes: usize,
    extend: Extend,
) -> bool {
    if !are_plain(base, offset, cells, mask, 0, bytes) {
        return false;
    }
    for lane in lanes_of(mask) {
        let value = load_bytes::<W>(cells, word(base, lane).get().add(offset), bytes);
        word(dst, lane).set(W::from_u64(extend.apply(value, bytes)));
    }
    true
}

/// Stores `bytes` bytes at `base` + `offset`, none below the word address `from`, in the lanes of `mask`, lowest
/// first. Returns whether it did: if not, nothing has changed.
#[inline(never)]
fn scatter_narrow<W: Word>(
    value: &[Group<W>],
    base: &[Group<W>],
    offset: W,
    cells: &[W::Cell],
    mask: u64,
    bytes: usize,
    from: u64,
) -> bool {
    if !are_plain(base, offset, cells, mask, from, bytes) {
        return false;
    }
    let start = base[0].get()[0].add(offset).to_u64() as usize;
    if bytes < W::BYTES
        && start.is_multiple_of(W::BYTES)
        && is_whole(base, mask)
        && follow(base, bytes)
    {
        store_packed(value, &cells[start / W::BYTES..], bytes);
        return true;
    }
    for lane in lanes_of(mask) {
        let address = word(base, lane).get().add(offset);
        store_bytes::<W>(cells, address, word(value, lane).get().to_u64(), bytes);
    }
    true
}

/// Whether each lane's address is `bytes` bytes behind that of the lane before.
fn follow<W: Word>(base: &[Group<W>], bytes: usize) -> bool {
    let distance = W::from_u64(bytes as u64);
    let mut expected = base[0].get()[0];
    base.iter().flat_map(Group::get).all(|address| {
        let is_expected = address == expected;
        expected = expected.add(distance);
        is_expected
    })
}

/// Stores `bytes` bytes of each lane one after the other from the first cell on. This writes whole words, so that
/// no other bytes have to be preserved.
fn store_packed<W: Word>(value: &[Group<W>], cells: &[W::Cell], bytes: usize) {
    let per_word = W::BYTES / bytes;
    let ones = u64::MAX >> (64 - 8 * bytes);
    let mut cells = cells.iter();
    for group in value {
        for (values, cell) in group.get().chunks_exact(per_word).zip(&mut cells) {
            let word = |word: u64, value: &W| word << (8 * bytes) | (value.to_u64() & ones);
            cell.store(W::from_u64(values.iter().rev().fold(0, word)));
        }
    }
}
