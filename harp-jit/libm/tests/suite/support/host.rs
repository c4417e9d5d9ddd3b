//! The functions as the host computes them: for `f32` in `f64`, which is exact enough to be the reference, and in the
//! function's own format, to compare errors.

use std::f64::consts::PI;

use harp_libm::Math;

use super::Numbers;

/// x modulo 2, and the nearest multiple of 1/2 taken away.
fn half_turns(x: f64) -> (f64, i32) {
    let turned = x % 2.0;
    let quarters = (turned * 2.0).round_ties_even();
    (turned - quarters * 0.5, quarters as i32)
}

fn sinpi(x: f64) -> f64 {
    let (rest, quarters) = half_turns(x);
    match quarters & 3 {
        0 => (PI * rest).sin(),
        1 => (PI * rest).cos(),
        2 => -(PI * rest).sin(),
        _ => -(PI * rest).cos(),
    }
}

fn tanpi(x: f64) -> f64 {
    let (rest, quarters) = half_turns(x);
    match quarters & 3 {
        0 | 2 => (PI * rest).tan(),
        // Halves are poles, whose sign is that of the integer below the magnitude.
        _ if rest == 0.0 && x.abs() % 2.0 == 0.5 => f64::INFINITY.copysign(x),
        _ if rest == 0.0 => -f64::INFINITY.copysign(x),
        _ => -1.0 / (PI * rest).tan(),
    }
}

fn cospi(x: f64) -> f64 {
    let (rest, quarters) = half_turns(x);
    match quarters & 3 {
        0 => (PI * rest).cos(),
        1 => -(PI * rest).sin(),
        2 => -(PI * rest).cos(),
        _ => (PI * rest).sin(),
    }
}

/// The results in `f64`, with errors of about its ulp; none for functions whose results are exact.
pub(crate) fn double(math: Math, args: Numbers<3>) -> Option<Numbers<2>> {
    // Of a signaling NaN, C libraries make a NaN also where they ignore a quiet one, as `pow` does for the power 0.
    let [x, y, _] = args.map(|x| if x.is_nan() { f64::NAN.copysign(x) } else { x });
    let result = match math {
        Math::Acos => x.acos(),
        Math::Acosh if x < 1.0 => f64::NAN,
        Math::Acosh => libm::acosh(x),
        Math::Acospi => x.acos() / PI,
        Math::Asin => x.asin(),
        Math::Asinh => libm::asinh(x),
        Math::Asinpi => x.asin() / PI,
        Math::Atan => x.atan(),
        Math::Atan2 => x.atan2(y),
        Math::Atan2pi => x.atan2(y) / PI,
        Math::Atanh => libm::atanh(x),
        Math::Atanpi => x.atan() / PI,
        Math::Cbrt => x.cbrt(),
        Math::Cos => x.cos(),
        Math::Cosh => x.cosh(),
        Math::Cospi => cospi(x),
        Math::Erf => libm::erf(x),
        Math::Erfc => libm::erfc(x),
        Math::Exp => x.exp(),
        Math::Exp10 => libm::exp10(x),
        Math::Exp2 => x.exp2(),
        Math::Expm1 => x.exp_m1(),
        Math::Hypot => x.hypot(y),
        Math::Lgamma => libm::lgamma(x),
        Math::LgammaR => {
            let (log, sign) = libm::lgamma_r(x);
            let is_pole = x == 0.0 || (x < 0.0 && x.fract() == 0.0);
            return Some([log, if is_pole { 0.0 } else { sign.into() }]);
        }
        Math::Log => x.ln(),
        Math::Log10 => x.log10(),
        Math::Log1p => x.ln_1p(),
        Math::Log2 => x.log2(),
        Math::Pow => x.powf(y),
        Math::Pown => x.powf(y),
        Math::Powr => powr(x, y),
        Math::Rootn => rootn(x, y),
        Math::Rsqrt => 1.0 / x.sqrt(),
        Math::Sin => x.sin(),
        Math::Sincos => return Some([x.sin(), x.cos()]),
        Math::Sinh => x.sinh(),
        Math::Sinpi => sinpi(x),
        Math::Tan => x.tan(),
        Math::Tanh => x.tanh(),
        Math::Tanpi => tanpi(x),
        Math::Tgamma => libm::tgamma(x),
        _ => return None,
    };
    Some([result, 0.0])
}

fn powr(x: f64, y: f64) -> f64 {
    let edge = x == 0.0 || x == f64::INFINITY;
    let undefined = x < 0.0 || x.is_nan() || y.is_nan();
    if undefined || (y == 0.0 && edge) || (x == 1.0 && y.is_infinite()) {
        return f64::NAN;
    }
    x.abs().powf(y)
}

fn rootn(x: f64, n: f64) -> f64 {
    let is_odd = n % 2.0 != 0.0;
    if n == 0.0 || (x < 0.0 && !is_odd) {
        return f64::NAN;
    }
    let root = x.abs().powf(1.0 / n);
    if is_odd { root.copysign(x) } else { root }
}

/// The results as the host's functions in `f32` have them, where there are any.
pub(crate) fn single(math: Math, [x, y, _]: Numbers<3>) -> Option<f64> {
    let (x, y) = (x as f32, y as f32);
    let result = match math {
        Math::Acos => x.acos(),
        Math::Acosh => libm::acoshf(x),
        Math::Asin => x.asin(),
        Math::Asinh => libm::asinhf(x),
        Math::Atan => x.atan(),
        Math::Atan2 => x.atan2(y),
        Math::Atanh => libm::atanhf(x),
        Math::Cbrt => x.cbrt(),
        Math::Cos => x.cos(),
        Math::Cosh => x.cosh(),
        Math::Erf => libm::erff(x),
        Math::Erfc => libm::erfcf(x),
        Math::Exp => x.exp(),
        Math::Exp10 => libm::exp10f(x),
        Math::Exp2 => x.exp2(),
        Math::Expm1 => x.exp_m1(),
        Math::Hypot => x.hypot(y),
        Math::Lgamma => libm::lgammaf(x),
        Math::Log => x.ln(),
        Math::Log10 => x.log10(),
        Math::Log1p => x.ln_1p(),
        Math::Log2 => x.log2(),
        Math::Pow => x.powf(y),
        Math::Sin => x.sin(),
        Math::Sinh => x.sinh(),
        Math::Tan => x.tan(),
        Math::Tanh => x.tanh(),
        Math::Tgamma => libm::tgammaf(x),
        _ => return None,
    };
    Some(result.into())
}
