//! Sum, product, quotient and square root, correctly rounded.
//!
//! The methods are the usual ones (Muller et al., Handbook of Floating-Point Arithmetic, chapters 7
//! and 8), with selections in place of branches.

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

use super::soft::Soft;

impl Soft<'_, '_> {
    /// `x + y`.
    pub(super) fn float_add(&mut self, x: Value, y: Value) -> Value {
        let infinity = self.format.infinity();
        let (x_magnitude, y_magnitude) = (self.magnitude(x), self.magnitude(y));
        let swap = self.is_below(x_magnitude, y_magnitude);
        let larger = self.select(swap, y, x);
        let a = self.select(swap, y_magnitude, x_magnitude);
        let b = self.select(swap, x_magnitude, y_magnitude);

        // Two bits stay free at the top, for the carry and the sign.
        let room = self.width() - 3 - self.format.fraction_bits;
        let (a_exponent, a_significand) = self.unpack(a);
        let (b_exponent, b_significand) = self.unpack(b);
        let a_significand = self.shl(a_significand, room);
        let b_significand = self.shl(b_significand, room);
        let distance = self.sub(a_exponent, b_exponent);
        let b_significand = self.shift_right_jam(b_significand, distance);
        let difference = self.xor(x, y);
        let subtract = self.sign_mask(difference);
        let b_significand = self.negate_if(subtract, b_significand);
        let sum = self.add(a_significand, b_significand);

        let zeros = self.clz(sum);
        let exponent = self.add(a_exponent, 2);
        let exponent = self.sub(exponent, zeros);
        let shift = self.sub(zeros, 1);
        let significand = self.shl(sum, shift);
        let sign = self.sign(larger);
        let result = self.round_and_pack(sign, exponent, significand);

        // The sum of zeros with equal signs is that zero; any other zero sum is positive.
        let zero = self.is(sum, IntCC::Equal, 0);
        let both = self.and(x, y);
        let zero_sign = self.sign(both);
        let result = self.select(zero, zero_sign, result);
        let special = self.is_special(a);
        let result = self.select(special, larger, result);
        let nan = self.is_nan(a);
        let b_infinite = self.is(b, IntCC::Equal, infinity);
        let opposite = self.is(difference, IntCC::SignedLessThan, 0);
        let cancels = self.and(b_infinite, opposite);
        let nan = self.or(nan, cancels);
        self.select(nan, self.format.nan(), result)
    }

    /// `x * y`.
    pub(super) fn float_mul(&mut self, x: Value, y: Value) -> Value {
        let (infinity, ty) = (self.format.infinity(), self.format.int);
        let (x_magnitude, y_magnitude) = (self.magnitude(x), self.magnitude(y));
        let signs = self.xor(x, y);
        let sign = self.sign(signs);
        let a = self.unpack_normal(x_magnitude);
        let b = self.unpack_normal(y_magnitude);
        let high = self.mul_high(a.significand, b.significand);
        let low = self.mul(a.significand, b.significand);
        let lost = self.is(low, IntCC::NotEqual, 0);
        let lost = self.number(lost, ty);
        let significand = self.or(high, lost);
        // The product of two numbers in [1, 2) is in [1, 4).
        let top = self.shr(significand, self.width() - 1);
        let shifted = self.shr(significand, top);
        let lost = self.and(significand, top);
        let significand = self.or(shifted, lost);
        let exponent = self.add(a.exponent, b.exponent);
        let exponent = self.sub(exponent, self.format.bias());
        let exponent = self.add(exponent, top);
        let result = self.round_and_pack(sign, exponent, significand);

        let [smaller, larger] = self.order(x_magnitude, y_magnitude);
        let zero = self.is(smaller, IntCC::Equal, 0);
        let result = self.select(zero, sign, result);
        let special = self.is_special(larger);
        let signed_infinity = self.or(sign, infinity);
        let result = self.select(special, signed_infinity, result);
        let nan = self.is_nan(larger);
        let undefined = self.and(special, zero);
        let nan = self.or(nan, undefined);
        self.select(nan, self.format.nan(), result)
    }

    /// `x / y`: restoring division, one bit of the quotient per step.
    pub(super) fn float_div(&mut self, x: Value, y: Value) -> Value {
        let (infinity, ty) = (self.format.infinity(), self.format.int);
        let (x_magnitude, y_magnitude) = (self.magnitude(x), self.magnitude(y));
        let signs = self.xor(x, y);
        let sign = self.sign(signs);
        let a = self.unpack_normal(x_magnitude);
        let b = self.unpack_normal(y_magnitude);
        let dividend = self.shr(a.significand, 1);
        let divisor = self.shr(b.significand, 1);
        let quotient = self.bits(0);
        // The significand's bits, two more for rounding, and one more if the first one is zero.
        let steps = self.format.fraction_bits + 4;
        let [rest, quotient] =
            self.repeat(steps, [dividend, quotient], |soft, [rest, quotient]| {
                let fits = soft.is(rest, IntCC::UnsignedGreaterThanOrEqual, divisor);
                let less = soft.sub(rest, divisor);
                let rest = soft.select(fits, less, rest);
                let bit = soft.number(fits, ty);
                let quotient = soft.shl(quotient, 1);
                [soft.shl(rest, 1), soft.or(quotient, bit)]
            });
        let first = self.shr(quotient, steps - 1);
        let missing = self.xor(first, 1);
        let significand = self.shl(quotient, self.width() - 1 - steps);
        let significand = self.shl(significand, missing);
        let lost = self.is(rest, IntCC::NotEqual, 0);
        let lost = self.number(lost, ty);
        let significand = self.or(significand, lost);
        let exponent = self.sub(a.exponent, b.exponent);
        let exponent = self.add(exponent, self.format.bias());
        let exponent = self.sub(exponent, missing);
        let result = self.round_and_pack(sign, exponent, significand);

        let x_zero = self.is(x_magnitude, IntCC::Equal, 0);
        let y_zero = self.is(y_magnitude, IntCC::Equal, 0);
        let x_special = self.is_special(x_magnitude);
        let y_special = self.is_special(y_magnitude);
        let zero = self.or(x_zero, y_special);
        let result = self.select(zero, sign, result);
        let infinite = self.or(x_special, y_zero);
        let signed_infinity = self.or(sign, infinity);
        let result = self.select(infinite, signed_infinity, result);
        // 0/0, infinity/infinity, and divisions with a NaN are NaNs.
        let undefined = self.and(zero, infinite);
        let x_nan = self.is_nan(x_magnitude);
        let y_nan = self.is_nan(y_magnitude);
        let nan = self.or(x_nan, y_nan);
        let nan = self.or(nan, undefined);
        self.select(nan, self.format.nan(), result)
    }

    /// The square root, one bit per step (Muller et al., section 8.5).
    pub(super) fn float_sqrt(&mut self, x: Value) -> Value {
        let ty = self.format.int;
        let magnitude = self.magnitude(x);
        let number = self.unpack_normal(magnitude);
        let exponent = self.sub(number.exponent, self.format.bias());
        // The radicand, in [1, 4), has two bits before the binary point.
        let odd = self.and(exponent, 1);
        let even = self.xor(odd, 1);
        let radicand = self.shr(number.significand, even);
        let zero = self.bits(0);
        let steps = self.format.fraction_bits + 3;
        let state = [radicand, zero, zero];
        let [_, rest, root] = self.repeat(steps, state, |soft, [radicand, rest, root]| {
            let next = soft.shr(radicand, soft.width() - 2);
            let rest = soft.shl(rest, 2);
            let rest = soft.or(rest, next);
            let twice = soft.shl(root, 1);
            let trial = soft.shl(twice, 1);
            let trial = soft.or(trial, 1);
            let fits = soft.is_below(rest, trial);
            let less = soft.sub(rest, trial);
            let rest = soft.select(fits, rest, less);
            let bit = soft.number(fits, ty);
            let bit = soft.xor(bit, 1);
            [soft.shl(radicand, 2), rest, soft.or(twice, bit)]
        });
        let significand = self.shl(root, self.width() - 1 - steps);
        let lost = self.is(rest, IntCC::NotEqual, 0);
        let lost = self.number(lost, ty);
        let significand = self.or(significand, lost);
        // Half of the exponent, rounded down, biased, minus one: the bias keeps it positive.
        let exponent = self.add(exponent, 2 * self.format.bias() - 2);
        let exponent = self.shr(exponent, 1);
        let result = self.round_significand(exponent, significand);

        let special = self.is_special(magnitude);
        let zero = self.is(magnitude, IntCC::Equal, 0);
        let itself = self.or(special, zero);
        let result = self.select(itself, x, result);
        let negative = self.is(x, IntCC::SignedLessThan, 0);
        let not_zero = self.is(magnitude, IntCC::NotEqual, 0);
        let undefined = self.and(negative, not_zero);
        let nan = self.is_nan(magnitude);
        let nan = self.or(nan, undefined);
        self.select(nan, self.format.nan(), result)
    }
}
