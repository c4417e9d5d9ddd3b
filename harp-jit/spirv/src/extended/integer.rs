//! Functions of integers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};

use crate::function::Translator;

impl Translator<'_, '_, '_> {
    /// A sum that does not leave the type's range.
    pub(crate) fn saturated_sum(&mut self, x: ir::Value, y: ir::Value, signed: bool) -> ir::Value {
        let sum = self.b.ins().iadd(x, y);
        if !signed {
            let all = self.b.func.dfg.value_type(x);
            let all = self.b.ins().iconst(all, -1);
            let overflow = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x);
            return self.b.ins().select(overflow, all, sum);
        }
        // The result has another sign than both operands.
        let differ = [x, y].map(|operand| self.b.ins().bxor(operand, sum));
        let both = self.b.ins().band(differ[0], differ[1]);
        self.saturated(x, sum, both)
    }

    /// A difference that does not leave the type's range.
    pub(super) fn saturated_difference(
        &mut self,
        x: ir::Value,
        y: ir::Value,
        signed: bool,
    ) -> ir::Value {
        let difference = self.b.ins().isub(x, y);
        if !signed {
            let zero = self.b.func.dfg.value_type(x);
            let zero = self.b.ins().iconst(zero, 0);
            let overflow = self.b.ins().icmp(IntCC::UnsignedLessThan, x, y);
            return self.b.ins().select(overflow, zero, difference);
        }
        // The operands have different signs, and the result not that of the first.
        let signs = self.b.ins().bxor(x, y);
        let changed = self.b.ins().bxor(x, difference);
        let both = self.b.ins().band(signs, changed);
        self.saturated(x, difference, both)
    }

    /// `result`, or, where `overflow` is negative, the end of the range on the side of `x`.
    fn saturated(&mut self, x: ir::Value, result: ir::Value, overflow: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let sign = self.b.ins().sshr_imm_u(x, i64::from(ty.bits() - 1));
        let most = self.b.ins().iconst(ty, (u64::MAX >> (65 - ty.bits())).cast_signed());
        let end = self.b.ins().bxor(sign, most);
        let overflow = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, overflow, 0);
        self.b.ins().select(overflow, end, result)
    }

    /// A product plus an integer, without leaving the type's range.
    pub(super) fn saturated_mad(
        &mut self,
        x: ir::Value,
        y: ir::Value,
        z: ir::Value,
        signed: bool,
    ) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        if ty.bits() < 64 {
            let [x, y, z] = [x, y, z].map(|value| self.resized(value, types::I64, signed));
            let product = self.b.ins().imul(x, y);
            let sum = self.b.ins().iadd(product, z);
            let clamped = self.clamped(sum, signed, ty, signed);
            return self.b.ins().ireduce(ty, clamped);
        }
        let low = self.b.ins().imul(x, y);
        let high = self.high_product(x, y, signed);
        let sum = self.b.ins().iadd(low, z);
        let carry = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, z);
        let carry = self.b.ins().uextend(ty, carry);
        let mut high = self.b.ins().iadd(high, carry);
        if !signed {
            let all = self.b.ins().iconst(ty, -1);
            let overflow = self.b.ins().icmp_imm_u(IntCC::NotEqual, high, 0);
            return self.b.ins().select(overflow, all, sum);
        }
        let extension = self.b.ins().sshr_imm_u(z, 63);
        high = self.b.ins().iadd(high, extension);
        let fits = self.b.ins().sshr_imm_u(sum, 63);
        let overflow = self.b.ins().icmp(IntCC::NotEqual, high, fits);
        let sign = self.b.ins().sshr_imm_u(high, 63);
        let end = self.b.ins().bxor_imm_s(sign, i64::MAX);
        self.b.ins().select(overflow, end, sum)
    }

    /// The mean, rounded down, or up if `up` says so.
    pub(super) fn mean(&mut self, x: ir::Value, y: ir::Value, signed: bool, up: bool) -> ir::Value {
        let halves = [x, y].map(|value| match signed {
            true => self.b.ins().sshr_imm_u(value, 1),
            false => self.b.ins().ushr_imm_u(value, 1),
        });
        let sum = self.b.ins().iadd(halves[0], halves[1]);
        let odd = if up { self.b.ins().bor(x, y) } else { self.b.ins().band(x, y) };
        let odd = self.b.ins().band_imm_u(odd, 1);
        self.b.ins().iadd(sum, odd)
    }

    /// The distance of two integers.
    pub(super) fn distance(&mut self, x: ir::Value, y: ir::Value, signed: bool) -> ir::Value {
        let condition = if signed { IntCC::SignedLessThan } else { IntCC::UnsignedLessThan };
        let less = self.b.ins().icmp(condition, x, y);
        let (up, down) = (self.b.ins().isub(y, x), self.b.ins().isub(x, y));
        self.b.ins().select(less, up, down)
    }

    /// The integer between two limits that is nearest.
    pub(super) fn integer_clamp(&mut self, x: &[ir::Value], signed: bool) -> ir::Value {
        match signed {
            true => {
                let raised = self.b.ins().smax(x[0], x[1]);
                self.b.ins().smin(raised, x[2])
            }
            false => {
                let raised = self.b.ins().umax(x[0], x[1]);
                self.b.ins().umin(raised, x[2])
            }
        }
    }
}
