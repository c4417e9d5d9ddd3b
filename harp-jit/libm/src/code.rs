//! Values with operators, so that formulas read like mathematics.
//!
//! An operator appends an instruction to the current block of a cranelift-frontend builder.

use std::cell::RefCell;
use std::ops;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FunctionBuilder;

use crate::Fma;
use crate::format::{Constant, Polynomial};
use crate::table::Float;

/// A builder, without its lifetime.
pub(crate) trait Build {
    fn build(&mut self, build: &mut dyn FnMut(&mut FunctionBuilder<'_>));
}

impl Build for FunctionBuilder<'_> {
    fn build(&mut self, build: &mut dyn FnMut(&mut FunctionBuilder<'_>)) {
        build(self);
    }
}

/// The code of a function under construction.
pub(crate) struct Code<'c> {
    builder: RefCell<&'c mut dyn Build>,
    pub(crate) float: Float,
    pub(crate) fma: Fma,
}

impl<'c> Code<'c> {
    pub(crate) fn new(builder: &'c mut dyn Build, float: Float, fma: Fma) -> Code<'c> {
        Code { builder: RefCell::new(builder), float, fma }
    }

    /// Gives `build` the builder.
    fn with<T>(&self, build: impl FnOnce(&mut FunctionBuilder<'_>) -> T) -> T {
        let (mut build, mut result) = (Some(build), None);
        self.builder.borrow_mut().build(&mut |builder| {
            result = build.take().map(|build| build(builder));
        });
        result.expect("`build` calls its argument once")
    }

    pub(crate) fn real(&'c self, number: f64) -> Real<'c> {
        let value = self.with(|b| match self.float {
            Float::F32 => b.ins().f32const(number as f32),
            Float::F64 => b.ins().f64const(number),
        });
        Real { code: self, value }
    }

    /// The float nearest to a constant.
    pub(crate) fn near(&'c self, constant: &Constant) -> Real<'c> {
        self.real(constant.parts(self.float)[0])
    }

    pub(crate) fn as_real(&'c self, value: Value) -> Real<'c> {
        Real { code: self, value }
    }

    pub(crate) fn as_int(&'c self, value: Value) -> Int<'c> {
        Int { code: self, value }
    }

    /// An integer with as many bits as the format.
    pub(crate) fn int(&'c self, number: i64) -> Int<'c> {
        self.int_of(self.float.int(), number)
    }

    /// An integer of any type.
    pub(crate) fn int_of(&'c self, ty: Type, number: i64) -> Int<'c> {
        // CLIF's immediates of narrow types have zeros above.
        let kept = u64::MAX >> (64 - ty.bits());
        let number = (number as u64 & kept) as i64;
        Int { code: self, value: self.with(|b| b.ins().iconst(ty, number)) }
    }

    pub(crate) fn nan(&'c self) -> Real<'c> {
        self.real(f64::NAN)
    }

    pub(crate) fn infinity(&'c self) -> Real<'c> {
        self.real(f64::INFINITY)
    }

    /// 2^n, if that is a normal number.
    pub(crate) fn power_of_two(&'c self, n: Int<'c>) -> Real<'c> {
        ((n + self.float.bias()) << self.float.fraction_bits()).as_bits()
    }

    /// `common`, or what `rare` gives if `condition` holds: then lanes branch.
    pub(crate) fn unless<const N: usize>(
        &'c self,
        condition: Bool<'c>,
        common: [Value; N],
        rare: impl FnOnce() -> [Value; N],
    ) -> [Value; N] {
        let end = self.with(|b| {
            let (branch, end) = (b.create_block(), b.create_block());
            for value in common {
                let ty = b.func.dfg.value_type(value);
                b.append_block_param(end, ty);
            }
            let args: Vec<_> = common.iter().map(|&value| value.into()).collect();
            b.ins().brif(condition.value, branch, &[], end, &args);
            b.switch_to_block(branch);
            b.seal_block(branch);
            b.set_cold_block(branch);
            end
        });
        let results = rare();
        self.with(|b| {
            let args: Vec<_> = results.iter().map(|&value| value.into()).collect();
            b.ins().jump(end, &args);
            b.switch_to_block(end);
            b.seal_block(end);
            std::array::from_fn(|i| b.block_params(end)[i])
        })
    }

    /// Replaces `values` by what `step` makes of them as long as it says so for what it is given.
    pub(crate) fn repeat<const N: usize>(
        &'c self,
        values: [Value; N],
        more: impl FnOnce([Value; N]) -> Bool<'c>,
        step: impl FnOnce([Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let (header, body, end) = self.with(|b| {
            let blocks = (b.create_block(), b.create_block(), b.create_block());
            for value in values {
                let ty = b.func.dfg.value_type(value);
                b.append_block_param(blocks.0, ty);
            }
            let args: Vec<_> = values.iter().map(|&value| value.into()).collect();
            b.ins().jump(blocks.0, &args);
            b.switch_to_block(blocks.0);
            blocks
        });
        let current: [Value; N] =
            self.with(|b| std::array::from_fn(|i| b.block_params(header)[i]));
        let condition = more(current);
        self.with(|b| {
            b.ins().brif(condition.value, body, &[], end, &[]);
            b.switch_to_block(body);
            b.seal_block(body);
        });
        let next = step(current);
        self.with(|b| {
            let args: Vec<_> = next.iter().map(|&value| value.into()).collect();
            b.ins().jump(header, &args);
            b.seal_block(header);
            b.switch_to_block(end);
            b.seal_block(end);
        });
        current
    }
}

/// A float.
#[derive(Clone, Copy)]
pub(crate) struct Real<'c> {
    pub(crate) code: &'c Code<'c>,
    pub(crate) value: Value,
}

/// An integer.
#[derive(Clone, Copy)]
pub(crate) struct Int<'c> {
    pub(crate) code: &'c Code<'c>,
    pub(crate) value: Value,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(crate) struct Bool<'c> {
    code: &'c Code<'c>,
    value: Value,
}

/// What a condition can choose.
pub(crate) trait Choice<'c>: Copy {
    fn value(self) -> Value;
    fn with_value(self, value: Value) -> Self;
}

impl<'c> Choice<'c> for Real<'c> {
    fn value(self) -> Value {
        self.value
    }

    fn with_value(self, value: Value) -> Self {
        Real { value, ..self }
    }
}

impl<'c> Choice<'c> for Int<'c> {
    fn value(self) -> Value {
        self.value
    }

    fn with_value(self, value: Value) -> Self {
        Int { value, ..self }
    }
}

impl<'c> Bool<'c> {
    /// `yes` if it holds, else `no`.
    pub(crate) fn select<T: Choice<'c>>(self, yes: T, no: T) -> T {
        yes.with_value(self.code.with(|b| b.ins().select(self.value, yes.value(), no.value())))
    }

    /// 1 if it holds, else 0.
    pub(crate) fn as_int(self) -> Int<'c> {
        let ty = self.code.float.int();
        Int { code: self.code, value: self.code.with(|b| b.ins().uextend(ty, self.value)) }
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $ty:ident $number:ident $constant:ident $instruction:ident;)*) => {$(
        impl<'c> ops::$operator for $ty<'c> {
            type Output = $ty<'c>;

            fn $method(self, other: $ty<'c>) -> $ty<'c> {
                let value = self.code.with(|b| b.ins().$instruction(self.value, other.value));
                $ty { value, ..self }
            }
        }

        impl<'c> ops::$operator<$number> for $ty<'c> {
            type Output = $ty<'c>;

            fn $method(self, other: $number) -> $ty<'c> {
                ops::$operator::$method(self, self.$constant(other))
            }
        }

        impl<'c> ops::$operator<$ty<'c>> for $number {
            type Output = $ty<'c>;

            fn $method(self, other: $ty<'c>) -> $ty<'c> {
                ops::$operator::$method(other.$constant(self), other)
            }
        }
    )*};
}

operators! {
    Add add Real f64 constant fadd;
    Sub sub Real f64 constant fsub;
    Mul mul Real f64 constant fmul;
    Div div Real f64 constant fdiv;
    Add add Int i64 constant iadd;
    Sub sub Int i64 constant isub;
    Mul mul Int i64 constant imul;
    BitAnd bitand Int i64 constant band;
    BitOr bitor Int i64 constant bor;
    BitXor bitxor Int i64 constant bxor;
    Rem rem Int i64 constant urem;
    Div div Int i64 constant udiv;
}

impl<'c> ops::Neg for Real<'c> {
    type Output = Real<'c>;

    fn neg(self) -> Real<'c> {
        self.unary(|b, x| b.ins().fneg(x))
    }
}

impl<'c> ops::Neg for Int<'c> {
    type Output = Int<'c>;

    fn neg(self) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ineg(self.value)), ..self }
    }
}

impl<'c> ops::BitAnd for Bool<'c> {
    type Output = Bool<'c>;

    fn bitand(self, other: Bool<'c>) -> Bool<'c> {
        Bool { value: self.code.with(|b| b.ins().band(self.value, other.value)), ..self }
    }
}

impl<'c> ops::BitOr for Bool<'c> {
    type Output = Bool<'c>;

    fn bitor(self, other: Bool<'c>) -> Bool<'c> {
        Bool { value: self.code.with(|b| b.ins().bor(self.value, other.value)), ..self }
    }
}

impl<'c> ops::Shl<u32> for Int<'c> {
    type Output = Int<'c>;

    fn shl(self, by: u32) -> Int<'c> {
        self << self.constant(by.into())
    }
}

impl<'c> ops::Shl<Int<'c>> for Int<'c> {
    type Output = Int<'c>;

    fn shl(self, by: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ishl(self.value, by.value)), ..self }
    }
}

/// Arithmetic: copies of the sign come in.
impl<'c> ops::Shr<u32> for Int<'c> {
    type Output = Int<'c>;

    fn shr(self, by: u32) -> Int<'c> {
        let by = self.constant(by.into());
        Int { value: self.code.with(|b| b.ins().sshr(self.value, by.value)), ..self }
    }
}

/// A number or a value of the same type.
pub(crate) trait IntoReal<'c> {
    fn into_real(self, code: &'c Code<'c>) -> Real<'c>;
}

impl<'c> IntoReal<'c> for f64 {
    fn into_real(self, code: &'c Code<'c>) -> Real<'c> {
        code.real(self)
    }
}

impl<'c> IntoReal<'c> for Real<'c> {
    fn into_real(self, _: &'c Code<'c>) -> Real<'c> {
        self
    }
}

impl<'c> Real<'c> {
    fn constant(self, number: f64) -> Real<'c> {
        self.code.real(number)
    }

    fn unary(self, build: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Value) -> Real<'c> {
        Real { value: self.code.with(|b| build(b, self.value)), ..self }
    }

    pub(crate) fn abs(self) -> Real<'c> {
        self.unary(|b, x| b.ins().fabs(x))
    }

    pub(crate) fn sqrt(self) -> Real<'c> {
        self.unary(|b, x| b.ins().sqrt(x))
    }

    pub(crate) fn floor(self) -> Real<'c> {
        self.unary(|b, x| b.ins().floor(x))
    }

    pub(crate) fn ceil(self) -> Real<'c> {
        self.unary(|b, x| b.ins().ceil(x))
    }

    pub(crate) fn trunc(self) -> Real<'c> {
        self.unary(|b, x| b.ins().trunc(x))
    }

    /// Rounded to nearest, ties to even.
    pub(crate) fn rint(self) -> Real<'c> {
        self.unary(|b, x| b.ins().nearest(x))
    }

    /// This number with the sign of the other.
    pub(crate) fn copysign(self, sign: Real<'c>) -> Real<'c> {
        self.unary(|b, x| b.ins().fcopysign(x, sign.value))
    }

    /// This number with its sign changed if the other's sign bit is set.
    pub(crate) fn flipped_by(self, other: Real<'c>) -> Real<'c> {
        (self.bits() ^ (other.bits() & self.constant(-0.0).bits())).as_bits()
    }

    /// This number, negated if a condition holds.
    pub(crate) fn negated_if(self, condition: Bool<'c>) -> Real<'c> {
        condition.select(-self, self)
    }

    /// Whether the sign bit is set.
    pub(crate) fn is_sign_negative(self) -> Bool<'c> {
        self.bits().lt(0)
    }

    /// `self * y + z` with one rounding, whatever that costs.
    pub(crate) fn fused(self, y: Real<'c>, z: Real<'c>) -> Real<'c> {
        self.unary(|b, x| b.ins().fma(x, y.value, z.value))
    }

    /// `self * y + z` with one rounding where that is fast, else with two.
    pub(crate) fn mul_add(self, y: impl IntoReal<'c>, z: impl IntoReal<'c>) -> Real<'c> {
        let (y, z) = (y.into_real(self.code), z.into_real(self.code));
        match self.code.fma {
            Fma::Fast => self.fused(y, z),
            Fma::Slow => self * y + z,
        }
    }

    /// The value of a polynomial by Horner's rule.
    pub(crate) fn poly(self, polynomial: &Polynomial) -> Real<'c> {
        self.horner(&polynomial.coefficients(self.code.float))
    }

    /// The value of the polynomial with these coefficients, the lowest first.
    pub(crate) fn horner(self, coefficients: &[f64]) -> Real<'c> {
        let mut from_top = coefficients.iter().rev();
        let top = self.constant(from_top.next().copied().unwrap_or_default());
        from_top.fold(top, |value, &c| value.mul_add(self, c))
    }

    fn compare(self, cc: FloatCC, other: impl IntoReal<'c>) -> Bool<'c> {
        let other = other.into_real(self.code);
        let value = self.code.with(|b| b.ins().fcmp(cc, self.value, other.value));
        Bool { code: self.code, value }
    }

    pub(crate) fn lt(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::LessThan, other)
    }

    pub(crate) fn le(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::LessThanOrEqual, other)
    }

    pub(crate) fn gt(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::GreaterThan, other)
    }

    pub(crate) fn ge(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::GreaterThanOrEqual, other)
    }

    pub(crate) fn equals(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::Equal, other)
    }

    pub(crate) fn differs(self, other: impl IntoReal<'c>) -> Bool<'c> {
        self.compare(FloatCC::NotEqual, other)
    }

    pub(crate) fn is_nan(self) -> Bool<'c> {
        self.compare(FloatCC::Unordered, self)
    }

    /// This number, but at least `low` and at most `high`; a NaN stays.
    pub(crate) fn clamp(self, low: f64, high: f64) -> Real<'c> {
        let (low, high) = (self.constant(low), self.constant(high));
        let above = self.lt(low).select(low, self);
        above.gt(high).select(high, above)
    }

    pub(crate) fn bits(self) -> Int<'c> {
        let ty = self.code.float.int();
        let value = self.code.with(|b| b.ins().bitcast(ty, MemFlagsData::new(), self.value));
        Int { code: self.code, value }
    }

    /// Rounded towards zero to a 32-bit integer.
    pub(crate) fn to_int(self) -> Int<'c> {
        let value = self.code.with(|b| b.ins().fcvt_to_sint_sat(types::I32, self.value));
        Int { code: self.code, value }
    }
}

impl<'c> Int<'c> {
    fn constant(self, number: i64) -> Int<'c> {
        let ty = self.code.with(|b| b.func.dfg.value_type(self.value));
        self.code.int_of(ty, number)
    }

    /// The float with these bits.
    pub(crate) fn as_bits(self) -> Real<'c> {
        let ty = self.code.float.ty();
        let value = self.code.with(|b| b.ins().bitcast(ty, MemFlagsData::new(), self.value));
        Real { code: self.code, value }
    }

    /// The float nearest to this signed number.
    pub(crate) fn to_real(self) -> Real<'c> {
        let ty = self.code.float.ty();
        Real { code: self.code, value: self.code.with(|b| b.ins().fcvt_from_sint(ty, self.value)) }
    }

    /// The float nearest to this unsigned number.
    pub(crate) fn unsigned_to_real(self) -> Real<'c> {
        let ty = self.code.float.ty();
        Real { code: self.code, value: self.code.with(|b| b.ins().fcvt_from_uint(ty, self.value)) }
    }

    /// OpenCL's `int` made as wide as the format.
    pub(crate) fn widened(self) -> Int<'c> {
        match self.code.float {
            Float::F32 => self,
            Float::F64 => {
                Int { value: self.code.with(|b| b.ins().sextend(types::I64, self.value)), ..self }
            }
        }
    }

    /// The low bits as OpenCL's `int`.
    pub(crate) fn narrowed(self) -> Int<'c> {
        match self.code.float {
            Float::F32 => self,
            Float::F64 => {
                Int { value: self.code.with(|b| b.ins().ireduce(types::I32, self.value)), ..self }
            }
        }
    }

    /// Shifted to the right, zeros come in.
    pub(crate) fn shr_zeros(self, by: u32) -> Int<'c> {
        self.shr_zeros_by(self.constant(by.into()))
    }

    /// The same by a variable number of bits.
    pub(crate) fn shr_zeros_by(self, by: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ushr(self.value, by.value)), ..self }
    }

    /// The upper half of the unsigned product.
    pub(crate) fn mul_high(self, other: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().umulhi(self.value, other.value)), ..self }
    }

    fn compare(self, cc: IntCC, other: impl IntoInt<'c>) -> Bool<'c> {
        let other = other.into_int(self);
        let value = self.code.with(|b| b.ins().icmp(cc, self.value, other.value));
        Bool { code: self.code, value }
    }

    pub(crate) fn lt(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::SignedLessThan, other)
    }

    pub(crate) fn gt(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::SignedGreaterThan, other)
    }

    /// Whether it is less, as unsigned numbers.
    pub(crate) fn below(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::UnsignedLessThan, other)
    }

    pub(crate) fn equals(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::Equal, other)
    }

    pub(crate) fn differs(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::NotEqual, other)
    }

    /// The smaller of two signed numbers.
    pub(crate) fn min(self, other: impl IntoInt<'c>) -> Int<'c> {
        let other = other.into_int(self);
        self.lt(other).select(self, other)
    }

    /// The larger of two signed numbers.
    pub(crate) fn max(self, other: impl IntoInt<'c>) -> Int<'c> {
        let other = other.into_int(self);
        self.lt(other).select(other, self)
    }

    /// Whether the lowest bit is set.
    pub(crate) fn is_odd(self) -> Bool<'c> {
        (self & 1).differs(0)
    }
}

/// A number or a value of the same type.
pub(crate) trait IntoInt<'c> {
    fn into_int(self, like: Int<'c>) -> Int<'c>;
}

impl<'c> IntoInt<'c> for i64 {
    fn into_int(self, like: Int<'c>) -> Int<'c> {
        like.constant(self)
    }
}

impl<'c> IntoInt<'c> for Int<'c> {
    fn into_int(self, _: Int<'c>) -> Int<'c> {
        self
    }
}
