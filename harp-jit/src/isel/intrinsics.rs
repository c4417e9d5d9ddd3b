//! Calls of intrinsics.

use cranelift_codegen::ir::{Block, Inst};
use harp_isa::RegClass;
use harp_isa::abi::{GroupField, LaneField};

use super::Lower;
use crate::abi::EntryKind;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;
use crate::options::Execution;
use crate::vcode::{FrameValue, MInst, MOperand, Reg};

impl Lower<'_> {
    pub(super) fn intrinsic(
        &mut self,
        intrinsic: Intrinsic,
        inst: Inst,
        block: Block,
    ) -> Result<(), Unsupported> {
        let args = self.func.dfg.inst_args(inst);
        let reg = match intrinsic {
            Intrinsic::LaneWord(field) => self.lane_word(field),
            Intrinsic::GroupWord(field) => self.group_word(field),
            Intrinsic::GlobalIdX if self.entry == EntryKind::Function => {
                let what = "the position in the first dimension outside of kernels, where it is \
                            to be an argument";
                return Err(Unsupported { inst, block, what: what.to_owned() });
            }
            Intrinsic::GlobalIdX => {
                let vcode = &mut self.vcode;
                *self.global_id_x.get_or_insert_with(|| vcode.new_reg(RegClass::Gpr))
            }
            Intrinsic::Undef => self.undef(RegClass::Gpr),
            Intrinsic::Never => self.emit_const(0),
            Intrinsic::FrameEnd => self.frame_value(FrameValue::End),
            Intrinsic::ReturnAddress => self.frame_value(FrameValue::ReturnAddress),
            Intrinsic::AssumeUniform => {
                let given = self.value_gpr(args[0]);
                self.promised_uniform(given)
            }
            Intrinsic::Any => {
                let operand = self.value_pred(args[0]);
                self.any(operand)
            }
            Intrinsic::All => {
                let operand = self.value_pred(args[0]);
                self.all(operand)
            }
            Intrinsic::Ballot | Intrinsic::BallotHigh => {
                let operand = self.value_pred(args[0]);
                self.ballot(operand, i64::from(intrinsic == Intrinsic::BallotHigh))
            }
            Intrinsic::Shuffle => self.shuffle(args[0], args[1]),
            Intrinsic::OfSomeLane => {
                let src = self.value_gpr(args[0]);
                self.of_some_lane(src)
            }
            Intrinsic::Reduce(_) => unreachable!("legalization makes votes and shuffles of it"),
            Intrinsic::Barrier(_) => {
                self.barrier();
                return Ok(());
            }
        };
        let value = self.func.dfg.first_result(inst);
        match reg.class() {
            RegClass::Gpr => self.define_gpr(value, reg),
            RegClass::Pred => self.define_pred(value, reg),
        }
        Ok(())
    }

    /// A copy that is uniform if the promise holds. Without a copy the promise would apply to the original
    /// everywhere.
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

    fn lane_word(&mut self, field: LaneField) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::LaneWord { dst, field });
        dst
    }

    fn group_word(&mut self, field: GroupField) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let block = self.group_block();
        self.inst_code.push(MInst::GroupWord { dst, block, field });
        dst
    }
}
