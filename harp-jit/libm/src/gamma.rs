//! The gamma function and the logarithm of its magnitude.

use crate::code::{Int, Real};
use crate::constants::{LANCZOS, LGAMMA, LN_SQRT_2_PI, LOG2_E, PI, RECIPROCAL_PI, STIRLING};
use crate::exponential::scale;
use crate::logarithm::log_positive;
use crate::pair::Pair;
use crate::power::{exp2_pair, log2_pair};
use crate::trigonometric::sinpi;

/// z Γ(z) = 2^exponent `mantissa` for positive z.
struct Factorial<'c> {
    mantissa: Real<'c>,
    exponent: Int<'c>,
}

/// Lanczos's approximation, Γ(z) = (t / e)^(z - 1/2) e^-g L(z) with t = z + g - 1/2 (A precision approximation of the
/// gamma function, SIAM Journal on Numerical Analysis 1, 1964; the sum of fractions L as one fraction after Toth's
/// analysis, 2004). The power is taken with twice the digits.
fn factorial(z: Real<'_>) -> Factorial<'_> {
    let code = z.code;
    let (g, numerator, denominator) = LANCZOS.parts(code.float);
    // What t loses by rounding comes in again by the exponent's derivative.
    let Pair { high: t, low: lost } = Pair::sum(z, code.real(g - 0.5));
    let exponent = log2_pair(t) * (z - 0.5) + -(code.pair(&LOG2_E) * t);
    let slope = ((z - 0.5) / t - 1.0) * code.near(&LOG2_E);
    let exponent = Pair { low: slope.mul_add(lost, exponent.low), ..exponent };
    let power = exp2_pair(exponent);
    let sum = z.horner(&numerator) / z.horner(&denominator);
    Factorial { mantissa: (power.tail + 1.0) * sum, exponent: power.exponent }
}

/// Γ(-z) = -π / (z Γ(z) sin πz).
fn reflected<'c>(z: Real<'c>, factorial: &Factorial<'c>) -> Real<'c> {
    let denominator = factorial.mantissa * sinpi(z);
    let result = scale(-(z.code.near(&PI) / denominator), -factorial.exponent);
    denominator.equals(0.0).select(z.code.nan(), result)
}

pub(crate) fn tgamma(x: Real<'_>) -> Real<'_> {
    let code = x.code;
    // Beyond, results are infinite, or zero for negative numbers.
    let magnitude = x.abs();
    let bounded = magnitude.clamp(0.0, code.float.pick(48.0, 190.0));
    let factorial = factorial(bounded);
    // Neither the quotient by a small number nor z Γ(z) for a large one may overflow too early.
    let (below_one, above_one) = (bounded.clamp(0.0, 1.0), bounded.clamp(1.0, f64::INFINITY));
    let positive = scale(factorial.mantissa / above_one, factorial.exponent) / below_one;
    let is_negative = x.lt(0.0);
    let [result] =
        code.unless(is_negative, [positive.value], || [reflected(magnitude, &factorial).value]);
    let result = code.as_real(result);
    let result = x.equals(0.0).select(code.infinity().copysign(x), result);
    x.equals(f64::NEG_INFINITY).select(code.nan(), result)
}

/// ln Γ(z) for positive z: near 1 and 2, where it is zero, with these zeros as factors, after a step of
/// Γ(z + 1) = z Γ(z); from 3 on Stirling's series.
fn log_gamma_positive(z: Real<'_>) -> Real<'_> {
    let code = z.code;
    let one = code.real(1.0);
    let (is_low, is_middle, is_large) = (z.lt(1.0), z.gt(2.0), z.ge(3.0));
    let argument = is_middle.select(z - 1.0, one);
    let log = log_positive(is_large.select(z, is_low.select(z, argument)));

    let above_one = is_low.select(z, is_middle.select(z - 2.0, z - 1.0));
    let product = above_one * (above_one - 1.0);
    let near = product * (above_one - 0.5).poly(&LGAMMA);
    let near = near + is_low.select(-log, log);

    let reciprocal = 1.0 / z;
    let series = reciprocal * (reciprocal * reciprocal).poly(&STIRLING);
    let constant = LN_SQRT_2_PI.parts(code.float)[0] - 0.5;
    let far = (z - 0.5).mul_add(log - 1.0, series + constant);
    is_large.select(far, near)
}

/// ln |Γ(x)| and the sign of Γ(x), which is 0 at poles.
pub(crate) fn lgamma_r(x: Real<'_>) -> (Real<'_>, Int<'_>) {
    let code = x.code;
    let magnitude = x.abs();
    let (is_finite, is_reflected) = (magnitude.lt(f64::INFINITY), x.le(0.0));
    let z = is_finite.select(magnitude, code.real(1.0));
    let positive = log_gamma_positive(is_reflected.select(z + 1.0, z));
    let one = code.int(1);
    // Γ(-z) = -π / (Γ(z + 1) sin πz)
    let [result, sign] = code.unless(is_reflected, [positive.value, one.value], || {
        let sin = sinpi(z);
        let is_pole = sin.equals(0.0);
        let ratio = is_pole.select(code.real(1.0), sin.abs() * code.near(&RECIPROCAL_PI));
        let log = is_pole.select(code.infinity(), -(log_positive(ratio) + positive));
        let sign = sin.lt(0.0).select(one, code.int(-1));
        [log.value, is_pole.select(code.int(0), sign).value]
    });
    let sign = is_finite.select(code.as_int(sign), one);
    (is_finite.select(code.as_real(result), magnitude), sign.narrowed())
}
