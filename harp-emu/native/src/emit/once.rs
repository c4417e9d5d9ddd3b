//! What is done once for all lanes, barriers and what machines with registers that lanes share do so: operands come from the
//! first lane that executes.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::values::Val;
use super::{Emitter, aligned};
use crate::frame::scratch;

impl Emitter<'_, '_> {
    /// What a value is in the first lane that executes, in all lanes.
    pub(super) fn in_first(&mut self, mut val: Val) -> Val {
        if val.class.is_uniform() {
            return val;
        }
        let Some(lane) = self.first_lane() else { return Val::uniform(self.scalar(&mut val)) };
        let int = self.shape.int();
        let word = if let Some(stride) = val.class.stride() {
            let lane = if int == types::I64 { lane } else { self.b.ins().ireduce(int, lane) };
            let stride = self.constant(stride);
            let distance = self.b.ins().imul(lane, stride);
            let scalar = self.scalar(&mut val);
            self.b.ins().iadd(scalar, distance)
        } else {
            let vectors = self.vectors(&mut val);
            self.put_scratch(0, &vectors);
            let distance = self.b.ins().imul_imm_s(lane, self.shape.bytes() as i64);
            let here = self.b.ins().iadd(self.frame, distance);
            self.b.ins().load(int, aligned(), here, scratch(0))
        };
        Val::uniform(word)
    }

    /// The number of the first lane that executes, or of any if there is none. `None` if that is lane 0.
    fn first_lane(&mut self) -> Option<Value> {
        let guard = self.at.inst.guard;
        if self.at.key.full && guard.is_none_or(|guard| self.at.state.is_uniform_pred(guard)) {
            return None;
        }
        let bits = self.executing_bits();
        let first = self.b.ins().ctz(bits);
        Some(self.b.ins().band_imm_u(first, 63))
    }

    /// Whether a predicate is true in the first lane that executes.
    pub(super) fn first_flag(&mut self, p: u8) -> Value {
        if self.at.state.is_uniform_pred(p) {
            return self.pred_flag(p);
        }
        let bits = self.pred_bits(p);
        let bits = match self.first_lane() {
            Some(lane) => self.b.ins().ushr(bits, lane),
            None => bits,
        };
        let first = self.b.ins().band_imm_u(bits, 1);
        self.b.ins().icmp_imm_s(IntCC::NotEqual, first, 0)
    }

    /// 1 if there are lanes, else 0.
    pub(super) fn once_if_any(&mut self, bits: Value) -> Value {
        let any = self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
        self.b.ins().uextend(types::I64, any)
    }
}
