//! Numbers and conditions.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8};
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value};
use cranelift_frontend::FunctionBuilder as Builder;

use super::super::clif::{self, intrinsic};
use super::Body;
use super::rows::{Care, INTS, rows};

/// Where there are few operations, these and selections.
const OPERATIONS: [Opcode; 11] = {
    use Opcode::*;
    [Iadd, Iadd, Isub, Imul, Band, Bor, Bxor, Ishl, Ushr, Sshr, Smax]
};

impl Body<'_, '_> {
    /// A value of type `ty`, made by as many as `depth` operations in a row.
    pub(super) fn value(&mut self, b: &mut Builder<'_>, ty: Type, depth: usize) -> Value {
        let rich = self.plan.config.rich;
        if depth == 0 || self.budget == 0 || self.choices.below(if rich { 4 } else { 3 }) == 0 {
            return self.leaf(b, ty);
        }
        self.budget -= 1;
        let value = match self.choices.below(8) {
            0 => self.load(b, ty),
            _ if rich => self.row(b, ty, depth),
            1 => self.converted(b, ty, depth),
            2 => self.quotient(b, ty, depth),
            3 if ty == I8 => self.compare(b),
            _ => self.operation(b, ty, depth),
        };
        self.pool.push((value, ty));
        value
    }

    /// A value that is there already, or a constant.
    pub(super) fn leaf(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let here = typed(&self.pool, ty);
        let variables = typed(&self.variables, ty);
        let rich = self.plan.config.rich;
        match self.choices.below(8) {
            0..=3 if !here.is_empty() => self.choices.one(&here),
            kind @ 4..=6 if !variables.is_empty() && (kind < 6 || !rich) => {
                b.use_var(self.choices.one(&variables))
            }
            7 if !rich => self.load(b, ty),
            _ => self.constant(b, ty),
        }
    }

    fn constant(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let bits = match ty {
            F32 => self.choices.f32().into(),
            F64 => self.choices.f64(),
            _ => self.choices.int(ty.bits()),
        };
        clif::constant(b, ty, bits)
    }

    /// Something to branch on: 0 or not 0.
    pub(super) fn condition(&mut self, b: &mut Builder<'_>) -> Value {
        let config = self.plan.config;
        if config.rich && (!config.lanes || self.choices.below(2) == 0) {
            let ty = if self.choices.below(4) == 3 { self.choices.one(&INTS) } else { I8 };
            return self.value(b, ty, 2);
        }
        match self.choices.below(11) {
            0..=2 => {
                // One bit of it.
                let value = self.varied(b);
                b.ins().band_imm_s(value, 1 << self.choices.below(5))
            }
            3 => {
                let (x, limit) = (self.varied(b), self.choices.below(16) as i64);
                let condition = self.choices.one(&[IntCC::Equal, IntCC::UnsignedLessThan]);
                b.ins().icmp_imm_s(condition, x, limit)
            }
            4 => {
                let (x, y) = (self.uniform(b), self.uniform(b));
                let condition = self.int_condition();
                b.ins().icmp(condition, x, y)
            }
            5 => self.leaf(b, I8),
            6 => {
                let (x, y) = (self.compare(b), self.leaf(b, I8));
                let opcode = self.choices.one(&[Opcode::Band, Opcode::Bor, Opcode::Bxor]);
                clif::binary(b, opcode, x, y)
            }
            7 => self.compare_floats(b),
            8 => {
                // As long as they go round together lanes agree on it, afterwards not.
                let fuel = b.use_var(self.fuel);
                b.ins().band_imm_s(fuel, 1)
            }
            _ => self.compare(b),
        }
    }

    fn operation(&mut self, b: &mut Builder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        match OPERATIONS.get(self.choices.below(12)) {
            Some(&opcode) => clif::binary(b, opcode, x, y),
            None => {
                let condition = self.condition(b);
                b.ins().select(condition, x, y)
            }
        }
    }

    /// A number from one of another type.
    fn converted(&mut self, b: &mut Builder<'_>, ty: Type, depth: usize) -> Value {
        let from = self.any_type();
        let value = self.value(b, from, depth - 1);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less if self.choices.below(2) == 0 => b.ins().sextend(ty, value),
            std::cmp::Ordering::Less => b.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => b.ins().ireduce(ty, value),
        }
    }

    /// A division, which must not trap for a lane that does not execute it, even if its divisor is 0.
    fn quotient(&mut self, b: &mut Builder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.leaf(b, ty));
        let divisor = if self.plan.may_trap && self.choices.once_in(3) {
            self.mark(b, "division");
            y
        } else {
            b.ins().bor_imm_s(y, 1)
        };
        clif::binary(b, self.choices.one(&[Opcode::Udiv, Opcode::Urem]), x, divisor)
    }

    /// A word that is equal in all lanes that execute this, unless it comes from a divergent place.
    pub(super) fn uniform(&mut self, b: &mut Builder<'_>) -> Value {
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
    pub(super) fn varied(&mut self, b: &mut Builder<'_>) -> Value {
        let word = self.plan.word();
        // Among the kernel's first values are ids, and the work-item's number or lane.
        let id = self.pool.get(self.uniforms.len() + 3).copied();
        match (self.choices.below(3), id) {
            (1, _) => self.leaf(b, word),
            (2, Some((value, _))) if self.index == 0 && self.plan.config.lanes => value,
            _ => self.load(b, word),
        }
    }

    /// A comparison.
    pub(super) fn compare(&mut self, b: &mut Builder<'_>) -> Value {
        let ty = if self.plan.config.rich { self.choices.one(&INTS) } else { self.any_type() };
        let (x, y) = (self.leaf(b, ty), self.leaf(b, ty));
        let condition = self.int_condition();
        b.ins().icmp(condition, x, y)
    }

    fn compare_floats(&mut self, b: &mut Builder<'_>) -> Value {
        let ty = self.plan.family.floats()[0];
        let (x, y) = (self.varied(b), self.leaf(b, self.plan.word()));
        let (x, y) = (b.ins().fcvt_from_sint(ty, x), b.ins().fcvt_from_sint(ty, y));
        let sum = b.ins().fadd(x, y);
        let condition = self.choices.one(&[FloatCC::LessThan, FloatCC::GreaterThanOrEqual]);
        b.ins().fcmp(condition, sum, x)
    }

    fn int_condition(&mut self) -> IntCC {
        self.choices.condition(&["slt", "eq", "ne", "ugt", "sge", "ule"])
    }

    /// One of all operations.
    fn row(&mut self, b: &mut Builder<'_>, ty: Type, depth: usize) -> Value {
        let all = rows(ty);
        let row = &all[self.choices.below(all.len())];
        let emulated = ty.bits() > self.plan.word().bits();
        if row.arithmetic && emulated && !self.choices.once_in(6) {
            return self.leaf(b, ty);
        }
        let operands = row.operands.iter();
        let mut args: Vec<Value> = operands.map(|&ty| self.value(b, ty, depth - 1)).collect();
        self.careful(b, row.care, &mut args);
        let results = row.apply(b, &args);
        for &more in &results[1..] {
            let ty = b.func.dfg.value_type(more);
            self.pool.push((more, ty));
        }
        results[0]
    }

    /// Changes operands so that the operation is defined on them.
    fn careful(&mut self, b: &mut Builder<'_>, care: Care, args: &mut [Value]) {
        if care != Care::Bits && self.plan.may_trap && self.choices.once_in(3) {
            return;
        }
        match care {
            Care::None => {}
            Care::Divisor => args[1] = b.ins().bor_imm_s(args[1], 1),
            Care::SignedDivisor => args[1] = self.signed_divisor(b, args[1]),
            Care::Sum => args.iter_mut().for_each(|arg| *arg = b.ins().ushr_imm_s(*arg, 1)),
            Care::Fits { to, signed } => args[0] = between(b, args[0], to, signed),
            Care::Bits => {
                for arg in args {
                    if b.func.dfg.value_type(*arg).is_float() {
                        *arg = number(b, *arg);
                    }
                }
            }
        }
    }

    /// A constant, or a value made of `y`; neither 0 nor -1.
    fn signed_divisor(&mut self, b: &mut Builder<'_>, y: Value) -> Value {
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
}

/// Those of this type.
pub(in super::super) fn typed<T: Copy>(all: &[(T, Type)], ty: Type) -> Vec<T> {
    all.iter().filter(|(_, have)| *have == ty).map(|(one, _)| *one).collect()
}

/// `x`, or 1 where it is none of the numbers that fit an integer type, which may be signed.
pub(in super::super) fn between(b: &mut Builder<'_>, x: Value, to: Type, signed: bool) -> Value {
    let limit = f64::from(to.bits() - u32::from(signed)).exp2();
    let least = if signed { -limit } else { -1.0 };
    let ty = b.func.dfg.value_type(x);
    let [low, high, one] = [least, limit, 1.0].map(|bound| clif::float(b, ty, bound));
    let above = b.ins().fcmp(FloatCC::GreaterThan, x, low);
    let below = b.ins().fcmp(FloatCC::LessThan, x, high);
    let fits = b.ins().band(above, below);
    b.ins().select(fits, x, one)
}

/// `x`, or some number where it is a NaN.
pub(super) fn number(b: &mut Builder<'_>, x: Value) -> Value {
    let other = clif::float(b, b.func.dfg.value_type(x), -1.5);
    let ordered = b.ins().fcmp(FloatCC::Ordered, x, x);
    b.ins().select(ordered, x, other)
}
