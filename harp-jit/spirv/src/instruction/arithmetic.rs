//! Arithmetic, bits and comparisons, component by component.
//!
//! Division by zero, and the division of the smallest integer by -1, have results that OpenCL leaves open, but must not
//! trap (OpenCL C specification, section 6.3): the divisor becomes 1.

use std::sync::LazyLock;

use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, Opcode, types};
use hashbrown::HashMap;
use rspirv::spirv::Op;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::{Parts, Val};

/// What the operands of an instruction are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Int,
    Float,
    Bool,
    /// Pointers as well as integers.
    Address,
}

/// What an instruction becomes for each component.
#[derive(Clone, Copy)]
enum Form {
    Unary(Opcode),
    Binary(Opcode),
    /// A shift, whose second operand may be of another width.
    Shift(Opcode),
    Divide(Opcode),
    CompareInts(IntCC),
    CompareFloats(FloatCC),
    /// What takes more than an instruction.
    Special(fn(&mut Translator<'_, '_, '_>, &[ir::Value]) -> ir::Value),
}

use Form::{Binary, CompareFloats, CompareInts, Divide, Shift, Special, Unary};

/// The instructions with a result of the same number of components as their operands.
static ROWS: LazyLock<HashMap<u32, (Of, Form)>> = LazyLock::new(|| {
    let rows = [
        (Op::IAdd, Of::Int, Binary(Opcode::Iadd)),
        (Op::ISub, Of::Int, Binary(Opcode::Isub)),
        (Op::IMul, Of::Int, Binary(Opcode::Imul)),
        (Op::SNegate, Of::Int, Unary(Opcode::Ineg)),
        (Op::UDiv, Of::Int, Divide(Opcode::Udiv)),
        (Op::SDiv, Of::Int, Divide(Opcode::Sdiv)),
        (Op::UMod, Of::Int, Divide(Opcode::Urem)),
        (Op::SRem, Of::Int, Divide(Opcode::Srem)),
        (Op::SMod, Of::Int, Special(floored_remainder)),
        (Op::FAdd, Of::Float, Binary(Opcode::Fadd)),
        (Op::FSub, Of::Float, Binary(Opcode::Fsub)),
        (Op::FMul, Of::Float, Binary(Opcode::Fmul)),
        (Op::FDiv, Of::Float, Binary(Opcode::Fdiv)),
        (Op::FNegate, Of::Float, Unary(Opcode::Fneg)),
        (Op::BitwiseAnd, Of::Int, Binary(Opcode::Band)),
        (Op::BitwiseOr, Of::Int, Binary(Opcode::Bor)),
        (Op::BitwiseXor, Of::Int, Binary(Opcode::Bxor)),
        (Op::Not, Of::Int, Unary(Opcode::Bnot)),
        (Op::BitReverse, Of::Int, Unary(Opcode::Bitrev)),
        (Op::ShiftLeftLogical, Of::Int, Shift(Opcode::Ishl)),
        (Op::ShiftRightLogical, Of::Int, Shift(Opcode::Ushr)),
        (Op::ShiftRightArithmetic, Of::Int, Shift(Opcode::Sshr)),
        (Op::LogicalAnd, Of::Bool, Binary(Opcode::Band)),
        (Op::LogicalOr, Of::Bool, Binary(Opcode::Bor)),
        (Op::LogicalNotEqual, Of::Bool, Binary(Opcode::Bxor)),
        (Op::LogicalEqual, Of::Bool, CompareInts(IntCC::Equal)),
        (Op::LogicalNot, Of::Bool, Special(not)),
        // Translators compare addresses so, too.
        (Op::IEqual, Of::Address, CompareInts(IntCC::Equal)),
        (Op::INotEqual, Of::Address, CompareInts(IntCC::NotEqual)),
        (Op::UGreaterThan, Of::Address, CompareInts(IntCC::UnsignedGreaterThan)),
        (Op::UGreaterThanEqual, Of::Address, CompareInts(IntCC::UnsignedGreaterThanOrEqual)),
        (Op::ULessThan, Of::Address, CompareInts(IntCC::UnsignedLessThan)),
        (Op::ULessThanEqual, Of::Address, CompareInts(IntCC::UnsignedLessThanOrEqual)),
        (Op::SGreaterThan, Of::Address, CompareInts(IntCC::SignedGreaterThan)),
        (Op::SGreaterThanEqual, Of::Address, CompareInts(IntCC::SignedGreaterThanOrEqual)),
        (Op::SLessThan, Of::Address, CompareInts(IntCC::SignedLessThan)),
        (Op::SLessThanEqual, Of::Address, CompareInts(IntCC::SignedLessThanOrEqual)),
        (Op::PtrEqual, Of::Address, CompareInts(IntCC::Equal)),
        (Op::PtrNotEqual, Of::Address, CompareInts(IntCC::NotEqual)),
        (Op::FOrdEqual, Of::Float, CompareFloats(FloatCC::Equal)),
        (Op::FOrdNotEqual, Of::Float, CompareFloats(FloatCC::OrderedNotEqual)),
        (Op::FOrdLessThan, Of::Float, CompareFloats(FloatCC::LessThan)),
        (Op::FOrdGreaterThan, Of::Float, CompareFloats(FloatCC::GreaterThan)),
        (Op::FOrdLessThanEqual, Of::Float, CompareFloats(FloatCC::LessThanOrEqual)),
        (Op::FOrdGreaterThanEqual, Of::Float, CompareFloats(FloatCC::GreaterThanOrEqual)),
        (Op::FUnordEqual, Of::Float, CompareFloats(FloatCC::UnorderedOrEqual)),
        (Op::FUnordNotEqual, Of::Float, CompareFloats(FloatCC::NotEqual)),
        (Op::FUnordLessThan, Of::Float, CompareFloats(FloatCC::UnorderedOrLessThan)),
        (Op::FUnordGreaterThan, Of::Float, CompareFloats(FloatCC::UnorderedOrGreaterThan)),
        (Op::FUnordLessThanEqual, Of::Float, CompareFloats(FloatCC::UnorderedOrLessThanOrEqual)),
        (
            Op::FUnordGreaterThanEqual,
            Of::Float,
            CompareFloats(FloatCC::UnorderedOrGreaterThanOrEqual),
        ),
        (Op::LessOrGreater, Of::Float, CompareFloats(FloatCC::OrderedNotEqual)),
        (Op::Ordered, Of::Float, CompareFloats(FloatCC::Ordered)),
        (Op::Unordered, Of::Float, CompareFloats(FloatCC::Unordered)),
        (Op::IsNan, Of::Float, Special(|t, x| t.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]))),
        (Op::IsInf, Of::Float, Special(|t, x| t.magnitude_is(IntCC::Equal, x[0]))),
        (Op::IsFinite, Of::Float, Special(|t, x| t.magnitude_is(IntCC::UnsignedLessThan, x[0]))),
        (Op::SignBitSet, Of::Float, Special(sign_bit)),
    ];
    rows.into_iter().map(|(op, of, form)| (op as u32, (of, form))).collect()
});

/// The comparison of truth values, 0 and 1, that is one of integers of one bit: with a sign, true is -1.
fn on_truths(condition: IntCC) -> IntCC {
    let unsigned = condition.unsigned();
    if unsigned == condition { condition } else { unsigned.swap_args() }
}

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn arithmetic(&mut self, inst: Instruction<'_>) -> Result<bool> {
        if let Some(&(of, form)) = ROWS.get(&(inst.op as u32)) {
            self.row(inst, of, form)?;
            return Ok(true);
        }
        match inst.op {
            Op::FRem | Op::FMod => self.float_remainder(inst)?,
            Op::BitCount => {
                let value = self.vector_of(inst.word(0)?, Of::Int)?;
                let (_, to) = self.vector_type(inst.ty, Of::Int)?;
                let count = |t: &mut Self, x| {
                    let ones = t.b.ins().popcnt(x);
                    t.resized(ones, to, false)
                };
                let parts = value.parts.iter().map(|&x| count(self, x)).collect();
                self.set_like(inst, &value, parts)?;
            }
            Op::IsNormal => {
                // As floats of 32 bits, all halves but zero are normal.
                let value = self.vector_of(inst.word(0)?, Of::Float)?;
                let is_half = self.is_half(value.ty)?;
                let mut parts = Parts::new();
                for &part in &value.parts {
                    parts.push(if is_half {
                        self.is_normal_half(part)
                    } else {
                        is_normal(self, part)
                    });
                }
                self.check_type(inst, Of::Bool, parts.len())?;
                self.set(inst, parts)?;
            }
            Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => {
                self.bit_field(inst)?;
            }
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                self.two_results(inst)?;
            }
            Op::Any | Op::All => {
                let mut parts = self.truths(inst.word(0)?)?.into_iter();
                let first = parts.next().ok_or_else(|| SpirvErrorKind::malformed("no operand"))?;
                let result = parts.fold(first, |all, part| match inst.op {
                    Op::Any => self.b.ins().bor(all, part),
                    _ => self.b.ins().band(all, part),
                });
                self.check_type(inst, Of::Bool, 1)?;
                self.set(inst, Parts::from_slice(&[result]))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The components of a vector of truth values. LLVM's back end also takes integers, of which OpenCL C's `any` and `all` see
    /// the highest bits.
    fn truths(&mut self, id: Id) -> Result<Parts> {
        if self.is_truth(id)? {
            return Ok(self.vector_of(id, Of::Bool)?.parts);
        }
        let value = self.vector_of(id, Of::Int)?;
        let is_negative = |&part| self.b.ins().icmp_imm_s(IntCC::SignedLessThan, part, 0);
        Ok(value.parts.iter().map(is_negative).collect())
    }

    fn row(&mut self, inst: Instruction<'_>, of: Of, form: Form) -> Result<()> {
        let (of, form) = match form {
            // Translators of LLVM's code compare truth values as integers of one bit.
            CompareInts(condition) if self.is_truth(inst.word(0)?)? => {
                (Of::Bool, CompareInts(on_truths(condition)))
            }
            _ => (of, form),
        };
        let first = self.vector_of(inst.word(0)?, of)?;
        let is_binary = !matches!(form, Unary(_) | Special(_)) || inst.op == Op::SMod;
        let second = if is_binary {
            let second = self.vector_of(inst.word(1)?, of)?;
            let same = matches!(form, Shift(_)) || self.alike(first.ty, second.ty)?;
            if !same || second.parts.len() != first.parts.len() {
                let expected = self.module.types.describe(first.ty);
                return Err(self.mismatch(inst.word(1)?, second.ty, expected));
            }
            Some(second)
        } else {
            None
        };
        let compares = matches!(form, CompareInts(_) | CompareFloats(_))
            || (matches!(form, Special(_)) && of == Of::Float);
        if compares {
            self.check_type(inst, Of::Bool, first.parts.len())?;
        } else if !self.alike(inst.ty, first.ty)? {
            let expected = self.module.types.describe(inst.ty);
            return Err(self.mismatch(inst.word(0)?, first.ty, expected));
        }
        let is_half = of == Of::Float && self.is_half(first.ty)?;
        let mut parts = Parts::new();
        for (index, &x) in first.parts.iter().enumerate() {
            let mut args = [x; 2];
            if let Some(second) = &second {
                args[1] = second.parts[index];
            }
            if is_half {
                args = args.map(|arg| self.half_to_single(arg));
            }
            let result = self.formed(form, &args[..1 + usize::from(is_binary)]);
            parts.push(if is_half && !compares { self.single_to_half(result) } else { result });
        }
        self.set(inst, parts)
    }

    fn formed(&mut self, form: Form, args: &[ir::Value]) -> ir::Value {
        let ty = self.b.func.dfg.value_type(args[0]);
        match form {
            Unary(opcode) => {
                let (inst, dfg) = self.b.ins().Unary(opcode, ty, args[0]);
                dfg.first_result(inst)
            }
            Binary(opcode) => self.binary(opcode, args[0], args[1]),
            Shift(opcode) => {
                let by = self.resized(args[1], ty, false);
                self.binary(opcode, args[0], by)
            }
            Divide(opcode) => self.divide(opcode, args[0], args[1]),
            CompareInts(condition) => self.b.ins().icmp(condition, args[0], args[1]),
            CompareFloats(condition) => self.b.ins().fcmp(condition, args[0], args[1]),
            Special(build) => build(self, args),
        }
    }

    pub(crate) fn binary(&mut self, opcode: Opcode, x: ir::Value, y: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let (inst, dfg) = self.b.ins().Binary(opcode, ty, x, y);
        dfg.first_result(inst)
    }

    /// A division, or its remainder, that does not trap.
    pub(crate) fn divide(&mut self, opcode: Opcode, x: ir::Value, y: ir::Value) -> ir::Value {
        let signed = matches!(opcode, Opcode::Sdiv | Opcode::Srem);
        if self.known(y).is_some_and(|divisor| divisor != 0 && !(signed && divisor == -1)) {
            return self.binary(opcode, x, y);
        }
        let ty = self.b.func.dfg.value_type(x);
        let mut avoid = self.b.ins().icmp_imm_u(IntCC::Equal, y, 0);
        if signed {
            let smallest = self.b.ins().icmp_imm_s(IntCC::Equal, x, i64::MIN >> (64 - ty.bits()));
            let minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, y, -1);
            let overflow = self.b.ins().band(smallest, minus_one);
            avoid = self.b.ins().bor(avoid, overflow);
        }
        let one = self.b.ins().iconst(ty, 1);
        let divisor = self.b.ins().select(avoid, one, y);
        self.binary(opcode, x, divisor)
    }

    /// An integer of another width, with its sign if it is signed and becomes wider.
    pub(crate) fn resized(&mut self, value: ir::Value, ty: ir::Type, signed: bool) -> ir::Value {
        let given = self.b.func.dfg.value_type(value);
        match given.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.b.ins().ireduce(ty, value),
            std::cmp::Ordering::Less if signed => self.b.ins().sextend(ty, value),
            std::cmp::Ordering::Less => self.b.ins().uextend(ty, value),
        }
    }

    /// The value of an id that is a scalar or a vector of some kind.
    pub(crate) fn vector_of(&mut self, id: Id, of: Of) -> Result<Val> {
        let value = self.value(id)?;
        if !self.is_vector_of(value.ty, of)? {
            let expected = match of {
                Of::Int => "integers",
                Of::Float => "floats",
                Of::Bool => "truth values",
                Of::Address => "integers or addresses",
            };
            return Err(self.mismatch(id, value.ty, expected.to_owned()));
        }
        Ok(value)
    }

    /// Whether the value of an id is a truth value or a vector of these.
    fn is_truth(&mut self, id: Id) -> Result<bool> {
        let ty = self.value(id)?.ty;
        self.is_vector_of(ty, Of::Bool)
    }

    pub(crate) fn is_vector_of(&self, ty: Id, of: Of) -> Result<bool> {
        let (component, _) = self.module.types.components(ty)?;
        Ok(match self.module.types.kind(component)? {
            Kind::Int { .. } => matches!(of, Of::Int | Of::Address),
            Kind::Float { .. } => of == Of::Float,
            Kind::Bool => of == Of::Bool,
            Kind::Pointer { .. } => of == Of::Address,
            _ => false,
        })
    }

    /// The number of components of a type, and the type of one in CLIF.
    pub(crate) fn vector_type(&self, ty: Id, of: Of) -> Result<(usize, ir::Type)> {
        let (component, count) = self.module.types.components(ty)?;
        let scalar = self.module.types.scalar(component, self.unit.word)?;
        match scalar.filter(|_| self.is_vector_of(ty, of).unwrap_or(false)) {
            Some(scalar) => Ok((count as usize, scalar)),
            None => Err(self.mismatch(ty, ty, "a scalar or a vector".to_owned())),
        }
    }

    /// Checks the type of an instruction's result.
    pub(crate) fn check_type(&self, inst: Instruction<'_>, of: Of, count: usize) -> Result<()> {
        let (given, _) = self.vector_type(inst.ty, of)?;
        if given != count {
            let what = format!("a result of {given} components, its operands have {count}");
            return Err(SpirvErrorKind::malformed(what));
        }
        Ok(())
    }

    /// Whether two types have the same scalars, as integers of both signs do.
    pub(crate) fn alike(&self, first: Id, second: Id) -> Result<bool> {
        if first == second {
            return Ok(true);
        }
        let shape = |ty| -> Result<_> {
            let (component, count) = self.module.types.components(ty)?;
            let kind = match self.module.types.kind(component)? {
                Kind::Int { bits, .. } => (0, *bits),
                Kind::Float { bits } => (1, *bits),
                Kind::Bool => (2, 1),
                Kind::Pointer { .. } => (3, 0),
                _ => (4, component),
            };
            Ok((kind, count))
        };
        Ok(shape(first)? == shape(second)?)
    }

    /// Sets a result that must have as many components as an operand.
    pub(crate) fn set_like(
        &mut self,
        inst: Instruction<'_>,
        like: &Val,
        parts: Parts,
    ) -> Result<()> {
        let (_, count) = self.module.types.components(inst.ty)?;
        if count as usize != like.parts.len() || parts.len() != count as usize {
            let expected = self.module.types.describe(inst.ty);
            return Err(self.mismatch(inst.id, like.ty, expected));
        }
        self.set(inst, parts)
    }

    /// Whether a float's magnitude compares to infinity as `condition` says, by their bits.
    fn magnitude_is(&mut self, condition: IntCC, x: ir::Value) -> ir::Value {
        let (bits, infinity) = self.magnitude(x);
        self.b.ins().icmp(condition, bits, infinity)
    }

    /// The bits of a float without its sign, and those of infinity.
    fn magnitude(&mut self, x: ir::Value) -> (ir::Value, ir::Value) {
        let magnitude = self.b.ins().fabs(x);
        let bits = self.float_bits(magnitude);
        let infinity = match self.b.func.dfg.value_type(x) {
            types::F32 => self.b.ins().iconst(types::I32, i64::from(f32::INFINITY.to_bits())),
            _ => self.b.ins().iconst(types::I64, f64::INFINITY.to_bits().cast_signed()),
        };
        (bits, infinity)
    }

    /// The bits of a float.
    pub(crate) fn float_bits(&mut self, x: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x).as_int();
        self.b.ins().bitcast(ty, ir::MemFlagsData::new(), x)
    }

    fn float_remainder(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (x, y) =
            (self.vector_of(inst.word(0)?, Of::Float)?, self.vector_of(inst.word(1)?, Of::Float)?);
        if x.ty != inst.ty || y.ty != inst.ty {
            return Err(self.mismatch(inst.word(0)?, x.ty, self.module.types.describe(inst.ty)));
        }
        let mut rests = self.math_of(harp_libm::Math::Fmod, inst.ty, &[&x, &y])?.remove(0);
        if inst.op == Op::FMod {
            // The result has the sign of the divisor.
            let is_half = self.is_half(inst.ty)?;
            for (index, part) in rests.iter_mut().enumerate() {
                let [mut rest, mut y] = [*part, y.parts[index]];
                if is_half {
                    [rest, y] = [rest, y].map(|value| self.half_to_single(value));
                }
                let ty = self.b.func.dfg.value_type(rest);
                let zero = self.bits(ty, 0);
                let negative = [rest, y].map(|x| self.b.ins().fcmp(FloatCC::LessThan, x, zero));
                let differ = self.b.ins().bxor(negative[0], negative[1]);
                let some = self.b.ins().fcmp(FloatCC::NotEqual, rest, zero);
                let wrong = self.b.ins().band(differ, some);
                let sum = self.b.ins().fadd(rest, y);
                let fixed = self.b.ins().select(wrong, sum, rest);
                *part = if is_half { self.single_to_half(fixed) } else { fixed };
            }
        }
        self.set(inst, rests)
    }

    fn bit_field(&mut self, inst: Instruction<'_>) -> Result<()> {
        let inserts = inst.op == Op::BitFieldInsert;
        let base = self.vector_of(inst.word(0)?, Of::Int)?;
        if !self.alike(base.ty, inst.ty)? {
            return Err(self.mismatch(inst.word(0)?, base.ty, self.module.types.describe(inst.ty)));
        }
        let insert = if inserts { Some(self.vector_of(inst.word(1)?, Of::Int)?) } else { None };
        let first = 1 + usize::from(inserts);
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let [offset, count] =
            [self.integer(inst.word(first)?)?, self.integer(inst.word(first + 1)?)?]
                .map(|value| self.resized(value, ty, false));
        let bits = i64::from(ty.bits());
        // A mask of `count` ones: shifts by the full width are none.
        let all = self.b.ins().iconst(ty, -1);
        let width = self.b.ins().iconst(ty, bits);
        let unused = self.b.ins().isub(width, count);
        let ones = self.b.ins().ushr(all, unused);
        let empty = self.b.ins().icmp_imm_u(IntCC::Equal, count, 0);
        let zero = self.b.ins().iconst(ty, 0);
        let mut parts = Parts::new();
        for (index, &x) in base.parts.iter().enumerate() {
            parts.push(match &insert {
                Some(insert) => {
                    let &y = insert
                        .parts
                        .get(index)
                        .filter(|&&y| self.b.func.dfg.value_type(y) == ty)
                        .ok_or_else(|| {
                            SpirvErrorKind::malformed("the operands have different types")
                        })?;
                    let ones = self.b.ins().select(empty, zero, ones);
                    let mask = self.b.ins().ishl(ones, offset);
                    let y = self.b.ins().ishl(y, offset);
                    self.b.ins().bitselect(mask, y, x)
                }
                None => {
                    let end = self.b.ins().iadd(offset, count);
                    let above = self.b.ins().isub(width, end);
                    let top = self.b.ins().ishl(x, above);
                    let field = match inst.op {
                        Op::BitFieldSExtract => self.b.ins().sshr(top, unused),
                        _ => self.b.ins().ushr(top, unused),
                    };
                    self.b.ins().select(empty, zero, field)
                }
            });
        }
        self.set(inst, parts)
    }

    /// Instructions whose result is a structure of the low and the high part.
    fn two_results(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (x, y) =
            (self.vector_of(inst.word(0)?, Of::Int)?, self.vector_of(inst.word(1)?, Of::Int)?);
        let leaves = self.leaf_types(inst.ty)?;
        let wanted = x.parts.iter().chain(&x.parts).map(|&part| self.b.func.dfg.value_type(part));
        if x.ty != y.ty || !wanted.eq(leaves) {
            return Err(SpirvErrorKind::malformed("the operands do not fit the result"));
        }
        let (mut low, mut high) = (Parts::new(), Parts::new());
        for (&x, &y) in x.parts.iter().zip(&y.parts) {
            let ty = self.b.func.dfg.value_type(x);
            let (first, second) = match inst.op {
                Op::IAddCarry => {
                    let sum = self.b.ins().iadd(x, y);
                    let carry = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x);
                    (sum, self.resized(carry, ty, false))
                }
                Op::ISubBorrow => {
                    let difference = self.b.ins().isub(x, y);
                    let borrow = self.b.ins().icmp(IntCC::UnsignedLessThan, x, y);
                    (difference, self.resized(borrow, ty, false))
                }
                op => (self.b.ins().imul(x, y), self.high_product(x, y, op == Op::SMulExtended)),
            };
            low.push(first);
            high.push(second);
        }
        low.extend(high);
        self.set(inst, low)
    }

    /// The upper half of a product.
    pub(crate) fn high_product(&mut self, x: ir::Value, y: ir::Value, signed: bool) -> ir::Value {
        let ty = self.b.func.dfg.value_type(x);
        let Some(wide) = ty.double_width().filter(|wide| wide.bits() <= 32) else {
            return match signed {
                true => self.b.ins().smulhi(x, y),
                false => self.b.ins().umulhi(x, y),
            };
        };
        let [x, y] = [x, y].map(|value| self.resized(value, wide, signed));
        let product = self.b.ins().imul(x, y);
        let high = self.b.ins().ushr_imm_u(product, i64::from(ty.bits()));
        self.b.ins().ireduce(ty, high)
    }
}

fn not(t: &mut Translator<'_, '_, '_>, x: &[ir::Value]) -> ir::Value {
    t.b.ins().bxor_imm_u(x[0], 1)
}

/// The remainder with the sign of the divisor.
fn floored_remainder(t: &mut Translator<'_, '_, '_>, args: &[ir::Value]) -> ir::Value {
    let (x, y) = (args[0], args[1]);
    let rest = t.divide(Opcode::Srem, x, y);
    let differ = t.b.ins().bxor(rest, y);
    let differ = t.b.ins().icmp_imm_s(IntCC::SignedLessThan, differ, 0);
    let some = t.b.ins().icmp_imm_s(IntCC::NotEqual, rest, 0);
    let wrong = t.b.ins().band(differ, some);
    let sum = t.b.ins().iadd(rest, y);
    t.b.ins().select(wrong, sum, rest)
}

fn is_normal(t: &mut Translator<'_, '_, '_>, x: ir::Value) -> ir::Value {
    let (bits, infinity) = t.magnitude(x);
    let least = match t.b.func.dfg.value_type(x) {
        types::F32 => i64::from(f32::MIN_POSITIVE.to_bits()),
        _ => f64::MIN_POSITIVE.to_bits().cast_signed(),
    };
    let ty = t.b.func.dfg.value_type(bits);
    let least = t.b.ins().iconst(ty, least);
    // Below the least normal number the difference wraps around.
    let above = t.b.ins().isub(bits, least);
    let range = t.b.ins().isub(infinity, least);
    t.b.ins().icmp(IntCC::UnsignedLessThan, above, range)
}

fn sign_bit(t: &mut Translator<'_, '_, '_>, x: &[ir::Value]) -> ir::Value {
    let bits = t.float_bits(x[0]);
    t.b.ins().icmp_imm_s(IntCC::SignedLessThan, bits, 0)
}
