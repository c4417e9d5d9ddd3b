//! Inverse trigonometric functions.
//!
//! They are computed in a unit: radians, or half turns for the functions whose names end in `pi`.

use crate::code::{Bool, Real};
use crate::constants::{ASIN, ATAN, PI, RECIPROCAL_PI};
use crate::pair::Pair;

/// What angles are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Radian,
    HalfTurn,
}

impl Unit {
    /// A number of radians in this unit.
    fn of_radians(self, radians: Real<'_>) -> Real<'_> {
        match self {
            Unit::Radian => radians,
            Unit::HalfTurn => radians * radians.code.near(&RECIPROCAL_PI),
        }
    }

    /// A half turn divided by a power of 2, as the sum of two floats.
    fn half_turn_over(self, divisor: f64, like: Real<'_>) -> [f64; 2] {
        let parts = match self {
            Unit::Radian => PI.parts(like.code.float),
            Unit::HalfTurn => [1.0, 0.0],
        };
        parts.map(|part| part / divisor)
    }
}

/// atan t for |t| ≤ tan(π/8).
fn atan_reduced(t: Real<'_>) -> Real<'_> {
    let z = t * t;
    (t * z).mul_add(z.poly(&ATAN), t)
}

/// The angle of the point (x, y), neither of them negative and not both zero or infinite. With t = y / x it is atan t,
/// π/4 + atan((t - 1) / (t + 1)) or π/2 - atan(1 / t), whichever argument is smallest (Moshier, Methods and Programs
/// for Mathematical Functions, 1989, chapter 3). The result is a multiple of an eighth of a turn, and a rest.
fn quadrant_angle<'c>(y: Real<'c>, x: Real<'c>, unit: Unit) -> Pair<'c> {
    let code = x.code;
    let cot_of_eighth = std::f64::consts::SQRT_2 + 1.0;
    let is_steep = y.gt(x * cot_of_eighth);
    let is_middle = (y * cot_of_eighth).gt(x);
    let dividend = is_steep.select(-x, is_middle.select(y - x, y));
    let divisor = is_steep.select(y, is_middle.select(y + x, x));
    let angle = unit.of_radians(atan_reduced(dividend / divisor));
    let (quarter, eighth) = (unit.half_turn_over(2.0, x), unit.half_turn_over(4.0, x));
    let base = |i: usize| {
        let (quarter, eighth) = (code.real(quarter[i]), code.real(eighth[i]));
        is_steep.select(quarter, is_middle.select(eighth, code.real(0.0)))
    };
    Pair { high: base(0), low: angle + base(1) }
}

pub(crate) fn atan(x: Real<'_>, unit: Unit) -> Real<'_> {
    quadrant_angle(x.abs(), x.code.real(1.0), unit).rounded().copysign(x)
}

pub(crate) fn atan2<'c>(y: Real<'c>, x: Real<'c>, unit: Unit) -> Real<'c> {
    let (code, float) = (x.code, x.code.float);
    // Nothing overflows at an eighth of large numbers, no product is subnormal at a multiple of small ones, and what
    // vanishes did not matter beside the larger one.
    let bias = float.bias() as f64;
    let is_large = |x: Real<'c>| x.abs().ge((bias - 3.0).exp2());
    let is_small = |x: Real<'c>| x.abs().lt((64.0 - bias).exp2());
    let one = code.real(1.0);
    let up = (is_small(x) & is_small(y)).select(code.real(64.0_f64.exp2()), one);
    let factor = (is_large(x) | is_large(y)).select(code.real(0.125), up);
    // Two infinities are as 1 and 1, and two zeros as 0 and 1.
    let both_infinite = x.abs().equals(f64::INFINITY) & y.abs().equals(f64::INFINITY);
    let both_zero = x.equals(0.0) & y.equals(0.0);
    let abscissa = (both_infinite | both_zero).select(one, x.abs() * factor);
    let ordinate = both_infinite.select(one, y.abs() * factor);
    let angle = quadrant_angle(ordinate, abscissa, unit);
    let [high, low] = unit.half_turn_over(1.0, x);
    let beyond = (high - angle.high) + (low - angle.low);
    x.is_sign_negative().select(beyond, angle.rounded()).copysign(y)
}

/// asin t and, for numbers x above 1/2, half of acos x = 2 asin √((1 - x) / 2) (Sun's fdlibm, 1993, e_asin.c).
struct HalfAngle<'c> {
    is_small: Bool<'c>,
    angle: Real<'c>,
}

fn half_angle(magnitude: Real<'_>, unit: Unit) -> HalfAngle<'_> {
    let is_small = magnitude.le(0.5);
    let z = is_small.select(magnitude * magnitude, (1.0 - magnitude) * 0.5);
    let t = is_small.select(magnitude, z.sqrt());
    HalfAngle { is_small, angle: unit.of_radians((t * z).mul_add(z.poly(&ASIN), t)) }
}

pub(crate) fn asin(x: Real<'_>, unit: Unit) -> Real<'_> {
    let HalfAngle { is_small, angle } = half_angle(x.abs(), unit);
    let [high, low] = unit.half_turn_over(2.0, x);
    is_small.select(angle, high - (angle * 2.0 - low)).copysign(x)
}

pub(crate) fn acos(x: Real<'_>, unit: Unit) -> Real<'_> {
    let HalfAngle { is_small, angle } = half_angle(x.abs(), unit);
    let [high, low] = unit.half_turn_over(2.0, x);
    let twice = angle * 2.0;
    let beyond = high * 2.0 - (twice - low * 2.0);
    let is_negative = x.is_sign_negative();
    let signed = is_negative.select(-angle, angle);
    is_small.select(high - (signed - low), is_negative.select(beyond, twice))
}
