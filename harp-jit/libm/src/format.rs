//! The two formats of floats, and constants that exist in both.

use crate::table::Float;

impl Float {
    /// The number of significant bits, the leading one counted.
    pub(crate) fn digits(self) -> u32 {
        self.pick(f32::MANTISSA_DIGITS, f64::MANTISSA_DIGITS)
    }

    /// The number of bits of a mantissa as stored.
    pub(crate) fn fraction_bits(self) -> u32 {
        self.digits() - 1
    }

    /// What is added to exponents when they are stored; also the largest exponent.
    pub(crate) fn bias(self) -> i64 {
        self.pick(127, 1023)
    }

    /// The number of bits.
    pub(crate) fn width(self) -> u32 {
        self.pick(32, 64)
    }

    /// The bits of infinity.
    pub(crate) fn infinity_bits(self) -> i64 {
        self.pick(f32::INFINITY.to_bits().into(), f64::INFINITY.to_bits() as i64)
    }

    /// The bits of the nearest float.
    pub(crate) fn bits(self, number: f64) -> i64 {
        self.pick((number as f32).to_bits().into(), number.to_bits() as i64)
    }

    /// The smallest number that is not subnormal.
    pub(crate) fn least_normal(self) -> f64 {
        self.pick(f32::MIN_POSITIVE.into(), f64::MIN_POSITIVE)
    }

    /// The value for this format.
    pub(crate) fn pick<T>(self, single: T, double: T) -> T {
        match self {
            Float::F32 => single,
            Float::F64 => double,
        }
    }
}

/// A real number as the sum of two floats, the first of which is nearest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constant {
    pub(crate) single: (f32, f32),
    pub(crate) double: (f64, f64),
}

impl Constant {
    /// The two floats.
    pub(crate) fn parts(&self, float: Float) -> [f64; 2] {
        let (high, low) = self.single;
        let (high, low) = float.pick((high.into(), low.into()), self.double);
        [high, low]
    }
}

/// A real number as the sum of three floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thirds {
    pub(crate) single: [f32; 3],
    pub(crate) double: [f64; 3],
}

impl Thirds {
    /// The three floats.
    pub(crate) fn parts(&self, float: Float) -> [f64; 3] {
        float.pick(self.single.map(f64::from), self.double)
    }
}

/// The coefficients of a polynomial, the lowest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polynomial {
    pub(crate) single: &'static [f32],
    pub(crate) double: &'static [f64],
}

impl Polynomial {
    /// The coefficients.
    pub(crate) fn coefficients(&self, float: Float) -> Vec<f64> {
        let single = || self.single.iter().map(|&c| c.into()).collect();
        match float {
            Float::F32 => single(),
            Float::F64 => self.double.to_vec(),
        }
    }
}

/// Lanczos's approximation of the gamma function: its parameter, and a fraction of two polynomials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanczos {
    pub(crate) single_g: f32,
    pub(crate) single_numerator: &'static [f32],
    pub(crate) single_denominator: &'static [f32],
    pub(crate) double_g: f64,
    pub(crate) double_numerator: &'static [f64],
    pub(crate) double_denominator: &'static [f64],
}

impl Lanczos {
    /// The parameter, the numerator's coefficients and the denominator's.
    pub(crate) fn parts(&self, float: Float) -> (f64, Vec<f64>, Vec<f64>) {
        let (numerator, denominator) = (
            Polynomial { single: self.single_numerator, double: self.double_numerator },
            Polynomial { single: self.single_denominator, double: self.double_denominator },
        );
        let g = float.pick(self.single_g.into(), self.double_g);
        (g, numerator.coefficients(float), denominator.coefficients(float))
    }
}
