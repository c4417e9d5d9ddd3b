//! Conversions: to and from integers, and between the formats.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};

use super::format::Format;
use super::soft::Soft;

/// Whether an integer has a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signedness {
    Signed,
    Unsigned,
}

impl Soft<'_, '_> {
    /// Converts to an integer of type `ty`, rounding towards zero. Numbers out of range become the largest or
    /// smallest integer, and NaN becomes 0.
    pub(super) fn float_to_int(&mut self, ty: Type, signedness: Signedness, x: Value) -> Value {
        let format = self.format;
        let wide = if u64::from(ty.bits()) > format.width() { ty } else { format.int };
        let magnitude = self.magnitude(x);
        let exponent = self.shr(magnitude, format.fraction_bits);
        let fraction = self.and(magnitude, format.fraction());
        let significand = self.or(fraction, format.hidden());
        let significand = self.extend(wide, significand);
        // The binary point goes below the highest bit, and the significand is shifted right by the rest of
        // the exponent.
        let top = u64::from(wide.bits()) - 1;
        let significand = self.shl(significand, top - format.fraction_bits);
        let last = self.bits(format.bias() + top);
        let amount = self.sub(last, exponent);
        let integer = self.shr(significand, amount);
        let small = self.is_below(magnitude, format.power_of_two(0));
        let zero = self.constant(wide, 0);
        let integer = self.select(small, zero, integer);
        let negative = self.sign_mask(x);
        let negative =
            if wide == format.int { negative } else { self.at.ins().sextend(wide, negative) };
        let integer = match signedness {
            Signedness::Signed => self.negate_if(negative, integer),
            Signedness::Unsigned => integer,
        };
        let result = self.saturate(ty, signedness, magnitude, negative, integer);
        self.reduce(ty, result)
    }

    /// Returns `integer`, or, if the float is out of the range of `ty` or is a NaN, what a saturating conversion
    /// gives. `integer` has the type of the mask `negative`.
    pub(super) fn saturate(
        &mut self,
        ty: Type,
        signedness: Signedness,
        magnitude: Value,
        negative: Value,
        integer: Value,
    ) -> Value {
        let format = self.format;
        let large = self.is_above(magnitude, self.limit(ty, signedness) - 1);
        let result = match signedness {
            Signedness::Signed => {
                let extreme = self.xor(negative, (1 << (ty.bits() - 1)) - 1);
                self.select(large, extreme, integer)
            }
            Signedness::Unsigned => {
                let result = self.select(large, u64::MAX >> (64 - ty.bits()), integer);
                let positive = self.not(negative);
                self.and(result, positive)
            }
        };
        let nan = self.is_above(magnitude, format.infinity());
        self.select(nan, 0, result)
    }

    /// The bits of the least magnitude that does not fit `ty`. For signed types the most negative number
    /// still fits.
    pub(super) fn limit(&self, ty: Type, signedness: Signedness) -> u64 {
        let bits = match signedness {
            Signedness::Signed => ty.bits() - 1,
            Signedness::Unsigned => ty.bits(),
        };
        self.format.power_of_two(bits.into())
    }

    /// The float nearest to an integer.
    pub(super) fn int_to_float(&mut self, signedness: Signedness, x: Value) -> Value {
        let format = self.format;
        let from = self.type_of(x);
        let wide = if u64::from(from.bits()) > format.width() { from } else { format.int };
        let (magnitude, sign) = match signedness {
            Signedness::Unsigned => (self.extend(wide, x), None),
            Signedness::Signed => {
                let x = if from == wide { x } else { self.at.ins().sextend(wide, x) };
                let negative = self.sign_mask(x);
                let magnitude = self.negate_if(negative, x);
                let negative = self.reduce(format.int, negative);
                (magnitude, Some(self.sign(negative)))
            }
        };
        let zeros = self.clz(magnitude);
        let normal = self.shl(magnitude, zeros);
        // The highest bit goes to the position below the top.
        let excess = u64::from(wide.bits()) - format.width() + 1;
        let significand = self.shr(normal, excess);
        let lost = self.shl(normal, u64::from(wide.bits()) - excess);
        let lost = self.is(lost, IntCC::NotEqual, 0);
        let lost = self.number(lost, wide);
        let significand = self.or(significand, lost);
        let significand = self.reduce(format.int, significand);
        let zeros = self.reduce(format.int, zeros);
        let exponent = self.bits(format.bias() + u64::from(wide.bits()) - 2);
        let exponent = self.sub(exponent, zeros);
        let result = self.round_significand(exponent, significand);
        let zero = self.is(magnitude, IntCC::Equal, 0);
        let result = self.select(zero, 0, result);
        sign.map_or(result, |sign| self.or(result, sign))
    }

    /// An integer of at most 53 significant bits with the same nearest 24-bit float as `x`, of 64 bits: lost
    /// bits are ORed into the last one (sticky).
    pub(super) fn sticky_int(&mut self, signedness: Signedness, x: Value) -> Value {
        let low = self.and(x, 0x7ff);
        let carry = self.add(low, 0x7ff);
        let sticky = self.or(x, carry);
        let sticky = self.and(sticky, !0x7ff);
        let upper = match signedness {
            Signedness::Signed => {
                let negative = self.sign_mask(x);
                self.xor(x, negative)
            }
            Signedness::Unsigned => x,
        };
        let upper = self.shr(upper, 53);
        let exact = self.is(upper, IntCC::Equal, 0);
        self.select(exact, x, sticky)
    }

    /// binary32 to binary64, which is exact.
    pub(super) fn promote(&mut self, x: Value) -> Value {
        let (single, double) = (Format::SINGLE, Format::DOUBLE);
        let magnitude = self.magnitude(x);
        let sign = self.sign(x);
        let sign = self.extend(I64, sign);
        let sign = self.shl(sign, 32);
        let number = self.unpack_normal(magnitude);
        let exponent = self.add(number.exponent, double.bias() - single.bias());
        let zero = self.is(magnitude, IntCC::Equal, 0);
        let exponent = self.select(zero, 0, exponent);
        let special = self.is_special(magnitude);
        let exponent = self.select(special, double.largest_exponent(), exponent);
        let fraction = self.and(number.significand, single.sign() - 1);
        let exponent = self.extend(I64, exponent);
        let exponent = self.shl(exponent, double.fraction_bits);
        let fraction = self.extend(I64, fraction);
        let fraction = self.shl(fraction, double.fraction_bits - 31);
        let result = self.or(exponent, fraction);
        self.or(result, sign)
    }

    /// binary64 to the nearest binary32.
    pub(super) fn demote(&mut self, x: Value) -> Value {
        let (single, double) = (Format::SINGLE, Format::DOUBLE);
        let magnitude = self.magnitude(x);
        let high = self.shr(x, 32);
        let high = self.reduce(I32, high);
        let sign = self.and(high, single.sign());
        let (exponent, significand) = self.unpack(magnitude);
        // 31 bits are kept, the hidden one at the top of them.
        let kept = self.shr(significand, 22);
        let kept = self.reduce(I32, kept);
        let lost = self.shl(significand, 42);
        let lost = self.is(lost, IntCC::NotEqual, 0);
        let lost = self.number(lost, I32);
        let kept = self.or(kept, lost);
        let exponent = self.reduce(I32, exponent);
        let exponent = self.sub(exponent, double.bias() - single.bias());
        let special = self.is_special(magnitude);
        let nan = self.is_nan(magnitude);
        let mut narrow = Soft { at: &mut *self.at, format: single, machine: self.machine };
        let result = narrow.round_and_pack(sign, exponent, kept);
        let infinity = narrow.or(sign, single.infinity());
        let result = narrow.select(special, infinity, result);
        narrow.select(nan, single.nan(), result)
    }

    /// [`promote`](Soft::promote) on a machine that computes in binary64.
    ///
    /// The fields are moved to their positions in binary64. The exponent is then too small by the difference
    /// of the biases, and the number is subnormal if `x` is; a multiplication corrects both.
    pub(super) fn promote_by_double(&mut self, x: Value) -> Value {
        let (single, double) = (Format::SINGLE, Format::DOUBLE);
        let wide = self.extend(I64, x);
        let magnitude = self.and(wide, single.sign() - 1);
        let moved = self.shl(wide, 32);
        let moved = self.shr_signed(moved, 32 - (double.fraction_bits - single.fraction_bits));
        let fields =
            double.sign() | (single.sign() - 1) << (double.fraction_bits - single.fraction_bits);
        let moved = self.and(moved, fields);
        let number = self.cast(F64, moved);
        let factor = double.power_of_two((double.bias() - single.bias()).cast_signed());
        let factor = self.at.ins().f64const(f64::from_bits(factor));
        let number = self.at.ins().fmul(number, factor);
        let number = self.cast(I64, number);
        let special = self.is_above(magnitude, single.infinity() - 1);
        let largest = self.or(moved, double.infinity());
        self.select(special, largest, number)
    }

    /// [`demote`](Soft::demote) on a machine that computes in binary64.
    ///
    /// Adding a number whose last place is that of binary32's subnormal numbers rounds a result to these. The
    /// sum without the bits of the added number is then the subnormal result.
    pub(super) fn demote_by_double(&mut self, x: Value) -> Value {
        let (single, double) = (Format::SINGLE, Format::DOUBLE);
        let least_exponent = 1 - single.bias().cast_signed();
        let magnitude = self.magnitude(x);
        let sign = self.shr_signed(x, 32);
        let sign = self.and(sign, single.sign());
        // Rounds to even: adds half of the last place, less one if it is even; adjusts the exponent at the
        // same time.
        let shift = double.fraction_bits - single.fraction_bits;
        let moved = (double.bias() - single.bias()) << double.fraction_bits;
        let last = self.shr_signed(magnitude, shift);
        let last = self.and(last, 1);
        let normal = self.add(magnitude, ((1 << (shift - 1)) - 1_u64).wrapping_sub(moved));
        let normal = self.add(normal, last);
        let normal = self.shr_signed(normal, shift);
        let normal = self.at_most(single.infinity(), normal);

        let step = least_exponent - single.fraction_bits.cast_signed();
        let grid = double.power_of_two(step + double.fraction_bits.cast_signed());
        let number = self.cast(F64, magnitude);
        let on_grid = self.at.ins().f64const(f64::from_bits(grid));
        let on_grid = self.at.ins().fadd(number, on_grid);
        let on_grid = self.cast(I64, on_grid);
        let subnormal = self.sub(on_grid, grid);
        let is_subnormal = self.is_below(magnitude, double.power_of_two(least_exponent));
        let result = self.select(is_subnormal, subnormal, normal);
        let nan = self.is_nan(magnitude);
        let result = self.select(nan, single.nan(), result);
        let result = self.or(result, sign);
        self.reduce(I32, result)
    }

    /// The sum of two binary64 numbers, with the last bit set if it is not exact (rounding to odd): rounded
    /// again to fewer than 52 bits it gives the same as the exact sum (Boldo and Melquiond 2008). The error
    /// term is that of Knuth's TwoSum; nothing overflows if both are products of binary32 numbers.
    pub(super) fn odd_sum(&mut self, x: Value, y: Value) -> Value {
        let double = Format::DOUBLE;
        let sum = self.at.ins().fadd(x, y);
        let y_part = self.at.ins().fsub(sum, x);
        let x_part = self.at.ins().fsub(sum, y_part);
        let x_error = self.at.ins().fsub(x, x_part);
        let y_error = self.at.ins().fsub(y, y_part);
        let error = self.at.ins().fadd(x_error, y_error);
        let (bits, error) = (self.cast(I64, sum), self.cast(I64, error));
        let without_sign = self.shl(error, 1);
        let exact = self.is(without_sign, IntCC::Equal, 0);
        // Moves one place towards the error: away from zero if the error has the sum's sign.
        let opposite = self.xor(bits, error);
        let towards_zero = self.sign_mask(opposite);
        let step = self.or(towards_zero, 1);
        let last = self.and(bits, 1);
        let odd = self.is(last, IntCC::NotEqual, 0);
        let magnitude = self.and(bits, double.sign() - 1);
        let special = self.is_above(magnitude, double.infinity() - 1);
        let keep = self.or(exact, odd);
        let keep = self.or(keep, special);
        let moved = self.add(bits, step);
        let result = self.select(keep, bits, moved);
        self.cast(F64, result)
    }
}
