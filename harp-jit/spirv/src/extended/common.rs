//! Functions of floats that both instruction sets have: interpolation, limits, and geometry.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use harp_libm::Math;

use super::missing;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::Instruction;
use crate::values::Parts;

/// By how much vectors are scaled whose squares would be too large or too small: they are above or below the limits.
struct Scaling {
    large: f64,
    shrink: f64,
    small: f64,
    grow: f64,
}

impl Scaling {
    fn of(ty: ir::Type) -> Scaling {
        let power = |exponent: i32| f64::from(exponent).exp2();
        match ty {
            types::F32 => {
                Scaling { large: power(60), shrink: power(-70), small: power(-60), grow: power(86) }
            }
            _ => Scaling {
                large: power(500),
                shrink: power(-600),
                small: power(-500),
                grow: power(700),
            },
        }
    }
}

impl Translator<'_, '_, '_> {
    /// The smaller or larger of two floats; one of them if the other is no number.
    pub(super) fn extreme(&mut self, inst: Instruction<'_>, condition: FloatCC) -> Result<()> {
        self.floats(inst, 2, |t, x| {
            let second = t.b.ins().fcmp(condition, x[1], x[0]);
            Ok(t.b.ins().select(second, x[1], x[0]))
        })
    }

    /// The number between two limits that is nearest.
    pub(super) fn float_clamp(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.floats(inst, 3, |t, x| {
            let raised = t.math_value(Math::Fmax, &x[..2])?;
            t.math_value(Math::Fmin, &[raised, x[2]])
        })
    }

    /// A multiple.
    pub(super) fn times(&mut self, inst: Instruction<'_>, factor: f64) -> Result<()> {
        self.floats(inst, 1, |t, x| {
            let factor = t.float_like(x[0], factor);
            Ok(t.b.ins().fmul(x[0], factor))
        })
    }

    /// The linear interpolation between two numbers.
    pub(super) fn mix(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.floats(inst, 3, |t, x| {
            let distance = t.b.ins().fsub(x[1], x[0]);
            let part = t.b.ins().fmul(distance, x[2]);
            Ok(t.b.ins().fadd(x[0], part))
        })
    }

    /// 0 below the edge, else 1.
    pub(super) fn edge_step(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.floats(inst, 2, |t, x| {
            let below = t.b.ins().fcmp(FloatCC::LessThan, x[1], x[0]);
            let (zero, one) = (t.float_like(x[0], 0.0), t.float_like(x[0], 1.0));
            Ok(t.b.ins().select(below, zero, one))
        })
    }

    /// Hermite's interpolation between two edges.
    pub(super) fn smooth_step(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.floats(inst, 3, |t, x| {
            let from = t.b.ins().fsub(x[2], x[0]);
            let range = t.b.ins().fsub(x[1], x[0]);
            let part = t.b.ins().fdiv(from, range);
            let (zero, one) = (t.float_like(x[0], 0.0), t.float_like(x[0], 1.0));
            let part = t.math_value(Math::Fmax, &[part, zero])?;
            let part = t.math_value(Math::Fmin, &[part, one])?;
            let (two, three) = (t.float_like(x[0], 2.0), t.float_like(x[0], 3.0));
            let double = t.b.ins().fmul(two, part);
            let rest = t.b.ins().fsub(three, double);
            let square = t.b.ins().fmul(part, part);
            Ok(t.b.ins().fmul(square, rest))
        })
    }

    /// 1 or -1, or the zero that the number is; 0 for no number.
    pub(super) fn sign(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.floats(inst, 1, |t, x| {
            let (zero, one) = (t.float_like(x[0], 0.0), t.float_like(x[0], 1.0));
            let signed = t.b.ins().fcopysign(one, x[0]);
            let some = t.b.ins().fcmp(FloatCC::OrderedNotEqual, x[0], zero);
            let no_number = t.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]);
            let other = t.b.ins().select(no_number, zero, x[0]);
            Ok(t.b.ins().select(some, signed, other))
        })
    }

    /// The cross product of vectors of 3 components; a fourth one of the result is 0.
    pub(super) fn cross(&mut self, inst: Instruction<'_>) -> Result<()> {
        let values = self.operands(inst, 2, Of::Float)?;
        let is_half = self.is_half(inst.ty)?;
        let (x, y) = (&values[0].parts, &values[1].parts);
        if x.len() < 3 {
            return Err(SpirvErrorKind::malformed("a cross product takes 3 components"));
        }
        let mut parts = Parts::new();
        for (a, b) in [(1, 2), (2, 0), (0, 1)] {
            let first = self.float_operation(ir::Opcode::Fmul, x[a], y[b], is_half)?;
            let second = self.float_operation(ir::Opcode::Fmul, x[b], y[a], is_half)?;
            parts.push(self.float_operation(ir::Opcode::Fsub, first, second, is_half)?);
        }
        let leaf = self.b.func.dfg.value_type(x[0]);
        parts.extend((3..x.len()).map(|_| self.bits(leaf, 0)));
        self.set(inst, parts)
    }

    /// Floats as those that arithmetic is done with: halves as ones of 32 bits.
    pub(super) fn widened(&mut self, parts: &Parts, is_half: bool) -> Parts {
        let parts = parts.iter().copied();
        parts.map(|part| if is_half { self.half_to_single(part) } else { part }).collect()
    }

    /// The opposite of `widened`.
    pub(super) fn narrowed(&mut self, parts: Parts, is_half: bool) -> Parts {
        let parts = parts.into_iter();
        parts.map(|part| if is_half { self.single_to_half(part) } else { part }).collect()
    }

    /// The dot product of vectors whose components are no halves.
    pub(super) fn widened_dot(&mut self, x: &Parts, y: &Parts) -> Result<ir::Value> {
        self.sum_of_products(x.iter().copied().zip(y.iter().copied()), false)
    }

    /// The components of a vector, scaled so that their squares are in range, and the factor that undoes it.
    fn in_range(&mut self, parts: &Parts) -> Result<(Parts, ir::Value)> {
        let scaling = Scaling::of(self.b.func.dfg.value_type(parts[0]));
        let mut largest = self.b.ins().fabs(parts[0]);
        for &part in &parts[1..] {
            let magnitude = self.b.ins().fabs(part);
            largest = self.math_value(Math::Fmax, &[largest, magnitude])?;
        }
        let mut constant = |number| self.float_like(parts[0], number);
        let [large, small] = [scaling.large, scaling.small].map(&mut constant);
        let [shrink, grow, one] = [scaling.shrink, scaling.grow, 1.0].map(&mut constant);
        let [unshrink, ungrow] = [1.0 / scaling.shrink, 1.0 / scaling.grow].map(&mut constant);
        let is_large = self.b.ins().fcmp(FloatCC::GreaterThan, largest, large);
        let is_small = self.b.ins().fcmp(FloatCC::LessThan, largest, small);
        let factor = self.b.ins().select(is_small, grow, one);
        let factor = self.b.ins().select(is_large, shrink, factor);
        let undo = self.b.ins().select(is_small, ungrow, one);
        let undo = self.b.ins().select(is_large, unshrink, undo);
        let scaled = parts.iter().map(|&part| self.b.ins().fmul(part, factor)).collect();
        Ok((scaled, undo))
    }

    /// The square root of the sum of the squares.
    fn norm(&mut self, parts: &Parts) -> Result<ir::Value> {
        let sum = self.widened_dot(parts, parts)?;
        self.math_value(Math::Sqrt, &[sum])
    }

    /// The length of a vector, or the distance of two; a fast one need not be right if squares are out of range.
    pub(super) fn length(&mut self, inst: Instruction<'_>, count: usize, fast: bool) -> Result<()> {
        let first = self.vector_of(*inst.operands.first().ok_or_else(missing)?, Of::Float)?;
        let is_half = self.is_half(first.ty)?;
        let mut parts = self.widened(&first.parts, is_half);
        if count == 2 {
            let second = self.value_of(inst.word(1)?, first.ty)?;
            let second = self.widened(&second.parts, is_half);
            for (part, other) in parts.iter_mut().zip(second) {
                *part = self.b.ins().fsub(*part, other);
            }
        }
        let length = if fast {
            self.norm(&parts)?
        } else {
            let (scaled, undo) = self.in_range(&parts)?;
            let norm = self.norm(&scaled)?;
            self.b.ins().fmul(norm, undo)
        };
        let parts = self.narrowed(Parts::from_slice(&[length]), is_half);
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)
    }

    /// The vector of length 1 in the same direction; that of length 0 stays as it is.
    pub(super) fn normalize(&mut self, inst: Instruction<'_>, fast: bool) -> Result<()> {
        let value = self.operands(inst, 1, Of::Float)?.remove(0);
        let is_half = self.is_half(value.ty)?;
        let parts = self.widened(&value.parts, is_half);
        let scaled = if fast { parts.clone() } else { self.in_range(&parts)?.0 };
        let norm = self.norm(&scaled)?;
        let zero = self.float_like(norm, 0.0);
        let none = self.b.ins().fcmp(FloatCC::Equal, norm, zero);
        let pairs = scaled.iter().zip(&parts);
        let results = pairs
            .map(|(&part, &own)| {
                let quotient = self.b.ins().fdiv(part, norm);
                self.b.ins().select(none, own, quotient)
            })
            .collect();
        let results = self.narrowed(results, is_half);
        self.set(inst, results)
    }
}
