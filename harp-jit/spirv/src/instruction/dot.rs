//! Products of vectors of integers, also of four bytes in a word (SPV_KHR_integer_dot_product).

use cranelift_codegen::ir::{self, InstBuilder, types};
use rspirv::spirv::{Op, PackedVectorFormat};

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::values::Parts;

/// The format of vectors of four bytes in a word of 32 bits.
pub(super) const FOUR_BYTES: u32 = PackedVectorFormat::PackedVectorFormat4x8Bit as u32;

/// A product of two vectors of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntegerDot {
    /// Which of the factors have signs. The sum has one if any has.
    pub(super) signs: [bool; 2],
    /// Whether it is added to a number within its type's range.
    pub(super) accumulates: bool,
    /// How the vectors lie in words, if they do.
    pub(super) packed: Option<u32>,
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn integer_dot(&mut self, inst: Instruction<'_>) -> Result<bool> {
        let (signs, accumulates) = match inst.op {
            Op::SDot => ([true, true], false),
            Op::UDot => ([false, false], false),
            Op::SUDot => ([true, false], false),
            Op::SDotAccSat => ([true, true], true),
            Op::UDotAccSat => ([false, false], true),
            Op::SUDotAccSat => ([true, false], true),
            _ => return Ok(false),
        };
        let packed = inst.operands.get(if accumulates { 3 } else { 2 }).copied();
        self.dot_of_integers(inst, IntegerDot { signs, accumulates, packed })?;
        Ok(true)
    }

    pub(super) fn dot_of_integers(&mut self, inst: Instruction<'_>, dot: IntegerDot) -> Result<()> {
        let IntegerDot { signs, accumulates, packed } = dot;
        let (count, ty) = self.vector_type(inst.ty, Of::Int)?;
        let x = self.factors(inst.word(0)?, packed, signs[0], ty)?;
        let y = self.factors(inst.word(1)?, packed, signs[1], ty)?;
        if count != 1 || x.len() != y.len() {
            return Err(SpirvErrorKind::malformed("the operands do not fit the result"));
        }
        let mut sum = self.b.ins().iconst(ty, 0);
        for (&x, &y) in x.iter().zip(&y) {
            let product = self.b.ins().imul(x, y);
            sum = self.b.ins().iadd(sum, product);
        }
        if accumulates {
            let before = self.value_of(inst.word(2)?, inst.ty)?;
            sum = self.saturated_sum(sum, before.parts[0], signs[0] || signs[1]);
        }
        self.set(inst, Parts::from_slice(&[sum]))
    }

    /// The components of a vector, or of what a word packs by a format, as integers of `ty`.
    fn factors(
        &mut self,
        id: Id,
        format: Option<u32>,
        signed: bool,
        ty: ir::Type,
    ) -> Result<Parts> {
        let vector = self.vector_of(id, Of::Int)?;
        let components = match (format, vector.parts.as_slice()) {
            (Some(FOUR_BYTES), &[word]) => {
                if self.b.func.dfg.value_type(word) != types::I32 {
                    return Err(SpirvErrorKind::malformed("a word of 32 bits is needed"));
                }
                let byte = |t: &mut Self, number: i64| {
                    let byte = t.b.ins().ushr_imm_u(word, 8 * number);
                    t.b.ins().ireduce(types::I8, byte)
                };
                (0..4).map(|number| byte(self, number)).collect()
            }
            (None, [_, _, ..]) => vector.parts,
            (Some(_), [_]) => return Err(SpirvErrorKind::unsupported("packed vector format")),
            _ => return Err(SpirvErrorKind::malformed("no vector, and no format of a word")),
        };
        Ok(components.iter().map(|&part| self.resized(part, ty, signed)).collect())
    }
}
