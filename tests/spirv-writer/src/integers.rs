//! Integers, where SPIR-V leaves open what CLIF defines, or has nothing like it: shifts, rotations, divisions, overflow,
//! the order of bytes.

use cranelift_codegen::ir::{AtomicRmwOp, Inst, Opcode, Type, types};
use rspirv::spirv::{Op, OpenclStd100Op as Cl, Word};

use super::function::Body;

impl Body<'_, '_> {
    /// Writes an instruction of this family; false if it is of another one.
    pub(super) fn integers(&mut self, inst: Inst, args: &[Word]) -> bool {
        let func = self.func;
        let opcode = func.dfg.insts[inst].opcode();
        let Some(&first) = func.dfg.inst_results(inst).first() else { return false };
        let ty = func.dfg.value_type(first);
        let types: Vec<Type> =
            func.dfg.inst_args(inst).iter().map(|&arg| func.dfg.value_type(arg)).collect();
        let result = match opcode {
            Opcode::Ishl => self.shift(Op::ShiftLeftLogical, ty, args, types[1]),
            Opcode::Ushr => self.shift(Op::ShiftRightLogical, ty, args, types[1]),
            Opcode::Sshr => self.shift(Op::ShiftRightArithmetic, ty, args, types[1]),
            Opcode::Rotl | Opcode::Rotr => {
                let by = self.amount(ty, args[1], types[1]);
                let by = self.resized(by, types[1], ty);
                let by = if opcode == Opcode::Rotl { by } else { self.of(Op::SNegate, ty, &[by]) };
                self.std(Cl::rotate, ty, &[args[0], by])
            }
            Opcode::Udiv => self.divide(Op::UDiv, ty, args),
            Opcode::Sdiv => self.divide(Op::SDiv, ty, args),
            Opcode::Urem => self.divide(Op::UMod, ty, args),
            Opcode::Srem => self.divide(Op::SRem, ty, args),
            Opcode::Cls => {
                let sign = self.sign(ty, args[0]);
                let same = self.of(Op::BitwiseXor, ty, &[args[0], sign]);
                let leading = self.std(Cl::clz, ty, &[same]);
                let one = self.constant(ty, 1);
                self.of(Op::ISub, ty, &[leading, one])
            }
            Opcode::Bswap => self.turned(ty, args[0]),
            Opcode::Blendv if ty.is_int() => {
                let negative = self.compare_with(Op::SLessThan, ty, args[0], 0);
                self.of(Op::Select, ty, &[negative, args[1], args[2]])
            }
            Opcode::Bmask => {
                let truth = self.compare_with(Op::INotEqual, types[0], args[0], 0);
                let [all, none] = [u64::MAX, 0].map(|bits| self.constant(ty, bits));
                self.of(Op::Select, ty, &[truth, all, none])
            }
            Opcode::Iconcat => {
                let high = self.of(Op::UConvert, ty, &[args[1]]);
                let high = self.shift_by(Op::ShiftLeftLogical, ty, high, types[0].bits());
                let low = self.of(Op::UConvert, ty, &[args[0]]);
                self.of(Op::BitwiseOr, ty, &[high, low])
            }
            Opcode::Isplit => {
                let high = self.shift_by(Op::ShiftRightLogical, types[0], args[0], ty.bits());
                let halves = [args[0], high].map(|part| self.of(Op::UConvert, ty, &[part]));
                self.set(inst, &halves);
                return true;
            }
            Opcode::UaddOverflowTrap => {
                let (sum, carry) = self.two(Op::IAddCarry, ty, args);
                let wrong = self.compare_with(Op::INotEqual, ty, carry, 0);
                self.trap_if(wrong);
                sum
            }
            _ => {
                let Some((result, overflow)) = self.overflowing(opcode, ty, args) else {
                    return false;
                };
                self.set(inst, &[result]);
                self.set_truth(func.dfg.inst_results(inst)[1], overflow);
                return true;
            }
        };
        self.set(inst, &[result]);
        true
    }

    /// An amount that is below the width of `ty`.
    fn amount(&mut self, ty: Type, by: Word, by_type: Type) -> Word {
        let mask = self.constant(by_type, u64::from(ty.bits()) - 1);
        self.of(Op::BitwiseAnd, by_type, &[by, mask])
    }

    fn shift(&mut self, op: Op, ty: Type, args: &[Word], by_type: Type) -> Word {
        let by = self.amount(ty, args[1], by_type);
        self.of(op, ty, &[args[0], by])
    }

    fn shift_by(&mut self, op: Op, ty: Type, value: Word, by: u32) -> Word {
        let by = self.constant(Self::AMOUNT, by.into());
        self.of(op, ty, &[value, by])
    }

    /// All bits as the sign.
    fn sign(&mut self, ty: Type, value: Word) -> Word {
        self.shift_by(Op::ShiftRightArithmetic, ty, value, ty.bits() - 1)
    }

    /// A division, which traps if the divisor is 0, or if the quotient is too large.
    fn divide(&mut self, op: Op, ty: Type, args: &[Word]) -> Word {
        let mut wrong = self.compare_with(Op::IEqual, ty, args[1], 0);
        if op == Op::SDiv {
            let least = self.compare_with(Op::IEqual, ty, args[0], 1 << (ty.bits() - 1));
            let minus_one = self.compare_with(Op::IEqual, ty, args[1], u64::MAX);
            let truth = self.w.b.type_bool();
            let overflow = self.op(Op::LogicalAnd, truth, &[least, minus_one]);
            wrong = self.or(wrong, overflow);
        }
        self.trap_if(wrong);
        self.of(op, ty, args)
    }

    /// The bytes the other way round.
    pub(super) fn turned(&mut self, ty: Type, value: Word) -> Word {
        let bytes = ty.bytes();
        let mask = self.constant(ty, 0xff);
        let parts: Vec<Word> = (0..bytes)
            .map(|at| {
                let down = self.shift_by(Op::ShiftRightLogical, ty, value, 8 * at);
                let byte = self.of(Op::BitwiseAnd, ty, &[down, mask]);
                self.shift_by(Op::ShiftLeftLogical, ty, byte, 8 * (bytes - 1 - at))
            })
            .collect();
        parts.into_iter().reduce(|x, y| self.of(Op::BitwiseOr, ty, &[x, y])).unwrap_or(value)
    }

    /// An instruction with two results of one type.
    fn two(&mut self, op: Op, ty: Type, args: &[Word]) -> (Word, Word) {
        let member = self.w.ty(ty);
        let pair = self.w.b.type_struct([member; 2]);
        let both = self.op(op, pair, args);
        (self.member(ty, both, 0), self.member(ty, both, 1))
    }

    /// A sum, difference or product, and whether it is out of range.
    fn overflowing(&mut self, opcode: Opcode, ty: Type, args: &[Word]) -> Option<(Word, Word)> {
        Some(match opcode {
            Opcode::UaddOverflow | Opcode::UsubOverflow => self.carried(opcode, ty, args),
            Opcode::UaddOverflowCin | Opcode::UsubOverflowBin => {
                let (first, once) = self.carried(opcode, ty, &args[..2]);
                let carry = self.carry(ty, args[2]);
                let (result, again) = self.carried(opcode, ty, &[first, carry]);
                (result, self.or(once, again))
            }
            Opcode::SaddOverflow | Opcode::SaddOverflowCin => {
                let mut sum = self.of(Op::IAdd, ty, &args[..2]);
                if opcode == Opcode::SaddOverflowCin {
                    let carry = self.carry(ty, args[2]);
                    sum = self.of(Op::IAdd, ty, &[sum, carry]);
                }
                (sum, self.signs_differ(ty, [args[0], sum], [args[1], sum]))
            }
            Opcode::SsubOverflow | Opcode::SsubOverflowBin => {
                let mut difference = self.of(Op::ISub, ty, &args[..2]);
                if opcode == Opcode::SsubOverflowBin {
                    let borrow = self.carry(ty, args[2]);
                    difference = self.of(Op::ISub, ty, &[difference, borrow]);
                }
                (difference, self.signs_differ(ty, [args[0], args[1]], [args[0], difference]))
            }
            Opcode::UmulOverflow => {
                let (low, high) = self.two(Op::UMulExtended, ty, args);
                (low, self.compare_with(Op::INotEqual, ty, high, 0))
            }
            Opcode::SmulOverflow => {
                let (low, high) = self.two(Op::SMulExtended, ty, args);
                let sign = self.sign(ty, low);
                (low, self.compare(Op::INotEqual, high, sign))
            }
            _ => return None,
        })
    }

    /// A sum or difference without signs, and whether there is a carry.
    fn carried(&mut self, opcode: Opcode, ty: Type, args: &[Word]) -> (Word, Word) {
        let op = match opcode {
            Opcode::UaddOverflow | Opcode::UaddOverflowCin => Op::IAddCarry,
            _ => Op::ISubBorrow,
        };
        let (result, carry) = self.two(op, ty, args);
        (result, self.compare_with(Op::INotEqual, ty, carry, 0))
    }

    /// 1 or 0, by a carry.
    fn carry(&mut self, ty: Type, carry: Word) -> Word {
        let truth = self.compare_with(Op::INotEqual, types::I8, carry, 0);
        self.number_of(truth, ty)
    }

    /// Whether the signs of both pairs differ.
    fn signs_differ(&mut self, ty: Type, one: [Word; 2], other: [Word; 2]) -> Word {
        let both = [one, other].map(|pair| self.of(Op::BitwiseXor, ty, &pair));
        let both = self.of(Op::BitwiseAnd, ty, &both);
        self.compare_with(Op::SLessThan, ty, both, 0)
    }

    /// What an atomic access makes of an old number.
    pub(super) fn updated(&mut self, op: AtomicRmwOp, ty: Type, old: Word, value: Word) -> Word {
        use AtomicRmwOp::*;
        let both = [old, value];
        match op {
            Add => self.of(Op::IAdd, ty, &both),
            Sub => self.of(Op::ISub, ty, &both),
            And => self.of(Op::BitwiseAnd, ty, &both),
            Or => self.of(Op::BitwiseOr, ty, &both),
            Xor => self.of(Op::BitwiseXor, ty, &both),
            Nand => {
                let and = self.of(Op::BitwiseAnd, ty, &both);
                self.of(Op::Not, ty, &[and])
            }
            Xchg => value,
            Umin => self.std(Cl::u_min, ty, &both),
            Umax => self.std(Cl::u_max, ty, &both),
            Smin => self.std(Cl::s_min, ty, &both),
            Smax => self.std(Cl::s_max, ty, &both),
        }
    }
}
