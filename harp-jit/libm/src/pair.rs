//! Numbers as unevaluated sums of two floats, with about twice as many digits.
//!
//! Error-free sums and products are those of Dekker (A floating-point technique for extending the available
//! precision, 1971) and Knuth (The Art of Computer Programming, volume 2, 4.2.2); the operations on pairs follow
//! Joldes, Muller and Popescu (Tight and rigorous error bounds for basic building blocks of double-word arithmetic,
//! 2017), with relative errors of a few units of the square of the format's.

use std::ops;

use crate::Fma;
use crate::code::{Code, Real};
use crate::format::Constant;

/// The sum `high + low`, where `high` is the float nearest to it.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'c> {
    pub(crate) high: Real<'c>,
    pub(crate) low: Real<'c>,
}

impl<'c> Code<'c> {
    /// A constant to twice the digits.
    pub(crate) fn pair(&'c self, constant: &Constant) -> Pair<'c> {
        let [high, low] = constant.parts(self.float).map(|part| self.real(part));
        Pair { high, low }
    }
}

/// A number as the sum of two with half the digits each, for products without error (Veltkamp 1968).
fn split(x: Real<'_>) -> (Real<'_>, Real<'_>) {
    let factor = f64::from(1 << x.code.float.digits().div_ceil(2)) + 1.0;
    let scaled = x * factor;
    let high = scaled - (scaled - x);
    (high, x - high)
}

impl<'c> Pair<'c> {
    /// The exact sum; `x` is zero or its exponent is not below that of `y`.
    pub(crate) fn sum_ordered(x: Real<'c>, y: Real<'c>) -> Pair<'c> {
        let high = x + y;
        Pair { high, low: y - (high - x) }
    }

    /// The exact sum.
    pub(crate) fn sum(x: Real<'c>, y: Real<'c>) -> Pair<'c> {
        let high = x + y;
        let of_y = high - x;
        let low = (x - (high - of_y)) + (y - of_y);
        Pair { high, low }
    }

    /// The exact product, as long as its low part does not underflow.
    pub(crate) fn product(x: Real<'c>, y: Real<'c>) -> Pair<'c> {
        let high = x * y;
        let low = match x.code.fma {
            Fma::Fast => x.fused(y, -high),
            Fma::Slow => {
                let ((x1, x2), (y1, y2)) = (split(x), split(y));
                ((x1 * y1 - high) + x1 * y2 + x2 * y1) + x2 * y2
            }
        };
        Pair { high, low }
    }

    /// The quotient of a float and a pair.
    pub(crate) fn quotient(x: Real<'c>, y: Pair<'c>) -> Pair<'c> {
        let high = x / y.high;
        let product = Pair::product(high, y.high);
        let rest = ((x - product.high) - product.low) - high * y.low;
        Pair::sum_ordered(high, rest / y.high)
    }

    /// The float nearest to it.
    pub(crate) fn rounded(self) -> Real<'c> {
        self.high + self.low
    }
}

impl<'c> ops::Add for Pair<'c> {
    type Output = Pair<'c>;

    fn add(self, y: Pair<'c>) -> Pair<'c> {
        let (high, low) = (Pair::sum(self.high, y.high), Pair::sum(self.low, y.low));
        let sum = Pair::sum_ordered(high.high, high.low + low.high);
        Pair::sum_ordered(sum.high, sum.low + low.low)
    }
}

impl<'c> ops::Neg for Pair<'c> {
    type Output = Pair<'c>;

    fn neg(self) -> Pair<'c> {
        Pair { high: -self.high, low: -self.low }
    }
}

impl<'c> ops::Mul<Real<'c>> for Pair<'c> {
    type Output = Pair<'c>;

    fn mul(self, y: Real<'c>) -> Pair<'c> {
        let product = Pair::product(self.high, y);
        Pair::sum_ordered(product.high, self.low.mul_add(y, product.low))
    }
}

impl<'c> ops::Mul for Pair<'c> {
    type Output = Pair<'c>;

    fn mul(self, y: Pair<'c>) -> Pair<'c> {
        let product = Pair::product(self.high, y.high);
        let cross = self.high.mul_add(y.low, self.low * y.high);
        Pair::sum_ordered(product.high, product.low + cross)
    }
}
