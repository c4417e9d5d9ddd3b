//! Errors in units in the last place.

use harp_libm::Float;

/// A number as the sum of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    pub high: f64,
    pub low: f64,
}

impl From<f64> for Wide {
    fn from(high: f64) -> Wide {
        Wide { high, low: 0.0 }
    }
}

/// By how many ulps of the exact number a result differs from it. The overflow threshold counts as infinity. A result
/// or an exact number that is not a number counts as infinitely wrong, unless both are.
pub fn ulps(result: f64, exact: Wide, float: Float) -> f64 {
    if result.is_nan() || exact.high.is_nan() {
        return if result.is_nan() && exact.high.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if result == exact.high && (exact.low == 0.0 || result.is_infinite()) {
        return 0.0;
    }
    let (digits, most, least): (i32, i32, i32) = match float {
        Float::F32 => (24, 128, -126),
        Float::F64 => (53, 1024, -1022),
    };
    // Everything is scaled so that 2^1024 exists, and the results' ulps are normal.
    let scale = if exact.high.abs() > 1.0 { -200 } else { 200 };
    let scaled = |x: f64| {
        let limit = libm::ldexp(1.0, most + scale);
        if x.is_infinite() { limit.copysign(x) } else { libm::ldexp(x, scale).clamp(-limit, limit) }
    };
    let magnitude = scaled(exact.high).abs();
    let exponent = libm::ilogb(magnitude).min(most - 1 + scale).max(least + scale);
    let ulp = libm::ldexp(1.0, exponent - (digits - 1));
    ((scaled(result) - scaled(exact.high)) - scaled(exact.low)).abs() / ulp
}
