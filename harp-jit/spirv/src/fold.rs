//! Operations on constants: `OpSpecConstantOp`.

use rspirv::spirv::Op;

use crate::constants::{Constants, Scalar};
use crate::error::{Result, SpirvErrorKind};
use crate::reader::{Id, Instruction, op_name};
use crate::types::{Kind, Types};

/// The scalars of an operation's result.
pub(crate) fn evaluate(
    inst: Instruction<'_>,
    types: &Types,
    constants: &Constants,
) -> Result<Vec<Scalar>> {
    let op = inst.enumerant(0, "opcode", Op::from_u32)?;
    let inner = Instruction { op, operands: inst.rest(1), ..inst };
    Fold { inst: inner, types, constants }.run()
}

#[derive(Clone, Copy)]
struct Fold<'a> {
    inst: Instruction<'a>,
    types: &'a Types,
    constants: &'a Constants,
}

impl Fold<'_> {
    fn run(self) -> Result<Vec<Scalar>> {
        match self.inst.op {
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain => self.address(),
            Op::CompositeExtract => {
                let (ty, first) = self.part_of(self.inst.word(0)?, 1)?;
                let count = self.types.get(ty)?.leaves as usize;
                self.slice(self.inst.word(0)?, first as usize, count)
            }
            Op::CompositeInsert => {
                let (ty, first) = self.part_of(self.inst.word(1)?, 2)?;
                let (mut all, part) = (self.scalars(1)?, self.scalars(0)?);
                let (first, count) = (first as usize, self.types.get(ty)?.leaves as usize);
                let place = all.get_mut(first..first + count).filter(|_| part.len() == count);
                place.ok_or_else(misfit)?.copy_from_slice(&part);
                Ok(all)
            }
            Op::VectorShuffle => {
                let all = [self.scalars(0)?, self.scalars(1)?].concat();
                let picked = self.inst.rest(2).iter().map(|&index| match index {
                    u32::MAX => Ok(Scalar::Bits(0)),
                    index => all.get(index as usize).copied().ok_or_else(misfit),
                });
                picked.collect()
            }
            Op::Bitcast
            | Op::GenericCastToPtr
            | Op::PtrCastToGeneric
            | Op::ConvertPtrToU
            | Op::ConvertUToPtr
            | Op::CopyObject => self.scalars(0),
            Op::Select => {
                let (choice, yes, no) = (self.scalars(0)?, self.scalars(1)?, self.scalars(2)?);
                let chosen = (0..yes.len().min(no.len())).map(|index| {
                    let choice = choice.get(index).or(choice.first());
                    if choice == Some(&Scalar::Bits(0)) { no[index] } else { yes[index] }
                });
                Ok(chosen.collect())
            }
            _ => self.componentwise(),
        }
    }

    fn scalars(self, operand: usize) -> Result<Vec<Scalar>> {
        Ok(self.constants.scalars(self.inst.word(operand)?, self.types)?.into_vec())
    }

    fn slice(self, id: Id, first: usize, count: usize) -> Result<Vec<Scalar>> {
        let all = self.constants.scalars(id, self.types)?;
        Ok(all.get(first..first + count).ok_or_else(misfit)?.to_vec())
    }

    /// The type of a part, whose indices begin at an operand, and the number of scalars before it.
    fn part_of(self, whole: Id, indices: usize) -> Result<(Id, u64)> {
        let mut place = (self.constants.ty(whole)?, 0);
        for &index in self.inst.rest(indices) {
            let (ty, before) = self.types.part(place.0, index.into())?;
            place = (ty, place.1 + before);
        }
        Ok(place)
    }

    /// A pointer to a part of a variable.
    fn address(self) -> Result<Vec<Scalar>> {
        let base = self.inst.word(0)?;
        let (_, mut ty) = self.types.pointer(self.constants.ty(base)?)?;
        let mut bytes = 0_i64;
        let mut indices = self.inst.rest(1).iter();
        if matches!(self.inst.op, Op::PtrAccessChain | Op::InBoundsPtrAccessChain) {
            let element = indices.next().ok_or_else(misfit)?;
            let element = self.constants.index(*element, self.types)?;
            let found = self.types.get(ty)?;
            let stride = found.size.next_multiple_of(found.align).cast_signed();
            bytes = bytes.wrapping_add(element.wrapping_mul(stride));
        }
        for &index in indices {
            let index = self.constants.index(index, self.types)?;
            let (of, offset) = match self.types.kind(ty)? {
                Kind::Array { of, stride, .. } | Kind::RuntimeArray { of, stride } => {
                    (*of, index.wrapping_mul(stride.cast_signed()))
                }
                Kind::Vector { of, .. } => {
                    (*of, index.wrapping_mul(self.types.get(*of)?.size.cast_signed()))
                }
                Kind::Struct { members } => {
                    let member = usize::try_from(index).ok().and_then(|index| members.get(index));
                    let member = member.ok_or_else(misfit)?;
                    (member.ty, member.offset.cast_signed())
                }
                _ => return Err(misfit()),
            };
            ty = of;
            bytes = bytes.wrapping_add(offset);
        }
        let (_, target) = self.types.pointer(self.inst.ty)?;
        if ty != target {
            let (given, expected) = (self.types.describe(ty), self.types.describe(target));
            return Err(SpirvErrorKind::Mismatch { id: self.inst.id, given, expected });
        }
        match self.constants.scalar(base, self.types)? {
            Scalar::Address { variable, offset } => {
                Ok(vec![Scalar::Address { variable, offset: offset.wrapping_add(bytes) }])
            }
            Scalar::Bits(bits) => Ok(vec![Scalar::Bits(bits.wrapping_add_signed(bytes))]),
        }
    }

    fn componentwise(self) -> Result<Vec<Scalar>> {
        let op = self.inst.op;
        let (result, _) = self.types.components(self.inst.ty)?;
        let (operand, _) = self.types.components(self.constants.ty(self.inst.word(0)?)?)?;
        let first = self.scalars(0)?;
        let second = if self.inst.operands.len() > 1 { self.scalars(1)? } else { Vec::new() };
        if self.inst.operands.len() > 1 && first.len() != second.len() {
            return Err(misfit());
        }
        let unsupported = || SpirvErrorKind::unsupported(format!("{} of constants", op_name(op)));
        let mut results = Vec::with_capacity(first.len());
        for (index, &x) in first.iter().enumerate() {
            let y = second.get(index).copied();
            results.push(match (x, y.unwrap_or(Scalar::Bits(0)), op) {
                (Scalar::Bits(x), Scalar::Bits(y), _) => {
                    let bits = self.bits(op, x, y, operand, result)?.ok_or_else(unsupported)?;
                    Scalar::Bits(bits)
                }
                (Scalar::Address { variable, offset }, Scalar::Bits(by), Op::IAdd) => {
                    Scalar::Address { variable, offset: offset.wrapping_add_unsigned(by) }
                }
                (Scalar::Address { .. }, _, Op::UConvert | Op::SConvert) => x,
                _ => return Err(unsupported()),
            });
        }
        Ok(results)
    }

    /// An operation on scalars of the type `from`, with a result of the type `to`.
    fn bits(self, op: Op, x: u64, y: u64, from: Id, to: Id) -> Result<Option<u64>> {
        let width = |ty: Id| match self.types.kind(ty)? {
            Kind::Int { bits, .. } | Kind::Float { bits } => Ok(*bits),
            Kind::Pointer { .. } => Ok(64),
            Kind::Bool => Ok(8),
            _ => Err(misfit()),
        };
        let mask = u64::MAX >> (64 - width(to)?);
        let value = match *self.types.kind(from)? {
            Kind::Float { bits: 32 } => {
                let (x, y) = (f32::from_bits(x as u32), f32::from_bits(y as u32));
                let narrow = |value: f64| u64::from((value as f32).to_bits());
                float(op, x.into(), y.into(), mask.count_ones(), narrow)
            }
            Kind::Float { bits: 64 } => {
                float(op, f64::from_bits(x), f64::from_bits(y), mask.count_ones(), f64::to_bits)
            }
            Kind::Float { .. } => {
                let narrow = |value: f64| u64::from(half_of(value));
                float(
                    op,
                    value_of_half(x as u16),
                    value_of_half(y as u16),
                    mask.count_ones(),
                    narrow,
                )
            }
            _ => integer(op, x, y, width(from)?, mask.count_ones()),
        };
        Ok(value.map(|value| value & mask))
    }
}

fn misfit() -> SpirvErrorKind {
    SpirvErrorKind::malformed("the operands do not fit each other")
}

/// An operation on integers of `bits` bits, or truth values; a converted float has `to` bits.
fn integer(op: Op, x: u64, y: u64, bits: u32, to: u32) -> Option<u64> {
    let signed = |value: u64| (value << (64 - bits)).cast_signed() >> (64 - bits);
    let (sx, sy) = (signed(x), signed(y));
    let truth = |truth: bool| Some(u64::from(truth));
    let float = |value: f64, narrow: f32| match to {
        // An integer that is no float of 64 bits is larger than any half.
        16 => half_of(value).into(),
        32 => u64::from(narrow.to_bits()),
        _ => value.to_bits(),
    };
    Some(match op {
        Op::IAdd => x.wrapping_add(y),
        Op::ISub => x.wrapping_sub(y),
        Op::IMul => x.wrapping_mul(y),
        Op::UDiv => x.checked_div(y).unwrap_or(0),
        Op::UMod => x.checked_rem(y).unwrap_or(0),
        Op::SDiv => sx.checked_div(sy).unwrap_or(0).cast_unsigned(),
        Op::SRem => sx.checked_rem(sy).unwrap_or(0).cast_unsigned(),
        Op::SMod => {
            let rest = sx.checked_rem(sy).unwrap_or(0);
            let fixed =
                if rest != 0 && (rest < 0) != (sy < 0) { rest.wrapping_add(sy) } else { rest };
            fixed.cast_unsigned()
        }
        Op::ShiftLeftLogical => x.checked_shl(y as u32).unwrap_or(0),
        Op::ShiftRightLogical => x.checked_shr(y as u32).unwrap_or(0),
        Op::ShiftRightArithmetic => (sx >> y.min(63)).cast_unsigned(),
        Op::BitwiseAnd | Op::LogicalAnd => x & y,
        Op::BitwiseOr | Op::LogicalOr => x | y,
        Op::BitwiseXor => x ^ y,
        Op::Not => !x,
        Op::SNegate => sx.wrapping_neg().cast_unsigned(),
        Op::LogicalNot => return truth(x == 0),
        Op::IEqual | Op::LogicalEqual => return truth(x == y),
        Op::INotEqual | Op::LogicalNotEqual => return truth(x != y),
        Op::ULessThan => return truth(x < y),
        Op::ULessThanEqual => return truth(x <= y),
        Op::UGreaterThan => return truth(x > y),
        Op::UGreaterThanEqual => return truth(x >= y),
        Op::SLessThan => return truth(sx < sy),
        Op::SLessThanEqual => return truth(sx <= sy),
        Op::SGreaterThan => return truth(sx > sy),
        Op::SGreaterThanEqual => return truth(sx >= sy),
        Op::UConvert => x,
        Op::SConvert => sx.cast_unsigned(),
        Op::ConvertSToF => float(sx as f64, sx as f32),
        Op::ConvertUToF => float(x as f64, x as f32),
        _ => return None,
    })
}

/// An operation on floats; `bits` is how the type of the operands stores one, the result has `to` bits.
fn float(op: Op, x: f64, y: f64, to: u32, bits: impl Fn(f64) -> u64) -> Option<u64> {
    let truth = |truth: bool| Some(u64::from(truth));
    // The sums, products and quotients of two 24-bit numbers, rounded to 53 bits and then to 24, are rounded correctly; those of
    // halves are, too.
    let value = match op {
        Op::FAdd => x + y,
        Op::FSub => x - y,
        Op::FMul => x * y,
        Op::FDiv => x / y,
        Op::FRem => x % y,
        Op::FMod => {
            let rest = x % y;
            if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
        }
        Op::FNegate => -x,
        Op::FConvert if to == 16 => return Some(half_of(x).into()),
        Op::FConvert if to == 32 => return Some(u64::from((x as f32).to_bits())),
        Op::FConvert => return Some(x.to_bits()),
        Op::ConvertFToS => return Some((x as i64).cast_unsigned()),
        Op::ConvertFToU => return Some(x as u64),
        Op::FOrdEqual => return truth(x == y),
        Op::FOrdNotEqual => return truth(x != y && !x.is_nan() && !y.is_nan()),
        Op::FOrdLessThan => return truth(x < y),
        Op::FOrdLessThanEqual => return truth(x <= y),
        Op::FOrdGreaterThan => return truth(x > y),
        Op::FOrdGreaterThanEqual => return truth(x >= y),
        Op::FUnordNotEqual => return truth(x != y),
        _ => return None,
    };
    Some(bits(value))
}

/// The number that a half is (IEEE 754, binary16).
fn value_of_half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * (-24_f64).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::from(exponent - 25).exp2(),
    };
    magnitude.copysign(if bits >> 15 == 0 { 1.0 } else { -1.0 })
}

/// The half that is nearest to a number; of two, the even one.
fn half_of(value: f64) -> u16 {
    let magnitude = value.abs();
    let bits = match magnitude {
        _ if value.is_nan() => 0x7e00,
        // Halfway from the largest half to the next power of two.
        65520.0.. => 0x7c00,
        _ => {
            let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
            let exponent = exponent.max(-14);
            let units = (magnitude * f64::from(10 - exponent).exp2()).round_ties_even() as u16;
            // The leading one adds to the exponent, where there is one.
            ((exponent + 14) as u16) * 1024 + units
        }
    };
    bits | u16::from(value.is_sign_negative()) << 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_have_the_sign_of_the_dividend_or_of_the_divisor() {
        for (x, y, rem, modulo) in [
            (5.5, 2.0, 1.5, 1.5),
            (-5.5, 2.0, -1.5, 0.5),
            (5.5, -2.0, 1.5, -0.5),
            (-5.5, -2.0, -1.5, -1.5),
            (-4.0, 2.0, -0.0, -0.0),
        ] {
            let result = |op| float(op, x, y, 64, f64::to_bits).map(f64::from_bits);
            assert_eq!((result(Op::FRem), result(Op::FMod)), (Some(rem), Some(modulo)));
        }
    }

    #[test]
    fn halves_are_numbers_and_numbers_are_rounded_to_halves() {
        for bits in 0..=u16::MAX {
            let value = value_of_half(bits);
            match value.is_nan() {
                true => assert_eq!(half_of(value) & 0x7fff, 0x7e00),
                false => assert_eq!(half_of(value), bits, "{value}"),
            }
        }
        for (value, bits) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (1.0 + (-11_f64).exp2(), 0x3c00),
            (1.0 + 3.0 * (-11_f64).exp2(), 0x3c02),
            ((-25_f64).exp2(), 0),
            (1.5 * (-25_f64).exp2(), 1),
            ((-14_f64).exp2() - (-26_f64).exp2(), 0x400),
            (f64::MIN_POSITIVE, 0),
            (f64::NEG_INFINITY, 0xfc00),
        ] {
            assert_eq!(half_of(value), bits, "{value}");
        }
    }
}
