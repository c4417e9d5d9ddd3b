//! Vectors and halves in memory, which need not be aligned as vectors are.

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use rspirv::spirv::{FPRoundingMode, OpenclStd100Op as Cl};

use super::missing;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Parts, Val};

/// How vectors of halves are stored.
#[derive(Clone, Copy)]
enum Spacing {
    /// One behind the other.
    Dense,
    /// A vector of 3 components takes the room of 4.
    Aligned,
}

impl Translator<'_, '_, '_> {
    /// Translates a load or a store; false if it is neither.
    pub(super) fn vector_data(&mut self, inst: Instruction<'_>, op: Cl) -> Result<bool> {
        match op {
            Cl::vloadn => {
                let (count, ty) = self.number_type(inst.ty)?;
                self.check_pointer(inst.word(1)?, ty)?;
                let address = self.vector_address(inst, 0, count as u64, ty)?;
                let loads = (0..count).map(|index| self.load_scalar(ty, address, index));
                let parts = loads.collect();
                self.set(inst, parts)?;
            }
            Cl::vstoren => {
                let value = self.value(inst.word(0)?)?;
                let (count, ty) = self.number_type(value.ty)?;
                self.check_pointer(inst.word(2)?, ty)?;
                let address = self.vector_address(inst, 1, count as u64, ty)?;
                self.store_scalars(&value.parts, address);
            }
            Cl::vload_half | Cl::vload_halfn => self.load_halves(inst, Spacing::Dense)?,
            Cl::vloada_halfn => self.load_halves(inst, Spacing::Aligned)?,
            Cl::vstore_half | Cl::vstore_halfn => self.store_halves(inst, Spacing::Dense, None)?,
            Cl::vstorea_halfn => self.store_halves(inst, Spacing::Aligned, None)?,
            Cl::vstore_half_r | Cl::vstore_halfn_r | Cl::vstorea_halfn_r => {
                let unknown = || SpirvErrorKind::malformed("an unknown rounding mode");
                let mode = FPRoundingMode::from_u32(inst.word(3)?).ok_or_else(unknown)?;
                let aligned = op == Cl::vstorea_halfn_r;
                let spacing = if aligned { Spacing::Aligned } else { Spacing::Dense };
                self.store_halves(inst, spacing, Some(mode))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The number of components of a type, and the type of one: an integer or a float.
    fn number_type(&self, ty: Id) -> Result<(usize, ir::Type)> {
        let of = if self.is_vector_of(ty, Of::Float)? { Of::Float } else { Of::Int };
        self.vector_type(ty, of)
    }

    /// Checks that a pointer's target is a number of a type.
    fn check_pointer(&mut self, pointer: Id, ty: ir::Type) -> Result<()> {
        let (_, _, to) = self.pointer(pointer)?;
        if self.module.types.scalar(to, self.unit.word)? != Some(ty) {
            return Err(self.mismatch(pointer, to, format!("{ty}")));
        }
        Ok(())
    }

    /// The address of the vector with the number that an operand is, of those that begin at the pointer in the next one.
    fn vector_address(
        &mut self,
        inst: Instruction<'_>,
        number: usize,
        components: u64,
        ty: ir::Type,
    ) -> Result<ir::Value> {
        let (base, ..) = self.pointer(*inst.operands.get(number + 1).ok_or_else(missing)?)?;
        let number = self.integer(inst.word(number)?)?;
        let number = self.resized(number, self.unit.word, false);
        let stride = components * u64::from(ty.bytes());
        let distance = self.b.ins().imul_imm_s(number, stride.cast_signed());
        Ok(self.b.ins().iadd(base.parts[0], distance))
    }

    fn load_scalar(&mut self, ty: ir::Type, address: ir::Value, index: usize) -> ir::Value {
        let offset = index as i32 * ty.bytes().cast_signed();
        self.b.ins().load(ty, MemFlagsData::new().with_aligned(), address, offset)
    }

    fn store_scalars(&mut self, parts: &Parts, address: ir::Value) {
        for (&part, index) in parts.iter().zip(0_i32..) {
            let offset = index * self.b.func.dfg.value_type(part).bytes().cast_signed();
            self.b.ins().store(MemFlagsData::new().with_aligned(), part, address, offset);
        }
    }

    fn spaced(components: usize, spacing: Spacing) -> u64 {
        match spacing {
            Spacing::Dense => components as u64,
            Spacing::Aligned => components.next_power_of_two() as u64,
        }
    }

    fn float_width(&self, ty: Id) -> Result<u32> {
        match *self.module.types.kind(self.module.types.components(ty)?.0)? {
            Kind::Float { bits } => Ok(bits),
            _ => Err(self.mismatch(ty, ty, "floats".to_owned())),
        }
    }

    fn load_halves(&mut self, inst: Instruction<'_>, spacing: Spacing) -> Result<()> {
        let (count, _) = self.vector_type(inst.ty, Of::Float)?;
        let width = self.float_width(inst.ty)?;
        self.check_pointer(inst.word(1)?, types::I16)?;
        let address = self.vector_address(inst, 0, Self::spaced(count, spacing), types::I16)?;
        let mut parts = Parts::new();
        for index in 0..count {
            let half = self.load_scalar(types::I16, address, index);
            parts.push(self.float_of_width(half, 16, width, None));
        }
        self.set(inst, parts)
    }

    fn store_halves(
        &mut self,
        inst: Instruction<'_>,
        spacing: Spacing,
        mode: Option<FPRoundingMode>,
    ) -> Result<()> {
        let Val { ty, parts, .. } = self.vector_of(inst.word(0)?, Of::Float)?;
        let width = self.float_width(ty)?;
        self.check_pointer(inst.word(2)?, types::I16)?;
        let address =
            self.vector_address(inst, 1, Self::spaced(parts.len(), spacing), types::I16)?;
        let halves = parts.iter().map(|&part| self.float_of_width(part, width, 16, mode)).collect();
        self.store_scalars(&halves, address);
        Ok(())
    }
}
