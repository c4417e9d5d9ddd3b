//! Words of memory whose contents a block knows, because it has stored or loaded them: those of lanes at addresses with a
//! constant distance, such as the slots of their stacks. What is loaded from there again needs no memory. On machines with few
//! registers code does that all the time.
//!
//! Between two instructions of a block no other warp of the core issues any. Other cores may store meanwhile; a load
//! that yields what was there before is as if it had come before that.

use cranelift_codegen::ir::Value;
use cranelift_frontend::Variable;

use super::Emitter;
use super::values::Val;
use crate::body::{Access, Src};
use crate::class::Class;
use crate::state::State;

/// Words of lanes.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Lane 0 of the register that the addresses are relative to.
    base: Value,
    offset: u64,
    /// The distance of the lanes' addresses.
    stride: u64,
    /// The lanes in which it is known, as bits, and whether these are all of the machine.
    lanes: Value,
    in_all: bool,
    val: Val,
}

impl Slot {
    /// Whether both are the same words.
    fn is_at(&self, other: &Slot) -> bool {
        (self.base, self.offset, self.stride) == (other.base, other.offset, other.stride)
    }
}

/// What a block takes over of a slot.
pub(super) type Followed = ((u8, u64), Val);

impl Emitter<'_, '_> {
    /// The slot of an access, of which nothing is known yet; none if it is no whole word of each lane, or addresses have no
    /// constant distance.
    fn slot(&mut self, base: u8, offset: u64, access: Access) -> Option<Slot> {
        let class @ Class::Affine(stride) = self.reg(base).class else { return None };
        let is_word = access.bytes == self.shape.bytes() && self.rules.is_row(stride, access);
        if !is_word || self.at.inst.is_once() {
            return None;
        }
        let (base, lanes) = (self.reg_scalar(base), self.executing_bits());
        let in_all = self.at.key.full && self.at.inst.guard.is_none();
        let offset = self.shape.cut(offset);
        Some(Slot { base, offset, stride, lanes, in_all, val: Val::of(class) })
    }

    /// What a load yields in the lanes that execute it, if that is known and of this class.
    pub(super) fn in_slot(
        &mut self,
        base: u8,
        offset: u64,
        access: Access,
        class: Class,
    ) -> Option<Val> {
        let wanted = self.slot(base, offset, access)?;
        let known = self.at.slots.iter().find(|slot| slot.is_at(&wanted));
        let Slot { lanes, val, .. } = known?.clone();
        let is_known = val.class.join(class) == class && self.is_executed_by(lanes);
        is_known.then(|| self.coerce(val, class))
    }

    /// This was loaded.
    pub(super) fn loaded_from_slot(&mut self, base: u8, offset: u64, access: Access, val: &Val) {
        if let Some(slot) = self.slot(base, offset, access) {
            self.at.slots.retain(|other| !other.is_at(&slot));
            self.at.slots.push(Slot { val: val.clone(), ..slot });
        }
    }

    /// A register was stored.
    pub(super) fn stored_to_slot(&mut self, value: u8, base: u8, offset: u64, access: Access) {
        let Some(slot) = self.slot(base, offset, access) else { return self.at.slots.clear() };
        let is_apart = |other: &Slot| {
            (other.base, other.stride) == (slot.base, slot.stride)
                && self.rules.are_apart(other.offset, slot.offset, slot.stride)
        };
        self.at.slots.retain(is_apart);
        let (val, _) = self.executed_source(Src::Reg(value));
        self.at.slots.push(Slot { val, ..slot });
    }

    // Between blocks

    /// The variables of a slot: of lane 0, and of all lanes.
    fn slot_variables(&mut self, slot: (u8, u64)) -> (Variable, Vec<Variable>) {
        if let Some(known) = self.slot_variables.get(&slot) {
            return known.clone();
        }
        let (int, vector) = (self.shape.int(), self.shape.int_vector());
        let scalar = self.b.declare_var(int);
        let vectors = (0..self.shape.vectors()).map(|_| self.b.declare_var(vector)).collect();
        self.slot_variables.insert(slot, (scalar, vectors));
        self.slot_variables[&slot].clone()
    }

    /// What is known of a slot in all lanes, as a value of that class.
    fn followed(&mut self, (base, offset): (u8, u64), class: Class) -> Option<Val> {
        let Class::Affine(stride) = self.reg(base).class else { return None };
        let first = self.reg_scalar(base);
        let mut found = self.at.slots.iter().filter(|slot| {
            slot.in_all && (slot.base, slot.offset, slot.stride) == (first, offset, stride)
        });
        let val = found.next()?.val.clone();
        (val.class.join(class) == class).then(|| self.coerce(val, class))
    }

    /// What `state` says of slots, if all of it is known here.
    pub(super) fn all_followed(&mut self, state: &State) -> Option<Vec<Followed>> {
        let each = state.slots.iter();
        each.map(|(&slot, &class)| Some((slot, self.followed(slot, class)?))).collect()
    }

    /// Defines the variables of slots that a block needs.
    pub(super) fn define_slots(&mut self, slots: Vec<Followed>) {
        for (slot, mut val) in slots {
            let (scalar, vectors) = self.slot_variables(slot);
            match val.class {
                Class::Const(_) => {}
                Class::Uniform | Class::Affine(_) => {
                    let first = self.scalar(&mut val);
                    self.b.def_var(scalar, first);
                }
                Class::Vector => {
                    let all = self.vectors(&mut val);
                    let pairs = vectors.iter().zip(&*all);
                    pairs.for_each(|(&variable, &v)| self.b.def_var(variable, v));
                }
            }
        }
    }

    /// Takes what is known of slots at the head of a block.
    pub(super) fn take_slots(&mut self) {
        for (slot @ (base, offset), class) in self.at.state.slots.clone() {
            let Class::Affine(stride) = self.reg(base).class else { continue };
            let (scalar, vectors) = self.slot_variables(slot);
            let mut val = Val::of(class);
            match class {
                Class::Const(_) => {}
                Class::Uniform | Class::Affine(_) => val.scalar = Some(self.b.use_var(scalar)),
                Class::Vector => {
                    let all: Vec<Value> = vectors.iter().map(|&v| self.b.use_var(v)).collect();
                    val = Val::vector(all);
                }
            }
            let (base, lanes) = (self.reg_scalar(base), self.active_bits());
            self.at.slots.push(Slot { base, offset, stride, lanes, in_all: true, val });
        }
    }
}
