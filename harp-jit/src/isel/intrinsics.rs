//! Calls of intrinsics: ids, promises, votes.

use cranelift_codegen::ir::{Block, Inst};
use harp_isa::RegClass;
use harp_isa::abi::LaneField;

use super::Lower;
use crate::abi::EntryKind;
use crate::error::Unsupported;
use crate::intrinsic::{Dimension, Intrinsic};
use crate::options::Execution;
use crate::vcode::{FrameValue, MInst, MOperand, Reg};

impl Lower<'_> {
    pub(super) fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        inst: Inst,
        block: Block,
    ) -> Result<(), Unsupported> {
        let result = self.func.dfg.inst_results(inst).first().copied();
        let Some(value) = result else { return self.communication(intrinsic, inst, block) };
        let reg = match intrinsic {
            Intrinsic::LaneId => self.lane_word(LaneField::Lane),
            Intrinsic::WarpId => self.lane_word(LaneField::Warp),
            Intrinsic::CoreId => self.lane_word(LaneField::Core),
            Intrinsic::GlobalId(Dimension::X) if self.entry == EntryKind::Function => {
                let what = "the position in the first dimension outside of kernels, where it is \
                            to be an argument";
                return Err(Unsupported { inst, block, what: what.to_owned() });
            }
            Intrinsic::GlobalId(Dimension::X) => {
                let vcode = &mut self.vcode;
                *self.global_id_x.get_or_insert_with(|| vcode.new_reg(RegClass::Gpr))
            }
            Intrinsic::GlobalId(Dimension::Y) => self.lane_word(LaneField::GlobalIdY),
            Intrinsic::GlobalId(Dimension::Z) => self.lane_word(LaneField::GlobalIdZ),
            Intrinsic::Undef => self.undef(RegClass::Gpr),
            Intrinsic::FrameEnd => self.frame_value(FrameValue::End),
            Intrinsic::ReturnAddress => self.frame_value(FrameValue::ReturnAddress),
            Intrinsic::AssumeUniform => {
                let given = self.value_gpr(self.func.dfg.inst_args(inst)[0]);
                self.promised_uniform(given)
            }
            Intrinsic::Any => {
                let operand = self.value_pred(self.func.dfg.inst_args(inst)[0]);
                let any = self.any(operand);
                self.define_pred(value, any);
                return Ok(());
            }
            Intrinsic::OfSomeLane => {
                let src = self.value_gpr(self.func.dfg.inst_args(inst)[0]);
                let address = self.scratch_address();
                let dst = self.vcode.new_reg(RegClass::Gpr);
                self.inst_code.push(MInst::OfSomeLane { dst, src, address });
                dst
            }
            other => return self.communication(other, inst, block),
        };
        self.define_gpr(value, reg);
        Ok(())
    }

    /// A copy that is uniform, if the promise holds. Without a copy the promise would be one about the
    /// original everywhere.
    fn promised_uniform(&mut self, given: Reg) -> Reg {
        if self.execution == Execution::SingleLane {
            return given;
        }
        let copy = self.vcode.new_reg(RegClass::Gpr);
        let operands = [MOperand::Def(copy), MOperand::Use(given), MOperand::Imm(0)];
        self.emit_op(harp_isa::Opcode::Ori, operands);
        self.vcode.promises.uniform.insert(copy);
        copy
    }

    /// Whether the truth value holds in any executing lane.
    pub(super) fn any(&mut self, src: Reg) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Pred);
        if self.arch.has_extension() {
            let operands = [MOperand::Def(dst), MOperand::Use(src)];
            self.emit_op(harp_isa::Opcode::Anyp, operands);
        } else {
            let address = self.scratch_address();
            let temp = self.vcode.new_reg(RegClass::Gpr);
            self.inst_code.push(MInst::Any { dst, src, address, temp });
        }
        dst
    }

    /// The address of the warp's scratch word, which is found out once, at the function's entry.
    pub(super) fn scratch_address(&mut self) -> Reg {
        let vcode = &mut self.vcode;
        *self.scratch_address.get_or_insert_with(|| vcode.new_reg(RegClass::Gpr))
    }

    pub(super) fn lane_word(&mut self, field: LaneField) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::LaneWord { dst, field });
        dst
    }
}
