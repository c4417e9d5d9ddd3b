//! Operations whose results are predicates.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::Emitter;
use super::less::comparison;
use super::values::{PredVal, Val};
use crate::body::{Compare, Logic, Src};
use crate::frame::Leave;
use crate::rules::Lanes;

impl Emitter<'_, '_> {
    /// Whether the sources compare, in the lanes that execute at least.
    pub(super) fn test(&mut self, compare: Compare, a: Src, b: Src, lanes: Lanes) -> PredVal {
        let [(x, x_reg), (y, y_reg)] = [a, b].map(|src| self.executed_source(src));
        let mut vals = [x, y];
        if self.rules.agrees(&self.at.state, &self.at.inst) {
            return self.test_once(&mut vals, lanes);
        }
        if vals.iter().all(|val| val.class.is_uniform()) {
            let [x, y] = &mut vals;
            let (x, y) = (self.scalar(x), self.scalar(y));
            let flag = Some(self.compare_words(compare, b, x, y));
            return PredVal { flag, ..PredVal::default() };
        }
        let [x, y] = &mut vals;
        let (x, y) = (self.vectors(x), self.vectors(y));
        let vectors = self.zip(&x, &y, |e, x, y| e.compare_words(compare, b, x, y));
        self.keep(x_reg, &vals[0]);
        self.keep(y_reg, &vals[1]);
        PredVal { vectors: Some(vectors.into()), ..PredVal::default() }
    }

    /// Whether lane 0 is negative; leaves if the last lane differs in that. The others lie between, as their distance
    /// is short.
    fn test_once(&mut self, vals: &mut [Val], lanes: Lanes) -> PredVal {
        let stride = vals[0].class.stride().unwrap_or(0);
        let first = self.scalar(&mut vals[0]);
        let distance = self.constant(stride.wrapping_mul(self.shape.lanes as u64 - 1));
        let last = self.b.ins().iadd(first, distance);
        let differ = self.b.ins().bxor(first, last);
        let differ = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, differ, 0);
        self.begin_leaving();
        match lanes {
            Lanes::All => self.leave_if(differ, Leave::Guard),
            _ => self.leave_if_executing(differ, Leave::Guard),
        }
        let flag = Some(self.b.ins().icmp_imm_s(IntCC::SignedLessThan, first, 0));
        PredVal { flag, ..PredVal::default() }
    }

    /// Whether words compare, of which the second one is this source. Whether a word is negative may be another comparison.
    fn compare_words(&mut self, compare: Compare, second: Src, x: Value, y: Value) -> Value {
        let is_sign = (compare, second) == (Compare::Less, Src::Imm(0));
        match is_sign.then(|| comparison(&self.b.func.dfg, x)).flatten() {
            Some((condition, [a, b])) => self.b.ins().icmp(condition, a, b),
            None => self.compare(compare, x, y),
        }
    }

    pub(super) fn compare(&mut self, compare: Compare, a: Value, b: Value) -> Value {
        let int = |e: &mut Self, cc| e.b.ins().icmp(cc, a, b);
        let float = |e: &mut Self, cc| {
            let (x, y) = (e.as_floats(a), e.as_floats(b));
            e.b.ins().fcmp(cc, x, y)
        };
        match compare {
            Compare::Equal => int(self, IntCC::Equal),
            Compare::NotEqual => int(self, IntCC::NotEqual),
            Compare::Less => int(self, IntCC::SignedLessThan),
            Compare::LessUnsigned => int(self, IntCC::UnsignedLessThan),
            Compare::FloatEqual => float(self, FloatCC::Equal),
            Compare::FloatLess => float(self, FloatCC::LessThan),
            Compare::FloatLessOrEqual => float(self, FloatCC::LessThanOrEqual),
        }
    }

    /// Two predicates combined.
    pub(super) fn logic(&mut self, logic: Logic, a: u8, b: u8) -> PredVal {
        let uniform = self.at.state.is_uniform_pred(a) && self.at.state.is_uniform_pred(b);
        if (uniform || self.at.inst.is_once()) && !logic.is_vote() {
            let (x, y) = (self.first_flag(a), self.first_flag(b));
            let flag = self.combine(logic, x, y);
            let flag = match logic {
                Logic::Not => self.b.ins().bxor_imm_s(x, 1),
                _ => flag,
            };
            return PredVal { flag: Some(flag), ..PredVal::default() };
        }
        let (x, y) = (self.pred_bits(a), self.pred_bits(b));
        if logic.is_vote() {
            let executing = self.executing_bits();
            let chosen = self.b.ins().band(x, executing);
            let flag = match logic {
                Logic::Any => self.b.ins().icmp_imm_s(IntCC::NotEqual, chosen, 0),
                _ => self.b.ins().icmp(IntCC::Equal, chosen, executing),
            };
            return PredVal { flag: Some(flag), ..PredVal::default() };
        }
        let bits = self.combine(logic, x, y);
        let full = self.long(self.shape.full());
        let bits = self.b.ins().band(bits, full);
        PredVal { bits: Some(bits), ..PredVal::default() }
    }

    pub(super) fn combine(&mut self, logic: Logic, x: Value, y: Value) -> Value {
        match logic {
            Logic::And => self.b.ins().band(x, y),
            Logic::Or => self.b.ins().bor(x, y),
            Logic::Xor => self.b.ins().bxor(x, y),
            _ => self.b.ins().bnot(x),
        }
    }
}
