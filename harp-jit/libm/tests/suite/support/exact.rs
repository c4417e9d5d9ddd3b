//! References for functions whose results are exact.

use harp_libm::{Float, Math};

use super::Numbers;

/// The results of the host's library in the function's own format; none if the function is not exact.
pub(crate) fn exact(math: Math, float: Float, args: Numbers<3>) -> Option<Numbers<2>> {
    match float {
        // These integers do not fit.
        Float::F32 if math == Math::Ilogb => double(math, args),
        Float::F32 => single(math, args.map(|x| x as f32)).map(|results| results.map(f64::from)),
        Float::F64 => double(math, args),
    }
}

/// Makes the same function for both formats.
macro_rules! exact {
    ($name:ident $ty:ident $remquo:ident $frexp:ident $ldexp:ident $nextafter:ident $fdim:ident $ilogb:ident $modf:ident) => {
        fn $name(math: Math, [x, y, z]: [$ty; 3]) -> Option<[$ty; 2]> {
            let n = y as i32;
            let quiet = |value: $ty| [value, 0.0];
            let pick = |first: bool| quiet(if first { x } else { y });
            Some(match math {
                Math::Ceil => quiet(x.ceil()),
                Math::Copysign => quiet(x.copysign(y)),
                Math::Divide => quiet(x / y),
                Math::Fabs => quiet(x.abs()),
                Math::Fdim => quiet(libm::$fdim(x, y)),
                Math::Floor => quiet(x.floor()),
                Math::Fma => quiet(x.mul_add(y, z)),
                Math::Fmax => pick(x >= y || y.is_nan()),
                Math::Fmin => pick(x <= y || y.is_nan()),
                Math::Fmod => quiet(x % y),
                Math::Fract => {
                    let below_one = (1.0 as $ty).next_down();
                    let fraction = match x {
                        x if x.is_infinite() || x == 0.0 => (0.0 as $ty).copysign(x),
                        x if x.is_nan() => x,
                        x => (x - x.floor()).min(below_one),
                    };
                    [fraction, x.floor()]
                }
                Math::Frexp => {
                    let (mantissa, exponent) = libm::$frexp(x);
                    [mantissa, if x.is_finite() { exponent as $ty } else { 0.0 }]
                }
                Math::Ilogb => match x {
                    x if x == 0.0 => quiet(i32::MIN as $ty),
                    x if !x.is_finite() => quiet(i32::MAX as $ty),
                    x => quiet(libm::$ilogb(x) as $ty),
                },
                Math::Ldexp => quiet(libm::$ldexp(x, n)),
                Math::Logb => match x {
                    x if x == 0.0 => quiet($ty::NEG_INFINITY),
                    x if !x.is_finite() => quiet(x.abs()),
                    x => quiet(libm::$ilogb(x) as $ty),
                },
                Math::Maxmag if x.abs() != y.abs() && !x.is_nan() && !y.is_nan() => {
                    pick(x.abs() > y.abs())
                }
                Math::Maxmag => pick(x >= y || y.is_nan()),
                Math::Minmag if x.abs() != y.abs() && !x.is_nan() && !y.is_nan() => {
                    pick(x.abs() < y.abs())
                }
                Math::Minmag => pick(x <= y || y.is_nan()),
                Math::Modf => {
                    let (fraction, integer) = libm::$modf(x);
                    let fraction = if x.is_infinite() { 0.0 } else { fraction };
                    [fraction.copysign(x), integer]
                }
                Math::Nextafter => quiet(libm::$nextafter(x, y)),
                Math::Recip => quiet(1.0 / x),
                Math::Remainder => quiet(libm::$remquo(x, y).0),
                Math::Remquo => {
                    let (rest, quotient) = libm::$remquo(x, y);
                    let is_defined = x.is_finite() && !y.is_nan() && y != 0.0;
                    let bits = (quotient.abs() & 0x7f) * quotient.signum();
                    [rest, if is_defined { bits as $ty } else { 0.0 }]
                }
                Math::Rint => quiet(x.round_ties_even()),
                Math::Round => quiet(x.round()),
                Math::Sqrt => quiet(x.sqrt()),
                Math::Trunc => quiet(x.trunc()),
                _ => return None,
            })
        }
    };
}

exact!(single f32 remquof frexpf ldexpf nextafterf fdimf ilogbf modff);
exact!(double f64 remquo frexp ldexp nextafter fdim ilogb modf);
