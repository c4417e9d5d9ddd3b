//! The allocator's moves, between registers and spill slots.
//!
//! Predicates have no memory instructions: they go through the scratch register as 0 or 1. A slot too far
//! from the stack pointer is addressed through the scratch register; if that holds the value, the stack
//! pointer itself moves there and back.

use harp_isa::{Gpr, Op, Opcode, Pred};

use super::Emitter;
use crate::regalloc::{Location, Move};

impl Emitter<'_> {
    /// Emits one move.
    pub(super) fn edit(&mut self, edit: Move) {
        match (edit.from, edit.to) {
            (from, to) if from == to => {}
            (Location::Gpr(src), Location::Gpr(dst)) => self.op(Op::Ori { dst, src, imm: 0 }),
            (Location::Pred(a), Location::Pred(dst)) => self.op(Op::Orp { dst, a, b: a }),
            (Location::Gpr(src), Location::Slot { index, .. }) => self.store_slot(src, index),
            (Location::Slot { index, .. }, Location::Gpr(dst)) => self.load_slot(dst, index),
            (Location::Pred(src), Location::Slot { index, .. }) => self.spill_pred(src, index),
            (Location::Slot { index, .. }, Location::Pred(dst)) => self.reload_pred(dst, index),
            (from, to) => unreachable!("the allocator never moves {from:?} to {to:?}"),
        }
    }

    /// `slot = src`, a general register.
    pub(super) fn store_slot(&mut self, src: Gpr, index: u32) {
        self.store_word(src, self.frame.spill_offset(index));
    }

    /// `dst = slot`, a general register.
    pub(super) fn load_slot(&mut self, dst: Gpr, index: u32) {
        self.load_word(dst, self.frame.spill_offset(index));
    }

    /// Stores a word at an offset from the stack pointer.
    pub(super) fn store_word(&mut self, value: Gpr, offset: i64) {
        let (base, offset) = self.stack_address(Opcode::St, offset);
        self.op(Op::St { value, base, offset });
    }

    /// Loads the word at an offset from the stack pointer.
    pub(super) fn load_word(&mut self, dst: Gpr, offset: i64) {
        let (base, offset) = self.stack_address(Opcode::Ld, offset);
        self.op(Op::Ld { dst, base, offset });
    }

    /// The base and offset of an access to the frame; computes the base if the offset is too large.
    pub(super) fn stack_address(&mut self, opcode: Opcode, offset: i64) -> (Gpr, i64) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        if self.fits(opcode, offset) {
            return (sp, offset);
        }
        self.constant(ra, offset);
        self.op(Op::Add { dst: ra, a: ra, b: sp });
        (ra, 0)
    }

    fn spill_pred(&mut self, src: Pred, index: u32) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        let offset = self.frame.spill_offset(index);
        let far = !self.layout.fits(Opcode::St, offset);
        if far {
            self.move_stack_pointer(offset);
        }
        self.op(Op::Ldi { dst: ra, imm: 0 });
        self.guarded(src, Op::Ldi { dst: ra, imm: 1 });
        self.op(Op::St { value: ra, base: sp, offset: if far { 0 } else { offset } });
        if far {
            self.move_stack_pointer(-offset);
        }
    }

    fn reload_pred(&mut self, dst: Pred, index: u32) {
        let ra = self.roles.return_address();
        self.load_slot(ra, index);
        self.op(Op::Rtop { dst, src: ra });
    }
}
