//! Unpacks floats and packs them again.

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

use super::soft::Soft;

/// A nonzero number as a significand with its highest bit set and a biased exponent of any size. For zero the
/// significand is 0 and the exponent is below that of any other number.
#[derive(Clone, Copy)]
pub(super) struct Normal {
    pub(super) significand: Value,
    pub(super) exponent: Value,
}

impl Soft<'_, '_> {
    /// The bits without the sign.
    pub(super) fn magnitude(&mut self, x: Value) -> Value {
        self.and(x, self.format.sign() - 1)
    }

    /// The sign bit in place.
    pub(super) fn sign(&mut self, x: Value) -> Value {
        self.and(x, self.format.sign())
    }

    /// Whether this is the magnitude of a NaN.
    pub(super) fn is_nan(&mut self, magnitude: Value) -> Value {
        self.is_above(magnitude, self.format.infinity())
    }

    /// Whether this is the magnitude of an infinity or a NaN.
    pub(super) fn is_special(&mut self, magnitude: Value) -> Value {
        self.is_above(magnitude, self.format.infinity() - 1)
    }

    /// The exponent and significand of a finite number. Subnormal numbers get the smallest exponent and no
    /// hidden bit.
    pub(super) fn unpack(&mut self, magnitude: Value) -> (Value, Value) {
        let fraction_bits = self.format.fraction_bits;
        let field = self.shr(magnitude, fraction_bits);
        let subnormal = self.is(field, IntCC::Equal, 0);
        let subnormal = self.number(subnormal, self.format.int);
        let exponent = self.add(field, subnormal);
        let below = self.sub(exponent, 1);
        let below = self.shl(below, fraction_bits);
        (exponent, self.sub(magnitude, below))
    }

    /// The same with the significand's highest bit set.
    pub(super) fn unpack_normal(&mut self, magnitude: Value) -> Normal {
        let (exponent, significand) = self.unpack(magnitude);
        let zeros = self.clz(significand);
        let zeros_of_normal = self.width() - 1 - self.format.fraction_bits;
        let exponent = self.add(exponent, zeros_of_normal);
        let exponent = self.sub(exponent, zeros);
        let zero = self.is(significand, IntCC::Equal, 0);
        let least = (4 * self.format.largest_exponent()).wrapping_neg();
        Normal {
            significand: self.shl(significand, zeros),
            exponent: self.select(zero, least, exponent),
        }
    }

    /// The float nearest to a number, ties to even. The number is given by `sign`, a sign bit in place, a
    /// biased exponent of any size, and a significand with the bit below its highest one set, whose lowest
    /// bit is sticky.
    ///
    /// After J. R. Hauser, Berkeley SoftFloat: the exponent is packed less one, since the hidden bit is added
    /// to it, as is the carry of rounding.
    pub(super) fn round_and_pack(
        &mut self,
        sign: Value,
        exponent: Value,
        significand: Value,
    ) -> Value {
        let one = self.bits(1);
        let below = self.sub(one, exponent);
        let below = self.smax(below, 0);
        let significand = self.shift_right_jam(significand, below);
        let packed = self.sub(exponent, 1);
        let packed = self.smax(packed, 0);
        let rounded = self.round_significand(packed, significand);
        let limit = self.format.largest_exponent() - 1;
        let overflow = self.bits(limit);
        let overflow = self.is(overflow, IntCC::SignedLessThan, exponent);
        let magnitude = self.select(overflow, self.format.infinity(), rounded);
        self.or(magnitude, sign)
    }

    /// The last step, for exponents, less one, that are in range.
    pub(super) fn round_significand(&mut self, exponent: Value, significand: Value) -> Value {
        let fraction_bits = self.format.fraction_bits;
        let guard = self.width() - 2 - fraction_bits;
        let lowest = self.shr(significand, guard);
        let lowest = self.and(lowest, 1);
        let rounded = self.add(significand, (1 << (guard - 1)) - 1);
        let rounded = self.add(rounded, lowest);
        let rounded = self.shr(rounded, guard);
        let exponent = self.shl(exponent, fraction_bits);
        self.add(exponent, rounded)
    }
}
