//! Numbers and conditions.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Opcode, Type, Value};
use cranelift_frontend::FunctionBuilder as Builder;

use super::super::body::typed;
use super::super::clif::{self, element};
use super::fill::{Count, DATA, DATA_WORDS, Filling, TABLE_WORDS};

/// Operations on integers, besides remainders.
const OPERATIONS: [Opcode; 11] = {
    use Opcode::*;
    [Iadd, Iadd, Iadd, Isub, Imul, Band, Bor, Bxor, Ishl, Sshr, Smin]
};

/// Operations on memory that all machines with atomic ones have.
const ATOMIC_OPS: [AtomicRmwOp; 6] = {
    use AtomicRmwOp::*;
    [Add, Sub, Xor, Xchg, Umin, Smax]
};

impl Filling<'_, '_, '_> {
    /// What the current block may use: its own values and those of the blocks that dominate it. A dead
    /// block may use all.
    fn usable(&self, ty: Option<Type>) -> Vec<(Value, Type)> {
        let dominators = self.dominators[self.at];
        let nodes = (0..self.shape.len()).filter(|node| dominators >> node & 1 == 1);
        let made = nodes.flat_map(|node| &self.made[node]);
        let fits = |(_, have): &&(Value, Type)| ty.is_none_or(|ty| ty == *have);
        self.roots.iter().chain(made).filter(fits).copied().collect()
    }

    /// A value of any type.
    pub(super) fn any(&mut self) -> (Value, Type) {
        let all = self.usable(None);
        self.choices.one(&all)
    }

    /// A value that is there already, or a constant.
    pub(super) fn leaf(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let kind = self.choices.below(8);
        let fitting = if kind < 6 { self.usable(Some(ty)) } else { Vec::new() };
        let own = typed(&self.made[self.at], ty);
        match kind {
            0..=2 if !own.is_empty() => self.choices.one(&own),
            0..=5 if !fitting.is_empty() => self.choices.one(&fitting).0,
            6 if ty.is_int() => {
                let bits = self.choices.int(ty.bits());
                b.ins().iconst(ty, bits.cast_signed())
            }
            _ => {
                let (value, _) = self.any();
                self.cast(b, value, ty)
            }
        }
    }

    /// The value as one of another type.
    pub(super) fn cast(&mut self, b: &mut Builder<'_>, value: Value, ty: Type) -> Value {
        let from = b.func.dfg.value_type(value);
        match (from.is_float(), ty.is_float()) {
            _ if from == ty => value,
            (false, false) if from.bits() > ty.bits() => b.ins().ireduce(ty, value),
            (false, false) if self.choices.below(2) == 0 => b.ins().uextend(ty, value),
            (false, false) => b.ins().sextend(ty, value),
            (true, _) => {
                let word = self.family.word_int();
                let number = b.ins().fcvt_to_sint_sat(word, value);
                self.cast(b, number, ty)
            }
            (false, true) => {
                let word = self.family.word_int();
                let number = self.cast(b, value, word);
                b.ins().fcvt_from_sint(ty, number)
            }
        }
    }

    /// A new value.
    pub(super) fn operation(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        if self.choices.once_in(6) && ty.is_int() {
            return self.load(b, ty);
        }
        let (x, y) = (self.leaf(b, ty), self.leaf(b, ty));
        if self.choices.once_in(6) {
            let condition = self.condition(b);
            return b.ins().select(condition, x, y);
        }
        if ty.is_float() {
            let opcode = self.choices.one(&[Opcode::Fadd, Opcode::Fsub, Opcode::Fmul]);
            return clif::binary(b, opcode, x, y);
        }
        match OPERATIONS.get(self.choices.below(12)) {
            Some(&opcode) => clif::binary(b, opcode, x, y),
            None => {
                // A lane that does not execute it may have nothing to divide by.
                let divisor = b.ins().bor_imm_s(y, 1);
                b.ins().urem(x, divisor)
            }
        }
    }

    /// A number from the work-item's memory, or one of those that all read.
    fn load(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let word = self.family.word_int();
        let flags = MemFlagsData::new().with_aligned();
        if ty != word || self.choices.below(2) == 0 {
            let offset = self.data_offset();
            return b.ins().load(ty, flags, self.own, offset);
        }
        let index = match self.choices.below(2) {
            0 => self.choices.one(&self.uniforms),
            _ => self.leaf(b, word),
        };
        let index = b.ins().band_imm_s(index, i64::from(TABLE_WORDS) - 1);
        let place = element(b, self.table, index, word.bytes());
        b.ins().load(word, flags.with_readonly(), place, 0)
    }

    fn data_offset(&mut self) -> i32 {
        let at = DATA + self.choices.below(DATA_WORDS as usize) as u32;
        (at * self.family.word_int().bytes()).cast_signed()
    }

    /// Writes a number to the work-item's memory, which takes the place of another one in one go or not.
    pub(super) fn store(&mut self, b: &mut Builder<'_>) {
        let word = self.family.word_int();
        let flags = MemFlagsData::new().with_aligned();
        let ty =
            if self.choices.below(2) == 0 { self.choices.one(self.family.ints()) } else { word };
        let value = self.leaf(b, ty);
        let offset = self.data_offset();
        if ty != word || self.choices.below(2) == 0 {
            b.ins().store(flags, value, self.own, offset);
            return;
        }
        self.has_atomics = true;
        let address = b.ins().iadd_imm_s(self.own, i64::from(offset));
        let old = match self.choices.below(4) {
            0 => {
                let expected = self.leaf(b, word);
                b.ins().atomic_cas(flags, address, expected, value)
            }
            _ => {
                let op = self.choices.one(&ATOMIC_OPS);
                b.ins().atomic_rmw(word, flags, op, address, value)
            }
        };
        self.made[self.at].push((old, word));
    }

    /// A word that depends on a value.
    pub(super) fn word_of(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        let (ty, word) = (b.func.dfg.value_type(value), self.family.word_int());
        if ty.is_int() && ty.bits() > word.bits() {
            let shift = b.ins().iconst(I32, i64::from(word.bits()));
            let high = b.ins().ushr(value, shift);
            let (low, high) = (b.ins().ireduce(word, value), b.ins().ireduce(word, high));
            return b.ins().bxor(low, high);
        }
        self.cast(b, value, word)
    }

    /// Something to branch on: 0 or not 0, of any integer type.
    pub(super) fn condition(&mut self, b: &mut Builder<'_>) -> Value {
        let word = self.family.word_int();
        let kind = if self.choices.below(8) < self.uniform { 3 } else { self.choices.below(14) };
        match kind {
            // One bit of what differs.
            0 | 1 => b.ins().band_imm_s(self.choices.one(&self.varied), 1 << self.choices.below(5)),
            2 => {
                let value = self.choices.one(&self.varied);
                let limit = self.choices.below(20) as i64;
                b.ins().icmp_imm_s(IntCC::UnsignedLessThan, value, limit)
            }
            3 | 4 => {
                b.ins().band_imm_s(self.choices.one(&self.uniforms), 1 << self.choices.below(4))
            }
            5 | 6 => self.of_count(b),
            7 => {
                // Equal in some of the lanes, by their data.
                let (x, y) = (self.choices.one(&self.varied), self.choices.one(&self.uniforms));
                let mixed = b.ins().bxor(x, y);
                b.ins().band_imm_s(mixed, 1 << self.choices.below(4))
            }
            8 => {
                let (x, y) = (self.compare(b), self.compare(b));
                let opcode = self.choices.one(&[Opcode::Band, Opcode::Bor, Opcode::Bxor]);
                clif::binary(b, opcode, x, y)
            }
            9 => {
                // One bit of what was computed.
                let value = self.leaf(b, word);
                b.ins().band_imm_s(value, 1 << self.choices.below(4))
            }
            10 => {
                let ty = self.choices.one(self.family.ints());
                self.leaf(b, ty)
            }
            _ => self.compare(b),
        }
    }

    /// A comparison of what was computed.
    fn compare(&mut self, b: &mut Builder<'_>) -> Value {
        let ty = self.choices.one(&self.types);
        let (x, y) = (self.leaf(b, ty), self.leaf(b, ty));
        if ty.is_float() {
            let condition = self.choices.one(&[FloatCC::LessThan, FloatCC::NotEqual]);
            return b.ins().fcmp(condition, x, y);
        }
        let condition = self.choices.condition(&["slt", "ne", "eq", "uge", "sgt"]);
        b.ins().icmp(condition, x, y)
    }

    /// Something about how often blocks were visited.
    fn of_count(&mut self, b: &mut Builder<'_>) -> Value {
        let counts: Vec<Count> = self.counts.iter().flatten().copied().collect();
        if counts.is_empty() {
            return self.compare(b);
        }
        let cell = self.choices.one(&counts).cell();
        let value = self.cells.get(b, cell);
        let number = 1 + self.choices.below(6) as i64;
        match self.choices.below(2) {
            0 => b.ins().band_imm_s(value, number),
            _ => b.ins().icmp_imm_s(IntCC::SignedGreaterThan, value, number),
        }
    }

    /// The condition as 0 or 1.
    pub(super) fn truth(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        b.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
    }

    /// The other one of 0 and 1.
    pub(super) fn not(b: &mut Builder<'_>, truth: Value) -> Value {
        b.ins().bxor_imm_s(truth, 1)
    }
}
