//! Halves, which are only stored: arithmetic is done in 32 bits. And rounding in a given direction.
//!
//! The conversions are those of Giesen ("half_to_float_fast" and "float_to_half_fast3_rtne", 2012), without branches. A
//! sum, difference, product, quotient or square root of halves, rounded to 24 bits and then to 11, is rounded correctly,
//! since 24 is at least twice 11 and 2 (Figueroa, "When is double rounding innocuous?", 1995).

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use rspirv::spirv::FPRoundingMode;

use crate::error::Result;
use crate::function::Translator;
use crate::reader::Id;
use crate::types::Kind;

/// The bits of a half's infinity.
const INFINITY: i64 = 0x7c00;

/// A quiet NaN among halves.
const NAN: i64 = 0x7e00;

/// The bits of a float of 32 bits that a half's smallest normal number is.
const LEAST_NORMAL: i64 = 113 << 23;

/// Those of the power of two above the largest half.
const BEYOND: i64 = 143 << 23;

/// Those of a half: with it in a sum, the unit in the last place is a half's smallest number.
const SUBNORMAL_MAGIC: i64 = 126 << 23;

impl Translator<'_, '_, '_> {
    /// Whether a type is a half, or a vector of halves.
    pub(crate) fn is_half(&self, ty: Id) -> Result<bool> {
        let (component, _) = self.module.types.components(ty)?;
        Ok(matches!(self.module.types.kind(component)?, Kind::Float { bits: 16 }))
    }

    /// Whether a half is neither zero nor subnormal, infinite or no number.
    pub(crate) fn is_normal_half(&mut self, half: ir::Value) -> ir::Value {
        let wide = self.b.ins().uextend(types::I32, half);
        let exponent = self.b.ins().band_imm_u(wide, INFINITY);
        let least = INFINITY & INFINITY.wrapping_neg();
        let above = self.b.ins().iadd_imm_s(exponent, -least);
        self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, above, INFINITY - least)
    }

    /// The float of 32 bits that is equal to a half.
    pub(crate) fn half_to_single(&mut self, half: ir::Value) -> ir::Value {
        let b = &mut self.b;
        let wide = b.ins().uextend(types::I32, half);
        let magnitude = b.ins().band_imm_u(wide, 0x7fff);
        let sign = b.ins().bxor(wide, magnitude);
        let sign = b.ins().ishl_imm_u(sign, 16);
        let shifted = b.ins().ishl_imm_u(magnitude, 13);
        let scaled = b.ins().bitcast(types::F32, MemFlagsData::new(), shifted);
        let scale = b.ins().f32const(112_f32.exp2());
        let finite = b.ins().fmul(scaled, scale);
        let finite = b.ins().bitcast(types::I32, MemFlagsData::new(), finite);
        let special = b.ins().bor_imm_u(shifted, i64::from(f32::INFINITY.to_bits()));
        let is_special = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, magnitude, INFINITY);
        let bits = b.ins().select(is_special, special, finite);
        let bits = b.ins().bor(bits, sign);
        b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
    }

    /// The half nearest to a float of 32 bits.
    pub(crate) fn single_to_half(&mut self, single: ir::Value) -> ir::Value {
        let b = &mut self.b;
        let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), single);
        let magnitude = b.ins().band_imm_u(bits, 0x7fff_ffff);
        let sign = b.ins().bxor(bits, magnitude);
        let sign = b.ins().ushr_imm_u(sign, 16);
        // Normal numbers: the exponent is rebased, and half a unit is added, less if the last bit is even.
        let last = b.ins().ushr_imm_u(magnitude, 13);
        let odd = b.ins().band_imm_u(last, 1);
        let rebased = b.ins().iadd_imm_s(magnitude, 0xfff - (112 << 23));
        let rounded = b.ins().iadd(rebased, odd);
        let normal = b.ins().ushr_imm_u(rounded, 13);
        // Subnormal ones: the sum rounds.
        let magic = b.ins().iconst(types::I32, SUBNORMAL_MAGIC);
        let magic_float = b.ins().bitcast(types::F32, MemFlagsData::new(), magic);
        let float = b.ins().bitcast(types::F32, MemFlagsData::new(), magnitude);
        let sum = b.ins().fadd(float, magic_float);
        let sum = b.ins().bitcast(types::I32, MemFlagsData::new(), sum);
        let subnormal = b.ins().isub(sum, magic);
        let infinity = b.ins().iconst(types::I32, INFINITY);
        let nan = b.ins().band_imm_u(last, 0x3ff);
        let nan = b.ins().bor_imm_u(nan, NAN);
        let is_nan = b.ins().fcmp(FloatCC::Unordered, single, single);
        let special = b.ins().select(is_nan, nan, infinity);
        let is_small = b.ins().icmp_imm_u(IntCC::UnsignedLessThan, magnitude, LEAST_NORMAL);
        let is_large = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, magnitude, BEYOND);
        let half = b.ins().select(is_small, subnormal, normal);
        let half = b.ins().select(is_large, special, half);
        let half = b.ins().bor(half, sign);
        b.ins().ireduce(types::I16, half)
    }

    /// A float of `from` bits as one of `to` bits, rounded to the nearest or in a direction.
    pub(crate) fn float_of_width(
        &mut self,
        x: ir::Value,
        from: u32,
        to: u32,
        mode: Option<FPRoundingMode>,
    ) -> ir::Value {
        let mode = mode.filter(|&mode| mode != FPRoundingMode::RTE);
        match (from, to) {
            (16, 32) => self.half_to_single(x),
            (16, 64) => {
                let single = self.half_to_single(x);
                self.b.ins().fpromote(types::F64, single)
            }
            (32, 64) => self.b.ins().fpromote(types::F64, x),
            (32, 16) => self.rounded_half(x, mode),
            (64, 16) => {
                let single = self.single_to_odd(x);
                self.rounded_half(single, mode)
            }
            (64, 32) => self.rounded_single(x, mode),
            _ => x,
        }
    }

    fn rounded_half(&mut self, x: ir::Value, mode: Option<FPRoundingMode>) -> ir::Value {
        let half = self.single_to_half(x);
        let Some(mode) = mode else { return half };
        let back = self.half_to_single(half);
        let too_small = self.b.ins().fcmp(FloatCC::LessThan, back, x);
        let too_large = self.b.ins().fcmp(FloatCC::GreaterThan, back, x);
        self.directed(half, too_small, too_large, mode)
    }

    fn rounded_single(&mut self, x: ir::Value, mode: Option<FPRoundingMode>) -> ir::Value {
        let single = self.b.ins().fdemote(types::F32, x);
        let Some(mode) = mode else { return single };
        let back = self.b.ins().fpromote(types::F64, single);
        let too_small = self.b.ins().fcmp(FloatCC::LessThan, back, x);
        let too_large = self.b.ins().fcmp(FloatCC::GreaterThan, back, x);
        let bits = self.float_bits(single);
        let bits = self.directed(bits, too_small, too_large, mode);
        self.b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
    }

    /// A float of 64 bits as one of 32 bits that is odd unless it is equal, so that it can be rounded once more (Boldo and
    /// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    fn single_to_odd(&mut self, x: ir::Value) -> ir::Value {
        let single = self.rounded_single(x, Some(FPRoundingMode::RTZ));
        let back = self.b.ins().fpromote(types::F64, single);
        let differs = self.b.ins().fcmp(FloatCC::OrderedNotEqual, back, x);
        let differs = self.b.ins().uextend(types::I32, differs);
        let bits = self.float_bits(single);
        let bits = self.b.ins().bor(bits, differs);
        self.b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
    }

    /// The bits of the float in the direction of a rounding mode, given those of the nearest one, and whether that is
    /// smaller or larger than the exact result.
    pub(crate) fn directed(
        &mut self,
        bits: ir::Value,
        too_small: ir::Value,
        too_large: ir::Value,
        mode: FPRoundingMode,
    ) -> ir::Value {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, bits, 0);
        let (up, down) = (self.b.ins().iadd_imm_s(bits, 1), self.b.ins().iadd_imm_s(bits, -1));
        let above = self.b.ins().select(negative, down, up);
        let below = self.b.ins().select(negative, up, down);
        let risen = self.b.ins().select(too_small, above, bits);
        let fallen = self.b.ins().select(too_large, below, bits);
        match mode {
            FPRoundingMode::RTP => risen,
            FPRoundingMode::RTN => fallen,
            FPRoundingMode::RTZ => self.b.ins().select(negative, risen, fallen),
            FPRoundingMode::RTE => bits,
        }
    }
}
