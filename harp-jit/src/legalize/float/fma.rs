//! `x * y + z` with one rounding, on pairs of integers of the format's width.

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

use super::soft::Soft;

/// An integer of twice the width.
#[derive(Clone, Copy)]
struct Double {
    high: Value,
    low: Value,
}

impl Soft<'_, '_> {
    /// `x * y + z`.
    pub(super) fn float_fma(&mut self, x: Value, y: Value, z: Value) -> Value {
        let (infinity, ty) = (self.format.infinity(), self.format.int);
        let signs = self.xor(x, y);
        let [x_magnitude, y_magnitude, z_magnitude] = [x, y, z].map(|v| self.magnitude(v));
        let [a, b, c] = [x_magnitude, y_magnitude, z_magnitude].map(|m| self.unpack_normal(m));

        // Product and addend have their highest bits two or three below the top: nothing is lost, since twice
        // the significand's bits and three more fit.
        let product = Double {
            high: self.mul_high(a.significand, b.significand),
            low: self.mul(a.significand, b.significand),
        };
        let two = self.bits(2);
        let product = self.double_shift_right_jam(product, two);
        let addend = Double { high: self.shr(c.significand, 2), low: self.bits(0) };
        let product_exponent = self.add(a.exponent, b.exponent);
        let product_exponent = self.sub(product_exponent, self.format.bias() - 1);

        // The one with the smaller exponent is shifted right. If bits get lost, the result is close to the
        // other one, so a single sticky bit can stand for them.
        let exponent = self.smax(product_exponent, c.exponent);
        let distance = self.sub(exponent, product_exponent);
        let product = self.double_shift_right_jam(product, distance);
        let distance = self.sub(exponent, c.exponent);
        let addend = self.double_shift_right_jam(addend, distance);

        let difference = self.xor(signs, z);
        let subtract = self.sign_mask(difference);
        let addend = self.double_negate_if(subtract, addend);
        let sum = self.double_add(product, addend);
        let negative = self.sign_mask(sum.high);
        let sum = self.double_negate_if(negative, sum);
        let sign = self.xor(signs, negative);
        let sign = self.sign(sign);

        let zeros = self.double_clz(sum);
        let exponent = self.add(exponent, 2);
        let exponent = self.sub(exponent, zeros);
        let shift = self.sub(zeros, 1);
        let sum = self.double_shift_left(sum, shift);
        let lost = self.is(sum.low, IntCC::NotEqual, 0);
        let lost = self.number(lost, ty);
        let significand = self.or(sum.high, lost);
        let result = self.round_and_pack(sign, exponent, significand);

        // The sum of zeros with equal signs is that zero; any other zero sum is positive.
        let zero = self.is(significand, IntCC::Equal, 0);
        let both = self.and(signs, z);
        let zero_sign = self.sign(both);
        let result = self.select(zero, zero_sign, result);
        let z_special = self.is_special(z_magnitude);
        let result = self.select(z_special, z, result);
        let [smaller, larger] = self.order(x_magnitude, y_magnitude);
        let product_special = self.is_special(larger);
        let product_sign = self.sign(signs);
        let product_infinity = self.or(product_sign, infinity);
        let result = self.select(product_special, product_infinity, result);

        let factor_zero = self.is(smaller, IntCC::Equal, 0);
        let undefined = self.and(product_special, factor_zero);
        let opposite = self.is(difference, IntCC::SignedLessThan, 0);
        let cancels = self.and(product_special, z_special);
        let cancels = self.and(cancels, opposite);
        let [_, largest] = self.order(larger, z_magnitude);
        let nan = self.is_nan(largest);
        let nan = self.or(nan, undefined);
        let nan = self.or(nan, cancels);
        self.select(nan, self.format.nan(), result)
    }

    fn double_add(&mut self, x: Double, y: Double) -> Double {
        let low = self.add(x.low, y.low);
        let carry = self.is(low, IntCC::UnsignedLessThan, x.low);
        let carry = self.number(carry, self.format.int);
        let high = self.add(x.high, y.high);
        Double { high: self.add(high, carry), low }
    }

    /// Negates where `mask`, all ones or 0, is set.
    fn double_negate_if(&mut self, mask: Value, x: Double) -> Double {
        let flipped = Double { high: self.xor(x.high, mask), low: self.xor(x.low, mask) };
        let one = Double { high: self.bits(0), low: self.and(mask, 1) };
        self.double_add(flipped, one)
    }

    /// The number of zeros above the highest one.
    fn double_clz(&mut self, x: Double) -> Value {
        let empty = self.is(x.high, IntCC::Equal, 0);
        let part = self.select(empty, x.low, x.high);
        let zeros = self.clz(part);
        let more = self.add(zeros, self.width());
        self.select(empty, more, zeros)
    }

    /// Shifts left by less than twice the width.
    fn double_shift_left(&mut self, x: Double, amount: Value) -> Double {
        // From the lower half to the upper half: by the width minus the amount, in two steps, as the amount
        // may be zero.
        let rest = self.xor(amount, self.width() - 1);
        let carried = self.shr(x.low, 1);
        let carried = self.shr(carried, rest);
        let high = self.shl(x.high, amount);
        let high = self.or(high, carried);
        let low = self.shl(x.low, amount);
        let far = self.is_above(amount, self.width() - 1);
        let zero = self.bits(0);
        Double { high: self.select(far, low, high), low: self.select(far, zero, low) }
    }

    /// Shifts right by any nonnegative amount; the lowest bit is set, too, if a one was shifted out.
    fn double_shift_right_jam(&mut self, x: Double, amount: Value) -> Double {
        let amount = self.at_most(2 * self.width() - 1, amount);
        let far = self.is_above(amount, self.width() - 1);
        let rest = self.xor(amount, self.width() - 1);
        let out_of = |soft: &mut Self, part: Value| {
            let shifted = soft.shl(part, 1);
            soft.shl(shifted, rest)
        };
        let (from_high, from_low) = (out_of(self, x.high), out_of(self, x.low));
        let high = self.shr(x.high, amount);
        let low = self.shr(x.low, amount);
        let low = self.or(low, from_high);
        let far_lost = self.or(from_high, x.low);
        let lost = self.select(far, far_lost, from_low);
        let lost = self.is(lost, IntCC::NotEqual, 0);
        let lost = self.number(lost, self.format.int);
        let low = self.select(far, high, low);
        let zero = self.bits(0);
        Double { high: self.select(far, zero, high), low: self.or(low, lost) }
    }
}
