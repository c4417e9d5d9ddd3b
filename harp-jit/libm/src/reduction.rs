//! Reduction of angles: what is left of x if the nearest multiple of π/2 is taken away.
//!
//! Up to a limit π/2 in three floats suffices (Cody and Waite, Software Manual for the Elementary Functions, 1980,
//! chapter 8). Above it, x is multiplied with those bits of 2/π that matter (Payne and Hanek, Radian reduction for
//! trigonometric functions, 1983): a lane with such an argument makes its warp take a branch.

use crate::code::{Code, Int, Real};
use crate::constants::{
    PI_OVER_2, PI_OVER_2_THIRDS, RECIPROCAL_PI, TWO_OVER_PI_32, TWO_OVER_PI_64,
};
use crate::exponential::nearest;
use crate::pair::Pair;
use crate::table::Float;

/// An angle as quarter turns and a rest of at most π/4.
pub(crate) struct Angle<'c> {
    /// The quarter turns, of which only the two lowest bits matter.
    pub(crate) quarters: Int<'c>,
    pub(crate) rest: Pair<'c>,
}

/// Takes an angle apart.
pub(crate) fn quarter_turns(x: Real<'_>) -> Angle<'_> {
    let (code, float) = (x.code, x.code.float);
    let Angle { quarters, rest } = by_subtraction(x);
    let limit = float.bits(float.pick(15.0_f64, 20.0).exp2());
    let is_large = (x.abs().bits() - limit).below(float.infinity_bits() - limit);
    let common = [quarters.value, rest.high.value, rest.low.value];
    let [quarters, high, low] = code.unless(is_large, common, || {
        let Angle { quarters, rest } = by_multiplication(x);
        [quarters.value, rest.high.value, rest.low.value]
    });
    let rest = Pair { high: code.as_real(high), low: code.as_real(low) };
    Angle { quarters: code.as_int(quarters), rest }
}

/// x - k π/2 for small x, to about twice the digits: products with k are exact, and so is the first difference
/// (Sterbenz 1974).
fn by_subtraction(x: Real<'_>) -> Angle<'_> {
    let code = x.code;
    let [first, second, third] = PI_OVER_2_THIRDS.parts(code.float).map(|part| code.real(part));
    let (k, quarters) = nearest(x * (code.near(&RECIPROCAL_PI) * 2.0));
    let (first, second) = (Pair::product(k, first), Pair::product(k, second));
    let rest = Pair::sum(x - first.high, -first.low);
    let next = Pair::sum(rest.high, -second.high);
    let low = ((rest.low + next.low) - second.low) - k * third;
    Angle { quarters, rest: Pair::sum_ordered(next.high, low) }
}

/// A number of several words, the highest first.
type Words<'c, const N: usize> = [Int<'c>; N];

/// x = m 2^q, with an integer m, times 2/π. Bits of 2/π that contribute multiples of 4 are left out, and so are those
/// behind the three words that follow, which is further than any x comes to a multiple of π/2.
fn by_multiplication(x: Real<'_>) -> Angle<'_> {
    let (code, float) = (x.code, x.code.float);
    let (bits, fraction_bits) = (x.abs().bits(), float.fraction_bits());
    let exponent = bits.shr_zeros(fraction_bits) - (float.bias() + i64::from(fraction_bits));
    let mantissa = (bits & ((1 << fraction_bits) - 1)) | (1 << fraction_bits);

    // A word of zeros stands before the bits of 2/π.
    let skipped = exponent - 2 + i64::from(float.width());
    let window = bits_of_two_over_pi(code, skipped);
    let product = multiplied(window, mantissa);

    // The integral part of the product, modulo 4, is in the two highest bits. Half a quarter turn more rounds it.
    let width = float.width();
    let quarters = (product[0] + (1 << (width - 3))).shr_zeros(width - 2);
    let fraction = [
        (product[0] << 2) | product[1].shr_zeros(width - 2),
        (product[1] << 2) | product[2].shr_zeros(width - 2),
        product[2] << 2,
    ];
    let rest = signed_fraction(fraction) * code.pair(&PI_OVER_2);
    let is_negative = x.lt(0.0);
    let rest =
        Pair { high: rest.high.negated_if(is_negative), low: rest.low.negated_if(is_negative) };
    Angle { quarters: is_negative.select(-quarters, quarters), rest }
}

/// Three words of the bits of 2/π from the bit `skipped` on. The words are moved forward by powers of 2, as far as bits
/// of the index say.
fn bits_of_two_over_pi<'c>(code: &'c Code<'c>, skipped: Int<'c>) -> Words<'c, 3> {
    let width = code.float.width();
    let mut words: Vec<Int<'c>> = match code.float {
        Float::F32 => TWO_OVER_PI_32.iter().map(|&word| code.int(word.into())).collect(),
        Float::F64 => TWO_OVER_PI_64.iter().map(|&word| code.int(word as i64)).collect(),
    };
    let index = skipped.shr_zeros(width.trailing_zeros());
    let by = skipped & i64::from(width - 1);
    let needed = 4;
    let mut steps = words.len() - needed;
    while steps > 0 {
        // The highest power of 2 among the steps that are left.
        let step = 1 << steps.ilog2();
        let moves = (index & step as i64).differs(0);
        let kept = (needed + step - 1).min(words.len());
        words = (0..kept)
            .map(|i| words.get(i + step).map_or(words[i], |&next| moves.select(next, words[i])))
            .collect();
        steps = step - 1;
    }
    // A shift by the width, where `by` is 0, must give 0.
    let back = code.int(i64::from(width) - 1) - by;
    std::array::from_fn(|i| (words[i] << by) | words[i + 1].shr_zeros(1).shr_zeros_by(back))
}

/// The low three words of the product with a word.
fn multiplied<'c>(words: Words<'c, 3>, factor: Int<'c>) -> Words<'c, 3> {
    let low = words[2] * factor;
    let (middle, carried) = (words[1] * factor, words[2].mul_high(factor));
    let middle = middle + carried;
    let carry = middle.below(carried).as_int();
    let high = words[0] * factor + words[1].mul_high(factor) + carry;
    [high, middle, low]
}

/// A signed number of three words, divided by 2^(3 width). Each word is taken as two numbers that a float can hold.
fn signed_fraction<'c>(words: Words<'c, 3>) -> Pair<'c> {
    let code = words[0].code;
    let width = f64::from(code.float.width());
    let low_bits = code.float.width() - code.float.digits();
    let upper = |word: Int<'c>| word & !((1 << low_bits) - 1);
    let lower = |word: Int<'c>| word & ((1 << low_bits) - 1);
    let first = upper(words[0]).to_real() * (-width).exp2();
    let second = lower(words[0]).to_real() * (-width).exp2();
    let third = upper(words[1]).unsigned_to_real() * (-2.0 * width).exp2();
    let fourth = lower(words[1]).to_real() * (-2.0 * width).exp2();
    let fifth = words[2].unsigned_to_real() * (-3.0 * width).exp2();
    let start = Pair::sum_ordered(first, second);
    let sum = Pair::sum(start.high, third);
    let sum = Pair::sum(sum.high, start.low + sum.low + fourth + fifth);
    Pair::sum_ordered(sum.high, sum.low)
}
