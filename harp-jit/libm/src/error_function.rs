//! The error function and its complement.
//!
//! Shepherd and Laframboise (Chebyshev approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞, Mathematics of
//! Computation 36, 1981) found a variable in which one polynomial approximates the complement from 0 on.

use crate::code::Real;
use crate::constants::{ERF, ERFC, ERFC_SHIFT};
use crate::exponential::{natural, scale};
use crate::pair::Pair;

/// The complement for x ≥ 0.
fn complement(x: Real<'_>) -> Real<'_> {
    // Beyond, it vanishes.
    let x = x.clamp(0.0, x.code.float.pick(11.0, 28.0));
    let t = (x - ERFC_SHIFT) / (x + ERFC_SHIFT);
    let factor = t.poly(&ERFC) / x.mul_add(2.0, 1.0);
    // An error of the exponent is a relative error of the power.
    let square = Pair::product(x, x);
    let power = natural(-square.high);
    let mantissa = (power.tail + 1.0) * (1.0 - square.low);
    scale(mantissa * factor, power.exponent)
}

pub(crate) fn erfc(x: Real<'_>) -> Real<'_> {
    let result = complement(x.abs());
    x.lt(0.0).select(2.0 - result, result)
}

pub(crate) fn erf(x: Real<'_>) -> Real<'_> {
    let magnitude = x.abs();
    let near_zero = magnitude * (x * x).poly(&ERF);
    let result = magnitude.lt(1.0).select(near_zero, 1.0 - complement(magnitude));
    result.copysign(x)
}
