//! Loads and stores.
//!
//! Every address that is used is compared with the size of memory before; what is outside, misaligned, or concerns
//! code leaves.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};

use super::values::{Val, Vectors};
use super::{Emitter, aligned};
use crate::body::{Access, Src};
use crate::class::{Class, Lanes};
use crate::frame::{Leave, at, scratch};
use harp_isa::Opcode;

/// Accesses of guest memory.
fn guest() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Emitter<'_, '_> {
    pub(super) fn load(&mut self, base: u8, offset: u64, access: Access, lanes: Lanes) -> Val {
        self.begin_leaving();
        self.count_load(lanes);
        let mut address = self.map(Opcode::Add, &[Src::Reg(base), Src::Imm(offset)]);
        match (address.class, lanes) {
            (class, Lanes::All) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let bad = self.outside(place, access, 0, false);
                self.leave_if(bad, Leave::Access);
                Val::uniform(self.load_at(place, 0, access))
            }
            (class, Lanes::AllOrNone) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let outside = self.outside(place, access, 0, false);
                self.leave_if_executing(outside, Leave::Access);
                let zero = self.constant(0);
                let place = self.b.ins().select(outside, zero, place);
                Val::uniform(self.load_at(place, 0, access))
            }
            (class, Lanes::Some) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let outside = self.outside(place, access, 0, false);
                let bits = self.executing_bits();
                let some = self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
                let bad = self.b.ins().band(outside, some);
                self.leave_if(bad, Leave::Access);
                let zero = self.constant(0);
                let place = self.b.ins().select(outside, zero, place);
                Val::uniform(self.load_at(place, 0, access))
            }
            (Class::Affine(stride), Lanes::All) if self.is_row(stride, access) => {
                let lowest = self.lowest(&mut address, stride);
                let bad = self.outside(lowest, access, self.span(stride), false);
                self.leave_if(bad, Leave::Access);
                Val::vector(self.load_row(lowest, stride, access))
            }
            (Class::Affine(stride), _) if self.is_row(stride, access) => {
                self.load_row_or_each(address, stride, access)
            }
            _ => {
                let vectors = self.vectors(&mut address);
                Val::vector(self.gather(&vectors, access, lanes))
            }
        }
    }

    /// Whether addresses with that stride can be checked together.
    fn is_row(&self, stride: u64, access: Access) -> bool {
        let aligned = !access.aligned || stride.is_multiple_of(access.bytes as u64);
        aligned && self.span(stride) < 1 << 24
    }

    /// The distance between the lowest and the highest lane's address.
    fn span(&self, stride: u64) -> u64 {
        let stride = self.shape.word.sign_extend(stride).unsigned_abs();
        stride.saturating_mul(self.shape.lanes as u64 - 1)
    }

    /// The lowest address of a row.
    fn lowest(&mut self, address: &mut Val, stride: u64) -> Value {
        let first = self.scalar(address);
        if self.shape.word.sign_extend(stride) >= 0 {
            return first;
        }
        let span = self.constant(self.span(stride));
        self.b.ins().isub(first, span)
    }

    /// Whether an access at `place`, and others up to `span` bytes higher, are not inside of memory, or misaligned, or,
    /// for a store, not plain.
    fn outside(&mut self, place: Value, access: Access, span: u64, store: bool) -> Value {
        let needed = span + access.bytes as u64;
        let Some(last) = self.memory_bytes.checked_sub(needed) else {
            return self.b.ins().iconst(types::I8, 1);
        };
        let last = self.constant(last);
        let mut bad = self.b.ins().icmp(IntCC::UnsignedGreaterThan, place, last);
        if access.aligned && access.bytes > 1 {
            let low = self.b.ins().band_imm_u(place, access.bytes as i64 - 1);
            let odd = self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
            bad = self.b.ins().bor(bad, odd);
        }
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

    fn host_address(&mut self, place: Value) -> Value {
        let place = match self.shape.bytes() {
            4 => self.b.ins().uextend(types::I64, place),
            _ => place,
        };
        let memory = self.memory;
        self.b.ins().iadd(memory, place)
    }

    fn narrow(access: Access) -> Type {
        match access.bytes {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            _ => types::I64,
        }
    }

    /// Loads from a guest address that has been checked.
    fn load_at(&mut self, place: Value, distance: i32, access: Access) -> Value {
        let address = self.host_address(place);
        self.load_host(address, distance, access)
    }

    fn load_host(&mut self, address: Value, distance: i32, access: Access) -> Value {
        let (int, narrow) = (self.shape.int(), Self::narrow(access));
        let value = self.b.ins().load(narrow, guest(), address, distance);
        match access.signed {
            _ if narrow == int => value,
            true => self.b.ins().sextend(int, value),
            false => self.b.ins().uextend(int, value),
        }
    }

    fn store_host(&mut self, value: Value, address: Value, distance: i32, access: Access) {
        let narrow = Self::narrow(access);
        let value =
            if narrow == self.shape.int() { value } else { self.b.ins().ireduce(narrow, value) };
        self.b.ins().store(guest(), value, address, distance);
    }

    /// Where lane `lane` is, from the lowest address of a row.
    fn distance(&self, stride: u64, lane: usize) -> i32 {
        let signed = self.shape.word.sign_extend(stride);
        let steps = if signed >= 0 { lane } else { self.shape.lanes - 1 - lane };
        i32::try_from(signed.unsigned_abs() * steps as u64).unwrap_or(i32::MAX)
    }

    /// Whether each vector of a row is one of memory.
    fn is_consecutive(&self, stride: u64, access: Access) -> bool {
        access.bytes == self.shape.bytes() && stride == access.bytes as u64 && self.shape.is_whole()
    }

    fn load_row(&mut self, lowest: Value, stride: u64, access: Access) -> Vec<Value> {
        let ty = self.shape.int_vector();
        let address = self.host_address(lowest);
        if self.is_consecutive(stride, access) {
            return (0..self.shape.vectors())
                .map(|k| self.b.ins().load(ty, guest(), address, 16 * k as i32))
                .collect();
        }
        self.assemble(|e, lane| {
            let distance = e.distance(stride, lane);
            e.load_host(address, distance, access)
        })
    }

    /// Vectors of the words that `word` makes for each lane.
    fn assemble(&mut self, mut word: impl FnMut(&mut Self, usize) -> Value) -> Vec<Value> {
        let (ty, per) = (self.shape.int_vector(), self.shape.per_vector());
        let mut vectors = Vec::new();
        for k in 0..self.shape.vectors() {
            let first = word(self, k * per);
            let mut vector = self.b.ins().scalar_to_vector(ty, first);
            for i in 1..per.min(self.shape.lanes - k * per) {
                let value = word(self, k * per + i);
                vector = self.b.ins().insertlane(vector, value, i as u8);
            }
            vectors.push(vector);
        }
        vectors
    }

    /// Lane number `lane` of a register.
    fn lane_of(&mut self, vectors: &[Value], lane: usize) -> Value {
        let per = self.shape.per_vector();
        self.b.ins().extractlane(vectors[lane / per], (lane % per) as u8)
    }

    /// Loads a row for lanes of which only some execute: all of it, if it is in memory.
    fn load_row_or_each(&mut self, mut address: Val, stride: u64, access: Access) -> Val {
        let lowest = self.lowest(&mut address, stride);
        let bad = self.outside(lowest, access, self.span(stride), false);
        // What both ways need is made before them.
        let vectors = self.vectors(&mut address);
        let mask = self.executing_vectors();
        let (each, row, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(each);
        let ty = self.shape.int_vector();
        for _ in 0..self.shape.vectors() {
            self.b.append_block_param(after, ty);
        }
        self.b.ins().brif(bad, each, &[], row, &[]);
        self.b.seal_block(each);
        self.b.seal_block(row);
        self.b.switch_to_block(row);
        let values = self.load_row(lowest, stride, access);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        self.b.switch_to_block(each);
        let values = self.gather_masked(&vectors, &mask, access);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        self.b.seal_block(after);
        self.b.switch_to_block(after);
        let values = self.b.block_params(after).to_vec();
        Val::vector(values)
    }

    fn gather(&mut self, addresses: &Vectors, access: Access, lanes: Lanes) -> Vec<Value> {
        if lanes != Lanes::All {
            let mask = self.executing_vectors();
            return self.gather_masked(addresses, &mask, access);
        }
        let bad = self.any_outside(addresses, None, access, false);
        self.leave_if(bad, Leave::Access);
        let first = self.lane_of(addresses, 0);
        self.gather_checked(addresses, None, first, access)
    }

    /// Loads, in lanes that do not execute from address 0.
    fn gather_masked(&mut self, addresses: &[Value], mask: &[Value], access: Access) -> Vec<Value> {
        let chosen = self.zip(addresses, mask, |e, a, m| e.b.ins().band(a, m));
        let bad = self.any_outside(&chosen, None, access, false);
        self.leave_if(bad, Leave::Access);
        let first = self.lane_of(&chosen, 0);
        self.gather_checked(&chosen, Some(mask), first, access)
    }

    /// Loads from addresses that have been checked: a row at once, if lanes that execute, of which lane 0 is one, lie
    /// in a row.
    fn gather_checked(
        &mut self,
        addresses: &[Value],
        mask: Option<&[Value]>,
        first: Value,
        access: Access,
    ) -> Vec<Value> {
        let stride = self.shape.bytes() as u64;
        if !self.is_consecutive(stride, access) || self.shape.vectors() < 2 {
            return self.gather_each(addresses, access);
        }
        let start = self.splat(first);
        let steps = self.lane_constants(|lane| stride * lane as u64);
        let mut differ: Option<Value> = None;
        for (k, &address) in addresses.iter().enumerate() {
            let expected = self.b.ins().iadd(start, steps[k]);
            let mut bits = self.b.ins().bxor(address, expected);
            if let Some(mask) = mask {
                bits = self.b.ins().band(bits, mask[k]);
            }
            differ = Some(self.either(differ, bits));
        }
        let differ = differ.unwrap_or(start);
        let differs = self.b.ins().vany_true(differ);
        let outside = self.outside(first, access, self.span(stride), false);
        let bad = self.b.ins().bor(differs, outside);
        let (each, row, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let ty = self.shape.int_vector();
        for _ in 0..self.shape.vectors() {
            self.b.append_block_param(after, ty);
        }
        self.b.ins().brif(bad, each, &[], row, &[]);
        self.b.seal_block(each);
        self.b.seal_block(row);
        self.b.switch_to_block(row);
        let values = self.load_row(first, stride, access);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        self.b.switch_to_block(each);
        let values = self.gather_each(addresses, access);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        self.b.seal_block(after);
        self.b.switch_to_block(after);
        self.b.block_params(after).to_vec()
    }

    fn gather_each(&mut self, addresses: &[Value], access: Access) -> Vec<Value> {
        self.assemble(|e, lane| {
            let place = e.lane_of(addresses, lane);
            e.load_at(place, 0, access)
        })
    }

    /// Whether any address, of those in the mask, is not usable.
    fn any_outside(
        &mut self,
        addresses: &[Value],
        mask: Option<&[Value]>,
        access: Access,
        store: bool,
    ) -> Value {
        let Some(last) = self.memory_bytes.checked_sub(access.bytes as u64) else {
            return self.b.ins().iconst(types::I8, 1);
        };
        let ty = self.shape.int_vector();
        let last = self.vector_constant(ty, |_| last);
        let from = store.then(|| {
            let from = self.plain_from();
            self.splat(from)
        });
        let odd = access.aligned && access.bytes > 1;
        let low = self.vector_constant(ty, |_| access.bytes as u64 - 1);
        let mut all: Option<Value> = None;
        for (k, &address) in addresses.iter().enumerate() {
            // Memory takes at most the lower half of the addresses, so each of these sums has the top bit if and only
            // if the address is bad.
            let behind = self.b.ins().isub(last, address);
            let mut bad = self.b.ins().bor(address, behind);
            if let Some(from) = from {
                let below = self.b.ins().isub(address, from);
                bad = self.b.ins().bor(bad, below);
            }
            if odd {
                let bits = self.b.ins().band(address, low);
                let bits = self.b.ins().ineg(bits);
                bad = self.b.ins().bor(bad, bits);
            }
            if let Some(mask) = mask {
                bad = self.b.ins().band(bad, mask[k]);
            }
            if !self.shape.is_whole() && k + 1 == addresses.len() {
                let per = self.shape.per_vector();
                let lanes = self.shape.lanes;
                let real =
                    self.vector_constant(ty, |i| if k * per + i < lanes { u64::MAX } else { 0 });
                bad = self.b.ins().band(bad, real);
            }
            all = Some(match all {
                Some(all) => self.b.ins().bor(all, bad),
                None => bad,
            });
        }
        let all = all.unwrap_or(low);
        let signs = self.b.ins().vhigh_bits(types::I32, all);
        self.b.ins().icmp_imm_s(IntCC::NotEqual, signs, 0)
    }

    pub(super) fn store(&mut self, value: u8, base: u8, offset: u64, access: Access, lanes: Lanes) {
        self.begin_leaving();
        let mut address = self.map(Opcode::Add, &[Src::Reg(base), Src::Imm(offset)]);
        match (address.class, lanes) {
            (class, Lanes::All | Lanes::AllOrNone) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let bad = self.outside(place, access, 0, true);
                let last = self.last_lane(value);
                self.leave_if_executing(bad, Leave::Access);
                self.if_executing(lanes, |e| {
                    let address = e.host_address(place);
                    e.store_host(last, address, 0, access);
                });
            }
            (Class::Affine(stride), Lanes::All | Lanes::AllOrNone)
                if self.is_row(stride, access) =>
            {
                let lowest = self.lowest(&mut address, stride);
                let bad = self.outside(lowest, access, self.span(stride), true);
                let values = self.reg_vectors(value);
                self.leave_if_executing(bad, Leave::Access);
                self.if_executing(lanes, |e| e.store_row(&values, lowest, stride, access));
            }
            _ => {
                let vectors = self.vectors(&mut address);
                let values = self.reg_vectors(value);
                self.scatter(&vectors, &values, access, lanes);
            }
        }
        self.count_store(lanes);
        self.at.has_effect = true;
    }

    /// The value that stays if all lanes store to one address.
    fn last_lane(&mut self, value: u8) -> Value {
        let mut val = self.reg(value);
        match val.class {
            Class::Vector => {
                let vectors = self.vectors(&mut val);
                self.lane_of(&vectors, self.shape.lanes - 1)
            }
            Class::Affine(stride) => {
                let first = self.scalar(&mut val);
                let distance = self.constant(stride.wrapping_mul(self.shape.lanes as u64 - 1));
                self.b.ins().iadd(first, distance)
            }
            _ => self.scalar(&mut val),
        }
    }

    fn store_row(&mut self, values: &[Value], lowest: Value, stride: u64, access: Access) {
        let address = self.host_address(lowest);
        if self.is_consecutive(stride, access) {
            for (k, &v) in values.iter().enumerate() {
                self.b.ins().store(guest(), v, address, 16 * k as i32);
            }
            return;
        }
        for lane in 0..self.shape.lanes {
            let word = self.lane_of(values, lane);
            let distance = self.distance(stride, lane);
            self.store_host(word, address, distance, access);
        }
    }

    /// Stores in the lanes that execute, lowest first.
    fn scatter(&mut self, addresses: &[Value], values: &[Value], access: Access, lanes: Lanes) {
        if lanes == Lanes::All {
            let bad = self.any_outside(addresses, None, access, true);
            self.leave_if(bad, Leave::Access);
            for lane in 0..self.shape.lanes {
                let place = self.lane_of(addresses, lane);
                let word = self.lane_of(values, lane);
                let address = self.host_address(place);
                self.store_host(word, address, 0, access);
            }
            return;
        }
        let mask = self.executing_vectors();
        let bad = self.any_outside(addresses, Some(&mask), access, true);
        self.leave_if(bad, Leave::Access);
        let bits = self.executing_bits();
        self.put_scratch(0, addresses);
        self.put_scratch(1, values);
        self.for_each_lane(bits, |e, lane| {
            let distance = e.b.ins().imul_imm_s(lane, e.shape.bytes() as i64);
            let frame = e.frame;
            let here = e.b.ins().iadd(frame, distance);
            let ty = e.shape.int();
            let place = e.b.ins().load(ty, aligned(), here, scratch(0));
            let word = e.b.ins().load(ty, aligned(), here, scratch(1));
            let address = e.host_address(place);
            e.store_host(word, address, 0, access);
        });
    }

    /// A loop over the lanes whose bits are set, lowest first.
    fn for_each_lane(&mut self, bits: Value, f: impl FnOnce(&mut Self, Value)) {
        let (head, body, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let left = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[bits.into()]);
        self.b.switch_to_block(head);
        self.b.ins().brif(left, body, &[], after, &[]);
        self.b.seal_block(body);
        self.b.switch_to_block(body);
        let lane = self.b.ins().ctz(left);
        f(self, lane);
        let less = self.b.ins().iadd_imm_s(left, -1);
        let rest = self.b.ins().band(left, less);
        self.b.ins().jump(head, &[rest.into()]);
        self.b.seal_block(head);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
    }

    /// Does something that has an effect, unless no lane executes.
    fn if_executing(&mut self, lanes: Lanes, f: impl FnOnce(&mut Self)) {
        if lanes == Lanes::All {
            return f(self);
        }
        let bits = self.executing_bits();
        let (then, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(bits, then, &[], after, &[]);
        self.b.seal_block(then);
        self.b.switch_to_block(then);
        f(self);
        self.b.ins().jump(after, &[]);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
    }
}
