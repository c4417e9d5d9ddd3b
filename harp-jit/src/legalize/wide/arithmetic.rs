//! Sums, products, logic and comparisons of pairs.

use cranelift_codegen::ir::condcodes::{CondCode as _, IntCC};
use cranelift_codegen::ir::{InstBuilder, Opcode, TrapCode, Value};

use super::{Pair, Wide};

impl Wide<'_> {
    pub(super) fn zero(&mut self) -> Pair {
        let zero = self.konst(0);
        [zero, zero]
    }

    /// Applies an operation on halves to both halves of two pairs.
    pub(super) fn each(
        &mut self,
        operation: fn(&mut Self, Value, Value) -> Value,
        x: Pair,
        y: Pair,
    ) -> Pair {
        [operation(self, x[0], y[0]), operation(self, x[1], y[1])]
    }

    pub(super) fn add_pairs(&mut self, x: Pair, y: Pair) -> Pair {
        let low = self.add(x[0], y[0]);
        let high = self.add(x[1], y[1]);
        // If the sum is one of the terms, the other term is 0 and there is no carry.
        if low == x[0] || low == y[0] {
            return [low, high];
        }
        let carry = self.test(IntCC::UnsignedLessThan, low, x[0]);
        let carry = self.bit(carry);
        [low, self.add(high, carry)]
    }

    pub(super) fn sub_pairs(&mut self, x: Pair, y: Pair) -> Pair {
        let borrow = self.test(IntCC::UnsignedLessThan, x[0], y[0]);
        let borrow = self.bit(borrow);
        let low = self.sub(x[0], y[0]);
        let high = self.sub(x[1], y[1]);
        [low, self.sub(high, borrow)]
    }

    /// Negates where the mask, all ones or 0, is set.
    pub(super) fn negate_if(&mut self, mask: Value, x: Pair) -> Pair {
        let mask = [mask; 2];
        let flipped = self.each(Self::xor, x, mask);
        self.sub_pairs(flipped, mask)
    }

    pub(super) fn mul_pairs(&mut self, x: Pair, y: Pair) -> Pair {
        let [low, carried] = self.product(x[0], y[0]);
        let (left, right) = (self.mul(x[0], y[1]), self.mul(x[1], y[0]));
        let cross = self.add(left, right);
        [low, self.add(carried, cross)]
    }

    /// The full product of two halves, as a pair.
    pub(super) fn product(&mut self, x: Value, y: Value) -> Pair {
        [self.mul(x, y), self.mul_high(x, y)]
    }

    /// The high half of the unsigned product of pairs: schoolbook multiplication, whose partial sums
    /// cannot overflow a pair (Warren, Hacker's Delight, section 8-2).
    pub(super) fn unsigned_high(&mut self, x: Pair, y: Pair) -> Pair {
        let zero = self.konst(0);
        let lowest = self.mul_high(x[0], y[0]);
        let (left, right) = (self.product(x[0], y[1]), self.product(x[1], y[0]));
        let highest = self.product(x[1], y[1]);
        let left = self.add_pairs(left, [lowest, zero]);
        let right = self.add_pairs(right, [left[0], zero]);
        let high = self.add_pairs(highest, [left[1], zero]);
        self.add_pairs(high, [right[1], zero])
    }

    /// The high half of the signed product. In the unsigned product, a negative operand counts 2^n too much.
    pub(super) fn signed_high(&mut self, x: Pair, y: Pair) -> Pair {
        let mut high = self.unsigned_high(x, y);
        for (sign, other) in [(x[1], y), (y[1], x)] {
            let mask = self.signs(sign);
            let extra = self.each(Self::and, other, [mask; 2]);
            high = self.sub_pairs(high, extra);
        }
        high
    }

    pub(super) fn select_pairs(&mut self, condition: Value, x: Pair, y: Pair) -> Pair {
        [self.select(condition, x[0], y[0]), self.select(condition, x[1], y[1])]
    }

    /// Minimum and maximum.
    pub(super) fn extreme(&mut self, opcode: Opcode, x: Pair, y: Pair) -> Pair {
        let condition = match opcode {
            Opcode::Smin | Opcode::Smax => IntCC::SignedLessThan,
            _ => IntCC::UnsignedLessThan,
        };
        let less = self.compare(condition, x, y);
        match opcode {
            Opcode::Smin | Opcode::Umin => self.select_pairs(less, x, y),
            _ => self.select_pairs(less, y, x),
        }
    }

    /// A comparison; the result is a truth value.
    pub(super) fn compare(&mut self, condition: IntCC, x: Pair, y: Pair) -> Value {
        match condition {
            IntCC::Equal | IntCC::NotEqual => {
                let [low, high] = self.each(Self::xor, x, y);
                let difference = self.or(low, high);
                let zero = self.konst(0);
                self.test(condition, difference, zero)
            }
            IntCC::SignedLessThan | IntCC::UnsignedLessThan => {
                let less = self.test(condition, x[1], y[1]);
                let same = self.test(IntCC::Equal, x[1], y[1]);
                let below = self.test(IntCC::UnsignedLessThan, x[0], y[0]);
                let below = self.both(same, below);
                self.either(less, below)
            }
            IntCC::SignedGreaterThan | IntCC::UnsignedGreaterThan => {
                self.compare(condition.swap_args(), y, x)
            }
            _ => {
                let opposite = self.compare(condition.complement(), x, y);
                self.opposite(opposite)
            }
        }
    }

    /// A sum that traps if it overflows.
    pub(super) fn add_or_trap(&mut self, x: Pair, y: Pair, code: TrapCode) -> Pair {
        let sum = self.add_pairs(x, y);
        let overflow = self.compare(IntCC::UnsignedLessThan, sum, x);
        self.at.ins().trapnz(overflow, code);
        sum
    }
}
