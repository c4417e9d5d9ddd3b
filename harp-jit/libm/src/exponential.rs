//! Exponentials and hyperbolic functions.
//!
//! The argument is reduced to |r| ≤ ln(2)/2 with ln 2 in two parts (Cody and Waite, Software Manual for the Elementary
//! Functions, 1980, chapter 6), where a polynomial approximates. Large arguments are clamped to where results have
//! overflowed or vanished.

use crate::code::{Code, Int, Real};
use crate::constants::{EXP, LN_2, LN_2_SHORT, LN_10, LOG2_10, LOG2_E, LOG10_2_SHORT};
use crate::format::Constant;

/// The number `2^exponent (1 + tail)`.
pub(crate) struct Power<'c> {
    pub(crate) tail: Real<'c>,
    pub(crate) exponent: Int<'c>,
}

/// The nearest integer, as a float and as an integer, of a number whose magnitude is far below 2^digits: adding a large
/// number rounds at the units.
pub(crate) fn nearest<'c>(x: Real<'c>) -> (Real<'c>, Int<'c>) {
    let large = 1.5 * f64::from(x.code.float.fraction_bits()).exp2();
    let shifted = x + large;
    (shifted - large, shifted.bits() - x.code.float.bits(large))
}

/// `x * 2^n`, in two steps, of which only the second one may overflow or underflow.
pub(crate) fn scale<'c>(x: Real<'c>, n: Int<'c>) -> Real<'c> {
    let half = n >> 1;
    x * x.code.power_of_two(half) * x.code.power_of_two(n - half)
}

/// The exponents of 2 between which all results are that are neither zero nor infinite.
pub(crate) fn exponent_range(code: &Code<'_>) -> (f64, f64) {
    let (bias, digits) = (code.float.bias() as f64, f64::from(code.float.digits()));
    (-(bias + digits + 2.0), bias + 4.0)
}

/// `e^r - 1` for |r| ≤ ln(2)/2.
pub(crate) fn expm1_reduced(r: Real<'_>) -> Real<'_> {
    (r * r).mul_add(r.poly(&EXP), r)
}

/// What is left of x if `k` times a constant in two parts is subtracted. The first part is so short that its
/// product with `k` is exact.
fn reduce<'c>(x: Real<'c>, k: Real<'c>, short: &Constant) -> Real<'c> {
    let [high, low] = short.parts(x.code.float);
    (-k).mul_add(low, x - k * high)
}

/// `e^x`; x is clamped.
pub(crate) fn natural(x: Real<'_>) -> Power<'_> {
    let ln2 = std::f64::consts::LN_2;
    let (low, high) = exponent_range(x.code);
    let x = x.clamp(low * ln2, high * ln2);
    let (k, exponent) = nearest(x * x.code.near(&LOG2_E));
    Power { tail: expm1_reduced(reduce(x, k, &LN_2_SHORT)), exponent }
}

impl<'c> Power<'c> {
    pub(crate) fn value(self) -> Real<'c> {
        scale(self.tail + 1.0, self.exponent)
    }

    /// `2^extra` times what is left if 1 is subtracted. The exponent is not below -digits - 2.
    fn minus_one(self, extra: i64) -> Real<'c> {
        let code = self.tail.code;
        // 2^-exponent, or something that vanishes beside 1.
        let one = code.power_of_two((-self.exponent).max(-i64::from(code.float.digits() + 2)));
        scale(self.tail + (1.0 - one), self.exponent + extra)
    }
}

pub(crate) fn exp(x: Real<'_>) -> Real<'_> {
    natural(x).value()
}

pub(crate) fn exp2(x: Real<'_>) -> Real<'_> {
    let (low, high) = exponent_range(x.code);
    let x = x.clamp(low, high);
    let (k, exponent) = nearest(x);
    Power { tail: expm1_reduced((x - k) * x.code.near(&LN_2)), exponent }.value()
}

pub(crate) fn exp10(x: Real<'_>) -> Real<'_> {
    let log10_2 = std::f64::consts::LOG10_2;
    let (low, high) = exponent_range(x.code);
    let x = x.clamp(low * log10_2, high * log10_2);
    let (k, exponent) = nearest(x * x.code.near(&LOG2_10));
    let r = reduce(x, k, &LOG10_2_SHORT);
    Power { tail: expm1_reduced(r * x.code.near(&LN_10)), exponent }.value()
}

/// `2^extra (e^x - 1)`.
fn scaled_expm1(x: Real<'_>, extra: i64) -> Real<'_> {
    let least = -f64::from(x.code.float.digits() + 2) * std::f64::consts::LN_2;
    natural(x.clamp(least, f64::INFINITY)).minus_one(extra)
}

pub(crate) fn expm1(x: Real<'_>) -> Real<'_> {
    let tiny = (-f64::from(x.code.float.digits())).exp2();
    x.abs().lt(tiny).select(x, scaled_expm1(x, 0))
}

/// With `h = (e^|x| - 1) / 2`: `h + h / (2h + 1)`.
pub(crate) fn sinh(x: Real<'_>) -> Real<'_> {
    let h = scaled_expm1(x.abs(), -1);
    let large = f64::from(x.code.float.digits()).exp2() * 4.0;
    let bounded = h.clamp(0.0, large);
    (h + bounded / bounded.mul_add(2.0, 1.0)).copysign(x)
}

/// With `h = e^|x| / 2`: `h + 1 / (4h)`.
pub(crate) fn cosh(x: Real<'_>) -> Real<'_> {
    let power = natural(x.abs());
    let h = scale(power.tail + 1.0, power.exponent - 1);
    h + 0.25 / h
}

/// With `t = e^2|x| - 1`: `t / (t + 2)`.
pub(crate) fn tanh(x: Real<'_>) -> Real<'_> {
    // Results beyond are 1.
    let most = f64::from(x.code.float.digits());
    let t = scaled_expm1((x.abs() * 2.0).clamp(0.0, most), 0);
    (t / (t + 2.0)).copysign(x)
}
