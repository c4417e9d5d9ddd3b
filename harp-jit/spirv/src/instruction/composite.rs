//! Composites: putting them together, taking them apart, rearranging and choosing.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use rspirv::spirv::Op;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Def, Parts, Val};

/// The index of a component that is undefined.
const UNDEFINED: u32 = u32::MAX;

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn composite(&mut self, inst: Instruction<'_>) -> Result<bool> {
        match inst.op {
            Op::Undef => {
                let value = self.zero(inst.ty)?;
                self.set(inst, value.parts)?;
            }
            // What is expected is a hint.
            Op::CopyObject | Op::ExpectKHR => {
                let def = self.def(inst.word(0)?)?;
                if let Def::Value(value) = &def
                    && value.ty != inst.ty
                {
                    return Err(SpirvErrorKind::malformed("the copy is of another type"));
                }
                self.define(inst.id, def)?;
            }
            Op::CopyLogical => {
                let value = self.value(inst.word(0)?)?;
                if self.leaf_types(value.ty)? != self.leaf_types(inst.ty)? {
                    return Err(SpirvErrorKind::malformed("the copy is of another type"));
                }
                self.set(inst, value.parts)?;
            }
            Op::CompositeExtract => self.extract(inst)?,
            Op::CompositeInsert => {
                let (part, mut whole) =
                    (self.value(inst.word(0)?)?, self.value_of(inst.word(1)?, inst.ty)?);
                let (ty, first) = self.part(whole.ty, inst.rest(2))?;
                if part.ty != ty {
                    return Err(self.mismatch(
                        inst.word(0)?,
                        part.ty,
                        self.module.types.describe(ty),
                    ));
                }
                whole.parts[first..first + part.parts.len()].copy_from_slice(&part.parts);
                self.set(inst, whole.parts)?;
            }
            Op::CompositeConstruct => self.construct(inst)?,
            Op::CompositeConstructReplicateEXT => {
                let part = self.value(inst.word(0)?)?;
                let count = self.module.types.parts(inst.ty)?;
                self.module.types.check_leaves(inst.ty)?;
                if self.module.types.part(inst.ty, 0)?.0 != part.ty {
                    return Err(SpirvErrorKind::malformed("the part is of another type"));
                }
                let parts = (0..count).flat_map(|_| part.parts.iter().copied()).collect();
                self.set(inst, parts)?;
            }
            Op::VectorShuffle => self.vector_shuffle(inst)?,
            Op::VectorExtractDynamic => {
                let value = self.value(inst.word(0)?)?;
                if self.module.types.components(value.ty)?.0 != inst.ty || value.parts.len() < 2 {
                    return Err(self.mismatch(inst.word(0)?, value.ty, "a vector".to_owned()));
                }
                let index = self.integer(inst.word(1)?)?;
                let mut picked = self.pick(&value.parts, index);
                if let Def::LoadedBuiltin(place) = self.def(inst.word(0)?)?
                    && let Some(beyond) = self.beyond_dimensions(place)?
                {
                    let count = value.parts.len() as i64;
                    let inside = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, count);
                    picked = self.b.ins().select(inside, picked, beyond);
                }
                self.set(inst, Parts::from_slice(&[picked]))?;
            }
            Op::VectorInsertDynamic => {
                let mut value = self.value_of(inst.word(0)?, inst.ty)?;
                let (component, _) = self.module.types.components(inst.ty)?;
                let part = self.value_of(inst.word(1)?, component)?.parts[0];
                let index = self.integer(inst.word(2)?)?;
                for (own, number) in value.parts.iter_mut().zip(0..) {
                    let here = self.b.ins().icmp_imm_u(IntCC::Equal, index, number);
                    *own = self.b.ins().select(here, part, *own);
                }
                self.set(inst, value.parts)?;
            }
            Op::Select => self.select(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn extract(&mut self, inst: Instruction<'_>) -> Result<()> {
        let whole = inst.word(0)?;
        if let (Def::LoadedBuiltin(place), &[index]) = (self.def(whole)?, inst.rest(1))
            && place.component.is_none()
        {
            let (component, count) = self.module.types.components(place.ty)?;
            if index >= count
                && component == inst.ty
                && let Some(beyond) = self.beyond_dimensions(place)?
            {
                return self.set(inst, Parts::from_slice(&[beyond]));
            }
            let (ty, _) = self.module.types.part(place.ty, index.into())?;
            if ty == inst.ty {
                let value = self.builtin_component(place.ty, place.builtin, index)?;
                return self.set(inst, Parts::from_slice(&[value]));
            }
        }
        let whole = self.value(whole)?;
        let (ty, first) = self.part(whole.ty, inst.rest(1))?;
        if ty != inst.ty {
            return Err(self.mismatch(inst.word(0)?, ty, self.module.types.describe(inst.ty)));
        }
        let count = self.module.types.get(ty)?.leaves as usize;
        self.set(inst, Parts::from_slice(&whole.parts[first..first + count]))
    }

    /// The type of a part of a composite, and the number of scalars before it.
    fn part(&self, whole: Id, indices: &[u32]) -> Result<(Id, usize)> {
        let mut place = (whole, 0);
        for &index in indices {
            let (ty, before) = self.module.types.part(place.0, index.into())?;
            place = (ty, place.1 + before as usize);
        }
        Ok(place)
    }

    fn construct(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.module.types.check_leaves(inst.ty)?;
        let mut parts = Parts::new();
        if let Kind::Vector { of, count } = *self.module.types.kind(inst.ty)? {
            // Vectors may be among the parts of a vector.
            for &id in inst.operands {
                let value = self.value(id)?;
                if self.module.types.components(value.ty)?.0 != of {
                    return Err(self.mismatch(id, value.ty, self.module.types.describe(of)));
                }
                parts.extend(value.parts);
            }
            if parts.len() != count as usize {
                let what = format!("a vector of {count} of {} components", parts.len());
                return Err(SpirvErrorKind::malformed(what));
            }
            return self.set(inst, parts);
        }
        let count = self.module.types.parts(inst.ty)?;
        if count != inst.operands.len() as u64 {
            let what = format!("{} parts of something with {count}", inst.operands.len());
            return Err(SpirvErrorKind::malformed(what));
        }
        for (&id, index) in inst.operands.iter().zip(0..) {
            let (ty, _) = self.module.types.part(inst.ty, index)?;
            parts.extend(self.value_of(id, ty)?.parts);
        }
        self.set(inst, parts)
    }

    fn vector_shuffle(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (first, second) = (self.value(inst.word(0)?)?, self.value(inst.word(1)?)?);
        let (component, count) = self.module.types.components(inst.ty)?;
        for (value, operand) in [(&first, 0), (&second, 1)] {
            if self.module.types.components(value.ty)?.0 != component {
                return Err(self.mismatch(inst.word(operand)?, value.ty, "a vector".to_owned()));
            }
        }
        let indices = inst.rest(2);
        if indices.len() != count as usize {
            return Err(SpirvErrorKind::malformed("as many indices as components are needed"));
        }
        let all = [first.parts, second.parts].concat();
        let mut parts = Parts::new();
        for &index in indices {
            parts.push(match (all.get(index as usize), index) {
                (Some(&part), _) => part,
                (None, UNDEFINED) => all[0],
                (None, _) => {
                    let what = format!("index {index} of {} components", all.len());
                    return Err(SpirvErrorKind::malformed(what));
                }
            });
        }
        self.set(inst, parts)
    }

    /// The part whose number is `index`, an integer; one of them if there is no such part.
    pub(crate) fn pick(&mut self, parts: &[ir::Value], index: ir::Value) -> ir::Value {
        let mut picked = parts[0];
        for (&part, number) in parts.iter().zip(0..).skip(1) {
            let here = self.b.ins().icmp_imm_u(IntCC::Equal, index, number);
            picked = self.b.ins().select(here, part, picked);
        }
        picked
    }

    /// A choice of truth values: optimizers write conjunctions and disjunctions so.
    fn select_truth(&mut self, condition: ir::Value, yes: ir::Value, no: ir::Value) -> ir::Value {
        match (self.known(yes), self.known(no)) {
            (Some(1), _) => self.b.ins().bor(condition, no),
            (_, Some(0)) => self.b.ins().band(condition, yes),
            (Some(0), _) => self.b.ins().band_not(no, condition),
            _ => self.b.ins().select(condition, yes, no),
        }
    }

    /// The value of an integer that is known, as a signed one of its type.
    pub(super) fn known(&self, value: ir::Value) -> Option<i64> {
        let dfg = &self.b.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            ir::InstructionData::UnaryImm { imm, .. } => {
                let above = 64 - dfg.value_type(value).bits();
                Some(imm.bits() << above >> above)
            }
            _ => None,
        }
    }

    fn select(&mut self, inst: Instruction<'_>) -> Result<()> {
        let condition = self.vector_of(inst.word(0)?, super::Of::Bool)?;
        let (yes, no) =
            (self.value_of(inst.word(1)?, inst.ty)?, self.value_of(inst.word(2)?, inst.ty)?);
        let conditions = &condition.parts;
        if conditions.len() != 1 && conditions.len() != yes.parts.len() {
            return Err(SpirvErrorKind::malformed("as many conditions as components are needed"));
        }
        let is_truth = self.is_vector_of(inst.ty, super::Of::Bool)?;
        let mut parts = Parts::new();
        for (index, (&yes, &no)) in yes.parts.iter().zip(&no.parts).enumerate() {
            let condition = *conditions.get(index).unwrap_or(&conditions[0]);
            parts.push(match is_truth {
                true => self.select_truth(condition, yes, no),
                false => self.b.ins().select(condition, yes, no),
            });
        }
        let matrix = yes.matrix.filter(|_| yes.matrix == no.matrix);
        self.define(inst.id, Def::Value(Val { matrix, ..Val::new(inst.ty, parts) }))
    }
}
