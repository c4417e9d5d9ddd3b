//! Operations on halves, with constants folded.
//!
//! If the mid-end does not run, this folding alone keeps the high half of a zero-extended value free of cost.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::Wide;
use crate::constant;

impl Wide<'_> {
    /// The width of a half in bits.
    pub(super) fn bits(&self) -> u32 {
        self.half.bits()
    }

    /// All ones in a half.
    pub(super) fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The low bits of `bits` as a constant half.
    pub(super) fn konst(&mut self, bits: u64) -> Value {
        let bits = (bits & self.mask()).cast_signed();
        self.at.ins().iconst(self.half, bits)
    }

    /// A constant truth value.
    fn truth(&mut self, truth: bool) -> Value {
        self.at.ins().iconst(types::I8, i64::from(truth))
    }

    /// The bits of a constant, zero-extended.
    pub(super) fn known(&self, value: Value) -> Option<u64> {
        constant::unsigned(&self.at.func.dfg, value)
    }

    pub(super) fn is_known(&self, value: Value, bits: u64) -> bool {
        self.known(value) == Some(bits)
    }

    pub(super) fn add(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x.wrapping_add(y)),
            (Some(0), _) => y,
            (_, Some(0)) => x,
            _ => self.at.ins().iadd(x, y),
        }
    }

    pub(super) fn sub(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x.wrapping_sub(y)),
            (_, Some(0)) => x,
            (Some(0), _) => self.at.ins().ineg(y),
            _ => self.at.ins().isub(x, y),
        }
    }

    pub(super) fn mul(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x.wrapping_mul(y)),
            (Some(0), _) | (_, Some(1)) => x,
            (_, Some(0)) | (Some(1), _) => y,
            _ => self.at.ins().imul(x, y),
        }
    }

    /// The high half of the unsigned product.
    pub(super) fn mul_high(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(0 | 1), _) | (_, Some(0 | 1)) => self.konst(0),
            _ => self.at.ins().umulhi(x, y),
        }
    }

    pub(super) fn and(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x & y),
            (Some(0), _) => x,
            (_, Some(0)) => y,
            (Some(ones), _) if ones == self.mask() => y,
            (_, Some(ones)) if ones == self.mask() => x,
            _ => self.at.ins().band(x, y),
        }
    }

    pub(super) fn or(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x | y),
            (Some(0), _) => y,
            (_, Some(0)) => x,
            (Some(ones), _) if ones == self.mask() => x,
            (_, Some(ones)) if ones == self.mask() => y,
            _ => self.at.ins().bor(x, y),
        }
    }

    pub(super) fn xor(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => self.konst(x ^ y),
            (Some(0), _) => y,
            (_, Some(0)) => x,
            _ => self.at.ins().bxor(x, y),
        }
    }

    pub(super) fn not(&mut self, x: Value) -> Value {
        match self.known(x) {
            Some(x) => self.konst(!x),
            None => self.at.ins().bnot(x),
        }
    }

    /// Shifts left by a number below the width of a half.
    pub(super) fn shl(&mut self, x: Value, by: u32) -> Value {
        match self.known(x) {
            _ if by == 0 => x,
            Some(x) => self.konst(x << by),
            None => {
                let by = self.konst(by.into());
                self.at.ins().ishl(x, by)
            }
        }
    }

    /// Shifts right by a number below the width of a half, filling with zeros.
    pub(super) fn shr(&mut self, x: Value, by: u32) -> Value {
        match self.known(x) {
            _ if by == 0 => x,
            Some(x) => self.konst(x >> by),
            None => {
                let by = self.konst(by.into());
                self.at.ins().ushr(x, by)
            }
        }
    }

    /// Shifts right by a number below the width of a half, filling with copies of the sign.
    pub(super) fn sar(&mut self, x: Value, by: u32) -> Value {
        match self.known(x) {
            _ if by == 0 => x,
            Some(x) => {
                let unused = 64 - self.bits();
                let signed = x.cast_signed() << unused >> unused;
                self.konst((signed >> by).cast_unsigned())
            }
            None => {
                let by = self.konst(by.into());
                self.at.ins().sshr(x, by)
            }
        }
    }

    /// All ones where the half is negative, else 0.
    pub(super) fn signs(&mut self, x: Value) -> Value {
        self.sar(x, self.bits() - 1)
    }

    /// Compares two halves for equality or for "less than"; other conditions are built from these.
    pub(super) fn test(&mut self, condition: IntCC, x: Value, y: Value) -> Value {
        let zero_below = condition == IntCC::UnsignedLessThan;
        match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) => {
                let unused = 64 - self.bits();
                let [x, y] = [x, y].map(|bits| bits.cast_signed() << unused);
                self.truth(match condition {
                    IntCC::Equal => x == y,
                    IntCC::NotEqual => x != y,
                    IntCC::SignedLessThan => x < y,
                    _ => x.cast_unsigned() < y.cast_unsigned(),
                })
            }
            (_, Some(0)) if zero_below => self.truth(false),
            (Some(0), _) if zero_below => self.at.ins().icmp(IntCC::NotEqual, y, x),
            _ => self.at.ins().icmp(condition, x, y),
        }
    }

    /// Whether a half is not zero.
    pub(super) fn is_nonzero(&mut self, x: Value) -> Value {
        let zero = self.konst(0);
        self.test(IntCC::NotEqual, x, zero)
    }

    pub(super) fn both(&mut self, p: Value, q: Value) -> Value {
        match (self.known(p), self.known(q)) {
            (Some(0), _) | (_, Some(1)) => p,
            (_, Some(0)) | (Some(1), _) => q,
            _ => self.at.ins().band(p, q),
        }
    }

    pub(super) fn either(&mut self, p: Value, q: Value) -> Value {
        match (self.known(p), self.known(q)) {
            (Some(1), _) | (_, Some(0)) => p,
            (_, Some(1)) | (Some(0), _) => q,
            _ => self.at.ins().bor(p, q),
        }
    }

    pub(super) fn opposite(&mut self, p: Value) -> Value {
        if let Some(truth) = self.known(p) {
            return self.truth(truth == 0);
        }
        let one = self.truth(true);
        self.at.ins().bxor(p, one)
    }

    /// A truth value as a half, 0 or 1.
    pub(super) fn bit(&mut self, p: Value) -> Value {
        match self.known(p) {
            Some(truth) => self.konst(truth),
            None => self.at.ins().uextend(self.half, p),
        }
    }

    /// `x` where `condition` is not zero, else `y`.
    pub(super) fn select(&mut self, condition: Value, x: Value, y: Value) -> Value {
        match self.known(condition) {
            Some(0) => y,
            Some(_) => x,
            None if x == y => x,
            None => self.at.ins().select(condition, x, y),
        }
    }
}
