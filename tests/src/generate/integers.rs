//! Integer operations.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{MemFlagsData, Type, Value, types};
use harp_jit::KernelBuilder;

use super::Generator;

const CONDITIONS: [IntCC; 10] = [
    IntCC::Equal,
    IntCC::NotEqual,
    IntCC::SignedLessThan,
    IntCC::SignedLessThanOrEqual,
    IntCC::SignedGreaterThan,
    IntCC::SignedGreaterThanOrEqual,
    IntCC::UnsignedLessThan,
    IntCC::UnsignedLessThanOrEqual,
    IntCC::UnsignedGreaterThan,
    IntCC::UnsignedGreaterThanOrEqual,
];

impl Generator<'_> {
    pub(super) fn int_condition(&mut self) -> IntCC {
        self.choices.one(&CONDITIONS)
    }

    pub(super) fn compare_ints(&mut self, b: &mut KernelBuilder<'_>, depth: usize) -> Value {
        let ty = self.choices.one(self.family.ints());
        let depth = depth.saturating_sub(1);
        let (x, y) = (self.value(b, ty, depth), self.value(b, ty, depth));
        let condition = self.int_condition();
        b.ins().icmp(condition, x, y)
    }

    pub(super) fn int_op(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        match self.choices.below(10) {
            0..=3 => self.int_binary(b, ty, depth),
            4 => self.int_unary(b, ty, depth),
            5 => self.shift(b, ty, depth),
            6 => self.divide(b, ty, depth),
            7 => self.choose_int(b, ty, depth),
            8 => self.convert_to_int(b, ty, depth),
            _ => self.load_int(b, ty, depth),
        }
    }

    fn int_binary(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        match self.choices.below(16) {
            13 => self.flagged(b, x, y),
            14 => self.carrying(b, x, y, depth),
            15 if ty != types::I8 => {
                let ((low, _), (_, high)) = (b.ins().isplit(x), b.ins().isplit(y));
                b.ins().iconcat(high, low)
            }
            0 => b.ins().iadd(x, y),
            1 => b.ins().isub(x, y),
            2 => b.ins().imul(x, y),
            3 => b.ins().band(x, y),
            4 => b.ins().bor(x, y),
            5 => b.ins().bxor(x, y),
            6 => b.ins().smin(x, y),
            7 => b.ins().smax(x, y),
            8 => b.ins().umin(x, y),
            9 => b.ins().umax(x, y),
            10 => b.ins().umulhi(x, y),
            11 => b.ins().smulhi(x, y),
            _ => b.ins().band_not(x, y),
        }
    }

    /// An operation that tells of its overflow; the flag is a value like others.
    fn flagged(&mut self, b: &mut KernelBuilder<'_>, x: Value, y: Value) -> Value {
        let (value, flag) = match self.choices.below(6) {
            0 => b.ins().uadd_overflow(x, y),
            1 => b.ins().sadd_overflow(x, y),
            2 => b.ins().usub_overflow(x, y),
            3 => b.ins().ssub_overflow(x, y),
            4 => b.ins().umul_overflow(x, y),
            _ => b.ins().smul_overflow(x, y),
        };
        self.pool.push((flag, types::I8));
        value
    }

    /// The same with a carry.
    fn carrying(&mut self, b: &mut KernelBuilder<'_>, x: Value, y: Value, depth: usize) -> Value {
        let carry = self.condition_or_leaf(b, depth - 1);
        let (value, flag) = match self.choices.below(4) {
            0 => b.ins().uadd_overflow_cin(x, y, carry),
            1 => b.ins().sadd_overflow_cin(x, y, carry),
            2 => b.ins().usub_overflow_bin(x, y, carry),
            _ => b.ins().ssub_overflow_bin(x, y, carry),
        };
        self.pool.push((flag, types::I8));
        value
    }

    fn int_unary(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let x = self.value(b, ty, depth - 1);
        match self.choices.below(9) {
            8 => b.ins().cls(x),
            0 => b.ins().bnot(x),
            1 => b.ins().ineg(x),
            2 => b.ins().iabs(x),
            3 => b.ins().popcnt(x),
            4 => b.ins().clz(x),
            5 => b.ins().ctz(x),
            6 => b.ins().bitrev(x),
            _ if ty == types::I8 => b.ins().bitrev(x),
            _ => b.ins().bswap(x),
        }
    }

    fn shift(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let amount_ty = self.choices.one(self.family.ints());
        let (x, n) = (self.value(b, ty, depth - 1), self.value(b, amount_ty, depth - 1));
        match self.choices.below(5) {
            0 => b.ins().ishl(x, n),
            1 => b.ins().ushr(x, n),
            2 => b.ins().sshr(x, n),
            3 => b.ins().rotl(x, n),
            _ => b.ins().rotr(x, n),
        }
    }

    /// Divisions that cannot trap, unless the kernel may.
    fn divide(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        let unsafe_one = self.may_trap && self.choices.once_in(3);
        let which = self.choices.below(4);
        let divisor = match which {
            _ if unsafe_one => y,
            3 => self.safe_signed_divisor(b, ty, y),
            _ => {
                let one = b.ins().iconst(ty, 1);
                b.ins().bor(y, one)
            }
        };
        match which {
            0 => b.ins().udiv(x, divisor),
            1 => b.ins().urem(x, divisor),
            2 => b.ins().srem(x, divisor),
            _ => b.ins().sdiv(x, divisor),
        }
    }

    /// Neither 0 nor -1.
    fn safe_signed_divisor(&mut self, b: &mut KernelBuilder<'_>, ty: Type, y: Value) -> Value {
        let most = (1_i64 << (ty.bits() - 1)).wrapping_sub(1);
        match self.choices.below(3) {
            0 => {
                let mask = u64::MAX >> (64 - ty.bits());
                let constants = [2, 3, 5, 7, 10, 100, mask - 1, mask - 2, mask - 6, most as u64];
                let constant = self.choices.one(&constants);
                b.ins().iconst(ty, constant.cast_signed())
            }
            sign => {
                let (two, most) = (b.ins().iconst(ty, 2), b.ins().iconst(ty, most));
                let large = b.ins().bor(y, two);
                let positive = b.ins().band(large, most);
                if sign == 1 { positive } else { b.ins().ineg(positive) }
            }
        }
    }

    fn choose_int(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let (x, y) = (self.value(b, ty, depth - 1), self.value(b, ty, depth - 1));
        match self.choices.below(6) {
            5 => {
                let chooser = self.value(b, ty, depth - 1);
                b.ins().sequence_point();
                b.ins().blendv(chooser, x, y)
            }
            4 => {
                let condition = self.condition(b, depth - 1);
                b.ins().select_spectre_guard(condition, x, y)
            }
            0 => {
                let mask = self.value(b, ty, depth - 1);
                b.ins().bitselect(mask, x, y)
            }
            1 => {
                let from = self.choices.one(self.family.ints());
                let x = self.value(b, from, depth - 1);
                b.ins().bmask(ty, x)
            }
            _ => {
                let condition = self.condition(b, depth - 1);
                b.ins().select(condition, x, y)
            }
        }
    }

    fn convert_to_int(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        match self.choices.below(4) {
            3 => self.float_to_int(b, ty, depth),
            2 if ty == types::I8 => self.condition_or_leaf(b, depth - 1),
            _ => {
                let from = self.choices.one(self.family.ints());
                let x = self.value(b, from, depth - 1);
                self.resize(b, ty, x)
            }
        }
    }

    /// `x` as an integer of type `ty`.
    pub(super) fn resize(&mut self, b: &mut KernelBuilder<'_>, ty: Type, x: Value) -> Value {
        let from = b.inner().func.dfg.value_type(x);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Greater => b.ins().ireduce(ty, x),
            std::cmp::Ordering::Equal => x,
            std::cmp::Ordering::Less if self.choices.below(2) == 0 => b.ins().uextend(ty, x),
            std::cmp::Ordering::Less => b.ins().sextend(ty, x),
        }
    }

    fn float_to_int(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let from = self.choices.one(self.family.floats());
        let x = self.value(b, from, depth - 1);
        match self.choices.below(if self.may_trap { 4 } else { 3 }) {
            0 => b.ins().fcvt_to_sint_sat(ty, x),
            1 => b.ins().fcvt_to_uint_sat(ty, x),
            3 if self.choices.below(2) == 0 => b.ins().fcvt_to_sint(ty, x),
            3 => b.ins().fcvt_to_uint(ty, x),
            _ if from.bits() == ty.bits() => {
                let x = self.number(b, x);
                b.ins().bitcast(ty, MemFlagsData::new(), x)
            }
            _ => b.ins().fcvt_to_sint_sat(ty, x),
        }
    }
}
