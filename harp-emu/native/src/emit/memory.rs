//! Loads and stores. What is outside of memory, misaligned, or concerns code leaves.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::parts::{LaneLoop, guest, load, store, vector_of};
use super::values::{Val, Vectors};
use super::{Emitter, aligned};
use crate::body::{Access, Src, Update};
use crate::class::Class;
use crate::frame::{Leave, scratch};
use crate::rules::Lanes;
use harp_isa::{Opcode, Sharing};

impl Emitter<'_, '_> {
    pub(super) fn load(&mut self, base: u8, offset: u64, access: Access, lanes: Lanes) -> Val {
        self.begin_leaving();
        self.count_load(lanes);
        let mut address = self.address(base, offset, access, lanes);
        let seen = self.rules.loaded(&self.at.state, &self.at.inst, lanes);
        if let Some(known) = self.in_slot(base, offset, access, seen.unwrap_or(Class::Vector)) {
            return known;
        }
        let reached = self.reach(base, offset, access, false);
        let val = match (seen, reached) {
            (Some(class), _) if class != Class::Vector => {
                let stride = address.class.stride().unwrap_or(0);
                let place =
                    reached.unwrap_or_else(|| self.row_at(&mut address, stride, access, 0, false));
                self.load_as_seen(place, stride, access, class)
            }
            (_, Some(place)) if address.class.is_uniform() => {
                Val::uniform(self.load_host(place.0, place.1, access))
            }
            (_, Some(place)) => {
                let stride = address.class.stride().unwrap_or(0);
                Val::vector(self.load_row(place, stride, access))
            }
            _ => self.load_from(address, access, lanes),
        };
        self.loaded_from_slot(base, offset, access, &val);
        val
    }

    /// The addresses of an access, in the lanes that execute.
    fn address(&mut self, base: u8, offset: u64, access: Access, lanes: Lanes) -> Val {
        let mut first = self.map(Opcode::Add, &[Src::Reg(base), Src::Imm(offset)], lanes);
        if self.at.inst.sharing != Sharing::Row {
            return first;
        }
        let class = Class::of_stride(Some(self.rules.row_stride(access)));
        Val { class, scalar: Some(self.scalar(&mut first)), vectors: None }
    }

    fn load_from(&mut self, mut address: Val, access: Access, lanes: Lanes) -> Val {
        match (address.class, lanes) {
            (class, Lanes::All) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let bad = self.outside(place, access, 0, false);
                self.leave_if(bad, Leave::Access);
                Val::uniform(self.load_at(place, access))
            }
            (class, Lanes::AllOrNone | Lanes::Some) if class.is_uniform() => {
                let place = self.scalar(&mut address);
                let outside = self.outside(place, access, 0, false);
                self.leave_if_executing(outside, Leave::Access);
                let place = self.unless(outside, place);
                Val::uniform(self.load_at(place, access))
            }
            (Class::Affine(stride), Lanes::All) if self.rules.is_row(stride, access) => {
                let place = self.row_at(&mut address, stride, access, 0, false);
                Val::vector(self.load_row(place, stride, access))
            }
            (Class::Affine(stride), _) if self.rules.is_row(stride, access) => {
                self.load_row_or_each(address, stride, access)
            }
            _ => {
                let vectors = self.vectors(&mut address);
                Val::vector(self.gather_or_row(&vectors, access, lanes))
            }
        }
    }

    /// Loads from a guest address that has been checked.
    fn load_at(&mut self, place: Value, access: Access) -> Value {
        let near = self.known(place).and_then(|place| i32::try_from(place).ok());
        if let Some(place) = near.filter(|&place| place >= 0) {
            let memory = self.memory;
            return self.load_host(memory, place, access);
        }
        let address = self.host_address(place);
        self.load_host(address, 0, access)
    }

    pub(super) fn load_host(&mut self, address: Value, distance: i32, access: Access) -> Value {
        let int = self.shape.int();
        load(&mut self.b, int, (address, distance), access)
    }

    pub(super) fn store_host(
        &mut self,
        value: Value,
        address: Value,
        distance: i32,
        access: Access,
    ) {
        let int = self.shape.int();
        store(&mut self.b, int, (value, address, distance), access);
    }

    /// Whether each vector of a row is one of memory.
    fn is_consecutive(&self, stride: u64, access: Access) -> bool {
        access.bytes == self.shape.bytes() && stride == access.bytes as u64 && self.shape.is_whole()
    }

    /// Loads a row whose lowest word is at that address of the host.
    pub(super) fn load_row(
        &mut self,
        (address, distance): (Value, i32),
        stride: u64,
        access: Access,
    ) -> Vec<Value> {
        let ty = self.shape.int_vector();
        if self.is_consecutive(stride, access) {
            return (0..self.shape.vectors())
                .map(|k| self.b.ins().load(ty, guest(), address, distance + 16 * k as i32))
                .collect();
        }
        if self.calls_for_rows {
            let address = self.b.ins().iadd_imm_s(address, i64::from(distance));
            return self.call_for_row(address, stride, access);
        }
        self.assemble(|e, lane| {
            let distance = distance + e.shape.distance(stride, lane);
            e.load_host(address, distance, access)
        })
    }

    /// Vectors of the words that `word` makes for each lane.
    pub(super) fn assemble(
        &mut self,
        mut word: impl FnMut(&mut Self, usize) -> Value,
    ) -> Vec<Value> {
        let shape = self.shape;
        let mut vector = |k| {
            let words: Vec<Value> = shape.lanes_of(k).map(|lane| word(self, lane)).collect();
            vector_of(&mut self.b, shape.int_vector(), &words)
        };
        (0..shape.vectors()).map(&mut vector).collect()
    }

    /// Lane number `lane` of a register.
    pub(super) fn lane_of(&mut self, vectors: &[Value], lane: usize) -> Value {
        let per = self.shape.per_vector();
        self.b.ins().extractlane(vectors[lane / per], (lane % per) as u8)
    }

    /// Loads a row for lanes of which only some execute: all of it, if it is in memory.
    fn load_row_or_each(&mut self, mut address: Val, stride: u64, access: Access) -> Val {
        let lowest = self.lowest(&mut address, stride);
        let bad = self.outside(lowest, access, self.rules.span(stride), false);
        let values = self.choose(
            bad,
            |e| {
                let vectors = e.vectors(&mut address);
                e.gather(&vectors, access, Lanes::Some)
            },
            |e| {
                let address = e.host_address(lowest);
                e.load_row((address, 0), stride, access)
            },
        );
        Val::vector(values)
    }

    /// Loads from any addresses: a row at once, if all lanes load one.
    fn gather_or_row(&mut self, addresses: &[Value], access: Access, lanes: Lanes) -> Vec<Value> {
        let stride = self.shape.bytes() as u64;
        let is_wide = self.is_consecutive(stride, access) && self.shape.vectors() > 1;
        if lanes != Lanes::All || !is_wide {
            return self.gather(addresses, access, lanes);
        }
        // The first and the last lane tell most others from rows.
        let first = self.lane_of(addresses, 0);
        let last = self.lane_of(addresses, self.shape.lanes - 1);
        let distance = self.b.ins().isub(last, first);
        let span = self.rules.span(stride);
        let may_be_row = self.b.ins().icmp_imm_s(IntCC::Equal, distance, span.cast_signed());
        self.choose(
            may_be_row,
            |e| {
                let differs = e.differ_from(addresses, Class::Affine(stride));
                e.choose(
                    differs,
                    |e| e.gather(addresses, access, lanes),
                    |e| {
                        let bad = e.outside(first, access, span, false);
                        e.leave_if(bad, Leave::Access);
                        let address = e.host_address(first);
                        e.load_row((address, 0), stride, access)
                    },
                )
            },
            |e| e.gather(addresses, access, lanes),
        )
    }

    /// The vectors that one of two ways makes.
    fn choose(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self) -> Vec<Value>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let (one, other, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let ty = self.shape.int_vector();
        for _ in 0..self.shape.vectors() {
            self.b.append_block_param(after, ty);
        }
        self.b.ins().brif(condition, one, &[], other, &[]);
        self.b.seal_block(one);
        self.b.seal_block(other);
        let (local, masks) = (self.at.local.clone(), self.at.masks.clone());
        self.b.switch_to_block(one);
        let values = then(self);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        // What was made on the way is not known behind it.
        (self.at.local, self.at.masks) = (local.clone(), masks.clone());
        self.b.switch_to_block(other);
        let values = otherwise(self);
        self.b.ins().jump(after, &values.iter().map(|&v| v.into()).collect::<Vec<_>>());
        (self.at.local, self.at.masks) = (local, masks);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
        self.b.block_params(after).to_vec()
    }

    pub(super) fn store(&mut self, value: u8, base: u8, offset: u64, access: Access, lanes: Lanes) {
        self.begin_leaving();
        let mut address = self.address(base, offset, access, lanes);
        let stores_one = lanes != Lanes::Some || self.reg(value).class.is_uniform();
        match (address.class, lanes) {
            (class, _) if class.is_uniform() && stores_one => {
                let last = self.last_lane(value);
                if let Some((host, distance)) = self.reach(base, offset, access, true) {
                    self.if_executing(lanes, |e| e.store_host(last, host, distance, access));
                } else {
                    let place = self.scalar(&mut address);
                    let bad = self.outside(place, access, 0, true);
                    self.leave_if_executing(bad, Leave::Access);
                    self.if_executing(lanes, |e| {
                        let address = e.host_address(place);
                        e.store_host(last, address, 0, access);
                    });
                }
            }
            (Class::Affine(stride), Lanes::All | Lanes::AllOrNone)
                if self.rules.is_row(stride, access) =>
            {
                let values = self.reg_vectors(value);
                let reached = self.reach(base, offset, access, true);
                let place =
                    reached.unwrap_or_else(|| self.row_at(&mut address, stride, access, 0, true));
                self.if_executing(lanes, |e| e.store_row(&values, place, stride, access));
            }
            (Class::Affine(stride), _) if self.rules.is_row(stride, access) => {
                let values = self.executed_vectors(value);
                let bits = self.executing_bits();
                self.if_any(bits, |e| e.store_row_masked(address, stride, &values, access));
            }
            _ => {
                let (vectors, values) = (self.vectors(&mut address), self.executed_vectors(value));
                self.scatter(&vectors, &values, access, lanes);
            }
        }
        self.stored_to_slot(value, base, offset, access);
        self.count_store(lanes);
        self.at.has_effect = true;
    }

    /// An atomic operation of the lanes that execute, lowest first. The registers are its destination, the address, and the
    /// new value or the one to combine.
    pub(super) fn atomic(
        &mut self,
        update: Update,
        (dst, address, value): (u8, u8, u8),
        access: Access,
        lanes: Lanes,
    ) -> Val {
        self.begin_leaving();
        let reads = [address, value, dst];
        let reads = if update == Update::Compare { &reads[..] } else { &reads[..2] };
        let vectors: Vec<Vectors> = reads.iter().map(|&r| self.executed_vectors(r)).collect();
        let words = self.update(update, &vectors, access, lanes);
        self.at.slots.clear();
        self.count_load(lanes);
        self.count_store(lanes);
        self.at.has_effect = true;
        Val::vector(words)
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

    /// Stores a row whose lowest word is at that address of the host.
    fn store_row(
        &mut self,
        values: &[Value],
        (address, distance): (Value, i32),
        stride: u64,
        access: Access,
    ) {
        if self.is_consecutive(stride, access) {
            for (k, &v) in values.iter().enumerate() {
                self.b.ins().store(guest(), v, address, distance + 16 * k as i32);
            }
            return;
        }
        if self.calls_for_rows {
            let address = self.b.ins().iadd_imm_s(address, i64::from(distance));
            return self.call_to_store_row(values, address, stride, access);
        }
        for lane in 0..self.shape.lanes {
            let word = self.lane_of(values, lane);
            let distance = distance + self.shape.distance(stride, lane);
            self.store_host(word, address, distance, access);
        }
    }

    /// Stores to a row in the lanes that execute, of which there are some, lowest first. Not as vectors with what is there in
    /// the other lanes: even if there is one core, the host or another machine may store to those words meanwhile.
    fn store_row_masked(
        &mut self,
        mut address: Val,
        stride: u64,
        values: &[Value],
        access: Access,
    ) {
        let lowest = self.lowest(&mut address, stride);
        let bad = self.outside(lowest, access, self.rules.span(stride), true);
        let (bits, first) = (self.executing_bits(), self.scalar(&mut address));
        let (row, any, after) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(bad, any, &[], row, &[]);
        self.b.seal_block(any);
        self.b.seal_block(row);
        let (local, masks) = (self.at.local.clone(), self.at.masks.clone());
        self.b.switch_to_block(any);
        // Those that execute may be inside.
        let vectors = self.vectors(&mut address);
        self.scatter(&vectors, values, access, Lanes::Some);
        self.b.ins().jump(after, &[]);
        // What was made on the way is not known elsewhere.
        (self.at.local, self.at.masks) = (local, masks);
        self.b.switch_to_block(row);
        self.put_scratch(1, values);
        let ty = self.shape.int();
        let stride = self.constant(stride);
        self.for_each_lane(bits, |e, lane| {
            let distance = e.b.ins().imul_imm_s(lane, e.shape.bytes() as i64);
            let here = e.b.ins().iadd(e.frame, distance);
            let word = e.b.ins().load(ty, aligned(), here, scratch(1));
            let lane = if ty == types::I32 { e.b.ins().ireduce(ty, lane) } else { lane };
            let distance = e.b.ins().imul(lane, stride);
            let place = e.b.ins().iadd(first, distance);
            let address = e.host_address(place);
            e.store_host(word, address, 0, access);
        });
        self.b.ins().jump(after, &[]);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
    }

    /// A loop over the lanes whose bits are set, lowest first.
    fn for_each_lane(&mut self, bits: Value, f: impl FnOnce(&mut Self, Value)) {
        let lanes = LaneLoop::begin(&mut self.b, bits);
        f(self, lanes.lane);
        lanes.end(&mut self.b);
    }

    /// Does something that has an effect, unless no lane executes.
    fn if_executing(&mut self, lanes: Lanes, f: impl FnOnce(&mut Self)) {
        if lanes == Lanes::All {
            return f(self);
        }
        let bits = self.executing_bits();
        self.if_any(bits, f);
    }

    /// Does something if `condition` is not zero.
    fn if_any(&mut self, condition: Value, f: impl FnOnce(&mut Self)) {
        let (then, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, then, &[], after, &[]);
        self.b.seal_block(then);
        self.b.switch_to_block(then);
        let (local, masks) = (self.at.local.clone(), self.at.masks.clone());
        f(self);
        // What was made on the way is not known behind it.
        (self.at.local, self.at.masks) = (local, masks);
        self.b.ins().jump(after, &[]);
        self.b.seal_block(after);
        self.b.switch_to_block(after);
    }
}
