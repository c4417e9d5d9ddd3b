//! Ways into a region and out of it.

use cranelift_codegen::ir::{Block, InstBuilder, JumpTableData, Value, types};
use harp_isa::Pred;

use super::block::{At, Stub};
use super::{Emitter, aligned};
use crate::body::Body;
use crate::class::Class;
use crate::frame::{Leave, at};
use crate::region::Key;
use crate::rows::{self, Exit, Row, bits_of};
use crate::state::Bits;

/// Where a warp goes on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    At(u64),
    /// An address in a value of 8 bytes.
    Value(Value),
}

impl Emitter<'_, '_> {
    /// Emits the beginning of the function: the choice of an entry, and what each one expects.
    pub(super) fn ways_in(&mut self) {
        let entries = self.region.entries.clone();
        let blocks: Vec<_> = entries.iter().map(|_| self.b.create_block()).collect();
        let refused = self.b.create_block();
        let number = self.b.ins().load(types::I32, aligned(), self.frame, at!(entry));
        let pool = &mut self.b.func.dfg.value_lists;
        let calls: Vec<_> = blocks
            .iter()
            .map(|&block| cranelift_codegen::ir::BlockCall::new(block, [], pool))
            .collect();
        let other = cranelift_codegen::ir::BlockCall::new(refused, [], pool);
        let table = self.b.create_jump_table(JumpTableData::new(other, &calls));
        self.b.ins().br_table(number, table);
        for (key, block) in entries.into_iter().zip(blocks) {
            self.b.seal_block(block);
            self.b.switch_to_block(block);
            self.way_in(key, refused);
        }
        self.b.seal_block(refused);
        self.b.switch_to_block(refused);
        let why = self.long(Leave::Entry as u64);
        self.b.ins().store(aligned(), why, self.frame, at!(leave));
        self.b.ins().return_(&[]);
    }

    /// Reads the state for the block `key`; refuses if it is not as expected.
    fn way_in(&mut self, key: Key, refused: Block) {
        self.at = At::start(self.region, key);
        let mut bad: Option<Value> = None;
        let mut expected = rows::Entry::default();
        if !key.full {
            expected.only_active = !self.rules.waiting_read(&self.at.state, &self.at.inst, false);
        }
        let needed = self.needed_at(0);
        // What nobody asks for may be anything.
        let touched = self.touched[&key].first().copied().unwrap_or(Bits::ALL);
        for r in bits_of(self.region.registers & needed.regs & touched.regs) {
            let index = usize::from(r);
            let class = self.at.state.regs[index];
            match class {
                Class::Const(_) => expected.rows.push(Row::new(r, class)),
                Class::Uniform | Class::Affine(_) => {
                    expected.rows.push(Row::new(r, class));
                    let ty = self.shape.int();
                    let first = self.b.ins().load(ty, aligned(), self.frame, scalar(r));
                    self.b.def_var(self.variables.scalars[index], first);
                }
                Class::Vector => {
                    expected.vectors |= 1 << r;
                    if self.has_home(index) {
                        continue;
                    }
                    for k in 0..self.shape.vectors() {
                        let v = self.load_register(index, k);
                        self.b.def_var(self.variables.vectors[index][k], v);
                    }
                }
            }
        }
        self.rows.entries.push(expected);
        for p in bits_of(self.preds[0] & needed.preds) {
            let predicates = self.predicates;
            let mut bits = self.b.ins().load(types::I64, aligned(), predicates, 8 * i32::from(p));
            if self.is_shared_pred(p) {
                let full = self.long(self.shape.full());
                bits = self.b.ins().band(bits, full);
            } else if self.at.state.is_uniform_pred(p)
                && touched.preds >> p & 1 != 0
                && self.shape.lanes > 1
            {
                let differs = self.differs_among_lanes(bits);
                bad = Some(self.either(bad, differs));
            }
            self.b.def_var(self.variables.preds[usize::from(p)], bits);
        }
        if !key.full {
            let active = self.b.ins().load(types::I64, aligned(), self.frame, at!(active));
            self.b.def_var(self.variables.active, active);
        }
        let budget = self.b.ins().load(types::I64, aligned(), self.frame, at!(budget));
        self.b.def_var(self.variables.budget, budget);
        let target = self.blocks[&key];
        match bad {
            Some(bad) => self.b.ins().brif(bad, refused, &[], target, &[]),
            None => self.b.ins().jump(target, &[]),
        };
    }

    /// Whether all bits of a predicate are the same, also those of lanes that the machine lacks.
    fn is_shared_pred(&self, p: u8) -> bool {
        self.shape.arch.is_shared_pred(Pred::new(p))
    }

    /// What is left of the budget.
    pub(super) fn budget_left(&mut self) -> Value {
        let issued = self.at.counts.issued.cast_signed();
        match self.at.budget {
            Some(budget) => self.b.ins().iadd_imm_s(budget, -issued),
            None => self.long(0),
        }
    }

    /// Emits a stub.
    pub(super) fn stub(&mut self, stub: Stub) {
        let Stub { block, pc, local, counts, needed } = stub;
        self.b.seal_block(block);
        self.b.switch_to_block(block);
        let why = self.b.block_params(block)[0];
        let budget = self.at.budget;
        self.at = At::start(self.region, self.at.key);
        (self.at.local, self.at.counts, self.at.budget) = (local, counts, budget);
        self.write_back(Place::At(pc), why, needed);
    }

    /// Writes what is `needed` of the state back and returns.
    pub(super) fn exit(&mut self, place: Place, why: Leave, needed: Bits) {
        let why = self.long(why as u64);
        self.write_back(place, why, needed);
    }

    fn write_back(&mut self, place: Place, why: Value, needed: Bits) {
        self.settle();
        let (mut rows, mut vectors, mut foreign, mut behind) = (Vec::new(), 0, 0, None);
        let mut way = WayOut { preds: self.preds[1] & needed.preds, ..WayOut::default() };
        for r in bits_of(self.at.local.changed & self.region.registers & needed.regs) {
            let index = usize::from(r);
            let class = self.at.local.regs[index].class;
            if class != Class::Vector {
                rows.push(Row::new(r, class));
            }
            match class {
                Class::Const(_) => {}
                Class::Uniform | Class::Affine(_) => {
                    way.scalars |= 1 << r;
                    let scalar = self.reg_scalar(r);
                    self.b.def_var(self.variables.scalars[index], scalar);
                }
                Class::Vector => {
                    vectors |= 1 << r;
                    if self.is_at_home(index) {
                        continue;
                    }
                    way.vectors |= 1 << r;
                    for (k, &v) in self.reg_vectors(r).iter().enumerate() {
                        self.b.def_var(self.variables.vectors[index][k], v);
                    }
                }
            }
        }
        for p in bits_of(way.preds) {
            let bits = self.pred_bits(p);
            self.b.def_var(self.variables.preds[usize::from(p)], bits);
        }
        if let Place::At(pc) = place
            && pc == self.at.inst.pc
            && self.at.inst.is_foreign()
        {
            foreign = self.at.inst.registers().1.map_or(0, |dst| 1 << dst);
            let next = self.long(self.at.inst.next);
            self.b.ins().store(aligned(), next, self.frame, at!(next));
            if matches!(self.at.inst.body, Body::Barrier { .. }) {
                let key = Key::new(self.at.inst.next, self.at.key.full);
                let entries = self.region.entries.iter();
                // At its head, a region assumes more than what holds behind the instruction before.
                behind = entries.skip(1).position(|entry| *entry == key).map(|place| place + 1);
            }
        }
        let active = self.active_bits();
        let pc = match place {
            Place::At(pc) => self.long(pc),
            Place::Value(value) => value,
        };
        let left = self.budget_left();
        let exits = &mut self.rows.exits;
        let leaves = Exit::new(&rows, vectors, foreign, behind);
        let exit = exits.iter().position(|other| *other == leaves).unwrap_or(exits.len());
        if exit == exits.len() {
            exits.push(leaves);
        }
        let exit = self.long(exit as u64);
        let out = self.way_out(way);
        self.b.ins().jump(out, &[active, pc, left, why, exit].map(Into::into));
    }

    /// The block that leaves so. It gets values of [`fields`].
    fn way_out(&mut self, way: WayOut) -> Block {
        if let Some((_, block)) = self.ways_out.iter().find(|(other, _)| *other == way) {
            return *block;
        }
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        for _ in fields() {
            self.b.append_block_param(block, types::I64);
        }
        self.ways_out.push((way, block));
        block
    }

    /// Emits the blocks that leave: each writes what its variables hold and returns.
    pub(super) fn ways_out(&mut self) {
        for (way, block) in std::mem::take(&mut self.ways_out) {
            self.b.switch_to_block(block);
            for r in bits_of(way.scalars) {
                let first = self.b.use_var(self.variables.scalars[usize::from(r)]);
                self.b.ins().store(aligned(), first, self.frame, scalar(r));
            }
            for r in bits_of(way.vectors) {
                for k in 0..self.shape.vectors() {
                    let v = self.b.use_var(self.variables.vectors[usize::from(r)][k]);
                    self.store_register(usize::from(r), k, v);
                }
            }
            for p in bits_of(way.preds) {
                let mut bits = self.b.use_var(self.variables.preds[usize::from(p)]);
                if self.is_shared_pred(p) {
                    let first = self.b.ins().band_imm_u(bits, 1);
                    bits = self.b.ins().ineg(first);
                }
                self.b.ins().store(aligned(), bits, self.predicates, 8 * i32::from(p));
            }
            for (index, offset) in fields().into_iter().enumerate() {
                let value = self.b.block_params(block)[index];
                self.b.ins().store(aligned(), value, self.frame, offset);
            }
            self.b.ins().return_(&[]);
        }
    }
}

/// What a way out writes, as bits. It is shared by all places where the same is needed: written anew at each, it was two
/// thirds of the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WayOut {
    /// Registers of which lane 0 goes to the frame.
    scalars: u64,
    /// Registers of which all lanes go to the machine's.
    vectors: u64,
    preds: u64,
}

/// The fields of the frame that a way out gets as parameters.
fn fields() -> [i32; 5] {
    [at!(active), at!(pc), at!(budget), at!(leave), at!(exit)]
}

/// The offset of lane 0 of a register that is no vector.
fn scalar(r: u8) -> i32 {
    at!(scalars) + 8 * i32::from(r)
}
