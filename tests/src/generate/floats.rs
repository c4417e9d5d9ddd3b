//! Float operations.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{MemFlagsData, Type, Value, types};
use harp_jit::KernelBuilder;

use super::Generator;

const CONDITIONS: [FloatCC; 14] = [
    FloatCC::Equal,
    FloatCC::LessThan,
    FloatCC::LessThanOrEqual,
    FloatCC::GreaterThan,
    FloatCC::GreaterThanOrEqual,
    FloatCC::NotEqual,
    FloatCC::Ordered,
    FloatCC::Unordered,
    FloatCC::OrderedNotEqual,
    FloatCC::UnorderedOrEqual,
    FloatCC::UnorderedOrLessThan,
    FloatCC::UnorderedOrLessThanOrEqual,
    FloatCC::UnorderedOrGreaterThan,
    FloatCC::UnorderedOrGreaterThanOrEqual,
];

impl Generator<'_> {
    pub(super) fn compare_floats(&mut self, b: &mut KernelBuilder<'_>, depth: usize) -> Value {
        let ty = self.choices.one(self.family.floats());
        let depth = depth.saturating_sub(1);
        let (x, y) = (self.value(b, ty, depth), self.value(b, ty, depth));
        let condition = self.choices.one(&CONDITIONS);
        b.ins().fcmp(condition, x, y)
    }

    pub(super) fn float_op(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        match self.choices.below(8) {
            0..=2 => self.float_arithmetic(b, ty, depth),
            3 => self.float_sign(b, ty, depth),
            4 => self.convert_to_float(b, ty, depth),
            5 => self.float_rounding(b, ty, depth),
            6 => {
                let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
                let condition = self.condition(b, depth - 1);
                b.ins().select(condition, x, y)
            }
            _ => self.load_float(b, ty),
        }
    }

    fn float_arithmetic(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        let kinds = if self.long(ty) { 1 } else { 6 };
        match self.choices.below(kinds) {
            0 => b.ins().fadd(x, y),
            1 => b.ins().fsub(x, y),
            2 => b.ins().fmul(x, y),
            3 => b.ins().fdiv(x, y),
            4 => b.ins().sqrt(x),
            _ => {
                let z = self.value(b, ty, depth - 1);
                b.ins().fma(x, y, z)
            }
        }
    }

    /// Whether arithmetic on the type takes so many instructions that kernels get little of it.
    fn long(&mut self, ty: Type) -> bool {
        !self.family.in_register(ty) && !self.choices.once_in(8)
    }

    fn float_sign(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let x = self.value(b, ty, depth - 1);
        match self.choices.below(3) {
            0 => b.ins().fneg(x),
            1 => b.ins().fabs(x),
            _ => {
                let sign = self.value(b, ty, depth - 1);
                let sign = self.number(b, sign);
                b.ins().fcopysign(x, sign)
            }
        }
    }

    fn float_rounding(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.leaf(b, ty));
        match self.choices.below(6) {
            0 => b.ins().ceil(x),
            1 => b.ins().floor(x),
            2 => b.ins().trunc(x),
            3 => b.ins().nearest(x),
            4 => b.ins().fmin(x, y),
            _ => b.ins().fmax(x, y),
        }
    }

    fn convert_to_float(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let others: Vec<Type> =
            self.family.floats().iter().copied().filter(|&other| other != ty).collect();
        if let (Some(&other), true) = (others.first(), self.choices.once_in(3)) {
            let x = self.value(b, other, depth - 1);
            return if ty == types::F32 { b.ins().fdemote(ty, x) } else { b.ins().fpromote(ty, x) };
        }
        let from = self.choices.one(self.family.ints());
        let x = self.value(b, from, depth - 1);
        match self.choices.below(3) {
            0 => b.ins().fcvt_from_sint(ty, x),
            1 => b.ins().fcvt_from_uint(ty, x),
            _ if from.bits() == ty.bits() => b.ins().bitcast(ty, MemFlagsData::new(), x),
            _ => b.ins().fcvt_from_sint(ty, x),
        }
    }

    /// `x`, or some number where it is a NaN.
    pub(super) fn number(&mut self, b: &mut KernelBuilder<'_>, x: Value) -> Value {
        let ty = b.inner().func.dfg.value_type(x);
        let other = if ty == types::F32 { b.ins().f32const(-1.5) } else { b.ins().f64const(-1.5) };
        let ordered = b.ins().fcmp(FloatCC::Ordered, x, x);
        b.ins().select(ordered, x, other)
    }
}
