//! Roots and the hypotenuse.

use crate::code::Real;
use crate::pair::Pair;
use crate::rounding::is_ordinary;

/// Kahan's estimate by dividing the bits by 3, good to 5 bits; then Halley's iteration, which triples them, and a step
/// of Newton's with an exact residue (after Sun's fdlibm, 1993, s_cbrt.c).
pub(crate) fn cbrt(x: Real<'_>) -> Real<'_> {
    let (code, float) = (x.code, x.code.float);
    // Numbers are scaled by the cube of a power of 2, so that no cube overflows and no residue underflows.
    let (most, by) = float.pick((50.0_f64, 33.0_f64), (500.0, 333.0));
    let (is_large, is_small) = (x.abs().gt(most.exp2()), x.abs().lt((-most).exp2()));
    let power = |large: f64, small: f64| {
        let (large, small) = (code.real(large.exp2()), code.real(small.exp2()));
        is_large.select(large, is_small.select(small, code.real(1.0)))
    };
    let cube = x.abs() * power(-3.0 * by, 3.0 * by);
    // A third of the exponent plus what the bias and the mantissa's logarithm need on average.
    let third = (1_i128 << float.width()) / 3 + 1;
    let balance = (float.bias() as f64 * 2.0 / 3.0 - 0.033_062_356_51)
        * f64::from(float.fraction_bits()).exp2();
    let third = cube.bits().mul_high(code.int(third as i64));
    let mut root = (third + balance as i64).as_bits();
    for _ in 0..float.pick(1, 2) {
        let quotient = cube / (root * root);
        root = root.mul_add((quotient - root) / (root * 2.0 + quotient), root);
    }
    let square = Pair::product(root, root);
    let product = Pair::product(square.high, root);
    let residue = ((cube - product.high) - product.low) - square.low * root;
    let root = (root + residue / (square.high * 3.0)) * power(by, -by);
    is_ordinary(x).select(root.copysign(x), x)
}

pub(crate) fn rsqrt(x: Real<'_>) -> Real<'_> {
    1.0 / x.sqrt()
}

/// √(x² + y²) after scaling by a power of 2, so that squares neither overflow nor vanish.
pub(crate) fn hypot<'c>(x: Real<'c>, y: Real<'c>) -> Real<'c> {
    let (code, float) = (x.code, x.code.float);
    let (x, y) = (x.abs(), y.abs());
    let (most, by) = float.pick((60.0_f64, 90.0_f64), (500.0, 600.0));
    let larger = x.lt(y).select(y, x);
    let (up, down) = (code.real(by.exp2()), code.real((-by).exp2()));
    let (is_large, is_small) = (larger.gt(most.exp2()), larger.lt((-most).exp2()));
    let one = code.real(1.0);
    let factor = is_large.select(down, is_small.select(up, one));
    let back = is_large.select(up, is_small.select(down, one));
    let (a, b) = (x * factor, y * factor);
    let result = a.mul_add(a, b * b).sqrt() * back;
    let is_infinite = x.equals(f64::INFINITY) | y.equals(f64::INFINITY);
    is_infinite.select(code.infinity(), result)
}
