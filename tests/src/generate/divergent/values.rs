//! Numbers and conditions.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I32};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use harp_isa::WordSize;

use super::super::flow::{Flow, Numbers};
use super::{Body, intrinsic};

impl Numbers for Body<'_, '_> {
    fn value(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        if depth == 0 || self.budget == 0 || self.choices.below(3) == 0 {
            return self.leaf(b, ty);
        }
        self.budget -= 1;
        let value = match self.choices.below(8) {
            0 => self.load(b, ty),
            1 => self.converted(b, ty, depth),
            2 => self.quotient(b, ty, depth),
            3 if ty == I8 => self.compare(b),
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
        match self.choices.below(8) {
            0..=3 if !here.is_empty() => self.choices.one(&here),
            4..=6 if !variables.is_empty() => {
                let variable = self.choices.one(&variables);
                b.use_var(variable)
            }
            7 => self.load(b, ty),
            _ => {
                let bits = self.choices.int(ty.bits());
                b.ins().iconst(ty, bits.cast_signed())
            }
        }
    }

    fn condition(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        match self.choices.below(11) {
            0..=2 => {
                // One bit of it.
                let word = self.plan.word();
                let value = self.varied(b);
                let shift = self.choices.below(5);
                let bit = b.ins().iconst(word, 1 << shift);
                b.ins().band(value, bit)
            }
            3 => {
                let (x, limit) = (self.varied(b), self.choices.below(16) as i64);
                let limit = b.ins().iconst(self.plan.word(), limit);
                let condition = self.choices.one(&[IntCC::Equal, IntCC::UnsignedLessThan]);
                b.ins().icmp(condition, x, limit)
            }
            4 => {
                let (x, y) = (self.uniform(b), self.uniform(b));
                let condition = self.int_condition();
                b.ins().icmp(condition, x, y)
            }
            5 => self.leaf(b, I8),
            6 => {
                let (x, y) = (self.compare(b), self.leaf(b, I8));
                match self.choices.below(3) {
                    0 => b.ins().band(x, y),
                    1 => b.ins().bor(x, y),
                    _ => b.ins().bxor(x, y),
                }
            }
            7 => self.compare_floats(b),
            8 => {
                // As long as they go round together lanes agree on it, afterwards not.
                let fuel = b.use_var(self.fuel);
                let one = b.ins().iconst(I32, 1);
                b.ins().band(fuel, one)
            }
            _ => self.compare(b),
        }
    }
}

impl Body<'_, '_> {
    fn operation(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        match self.choices.below(12) {
            0 | 1 => b.ins().iadd(x, y),
            2 => b.ins().isub(x, y),
            3 => b.ins().imul(x, y),
            4 => b.ins().band(x, y),
            5 => b.ins().bor(x, y),
            6 => b.ins().bxor(x, y),
            7 => b.ins().ishl(x, y),
            8 => b.ins().ushr(x, y),
            9 => b.ins().sshr(x, y),
            10 => b.ins().smax(x, y),
            _ => {
                let condition = self.condition(b);
                b.ins().select(condition, x, y)
            }
        }
    }

    /// A number from one of another type.
    fn converted(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        let from = self.choices.one(&self.plan.types());
        let value = self.value(b, from, depth - 1);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less if self.choices.below(2) == 0 => b.ins().sextend(ty, value),
            std::cmp::Ordering::Less => b.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => b.ins().ireduce(ty, value),
        }
    }

    /// A division, of which no lane may have any notice whose divisor is 0 unless it executes it.
    fn quotient(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.leaf(b, ty));
        let divisor = if self.plan.may_trap && self.choices.once_in(3) {
            self.mark(b, "division");
            y
        } else {
            let one = b.ins().iconst(ty, 1);
            b.ins().bor(y, one)
        };
        match self.choices.below(2) {
            0 => b.ins().udiv(x, divisor),
            _ => b.ins().urem(x, divisor),
        }
    }

    /// A word that is equal in all lanes that execute this, unless it comes from a divergent place.
    pub(super) fn uniform(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let word = self.plan.word();
        match self.choices.below(5) {
            0..=1 if !self.uniforms.is_empty() => self.choices.one(&self.uniforms),
            2 => self.load_shared(b, None),
            3 if !self.uniforms.is_empty() => {
                let value = self.choices.one(&self.uniforms);
                intrinsic(b, "harp_assume_uniform", &[value], word)
            }
            _ => {
                let number = self.choices.below(4) as i64;
                b.ins().iconst(word, number)
            }
        }
    }

    /// A word in which lanes are likely to differ.
    pub(super) fn varied(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let word = self.plan.word();
        match self.choices.below(3) {
            0 => self.load(b, word),
            1 => self.leaf(b, word),
            _ => {
                // Among the kernel's first values are ids, and the work-item's number or lane.
                match self.pool.get(self.uniforms.len() + 3) {
                    Some(&(value, _)) if self.index == 0 => value,
                    _ => self.load(b, word),
                }
            }
        }
    }

    /// A comparison.
    pub(super) fn compare(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let ty = self.choices.one(&self.plan.types());
        let (x, y) = (self.leaf(b, ty), self.leaf(b, ty));
        let condition = self.int_condition();
        b.ins().icmp(condition, x, y)
    }

    fn compare_floats(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let ty = if self.plan.family.word == WordSize::Four { F32 } else { F64 };
        let (x, y) = (self.varied(b), self.leaf(b, self.plan.word()));
        let (x, y) = (b.ins().fcvt_from_sint(ty, x), b.ins().fcvt_from_sint(ty, y));
        let sum = b.ins().fadd(x, y);
        let condition = self.choices.one(&[FloatCC::LessThan, FloatCC::GreaterThanOrEqual]);
        b.ins().fcmp(condition, sum, x)
    }

    fn int_condition(&mut self) -> IntCC {
        self.choices.one(&[
            IntCC::SignedLessThan,
            IntCC::Equal,
            IntCC::NotEqual,
            IntCC::UnsignedGreaterThan,
            IntCC::SignedGreaterThanOrEqual,
            IntCC::UnsignedLessThanOrEqual,
        ])
    }
}
