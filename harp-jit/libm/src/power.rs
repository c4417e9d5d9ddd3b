//! Powers with any exponent, in twice the digits up to the last step.
//!
//! x^y = 2^(y log2 x). An error of the exponent becomes a relative error of the power, so the logarithm needs as many
//! more digits as the exponent of 2 can have (Muller et al., Handbook of Floating-Point Arithmetic, 2018, 10.5; Ziv
//! 1991).

use crate::code::{Int, Real};
use crate::constants::{LN_2, LOG_TAIL, LOG2_E, TWO_THIRDS};
use crate::exponential::{Power, expm1_reduced, exponent_range, nearest};
use crate::logarithm::{Parts, parts};
use crate::pair::Pair;
use crate::table::Float;

/// log2 of a positive finite number: k + log2 e · ln(1 + f), with ln(1 + f) = 2s + s³ (2/3 + s² T(s²)), where
/// s = f / (2 + f). T needs no more digits than the format has.
pub(crate) fn log2_pair(x: Real<'_>) -> Pair<'_> {
    let code = x.code;
    let Parts { exponent, fraction } = parts(x);
    let s = Pair::quotient(fraction, Pair::sum_ordered(code.real(2.0), fraction));
    let square = s * s;
    let tail = square.high * square.high.poly(&LOG_TAIL);
    let two_thirds = code.pair(&TWO_THIRDS);
    let bracket = Pair::sum_ordered(two_thirds.high, tail);
    let bracket = Pair { low: bracket.low + two_thirds.low, ..bracket };
    let cube = s * (square * bracket);
    let log = Pair::sum_ordered(s.high * 2.0, cube.high);
    let log = Pair { low: log.low + s.low.mul_add(2.0, cube.low), ..log };
    let log2 = log * code.pair(&LOG2_E);
    let sum = Pair::sum_ordered(exponent.to_real(), log2.high);
    Pair::sum_ordered(sum.high, sum.low + log2.low)
}

/// 2^e.
pub(crate) fn exp2_pair(e: Pair<'_>) -> Power<'_> {
    let (k, exponent) = nearest(e.high);
    let rest = (e.high - k) + e.low;
    Power { tail: expm1_reduced(rest * rest.code.near(&LN_2)), exponent }
}

/// The exponent, clamped to where powers of 2 are neither zero nor infinite.
fn clamped(e: Pair<'_>) -> Pair<'_> {
    let code = e.high.code;
    let (least, most) = exponent_range(code);
    let high = e.high.clamp(least, most);
    Pair { high, low: high.equals(e.high).select(e.low, code.real(0.0)) }
}

/// x^y for x ≥ 0, infinity included; y is not zero.
fn power<'c>(x: Real<'c>, y: Pair<'c>) -> Real<'c> {
    let code = x.code;
    let result = exp2_pair(clamped(log2_pair(x) * y)).value();
    let is_zero = x.equals(0.0);
    let is_special = is_zero | x.equals(f64::INFINITY);
    // 0 or infinity, the other one for negative exponents.
    let logarithm = is_zero.select(-code.infinity(), code.infinity()).flipped_by(y.high);
    let special = logarithm.gt(0.0).select(code.infinity(), code.real(0.0));
    is_special.select(special, result)
}

/// y, so large at most that its product with a logarithm is finite, and still far beyond all exponents with finite
/// results other than 1.
fn bounded(y: Real<'_>) -> Pair<'_> {
    let most = y.code.float.pick(40.0_f64, 80.0).exp2();
    Pair { high: y.clamp(-most, most), low: y.code.real(0.0) }
}

pub(crate) fn pow<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let code = x.code;
    let half = y * 0.5;
    let is_integer = y.trunc().equals(y);
    let is_odd = is_integer & half.trunc().differs(half);
    let result = power(x.abs(), bounded(y));
    let result = result.negated_if(is_odd & x.is_sign_negative());
    let has_root = is_integer | x.ge(0.0) | x.equals(f64::NEG_INFINITY);
    let result = has_root.select(result, code.nan());
    let result = (x.is_nan() | y.is_nan()).select(x + y, result);
    (x.equals(1.0) | y.equals(0.0)).select(code.real(1.0), result)
}

pub(crate) fn powr<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let code = x.code;
    let result = power(x.abs(), bounded(y));
    let y_is_zero = y.equals(0.0);
    let result = y_is_zero.select(code.real(1.0), result);
    let edge = x.equals(0.0) | x.equals(f64::INFINITY);
    let undefined = x.lt(0.0) | (y_is_zero & edge);
    let undefined = undefined | (x.equals(1.0) & y.abs().equals(f64::INFINITY));
    let undefined = undefined | x.is_nan() | y.is_nan();
    undefined.select(code.nan(), result)
}

/// OpenCL's `int` as a pair.
fn integer(n: Int<'_>) -> Pair<'_> {
    let high = n.to_real();
    let low = match n.code.float {
        Float::F32 => (n - high.to_int()).to_real(),
        Float::F64 => n.code.real(0.0),
    };
    Pair { high, low }
}

pub(crate) fn pown<'c>(x: Real<'c>, n: Int<'c>) -> Real<'c> {
    let code = x.code;
    let result = power(x.abs(), integer(n)).negated_if(n.is_odd() & x.is_sign_negative());
    let result = x.is_nan().select(x, result);
    n.equals(0).select(code.real(1.0), result)
}

pub(crate) fn rootn<'c>(x: Real<'c>, n: Int<'c>) -> Real<'c> {
    let code = x.code;
    let exponent = Pair::quotient(code.real(1.0), integer(n));
    let is_odd = n.is_odd();
    let result = power(x.abs(), exponent).negated_if(is_odd & x.is_sign_negative());
    let has_root = (is_odd | x.ge(0.0)) & n.differs(0);
    let result = has_root.select(result, code.nan());
    x.is_nan().select(x, result)
}
