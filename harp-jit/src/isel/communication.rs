//! Communication between the lanes of a warp and between the warps of a work-group.

use cranelift_codegen::ir::Value;
use harp_isa::{Opcode, RegClass};

use super::{Lower, rules};
use crate::vcode::{MInst, MOperand, Reg};

/// Machines with fewer registers look a barrier up where it is: kept from the function's entry on, what it needs would
/// be spilled, or other values in its place.
const REGISTERS_FOR_BARRIERS: u8 = 16;

impl Lower<'_> {
    pub(super) fn barrier(&mut self) {
        let vcode = &mut self.vcode;
        let mut words = || [(); 2].map(|()| vcode.new_reg(RegClass::Gpr));
        let [id, warps] = if self.arch.gprs() < REGISTERS_FOR_BARRIERS {
            let [id, warps] = words();
            self.inst_code.push(MInst::BarrierWords { id, warps });
            [id, warps]
        } else {
            *self.barrier_words.get_or_insert_with(words)
        };
        self.inst_code.push(MInst::Barrier { id, warps });
    }

    /// Whether the truth value holds in any executing lane.
    pub(super) fn any(&mut self, src: Reg) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Pred);
        if self.arch.has_extension() {
            let operands = [MOperand::Def(dst), MOperand::Use(src)];
            self.emit_op(Opcode::Anyp, operands);
        } else {
            let address = self.scratch_address();
            let temp = self.vcode.new_reg(RegClass::Gpr);
            self.inst_code.push(MInst::Any { dst, src, address, temp });
        }
        dst
    }

    /// The address of the warp's scratch word, which is computed once, at the function's entry.
    pub(super) fn scratch_address(&mut self) -> Reg {
        let vcode = &mut self.vcode;
        *self.scratch_address.get_or_insert_with(|| vcode.new_reg(RegClass::Gpr))
    }

    /// Whether the truth value holds in all executing lanes. Without an instruction for that: whether it is
    /// false in none.
    pub(super) fn all(&mut self, src: Reg) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Pred);
        if self.arch.has_extension() {
            self.emit_op(Opcode::Allp, [MOperand::Def(dst), MOperand::Use(src)]);
            return dst;
        }
        let against = self.vcode.new_reg(RegClass::Pred);
        self.emit_op(Opcode::Notp, [MOperand::Def(against), MOperand::Use(src)]);
        let any = self.any(against);
        self.emit_op(Opcode::Notp, [MOperand::Def(dst), MOperand::Use(any)]);
        dst
    }

    /// The value of one executing lane.
    pub(super) fn of_some_lane(&mut self, src: Reg) -> Reg {
        let address = self.scratch_address();
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::OfSomeLane { dst, src, address });
        dst
    }

    /// A word of the executing lanes in which the truth value holds. Legalization has left ballots only where
    /// there is an instruction for them.
    pub(super) fn ballot(&mut self, src: Reg, part: i64) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let operands = [MOperand::Def(dst), MOperand::Use(src), MOperand::Imm(part)];
        self.emit_op(Opcode::Ballot, operands);
        dst
    }

    pub(super) fn shuffle(&mut self, value: Value, lane: Value) -> Reg {
        let lane = rules::constructor_zext(self, lane);
        let value = self.value_gpr(value);
        let dst = self.vcode.new_reg(RegClass::Gpr);
        if self.arch.has_extension() {
            let operands = [MOperand::Def(dst), MOperand::Use(value), MOperand::Use(lane)];
            self.emit_op(Opcode::Shfl, operands);
        } else {
            let temps = [(); 2].map(|()| self.vcode.new_reg(RegClass::Gpr));
            let preds = [(); 2].map(|()| self.vcode.new_reg(RegClass::Pred));
            self.inst_code.push(MInst::Shuffle { dst, value, lane, temps, preds });
        }
        dst
    }
}
