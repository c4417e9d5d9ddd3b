//! OpenCL.std, but for the functions of harp-libm.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use rspirv::spirv::OpenclStd100Op as Cl;

use super::missing;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::Instruction;
use crate::values::Parts;

/// Computes a component from those of the operands.
type Compute = fn(&mut Translator<'_, '_, '_>, &[ir::Value]) -> ir::Value;

/// The functions of integers: how many operands they have, and what they compute.
fn integer_row(op: Cl) -> Option<(usize, Compute)> {
    Some(match op {
        Cl::s_abs => (1, |t, x| t.b.ins().iabs(x[0])),
        Cl::u_abs => (1, |_, x| x[0]),
        Cl::s_abs_diff => (2, |t, x| t.distance(x[0], x[1], true)),
        Cl::u_abs_diff => (2, |t, x| t.distance(x[0], x[1], false)),
        Cl::s_add_sat => (2, |t, x| t.saturated_sum(x[0], x[1], true)),
        Cl::u_add_sat => (2, |t, x| t.saturated_sum(x[0], x[1], false)),
        Cl::s_sub_sat => (2, |t, x| t.saturated_difference(x[0], x[1], true)),
        Cl::u_sub_sat => (2, |t, x| t.saturated_difference(x[0], x[1], false)),
        Cl::s_hadd => (2, |t, x| t.mean(x[0], x[1], true, false)),
        Cl::u_hadd => (2, |t, x| t.mean(x[0], x[1], false, false)),
        Cl::s_rhadd => (2, |t, x| t.mean(x[0], x[1], true, true)),
        Cl::u_rhadd => (2, |t, x| t.mean(x[0], x[1], false, true)),
        Cl::s_clamp => (3, |t, x| t.integer_clamp(x, true)),
        Cl::u_clamp => (3, |t, x| t.integer_clamp(x, false)),
        Cl::s_max => (2, |t, x| t.b.ins().smax(x[0], x[1])),
        Cl::u_max => (2, |t, x| t.b.ins().umax(x[0], x[1])),
        Cl::s_min => (2, |t, x| t.b.ins().smin(x[0], x[1])),
        Cl::u_min => (2, |t, x| t.b.ins().umin(x[0], x[1])),
        Cl::clz => (1, |t, x| t.b.ins().clz(x[0])),
        Cl::ctz => (1, |t, x| t.b.ins().ctz(x[0])),
        Cl::popcount => (1, |t, x| t.b.ins().popcnt(x[0])),
        Cl::rotate => (2, |t, x| t.b.ins().rotl(x[0], x[1])),
        Cl::s_mul_hi => (2, |t, x| t.high_product(x[0], x[1], true)),
        Cl::u_mul_hi => (2, |t, x| t.high_product(x[0], x[1], false)),
        Cl::s_mad_hi => (3, |t, x| {
            let high = t.high_product(x[0], x[1], true);
            t.b.ins().iadd(high, x[2])
        }),
        Cl::u_mad_hi => (3, |t, x| {
            let high = t.high_product(x[0], x[1], false);
            t.b.ins().iadd(high, x[2])
        }),
        Cl::s_mad_sat => (3, |t, x| t.saturated_mad(x[0], x[1], x[2], true)),
        Cl::u_mad_sat => (3, |t, x| t.saturated_mad(x[0], x[1], x[2], false)),
        // The result is unspecified for operands of more than 24 bits.
        Cl::s_mul24 | Cl::u_mul24 => (2, |t, x| t.b.ins().imul(x[0], x[1])),
        Cl::s_mad24 | Cl::u_mad24 => (3, |t, x| {
            let product = t.b.ins().imul(x[0], x[1]);
            t.b.ins().iadd(product, x[2])
        }),
        _ => return None,
    })
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction of OpenCL.std whose operands begin with the first; false if it is not supported.
    pub(super) fn opencl(&mut self, inst: Instruction<'_>, op: Cl) -> Result<bool> {
        if let Some((count, compute)) = integer_row(op) {
            self.integers_of(inst, count, compute)?;
            return Ok(true);
        }
        match op {
            Cl::fclamp => self.float_clamp(inst)?,
            Cl::fmax_common => self.extreme(inst, FloatCC::GreaterThan)?,
            Cl::fmin_common => self.extreme(inst, FloatCC::LessThan)?,
            Cl::degrees => self.times(inst, 180.0 / std::f64::consts::PI)?,
            Cl::radians => self.times(inst, std::f64::consts::PI / 180.0)?,
            Cl::mix => self.mix(inst)?,
            Cl::step => self.edge_step(inst)?,
            Cl::smoothstep => self.smooth_step(inst)?,
            Cl::sign => self.sign(inst)?,
            Cl::cross => self.cross(inst)?,
            Cl::length => self.length(inst, 1, false)?,
            Cl::distance => self.length(inst, 2, false)?,
            Cl::fast_length => self.length(inst, 1, true)?,
            Cl::fast_distance => self.length(inst, 2, true)?,
            Cl::normalize => self.normalize(inst, false)?,
            Cl::fast_normalize => self.normalize(inst, true)?,
            Cl::s_upsample | Cl::u_upsample => self.upsample(inst)?,
            Cl::bitselect => self.bit_select(inst)?,
            Cl::select => self.select_by_sign(inst)?,
            Cl::shuffle => self.shuffle_vector(inst, 1)?,
            Cl::shuffle2 => self.shuffle_vector(inst, 2)?,
            Cl::prefetch => {}
            Cl::printf => self.printf(inst)?,
            _ => return self.vector_data(inst, op),
        }
        Ok(true)
    }

    /// The integers of twice as many bits with these upper and lower halves.
    fn upsample(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (high, low) =
            (self.vector_of(inst.word(0)?, Of::Int)?, self.vector_of(inst.word(1)?, Of::Int)?);
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let half = self.b.func.dfg.value_type(high.parts[0]);
        if !self.alike(high.ty, low.ty)? || half.bits() * 2 != ty.bits() {
            return Err(SpirvErrorKind::malformed("the operands do not fit the result"));
        }
        let mut parts = Parts::new();
        for (&high, &low) in high.parts.iter().zip(&low.parts) {
            let high = self.b.ins().uextend(ty, high);
            let high = self.b.ins().ishl_imm_u(high, i64::from(half.bits()));
            let low = self.b.ins().uextend(ty, low);
            parts.push(self.b.ins().bor(high, low));
        }
        self.set_like(inst, &low, parts)
    }

    /// The bits of the second operand where the third one's are 1, else of the first.
    fn bit_select(&mut self, inst: Instruction<'_>) -> Result<()> {
        let of = if self.is_vector_of(inst.ty, Of::Float)? { Of::Float } else { Of::Int };
        let values = self.operands(inst, 3, of)?;
        let mut parts = Parts::new();
        for index in 0..values[0].parts.len() {
            let [x, y, mask] = [0, 1, 2].map(|number: usize| values[number].parts[index]);
            let ty = self.b.func.dfg.value_type(x);
            let [x, y, mask] =
                [x, y, mask].map(|v| if ty.is_float() { self.float_bits(v) } else { v });
            let bits = self.b.ins().bitselect(mask, y, x);
            parts.push(if ty.is_float() {
                self.b.ins().bitcast(ty, MemFlagsData::new(), bits)
            } else {
                bits
            });
        }
        self.set(inst, parts)
    }

    /// The second operand where the third one is not 0, or, in vectors, negative; else the first.
    fn select_by_sign(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (no, yes) =
            (self.value_of(inst.word(0)?, inst.ty)?, self.value_of(inst.word(1)?, inst.ty)?);
        let choice = self.vector_of(inst.word(2)?, Of::Int)?;
        if choice.parts.len() != no.parts.len() {
            return Err(SpirvErrorKind::malformed("as many choices as components are needed"));
        }
        let condition = if no.parts.len() == 1 { IntCC::NotEqual } else { IntCC::SignedLessThan };
        let mut parts = Parts::new();
        for ((&no, &yes), &choice) in no.parts.iter().zip(&yes.parts).zip(&choice.parts) {
            let chosen = self.b.ins().icmp_imm_s(condition, choice, 0);
            parts.push(self.b.ins().select(chosen, yes, no));
        }
        self.set(inst, parts)
    }

    /// The components of one or two vectors that the last operand says.
    fn shuffle_vector(&mut self, inst: Instruction<'_>, count: usize) -> Result<()> {
        let first = self.value(inst.word(0)?)?;
        let mut all = first.parts.clone();
        if count == 2 {
            all.extend(self.value_of(inst.word(1)?, first.ty)?.parts);
        }
        let mask = self.vector_of(*inst.operands.get(count).ok_or_else(missing)?, Of::Int)?;
        let (component, wanted) = self.module.types.components(inst.ty)?;
        if self.module.types.components(first.ty)?.0 != component
            || mask.parts.len() != wanted as usize
            || !all.len().is_power_of_two()
        {
            return Err(SpirvErrorKind::malformed("the operands do not fit the result"));
        }
        let mut parts = Parts::new();
        for &index in &mask.parts {
            let index = self.b.ins().band_imm_u(index, all.len() as i64 - 1);
            parts.push(self.pick(&all, index));
        }
        self.set(inst, parts)
    }
}
