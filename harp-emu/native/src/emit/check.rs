//! Addresses are compared with the size of memory before they are used. Accesses of a block relative to the same register are
//! checked together, at the first of them: all would be done, so if one of them leaves, it makes no difference that this comes
//! sooner.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use harp_isa::Sharing;

use super::parts::is_beyond;
use super::values::Val;
use super::{Emitter, aligned};
use crate::body::{Access, Body, Inst};
use crate::class::Class;
use crate::frame::{Leave, at};

/// Words that may be accessed relative to a register.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    /// Lane 0 of the register.
    base: Value,
    /// The distance of the lanes' addresses.
    stride: u64,
    span: Span,
    /// Whether they may be stored to.
    store: bool,
    /// The address of the host that belongs to the start of the span, in the lane where it is lowest.
    host: Value,
}

/// Distances from a register's value.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: i64,
    end: i64,
    /// What the address of the start, and all others that must be aligned, are multiples of.
    aligned: i64,
}

impl Span {
    fn of(offset: i64, access: Access) -> Span {
        let aligned = if access.aligned { access.bytes as i64 } else { 1 };
        Span { start: offset, end: offset + access.bytes as i64, aligned }
    }

    /// Both, if one check does for both and they are near.
    fn with(self, other: Span) -> Option<Span> {
        let is_same = self.aligned == other.aligned;
        let is_aligned = (other.start - self.start) % self.aligned == 0;
        let (start, end) = (self.start.min(other.start), self.end.max(other.end));
        (is_same && is_aligned && end - start <= MOST_BYTES).then_some(Span { start, end, ..self })
    }

    /// Whether an access of `other` is one of these words.
    fn covers(self, other: Span) -> bool {
        let is_inside = self.start <= other.start && other.end <= self.end;
        let is_aligned =
            self.aligned % other.aligned == 0 && (other.start - self.start) % other.aligned == 0;
        is_inside && is_aligned
    }
}

/// The most bytes that are checked together.
const MOST_BYTES: i64 = 1 << 16;

impl Emitter<'_, '_> {
    /// Where the lowest lane's word of an access is, as an address of the host and a distance from there: of one that all
    /// executing lanes do to one address, or all lanes of the machine in a row. Leaves if one of the words cannot be
    /// accessed. `None` if that must be decided otherwise.
    pub(super) fn reach(
        &mut self,
        base: u8,
        offset: u64,
        access: Access,
        store: bool,
    ) -> Option<(Value, i32)> {
        let inst = self.at.inst;
        let stride = self.stride_of(&inst, base, access)?;
        let wanted = Span::of(self.shape.word.sign_extend(offset), access);
        let base_value = self.reg_scalar(base);
        let is_there = |checked: &&Checked| {
            (checked.base, checked.stride) == (base_value, stride)
                && (checked.store || !store)
                && checked.span.covers(wanted)
        };
        let known = self.at.local.checked.iter().find(is_there).cloned();
        let checked = match known {
            Some(checked) => checked,
            None => {
                // Where lanes do not take part, their addresses may lie anywhere, and nothing is done if none does.
                let is_done = inst.guard.is_none() && (self.at.key.full || stride == 0);
                let span = is_done.then(|| self.span_ahead(base, stride, wanted, store))?;
                self.check(base_value, stride, span, access, store)
            }
        };
        Some((checked.host, i32::try_from(wanted.start - checked.span.start).ok()?))
    }

    /// The distance of the lanes' addresses, 0 if all of those that execute access one; `None` if these are no row, or known.
    fn stride_of(&self, inst: &Inst, base: u8, access: Access) -> Option<u64> {
        let stride = match (self.at.local.regs[usize::from(base)].class, inst.sharing) {
            (Class::Uniform, Sharing::Row) => self.rules.row_stride(access),
            (Class::Uniform, _) => 0,
            (Class::Affine(stride), Sharing::Each) => stride,
            _ => return None,
        };
        self.rules.is_row(stride, access).then_some(stride)
    }

    /// The words that instructions of the block from here on access relative to a register, all of which are done if it is
    /// not left.
    fn span_ahead(&self, base: u8, stride: u64, first: Span, store: bool) -> Span {
        let insts = &self.region.blocks[&self.at.key].insts;
        let mut span = first;
        for inst in insts.get(self.at.index..).unwrap_or_default() {
            let next = match inst.body {
                Body::Load { base: other, offset, access, .. } if !store => {
                    Some((other, offset, access))
                }
                Body::Store { base: other, offset, access, .. } if store => {
                    Some((other, offset, access))
                }
                _ => None,
            };
            if let Some((other, offset, access)) = next
                && other == base
                && inst.guard.is_none()
                && self.stride_of(inst, base, access) == Some(stride)
            {
                let more = Span::of(self.shape.word.sign_extend(offset), access);
                span = span.with(more).unwrap_or(span);
            }
            if inst.registers().1 == Some(base) {
                break;
            }
        }
        span
    }

    /// Leaves if words cannot be accessed.
    fn check(
        &mut self,
        base: Value,
        stride: u64,
        span: Span,
        access: Access,
        store: bool,
    ) -> Checked {
        let start = self.constant(span.start.cast_unsigned());
        let first = self.b.ins().iadd(base, start);
        let class = Class::of_stride(Some(stride));
        let mut first = Val { class, scalar: Some(first), vectors: None };
        let further = (span.end - span.start).cast_unsigned() - access.bytes as u64;
        let (host, _) = self.row_at(&mut first, stride, access, further, store);
        let checked = Checked { base, stride, span, store, host };
        self.at.local.checked.push(checked.clone());
        checked
    }

    /// Where the lowest word of a row is, as an address of the host and a distance from there. Leaves if a lane executes, and one of the words, or of those up to
    /// `further` bytes behind, cannot be accessed.
    pub(super) fn row_at(
        &mut self,
        address: &mut Val,
        stride: u64,
        access: Access,
        further: u64,
        store: bool,
    ) -> (Value, i32) {
        let lowest = self.lowest(address, stride);
        let bad = self.outside(lowest, access, self.rules.span(stride) + further, store);
        self.leave_if_executing(bad, Leave::Access);
        (self.host_address(lowest), 0)
    }

    /// The address, or 0 if it is not to be used.
    pub(super) fn unless(&mut self, bad: Value, place: Value) -> Value {
        if self.known(bad) == Some(0) {
            return place;
        }
        let zero = self.constant(0);
        self.b.ins().select(bad, zero, place)
    }

    /// The lowest address of a row.
    pub(super) fn lowest(&mut self, address: &mut Val, stride: u64) -> Value {
        let first = self.scalar(address);
        if self.shape.word.sign_extend(stride) >= 0 {
            return first;
        }
        let span = self.constant(self.rules.span(stride));
        self.b.ins().isub(first, span)
    }

    /// Whether an access at `place`, and others up to `span` bytes higher, are not inside of memory, or misaligned, or,
    /// for a store, not plain.
    pub(super) fn outside(
        &mut self,
        place: Value,
        access: Access,
        span: u64,
        store: bool,
    ) -> Value {
        let needed = span + access.bytes as u64;
        let Some(last) = self.memory_bytes.checked_sub(needed) else {
            return self.b.ins().iconst(types::I8, 1);
        };
        let mut bad = match self.known(place) {
            Some(place) => {
                let place = self.shape.cut(place);
                let is_odd = access.aligned && !place.is_multiple_of(access.bytes as u64);
                let is_bad = place > last || is_odd;
                self.b.ins().iconst(types::I8, i64::from(is_bad))
            }
            None => is_beyond(&mut self.b, place, last, access),
        };
        if store {
            let from = self.plain_from();
            let low = self.b.ins().icmp(IntCC::UnsignedLessThan, place, from);
            bad = self.b.ins().bor(bad, low);
        }
        bad
    }

    /// The first address of plain stores, as a word.
    fn plain_from(&mut self) -> Value {
        let ty = self.shape.int();
        self.b.ins().load(ty, aligned(), self.frame, at!(plain_from))
    }

    pub(super) fn host_address(&mut self, place: Value) -> Value {
        let place = self.lengthen(place);
        let memory = self.memory;
        self.b.ins().iadd(memory, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(offset: i64) -> Span {
        Span::of(offset, Access { bytes: 4, signed: false, aligned: true })
    }

    fn half(offset: i64) -> Span {
        Span::of(offset, Access { bytes: 2, signed: false, aligned: false })
    }

    #[test]
    fn words_are_checked_together_if_they_are_near_and_aligned_alike() {
        let both = word(8).with(word(-4)).unwrap();
        assert_eq!((both.start, both.end), (-4, 12));
        assert!(both.covers(word(0)) && both.covers(half(9)) && both.covers(half(10)));
        assert!(!both.covers(word(12)) && !both.covers(word(-8)) && !both.covers(half(11)));
        assert!(!both.covers(word(2)), "it may not be aligned");
        assert!(word(0).with(word(2)).is_none() && word(0).with(half(8)).is_none());
        assert!(word(0).with(word(MOST_BYTES)).is_none());
        assert!(!half(0).with(half(6)).unwrap().covers(word(4)), "nobody has looked at that");
    }
}
