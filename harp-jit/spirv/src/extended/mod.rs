//! Extended instructions: OpenCL.std and GLSL.std.450.

mod common;
mod glsl;
mod integer;
mod opencl;
mod packing;
mod print;
mod vector_data;

use cranelift_codegen::ir::{self, InstBuilder};
use harp_libm::{Float, Math, Operand};
use rspirv::spirv::{GlslStd450Op, OpenclStd100Op};

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::{Id, Instruction};
use crate::sets::{InstructionSet, name};
use crate::types::Kind;
use crate::values::{Parts, Val};

impl Translator<'_, '_, '_> {
    /// Translates an extended instruction.
    pub(crate) fn extended(&mut self, inst: Instruction<'_>) -> Result<()> {
        let set = self.module.sets.get(&inst.word(0)?).copied();
        let set = set.ok_or(SpirvErrorKind::Undefined { id: inst.word(0)?, role: "a set" })?;
        let number = inst.word(1)?;
        let inner = Instruction { operands: inst.rest(2), ..inst };
        let unsupported = || {
            let name = name(set, number).map_or_else(|| format!("{number}"), str::to_owned);
            SpirvErrorKind::unsupported(format!("the extended instruction `{name}`"))
        };
        match set {
            InstructionSet::OpenCl => {
                let op = OpenclStd100Op::from_u32(number).ok_or_else(unsupported)?;
                match name(set, number).and_then(Math::from_name) {
                    Some(math) => self.math(inner, math),
                    None => self.opencl(inner, op)?.then_some(()).ok_or_else(unsupported),
                }
            }
            InstructionSet::Glsl => {
                let op = GlslStd450Op::from_u32(number).ok_or_else(unsupported)?;
                self.glsl(inner, op)?.then_some(()).ok_or_else(unsupported)
            }
        }
    }

    /// An instruction that is a function of harp-libm.
    fn math(&mut self, inst: Instruction<'_>, math: Math) -> Result<()> {
        let count = math.parameters().len();
        let mut args = Vec::with_capacity(count);
        for &id in inst.operands.get(..count).ok_or_else(missing)? {
            args.push(self.value(id)?);
        }
        self.math_with(inst, math, &args)
    }

    /// The same with these arguments.
    fn math_with(&mut self, inst: Instruction<'_>, math: Math, args: &[Val]) -> Result<()> {
        // Most results are of the type of the first operand; of integers, they are what the instruction says.
        let floats = match math.parameters()[0] {
            Operand::Float => args[0].ty,
            _ => inst.ty,
        };
        let mut results = self.math_of(math, floats, &args.iter().collect::<Vec<_>>())?.into_iter();
        let first = results.next().ok_or_else(missing)?;
        if let Some(second) = results.next() {
            let pointer = inst.word(args.len())?;
            let (_, ty) = self.pointed(pointer)?;
            self.check_parts(ty, &second)?;
            self.store_result(pointer, &Val::new(ty, second))?;
        }
        self.check_parts(inst.ty, &first)?;
        self.set(inst, first)
    }

    /// Checks that scalars are those of a type.
    fn check_parts(&self, ty: Id, parts: &Parts) -> Result<()> {
        let given = parts.iter().map(|&part| self.b.func.dfg.value_type(part));
        let same = given.eq(self.leaf_types(ty)?);
        same.then_some(())
            .ok_or_else(|| SpirvErrorKind::malformed("the operands do not fit the result"))
    }

    /// Computes a function component by component; `ty` is the type of its floats. The results are scalars for each of
    /// the function's results.
    pub(crate) fn math_of(&mut self, math: Math, ty: Id, args: &[&Val]) -> Result<Vec<Parts>> {
        let (component, count) = self.module.types.components(ty)?;
        let float = match *self.module.types.kind(component)? {
            Kind::Float { bits: 64 } => Float::F64,
            Kind::Float { .. } => Float::F32,
            _ => return Err(self.mismatch(ty, ty, "floats".to_owned())),
        };
        let is_half = self.is_half(ty)?;
        let operands = math.parameters();
        let mut results = vec![Parts::new(); math.results().len()];
        for index in 0..count as usize {
            let mut values = Vec::with_capacity(args.len());
            for (arg, operand) in args.iter().zip(operands) {
                let part =
                    arg.parts.get(index).or(arg.parts.first()).copied().ok_or_else(missing)?;
                values.push(match operand {
                    Operand::Float if is_half => self.half_argument(part)?,
                    Operand::Bits if is_half => self.resized(part, ir::types::I32, false),
                    _ => part,
                });
            }
            let given = values.iter().map(|&value| self.b.func.dfg.value_type(value));
            if !given.eq(operands.iter().map(|operand| operand.ty(float))) {
                return Err(SpirvErrorKind::malformed(format!(
                    "wrong operands of `{}`",
                    math.name()
                )));
            }
            let computed = self.math_values(math, float, &values)?;
            for ((parts, value), operand) in results.iter_mut().zip(computed).zip(math.results()) {
                let halve = is_half && *operand == Operand::Float;
                parts.push(if halve { self.single_to_half(value) } else { value });
            }
        }
        Ok(results)
    }

    fn half_argument(&mut self, part: ir::Value) -> Result<ir::Value> {
        if self.b.func.dfg.value_type(part) != ir::types::I16 {
            return Err(SpirvErrorKind::malformed("floats of different types"));
        }
        Ok(self.half_to_single(part))
    }

    /// Computes a function of scalars of the right types.
    pub(crate) fn math_values(
        &mut self,
        math: Math,
        float: Float,
        args: &[ir::Value],
    ) -> Result<Vec<ir::Value>> {
        if math.is_small() {
            let fma = self.unit.fma();
            return harp_libm::expand(&mut self.b, math, float, fma, args)
                .map_err(|error| SpirvErrorKind::malformed(error.to_string()));
        }
        let function = self.unit.math(math, float)?;
        let callee = self.unit.declarations.declare_func_in_func(function, self.b.func)?;
        let call = self.b.ins().call(callee, args);
        Ok(self.b.inst_results(call).to_vec())
    }

    /// The scalars of operands of the result's type, of which those may be scalars that `broadcast` says.
    fn operands(&mut self, inst: Instruction<'_>, count: usize, of: Of) -> Result<Vec<Val>> {
        let mut values = Vec::with_capacity(count);
        for &id in inst.operands.get(..count).ok_or_else(missing)? {
            let value = self.vector_of(id, of)?;
            if !self.alike(value.ty, inst.ty)? {
                return Err(self.mismatch(id, value.ty, self.module.types.describe(inst.ty)));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Computes each component of the result from those of the operands, all of the result's type; halves as floats of
    /// 32 bits.
    fn floats(
        &mut self,
        inst: Instruction<'_>,
        count: usize,
        compute: impl Fn(&mut Self, &[ir::Value]) -> Result<ir::Value>,
    ) -> Result<()> {
        let values = self.operands(inst, count, Of::Float)?;
        let is_half = self.is_half(inst.ty)?;
        let mut parts = Parts::new();
        for index in 0..values.first().map_or(0, |value| value.parts.len()) {
            let args: Parts = values.iter().map(|value| value.parts[index]).collect();
            let args = self.widened(&args, is_half);
            let result = compute(self, &args)?;
            parts.push(if is_half { self.single_to_half(result) } else { result });
        }
        self.set(inst, parts)
    }

    /// Computes each component of the result from those of the operands, integers of the result's type.
    fn integers_of(
        &mut self,
        inst: Instruction<'_>,
        count: usize,
        compute: impl Fn(&mut Self, &[ir::Value]) -> ir::Value,
    ) -> Result<()> {
        let values = self.operands(inst, count, Of::Int)?;
        let mut parts = Parts::new();
        for index in 0..values.first().map_or(0, |value| value.parts.len()) {
            let args: Vec<_> = values.iter().map(|value| value.parts[index]).collect();
            parts.push(compute(self, &args));
        }
        self.set(inst, parts)
    }

    /// A float of the type of another one.
    fn float_like(&mut self, like: ir::Value, number: f64) -> ir::Value {
        match self.b.func.dfg.value_type(like) {
            ir::types::F32 => self.b.ins().f32const(number as f32),
            _ => self.b.ins().f64const(number),
        }
    }

    /// The format of a float.
    fn format_of(&self, value: ir::Value) -> Float {
        match self.b.func.dfg.value_type(value) {
            ir::types::F64 => Float::F64,
            _ => Float::F32,
        }
    }

    /// A function of one result of scalars.
    fn math_value(&mut self, math: Math, args: &[ir::Value]) -> Result<ir::Value> {
        let float = self.format_of(args[0]);
        let results = self.math_values(math, float, args)?;
        results.first().copied().ok_or_else(missing)
    }
}

fn missing() -> SpirvErrorKind {
    SpirvErrorKind::malformed("an operand is missing")
}
