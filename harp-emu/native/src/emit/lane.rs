//! Instructions in one lane, on words.

use std::collections::BTreeMap;

use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;

use super::Emitter;
use super::parts::{LaneLoop, load_odd, store_odd};
use crate::body::{Access, Body, Inst, Logic, Src};
use crate::class::Class;
use crate::frame::Leave;

/// A lane, and what it has computed so far in a run.
pub(super) struct Lane {
    pub(super) number: Value,
    /// The address of its words in the machine's registers, less the offsets of these.
    here: Value,
    regs: BTreeMap<u8, Value>,
    preds: BTreeMap<u8, Value>,
}

impl Emitter<'_, '_> {
    /// Begins a loop over lanes.
    pub(super) fn begin_lanes(&mut self, bits: Value) -> (LaneLoop, Lane) {
        let each = LaneLoop::begin(&mut self.b, bits);
        let (number, (regs, preds)) = (each.lane, Default::default());
        let here = self.lane_address(self.registers, number);
        (each, Lane { number, here, regs, preds })
    }

    /// The address of a lane in words that begin at `start`.
    pub(super) fn lane_address(&mut self, start: Value, lane: Value) -> Value {
        let distance = self.b.ins().imul_imm_s(lane, self.shape.bytes() as i64);
        self.b.ins().iadd(start, distance)
    }

    /// Sets the bit of a lane in a variable if the flag is set.
    pub(super) fn put_bit(&mut self, variable: Variable, lane: Value, flag: Value) {
        let old = self.b.use_var(variable);
        let flag = self.b.ins().uextend(types::I64, flag);
        let flag = self.b.ins().ishl(flag, lane);
        let new = self.b.ins().bor(old, flag);
        self.b.def_var(variable, new);
    }

    /// An instruction of a run in a lane.
    pub(super) fn in_lane(&mut self, inst: Inst, lane: &mut Lane) {
        self.at.inst = inst;
        self.forget_executing();
        let guard = inst.guard.map(|guard| self.lane_flag(guard, lane));
        match inst.body {
            Body::Map { opcode, dst, sources, count } => {
                let sources = sources[..count].iter();
                let words: Vec<Value> = sources.map(|&src| self.lane_source(src, lane)).collect();
                let new = self.scalar_operation(opcode, &words);
                let new = match guard {
                    None => new,
                    Some(flag) => {
                        let old = self.lane_word(dst, lane);
                        self.b.ins().select(flag, new, old)
                    }
                };
                lane.regs.insert(dst, new);
            }
            Body::Load { dst, base, offset, access } => {
                let (base, offset) = (self.lane_word(base, lane), self.constant(offset));
                let place = self.b.ins().iadd(base, offset);
                let new = match guard {
                    None => self.load_in_lane(place, access),
                    Some(flag) => {
                        let old = self.lane_word(dst, lane);
                        self.load_in_lane_if(flag, place, access, old)
                    }
                };
                lane.regs.insert(dst, new);
            }
            Body::Test { compare, dst, a, b } => {
                let (a, b) = (self.lane_source(a, lane), self.lane_source(b, lane));
                let new = self.compare(compare, a, b);
                self.set_lane_flag(dst, new, guard, lane);
            }
            Body::Logic { logic, dst, a, b } => {
                let (a, b) = (self.lane_flag(a, lane), self.lane_flag(b, lane));
                let new = match logic {
                    Logic::Not => self.b.ins().bxor_imm_s(a, 1),
                    _ => self.combine(logic, a, b),
                };
                self.set_lane_flag(dst, new, guard, lane);
            }
            _ => {}
        }
    }

    /// Loads from an address; leaves if it is not usable.
    fn load_in_lane(&mut self, place: Value, access: Access) -> Value {
        self.leave_if_outside(place, access, false);
        if self.may_be_odd(access) {
            let place = (self.memory, self.lengthen(place));
            return load_odd(&mut self.b, self.shape.int(), place);
        }
        let address = self.host_address(place);
        self.load_host(address, 0, access)
    }

    /// Stores to an address that is usable.
    pub(super) fn store_in_lane(&mut self, word: Value, place: Value, access: Access) {
        if self.may_be_odd(access) {
            let place = (self.memory, self.lengthen(place));
            return store_odd(&mut self.b, self.shape.int(), word, place);
        }
        let address = self.host_address(place);
        self.store_host(word, address, 0, access);
    }

    /// Leaves if an address of a lane is not usable.
    pub(super) fn leave_if_outside(&mut self, place: Value, access: Access, store: bool) {
        let access = match self.may_be_odd(access) {
            // A word that begins in memory lies there.
            true => Access { bytes: 1, aligned: false, ..access },
            false => access,
        };
        let bad = self.outside(place, access, 0, store);
        self.leave_if(bad, Leave::Access);
    }

    /// Whether it is an access of words that need not be aligned.
    pub(super) fn may_be_odd(&self, access: Access) -> bool {
        self.rules.odd_words && access.aligned
    }

    /// The same if the flag is set; otherwise it is `old`.
    fn load_in_lane_if(&mut self, flag: Value, place: Value, access: Access, old: Value) -> Value {
        let [then, after] = [0; 2].map(|_| self.b.create_block());
        let ty = self.shape.int();
        let word = self.b.append_block_param(after, ty);
        self.b.ins().brif(flag, then, &[], after, &[old.into()]);
        self.b.seal_block(then);
        self.b.switch_to_block(then);
        let new = self.load_in_lane(place, access);
        self.b.ins().jump(after, &[new.into()]);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
        word
    }

    fn lane_source(&mut self, src: Src, lane: &mut Lane) -> Value {
        match src {
            Src::Reg(r) => self.lane_word(r, lane),
            Src::Imm(value) => self.constant(value),
        }
    }

    /// A lane's word of a register.
    pub(super) fn lane_word(&mut self, r: u8, lane: &mut Lane) -> Value {
        if let Some(&word) = lane.regs.get(&r) {
            return word;
        }
        let word = match self.at.state.regs[usize::from(r)] {
            Class::Const(value) => self.constant(value),
            Class::Uniform => self.reg_scalar(r),
            Class::Affine(stride) => {
                let (first, stride) = (self.reg_scalar(r), self.constant(stride));
                let number = match self.shape.bytes() {
                    4 => self.b.ins().ireduce(types::I32, lane.number),
                    _ => lane.number,
                };
                let distance = self.b.ins().imul(number, stride);
                self.b.ins().iadd(first, distance)
            }
            Class::Vector => {
                let (ty, flags) = (self.shape.int(), self.register_flags);
                let offset = self.register_offset(r.into(), 0);
                self.b.ins().load(ty, flags, lane.here, offset)
            }
        };
        lane.regs.insert(r, word);
        word
    }

    pub(super) fn store_lane_word(&mut self, r: u8, lane: &Lane, word: Value) {
        let (flags, offset) = (self.register_flags, self.register_offset(r.into(), 0));
        self.b.ins().store(flags, word, lane.here, offset);
    }

    /// Whether a lane's predicate is true.
    pub(super) fn lane_flag(&mut self, p: u8, lane: &mut Lane) -> Value {
        if let Some(&flag) = lane.preds.get(&p) {
            return flag;
        }
        let bits = self.pred_bits(p);
        let bits = self.b.ins().ushr(bits, lane.number);
        let bits = self.b.ins().ireduce(types::I8, bits);
        let flag = self.b.ins().band_imm_u(bits, 1);
        lane.preds.insert(p, flag);
        flag
    }

    fn set_lane_flag(&mut self, p: u8, new: Value, guard: Option<Value>, lane: &mut Lane) {
        let new = match guard {
            None => new,
            Some(flag) => {
                let old = self.lane_flag(p, lane);
                self.b.ins().select(flag, new, old)
            }
        };
        lane.preds.insert(p, new);
    }
}
