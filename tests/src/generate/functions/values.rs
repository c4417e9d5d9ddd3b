//! Numbers.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use smallvec::SmallVec;

use super::super::flow::Numbers;
use super::Body;
use super::plan::TRUTH;
use super::rows::{Care, INTS, rows};

impl Numbers for Body<'_, '_> {
    fn value(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        if depth == 0 || self.budget == 0 || self.choices.below(4) == 0 {
            return self.leaf(b, ty);
        }
        self.budget -= 1;
        let value = match self.choices.below(9) {
            0 => self.load(b, ty),
            _ => self.operation(b, ty, depth),
        };
        self.pool.push((value, ty));
        value
    }

    fn leaf(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
        let here: Vec<Value> =
            self.pool.iter().filter(|(_, have)| *have == ty).map(|(value, _)| *value).collect();
        let variables: Vec<Variable> =
            self.variables.iter().filter(|(_, have)| *have == ty).map(|(v, _)| *v).collect();
        match self.choices.below(6) {
            0..=3 if !here.is_empty() => self.choices.one(&here),
            4 if !variables.is_empty() => {
                let variable = self.choices.one(&variables);
                b.use_var(variable)
            }
            _ => self.constant(b, ty),
        }
    }

    fn condition(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let ty = match self.choices.below(4) {
            3 => self.choices.one(&INTS),
            _ => TRUTH,
        };
        self.value(b, ty, 2)
    }
}

impl Body<'_, '_> {
    fn operation(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        let all = rows(ty);
        let row = &all[self.choices.below(all.len())];
        let emulated = ty.bits() > self.plan.word_int().bits();
        if row.arithmetic && emulated && !self.choices.once_in(6) {
            return self.leaf(b, ty);
        }
        let mut args: SmallVec<[Value; 3]> = SmallVec::new();
        for &operand in &row.operands {
            args.push(self.value(b, operand, depth - 1));
        }
        self.careful(b, row.care, &mut args);
        let results = (row.build)(b, &args);
        for &more in &results[1..] {
            let ty = b.func.dfg.value_type(more);
            self.pool.push((more, ty));
        }
        results[0]
    }

    /// Changes operands to such as the operation asks for.
    fn careful(&mut self, b: &mut FunctionBuilder<'_>, care: Care, args: &mut [Value]) {
        if care != Care::Bits && self.plan.may_trap && self.choices.once_in(3) {
            return;
        }
        match care {
            Care::None => {}
            Care::Divisor => {
                let ty = b.func.dfg.value_type(args[1]);
                let one = b.ins().iconst(ty, 1);
                args[1] = b.ins().bor(args[1], one);
            }
            Care::SignedDivisor => args[1] = self.signed_divisor(b, args[1]),
            Care::Sum => {
                for arg in args {
                    let ty = b.func.dfg.value_type(*arg);
                    let one = b.ins().iconst(ty, 1);
                    *arg = b.ins().ushr(*arg, one);
                }
            }
            Care::Fits { to, signed } => {
                let limit = f64::from(to.bits() - u32::from(signed)).exp2();
                let least = if signed { -limit } else { -1.0 };
                args[0] = between(b, args[0], least, limit);
            }
            Care::Bits => {
                for arg in args {
                    if b.func.dfg.value_type(*arg).is_float() {
                        *arg = number(b, *arg);
                    }
                }
            }
        }
    }

    /// A constant, or what is made of `y`, which is neither 0 nor -1.
    fn signed_divisor(&mut self, b: &mut FunctionBuilder<'_>, y: Value) -> Value {
        let ty = b.func.dfg.value_type(y);
        let mask = u64::MAX >> (64 - ty.bits());
        let most = mask >> 1;
        match self.choices.below(3) {
            0 => {
                let constants = [2, 3, 5, 7, 10, 100, mask - 1, mask - 2, mask - 6, most];
                let constant = self.choices.one(&constants);
                b.ins().iconst(ty, constant.cast_signed())
            }
            sign => {
                let (two, most) = (b.ins().iconst(ty, 2), b.ins().iconst(ty, most.cast_signed()));
                let large = b.ins().bor(y, two);
                let positive = b.ins().band(large, most);
                if sign == 1 { positive } else { b.ins().ineg(positive) }
            }
        }
    }

    pub(super) fn constant(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
        match ty {
            F32 => {
                let bits = self.choices.f32();
                b.ins().f32const(f32::from_bits(bits))
            }
            F64 => {
                let bits = self.choices.f64();
                b.ins().f64const(f64::from_bits(bits))
            }
            _ => {
                let bits = self.choices.int(ty.bits());
                b.ins().iconst(ty, bits.cast_signed())
            }
        }
    }
}

/// `x`, or 1 where it is not between `low` and `high`, neither included.
fn between(b: &mut FunctionBuilder<'_>, x: Value, low: f64, high: f64) -> Value {
    let [low, high, one] = [low, high, 1.0].map(|bound| match b.func.dfg.value_type(x) {
        F32 => b.ins().f32const(bound as f32),
        _ => b.ins().f64const(bound),
    });
    let above = b.ins().fcmp(FloatCC::GreaterThan, x, low);
    let below = b.ins().fcmp(FloatCC::LessThan, x, high);
    let fits = b.ins().band(above, below);
    b.ins().select(fits, x, one)
}

/// `x`, or some number where it is a NaN.
pub(super) fn number(b: &mut FunctionBuilder<'_>, x: Value) -> Value {
    let other = match b.func.dfg.value_type(x) {
        F32 => b.ins().f32const(-1.5),
        _ => b.ins().f64const(-1.5),
    };
    let ordered = b.ins().fcmp(FloatCC::Ordered, x, x);
    b.ins().select(ordered, x, other)
}
