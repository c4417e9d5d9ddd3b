//! Products of vectors and matrices, which are lists of columns.

use cranelift_codegen::ir::{self, Opcode};
use rspirv::spirv::Op;

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Parts, Val};

/// A matrix of so many columns and rows; a vector is one column.
struct Matrix {
    parts: Parts,
    columns: usize,
    rows: usize,
}

impl Matrix {
    fn at(&self, column: usize, row: usize) -> ir::Value {
        self.parts[column * self.rows + row]
    }
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn matrix(&mut self, inst: Instruction<'_>) -> Result<bool> {
        let parts = match inst.op {
            Op::Dot => {
                let (x, y) = (
                    self.vector_of(inst.word(0)?, Of::Float)?,
                    self.vector_of(inst.word(1)?, Of::Float)?,
                );
                Parts::from_slice(&[self.dot(&x, &y)?])
            }
            Op::VectorTimesScalar | Op::MatrixTimesScalar => {
                let whole = self.value_of(inst.word(0)?, inst.ty)?;
                let factor = self.vector_of(inst.word(1)?, Of::Float)?;
                self.scaled(&whole, &factor)?
            }
            Op::Transpose => {
                let x = self.matrix_of(inst.word(0)?)?;
                let places =
                    (0..x.rows).flat_map(|row| (0..x.columns).map(move |column| (column, row)));
                places.map(|(column, row)| x.at(column, row)).collect()
            }
            Op::OuterProduct => {
                let (x, y) = (self.matrix_of(inst.word(0)?)?, self.matrix_of(inst.word(1)?)?);
                self.product(&x, &Matrix { columns: y.parts.len(), rows: 1, ..y }, inst.ty)?
            }
            Op::MatrixTimesVector | Op::MatrixTimesMatrix => {
                let (x, y) = (self.matrix_of(inst.word(0)?)?, self.matrix_of(inst.word(1)?)?);
                self.product(&x, &y, inst.ty)?
            }
            Op::VectorTimesMatrix => {
                let (x, y) = (self.matrix_of(inst.word(0)?)?, self.matrix_of(inst.word(1)?)?);
                self.product(&Matrix { columns: x.parts.len(), rows: 1, ..x }, &y, inst.ty)?
            }
            _ => return Ok(false),
        };
        let leaves = self.leaf_types(inst.ty)?;
        let given = parts.iter().map(|&part| self.b.func.dfg.value_type(part));
        if !given.eq(leaves) {
            return Err(SpirvErrorKind::malformed("the operands do not fit the result"));
        }
        self.set(inst, parts)?;
        Ok(true)
    }

    /// The value of an id that is a vector or a matrix.
    fn matrix_of(&mut self, id: Id) -> Result<Matrix> {
        let value = self.value(id)?;
        let (columns, vector) = match *self.module.types.kind(value.ty)? {
            Kind::Matrix { column, count } => (count as usize, column),
            _ => (1, value.ty),
        };
        if !self.is_vector_of(vector, Of::Float)? {
            return Err(self.mismatch(id, value.ty, "a vector or a matrix".to_owned()));
        }
        let rows = value.parts.len() / columns;
        Ok(Matrix { parts: value.parts, columns, rows })
    }

    fn scaled(&mut self, whole: &Val, factor: &Val) -> Result<Parts> {
        let [factor] = factor.parts[..] else {
            return Err(SpirvErrorKind::malformed("a factor that is no scalar"));
        };
        let is_half = self.is_half_part(whole.ty)?;
        whole
            .parts
            .iter()
            .map(|&part| self.float_operation(Opcode::Fmul, part, factor, is_half))
            .collect()
    }

    /// Whether a matrix or vector is of halves.
    pub(crate) fn is_half_part(&self, ty: Id) -> Result<bool> {
        match *self.module.types.kind(ty)? {
            Kind::Matrix { column, .. } => self.is_half(column),
            _ => self.is_half(ty),
        }
    }

    /// A sum or product of floats, which may be halves.
    pub(crate) fn float_operation(
        &mut self,
        opcode: Opcode,
        x: ir::Value,
        y: ir::Value,
        is_half: bool,
    ) -> Result<ir::Value> {
        let ty = |value| self.b.func.dfg.value_type(value);
        if ty(x) != ty(y) || ty(x).is_float() == is_half {
            return Err(SpirvErrorKind::malformed("floats of different types"));
        }
        if !is_half {
            return Ok(self.binary(opcode, x, y));
        }
        let [x, y] = [x, y].map(|half| self.half_to_single(half));
        let result = self.binary(opcode, x, y);
        Ok(self.single_to_half(result))
    }

    /// The sum of the products of components.
    pub(crate) fn dot(&mut self, x: &Val, y: &Val) -> Result<ir::Value> {
        if x.ty != y.ty {
            return Err(SpirvErrorKind::malformed("vectors of different types"));
        }
        let is_half = self.is_half(x.ty)?;
        self.sum_of_products(x.parts.iter().copied().zip(y.parts.iter().copied()), is_half)
    }

    /// The sum of the products of floats, which may be halves.
    pub(crate) fn sum_of_products(
        &mut self,
        pairs: impl Iterator<Item = (ir::Value, ir::Value)>,
        is_half: bool,
    ) -> Result<ir::Value> {
        let mut sum = None;
        for (x, y) in pairs {
            let product = self.float_operation(Opcode::Fmul, x, y, is_half)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => self.float_operation(Opcode::Fadd, sum, product, is_half)?,
            });
        }
        sum.ok_or_else(|| SpirvErrorKind::malformed("a vector without components"))
    }

    fn product(&mut self, x: &Matrix, y: &Matrix, result: Id) -> Result<Parts> {
        if x.columns != y.rows {
            let what = format!("a matrix of {} columns times one of {} rows", x.columns, y.rows);
            return Err(SpirvErrorKind::malformed(what));
        }
        let is_half = self.is_half_part(result)?;
        let mut parts = Parts::new();
        for column in 0..y.columns {
            for row in 0..x.rows {
                let pairs = (0..x.columns).map(|index| (x.at(index, row), y.at(column, index)));
                parts.push(self.sum_of_products(pairs, is_half)?);
            }
        }
        Ok(parts)
    }
}
