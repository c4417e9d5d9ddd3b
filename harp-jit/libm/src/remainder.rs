//! Exact remainders, by division of the mantissas with as many bits a step as a word has room for.

use crate::code::{Bool, Int, Real};
use crate::exponential::scale;

/// A positive number as `mantissa * 2^exponent` with the highest bit of the format set.
struct Scaled<'c> {
    mantissa: Int<'c>,
    exponent: Int<'c>,
}

/// Takes the magnitude of a number apart. Zeros, infinities and NaNs become some number.
fn scaled(x: Real<'_>) -> Scaled<'_> {
    let (code, float) = (x.code, x.code.float);
    let (fraction_bits, digits) = (float.fraction_bits(), i64::from(float.digits()));
    let magnitude = x.abs();
    let is_subnormal = magnitude.lt(float.least_normal());
    let bits = is_subnormal.select(magnitude * (digits as f64).exp2(), magnitude).bits();
    let by = is_subnormal.select(code.int(digits), code.int(0));
    let exponent = bits.shr_zeros(fraction_bits) - (float.bias() + i64::from(fraction_bits)) - by;
    let hidden = 1 << fraction_bits;
    Scaled { mantissa: (bits & (hidden - 1)) | hidden, exponent }
}

/// Quotient and remainder of magnitudes as integers, and what the quotient is rounded to.
struct Division<'c> {
    quotient: Int<'c>,
    /// Less than `divisor`, or both arguments are used as they are: see `difference`.
    remainder: Int<'c>,
    divisor: Int<'c>,
    /// The exponent of the remainder and the divisor.
    exponent: Int<'c>,
    /// By how much the exponent of the dividend is larger. If it is negative nothing was divided.
    difference: Int<'c>,
}

fn divide<'c>(x: Real<'c>, y: Real<'c>) -> Division<'c> {
    let (code, float) = (x.code, x.code.float);
    let (x, y) = (scaled(x), scaled(y));
    let difference = x.exponent - y.exponent;
    let chunk = i64::from(float.width() - float.digits());
    let first = [x.mantissa / y.mantissa, x.mantissa % y.mantissa, difference];
    let [quotient, remainder, _] = code.repeat(
        first.map(|value| value.value),
        |[_, _, left]| code.as_int(left).gt(0),
        |values| {
            let [quotient, remainder, left] = values.map(|value| code.as_int(value));
            let by = left.min(chunk);
            let dividend = remainder << by;
            let quotient = (quotient << by) + dividend / y.mantissa;
            [quotient.value, (dividend % y.mantissa).value, (left - by).value]
        },
    );
    let is_less = difference.lt(0);
    Division {
        quotient: is_less.select(code.int(0), code.as_int(quotient)),
        remainder: is_less.select(x.mantissa, code.as_int(remainder)),
        // If the dividend's exponent is one less, this is the divisor with that exponent.
        divisor: is_less.select(y.mantissa << 1, y.mantissa),
        exponent: is_less.select(x.exponent, y.exponent),
        difference,
    }
}

/// Whether the remainder is not a number, for finite or infinite arguments.
fn is_undefined<'c>(x: Real<'c>, y: Real<'c>) -> Bool<'c> {
    y.equals(0.0) | x.abs().equals(f64::INFINITY) | x.is_nan() | y.is_nan()
}

pub(crate) fn fmod<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let Division { remainder, exponent, difference, .. } = divide(x, y);
    let result = scale(remainder.to_real(), exponent).copysign(x);
    let is_less = difference.lt(0) | x.equals(0.0) | y.abs().equals(f64::INFINITY);
    is_undefined(x, y).select(x.code.nan(), is_less.select(x, result))
}

/// The remainder of the quotient rounded to nearest, ties to even, and the quotient's low seven bits with its sign.
pub(crate) fn remquo<'c>(x: Real<'c>, y: Real<'c>) -> (Real<'c>, Int<'c>) {
    let code = x.code;
    let Division { quotient, remainder, divisor, exponent, difference } = divide(x, y);
    let twice = remainder << 1;
    let is_up = twice.gt(divisor) | (twice.equals(divisor) & quotient.is_odd());
    let is_up = is_up & difference.gt(-2);
    let magnitude = is_up.select(divisor - remainder, remainder);
    let result = scale(magnitude.to_real(), exponent).copysign(x).negated_if(is_up);
    let is_tiny = difference.lt(-1) | x.equals(0.0) | y.abs().equals(f64::INFINITY);
    let result = is_tiny.select(x, result);
    let is_undefined = is_undefined(x, y);

    let quotient = (quotient + is_up.as_int()) & 0x7f;
    let is_negative = (x.bits() ^ y.bits()).lt(0);
    let quotient = is_negative.select(-quotient, quotient);
    let quotient = (is_tiny | is_undefined).select(code.int(0), quotient);
    (is_undefined.select(code.nan(), result), quotient.narrowed())
}
