//! References with more digits than `f64`, in numbers of any precision.

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};
use harp_libm::Math;

use super::Numbers;
use super::ulps::Wide;

/// The precision, in bits, of what is computed without cancellation.
const BITS: usize = 256;
/// The last bits may be wrong: exact rounding could need any number of digits.
const RM: RoundingMode = RoundingMode::None;

/// Computes references.
pub(crate) struct Reference {
    constants: Consts,
    /// The Bernoulli numbers with even indices from 2 on.
    bernoulli: Vec<BigFloat>,
}

impl Default for Reference {
    fn default() -> Reference {
        Reference { constants: Consts::new().unwrap(), bernoulli: bernoulli_numbers(32) }
    }
}

impl Reference {
    /// The exact results of an approximated function for finite arguments where they are neither zero nor infinite.
    pub(crate) fn results(&mut self, math: Math, [x, y, _]: Numbers<3>) -> [Wide; 2] {
        let one = |value: BigFloat| [to_wide(&value), Wide::from(0.0)];
        match math {
            Math::Sincos => {
                [self.unary(Math::Sin, x), self.unary(Math::Cos, x)].map(|value| to_wide(&value))
            }
            Math::LgammaR => one(self.log_gamma(x)),
            Math::Atan2 => one(self.atan2(x, y)),
            Math::Atan2pi => {
                let angle = self.atan2(x, y);
                one(div(&angle, &self.pi()))
            }
            Math::Hypot => {
                let (x, y) = (big(x), big(y));
                one(add(&mul(&x, &x), &mul(&y, &y)).sqrt(BITS, RM))
            }
            Math::Pow | Math::Pown | Math::Powr => {
                let power = big(x.abs()).pow(&big(y), BITS, RM, &mut self.constants);
                one(if x < 0.0 && y % 2.0 != 0.0 { power.neg() } else { power })
            }
            Math::Rootn => {
                let exponent = div(&big(1.0), &big(y));
                let root = big(x.abs()).pow(&exponent, BITS, RM, &mut self.constants);
                one(if x < 0.0 { root.neg() } else { root })
            }
            _ => one(self.unary(math, x)),
        }
    }

    fn pi(&mut self) -> BigFloat {
        self.constants.pi(BITS, RM)
    }

    fn unary(&mut self, math: Math, number: f64) -> BigFloat {
        let x = big(number);
        let pi = self.pi();
        let cc = &mut self.constants;
        match math {
            Math::Acos => x.acos(BITS, RM, cc),
            Math::Acosh => x.acosh(BITS, RM, cc),
            Math::Acospi => div(&x.acos(BITS, RM, cc), &pi),
            Math::Asin => x.asin(BITS, RM, cc),
            Math::Asinh => x.asinh(BITS, RM, cc),
            Math::Asinpi => div(&x.asin(BITS, RM, cc), &pi),
            Math::Atan => x.atan(BITS, RM, cc),
            Math::Atanh => x.atanh(BITS, RM, cc),
            Math::Atanpi => div(&x.atan(BITS, RM, cc), &pi),
            Math::Cbrt => x.cbrt(BITS, RM),
            Math::Cos => x.cos(BITS, RM, cc),
            Math::Cosh => x.cosh(BITS, RM, cc),
            Math::Cospi => mul(&big(number % 2.0), &pi).cos(BITS, RM, cc),
            Math::Erf => self.erf(number),
            Math::Erfc => self.erfc(number),
            Math::Exp => x.exp(BITS, RM, cc),
            Math::Exp10 => big(10.0).pow(&x, BITS, RM, cc),
            Math::Exp2 => big(2.0).pow(&x, BITS, RM, cc),
            Math::Expm1 if number.abs() < 1e-40 => add(&x, &mul(&mul(&x, &x), &big(0.5))),
            Math::Expm1 => x.exp(3 * BITS, RM, cc).sub(&big(1.0), 3 * BITS, RM),
            Math::Lgamma => self.log_gamma(number),
            Math::Log => x.ln(BITS, RM, cc),
            Math::Log10 => x.log10(BITS, RM, cc),
            Math::Log1p => x.add_full_prec(&big(1.0)).ln(5 * BITS, RM, cc),
            Math::Log2 => x.log2(BITS, RM, cc),
            Math::Rsqrt => div(&big(1.0), &x.sqrt(BITS, RM)),
            Math::Sin => x.sin(BITS, RM, cc),
            Math::Sinh => x.sinh(BITS, RM, cc),
            Math::Sinpi => self.sinpi(number),
            Math::Tan => x.tan(BITS, RM, cc),
            Math::Tanh => x.tanh(BITS, RM, cc),
            Math::Tanpi => mul(&big(number % 1.0), &pi).tan(BITS, RM, cc),
            Math::Tgamma => self.gamma(number),
            _ => unreachable!("{math:?} has another reference"),
        }
    }

    fn sinpi(&mut self, x: f64) -> BigFloat {
        let angle = mul(&big(x % 2.0), &self.pi());
        angle.sin(BITS, RM, &mut self.constants)
    }

    fn atan2(&mut self, y: f64, x: f64) -> BigFloat {
        let pi = self.pi();
        if x == 0.0 && y != 0.0 {
            return mul(&pi, &big(0.5_f64.copysign(y)));
        }
        let angle = div(&big(y), &big(x)).atan(BITS, RM, &mut self.constants);
        match (x < 0.0, y.is_sign_negative()) {
            (false, _) => angle,
            (true, false) => add(&angle, &pi),
            (true, true) => add(&angle, &pi.neg()),
        }
    }

    /// erf |x| = 2/√π e^-x² (x + 2x³/3 + 4x⁵/15 + ...), whose terms are all positive.
    fn erf_magnitude(&mut self, x: f64, bits: usize) -> BigFloat {
        // Beyond, the difference from 1 is far below the format's.
        let x = big(x.abs().min(30.0));
        let square = x.mul(&x, bits, RM);
        let twice = square.add(&square, bits, RM);
        let (mut term, mut sum, mut odd) = (x.clone(), x, 3_u64);
        while term.exponent() > sum.exponent().map(|e| e - bits as i32) {
            term = term.mul(&twice, bits, RM);
            term = term.div(&BigFloat::from_word(odd, 64), bits, RM);
            sum = sum.add(&term, bits, RM);
            odd += 2;
        }
        let power = square.neg().exp(bits, RM, &mut self.constants);
        let root = self.constants.pi(bits, RM).sqrt(bits, RM);
        let factor = power.mul(&big(2.0), bits, RM).div(&root, bits, RM);
        sum.mul(&factor, bits, RM)
    }

    fn erf(&mut self, x: f64) -> BigFloat {
        let magnitude = self.erf_magnitude(x, BITS);
        if x < 0.0 { magnitude.neg() } else { magnitude }
    }

    fn erfc(&mut self, x: f64) -> BigFloat {
        // As many bits more as cancel.
        let x = x.min(30.0);
        let cancelled = if x > 0.0 { (x * x * 1.45) as usize } else { 0 };
        let bits = (BITS + cancelled).next_multiple_of(64);
        let erf = self.erf_magnitude(x, bits);
        let one = BigFloat::from_f64(1.0, bits);
        if x < 0.0 { one.add(&erf, bits, RM) } else { one.sub(&erf, bits, RM) }
    }

    /// ln Γ(z) for z > 0 by Stirling's series for z + n, and the logarithm of z (z + 1) ... (z + n - 1).
    fn log_gamma_positive(&mut self, z: f64) -> BigFloat {
        let (mut product, mut shifted) = (big(1.0), big(z));
        if z < 60.0 {
            for _ in 0..60 {
                product = mul(&product, &shifted);
                shifted = add(&shifted, &big(1.0));
            }
        }
        let z = shifted;
        let cc = &mut self.constants;
        let log = z.ln(BITS, RM, cc);
        let mut sum = add(&mul(&add(&z, &big(-0.5)), &log), &z.neg());
        let two_pi = mul(&big(2.0), &cc.pi(BITS, RM));
        sum = add(&sum, &mul(&big(0.5), &two_pi.ln(BITS, RM, cc)));
        let square = mul(&z, &z);
        let mut power = z;
        for (index, bernoulli) in self.bernoulli.iter().enumerate() {
            let n = 2.0 * (index + 1) as f64;
            let divisor = mul(&power, &big(n * (n - 1.0)));
            sum = add(&sum, &div(bernoulli, &divisor));
            power = mul(&power, &square);
        }
        add(&sum, &product.ln(BITS, RM, &mut self.constants).neg())
    }

    /// ln |Γ(x)|; of negative numbers by Γ(-z) = -π / (z Γ(z) sin πz).
    fn log_gamma(&mut self, x: f64) -> BigFloat {
        let log = self.log_gamma_positive(x.abs());
        if x > 0.0 {
            return log;
        }
        let product = mul(&big(x.abs()), &self.sinpi(x).abs());
        let ratio = div(&self.pi(), &product);
        add(&ratio.ln(BITS, RM, &mut self.constants), &log.neg())
    }

    fn gamma(&mut self, x: f64) -> BigFloat {
        let magnitude = self.log_gamma(x).exp(BITS, RM, &mut self.constants);
        let is_negative = x < 0.0 && x.floor() % 2.0 != 0.0;
        if is_negative { magnitude.neg() } else { magnitude }
    }
}

/// The number itself. (The library takes subnormal numbers for others.)
fn big(x: f64) -> BigFloat {
    let (mantissa, exponent) = libm::frexp(x);
    let mut number = BigFloat::from_f64(mantissa, 64);
    if let Some(own) = number.exponent().filter(|_| x != 0.0) {
        number.set_exponent(own + exponent);
    }
    number
}

fn add(x: &BigFloat, y: &BigFloat) -> BigFloat {
    x.add(y, BITS, RM)
}

fn mul(x: &BigFloat, y: &BigFloat) -> BigFloat {
    x.mul(y, BITS, RM)
}

fn div(x: &BigFloat, y: &BigFloat) -> BigFloat {
    x.div(y, BITS, RM)
}

/// B₂, B₄, ... by the recurrence of all Bernoulli numbers, in which digits cancel.
fn bernoulli_numbers(count: usize) -> Vec<BigFloat> {
    let bits = 1024;
    let mut numbers = vec![BigFloat::from_f64(1.0, bits)];
    for n in 1..=2 * count {
        let mut sum = BigFloat::from_f64(0.0, bits);
        let mut binomial = BigFloat::from_f64(1.0, bits);
        for (k, number) in numbers.iter().enumerate() {
            sum = sum.add(&binomial.mul(number, bits, RM), bits, RM);
            let (above, below) = ((n + 1 - k) as f64, (k + 1) as f64);
            binomial = binomial.mul(&big(above), bits, RM).div(&big(below), bits, RM);
        }
        numbers.push(sum.div(&big(-((n + 1) as f64)), bits, RM));
    }
    numbers.into_iter().skip(2).step_by(2).collect()
}

/// The highest 106 bits of a number.
fn to_wide(value: &BigFloat) -> Wide {
    let (words, _, sign, exponent, _) = value.as_raw_parts().unwrap();
    let word = |index: usize| words.len().checked_sub(index + 1).map_or(0, |i| words[i]);
    if value.is_zero() {
        return Wide::from(0.0);
    }
    let kept = word(0) >> 11 << 11;
    let rest = (u128::from(word(0) - kept) << 64) | u128::from(word(1));
    let sign = if sign == Sign::Neg { -1.0 } else { 1.0 };
    Wide {
        high: sign * libm::ldexp(kept as f64, -64),
        low: sign * libm::ldexp(rest as f64, -128),
        exponent,
    }
}
