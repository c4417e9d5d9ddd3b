//! Shifts, rotations and bit counts of pairs.
//!
//! Amounts are modulo the width of the pair. Shifts of halves are modulo their own width, so one amount
//! serves both; one more bit of it decides which half goes where.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Opcode, Value};

use super::{Pair, Wide};

impl Wide<'_> {
    /// Any shift or rotation by `amount`, a half.
    pub(super) fn shift(&mut self, opcode: Opcode, x: Pair, amount: Value) -> Pair {
        if let Some(amount) = self.known(amount) {
            let by = (amount & u64::from(2 * self.bits() - 1)) as u32;
            return self.shift_by_constant(opcode, x, by);
        }
        match opcode {
            Opcode::Ishl => self.shift_left(x, amount),
            Opcode::Rotl => self.rotate_left(x, amount),
            Opcode::Rotr => {
                let left = self.at.ins().ineg(amount);
                self.rotate_left(x, left)
            }
            _ => self.shift_right(opcode, x, amount),
        }
    }

    fn shift_by_constant(&mut self, opcode: Opcode, x: Pair, by: u32) -> Pair {
        let bits = self.bits();
        if by == 0 {
            return x;
        }
        let [low, high] = x;
        let zero = self.konst(0);
        match opcode {
            Opcode::Ishl if by >= bits => [zero, self.shl(low, by - bits)],
            Opcode::Ishl => [self.shl(low, by), self.funnel(low, high, by)],
            Opcode::Ushr if by >= bits => [self.shr(high, by - bits), zero],
            Opcode::Ushr => [self.funnel(low, high, bits - by), self.shr(high, by)],
            Opcode::Sshr if by >= bits => [self.sar(high, by - bits), self.signs(high)],
            Opcode::Sshr => [self.funnel(low, high, bits - by), self.sar(high, by)],
            Opcode::Rotr => self.shift_by_constant(Opcode::Rotl, x, 2 * bits - by),
            _ if by >= bits => self.shift_by_constant(opcode, [high, low], by - bits),
            _ => [self.funnel(high, low, by), self.funnel(low, high, by)],
        }
    }

    /// The half that begins `by` bits, from 1 to all, below the top of `low`.
    fn funnel(&mut self, low: Value, high: Value, by: u32) -> Value {
        if by == self.bits() {
            return low;
        }
        let (top, bottom) = (self.shl(high, by), self.shr(low, self.bits() - by));
        self.or(top, bottom)
    }

    /// `high` shifted left and filled with the top bits of `low`, which are shifted right in two steps, so
    /// that no shift is by the whole width.
    fn fill_left(&mut self, low: Value, high: Value, amount: Value) -> Value {
        let top = self.at.ins().ishl(high, amount);
        let rest = self.not(amount);
        let once = self.shr(low, 1);
        let bottom = self.at.ins().ushr(once, rest);
        self.or(top, bottom)
    }

    /// Whether the amount is at least the width of a half.
    fn is_large(&mut self, amount: Value) -> Value {
        let bit = self.konst(self.bits().into());
        let large = self.and(amount, bit);
        self.is_nonzero(large)
    }

    fn shift_left(&mut self, [low, high]: Pair, amount: Value) -> Pair {
        let large = self.is_large(amount);
        let moved = self.at.ins().ishl(low, amount);
        let filled = self.fill_left(low, high, amount);
        let zero = self.konst(0);
        [self.select(large, zero, moved), self.select(large, moved, filled)]
    }

    fn shift_right(&mut self, opcode: Opcode, [low, high]: Pair, amount: Value) -> Pair {
        let large = self.is_large(amount);
        let (moved, fill) = match opcode {
            Opcode::Sshr => (self.at.ins().sshr(high, amount), self.signs(high)),
            _ => (self.at.ins().ushr(high, amount), self.konst(0)),
        };
        let bottom = self.at.ins().ushr(low, amount);
        let rest = self.not(amount);
        let once = self.shl(high, 1);
        let top = self.at.ins().ishl(once, rest);
        let filled = self.or(bottom, top);
        [self.select(large, moved, filled), self.select(large, fill, moved)]
    }

    fn rotate_left(&mut self, [low, high]: Pair, amount: Value) -> Pair {
        let large = self.is_large(amount);
        let lower = self.fill_left(high, low, amount);
        let upper = self.fill_left(low, high, amount);
        [self.select(large, upper, lower), self.select(large, lower, upper)]
    }

    /// Counts zeros above the highest one or below the lowest one: those of the half at that end, plus, if it
    /// is zero, those of the other half.
    pub(super) fn count_zeros(&mut self, opcode: Opcode, [low, high]: Pair) -> Pair {
        let (near, far) = if opcode == Opcode::Clz { (high, low) } else { (low, high) };
        let [near_zeros, far_zeros] = [near, far].map(|half| match opcode {
            Opcode::Clz => self.at.ins().clz(half),
            _ => self.at.ins().ctz(half),
        });
        let zero = self.konst(0);
        let bits = self.konst(self.bits().into());
        let more = self.add(far_zeros, bits);
        let empty = self.test(IntCC::Equal, near, zero);
        [self.select(empty, more, near_zeros), zero]
    }

    pub(super) fn count_ones(&mut self, [low, high]: Pair) -> Pair {
        let (low, high) = (self.at.ins().popcnt(low), self.at.ins().popcnt(high));
        [self.add(low, high), self.konst(0)]
    }
}
