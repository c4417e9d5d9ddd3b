//! Operations on floats.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use cranelift_frontend::FunctionBuilder;

use super::{Bool, Code, Int, Real};
use crate::Fma;
use crate::format::Polynomial;

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
    pub(super) fn constant(self, number: f64) -> Real<'c> {
        self.code.real(number)
    }

    pub(super) fn unary(
        self,
        build: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Value,
    ) -> Real<'c> {
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
