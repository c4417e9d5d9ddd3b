//! Loads and stores, of whole registers on the fast paths.
//!
//! All lanes' addresses are checked before anything is read or written. If all lanes use one address it is
//! read once; if they use consecutive words one check suffices for all. Accesses to anything but memory, to
//! words that are not aligned, or to pages that are not in place (see `paged`) are left to the precise path
//! (see `memory`).
//!
//! Code with a loop over lanes is in functions of its own, outside of the fast paths' loop.

use harp_isa::Gpr;

use super::lanes::{any_bits, index, lanes_of, spread, words};
use super::memory::{Extend, Width, addresses, load_bytes, store_bytes};
use super::paged::are_in_place;
use super::{Exec, Flow, NEXT, OTHER, Way};
use crate::tlb::InPlace;
use crate::trap::PageAccess;
use crate::warp::{GROUP, Reg};
use crate::word::{Cell, Word};

/// A pattern of the addresses of all lanes of a warp, with which they need not be checked one by one.
enum Pattern {
    /// All lanes use the word with this index.
    Uniform(usize),
    /// Lane after lane uses word after word from this index on.
    Consecutive(usize),
}

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// The pattern of the addresses, if all lanes execute and the machine's lanes fill the register. `None` if
    /// there is no pattern, not all of it is in memory, or addresses are translated.
    #[inline(always)]
    fn pattern(&self, base: Gpr, offset: i64) -> Option<Pattern> {
        if !P::FULL || usize::from(self.env.row_lanes) != C * GROUP {
            return None;
        }
        find_pattern(self.reg(base), W::from_u64(offset.cast_unsigned()), self.env.cells)
    }

    /// The index of the first word to which stores need no further check.
    #[inline(always)]
    fn first_plain_store(&self) -> usize {
        self.env.plain_stores_from as usize / W::BYTES
    }

    #[inline(always)]
    pub(super) fn load_word(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        if P::PRECISE {
            return self
                .rarely(|exec| exec.load_each(dst, base, offset, Width::Word, Extend::Zero));
        }
        let cells = self.env.cells;
        match self.pattern(base, offset) {
            Some(Pattern::Uniform(cell)) => self.fill(dst, cells[cell].load())?,
            Some(Pattern::Consecutive(cell)) => {
                load_row(&mut self.warp.regs[index(dst)], &cells[cell..]);
            }
            None => {
                let addresses = addresses(self.reg(base), offset);
                let reg = &mut self.warp.regs[index(dst)];
                if self.env.translates {
                    let pages = self.system.tlb.in_place(self.warp.supervisor);
                    load_in_place(reg, cells, &addresses, self.mask, pages)?;
                } else {
                    gather(reg, cells, &addresses, self.mask)?;
                }
            }
        }
        self.warp.stats.loads += self.executing();
        NEXT
    }

    #[inline(always)]
    pub(super) fn store_word(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        if P::PRECISE {
            return self.rarely(|exec| exec.store_each(value, base, offset, Width::Word));
        }
        let cells = self.env.cells;
        match self.pattern(base, offset) {
            Some(Pattern::Consecutive(cell)) if cell >= self.first_plain_store() => {
                store_row(self.reg(value), &cells[cell..]);
            }
            _ => {
                let addresses = addresses(self.reg(base), offset);
                let (reg, from) = (self.reg(value), self.env.plain_stores_from);
                if self.env.translates {
                    let pages = self.system.tlb.in_place(self.warp.supervisor);
                    store_in_place(reg, cells, &addresses, self.mask, from, pages)?;
                } else {
                    scatter(reg, cells, &addresses, self.mask, from)?;
                }
            }
        }
        self.warp.stats.stores += self.executing();
        NEXT
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
        let addresses = addresses(self.reg(base), offset);
        self.in_place(&addresses, PageAccess::Load)?;
        let reg = &mut self.warp.regs[index(dst)];
        gather_narrow(reg, self.env.cells, &addresses, self.mask, bytes, extend)?;
        self.warp.stats.loads += self.executing();
        NEXT
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
        let addresses = addresses(self.reg(base), offset);
        self.in_place(&addresses, PageAccess::Store)?;
        let (cells, from) = (self.env.cells, self.env.plain_stores_from);
        let is_whole = P::FULL && usize::from(self.env.lanes) == C * GROUP;
        if is_whole && bytes < W::BYTES && follow(&addresses, bytes) {
            store_packed(self.reg(value), cells, addresses[0][0], bytes, from)?;
        } else {
            scatter_narrow(self.reg(value), cells, &addresses, self.mask, bytes, from)?;
        }
        self.warp.stats.stores += self.executing();
        NEXT
    }
}

/// The pattern of the addresses `base` + `offset` of all lanes; `None` if there is none, or not all of it is
/// in memory.
#[inline(always)]
fn find_pattern<W: Word, const C: usize>(
    base: &Reg<W, C>,
    offset: W,
    cells: &[W::Cell],
) -> Option<Pattern> {
    let first = base[0][0];
    let is_uniform = base[0][1] == first;
    let differ = if is_uniform {
        differences(base, |_| first)
    } else {
        differences(base, |lane| first.add(W::from_u64((lane * W::BYTES) as u64)))
    };
    let start = first.add(offset);
    let cell = cell_index(start);
    let count = if is_uniform { 1 } else { C * GROUP };
    let whole = start.to_u64().is_multiple_of(W::BYTES as u64);
    if any_bits(&differ) != W::ZERO || !whole || cell + count > cells.len() {
        return None;
    }
    Some(if is_uniform { Pattern::Uniform(cell) } else { Pattern::Consecutive(cell) })
}

/// The bits in which any lane's word differs from the expected one, by position in the group.
#[inline(always)]
pub(super) fn differences<W: Word, const C: usize>(
    reg: &Reg<W, C>,
    expected: impl Fn(usize) -> W,
) -> [W; GROUP] {
    let mut differ = [W::ZERO; GROUP];
    for (c, at) in reg.iter().enumerate() {
        let old = differ;
        differ = words!(i < GROUP => old[i] | (at[i] ^ expected(c * GROUP + i)));
    }
    differ
}

/// Whether each lane's address is `bytes` bytes behind that of the lane before.
#[inline(never)]
fn follow<W: Word, const C: usize>(addresses: &Reg<W, C>, bytes: usize) -> bool {
    let first = addresses[0][0];
    let expected = |lane: usize| first.add(W::from_u64((lane * bytes) as u64));
    any_bits(&differences(addresses, expected)) == W::ZERO
}

/// The index of a word in memory.
#[inline(always)]
fn cell_index<W: Word>(address: W) -> usize {
    address.to_u64() as usize / W::BYTES
}

/// Whether accesses of `bytes` bytes at the addresses of the lanes in `mask` are inside of memory, not below
/// the word address `from`, and each within one word.
#[inline(always)]
fn are_plain<W: Word, const C: usize>(
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    from: u64,
    bytes: usize,
) -> bool {
    let last = W::from_u64((W::BYTES - bytes) as u64);
    let within_word = W::from_u64(W::BYTES as u64 - 1);
    let from = W::from_u64(from);
    let size = W::from_u64(size_of_val(cells) as u64).sub(from);
    let mut outside = [W::ZERO; GROUP];
    for (c, at) in addresses.iter().enumerate() {
        let select = spread::<W>(mask, c);
        let is_outside = |x: W| x.sub(from) >= size || x & within_word > last;
        let old = outside;
        outside = words!(i < GROUP => {
            old[i] | if is_outside(at[i]) { select[i] } else { W::ZERO }
        });
    }
    any_bits(&outside) == W::ZERO
}

/// Loads consecutive words.
#[inline(never)]
fn load_row<W: Word, const C: usize>(reg: &mut Reg<W, C>, cells: &[W::Cell]) {
    for (values, cells) in reg.iter_mut().zip(cells.as_chunks::<GROUP>().0) {
        *values = words!(i < GROUP => cells[i].load());
    }
}

/// Stores consecutive words.
#[inline(never)]
fn store_row<W: Word, const C: usize>(reg: &Reg<W, C>, cells: &[W::Cell]) {
    for (values, cells) in reg.iter().zip(cells.as_chunks::<GROUP>().0) {
        for (value, cell) in values.iter().zip(cells) {
            cell.store(*value);
        }
    }
}

/// Loads the words at `addresses`, in the lanes of `mask`, if their pages are in place and permit it.
#[inline(never)]
fn load_in_place<W: Word, const C: usize>(
    reg: &mut Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    pages: InPlace<'_>,
) -> Flow {
    let pattern = whole_pattern(cells, addresses, mask);
    if !permit_pattern(pages, &pattern, addresses, mask, PageAccess::Load) {
        return OTHER;
    }
    match pattern {
        Some(Pattern::Uniform(cell)) => *reg = [[cells[cell].load(); GROUP]; C],
        Some(Pattern::Consecutive(cell)) => load_row(reg, &cells[cell..]),
        None => gather(reg, cells, addresses, mask)?,
    }
    NEXT
}

/// Stores words at `addresses`, in the lanes of `mask`, lowest first, if their pages are in place and permit
/// it.
#[inline(never)]
fn store_in_place<W: Word, const C: usize>(
    reg: &Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    from: u64,
    pages: InPlace<'_>,
) -> Flow {
    let pattern = whole_pattern(cells, addresses, mask);
    if !permit_pattern(pages, &pattern, addresses, mask, PageAccess::Store) {
        return OTHER;
    }
    match pattern {
        Some(Pattern::Consecutive(cell)) if cell >= from as usize / W::BYTES => {
            store_row(reg, &cells[cell..]);
        }
        _ => scatter(reg, cells, addresses, mask, from)?,
    }
    NEXT
}

/// Whether the pages of the addresses in the lanes of `mask`, which have that pattern, are in place and permit
/// the access.
#[inline(always)]
fn permit_pattern<W: Word, const C: usize>(
    pages: InPlace<'_>,
    pattern: &Option<Pattern>,
    addresses: &Reg<W, C>,
    mask: u64,
    access: PageAccess,
) -> bool {
    match pattern {
        // Less than a page lies between the ends of a row.
        Some(_) => [addresses[0][0], addresses[C - 1][GROUP - 1]]
            .iter()
            .all(|address| pages.permit(address.to_u64(), access)),
        None => are_in_place(pages, addresses, mask, access),
    }
}

/// The pattern of the addresses if `mask` has all lanes that registers have room for.
#[inline(always)]
fn whole_pattern<W: Word, const C: usize>(
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
) -> Option<Pattern> {
    let is_whole = mask.count_ones() as usize == C * GROUP;
    if is_whole { find_pattern(addresses, W::ZERO, cells) } else { None }
}

/// Loads the words at `addresses`, in the lanes of `mask`.
#[inline(never)]
fn gather<W: Word, const C: usize>(
    reg: &mut Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
) -> Flow {
    if !are_plain(cells, addresses, mask, 0, W::BYTES) {
        return OTHER;
    }
    let (reg, addresses) = (reg.as_flattened_mut(), addresses.as_flattened());
    for lane in lanes_of(mask) {
        reg[lane] = cells[cell_index(addresses[lane])].load();
    }
    NEXT
}

/// Stores words at `addresses`, in the lanes of `mask`, lowest first.
#[inline(never)]
fn scatter<W: Word, const C: usize>(
    reg: &Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    from: u64,
) -> Flow {
    if !are_plain(cells, addresses, mask, from, W::BYTES) {
        return OTHER;
    }
    let (reg, addresses) = (reg.as_flattened(), addresses.as_flattened());
    for lane in lanes_of(mask) {
        cells[cell_index(addresses[lane])].store(reg[lane]);
    }
    NEXT
}

/// Loads `bytes` bytes at each of `addresses`, in the lanes of `mask`.
#[inline(never)]
fn gather_narrow<W: Word, const C: usize>(
    reg: &mut Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    bytes: usize,
    extend: Extend,
) -> Flow {
    if !are_plain(cells, addresses, mask, 0, bytes) {
        return OTHER;
    }
    let (reg, addresses) = (reg.as_flattened_mut(), addresses.as_flattened());
    for lane in lanes_of(mask) {
        let value = load_bytes::<W>(cells, addresses[lane], bytes);
        reg[lane] = W::from_u64(extend.apply(value, bytes));
    }
    NEXT
}

/// Stores `bytes` bytes at each of `addresses`, in the lanes of `mask`, lowest first.
#[inline(never)]
fn scatter_narrow<W: Word, const C: usize>(
    reg: &Reg<W, C>,
    cells: &[W::Cell],
    addresses: &Reg<W, C>,
    mask: u64,
    bytes: usize,
    from: u64,
) -> Flow {
    if !are_plain(cells, addresses, mask, from, bytes) {
        return OTHER;
    }
    let (reg, addresses) = (reg.as_flattened(), addresses.as_flattened());
    for lane in lanes_of(mask) {
        store_bytes::<W>(cells, addresses[lane], reg[lane].to_u64(), bytes);
    }
    NEXT
}

/// Stores `bytes` bytes of each lane one after the other from a word's address on. This writes whole words,
/// so that no other bytes have to be preserved.
#[inline(never)]
fn store_packed<W: Word, const C: usize>(
    reg: &Reg<W, C>,
    cells: &[W::Cell],
    start: W,
    bytes: usize,
    from: u64,
) -> Flow {
    let per_word = W::BYTES / bytes;
    let (start, count) = (start.to_u64(), C * GROUP / per_word);
    let first = start as usize / W::BYTES;
    let is_plain = start >= from && start.is_multiple_of(W::BYTES as u64);
    if !is_plain || cells.len().checked_sub(count).is_none_or(|last| first > last) {
        return OTHER;
    }
    let ones = u64::MAX >> (64 - 8 * bytes);
    for (values, cell) in reg.as_flattened().chunks_exact(per_word).zip(&cells[first..]) {
        let word = |word: u64, value: &W| word << (8 * bytes) | (value.to_u64() & ones);
        cell.store(W::from_u64(values.iter().rev().fold(0, word)));
    }
    NEXT
}
