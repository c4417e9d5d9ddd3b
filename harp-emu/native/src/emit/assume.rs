//! What is assumed of results, and the guards that leave if it does not hold.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use harp_isa::Opcode;

use super::Emitter;
use super::values::Val;
use crate::body::Access;
use crate::class::Class;
use crate::frame::Leave;
use crate::rules::Kept;

impl Emitter<'_, '_> {
    /// Divides lane 0, and leaves if another lane has another quotient.
    pub(super) fn divide_once(&mut self, opcode: Opcode, vals: &mut [Val], class: Class) -> Val {
        let stride = vals[0].class.stride().unwrap_or(0);
        let (a, b) = (self.scalar(&mut vals[0]), self.scalar(&mut vals[1]));
        let one = self.constant(1);
        let is_zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let divisor = self.b.ins().select(is_zero, one, b);
        let rest = self.b.ins().urem(a, divisor);
        self.begin_leaving();
        // rest + the last lane's distance < divisor; neither the sum nor the dividends may wrap.
        let distance = self.constant(stride * (self.shape.lanes as u64 - 1));
        let last = self.b.ins().iadd(rest, distance);
        let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, last, divisor);
        let wraps = self.b.ins().icmp(IntCC::UnsignedLessThan, last, distance);
        let end = self.b.ins().iadd(a, distance);
        let ends = self.b.ins().icmp(IntCC::UnsignedLessThan, end, a);
        let bad = self.b.ins().bor(beyond, wraps);
        let bad = self.b.ins().bor(bad, ends);
        self.leave_if(bad, Leave::Guard);
        let scalar = if opcode == Opcode::Mod { rest } else { self.b.ins().udiv(a, divisor) };
        Val { class, scalar: Some(scalar), vectors: None }
    }

    /// Leaves if an operation on the affine value `val` does not keep it affine.
    pub(super) fn guard_kept(&mut self, kept: Kept, val: &mut Val) {
        let stride = val.class.stride().unwrap_or(0);
        let first = self.scalar(val);
        self.begin_leaving();
        let distance = self.constant(stride.wrapping_mul(self.shape.lanes as u64 - 1));
        let last = self.b.ins().iadd(first, distance);
        let rises = self.shape.word.sign_extend(stride) > 0;
        let bad = match kept {
            Kept::SameAbove(bit) => {
                let differ = self.b.ins().bxor(first, last);
                let above = self.b.ins().ushr_imm_u(differ, bit.cast_signed());
                self.b.ins().icmp_imm_s(IntCC::NotEqual, above, 0)
            }
            Kept::NoWrap { signed } => {
                let wraps = match (signed, rises) {
                    (true, true) => IntCC::SignedLessThan,
                    (true, false) => IntCC::SignedGreaterThan,
                    (false, true) => IntCC::UnsignedLessThan,
                    (false, false) => IntCC::UnsignedGreaterThan,
                };
                self.b.ins().icmp(wraps, last, first)
            }
        };
        self.leave_if(bad, Leave::Guard);
    }

    /// Loads a word in each lane, from a row of which all lanes are to yield a value of this class.
    pub(super) fn load_as_seen(
        &mut self,
        place: (Value, i32),
        stride: u64,
        access: Access,
        class: Class,
    ) -> Val {
        let (first, bad) = match self.calls_for_rows {
            true => {
                let vectors = self.load_row(place, stride, access);
                let first = match class {
                    Class::Const(value) => self.constant(value),
                    _ => self.lane_of(&vectors, 0),
                };
                (first, self.differ_from(&vectors, class))
            }
            // Word by word there is nothing to put together.
            false => self.load_words_as_seen(place, stride, access, class),
        };
        self.leave_if(bad, Leave::Guard);
        Val { class, scalar: Some(first), vectors: None }
    }

    /// Loads the words of a row. Returns what lane 0 is to hold, and whether the lanes do not hold a value of this class.
    fn load_words_as_seen(
        &mut self,
        (host, start): (Value, i32),
        stride: u64,
        access: Access,
        class: Class,
    ) -> (Value, Value) {
        let word = |e: &mut Self, lane| {
            let distance = start + e.shape.distance(stride, lane);
            e.load_host(host, distance, access)
        };
        let mut first = word(self, 0);
        let step = class.stride().unwrap_or(0);
        let mut differ = self.constant(0);
        if let Class::Const(value) = class {
            let wanted = self.constant(value);
            differ = self.b.ins().bxor(first, wanted);
            first = wanted;
        }
        for lane in 1..self.shape.lanes {
            let here = word(self, lane);
            let distance = self.constant(step.wrapping_mul(lane as u64));
            let wanted = if step == 0 { first } else { self.b.ins().iadd(first, distance) };
            let differs = self.b.ins().bxor(here, wanted);
            differ = self.b.ins().bor(differ, differs);
        }
        (first, self.b.ins().icmp_imm_s(IntCC::NotEqual, differ, 0))
    }
}
