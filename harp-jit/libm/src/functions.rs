//! Which code computes which function.

use cranelift_codegen::ir::Value;

use crate::code::{Code, Int, Real};
use crate::inverse::Unit::{HalfTurn, Radian};
use crate::table::Math;
use crate::{
    error_function, exponential, gamma, inverse, logarithm, power, remainder, roots, rounding,
    trigonometric,
};

/// A result, or two of them.
fn results(both: (impl Into<Value>, impl Into<Value>)) -> Vec<Value> {
    vec![both.0.into(), both.1.into()]
}

impl From<Real<'_>> for Value {
    fn from(x: Real<'_>) -> Value {
        x.value
    }
}

impl From<Int<'_>> for Value {
    fn from(n: Int<'_>) -> Value {
        n.value
    }
}

/// Appends the code of a function whose parameters `args` fit.
pub(crate) fn append<'c>(code: &'c Code<'c>, math: Math, args: &[Value]) -> Vec<Value> {
    let x = || code.as_real(args[0]);
    let y = || code.as_real(args[1]);
    let z = || code.as_real(args[2]);
    let n = || code.as_int(args[1]);
    let result = match math {
        Math::Acos => inverse::acos(x(), Radian),
        Math::Acosh => logarithm::acosh(x()),
        Math::Acospi => inverse::acos(x(), HalfTurn),
        Math::Asin => inverse::asin(x(), Radian),
        Math::Asinh => logarithm::asinh(x()),
        Math::Asinpi => inverse::asin(x(), HalfTurn),
        Math::Atan => inverse::atan(x(), Radian),
        Math::Atan2 => inverse::atan2(x(), y(), Radian),
        Math::Atan2pi => inverse::atan2(x(), y(), HalfTurn),
        Math::Atanh => logarithm::atanh(x()),
        Math::Atanpi => inverse::atan(x(), HalfTurn),
        Math::Cbrt => roots::cbrt(x()),
        Math::Ceil => x().ceil(),
        Math::Copysign => x().copysign(y()),
        Math::Cos => trigonometric::sin_cos(x()).1,
        Math::Cosh => exponential::cosh(x()),
        Math::Cospi => trigonometric::cospi(x()),
        Math::Divide => x() / y(),
        Math::Erf => error_function::erf(x()),
        Math::Erfc => error_function::erfc(x()),
        Math::Exp => exponential::exp(x()),
        Math::Exp10 => exponential::exp10(x()),
        Math::Exp2 => exponential::exp2(x()),
        Math::Expm1 => exponential::expm1(x()),
        Math::Fabs => x().abs(),
        Math::Fdim => rounding::fdim(x(), y()),
        Math::Floor => x().floor(),
        Math::Fma => x().fused(y(), z()),
        Math::Fmax => rounding::fmax(x(), y()),
        Math::Fmin => rounding::fmin(x(), y()),
        Math::Fmod => remainder::fmod(x(), y()),
        Math::Fract => return results(rounding::fract(x())),
        Math::Frexp => return results(rounding::frexp(x())),
        Math::Hypot => roots::hypot(x(), y()),
        Math::Ilogb => return vec![rounding::ilogb(x()).value],
        Math::Ldexp => rounding::ldexp(x(), n()),
        Math::Lgamma => gamma::lgamma_r(x()).0,
        Math::LgammaR => return results(gamma::lgamma_r(x())),
        Math::Log => logarithm::log(x()),
        Math::Log10 => logarithm::log10(x()),
        Math::Log1p => logarithm::log1p(x()),
        Math::Log2 => logarithm::log2(x()),
        Math::Logb => rounding::logb(x()),
        Math::Mad => x().mul_add(y(), z()),
        Math::Maxmag => rounding::maxmag(x(), y()),
        Math::Minmag => rounding::minmag(x(), y()),
        Math::Modf => return results(rounding::modf(x())),
        Math::Nan => rounding::nan(code.as_int(args[0])),
        Math::Nextafter => rounding::nextafter(x(), y()),
        Math::Pow => power::pow(x(), y()),
        Math::Pown => power::pown(x(), n()),
        Math::Powr => power::powr(x(), y()),
        Math::Recip => 1.0 / x(),
        Math::Remainder => remainder::remquo(x(), y()).0,
        Math::Remquo => return results(remainder::remquo(x(), y())),
        Math::Rint => x().rint(),
        Math::Rootn => power::rootn(x(), n()),
        Math::Round => rounding::round(x()),
        Math::Rsqrt => roots::rsqrt(x()),
        Math::Sin => trigonometric::sin_cos(x()).0,
        Math::Sincos => return results(trigonometric::sin_cos(x())),
        Math::Sinh => exponential::sinh(x()),
        Math::Sinpi => trigonometric::sinpi(x()),
        Math::Sqrt => x().sqrt(),
        Math::Tan => trigonometric::tan(x()),
        Math::Tanh => exponential::tanh(x()),
        Math::Tanpi => trigonometric::tanpi(x()),
        Math::Tgamma => gamma::tgamma(x()),
        Math::Trunc => x().trunc(),
    };
    vec![result.value]
}
