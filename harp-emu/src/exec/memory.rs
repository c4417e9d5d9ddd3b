//! Loads and stores.
//!
//! All lanes' addresses are checked before anything is read or written, so an instruction that
//! traps has no effect. Fast paths: all lanes at one address (read once), and lanes at consecutive
//! words. Whatever these and the plain gather and scatter cannot do (misaligned words, the console,
//! traps, the sub-word instructions) goes lane by lane, and so does everything on the precise way.

use std::array;

use harp_isa::Gpr;

use super::lanes::{any_bits, index, lanes_of, spread};
use super::{Event, Exec, Flow, NEXT};
use crate::trap::TrapKind;
use crate::warp::{GROUP, Reg};
use crate::word::{Cell, Word};

/// How many bytes an access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// From the address to the end of the word in memory that it lies in.
    Word,
    /// So many, whatever the alignment.
    Bytes(usize),
}

impl Width {
    /// The bytes that an access at `address` moves.
    pub(super) fn at<W: Word>(self, address: W) -> usize {
        match self {
            Width::Word => W::BYTES - address.to_u64() as usize % W::BYTES,
            Width::Bytes(bytes) => bytes,
        }
    }
}

/// How a narrow load fills the rest of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extend {
    Zero,
    Sign,
}

impl Extend {
    /// The word that the loaded bytes make.
    pub(super) fn apply(self, value: u64, bytes: usize) -> u64 {
        let unused = 64 - 8 * bytes as u32;
        match self {
            Extend::Zero => value,
            Extend::Sign => ((value << unused).cast_signed() >> unused).cast_unsigned(),
        }
    }
}

/// Addresses of all lanes of a warp that need no look at each.
enum Pattern {
    /// All lanes use the word with this index.
    Uniform(usize),
    /// Lane after lane uses word after word from this index on.
    Consecutive(usize),
}

/// What the executing lanes' addresses have in common.
struct Shape {
    /// Each is that of a whole word in memory, from the lowest address on that was asked for.
    whole: bool,
    /// They are equal.
    uniform: bool,
    /// Each is a word above that of the lane before.
    consecutive: bool,
}

impl<W: Word, const C: usize, const PRECISE: bool> Exec<'_, W, C, PRECISE> {
    #[inline(always)]
    pub(super) fn addresses(&self, base: Gpr, offset: i64) -> Reg<W, C> {
        let offset = W::from_u64(offset.cast_unsigned());
        let base = self.reg(base);
        array::from_fn(|c| {
            let base = base[c];
            array::from_fn(|i| base[i].add(offset))
        })
    }

    /// The pattern of the addresses where all lanes execute and all are the machine's own; none if
    /// there is none, or not all of it is in memory. Cheaper than [`shape`](Self::shape), and what
    /// most accesses come to.
    #[inline(always)]
    fn pattern(&self, base: Gpr, offset: i64) -> Option<Pattern> {
        if self.mask != self.full || usize::from(self.env.lanes) != C * GROUP {
            return None;
        }
        let base = self.reg(base);
        let first = base[0][0];
        let is_uniform = base[0][1] == first;
        let differ = if is_uniform {
            Self::differences(base, |_| first)
        } else {
            Self::differences(base, |lane| first.add(W::from_u64((lane * W::BYTES) as u64)))
        };
        let start = first.add(W::from_u64(offset.cast_unsigned()));
        let cell = Self::cell_index(start);
        let count = if is_uniform { 1 } else { C * GROUP };
        let whole = start.to_u64().is_multiple_of(W::BYTES as u64);
        if any_bits(&differ) != W::default() || !whole || cell + count > self.env.cells.len() {
            return None;
        }
        Some(if is_uniform { Pattern::Uniform(cell) } else { Pattern::Consecutive(cell) })
    }

    /// The bits in which any lane's word is not what is expected there, by the place in its group.
    #[inline(always)]
    fn differences(reg: &Reg<W, C>, expected: impl Fn(usize) -> W) -> [W; GROUP] {
        let mut differ = [W::default(); GROUP];
        for (c, at) in reg.iter().enumerate() {
            let old = differ;
            differ = array::from_fn(|i| old[i] | (at[i] ^ expected(c * GROUP + i)));
        }
        differ
    }

    #[inline(always)]
    fn shape(&self, addresses: &Reg<W, C>, from: u64) -> Shape {
        let zero = W::default();
        let width = W::BYTES as u64;
        let from = W::from_u64(from);
        let size = W::from_u64(size_of_val(self.env.cells) as u64).sub(from);
        let first = addresses.as_flattened()[self.first()];
        let base = first.sub(W::from_u64(self.first() as u64 * width));
        // Bits where an address is not what it should be, without crossing lanes until the end.
        let mut outside = [zero; GROUP];
        let mut differ = [zero; GROUP];
        let mut jump = [zero; GROUP];
        for (c, at) in addresses.iter().enumerate() {
            let select = spread::<W>(self.mask, c);
            let (o, d, j) = (outside, differ, jump);
            let is_outside =
                |x: W| if x.sub(from) >= size { W::ONES } else { x & W::from_u64(width - 1) };
            let expected = |i: usize| base.add(W::from_u64((c * GROUP + i) as u64 * width));
            outside = array::from_fn(|i| o[i] | (is_outside(at[i]) & select[i]));
            differ = array::from_fn(|i| d[i] | ((at[i] ^ first) & select[i]));
            jump = array::from_fn(|i| j[i] | ((at[i] ^ expected(i)) & select[i]));
        }
        let none = |bits: &[W; GROUP]| any_bits(bits) == zero;
        Shape { whole: none(&outside), uniform: none(&differ), consecutive: none(&jump) }
    }

    /// The place of a word in memory.
    #[inline(always)]
    fn cell_index(address: W) -> usize {
        address.to_u64() as usize / W::BYTES
    }

    #[inline(always)]
    pub(super) fn load_word(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.warp.stats.loads += self.executing();
        if PRECISE {
            let addresses = self.addresses(base, offset);
            return self.load_each(dst, &addresses, Width::Word, Extend::Zero);
        }
        let cells = self.env.cells;
        match self.pattern(base, offset) {
            Some(Pattern::Uniform(cell)) => self.fill(dst, cells[cell].load()),
            Some(Pattern::Consecutive(cell)) => {
                let reg = self.warp.regs[index(dst)].as_flattened_mut();
                for (value, cell) in reg.iter_mut().zip(&cells[cell..][..C * GROUP]) {
                    *value = cell.load();
                }
                NEXT
            }
            None => self.load_gathered(dst, base, offset),
        }
    }

    /// Loads words from any addresses.
    #[inline(always)]
    fn load_gathered(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        let addresses = self.addresses(base, offset);
        let shape = self.shape(&addresses, 0);
        if !shape.whole {
            return self.load_each(dst, &addresses, Width::Word, Extend::Zero);
        }
        let cells = self.env.cells;
        let first = Self::cell_index(addresses.as_flattened()[self.first()]);
        if shape.uniform {
            let value = cells[first].load();
            return self.fill(dst, value);
        }
        if self.mask != self.full {
            let reg = self.warp.regs[index(dst)].as_flattened_mut();
            for lane in lanes_of(self.mask) {
                reg[lane] = cells[Self::cell_index(addresses.as_flattened()[lane])].load();
            }
            return NEXT;
        }
        let lanes = usize::from(self.env.lanes);
        let reg = &mut self.warp.regs[index(dst)].as_flattened_mut()[..lanes];
        if shape.consecutive {
            for (value, cell) in reg.iter_mut().zip(&cells[first..][..lanes]) {
                *value = cell.load();
            }
        } else {
            for (value, &address) in reg.iter_mut().zip(addresses.as_flattened()) {
                *value = cells[Self::cell_index(address)].load();
            }
        }
        NEXT
    }

    #[inline(always)]
    pub(super) fn store_word(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        self.warp.stats.stores += self.executing();
        if PRECISE {
            let addresses = self.addresses(base, offset);
            return self.store_each(value, &addresses, Width::Word);
        }
        let cells = self.env.cells;
        match self.pattern(base, offset) {
            Some(Pattern::Consecutive(cell)) if cell >= self.first_writable() => {
                let values = self.reg(value).as_flattened();
                for (&value, cell) in values.iter().zip(&cells[cell..][..C * GROUP]) {
                    cell.store(value);
                }
                NEXT
            }
            _ => self.store_scattered(value, base, offset),
        }
    }

    /// Stores words to any addresses.
    #[inline(always)]
    fn store_scattered(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        let addresses = self.addresses(base, offset);
        let shape = self.shape(&addresses, self.env.plain_stores_from);
        if !shape.whole {
            return self.store_each(value, &addresses, Width::Word);
        }
        let cells = self.env.cells;
        let values = self.reg(value).as_flattened();
        if self.mask != self.full {
            for lane in lanes_of(self.mask) {
                cells[Self::cell_index(addresses.as_flattened()[lane])].store(values[lane]);
            }
            return NEXT;
        }
        let values = &values[..usize::from(self.env.lanes)];
        if shape.consecutive {
            let first = Self::cell_index(addresses[0][0]);
            for (&value, cell) in values.iter().zip(&cells[first..][..values.len()]) {
                cell.store(value);
            }
        } else {
            for (&value, &address) in values.iter().zip(addresses.as_flattened()) {
                cells[Self::cell_index(address)].store(value);
            }
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn load_narrow(
        &mut self,
        dst: Gpr,
        base: Gpr,
        offset: i64,
        width: usize,
        extend: Extend,
    ) -> Flow {
        self.warp.stats.loads += self.executing();
        let addresses = self.addresses(base, offset);
        self.load_each(dst, &addresses, Width::Bytes(width), extend)
    }

    #[inline(never)]
    pub(super) fn store_narrow(
        &mut self,
        value: Gpr,
        base: Gpr,
        offset: i64,
        width: usize,
    ) -> Flow {
        self.warp.stats.stores += self.executing();
        let addresses = self.addresses(base, offset);
        self.store_each(value, &addresses, Width::Bytes(width))
    }

    /// Loads in each executing lane.
    #[inline(never)]
    fn load_each(&mut self, dst: Gpr, addresses: &Reg<W, C>, width: Width, extend: Extend) -> Flow {
        if PRECISE && self.env.translates {
            return self.load_paged(dst, addresses, width, extend);
        }
        self.check(addresses, width, false)?;
        let cells = self.env.cells;
        for lane in lanes_of(self.mask) {
            let address = addresses.as_flattened()[lane];
            let bytes = width.at(address);
            let value = if self.is_console(address) {
                self.system.console.take().map_or(0, u64::from)
            } else {
                load_bytes::<W>(cells, address, bytes)
            };
            let value = W::from_u64(extend.apply(value, bytes));
            self.warp.regs[index(dst)].as_flattened_mut()[lane] = value;
        }
        NEXT
    }

    /// Stores in each executing lane, lowest first.
    #[inline(never)]
    fn store_each(&mut self, value: Gpr, addresses: &Reg<W, C>, width: Width) -> Flow {
        if PRECISE && self.env.translates {
            return self.store_paged(value, addresses, width);
        }
        self.check(addresses, width, true)?;
        let cells = self.env.cells;
        for lane in lanes_of(self.mask) {
            let address = addresses.as_flattened()[lane];
            let value = self.lane(value, lane);
            if self.is_console(address) {
                self.system.console.write(value.to_u64() as u8);
            } else {
                let bytes = width.at(address);
                store_bytes::<W>(cells, address, value.to_u64(), bytes);
                self.note_store(address, bytes);
            }
        }
        self.after_stores()
    }

    /// The index of the first word to which stores need no further look.
    #[inline(always)]
    fn first_writable(&self) -> usize {
        self.env.plain_stores_from as usize / W::BYTES
    }

    /// Remembers a store of `bytes` bytes if decoded code may lie there.
    pub(super) fn note_store(&mut self, address: W, bytes: usize) {
        // The precise way keeps no decoded code.
        let address = address.to_u64();
        if !PRECISE && address < self.env.plain_stores_from {
            self.system.stored.push((address, address + bytes as u64 - 1));
        }
    }

    /// Lets the core forget decoded code if stores may have changed it.
    pub(super) fn after_stores(&mut self) -> Flow {
        if self.system.stored.is_empty() { NEXT } else { self.leave(Event::CodeStored) }
    }

    /// A trap in the executing lanes whose address may only be read.
    pub(super) fn all_writable(&mut self, addresses: &Reg<W, C>) -> Flow {
        let limit = self.env.read_only_below;
        let address = |lane: usize| addresses.as_flattened()[lane].to_u64();
        let bad = lanes_of(self.mask).filter(|&lane| address(lane) < limit);
        match bad.fold(0u64, |bad, lane| bad | 1 << lane) {
            0 => NEXT,
            bad => {
                let address = address(bad.trailing_zeros() as usize);
                self.trap(TrapKind::ReadOnly { address, limit }, bad)
            }
        }
    }

    /// A trap in the executing lanes whose bytes are neither in memory nor on a device, or may only
    /// be read and are to be stored.
    fn check(&mut self, addresses: &Reg<W, C>, width: Width, store: bool) -> Flow {
        if store {
            self.all_writable(addresses)?;
        }
        let size = size_of_val(self.env.cells) as u64;
        let bad = |&lane: &usize| {
            let address = addresses.as_flattened()[lane];
            let end = address.to_u64().checked_add(width.at(address) as u64);
            end.is_none_or(|end| end > size) && !self.is_console(address)
        };
        let bad = lanes_of(self.mask).filter(bad).fold(0, |bad, lane| bad | 1 << lane);
        self.all_answer(addresses, bad, store)
    }

    /// A trap in the lanes `bad`, whose addresses nothing answers.
    pub(super) fn all_answer(&mut self, addresses: &Reg<W, C>, bad: u64, store: bool) -> Flow {
        if bad == 0 {
            return NEXT;
        }
        let address = addresses.as_flattened()[bad.trailing_zeros() as usize].to_u64();
        self.trap(TrapKind::BadAddress { address, store }, bad)
    }

    /// Whether the address lies in the console's word.
    pub(super) fn is_console(&self, address: W) -> bool {
        let offset = address.sub(W::sign_bit()).to_u64();
        self.env.has_console && offset < W::BYTES as u64
    }
}

/// The bytes from `address` on, 1 to 8 and no more than a word, zero-extended. They are in memory.
pub(super) fn load_bytes<W: Word>(cells: &[W::Cell], address: W, bytes: usize) -> u64 {
    let at = address.to_u64() as usize;
    let (cell, skip) = (at / W::BYTES, at % W::BYTES);
    let mut value = cells[cell].load().to_u64() >> (8 * skip);
    if skip + bytes > W::BYTES {
        value |= cells[cell + 1].load().to_u64() << (8 * (W::BYTES - skip));
    }
    value & ones(bytes)
}

/// Stores the bytes from `address` on, 1 to 8 and no more than a word. They are in memory.
pub(super) fn store_bytes<W: Word>(cells: &[W::Cell], address: W, value: u64, bytes: usize) {
    let at = address.to_u64() as usize;
    let (cell, skip) = (at / W::BYTES, at % W::BYTES);
    let mask = ones(bytes);
    let word = W::from_u64;
    cells[cell].merge(word(value << (8 * skip)), word(mask << (8 * skip)));
    if skip + bytes > W::BYTES {
        let moved = 8 * (W::BYTES - skip);
        cells[cell + 1].merge(word(value >> moved), word(mask >> moved));
    }
}

/// The mask of that many low bytes, 1 to 8.
fn ones(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}
