//! Writes of registers and predicates by instructions that only some lanes execute.
//!
//! Such a write blends what is new with what the register held. Behind it, an instruction that no other lanes execute
//! takes what is new as it is: what it makes of that elsewhere is not used. So of several such instructions one after
//! the other only the last one's result is blended, if anybody asks for it.

use cranelift_codegen::ir::{InstBuilder, Value};

use super::Emitter;
use super::values::{PredVal, Val, Vectors};
use crate::body::Src;
use crate::class::Class;
use crate::rules::Lanes;
use crate::state::State;

/// What a register holds since it was written in some lanes.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// These lanes, as bits.
    lanes: Value,
    /// What it holds in them.
    new: Vectors,
    /// What it holds in the others.
    old: Vectors,
}

impl Emitter<'_, '_> {
    /// Writes a register in the lanes that execute.
    pub(super) fn write(&mut self, dst: u8, new: Val, lanes: Lanes, after: &State) {
        let new = if self.at.inst.is_once() { self.in_first(new) } else { new };
        let index = usize::from(dst);
        let class = after.regs[index];
        let replaces = self.rules.replaces(&self.at.state, &self.at.inst, self.at.key.full);
        let is_same_everywhere = class == new.class && matches!(class, Class::Const(_));
        let (val, written) = if lanes == Lanes::All || replaces || is_same_everywhere {
            (self.coerce(new, class), None)
        } else if class == Class::Vector {
            self.blend(dst, new)
        } else {
            (self.select(dst, new, class), None)
        };
        self.at.local.regs[index] = val;
        self.at.local.written[index] = written;
        self.at.local.changed |= 1 << dst;
        self.at.local.written_regs |= 1 << dst;
        self.at.local.homed &= !(1 << dst);
    }

    fn select(&mut self, dst: u8, mut new: Val, class: Class) -> Val {
        let bits = self.executing_bits();
        let (old, new) = (self.reg_scalar(dst), self.scalar(&mut new));
        let scalar = self.b.ins().select(bits, new, old);
        Val { class, scalar: Some(scalar), vectors: None }
    }

    fn blend(&mut self, dst: u8, mut new: Val) -> (Val, Option<Written>) {
        let executing = self.executing_bits();
        let new = self.vectors(&mut new);
        let before = self.at.local.written[usize::from(dst)].clone();
        let written = match before {
            Some(Written { lanes, old, .. }) if lanes == executing => Written { lanes, new, old },
            Some(Written { lanes, new: before, old }) if self.is_executed_by(lanes) => {
                let mask = self.executing_vectors();
                let new = self.bitselect(&mask, &new, &before);
                Written { lanes, new, old }
            }
            _ => Written { lanes: executing, new, old: self.reg_vectors(dst) },
        };
        let mask = match written.lanes == executing {
            true => self.executing_vectors(),
            false => self.active_vectors(),
        };
        let vectors = self.bitselect(&mask, &written.new, &written.old);
        (Val::vector(vectors), Some(written))
    }

    /// `yes` where the mask is all ones, `no` elsewhere.
    fn bitselect(&mut self, mask: &[Value], yes: &[Value], no: &[Value]) -> Vectors {
        let both = yes.iter().zip(no);
        let each = mask.iter().zip(both);
        each.map(|(&mask, (&yes, &no))| self.b.ins().bitselect(mask, yes, no)).collect()
    }

    /// Whether all lanes that execute the instruction are surely among `lanes`.
    pub(super) fn is_executed_by(&mut self, lanes: Value) -> bool {
        self.executing_bits() == lanes
            || self.at.inst.guard.is_some() && self.active_bits() == lanes
    }

    /// What a register holds in the lanes that execute, if that is something else than its value.
    fn executed(&mut self, r: u8) -> Option<Vectors> {
        let Written { lanes, new, .. } = self.at.local.written[usize::from(r)].clone()?;
        self.is_executed_by(lanes).then_some(new)
    }

    /// A source in the lanes that execute, and the register whose value in all lanes that is, if it is one's.
    pub(super) fn executed_source(&mut self, src: Src) -> (Val, Option<u8>) {
        let Src::Reg(r) = src else { return (self.source(src), None) };
        let (val, reg) = match self.executed(r) {
            Some(vectors) => (Val::vector(vectors), None),
            None => (self.reg(r), Some(r)),
        };
        match self.at.inst.is_once() && !val.class.is_uniform() {
            true => (self.in_first(val), None),
            false => (val, reg),
        }
    }

    /// The vectors of a register, of which only the lanes that execute matter.
    pub(super) fn executed_vectors(&mut self, r: u8) -> Vectors {
        self.executed(r).unwrap_or_else(|| self.reg_vectors(r))
    }

    /// Writes a predicate in the lanes that execute.
    pub(super) fn write_pred(&mut self, dst: u8, new: PredVal, lanes: Lanes, after: &State) {
        let index = usize::from(dst);
        let was_garbage = self.at.state.garbage.preds >> dst & 1 != 0;
        let val = if lanes == Lanes::All || was_garbage {
            new
        } else if let (true, Some(flag)) = (after.is_uniform_pred(dst), new.flag) {
            let executing = self.executing_bits();
            let old = self.pred_flag(dst);
            let flag = self.b.ins().select(executing, flag, old);
            PredVal { flag: Some(flag), ..PredVal::default() }
        } else {
            let executing = self.executing_bits();
            let old = self.pred_bits(dst);
            self.at.local.preds[index] = new;
            let new = self.pred_bits(dst);
            let differ = self.b.ins().bxor(old, new);
            let differ = self.b.ins().band(differ, executing);
            PredVal { bits: Some(self.b.ins().bxor(old, differ)), ..PredVal::default() }
        };
        self.at.local.preds[index] = val;
        self.at.local.written_preds |= 1 << dst;
    }
}
