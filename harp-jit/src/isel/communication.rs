//! What lanes of a warp and warps of a work-group do together, and where they find each other.

use cranelift_codegen::ir::{Block, Inst};
use harp_isa::abi::{GroupField, LaneField};
use harp_isa::{Opcode, RegClass};

use super::{Lower, rules};
use crate::error::Unsupported;
use crate::intrinsic::{Dimension, Intrinsic};
use crate::vcode::{MInst, MOperand, Reg};

impl Lower<'_> {
    /// Lowers the calls that [`Lower::intrinsic`] leaves.
    pub(super) fn communication(
        &mut self,
        intrinsic: Intrinsic,
        inst: Inst,
        block: Block,
    ) -> Result<(), Unsupported> {
        let reg = match intrinsic {
            Intrinsic::Barrier => {
                let temps = [(); 2].map(|()| self.vcode.new_reg(RegClass::Gpr));
                self.inst_code.push(MInst::Barrier { temps });
                return Ok(());
            }
            Intrinsic::All => {
                let all = self.all(inst);
                self.define_pred(self.func.dfg.first_result(inst), all);
                return Ok(());
            }
            Intrinsic::LaneCount => self.lane_word(LaneField::Lanes),
            Intrinsic::LocalIndex => self.lane_word(LaneField::LocalIndex),
            Intrinsic::LocalId(Dimension::X) => self.lane_word(LaneField::LocalIdX),
            Intrinsic::LocalId(Dimension::Y) => self.lane_word(LaneField::LocalIdY),
            Intrinsic::LocalId(Dimension::Z) => self.lane_word(LaneField::LocalIdZ),
            Intrinsic::LocalSize(Dimension::X) => self.group_word(GroupField::SizeX),
            Intrinsic::LocalSize(Dimension::Y) => self.group_word(GroupField::SizeY),
            Intrinsic::LocalSize(Dimension::Z) => self.group_word(GroupField::SizeZ),
            Intrinsic::GroupId(Dimension::X) => self.group_word(GroupField::IdX),
            Intrinsic::GroupId(Dimension::Y) => self.group_word(GroupField::IdY),
            Intrinsic::GroupId(Dimension::Z) => self.group_word(GroupField::IdZ),
            Intrinsic::GroupMemory => self.group_word(GroupField::Memory),
            Intrinsic::Ballot => self.ballot(inst, block, 0)?,
            Intrinsic::BallotHigh => self.ballot(inst, block, 1)?,
            Intrinsic::Shuffle => self.shuffle(inst),
            other => {
                let what = format!("the intrinsic `{other}` here");
                return Err(Unsupported { inst, block, what });
            }
        };
        self.define_gpr(self.func.dfg.first_result(inst), reg);
        Ok(())
    }

    fn group_word(&mut self, field: GroupField) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::GroupWord { dst, field });
        dst
    }

    /// Whether the operand holds in all executing lanes; without the instruction, whether there is none
    /// where it does not.
    fn all(&mut self, inst: Inst) -> Reg {
        let src = self.value_pred(self.func.dfg.inst_args(inst)[0]);
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

    fn ballot(&mut self, inst: Inst, block: Block, part: i64) -> Result<Reg, Unsupported> {
        if !self.arch.has_extension() {
            let what = "a ballot without extension X".to_owned();
            return Err(Unsupported { inst, block, what });
        }
        let src = self.value_pred(self.func.dfg.inst_args(inst)[0]);
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let operands = [MOperand::Def(dst), MOperand::Use(src), MOperand::Imm(part)];
        self.emit_op(Opcode::Ballot, operands);
        Ok(dst)
    }

    fn shuffle(&mut self, inst: Inst) -> Reg {
        let &[value, lane] = self.func.dfg.inst_args(inst) else {
            unreachable!("a shuffle has two operands by its signature")
        };
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
