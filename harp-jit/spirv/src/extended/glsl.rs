//! GLSL.std.450.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use harp_libm::Math;
use rspirv::spirv::GlslStd450Op as Gl;

use super::missing;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Parts, Val};

/// The functions of harp-libm that are instructions, component by component.
fn math_row(op: Gl) -> Option<Math> {
    Some(match op {
        // Ties may go either way.
        Gl::Round | Gl::RoundEven => Math::Rint,
        Gl::Trunc => Math::Trunc,
        Gl::FAbs => Math::Fabs,
        Gl::Floor => Math::Floor,
        Gl::Ceil => Math::Ceil,
        Gl::Sin => Math::Sin,
        Gl::Cos => Math::Cos,
        Gl::Tan => Math::Tan,
        Gl::Asin => Math::Asin,
        Gl::Acos => Math::Acos,
        Gl::Atan => Math::Atan,
        Gl::Sinh => Math::Sinh,
        Gl::Cosh => Math::Cosh,
        Gl::Tanh => Math::Tanh,
        Gl::Asinh => Math::Asinh,
        Gl::Acosh => Math::Acosh,
        Gl::Atanh => Math::Atanh,
        Gl::Atan2 => Math::Atan2,
        Gl::Pow => Math::Pow,
        Gl::Exp => Math::Exp,
        Gl::Log => Math::Log,
        Gl::Exp2 => Math::Exp2,
        Gl::Log2 => Math::Log2,
        Gl::Sqrt => Math::Sqrt,
        Gl::InverseSqrt => Math::Rsqrt,
        Gl::Fma => Math::Fma,
        Gl::FMin | Gl::NMin => Math::Fmin,
        Gl::FMax | Gl::NMax => Math::Fmax,
        _ => return None,
    })
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction of GLSL.std.450 whose operands begin with the first; false if it is not supported.
    pub(super) fn glsl(&mut self, inst: Instruction<'_>, op: Gl) -> Result<bool> {
        if let Some(math) = math_row(op) {
            self.math(inst, math)?;
            return Ok(true);
        }
        match op {
            Gl::SAbs => self.integers_of(inst, 1, |t, x| t.b.ins().iabs(x[0]))?,
            Gl::UMin => self.integers_of(inst, 2, |t, x| t.b.ins().umin(x[0], x[1]))?,
            Gl::SMin => self.integers_of(inst, 2, |t, x| t.b.ins().smin(x[0], x[1]))?,
            Gl::UMax => self.integers_of(inst, 2, |t, x| t.b.ins().umax(x[0], x[1]))?,
            Gl::SMax => self.integers_of(inst, 2, |t, x| t.b.ins().smax(x[0], x[1]))?,
            Gl::UClamp => self.integers_of(inst, 3, |t, x| t.integer_clamp(x, false))?,
            Gl::SClamp => self.integers_of(inst, 3, |t, x| t.integer_clamp(x, true))?,
            Gl::SSign => self.integers_of(inst, 1, |t, x| {
                let ty = t.b.func.dfg.value_type(x[0]);
                let sign = t.b.ins().sshr_imm_u(x[0], i64::from(ty.bits() - 1));
                let some = t.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, x[0], 0);
                let some = t.resized(some, ty, false);
                t.b.ins().bor(sign, some)
            })?,
            Gl::FindILsb | Gl::FindUMsb | Gl::FindSMsb => {
                self.integers_of(inst, 1, |t, x| t.bit_found(x[0], op))?;
            }
            Gl::FSign => self.sign(inst)?,
            Gl::Fract => self.floats(inst, 1, |t, x| {
                let floor = t.math_value(Math::Floor, x)?;
                Ok(t.b.ins().fsub(x[0], floor))
            })?,
            Gl::Radians => self.times(inst, std::f64::consts::PI / 180.0)?,
            Gl::Degrees => self.times(inst, 180.0 / std::f64::consts::PI)?,
            Gl::FClamp | Gl::NClamp => self.float_clamp(inst)?,
            Gl::FMix => self.floats(inst, 3, |t, x| {
                let one = t.float_like(x[0], 1.0);
                let rest = t.b.ins().fsub(one, x[2]);
                let first = t.b.ins().fmul(x[0], rest);
                let second = t.b.ins().fmul(x[1], x[2]);
                Ok(t.b.ins().fadd(first, second))
            })?,
            Gl::Step => self.edge_step(inst)?,
            Gl::SmoothStep => self.smooth_step(inst)?,
            Gl::Cross => self.cross(inst)?,
            Gl::Length => self.length(inst, 1, false)?,
            Gl::Distance => self.length(inst, 2, false)?,
            Gl::Normalize => self.normalize(inst, false)?,
            Gl::FaceForward | Gl::Reflect | Gl::Refract => self.direction(inst, op)?,
            Gl::Ldexp => self.load_exponent(inst)?,
            Gl::Modf => self.math(inst, Math::Modf)?,
            Gl::Frexp => self.math(inst, Math::Frexp)?,
            Gl::ModfStruct => self.pair(inst, Math::Modf)?,
            Gl::FrexpStruct => self.pair(inst, Math::Frexp)?,
            Gl::Determinant | Gl::MatrixInverse => self.square_matrix(inst, op)?,
            _ => return self.packing(inst, op),
        }
        Ok(true)
    }

    /// The number of the lowest bit that is set, or of the highest one that differs from the sign; -1 for none.
    fn bit_found(&mut self, x: ir::Value, op: Gl) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let top = self.b.ins().iconst(ty, i64::from(ty.bits() - 1));
        let none = self.b.ins().iconst(ty, -1);
        match op {
            Gl::FindILsb => {
                let found = self.b.ins().ctz(x);
                let some = self.b.ins().icmp_imm_u(IntCC::NotEqual, x, 0);
                self.b.ins().select(some, found, none)
            }
            _ => {
                let x = if op == Gl::FindSMsb {
                    let sign = self.b.ins().sshr_imm_u(x, i64::from(ty.bits() - 1));
                    self.b.ins().bxor(x, sign)
                } else {
                    x
                };
                // There are as many leading zeros as bits if there is none.
                let zeros = self.b.ins().clz(x);
                self.b.ins().isub(top, zeros)
            }
        }
    }

    /// A float times 2 to the power of an integer, which may be of any width.
    fn load_exponent(&mut self, inst: Instruction<'_>) -> Result<()> {
        let x = self.vector_of(inst.word(0)?, Of::Float)?;
        let exponent = self.vector_of(inst.word(1)?, Of::Int)?;
        let parts = exponent.parts.iter().map(|&part| self.exponent(part)).collect();
        let exponent = Val::new(exponent.ty, parts);
        self.math_with(inst, Math::Ldexp, &[x, exponent])
    }

    /// The number of 32 bits that is nearest to an exponent.
    fn exponent(&mut self, exponent: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(exponent) != types::I64 {
            return self.resized(exponent, types::I32, true);
        }
        let [least, most] =
            [i32::MIN, i32::MAX].map(|limit| self.b.ins().iconst(types::I64, i64::from(limit)));
        let exponent = self.b.ins().smax(exponent, least);
        let exponent = self.b.ins().smin(exponent, most);
        self.b.ins().ireduce(types::I32, exponent)
    }

    /// A function whose two results are the members of a structure.
    fn pair(&mut self, inst: Instruction<'_>, math: Math) -> Result<()> {
        let value = self.vector_of(inst.word(0)?, Of::Float)?;
        let parts: Parts = self.math_of(math, value.ty, &[&value])?.into_iter().flatten().collect();
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)
    }

    /// Vectors turned around, reflected or refracted.
    fn direction(&mut self, inst: Instruction<'_>, op: Gl) -> Result<()> {
        let count = if op == Gl::FaceForward { 3 } else { 2 };
        let values = self.operands(inst, count, Of::Float)?;
        let is_half = self.is_half(inst.ty)?;
        let vectors: Vec<Parts> =
            values.iter().map(|value| self.widened(&value.parts, is_half)).collect();
        let (first, normal) = (&vectors[0], &vectors[1]);
        let parts = match op {
            Gl::FaceForward => {
                // The first vector, if the second and the third point to different sides.
                let dot = self.widened_dot(&vectors[2], normal)?;
                let zero = self.float_like(dot, 0.0);
                let keep = self.b.ins().fcmp(FloatCC::LessThan, dot, zero);
                first
                    .iter()
                    .map(|&part| {
                        let turned = self.b.ins().fneg(part);
                        self.b.ins().select(keep, part, turned)
                    })
                    .collect()
            }
            Gl::Reflect => {
                let dot = self.widened_dot(normal, first)?;
                let twice = self.b.ins().fadd(dot, dot);
                self.minus_multiple(first, twice, normal)
            }
            _ => {
                let eta = self
                    .scalar(inst.word(2)?, "a float", |kind| matches!(kind, Kind::Float { .. }))?;
                let ty = |value| self.b.func.dfg.value_type(value);
                if ty(eta) != ty(values[0].parts[0]) {
                    return Err(SpirvErrorKind::malformed("floats of different types"));
                }
                let eta = if is_half { self.half_to_single(eta) } else { eta };
                self.refracted(first, normal, eta)?
            }
        };
        let parts = self.narrowed(parts, is_half);
        self.set(inst, parts)
    }

    /// `x - factor * y`.
    fn minus_multiple(&mut self, x: &Parts, factor: ir::Value, y: &Parts) -> Parts {
        let pairs = x.iter().zip(y);
        pairs
            .map(|(&x, &y)| {
                let product = self.b.ins().fmul(factor, y);
                self.b.ins().fsub(x, product)
            })
            .collect()
    }

    /// Snell's law, as the specification of GLSL writes it (section 8.5).
    fn refracted(&mut self, x: &Parts, normal: &Parts, eta: ir::Value) -> Result<Parts> {
        let dot = self.widened_dot(normal, x)?;
        let (zero, one) = (self.float_like(eta, 0.0), self.float_like(eta, 1.0));
        let square = self.b.ins().fmul(dot, dot);
        let rest = self.b.ins().fsub(one, square);
        let eta_squared = self.b.ins().fmul(eta, eta);
        let part = self.b.ins().fmul(eta_squared, rest);
        let k = self.b.ins().fsub(one, part);
        let total = self.b.ins().fcmp(FloatCC::LessThan, k, zero);
        let positive = self.b.ins().select(total, zero, k);
        let root = self.math_value(Math::Sqrt, &[positive])?;
        let along = self.b.ins().fmul(eta, dot);
        let factor = self.b.ins().fadd(along, root);
        let scaled = x.iter().map(|&part| self.b.ins().fmul(eta, part)).collect();
        let refracted = self.minus_multiple(&scaled, factor, normal);
        Ok(refracted.into_iter().map(|part| self.b.ins().select(total, zero, part)).collect())
    }

    /// The determinant of a square matrix, or its inverse: the adjugate divided by the determinant.
    fn square_matrix(&mut self, inst: Instruction<'_>, op: Gl) -> Result<()> {
        let id = *inst.operands.first().ok_or_else(missing)?;
        let value = self.value(id)?;
        let size = self.module.types.parts(value.ty)? as usize;
        let is_matrix = matches!(self.module.types.kind(value.ty)?, Kind::Matrix { .. });
        if !is_matrix || value.parts.len() != size * size || size > 4 {
            return Err(self.mismatch(id, value.ty, "a square matrix".to_owned()));
        }
        let is_half = self.is_half_part(value.ty)?;
        let elements = self.widened(&value.parts, is_half);
        let all: Vec<usize> = (0..size).collect();
        let at = |column: usize, row: usize| elements[column * size + row];
        let determinant = self.minor(&at, &all, &all);
        if op == Gl::Determinant {
            let parts = self.narrowed(Parts::from_slice(&[determinant]), is_half);
            self.check_parts(inst.ty, &parts)?;
            return self.set(inst, parts);
        }
        let one = self.float_like(determinant, 1.0);
        let reciprocal = self.b.ins().fdiv(one, determinant);
        let mut parts = Parts::new();
        for column in 0..size {
            for row in 0..size {
                let without = |left_out: usize| -> Vec<usize> {
                    all.iter().copied().filter(|&index| index != left_out).collect()
                };
                let minor = self.minor(&at, &without(row), &without(column));
                let signed = if (column + row) % 2 == 1 { self.b.ins().fneg(minor) } else { minor };
                parts.push(self.b.ins().fmul(signed, reciprocal));
            }
        }
        let parts = self.narrowed(parts, is_half);
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)
    }

    /// The determinant of the columns and rows with these numbers, along the first column.
    fn minor(
        &mut self,
        at: &impl Fn(usize, usize) -> ir::Value,
        columns: &[usize],
        rows: &[usize],
    ) -> ir::Value {
        let Some((&first, columns)) = columns.split_first() else { return at(0, 0) };
        if columns.is_empty() {
            return at(first, rows[0]);
        }
        let mut sum = None;
        for (number, &row) in rows.iter().enumerate() {
            let rest: Vec<usize> = rows.iter().copied().filter(|&other| other != row).collect();
            let minor = self.minor(at, columns, &rest);
            let product = self.b.ins().fmul(at(first, row), minor);
            sum = Some(match sum {
                None => product,
                Some(sum) if number % 2 == 1 => self.b.ins().fsub(sum, product),
                Some(sum) => self.b.ins().fadd(sum, product),
            });
        }
        sum.unwrap_or_else(|| at(first, rows[0]))
    }

    /// The scalars of a vector of so many floats of 32 bits.
    pub(super) fn singles(&mut self, id: Id, count: usize) -> Result<Parts> {
        let value = self.vector_of(id, Of::Float)?;
        let ty = self.b.func.dfg.value_type(value.parts[0]);
        if value.parts.len() != count || ty != types::F32 {
            return Err(self.mismatch(id, value.ty, format!("{count} floats of 32 bits")));
        }
        Ok(value.parts)
    }
}
