//! Functions that need no approximation: comparisons, integral parts and pieces of the representation.

use crate::code::{Bool, Int, Real};

pub(crate) fn fdim<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    x.le(y).select(x.code.real(0.0), x - y)
}

pub(crate) fn fmax<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    (x.lt(y) | x.is_nan()).select(y, x)
}

pub(crate) fn fmin<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    (x.gt(y) | x.is_nan()).select(y, x)
}

pub(crate) fn maxmag<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let (a, b) = (x.abs(), y.abs());
    a.gt(b).select(x, b.gt(a).select(y, fmax(x, y)))
}

pub(crate) fn minmag<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let (a, b) = (x.abs(), y.abs());
    a.lt(b).select(x, b.lt(a).select(y, fmin(x, y)))
}

/// Adding the float below ½ carries into the integers just when the fraction is at least ½.
pub(crate) fn round(x: Real<'_>) -> Real<'_> {
    let below_half = 0.5 - (-f64::from(x.code.float.digits() + 1)).exp2();
    (x + x.code.real(below_half).copysign(x)).trunc()
}

pub(crate) fn fract(x: Real<'_>) -> (Real<'_>, Real<'_>) {
    let integer = x.floor();
    let below_one = x.code.real(1.0 - (-f64::from(x.code.float.digits())).exp2());
    let difference = x - integer;
    let fraction = difference.gt(below_one).select(below_one, difference);
    let is_edge = x.equals(0.0) | x.abs().equals(f64::INFINITY);
    (is_edge.select(x.code.real(0.0).copysign(x), fraction), integer)
}

pub(crate) fn modf(x: Real<'_>) -> (Real<'_>, Real<'_>) {
    let integer = x.trunc();
    let is_infinite = x.abs().equals(f64::INFINITY);
    let fraction = is_infinite.select(x.code.real(0.0), x - integer);
    (fraction.copysign(x), integer)
}

/// The exponent of a number, and its bits with the exponent of 1 to 2. Of zeros, infinities and NaNs the exponent is
/// beyond those of other numbers, or some.
struct Representation<'c> {
    exponent: Int<'c>,
    mantissa: Int<'c>,
}

fn representation(x: Real<'_>) -> Representation<'_> {
    let (code, float) = (x.code, x.code.float);
    let subnormal = x.abs().lt(float.least_normal());
    let bits = subnormal.select(x * f64::from(float.digits()).exp2(), x).bits();
    let biased = (bits & float.infinity_bits()).shr_zeros(float.fraction_bits());
    let by = subnormal.select(code.int(float.digits().into()), code.int(0));
    let mantissa = (bits & !float.infinity_bits()) | float.bits(1.0);
    Representation { exponent: biased - float.bias() - by, mantissa }
}

/// Whether x is neither zero nor infinite nor a NaN.
pub(crate) fn is_ordinary(x: Real<'_>) -> Bool<'_> {
    x.differs(0.0) & x.abs().lt(f64::INFINITY)
}

pub(crate) fn frexp(x: Real<'_>) -> (Real<'_>, Int<'_>) {
    let Representation { exponent, mantissa } = representation(x);
    let is_ordinary = is_ordinary(x);
    let exponent = is_ordinary.select(exponent + 1, x.code.int(0));
    (is_ordinary.select(mantissa.as_bits() * 0.5, x), exponent.narrowed())
}

pub(crate) fn ilogb(x: Real<'_>) -> Int<'_> {
    let int = |number: i32| x.code.int(number.into());
    let exponent = representation(x).exponent;
    let exponent = x.abs().lt(f64::INFINITY).select(exponent, int(i32::MAX));
    x.equals(0.0).select(int(i32::MIN), exponent).narrowed()
}

pub(crate) fn logb(x: Real<'_>) -> Real<'_> {
    let exponent = representation(x).exponent.to_real();
    let exponent = x.abs().lt(f64::INFINITY).select(exponent, x * x);
    x.equals(0.0).select(-x.code.infinity(), exponent)
}

/// The mantissa with the new exponent, or with one that is in range, and then a product that rounds once.
pub(crate) fn ldexp<'c>(x: Real<'c>, n: Int<'c>) -> Real<'c> {
    let (code, float) = (x.code, x.code.float);
    let (bias, digits) = (float.bias(), i64::from(float.digits()));
    // Numbers of more than this turn any number into zero or infinity.
    let most = 4 * bias;
    let n = n.max(-most).min(most).widened();
    let Representation { exponent, mantissa } = representation(x);
    let exponent = (exponent + n).max(-bias - digits - 2).min(bias + 1);
    let shift = 64;
    let (below, above) = (exponent.lt(1 - bias), exponent.gt(bias));
    let moved = below.select(exponent + shift, above.select(exponent - shift, exponent));
    let (down, up) = (code.real((-shift as f64).exp2()), code.real((shift as f64).exp2()));
    let factor = below.select(down, above.select(up, code.real(1.0)));
    let result = (mantissa + (moved << float.fraction_bits())).as_bits() * factor;
    is_ordinary(x).select(result, x)
}

pub(crate) fn nan(payload: Int<'_>) -> Real<'_> {
    let float = payload.code.float;
    let quiet = float.infinity_bits() | 1 << (float.fraction_bits() - 1);
    let fraction = (1 << float.fraction_bits()) - 1;
    ((payload & fraction) | quiet).as_bits()
}

/// Floats of one sign are in the order of their bits.
pub(crate) fn nextafter<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let code = x.code;
    let (up, down) = (code.int(1), code.int(-1));
    let away = x.lt(y).select(up, down);
    let step = x.lt(0.0).select(-away, away);
    let next = (x.bits() + step).as_bits();
    let least = code.int(1).as_bits().copysign(y);
    let next = x.equals(0.0).select(least, next);
    let next = x.equals(y).select(y, next);
    (x.is_nan() | y.is_nan()).select(x + y, next)
}
