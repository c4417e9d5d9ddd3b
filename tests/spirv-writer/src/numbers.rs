//! Instructions on numbers that SPIR-V or OpenCL.std has, or almost has: comparisons, selections, conversions, floats.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, types};
use rspirv::dr::Operand;
use rspirv::spirv::{Decoration, Op, OpenclStd100Op as Cl, Word};

use super::Result;
use super::function::Body;

/// An instruction with the same meaning.
enum Same {
    Core(Op),
    Std(Cl),
}

fn same(opcode: Opcode) -> Option<Same> {
    use Same::{Core, Std};
    Some(match opcode {
        Opcode::Iadd => Core(Op::IAdd),
        Opcode::Isub => Core(Op::ISub),
        Opcode::Imul => Core(Op::IMul),
        Opcode::Ineg => Core(Op::SNegate),
        Opcode::Band => Core(Op::BitwiseAnd),
        Opcode::Bor => Core(Op::BitwiseOr),
        Opcode::Bxor => Core(Op::BitwiseXor),
        Opcode::Bnot => Core(Op::Not),
        Opcode::Bitrev => Core(Op::BitReverse),
        Opcode::Fadd => Core(Op::FAdd),
        Opcode::Fsub => Core(Op::FSub),
        Opcode::Fmul => Core(Op::FMul),
        Opcode::Fdiv => Core(Op::FDiv),
        Opcode::Fneg => Core(Op::FNegate),
        Opcode::Uextend | Opcode::Ireduce => Core(Op::UConvert),
        Opcode::Sextend => Core(Op::SConvert),
        Opcode::FcvtFromUint => Core(Op::ConvertUToF),
        Opcode::FcvtFromSint => Core(Op::ConvertSToF),
        Opcode::Fpromote | Opcode::Fdemote => Core(Op::FConvert),
        Opcode::Bitcast => Core(Op::Bitcast),
        Opcode::Iabs => Std(Cl::s_abs),
        Opcode::Umulhi => Std(Cl::u_mul_hi),
        Opcode::Smulhi => Std(Cl::s_mul_hi),
        Opcode::Smin => Std(Cl::s_min),
        Opcode::Smax => Std(Cl::s_max),
        Opcode::Umin => Std(Cl::u_min),
        Opcode::Umax => Std(Cl::u_max),
        Opcode::Popcnt => Std(Cl::popcount),
        Opcode::Clz => Std(Cl::clz),
        Opcode::Ctz => Std(Cl::ctz),
        Opcode::Sqrt => Std(Cl::sqrt),
        Opcode::Fma => Std(Cl::fma),
        Opcode::Fabs => Std(Cl::fabs),
        Opcode::Fcopysign => Std(Cl::copysign),
        Opcode::Ceil => Std(Cl::ceil),
        Opcode::Floor => Std(Cl::floor),
        Opcode::Trunc => Std(Cl::trunc),
        Opcode::Nearest => Std(Cl::rint),
        _ => return None,
    })
}

fn comparison(condition: IntCC) -> Op {
    match condition {
        IntCC::Equal => Op::IEqual,
        IntCC::NotEqual => Op::INotEqual,
        IntCC::SignedLessThan => Op::SLessThan,
        IntCC::SignedGreaterThanOrEqual => Op::SGreaterThanEqual,
        IntCC::SignedGreaterThan => Op::SGreaterThan,
        IntCC::SignedLessThanOrEqual => Op::SLessThanEqual,
        IntCC::UnsignedLessThan => Op::ULessThan,
        IntCC::UnsignedGreaterThanOrEqual => Op::UGreaterThanEqual,
        IntCC::UnsignedGreaterThan => Op::UGreaterThan,
        IntCC::UnsignedLessThanOrEqual => Op::ULessThanEqual,
    }
}

fn float_comparison(condition: FloatCC) -> Op {
    match condition {
        FloatCC::Ordered => Op::Ordered,
        FloatCC::Unordered => Op::Unordered,
        FloatCC::Equal => Op::FOrdEqual,
        FloatCC::NotEqual => Op::FUnordNotEqual,
        FloatCC::OrderedNotEqual => Op::FOrdNotEqual,
        FloatCC::UnorderedOrEqual => Op::FUnordEqual,
        FloatCC::LessThan => Op::FOrdLessThan,
        FloatCC::LessThanOrEqual => Op::FOrdLessThanEqual,
        FloatCC::GreaterThan => Op::FOrdGreaterThan,
        FloatCC::GreaterThanOrEqual => Op::FOrdGreaterThanEqual,
        FloatCC::UnorderedOrLessThan => Op::FUnordLessThan,
        FloatCC::UnorderedOrLessThanOrEqual => Op::FUnordLessThanEqual,
        FloatCC::UnorderedOrGreaterThan => Op::FUnordGreaterThan,
        FloatCC::UnorderedOrGreaterThanOrEqual => Op::FUnordGreaterThanEqual,
    }
}

impl Body<'_, '_> {
    /// Writes an instruction that is no end of a block.
    pub(super) fn instruction(&mut self, inst: Inst) -> Result<()> {
        let func = self.func;
        let args = self.args(inst);
        if self.memory(inst, &args)? || self.integers(inst, &args) {
            return Ok(());
        }
        let data = func.dfg.insts[inst];
        let result = func.dfg.inst_results(inst).first().copied();
        let ty = result.map_or(types::INVALID, |result| func.dfg.value_type(result));
        let number = match (data, result) {
            (InstructionData::NullAry { opcode: Opcode::Nop | Opcode::SequencePoint }, _) => {
                return Ok(());
            }
            (InstructionData::Call { .. } | InstructionData::CallIndirect { .. }, _) => {
                let results = self.call(inst, &args)?;
                self.set(inst, &results);
                return Ok(());
            }
            (InstructionData::CondTrap { opcode, arg, .. }, _) => {
                let truth = self.truth(arg);
                let wrong = if opcode == Opcode::Trapnz { truth } else { self.not(truth) };
                self.trap_if(wrong);
                return Ok(());
            }
            (InstructionData::IntCompare { cond, .. }, Some(result)) => {
                let truth = self.compare(comparison(cond), args[0], args[1]);
                self.set_truth(result, truth);
                return Ok(());
            }
            (InstructionData::FloatCompare { cond, .. }, Some(result)) => {
                let truth = self.compare(float_comparison(cond), args[0], args[1]);
                self.set_truth(result, truth);
                return Ok(());
            }
            (InstructionData::UnaryImm { imm, .. }, _) => {
                self.constant(ty, imm.bits().cast_unsigned())
            }
            (InstructionData::UnaryIeee32 { imm, .. }, _) => self.constant(ty, imm.bits().into()),
            (InstructionData::UnaryIeee64 { imm, .. }, _) => self.constant(ty, imm.bits()),
            (
                InstructionData::Ternary {
                    opcode: Opcode::Select | Opcode::SelectSpectreGuard,
                    args: [condition, ..],
                },
                _,
            ) => {
                let condition = self.truth(condition);
                self.of(Op::Select, ty, &[condition, args[1], args[2]])
            }
            (InstructionData::Ternary { opcode: Opcode::Bitselect, .. }, _) => {
                self.std(Cl::bitselect, ty, &[args[2], args[1], args[0]])
            }
            (InstructionData::Binary { opcode: Opcode::Fmin | Opcode::Fmax, .. }, _) => {
                self.extreme(data.opcode() == Opcode::Fmin, ty, args[0], args[1])
            }
            (InstructionData::Unary { opcode, arg }, _) if is_from_float(opcode) => {
                self.integer_of(opcode, func.dfg.value_type(arg), ty, args[0])
            }
            _ => match same(data.opcode()) {
                Some(Same::Core(op)) => self.of(op, ty, &args),
                Some(Same::Std(op)) => self.std(op, ty, &args),
                None => return Err(self.unwritable(inst)),
            },
        };
        self.set(inst, &[number]);
        Ok(())
    }

    pub(super) fn not(&mut self, truth: Word) -> Word {
        let ty = self.w.b.type_bool();
        self.op(Op::LogicalNot, ty, &[truth])
    }

    pub(super) fn or(&mut self, x: Word, y: Word) -> Word {
        let ty = self.w.b.type_bool();
        self.op(Op::LogicalOr, ty, &[x, y])
    }

    /// The smaller or the larger of two floats. If one is no number, the result is none either; and -0 is below 0.
    fn extreme(&mut self, smaller: bool, ty: Type, x: Word, y: Word) -> Word {
        let (less, both) = match smaller {
            true => (Op::FOrdLessThan, Op::BitwiseOr),
            false => (Op::FOrdGreaterThan, Op::BitwiseAnd),
        };
        let int = ty.as_int();
        let bits = [x, y].map(|value| self.of(Op::Bitcast, int, &[value]));
        let signs = self.of(both, int, &bits);
        let of_equals = self.of(Op::Bitcast, ty, &[signs]);
        let first = self.compare(less, x, y);
        let chosen = self.of(Op::Select, ty, &[first, x, y]);
        let equal = self.compare(Op::FOrdEqual, x, y);
        let chosen = self.of(Op::Select, ty, &[equal, of_equals, chosen]);
        let unordered = self.compare(Op::Unordered, x, y);
        let sum = self.of(Op::FAdd, ty, &[x, y]);
        self.of(Op::Select, ty, &[unordered, sum, chosen])
    }

    /// The integer part of a float. It is the nearest integer if it does not fit, or a trap.
    fn integer_of(&mut self, opcode: Opcode, from: Type, to: Type, x: Word) -> Word {
        let signed = matches!(opcode, Opcode::FcvtToSint | Opcode::FcvtToSintSat);
        let saturates = matches!(opcode, Opcode::FcvtToSintSat | Opcode::FcvtToUintSat);
        if !saturates {
            // Both limits are floats, since they are powers of two.
            let end = f64::from(to.bits() - u32::from(signed)).exp2();
            let [least, end] =
                [if signed { -end } else { 0.0 }, end].map(|limit| self.float(from, limit));
            let whole = self.std(Cl::trunc, from, &[x]);
            let below = self.compare(Op::FUnordLessThan, whole, least);
            let above = self.compare(Op::FUnordGreaterThanEqual, whole, end);
            let wrong = self.or(below, above);
            self.trap_if(wrong);
        }
        let op = if signed { Op::ConvertFToS } else { Op::ConvertFToU };
        let ty = self.w.ty(to);
        let integer = self.push(op, Some(ty), vec![Operand::IdRef(x)]);
        if saturates {
            self.w.b.decorate(integer, Decoration::SaturatedConversion, []);
        }
        integer
    }

    fn float(&mut self, ty: Type, number: f64) -> Word {
        let bits = match ty {
            types::F32 => (number as f32).to_bits().into(),
            _ => number.to_bits(),
        };
        self.constant(ty, bits)
    }
}

fn is_from_float(opcode: Opcode) -> bool {
    use Opcode::{FcvtToSint, FcvtToSintSat, FcvtToUint, FcvtToUintSat};
    matches!(opcode, FcvtToSint | FcvtToSintSat | FcvtToUint | FcvtToUintSat)
}
