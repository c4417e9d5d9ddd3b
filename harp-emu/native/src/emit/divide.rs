//! Integer division, which hosts have for single words only, and slowly.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{ConstantData, InstBuilder, Value, types};
use harp_isa::Opcode;

use super::Emitter;
use super::values::little;

/// The sum of this number of binary64 and a whole one below 2^51 has the latter's low bits where it has its own lowest.
const WHOLE: f64 = 1.5 * (1_u64 << 52) as f64;

fn is_signed(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Divs | Opcode::Mods)
}

fn is_quotient(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Div | Opcode::Divs)
}

impl Emitter<'_, '_> {
    /// A quotient or remainder of words. Any if the divisor is zero, as it may be in lanes that do not execute.
    pub(super) fn divide_words(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        let one = self.constant(1);
        let mut is_special = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let is_minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        if is_signed(opcode) {
            // The host traps where the quotient is too large.
            is_special = self.b.ins().bor(is_special, is_minus_one);
        }
        let divisor = self.b.ins().select(is_special, one, b);
        match opcode {
            Opcode::Div => self.b.ins().udiv(a, divisor),
            Opcode::Mod => self.b.ins().urem(a, divisor),
            Opcode::Mods => self.b.ins().srem(a, divisor),
            _ => {
                let quotient = self.b.ins().sdiv(a, divisor);
                let negative = self.b.ins().ineg(a);
                self.b.ins().select(is_minus_one, negative, quotient)
            }
        }
    }

    /// Quotients or remainders of vectors of 4-byte words, by way of binary64, in which these are exact. A quotient that is no
    /// whole number is at least 1 / divisor away from the next one, and rounding changes it by less than 2^-20 of that: so
    /// what is left of it without its fraction is right.
    pub(super) fn divide_vectors(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        let whole = self.float_constant(WHOLE);
        let [low, high] = [false, true].map(|high| {
            let [x, y] = [a, b].map(|words| self.half_as_floats(opcode, words, high));
            let quotient = self.b.ins().fdiv(x, y);
            let quotient = self.b.ins().trunc(quotient);
            let sum = self.b.ins().fadd(quotient, whole);
            self.b.ins().bitcast(types::I8X16, little(), sum)
        });
        let quotient = self.shuffle_bytes(low, high, |at| at / 4 * 8 + at % 4);
        let quotient = self.b.ins().bitcast(types::I32X4, little(), quotient);
        if is_quotient(opcode) {
            return quotient;
        }
        let product = self.b.ins().imul(quotient, b);
        self.b.ins().isub(a, product)
    }

    /// The low or high two of four words.
    fn half_as_floats(&mut self, opcode: Opcode, words: Value, high: bool) -> Value {
        let half = match high {
            false => words,
            true => {
                let bytes = self.b.ins().bitcast(types::I8X16, little(), words);
                let bytes = self.shuffle_bytes(bytes, bytes, |at| 8 + at % 8);
                self.b.ins().bitcast(types::I32X4, little(), bytes)
            }
        };
        if is_signed(opcode) {
            let wide = self.b.ins().swiden_low(half);
            self.b.ins().fcvt_from_sint(types::F64X2, wide)
        } else {
            let wide = self.b.ins().uwiden_low(half);
            self.b.ins().fcvt_from_uint(types::F64X2, wide)
        }
    }

    /// A vector whose byte number `at` is byte `from(at)` of both vectors together.
    fn shuffle_bytes(&mut self, one: Value, other: Value, from: impl Fn(u8) -> u8) -> Value {
        let mask: Vec<u8> = (0..16).map(from).collect();
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(mask));
        self.b.ins().shuffle(one, other, mask)
    }

    fn float_constant(&mut self, value: f64) -> Value {
        let value = self.b.ins().f64const(value);
        self.b.ins().splat(types::F64X2, value)
    }
}
