//! Atomic read-modify-write instructions of extension X: lane by lane, lowest first, sequentially consistent.

use std::cmp;
use std::ops::ControlFlow;

use harp_isa::Gpr;

use super::lanes::{index, lanes_of};
use super::{Exec, Flow, Precise};
use crate::trap::TrapKind;
use crate::warp::Reg;
use crate::word::{Cell, Word};

/// The operation on the old value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rmw {
    Add,
    And,
    Or,
    Xor,
    Min,
    Max,
    Minu,
    Maxu,
    Swap,
    /// Replaced if it equals the old destination.
    Cas,
}

impl Rmw {
    /// The new value in memory; `expected` is the old destination.
    fn apply<T: Word>(self, old: T, value: T, expected: T) -> T {
        match self {
            Rmw::Add => old.add(value),
            Rmw::And => old & value,
            Rmw::Or => old | value,
            Rmw::Xor => old ^ value,
            Rmw::Min => cmp::min_by_key(old, value, |x| x.to_i64()),
            Rmw::Max => cmp::max_by_key(old, value, |x| x.to_i64()),
            Rmw::Minu => old.min(value),
            Rmw::Maxu => old.max(value),
            Rmw::Swap => value,
            Rmw::Cas if old == expected => value,
            Rmw::Cas => old,
        }
    }
}

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// An atomic operation on a machine word.
    #[inline(never)]
    pub(super) fn atomic(&mut self, rmw: Rmw, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        let addresses = self.check_atomic(addr, W::BYTES)?;
        let cells = self.env.cells;
        for lane in lanes_of(self.mask) {
            let address = addresses.as_flattened()[lane];
            let at = address.to_u64() as usize;
            let (value, expected) = (self.lane(value, lane), self.lane(dst, lane));
            let old = cells[at / W::BYTES].update(|old| rmw.apply(old, value, expected));
            self.warp.regs[index(dst)].as_flattened_mut()[lane] = old;
            self.note_store(address, W::BYTES);
        }
        self.after_changes()
    }

    /// An atomic operation on 4 bytes, which are half a word on 8-byte machines.
    #[inline(never)]
    pub(super) fn atomic_half(&mut self, rmw: Rmw, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        const HALF: usize = 4;
        let addresses = self.check_atomic(addr, HALF)?;
        let cells = self.env.cells;
        let low = |x: W| x.to_u64() as u32;
        for lane in lanes_of(self.mask) {
            let address = addresses.as_flattened()[lane];
            let at = address.to_u64() as usize;
            let shift = 8 * (at % W::BYTES);
            let (value, expected) = (low(self.lane(value, lane)), low(self.lane(dst, lane)));
            let half = |word: W| (word.to_u64() >> shift) as u32;
            let old = cells[at / W::BYTES].update(|old| {
                let new = rmw.apply(half(old), value, expected);
                let kept = old.to_u64() & !(u64::from(u32::MAX) << shift);
                W::from_u64(kept | u64::from(new) << shift)
            });
            self.warp.regs[index(dst)].as_flattened_mut()[lane] = W::from_u64(half(old).into());
            self.note_store(address, HALF);
        }
        self.after_changes()
    }

    /// Counts a load and a store, and returns the physical addresses. Traps in the executing lanes whose
    /// address is misaligned, read-only or outside the memory.
    fn check_atomic(&mut self, addr: Gpr, size: usize) -> ControlFlow<(), Reg<W, C>> {
        self.warp.stats.loads += self.executing();
        self.warp.stats.stores += self.executing();
        let addresses = *self.reg(addr);
        let size = size as u8;
        let lanes_where = |bad: &dyn Fn(u64) -> bool| {
            let is_bad = |&lane: &usize| bad(addresses.as_flattened()[lane].to_u64());
            lanes_of(self.mask).filter(is_bad).fold(0u64, |lanes, lane| lanes | 1 << lane)
        };
        let misaligned = lanes_where(&|address| address % u64::from(size) != 0);
        let memory = size_of_val(self.env.cells) as u64;
        let outside = lanes_where(&|address| address >= memory);
        if misaligned != 0 {
            let address = addresses.as_flattened()[misaligned.trailing_zeros() as usize].to_u64();
            self.trap(TrapKind::Misaligned { address, size }, misaligned)?;
        }
        if self.env.translates {
            return self.atomic_paged(&addresses, usize::from(size));
        }
        self.all_writable(&addresses)?;
        self.all_answer(&addresses, outside, true)?;
        ControlFlow::Continue(addresses)
    }
}
