//! What is done once for all lanes, on the fast path.
//!
//! An instruction of [`Sharing::Once`](harp_isa::Sharing) takes its operands from the first executing lane. One function
//! does all of them, with a `match`: each is so short that handlers of their own would be no faster.

use std::ops::ControlFlow;

use harp_isa::Gpr;

use super::memory::{Extend, load_bytes, store_bytes};
use super::step::Step;
use super::{Exec, Fast, Flow, NEXT, Once, Way};
use crate::trap::PageAccess;
use crate::word::Word;

impl<'a, W: Word, const C: usize> Exec<'a, W, C, Fast> {
    /// Carries out an instruction once.
    #[inline(never)]
    pub(super) fn do_once(&mut self, step: &Step) -> Flow {
        let mut once = Exec::<W, C, Once>::new(self.warp, self.env, self.system, self.number);
        (once.mask, once.executing, once.next) = (self.mask, 1, self.next);
        step.accept(&mut once)?;
        self.next = once.next;
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
        let value = load_bytes::<W>(self.env.cells, address, bytes);
        self.warp.stats.loads += 1;
        self.share(dst, W::from_u64(extend.apply(value, bytes)))
    }

    /// Stores `bytes` bytes, at most a word, once.
    #[inline(always)]
    pub(super) fn store_once(&mut self, value: Gpr, base: Gpr, offset: i64, bytes: usize) -> Flow {
        let from = self.env.plain_stores_from;
        let address = self.plain_address(base, offset, bytes, from, PageAccess::Store)?;
        let value = self.lane(value, self.first()).to_u64();
        store_bytes::<W>(self.env.cells, address, value, bytes);
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
