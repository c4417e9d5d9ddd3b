//! Errors in units in the last place.

use harp_libm::Float;

/// The number `(high + low) 2^exponent`, where `high` is 0 or has a magnitude of 1/2 to 1, or is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wide {
    pub(crate) high: f64,
    pub(crate) low: f64,
    pub(crate) exponent: i32,
}

impl From<f64> for Wide {
    fn from(number: f64) -> Wide {
        if !number.is_finite() {
            return Wide { high: number, low: 0.0, exponent: 0 };
        }
        let (high, exponent) = libm::frexp(number);
        Wide { high, low: 0.0, exponent }
    }
}

impl Wide {
    /// About the same number.
    pub(crate) fn to_f64(self) -> f64 {
        libm::ldexp(self.high, self.exponent)
    }
}

/// By how many ulps of the exact number a result differs from it. An infinite result counts as the power of 2 beyond the
/// largest float. A result or an exact number that is not a number counts as infinitely wrong, unless both are.
pub(crate) fn ulps(result: f64, exact: Wide, float: Float) -> f64 {
    if result.is_nan() || exact.high.is_nan() {
        return if result.is_nan() && exact.high.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let (digits, most, least): (i32, i32, i32) = match float {
        Float::F32 => (24, 128, -125),
        Float::F64 => (53, 1024, -1021),
    };
    if result.is_infinite() {
        let is_beyond = exact.high.is_infinite() || exact.exponent > most;
        if is_beyond && result.signum() == exact.high.signum() {
            return 0.0;
        }
    }
    // Everything relative to the power of 2 of the exact number, if it is in the range of the format.
    let exponent = if exact.high == 0.0 { least } else { exact.exponent.clamp(least, most) };
    let scaled = |x: f64, by: i32| match x.is_infinite() {
        true => libm::ldexp(1.0_f64.copysign(x), most - exponent),
        false => libm::ldexp(x, by),
    };
    let result = scaled(result, -exponent);
    let by = exact.exponent - exponent;
    let (high, low) = (scaled(exact.high, by), scaled(exact.low, by));
    ((result - high) - low).abs() * libm::ldexp(1.0, digits)
}
