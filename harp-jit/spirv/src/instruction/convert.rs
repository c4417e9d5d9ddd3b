//! Conversions between integers, floats, halves and pointers.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use rspirv::spirv::{Decoration, FPRoundingMode, Op};

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Def, Parts, Val};

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn conversion(&mut self, inst: Instruction<'_>) -> Result<bool> {
        let saturates = self.module.decorations.has(inst.id, Decoration::SaturatedConversion);
        match inst.op {
            Op::UConvert | Op::SConvert => {
                let signed = inst.op == Op::SConvert;
                self.integers(inst, signed, signed, saturates)?;
            }
            Op::SatConvertSToU => self.integers(inst, true, false, true)?,
            Op::SatConvertUToS => self.integers(inst, false, true, true)?,
            Op::ConvertFToS | Op::ConvertFToU => {
                let rounding = self.rounding(inst)?;
                self.float_to_integer(inst, inst.op == Op::ConvertFToS, saturates, rounding)?;
            }
            Op::ConvertSToF | Op::ConvertUToF => {
                let rounding = self.rounding(inst)?;
                self.integer_to_float(inst, inst.op == Op::ConvertSToF, rounding)?;
            }
            Op::FConvert => {
                let rounding = self.rounding(inst)?;
                self.float_to_float(inst, rounding)?;
            }
            Op::QuantizeToF16 => {
                let value = self.vector_of(inst.word(0)?, Of::Float)?;
                let quantize = |t: &mut Self, x| {
                    let half = t.single_to_half(x);
                    t.half_to_single(half)
                };
                let parts = value.parts.iter().map(|&x| quantize(self, x)).collect();
                self.set_like(inst, &value, parts)?;
            }
            Op::Bitcast => self.bitcast(inst)?,
            Op::ConvertPtrToU | Op::ConvertUToPtr => {
                let value = self.vector_of(inst.word(0)?, Of::Address)?;
                let (_, ty) = self.vector_type(inst.ty, Of::Address)?;
                let parts = value.parts.iter().map(|&x| self.resized(x, ty, false)).collect();
                self.set_like(inst, &value, parts)?;
            }
            // All memory is in one address space.
            Op::PtrCastToGeneric | Op::GenericCastToPtr => {
                let (value, ..) = self.pointer(inst.word(0)?)?;
                self.module.types.pointer(inst.ty)?;
                self.define(inst.id, Def::Value(Val { ty: inst.ty, ..value }))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Integers of other widths; those of `from_signed` have a sign, and results of `to_signed`.
    pub(super) fn integers(
        &mut self,
        inst: Instruction<'_>,
        from_signed: bool,
        to_signed: bool,
        saturates: bool,
    ) -> Result<()> {
        let value = self.vector_of(inst.word(0)?, Of::Int)?;
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let mut parts = Parts::new();
        for &x in &value.parts {
            let x = if saturates { self.clamped(x, from_signed, ty, to_signed) } else { x };
            parts.push(self.resized(x, ty, from_signed));
        }
        self.set_like(inst, &value, parts)
    }

    /// The nearest number that an integer of type `to` can hold; the result still has the operand's type.
    pub(crate) fn clamped(
        &mut self,
        x: ir::Value,
        from_signed: bool,
        to: ir::Type,
        to_signed: bool,
    ) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let (bits, to_bits) =
            (ty.bits() - u32::from(from_signed), to.bits() - u32::from(to_signed));
        let mut clamped = x;
        if to_bits < bits {
            let most = self.b.ins().iconst(ty, (u64::MAX >> (64 - to_bits)).cast_signed());
            clamped = match from_signed {
                true => self.b.ins().smin(clamped, most),
                false => self.b.ins().umin(clamped, most),
            };
        }
        if from_signed && (!to_signed || to_bits < bits) {
            let least = if to_signed { -1 << to_bits } else { 0 };
            let least = self.b.ins().iconst(ty, least);
            clamped = self.b.ins().smax(clamped, least);
        }
        clamped
    }

    fn rounding(&self, inst: Instruction<'_>) -> Result<Option<FPRoundingMode>> {
        let mode = self.module.decorations.number(inst.id, Decoration::FPRoundingMode);
        let unknown = || SpirvErrorKind::malformed("an unknown rounding mode");
        mode.map(|mode| FPRoundingMode::from_u32(mode).ok_or_else(unknown)).transpose()
    }

    pub(super) fn float_to_integer(
        &mut self,
        inst: Instruction<'_>,
        signed: bool,
        saturates: bool,
        rounding: Option<FPRoundingMode>,
    ) -> Result<()> {
        let value = self.vector_of(inst.word(0)?, Of::Float)?;
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let is_half = self.is_half(value.ty)?;
        let mut parts = Parts::new();
        for &x in &value.parts {
            let x = if is_half { self.half_to_single(x) } else { x };
            let x = match rounding {
                None | Some(FPRoundingMode::RTZ) => x,
                Some(FPRoundingMode::RTE) => self.b.ins().nearest(x),
                Some(FPRoundingMode::RTP) => self.b.ins().ceil(x),
                Some(FPRoundingMode::RTN) => self.b.ins().floor(x),
            };
            // Narrow integers go through 32 bits, where they are clamped if that is asked for.
            let wide = if ty.bits() < 32 { types::I32 } else { ty };
            let integer = match signed {
                true => self.b.ins().fcvt_to_sint_sat(wide, x),
                false => self.b.ins().fcvt_to_uint_sat(wide, x),
            };
            let integer =
                if saturates { self.clamped(integer, signed, ty, signed) } else { integer };
            parts.push(self.resized(integer, ty, signed));
        }
        self.set_like(inst, &value, parts)
    }

    pub(super) fn integer_to_float(
        &mut self,
        inst: Instruction<'_>,
        signed: bool,
        rounding: Option<FPRoundingMode>,
    ) -> Result<()> {
        let value = self.vector_of(inst.word(0)?, Of::Int)?;
        let (component, _) = self.module.types.components(inst.ty)?;
        let Kind::Float { bits } = *self.module.types.kind(component)? else {
            return Err(self.mismatch(inst.id, inst.ty, "floats".to_owned()));
        };
        let ty = if bits == 64 { types::F64 } else { types::F32 };
        let rounding = rounding.filter(|&mode| mode != FPRoundingMode::RTE);
        let mut parts = Parts::new();
        for &x in &value.parts {
            let wide = self.b.func.dfg.value_type(x).bits().max(32);
            let x = self.resized(x, ir::Type::int(wide as u16).unwrap_or(types::I64), signed);
            let nearest = self.nearest_float(x, ty, signed);
            parts.push(match rounding {
                // An integer that is no float of 32 bits is larger than any half.
                mode if bits == 16 => self.float_of_width(nearest, 32, 16, mode),
                None => nearest,
                Some(mode) => self.rounded_integer(x, nearest, signed, mode),
            });
        }
        self.set_like(inst, &value, parts)
    }

    fn nearest_float(&mut self, x: ir::Value, ty: ir::Type, signed: bool) -> ir::Value {
        match signed {
            true => self.b.ins().fcvt_from_sint(ty, x),
            false => self.b.ins().fcvt_from_uint(ty, x),
        }
    }

    /// The float next to `x` in the direction of a rounding mode; `nearest` is the nearest one.
    fn rounded_integer(
        &mut self,
        x: ir::Value,
        nearest: ir::Value,
        signed: bool,
        mode: FPRoundingMode,
    ) -> ir::Value {
        let (ty, float) = (self.b.func.dfg.value_type(x), self.b.func.dfg.value_type(nearest));
        let (back, greater, less) = match signed {
            true => (
                self.b.ins().fcvt_to_sint_sat(ty, nearest),
                IntCC::SignedGreaterThan,
                IntCC::SignedLessThan,
            ),
            false => (
                self.b.ins().fcvt_to_uint_sat(ty, nearest),
                IntCC::UnsignedGreaterThan,
                IntCC::UnsignedLessThan,
            ),
        };
        // The power of two above the largest integer is larger than all of them.
        let bits = ty.bits() - u32::from(signed);
        let end = match float {
            types::F32 => self.b.ins().f32const((bits as f32).exp2()),
            _ => self.b.ins().f64const(f64::from(bits).exp2()),
        };
        let beyond = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, nearest, end);
        let too_large = self.b.ins().icmp(greater, back, x);
        let too_large = self.b.ins().bor(too_large, beyond);
        let too_small = self.b.ins().icmp(less, back, x);
        let not_beyond = self.b.ins().bxor_imm_u(beyond, 1);
        let too_small = self.b.ins().band(too_small, not_beyond);
        let bits = self.float_bits(nearest);
        let bits = self.directed(bits, too_small, too_large, mode);
        self.b.ins().bitcast(float, ir::MemFlagsData::new(), bits)
    }

    pub(super) fn float_to_float(
        &mut self,
        inst: Instruction<'_>,
        rounding: Option<FPRoundingMode>,
    ) -> Result<()> {
        let value = self.vector_of(inst.word(0)?, Of::Float)?;
        let width =
            |t: &Self, ty: Id| match t.module.types.kind(t.module.types.components(ty)?.0)? {
                Kind::Float { bits } => Ok(*bits),
                _ => Err(t.mismatch(ty, ty, "floats".to_owned())),
            };
        let (from, to) = (width(self, value.ty)?, width(self, inst.ty)?);
        let mode = rounding.filter(|&mode| mode != FPRoundingMode::RTE && to < from);
        let mut parts = Parts::new();
        for &x in &value.parts {
            parts.push(self.float_of_width(x, from, to, mode));
        }
        self.set_like(inst, &value, parts)
    }

    fn bitcast(&mut self, inst: Instruction<'_>) -> Result<()> {
        match self.def(inst.word(0)?)? {
            Def::Place(place) => {
                let (_, ty) = self.module.types.pointer(inst.ty)?;
                let def = match self.module.types.are_alike(place.ty, ty) {
                    true => Def::Place(place.part(ty, 0)),
                    false => Def::Marker,
                };
                return self.define(inst.id, def);
            }
            Def::Marker => return self.define(inst.id, Def::Marker),
            Def::Builtin(place) if self.module.types.pointer(inst.ty)?.1 == place.ty => {
                return self.define(inst.id, Def::Builtin(place));
            }
            Def::Value(value) if value.ty == inst.ty => {
                return self.define(inst.id, Def::Value(value));
            }
            _ => {}
        }
        let value = self.value(inst.word(0)?)?;
        if let Some(parts) = self.cast_truths(&value, inst.ty)? {
            return self.set(inst, parts);
        }
        let (_, to) = self.cast_type(inst.ty)?;
        self.cast_type(value.ty)?;
        let parts = match (self.address_bits(value.ty)?, self.address_bits(inst.ty)?) {
            (Some(bits), None) => {
                let address = self.resized(value.parts[0], bits, false);
                self.recast(&[address], to)?
            }
            (None, Some(bits)) => {
                let mut parts = self.recast(&value.parts, bits)?;
                parts.iter_mut().for_each(|part| *part = self.resized(*part, to, false));
                parts
            }
            _ => self.recast(&value.parts, to)?,
        };
        if parts.len() as u64 != self.module.types.get(inst.ty)?.leaves {
            return Err(self.mismatch(
                inst.word(0)?,
                value.ty,
                "as many bits as the result".to_owned(),
            ));
        }
        self.set(inst, parts)
    }

    /// Truth values as the bits of integers, from the lowest; none if the value has no truth values. SPIR-V has no such cast,
    /// but LLVM does, and its translator hands it on.
    fn cast_truths(&mut self, value: &Val, to: Id) -> Result<Option<Parts>> {
        let (component, truths) = self.module.types.components(value.ty)?;
        if !matches!(self.module.types.kind(component)?, Kind::Bool) {
            return Ok(None);
        }
        let (count, ty) = self.cast_type(to)?;
        if truths as usize != count * ty.bits() as usize {
            return Err(self.mismatch(to, value.ty, "as many bits as the result".to_owned()));
        }
        let bytes: Parts = value.parts.chunks_exact(8).map(|truths| self.byte(truths)).collect();
        self.recast(&bytes, ty).map(Some)
    }

    /// Eight truth values as the bits of a byte, the first as the lowest.
    fn byte(&mut self, truths: &[ir::Value]) -> ir::Value {
        let mut byte = truths[0];
        for (&truth, index) in truths.iter().zip(0..).skip(1) {
            let bit = self.b.ins().ishl_imm_u(truth, index);
            byte = self.b.ins().bor(byte, bit);
        }
        byte
    }

    /// The integer that a pointer of a type is in the module, which may be wider than the machine's word; none if it is no
    /// pointer.
    fn address_bits(&self, ty: Id) -> Result<Option<ir::Type>> {
        match self.module.types.kind(ty)? {
            Kind::Pointer { .. } => {
                let bits = 8 * self.module.types.get(ty)?.size;
                Ok(Some(if bits == 64 { types::I64 } else { types::I32 }))
            }
            _ => Ok(None),
        }
    }

    fn cast_type(&self, ty: Id) -> Result<(usize, ir::Type)> {
        let (component, count) = self.module.types.components(ty)?;
        let scalar = self.module.types.scalar(component, self.unit.word)?;
        let scalar =
            scalar.filter(|_| !matches!(self.module.types.kind(component), Ok(Kind::Bool)));
        let wrong = || self.mismatch(ty, ty, "numbers or pointers".to_owned());
        Ok((count as usize, scalar.ok_or_else(wrong)?))
    }

    /// The same bits as scalars of type `to`.
    pub(crate) fn recast(&mut self, parts: &[ir::Value], to: ir::Type) -> Result<Parts> {
        let from = self.b.func.dfg.value_type(parts[0]);
        let ints: Parts =
            parts.iter().map(|&x| if from.is_float() { self.float_bits(x) } else { x }).collect();
        let wanted = to.as_int();
        let mut results = Parts::new();
        if from.bits() <= to.bits() {
            let count = (to.bits() / from.bits()) as usize;
            if !parts.len().is_multiple_of(count) {
                return Err(SpirvErrorKind::malformed("the numbers of bits differ"));
            }
            for group in ints.chunks_exact(count) {
                let mut whole = self.resized(group[0], wanted, false);
                for (&part, index) in group.iter().zip(0_i64..).skip(1) {
                    let part = self.resized(part, wanted, false);
                    let part = self.b.ins().ishl_imm_u(part, index * i64::from(from.bits()));
                    whole = self.b.ins().bor(whole, part);
                }
                results.push(whole);
            }
        } else {
            for &whole in &ints {
                for index in 0..from.bits() / to.bits() {
                    let shifted = match index {
                        0 => whole,
                        index => self.b.ins().ushr_imm_u(whole, i64::from(index * to.bits())),
                    };
                    results.push(self.b.ins().ireduce(wanted, shifted));
                }
            }
        }
        if to.is_float() {
            for result in &mut results {
                *result = self.b.ins().bitcast(to, ir::MemFlagsData::new(), *result);
            }
        }
        Ok(results)
    }
}
