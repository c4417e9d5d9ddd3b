//! Loads and stores, lane by lane.
//!
//! This belongs to the precise path, which does whatever the fast path (see `rows`) cannot: misaligned
//! words, the console, traps. All lanes' addresses are checked before anything is read or written, so an
//! instruction that traps has no effect.

use harp_isa::{Gpr, Op, Sharing};

use super::lanes::{index, lanes_of};
use super::{Event, Exec, Flow, NEXT, Precise, Way};
use crate::device::DeviceStore;
use crate::trap::TrapKind;
use crate::warp::Reg;
use crate::word::{Cell, Word};

/// How many bytes an access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Those from the address to the end of the memory word that it lies in.
    Word,
    /// This many, whatever the alignment.
    Bytes(usize),
}

impl Width {
    /// The number of bytes that an access moves at an aligned address.
    pub(super) fn most<W: Word>(self) -> usize {
        match self {
            Width::Word => W::BYTES,
            Width::Bytes(bytes) => bytes,
        }
    }

    /// The number of bytes that an access at `address` moves.
    pub(super) fn at<W: Word>(self, address: W) -> usize {
        match self {
            Width::Word => W::BYTES - address.to_u64() as usize % W::BYTES,
            Width::Bytes(bytes) => bytes,
        }
    }
}

/// How a narrow load fills the upper bits of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extend {
    Zero,
    Sign,
}

impl Extend {
    /// The word that results from the loaded bytes.
    pub(super) fn apply(self, value: u64, bytes: usize) -> u64 {
        let unused = 64 - 8 * bytes as u32;
        match self {
            Extend::Zero => value,
            Extend::Sign => ((value << unused).cast_signed() >> unused).cast_unsigned(),
        }
    }
}

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// Loads in each executing lane.
    #[inline(never)]
    pub(super) fn load_each(
        &mut self,
        dst: Gpr,
        base: Gpr,
        offset: i64,
        width: Width,
        extend: Extend,
    ) -> Flow {
        self.warp.stats.loads += self.executing();
        let addresses = &self.addresses(dst, base, offset, width);
        if self.env.translates {
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
    pub(super) fn store_each(&mut self, value: Gpr, base: Gpr, offset: i64, width: Width) -> Flow {
        self.warp.stats.stores += self.executing();
        let addresses = &self.addresses(value, base, offset, width);
        if self.env.translates {
            return self.store_paged(value, addresses, width);
        }
        if width == Width::Word && self.store_to_device(value, addresses, self.warp.pc) {
            return NEXT;
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
        self.after_changes()
    }

    /// Remembers a store of `bytes` bytes at a physical address if decoded code may lie there.
    pub(super) fn note_store(&mut self, address: W, bytes: usize) {
        let address = address.to_u64();
        if address < self.env.plain_stores_from {
            self.system.changed.push((address, address + bytes as u64 - 1));
        }
    }

    /// Makes the core forget decoded code if it may have changed.
    pub(super) fn after_changes(&mut self) -> Flow {
        if self.system.changed.is_empty() { NEXT } else { self.leave(Event::CodeChanged) }
    }

    /// Traps in the executing lanes whose address is read-only.
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

    /// Traps in the executing lanes whose bytes are neither in memory nor on a device, or, for a store, are
    /// read-only.
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

    /// Traps in the lanes `bad`, at whose addresses there is neither memory nor a device.
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

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// The addresses at which lanes load or store `value`: the sums of a base register and an offset, and, in a row, of
    /// the bytes of the lanes before.
    #[inline(always)]
    fn addresses(&self, value: Gpr, base: Gpr, offset: i64, width: Width) -> Reg<W, C> {
        let offset = W::from_u64(offset.cast_unsigned());
        let mut addresses = match self.env.arch.is_row(value, base) {
            true => self.row_of(base, width.most::<W>()),
            false => *self.reg(base),
        };
        for address in addresses.as_flattened_mut() {
            *address = address.add(offset);
        }
        addresses
    }

    /// Addresses of `bytes` bytes that follow each other, the first at a shared register's.
    #[inline(always)]
    pub(super) fn row_of(&self, base: Gpr, bytes: usize) -> Reg<W, C> {
        let mut addresses = *self.reg(base);
        for (lane, address) in addresses.as_flattened_mut().iter_mut().enumerate() {
            *address = address.add(W::from_u64((lane * bytes) as u64));
        }
        addresses
    }

    /// Carries out the instruction at `pc`, which this path leaves to another one, if it only stores words to the
    /// device, in each lane.
    #[inline(never)]
    pub(super) fn stores_to_device(&mut self, op: &Op, pc: impl FnOnce() -> u64) -> bool {
        let &Op::St { value, base, offset } = op else { return false };
        let is_each = op.sharing(self.env.arch) != Sharing::Once;
        if self.system.device.is_none() || self.env.translates || !is_each {
            return false;
        }
        let addresses = self.addresses(value, base, offset, Width::Word);
        let stores = self.store_to_device(value, &addresses, pc());
        if stores {
            self.warp.stats.stores += self.executing();
        }
        stores
    }

    /// Stores words to the device, if all executing lanes do that; `pc` is the instruction's address.
    fn store_to_device(&mut self, value: Gpr, addresses: &Reg<W, C>, pc: u64) -> bool {
        let Some(device) = &self.system.device else { return false };
        let (mask, lanes) = (self.mask, addresses.as_flattened());
        let takes = |address: W| {
            device.addresses.contains(&address.to_u64()) && Width::Word.at(address) == W::BYTES
        };
        // Mostly all lanes store to one address.
        let first = lanes[self.first()];
        let is_one = lanes.iter().fold(W::ZERO, |bits, &at| bits | (at ^ first)) == W::ZERO;
        let all_take = takes(first) && (is_one || lanes_of(mask).all(|lane| takes(lanes[lane])));
        if !all_take {
            return false;
        }
        let words = |reg: &Reg<W, C>| reg.map(|group| group.map(W::to_u64));
        device.store(&DeviceStore {
            core: self.env.core,
            warp: self.number,
            pc,
            executing: mask,
            addresses: words(addresses).as_flattened(),
            values: words(self.reg(value)).as_flattened(),
        });
        true
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

/// A mask of the lowest `bytes` bytes, 1 to 8.
fn ones(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}
