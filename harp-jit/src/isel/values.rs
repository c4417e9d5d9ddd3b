//! Registers of values: requested at uses, before the code of the definition is made.

use cranelift_codegen::ir::{Inst, InstructionData, Value, ValueDef};
use harp_isa::RegClass;

use super::{Lower, rules};
use crate::constant;
use crate::intrinsic::Intrinsic;
use crate::vcode::{MInst, MOperand, Reg};

/// A value without a register of its own: each use makes it anew.
enum Remade {
    Constant(i64),
    Undef,
}

impl Lower<'_> {
    /// The register that holds a value here.
    pub(super) fn value_gpr(&mut self, value: Value) -> Reg {
        let value = self.func.dfg.resolve_aliases(value);
        if let Some(reg) = self.gprs[value] {
            return reg;
        }
        match self.remade(value) {
            Some(Remade::Constant(bits)) => return self.emit_const(bits),
            Some(Remade::Undef) => return self.undef(RegClass::Gpr),
            None => {}
        }
        let reg = self.vcode.new_reg(RegClass::Gpr);
        self.gprs[value] = Some(reg);
        reg
    }

    /// The predicate that says whether a value is not zero.
    pub(super) fn value_pred(&mut self, value: Value) -> Reg {
        let value = self.func.dfg.resolve_aliases(value);
        if let Some(reg) = self.preds[value] {
            return reg;
        }
        match self.remade(value) {
            Some(Remade::Constant(bits)) => {
                let gpr = self.emit_const(bits);
                return self.test_nonzero(gpr);
            }
            Some(Remade::Undef) => return self.undef(RegClass::Pred),
            None => {}
        }
        let reg = self.vcode.new_reg(RegClass::Pred);
        self.preds[value] = Some(reg);
        reg
    }

    /// How each use makes a value, which is no alias. None if it has a register.
    fn remade(&self, value: Value) -> Option<Remade> {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else { return None };
        if Intrinsic::of_call(self.func, inst) == Some(Intrinsic::Undef) {
            return Some(Remade::Undef);
        }
        self.constant_of(inst, value).map(Remade::Constant)
    }

    /// Makes a register for each use, so that no register is occupied between uses.
    pub(super) fn undef(&mut self, class: RegClass) -> Reg {
        let dst = self.vcode.new_reg(class);
        self.inst_code.push(MInst::Undef { dst });
        dst
    }

    /// Records that `value` was computed into `reg`; computes the predicate, too, if a use needs it.
    pub(super) fn define_gpr(&mut self, value: Value, reg: Reg) {
        if let Some(wanted) = self.preds[value] {
            let zext = rules::constructor_zext_reg(self, self.func.dfg.value_type(value), reg);
            let pred = self.test_nonzero(zext);
            self.alias(wanted, pred);
        }
        if let Some(wanted) = self.gprs[value] {
            self.alias(wanted, reg);
        }
    }

    /// Records that the truth value was computed into `pred`; computes the number, too, if a use needs it.
    pub(super) fn define_pred(&mut self, value: Value, pred: Reg) {
        match self.preds[value] {
            Some(wanted) => self.alias(wanted, pred),
            None => self.preds[value] = Some(pred),
        }
        if let Some(wanted) = self.gprs[value] {
            let reg = rules::Context::bool_reg(self, pred);
            self.alias(wanted, reg);
        }
    }

    pub(super) fn test_nonzero(&mut self, gpr: Reg) -> Reg {
        let pred = self.vcode.new_reg(RegClass::Pred);
        self.emit_op(harp_isa::Opcode::Rtop, [MOperand::Def(pred), MOperand::Use(gpr)]);
        pred
    }

    pub(super) fn zero_extended(&mut self, value: Value) -> Reg {
        rules::constructor_zext(self, value)
    }

    pub(super) fn emit_const(&mut self, value: i64) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let value = self.arch.word().sign_extend(value.cast_unsigned());
        self.inst_code.push(MInst::Const { dst, value });
        dst
    }

    /// The value of a constant, sign-extended from its type.
    pub(super) fn constant(&self, value: Value) -> Option<i64> {
        let value = self.func.dfg.resolve_aliases(value);
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else { return None };
        self.constant_of(inst, value)
    }

    /// The constant that `inst` defines as `value`.
    fn constant_of(&self, inst: Inst, value: Value) -> Option<i64> {
        match self.func.dfg.insts[inst] {
            InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().cast_signed().into()),
            InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits().cast_signed()),
            _ => constant::signed(&self.func.dfg, value),
        }
    }
}
