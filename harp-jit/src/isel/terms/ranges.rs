//! Value ranges known from definitions, to omit code that would change nothing.

use cranelift_codegen::ir::{Endianness, Inst, InstructionData, Opcode, Value};
use harp_isa::abi::LaneField;

use super::{Lower, low_ones};
use crate::intrinsic::Intrinsic;

/// The depth to which operands are followed.
pub(super) const RANGE_DEPTH: u32 = 4;

impl Lower<'_> {
    /// An upper bound of an integer, taken as unsigned.
    pub(super) fn largest(&self, value: Value, depth: u32) -> u64 {
        let ty = self.func.dfg.value_type(value);
        let all = low_ones(ty.bits().into()).cast_unsigned();
        if let Some(bits) = self.constant(value) {
            return bits.cast_unsigned() & all;
        }
        let Some(inst) = self.defining_inst(value) else { return all };
        let Some(depth) = depth.checked_sub(1) else { return all };
        let known = match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => 1,
            InstructionData::Binary { opcode, args: [x, y] } => {
                self.largest_of(opcode, x, y, depth)
            }
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => self.largest(arg, depth),
            InstructionData::Ternary { opcode: Opcode::Select, args: [_, x, y] } => {
                self.largest(x, depth).max(self.largest(y, depth))
            }
            InstructionData::Call { .. } => self.largest_result(inst),
            InstructionData::Load { opcode: Opcode::Uload8, .. } => 0xff,
            InstructionData::Load { opcode: Opcode::Uload16, .. } => 0xffff,
            _ => all,
        };
        known.min(all)
    }

    /// The bound for a call of an intrinsic: a group has no more work-items than a core has lanes.
    fn largest_result(&self, call: Inst) -> u64 {
        use LaneField::{Lane, LocalIdX, LocalIdY, LocalIdZ, LocalIndex};
        let lanes = u64::from(self.arch.lanes());
        match Intrinsic::of_call(self.func, call) {
            Some(Intrinsic::LaneWord(Lane)) => lanes - 1,
            Some(Intrinsic::LaneWord(LocalIndex | LocalIdX | LocalIdY | LocalIdZ)) => {
                u64::from(self.arch.warps()) * lanes - 1
            }
            _ => u64::MAX,
        }
    }

    /// Whether the sign bit of an integer is known to be 0.
    pub(super) fn has_no_sign(&self, value: Value) -> bool {
        let bits = i64::from(self.func.dfg.value_type(value).bits());
        self.largest(value, RANGE_DEPTH) <= low_ones(bits - 1).cast_unsigned()
    }

    /// The bound for an operation on two integers; `u64::MAX` if nothing is known.
    fn largest_of(&self, opcode: Opcode, x: Value, y: Value, depth: u32) -> u64 {
        let bits = self.func.dfg.value_type(x).bits();
        let amount = || self.constant(y).map(|amount| amount.cast_unsigned() as u32 & (bits - 1));
        match opcode {
            Opcode::Band => self.largest(x, depth).min(self.largest(y, depth)),
            Opcode::Bor | Opcode::Bxor => {
                let either = self.largest(x, depth) | self.largest(y, depth);
                u64::MAX.checked_shr(either.leading_zeros()).unwrap_or(0)
            }
            Opcode::Iadd => self.largest(x, depth).saturating_add(self.largest(y, depth)),
            Opcode::Ushr => amount().map_or(u64::MAX, |by| self.largest(x, depth) >> by),
            Opcode::Ishl => {
                let fits = |by: &u32| self.largest(x, depth).leading_zeros() >= *by;
                amount().filter(fits).map_or(u64::MAX, |by| self.largest(x, depth) << by)
            }
            Opcode::Urem => match self.largest(y, depth) {
                0 => u64::MAX,
                divisor => divisor - 1,
            },
            _ => u64::MAX,
        }
    }

    /// Whether the rules compute the value with zeros above its type in the register.
    pub(super) fn is_zero_extended(&self, value: Value, depth: u32) -> bool {
        if self.constant(value).is_some_and(|bits| bits >= 0) {
            return true;
        }
        let Some(inst) = self.defining_inst(value) else { return false };
        let Some(depth) = depth.checked_sub(1) else { return false };
        match self.func.dfg.insts[inst] {
            InstructionData::Binary { opcode, args: [x, y] } => match opcode {
                Opcode::Band => [x, y].iter().any(|&arg| self.is_zero_extended(arg, depth)),
                Opcode::Bor | Opcode::Bxor => {
                    [x, y].iter().all(|&arg| self.is_zero_extended(arg, depth))
                }
                Opcode::Ushr | Opcode::Udiv | Opcode::Urem => true,
                _ => false,
            },
            InstructionData::Unary { opcode: Opcode::Uextend, .. } => true,
            InstructionData::Load { opcode, flags, .. } => match opcode {
                Opcode::Uload8 | Opcode::Uload16 | Opcode::Uload32 => true,
                Opcode::Load => {
                    let flags = &self.func.dfg.mem_flags[flags];
                    self.arch.has_extension()
                        && flags.explicit_endianness() != Some(Endianness::Big)
                }
                _ => false,
            },
            _ => false,
        }
    }
}
