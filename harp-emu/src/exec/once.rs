//! What is done once for all lanes, on the fast path.
//!
//! An instruction of [`Sharing::Once`](harp_isa::Sharing) takes its operands from the first executing lane. It has a handler
//! of its own, of scalar code but for the copies of the result.

use std::ops::ControlFlow;

use harp_isa::Gpr;

use super::memory::{Extend, load_bytes, store_bytes};
use super::{Exec, Fast, Flow, NEXT, Once, Way};
use crate::trap::PageAccess;
use crate::word::{Cell, Word};

impl<W: Word, const C: usize> Exec<'_, W, C, Fast> {
    /// The warp, ready to carry out an instruction once.
    #[inline(always)]
    pub(super) fn once(&mut self) -> Exec<'_, W, C, Once> {
        let mut once = Exec::<W, C, Once>::new(self.warp, self.env, self.system, self.number);
        (once.mask, once.executing, once.next) = (self.mask, 1, self.next);
        once
    }

    /// An instruction has been carried out once; the warp goes on at `next`.
    #[inline(always)]
    pub(super) fn was_once(&mut self, next: u64) -> Flow {
        self.next = next;
        self.spared += self.executing - 1;
        NEXT
    }
}

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Loads `bytes` bytes, at most a word, once.
    #[inline(always)]
    pub(super) fn load_once(
        &mut self,
        dst: Gpr,
        base: Gpr,
        offset: i64,
        bytes: usize,
        extend: Extend,
    ) -> Flow {
        let address = self.plain_address(base, offset, bytes, 0, PageAccess::Load)?;
        let value = match self.env.cells.get(address.to_u64() as usize / W::BYTES) {
            Some(cell) if bytes == W::BYTES => cell.load(),
            _ => {
                let value = load_bytes::<W>(self.env.cells, address, bytes);
                W::from_u64(extend.apply(value, bytes))
            }
        };
        self.warp.stats.loads += 1;
        self.share(dst, value)
    }

    /// Stores `bytes` bytes, at most a word, once.
    #[inline(always)]
    pub(super) fn store_once(&mut self, value: Gpr, base: Gpr, offset: i64, bytes: usize) -> Flow {
        let from = self.env.plain_stores_from;
        let address = self.plain_address(base, offset, bytes, from, PageAccess::Store)?;
        let value = self.lane(value, self.first());
        match self.env.cells.get(address.to_u64() as usize / W::BYTES) {
            Some(cell) if bytes == W::BYTES => cell.store(value),
            _ => store_bytes::<W>(self.env.cells, address, value.to_u64(), bytes),
        }
        self.warp.stats.stores += 1;
        NEXT
    }

    /// The first executing lane's address, if the access is to memory, not below `from`, within one word, and in a page
    /// that is in place. Else the access is left to the precise path.
    #[inline(always)]
    fn plain_address(
        &self,
        base: Gpr,
        offset: i64,
        bytes: usize,
        from: u64,
        access: PageAccess,
    ) -> ControlFlow<(), W> {
        let address = self.lane(base, self.first()).add(W::from_u64(offset.cast_unsigned()));
        let at = address.to_u64();
        let is_plain = at >= from
            && at < size_of_val(self.env.cells) as u64
            && at as usize % W::BYTES + bytes <= W::BYTES;
        let in_place = !self.env.translates
            || self.system.tlb.in_place(self.warp.supervisor).permit(at, access);
        if is_plain && in_place { ControlFlow::Continue(address) } else { ControlFlow::Break(()) }
    }
}
