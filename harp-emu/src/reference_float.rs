//! Floats as the original emulator computes them: operands are read field by field, computed with in
//! binary64, and written with truncation. At the edges of the range the results differ from IEEE 754.

use crate::word::Word;

/// Defines an operation on words.
macro_rules! operation {
    ($($name:ident($($x:ident),*) => $result:expr;)*) => {
        $(
            #[doc = concat!("The instruction `", stringify!($name), "`.")]
            pub(crate) fn $name<W: Word>($($x: W),*) -> W {
                $(let $x = read($x);)*
                write($result)
            }
        )*
    };
}

operation! {
    fadd(a, b) => a + b;
    fsub(a, b) => a - b;
    fmul(a, b) => a * b;
    fdiv(a, b) => a / b;
    fneg(a) => -a;
}

/// The instruction `itof`.
pub(crate) fn itof<W: Word>(a: W) -> W {
    write(from_integer(a))
}

/// The instruction `ftoi`.
pub(crate) fn ftoi<W: Word>(a: W) -> W {
    to_integer(read(a))
}

/// The fields of a float that fills a word.
struct Format {
    /// Bits of the mantissa.
    mantissa: u32,
    bias: i32,
}

impl Format {
    fn of<W: Word>() -> Format {
        match W::BYTES {
            4 => Format { mantissa: 23, bias: 127 },
            _ => Format { mantissa: 52, bias: 1023 },
        }
    }
}

/// The number that a word holds. An exponent of all ones means infinity, even for a NaN.
fn read<W: Word>(word: W) -> f64 {
    let Format { mantissa, bias } = Format::of::<W>();
    let bits = word.to_u64();
    let fraction = bits & ((1 << mantissa) - 1);
    let exponent = (bits >> mantissa) as i32 & (2 * bias + 1);
    let magnitude = match exponent {
        _ if exponent == 2 * bias + 1 => f64::INFINITY,
        0 => scale(fraction as f64, 1 - bias - mantissa as i32),
        _ => scale((fraction | 1 << mantissa) as f64, exponent - bias - mantissa as i32),
    };
    if word.is_negative() { -magnitude } else { magnitude }
}

/// The word that is written for a number. For NaN the original's result is undefined behaviour of its language;
/// here it is 0.
fn write<W: Word>(x: f64) -> W {
    let Format { mantissa, bias } = Format::of::<W>();
    let magnitude = x.abs();
    let bits = if magnitude.is_infinite() {
        (2 * bias as u64 + 1) << mantissa
    } else if magnitude == 0.0 || magnitude.is_nan() {
        return W::ZERO;
    } else {
        let exponent = floor_of_rounded_log2(magnitude);
        if exponent.abs() < bias {
            // Where the logarithm was rounded up, the rest is negative by a few units, and is written like that.
            let rest = (scale(magnitude, -exponent) - 1.0) * scale(1.0, mantissa as i32);
            ((exponent + bias) as u64) << mantissa | (rest as i64).cast_unsigned()
        } else if exponent < 0 && exponent > -(bias + 1) - mantissa as i32 {
            // A carry out of the mantissa gives the least normal number.
            scale(magnitude, bias - 1 + mantissa as i32).round() as u64
        } else {
            0
        }
    };
    let word = W::from_u64(bits);
    if x < 0.0 { word | W::sign_bit() } else { word }
}

/// The number of an integer word; 4-byte words are unsigned.
fn from_integer<W: Word>(word: W) -> f64 {
    if W::BYTES == 4 { word.to_u64() as f64 } else { word.to_i64() as f64 }
}

/// The number truncated to an integer and wrapped to the word; 0 for infinity.
fn to_integer<W: Word>(x: f64) -> W {
    if !x.is_finite() {
        return W::ZERO;
    }
    let modulus = scale(1.0, W::BITS as i32);
    // Both the remainder of a power of two and its truncation are exact.
    let rest = (x.trunc() % modulus).abs() as u64;
    let rest = W::from_u64(rest);
    if x < 0.0 { W::ZERO.sub(rest) } else { rest }
}

/// The floor of the base-2 logarithm, rounded to binary64, of a finite number above zero: the number's
/// exponent, or one more just below a power of two.
fn floor_of_rounded_log2(x: f64) -> i32 {
    let bits = x.to_bits();
    let exponent = match (bits >> 52) as i32 {
        // A subnormal number is an integer times 2^-1074.
        0 => 63 - bits.leading_zeros() as i32 - 1074,
        field => field - 1023,
    };
    let above = exponent + 1;
    // log2(1 - d) is about -d / ln 2 for small d, the only case in which the logarithm is rounded up.
    let below = (1.0 - scale(x, -above)) * std::f64::consts::LOG2_E;
    if f64::from(above) - below == f64::from(above) { above } else { exponent }
}

/// `x * 2^n`, exact if the result is a normal number or an integer multiple of the least one.
fn scale(x: f64, n: i32) -> f64 {
    let power = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
    // In two steps, because a power of two outside the range of normal numbers cannot be a factor.
    let step = n.clamp(-1000, 1000);
    let x = x * power(step);
    let rest = n - step;
    if rest == 0 { x } else { x * power(rest.clamp(-1000, 1000)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(x: f64) -> u32 {
        write::<u32>(x)
    }

    #[test]
    fn normal_numbers_are_truncated() {
        assert_eq!(written(1.5), 1.5_f32.to_bits());
        assert_eq!(written(f64::from(-0.1_f32)), (-0.1_f32).to_bits());
        // Just below 2: the nearest binary32 is 2.
        assert_eq!(written(2.0 - 1e-12), 2.0_f32.to_bits() - 1);
        assert_eq!(write::<u64>(0.1), 0.1_f64.to_bits());
    }

    /// Expected are the words that the original emulator computes.
    #[test]
    fn just_below_a_power_of_two() {
        let sum = read(0x8f5b_d119_u32) + read(0x2a00_0000_u32);
        assert_eq!(written(sum), 0x2a00_0000);
        assert_eq!(written(f64::from_bits(0x3d4f_ffff_ffff_ffff)), 0x2a80_0000);
        // The logarithm is not rounded up where it is near 0, or the number not so near.
        assert_eq!(written(f64::from_bits(0x3fef_ffff_ffff_ffff)), 0x3f7f_ffff);
        assert_eq!(written(f64::from_bits(0x3d4f_ffff_ffff_ff00)), 0x2a7f_ffff);
        assert_eq!(write::<u64>(f64::from_bits(0x3fff_ffff_ffff_ffff)), 0x3fff_ffff_ffff_ffff);
        assert_eq!(write::<u64>(f64::from_bits(0x401f_ffff_ffff_ffff)), 0x4020_0000_0000_0000);
    }

    #[test]
    fn numbers_at_the_edges() {
        assert_eq!(written(scale(1.0, 126)), (scale(1.0, 126) as f32).to_bits());
        for lost in [scale(1.0, 127), scale(1.9, 127), 1e300, f64::NAN, -0.0, scale(1.0, -151)] {
            assert_eq!(written(lost), 0, "{lost}");
        }
        for lost in [scale(-1.0, 127), -1e300, scale(-1.0, -151)] {
            assert_eq!(written(lost), 0x8000_0000, "{lost}");
        }
        assert_eq!(written(f64::INFINITY), 0x7f80_0000);
        assert_eq!(written(f64::NEG_INFINITY), 0xff80_0000);
        // Subnormal numbers are rounded, halves away from zero.
        assert_eq!(written(scale(1.0, -149)), 1);
        assert_eq!(written(scale(-1.0, -150)), 0x8000_0001);
        assert_eq!(written(scale(5.0, -150)), 3);
        assert_eq!(written(scale(1.0, -126)), 0x0080_0000);
        assert_eq!(written(scale(2.0 - 1e-9, -127)), 0x0080_0000);
        assert_eq!(write::<u64>(scale(1.0, 1023)), 0);
        assert_eq!(write::<u64>(scale(3.0, -1074)), 3);
    }

    #[test]
    fn what_is_read() {
        for x in [0.0_f32, 1.0, -2.5, 1e-40, f32::MAX, f32::MIN_POSITIVE] {
            assert_eq!(read(x.to_bits()), f64::from(x));
            assert_eq!(read(f64::from(x).to_bits()), f64::from(x));
        }
        assert_eq!(read(0x7fc0_0000_u32), f64::INFINITY);
        assert_eq!(read(0xffff_ffff_u32), f64::NEG_INFINITY);
        assert_eq!(read(1_u64), f64::from_bits(1));
        assert_eq!(read(f64::MAX.to_bits()), f64::MAX);
    }

    #[test]
    fn integers() {
        assert_eq!(from_integer(0xffff_ffff_u32), 4_294_967_295.0);
        assert_eq!(from_integer(u64::MAX), -1.0);
        assert_eq!(to_integer::<u32>(-1.9), u32::MAX);
        assert_eq!(to_integer::<u32>(4_294_967_301.5), 5);
        assert_eq!(to_integer::<u32>(f64::INFINITY), 0);
        assert_eq!(to_integer::<u64>(-3.0), u64::MAX - 2);
        assert_eq!(to_integer::<u64>(scale(1.0, 63)), 1 << 63);
        assert_eq!(to_integer::<u64>(scale(1.0, 64)), 0);
    }
}
