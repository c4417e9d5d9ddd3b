//! Words of memory whose contents a block knows, because it has stored or loaded them: those of lanes at addresses with a
//! constant distance, such as the slots of their stacks. What is loaded from there again needs no memory. On machines with few
//! registers code does that all the time.
//!
//! Between two instructions of a block no other warp of the core issues any. Other cores may store meanwhile; a load
//! that yields what was there before is as if it had come before that.

use cranelift_codegen::ir::Value;

use super::Emitter;
use super::values::Val;
use crate::body::{Access, Src};
use crate::class::Class;

/// Words of lanes.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Lane 0 of the register that the addresses are relative to.
    base: Value,
    offset: u64,
    /// The distance of the lanes' addresses.
    stride: u64,
    /// The lanes in which it is known, as bits.
    lanes: Value,
    val: Val,
}

impl Emitter<'_, '_> {
    /// The slot of an access, of which nothing is known yet; none if it is no whole word, or addresses have no constant
    /// distance.
    fn slot(&mut self, base: u8, offset: u64, access: Access) -> Option<Slot> {
        let class @ Class::Affine(stride) = self.reg(base).class else { return None };
        if access.bytes != self.shape.bytes() || !self.rules.is_row(stride, access) {
            return None;
        }
        let (base, lanes) = (self.reg_scalar(base), self.executing_bits());
        Some(Slot { base, offset: self.shape.cut(offset), stride, lanes, val: Val::of(class) })
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
        let known = self.at.slots.iter().find(|slot| {
            (slot.base, slot.offset, slot.stride) == (wanted.base, wanted.offset, wanted.stride)
        });
        let Slot { lanes, val, .. } = known?.clone();
        let is_known = val.class.join(class) == class && self.is_executed_by(lanes);
        is_known.then(|| self.coerce(val, class))
    }

    /// This was loaded.
    pub(super) fn loaded_from_slot(&mut self, base: u8, offset: u64, access: Access, val: &Val) {
        if let Some(slot) = self.slot(base, offset, access) {
            let is_other = |other: &Slot| {
                (other.base, other.offset, other.stride) != (slot.base, slot.offset, slot.stride)
            };
            self.at.slots.retain(is_other);
            self.at.slots.push(Slot { val: val.clone(), ..slot });
        }
    }

    /// A register was stored.
    pub(super) fn stored_to_slot(&mut self, value: u8, base: u8, offset: u64, access: Access) {
        let Some(slot) = self.slot(base, offset, access) else { return self.at.slots.clear() };
        let (word, bytes) = (self.shape.word, self.shape.bytes() as u64);
        let is_apart = |other: &Slot| {
            let distance = word.sign_extend(self.shape.cut(other.offset.wrapping_sub(slot.offset)));
            let lanes = word.sign_extend(slot.stride).unsigned_abs();
            let room = lanes.saturating_sub(bytes);
            (other.base, other.stride) == (slot.base, slot.stride)
                && (bytes..=room).contains(&distance.unsigned_abs())
        };
        self.at.slots.retain(is_apart);
        let (val, _) = self.executed_source(Src::Reg(value));
        self.at.slots.push(Slot { val, ..slot });
    }
}
