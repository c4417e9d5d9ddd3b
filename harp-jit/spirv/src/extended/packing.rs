//! Several small numbers in one integer.

use cranelift_codegen::ir::{self, InstBuilder, types};
use harp_libm::Math;
use rspirv::spirv::GlslStd450Op as Gl;

use super::missing;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::Instruction;
use crate::values::Parts;

/// Fractions as integers: how many there are in 32 bits, and whether they have signs.
struct Format {
    count: usize,
    signed: bool,
}

impl Format {
    fn bits(&self) -> i64 {
        32 / self.count as i64
    }

    /// The integer that 1 is.
    fn one(&self) -> f64 {
        let bits = self.bits() - i64::from(self.signed);
        ((1_u64 << bits) - 1) as f64
    }
}

fn format_of(op: Gl) -> Option<Format> {
    Some(match op {
        Gl::PackSnorm4x8 | Gl::UnpackSnorm4x8 => Format { count: 4, signed: true },
        Gl::PackUnorm4x8 | Gl::UnpackUnorm4x8 => Format { count: 4, signed: false },
        Gl::PackSnorm2x16 | Gl::UnpackSnorm2x16 => Format { count: 2, signed: true },
        Gl::PackUnorm2x16 | Gl::UnpackUnorm2x16 => Format { count: 2, signed: false },
        _ => return None,
    })
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction that packs or unpacks; false if it does neither.
    pub(super) fn packing(&mut self, inst: Instruction<'_>, op: Gl) -> Result<bool> {
        let operand = *inst.operands.first().ok_or_else(missing)?;
        let parts = match (op, format_of(op)) {
            (
                Gl::PackSnorm4x8 | Gl::PackUnorm4x8 | Gl::PackSnorm2x16 | Gl::PackUnorm2x16,
                Some(format),
            ) => {
                let parts = self.singles(operand, format.count)?;
                Parts::from_slice(&[self.packed(&parts, &format)?])
            }
            (_, Some(format)) => {
                let bits = self.word_of_bits(operand)?;
                self.unpacked(bits, &format)?
            }
            (Gl::PackHalf2x16, _) => {
                let parts = self.singles(operand, 2)?;
                let halves: Parts = parts.iter().map(|&part| self.single_to_half(part)).collect();
                self.recast(&halves, types::I32)?
            }
            (Gl::UnpackHalf2x16, _) => {
                let bits = self.word_of_bits(operand)?;
                let halves = self.recast(&[bits], types::I16)?;
                halves.iter().map(|&half| self.half_to_single(half)).collect()
            }
            (Gl::PackDouble2x32, _) => {
                let parts = self.vector_of(operand, Of::Int)?.parts;
                self.recast(&parts, types::F64)?
            }
            (Gl::UnpackDouble2x32, _) => {
                let parts = self.vector_of(operand, Of::Float)?.parts;
                self.recast(&parts, types::I32)?
            }
            _ => return Ok(false),
        };
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)?;
        Ok(true)
    }

    fn word_of_bits(&mut self, id: u32) -> Result<ir::Value> {
        let value = self.integer(id)?;
        if self.b.func.dfg.value_type(value) != types::I32 {
            return Err(SpirvErrorKind::malformed("the operand is no integer of 32 bits"));
        }
        Ok(value)
    }

    fn packed(&mut self, parts: &Parts, format: &Format) -> Result<ir::Value> {
        let mut whole = self.b.ins().iconst(types::I32, 0);
        let least = if format.signed { -1.0 } else { 0.0 };
        for (&part, number) in parts.iter().zip(0_i64..) {
            let [least, one, scale] = [least, 1.0, format.one()].map(|x| self.float_like(part, x));
            let clamped = self.math_value(Math::Fmax, &[part, least])?;
            let clamped = self.math_value(Math::Fmin, &[clamped, one])?;
            let scaled = self.b.ins().fmul(clamped, scale);
            let rounded = self.math_value(Math::Rint, &[scaled])?;
            let integer = self.b.ins().fcvt_to_sint_sat(types::I32, rounded);
            let bits = self.b.ins().band_imm_u(integer, (1 << format.bits()) - 1);
            let placed = self.b.ins().ishl_imm_u(bits, number * format.bits());
            whole = self.b.ins().bor(whole, placed);
        }
        Ok(whole)
    }

    fn unpacked(&mut self, whole: ir::Value, format: &Format) -> Result<Parts> {
        let mut parts = Parts::new();
        for number in 0..format.count as i64 {
            let above = 32 - (number + 1) * format.bits();
            let top = self.b.ins().ishl_imm_u(whole, above);
            let unused = 32 - format.bits();
            let float = if format.signed {
                let integer = self.b.ins().sshr_imm_u(top, unused);
                self.b.ins().fcvt_from_sint(types::F32, integer)
            } else {
                let integer = self.b.ins().ushr_imm_u(top, unused);
                self.b.ins().fcvt_from_uint(types::F32, integer)
            };
            let scale = self.float_like(float, format.one());
            let fraction = self.b.ins().fdiv(float, scale);
            parts.push(if format.signed {
                let least = self.float_like(float, -1.0);
                self.math_value(Math::Fmax, &[fraction, least])?
            } else {
                fraction
            });
        }
        Ok(parts)
    }
}
