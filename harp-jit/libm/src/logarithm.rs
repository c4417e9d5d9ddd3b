//! Logarithms and inverse hyperbolic functions.
//!
//! With x = 2^k (1 + f), √½ ≤ 1 + f < √2, and s = f / (2 + f), ln(1 + f) = f - f²/2 + s (f²/2 + R), where R is
//! ln((1 + s) / (1 - s)) / s - 2, a polynomial in s² (FreeBSD's msun and its origin, Sun's fdlibm, 1993, e_log.c).

use crate::code::{Int, Real};
use crate::constants::{LN_2_SHORT, LOG, LOG2_E, LOG10_2_SHORT, LOG10_E};
use crate::format::Constant;
use crate::pair::Pair;

/// `2^exponent (1 + fraction)` with √½ ≤ 1 + fraction < √2.
pub(crate) struct Parts<'c> {
    pub(crate) exponent: Int<'c>,
    pub(crate) fraction: Real<'c>,
}

/// Takes a positive finite number apart.
pub(crate) fn parts(x: Real<'_>) -> Parts<'_> {
    let (code, float) = (x.code, x.code.float);
    let subnormal = x.lt(float.least_normal());
    let normal = subnormal.select(x * f64::from(float.digits()).exp2(), x).bits();
    let k = (normal - float.bits(std::f64::consts::FRAC_1_SQRT_2)) >> float.fraction_bits();
    let fraction = (normal - (k << float.fraction_bits())).as_bits() - 1.0;
    let by = subnormal.select(code.int(float.digits().into()), code.int(0));
    Parts { exponent: k - by, fraction }
}

/// `high + low` is near ln(1 + f): `high` is f - f²/2 with a rounding error, and `low` the rest without it.
struct Terms<'c> {
    half_square: Real<'c>,
    /// `s (f²/2 + R)`.
    rest: Real<'c>,
}

fn terms(f: Real<'_>) -> Terms<'_> {
    let half_square = f * f * 0.5;
    let s = f / (f + 2.0);
    let z = s * s;
    Terms { half_square, rest: s * z.mul_add(z.poly(&LOG), half_square) }
}

/// `result`, which was computed for a positive finite x, or the logarithm of other numbers.
fn with_special_cases<'c>(x: Real<'c>, result: Real<'c>) -> Real<'c> {
    let code = x.code;
    let result = x.lt(f64::INFINITY).select(result, x);
    let no_logarithm = x.equals(0.0).select(-code.infinity(), code.nan());
    x.le(0.0).select(no_logarithm, result)
}

/// The logarithm of a positive finite number.
pub(crate) fn log_positive(x: Real<'_>) -> Real<'_> {
    let Parts { exponent, fraction } = parts(x);
    let zero = x.code.real(0.0);
    log_of_parts(exponent, fraction, zero)
}

/// ln(2^exponent (1 + f + c)), where c is far below an ulp of 1 + f.
fn log_of_parts<'c>(exponent: Int<'c>, f: Real<'c>, c: Real<'c>) -> Real<'c> {
    let [ln2_high, ln2_low] = LN_2_SHORT.parts(f.code.float);
    let k = exponent.to_real();
    let Terms { half_square, rest } = terms(f);
    let low = k.mul_add(ln2_low, c) + rest;
    k * ln2_high + (f - (half_square - low))
}

pub(crate) fn log(x: Real<'_>) -> Real<'_> {
    with_special_cases(x, log_positive(x))
}

/// ln(1 + f) times a constant, as a sum of two numbers.
fn scaled_fraction<'c>(f: Real<'c>, factor: &Constant) -> Pair<'c> {
    let Terms { half_square, rest } = terms(f);
    let high = f - half_square;
    let low = ((f - high) - half_square) + rest;
    let [factor_high, factor_low] = factor.parts(f.code.float).map(|part| f.code.real(part));
    let product = Pair::product(high, factor_high);
    let low = low.mul_add(factor_high, high.mul_add(factor_low, product.low));
    Pair { high: product.high, low }
}

pub(crate) fn log2(x: Real<'_>) -> Real<'_> {
    let Parts { exponent, fraction } = parts(x);
    let result = exponent.to_real() + scaled_fraction(fraction, &LOG2_E).rounded();
    with_special_cases(x, result)
}

pub(crate) fn log10(x: Real<'_>) -> Real<'_> {
    let Parts { exponent, fraction } = parts(x);
    let [high, low] = LOG10_2_SHORT.parts(x.code.float);
    let (k, log) = (exponent.to_real(), scaled_fraction(fraction, &LOG10_E));
    with_special_cases(x, k * high + (log.high + k.mul_add(low, log.low)))
}

/// ln(2^extra (1 + x)) for finite x above -1. What 1 + x loses by rounding comes in again.
fn log1p_scaled<'c>(x: Real<'c>, extra: Int<'c>) -> Real<'c> {
    let code = x.code;
    let sum = Pair::sum(code.real(1.0), x);
    let Parts { exponent, fraction } = parts(sum.high);
    // Beyond this exponent nothing was lost that matters.
    let most = 2 * i64::from(code.float.digits());
    let lost = sum.low * code.power_of_two(-exponent.min(most));
    let f = Pair::sum_ordered(fraction, lost);
    // Where nothing is in front of the lost part, the sum is not in order, but exact.
    log_of_parts(exponent + extra, f.high, f.low)
}

fn log1p_finite(x: Real<'_>) -> Real<'_> {
    log1p_scaled(x, x.code.int(0))
}

pub(crate) fn log1p(x: Real<'_>) -> Real<'_> {
    let code = x.code;
    let tiny = (-f64::from(code.float.digits())).exp2();
    let result = x.abs().lt(tiny).select(x, log1p_finite(x));
    let result = x.lt(f64::INFINITY).select(result, x);
    let no_logarithm = x.equals(-1.0).select(-code.infinity(), code.nan());
    x.le(-1.0).select(no_logarithm, result)
}

/// From here on 1 does not matter beside the square.
fn large(x: Real<'_>) -> f64 {
    f64::from(x.code.float.digits() / 2 + 2).exp2()
}

/// ln(x + √(x² + 1)) = ln(1 + x + x² / (1 + √(x² + 1))), or ln(2x) for large x.
pub(crate) fn asinh(x: Real<'_>) -> Real<'_> {
    let (code, magnitude) = (x.code, x.abs());
    let is_large = magnitude.gt(large(x));
    let square = magnitude * magnitude;
    let argument = magnitude + square / ((square + 1.0).sqrt() + 1.0);
    let argument = is_large.select(magnitude - 1.0, argument);
    let result = log1p_scaled(argument, is_large.select(code.int(1), code.int(0)));
    let tiny = magnitude.lt((-f64::from(code.float.digits() / 2 + 1)).exp2());
    let result = tiny.select(magnitude, result);
    magnitude.lt(f64::INFINITY).select(result, magnitude).copysign(x)
}

/// With t = x - 1: ln(1 + t + √(2t + t²)), or ln(2x) for large x.
pub(crate) fn acosh(x: Real<'_>) -> Real<'_> {
    let code = x.code;
    let is_large = x.gt(large(x));
    let t = x - 1.0;
    let argument = t + t.mul_add(t, t * 2.0).sqrt();
    let argument = is_large.select(t, argument);
    let result = log1p_scaled(argument, is_large.select(code.int(1), code.int(0)));
    let result = x.lt(f64::INFINITY).select(result, x);
    x.lt(1.0).select(code.nan(), result)
}

/// ln(1 + 2x / (1 - x)) / 2.
pub(crate) fn atanh(x: Real<'_>) -> Real<'_> {
    let (code, magnitude) = (x.code, x.abs());
    let result = log1p_finite(magnitude * 2.0 / (1.0 - magnitude)) * 0.5;
    let tiny = magnitude.lt((-f64::from(code.float.digits() / 2 + 1)).exp2());
    let result = tiny.select(magnitude, result);
    let special = magnitude.equals(1.0).select(code.infinity(), code.nan());
    magnitude.lt(1.0).select(result, special).copysign(x)
}
