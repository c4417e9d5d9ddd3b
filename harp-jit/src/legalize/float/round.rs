//! Rounding to integral floats, with masks.

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

use super::soft::Soft;

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Towards zero.
    Zero,
    /// Upwards.
    Up,
    /// Downwards.
    Down,
    /// To the nearest, ties to even.
    Nearest,
}

impl Soft<'_, '_> {
    /// The integral float in that direction; zero results keep the sign.
    pub(super) fn float_round(&mut self, direction: Direction, x: Value) -> Value {
        let one = self.format.power_of_two(0);
        let magnitude = self.magnitude(x);
        let sign = self.sign(x);

        // For magnitudes of at least 1: a mask of the bits below the binary point, fewer for larger
        // exponents.
        let exponent = self.shr(magnitude, self.format.fraction_bits);
        let steps = self.sub(exponent, self.format.bias());
        let fraction = self.bits(self.format.fraction());
        let mask = self.shr(fraction, steps);
        let added = match direction {
            Direction::Zero => None,
            Direction::Up | Direction::Down => Some(self.away(direction, x, mask)),
            Direction::Nearest => {
                let lowest = self.add(mask, 1);
                let lowest = self.and(x, lowest);
                let odd = self.is(lowest, IntCC::NotEqual, 0);
                let odd = self.number(odd, self.format.int);
                let half = self.shr(mask, 1);
                Some(self.add(half, odd))
            }
        };
        // A carry out of the fraction correctly increments the exponent.
        let moved = added.map_or(x, |added| self.add(x, added));
        let kept = self.not(mask);
        let rounded = self.and(moved, kept);

        // For magnitudes below 1: zero or one.
        let small = match direction {
            Direction::Zero => sign,
            Direction::Up | Direction::Down => {
                let zero = self.is(magnitude, IntCC::Equal, 0);
                let zero_bits = self.bits(0);
                let one = self.bits(one);
                let one = self.select(zero, zero_bits, one);
                let added = self.away(direction, x, one);
                self.or(sign, added)
            }
            Direction::Nearest => {
                let zero = self.bits(0);
                let above_half = self.is_above(magnitude, self.format.power_of_two(-1));
                let one = self.select(above_half, one, zero);
                self.or(sign, one)
            }
        };
        let is_small = self.is_below(magnitude, one);
        let result = self.select(is_small, small, rounded);
        let integers = self.format.power_of_two(self.format.fraction_bits.cast_signed());
        let is_integer = self.is_above(magnitude, integers - 1);
        self.select(is_integer, x, result)
    }

    /// `amount` if the direction is away from zero for the sign of `x`, else 0.
    fn away(&mut self, direction: Direction, x: Value, amount: Value) -> Value {
        let mask = self.sign_mask(x);
        let mask = if direction == Direction::Up { self.not(mask) } else { mask };
        self.and(amount, mask)
    }
}
