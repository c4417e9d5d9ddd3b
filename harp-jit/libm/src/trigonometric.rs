//! Sine, cosine and tangent.
//!
//! The argument is reduced to |r| ≤ π/4 and the number of quarter turns taken away; then the result is plus or minus
//! the sine or the cosine of r. Both are computed, because lanes need either.

use crate::code::{Int, Real};
use crate::constants::{COS, PI, SIN};
use crate::exponential::nearest;
use crate::pair::Pair;
use crate::reduction::{Angle, quarter_turns};

/// Sine and cosine of a number of at most π/4 (after Sun's fdlibm, 1993, k_sin.c and k_cos.c).
fn kernels(r: Pair<'_>) -> (Real<'_>, Real<'_>) {
    let (high, low) = (r.high, r.low);
    let z = high * high;
    let sin = high + (high * z).mul_add(z.poly(&SIN), low);
    // What 1 - z/2 loses by rounding comes in again; the derivative's term is -r low.
    let half = z * 0.5;
    let first = 1.0 - half;
    let lost = (1.0 - first) - half;
    let cos = first + (z * z).mul_add(z.poly(&COS), lost - high * low);
    (sin, cos)
}

impl<'c> Angle<'c> {
    fn sin_cos(&self) -> (Real<'c>, Real<'c>) {
        let (sin, cos) = kernels(self.rest);
        let is_odd = self.quarters.is_odd();
        let sin_sign = self.quarters & 2;
        let cos_sign = (self.quarters + 1) & 2;
        let signed = |value: Real<'c>, sign: Int<'c>| {
            let by = value.code.float.width() - 2;
            (value.bits() ^ (sign << by)).as_bits()
        };
        (signed(is_odd.select(cos, sin), sin_sign), signed(is_odd.select(sin, cos), cos_sign))
    }

    fn tan(&self) -> Real<'c> {
        let (sin, cos) = kernels(self.rest);
        let is_odd = self.quarters.is_odd();
        is_odd.select(-cos, sin) / is_odd.select(sin, cos)
    }
}

/// `result`, or x where it is its own sine and tangent; that also keeps the sign of zero.
fn or_tiny<'c>(x: Real<'c>, result: Real<'c>) -> Real<'c> {
    let tiny = (-f64::from(x.code.float.digits() / 2 + 1)).exp2();
    x.abs().lt(tiny).select(x, result)
}

pub(crate) fn sin_cos(x: Real<'_>) -> (Real<'_>, Real<'_>) {
    let (sin, cos) = quarter_turns(x).sin_cos();
    (or_tiny(x, sin), cos)
}

pub(crate) fn tan(x: Real<'_>) -> Real<'_> {
    or_tiny(x, quarter_turns(x).tan())
}

/// The π-fold of a number of half turns. Whole turns are taken away without error before the multiplication.
fn half_turns(x: Real<'_>) -> Angle<'_> {
    let code = x.code;
    let turned = x - (x * 0.5).trunc() * 2.0;
    let (k, quarters) = nearest(turned * 2.0);
    let rest = turned - k * 0.5;
    let product = Pair::product(rest, code.near(&PI));
    let [_, low] = PI.parts(code.float);
    Angle { quarters, rest: Pair { low: rest.mul_add(low, product.low), ..product } }
}

/// `result`, or a zero with the sign of x if x is an integer; an infinite x gives a NaN before.
fn or_zero<'c>(x: Real<'c>, result: Real<'c>) -> Real<'c> {
    result.equals(0.0).select(x.code.real(0.0).copysign(x), result)
}

/// The sine of πx.
pub(crate) fn sinpi(x: Real<'_>) -> Real<'_> {
    or_zero(x, half_turns(x).sin_cos().0)
}

/// The cosine of πx, which is never -0.
pub(crate) fn cospi(x: Real<'_>) -> Real<'_> {
    half_turns(x).sin_cos().1 + 0.0
}

/// The tangent of πx. At integers and halves it is zero or infinite; there the sign is that of πx behind an even number of
/// half turns from zero, and the other one behind an odd number.
pub(crate) fn tanpi(x: Real<'_>) -> Real<'_> {
    let code = x.code;
    let angle = half_turns(x.abs());
    let edge = angle.quarters.is_odd().select(code.infinity(), code.real(0.0));
    let edge = edge.negated_if((angle.quarters & 2).differs(0));
    let is_edge = angle.rest.high.equals(0.0);
    is_edge.select(edge, angle.tan()).flipped_by(x)
}
