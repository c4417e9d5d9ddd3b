//! Jumps, calls, stops and division faults.

use std::ops::ControlFlow;

use harp_isa::{Gpr, Opcode};

use super::kernels::One;
use super::{Event, Exec, Flow, NEXT, Way};
use crate::trap::TrapKind;
use crate::word::Word;

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Traps if the active lanes disagree on the guard.
    #[inline(always)]
    pub(super) fn converged(&mut self, opcode: Opcode) -> Flow {
        if self.enabled() == self.warp.active {
            return NEXT;
        }
        let lanes = self.enabled();
        self.trap_uncounted(TrapKind::DivergentBranch { opcode }, lanes)
    }

    #[inline(always)]
    pub(super) fn jump_by(&mut self, rel: i64) -> Flow {
        self.next = self.next.wrapping_add_signed(rel) & W::ONES.to_u64();
        NEXT
    }

    /// Jumps to the target, on which the executing lanes must agree.
    #[inline(always)]
    pub(super) fn jump_to(&mut self, opcode: Opcode, target: Gpr) -> Flow {
        let (value, others) = self.first_and_rest(target);
        if others != 0 {
            return self.trap(TrapKind::DivergentTarget { opcode }, others);
        }
        self.next = value.to_u64();
        NEXT
    }

    /// Writes the address of the next instruction.
    #[inline(always)]
    pub(super) fn link(&mut self, link: Gpr) -> Flow {
        self.fill(link, W::from_u64(self.next))
    }

    #[inline(always)]
    pub(super) fn do_jali(&mut self, link: Gpr, rel: i64) -> Flow {
        self.converged(Opcode::Jali)?;
        self.link(link)?;
        self.jump_by(rel)
    }

    #[inline(always)]
    pub(super) fn do_jalr(&mut self, link: Gpr, target: Gpr) -> Flow {
        self.converged(Opcode::Jalr)?;
        self.link(link)?;
        self.jump_to(Opcode::Jalr, target)
    }

    #[inline(always)]
    pub(super) fn do_jmpi(&mut self, rel: i64) -> Flow {
        self.converged(Opcode::Jmpi)?;
        self.jump_by(rel)
    }

    #[inline(always)]
    pub(super) fn do_jmpr(&mut self, target: Gpr) -> Flow {
        self.converged(Opcode::Jmpr)?;
        self.jump_to(Opcode::Jmpr, target)
    }

    /// `halt` counts as one instruction, however many lanes execute it.
    #[inline(never)]
    pub(super) fn do_halt(&mut self) -> Flow {
        self.warp.stats.insts -= u64::from(self.mask.count_ones()) - 1;
        self.leave(Event::Stop)
    }

    /// With interrupts enabled `trap` counts as one instruction: the first lane raises the interrupt, and the
    /// other lanes do nothing.
    #[inline(never)]
    pub(super) fn do_trap(&mut self) -> Flow {
        self.converged(Opcode::Trap)?;
        let lanes = self.mask;
        if self.warp.interrupts {
            self.warp.stats.insts -= u64::from(lanes.count_ones()) - 1;
        }
        self.trap(TrapKind::GuestTrap, lanes)
    }

    /// Traps in the executing lanes whose `divisor` is zero.
    #[inline(always)]
    pub(super) fn divisor(&mut self, divisor: Gpr) -> Flow {
        let zero = self.test([divisor, divisor], One(W::is_zero)) & self.mask;
        if zero == 0 { NEXT } else { self.trap(TrapKind::DivideByZero, zero) }
    }

    /// The immediate divisor. Traps in the executing lanes if it is zero.
    #[inline(always)]
    pub(super) fn immediate_divisor(&mut self, imm: i64) -> ControlFlow<(), W> {
        let divisor = W::from_u64(imm.cast_unsigned());
        if divisor.is_zero() {
            let lanes = self.mask;
            self.trap(TrapKind::DivideByZero, lanes)?;
        }
        ControlFlow::Continue(divisor)
    }
}
