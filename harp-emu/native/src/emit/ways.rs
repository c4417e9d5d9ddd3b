//! Ways into a region and out of it.

use cranelift_codegen::ir::{InstBuilder, JumpTableData, Value, types};

use super::block::{At, Stub};
use super::{Emitter, aligned};
use crate::body::Body;
use crate::class::Class;
use crate::frame::{Leave, at};
use crate::region::Key;
use crate::rows::Exit;
use crate::rules::Bits;

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
    fn way_in(&mut self, key: Key, refused: cranelift_codegen::ir::Block) {
        self.at = At::start(self.region, key);
        let mut bad: Option<Value> = None;
        let mut expected = Vec::new();
        let needed = self.needed_at(0);
        for r in bits_of(self.region.registers & needed.regs) {
            let index = usize::from(r);
            let class = self.at.state.regs[index];
            match class {
                Class::Const(_) => expected.push((r, class)),
                Class::Uniform | Class::Affine(_) => {
                    expected.push((r, class));
                    let (ty, registers) = (self.shape.int(), self.registers);
                    let offset = self.register_offset(r, 0);
                    let first = self.b.ins().load(ty, aligned(), registers, offset);
                    self.b.def_var(self.variables.scalars[index], first);
                }
                Class::Vector => {
                    for k in 0..self.shape.vectors() {
                        let (ty, registers) = (self.shape.int_vector(), self.registers);
                        let offset = self.register_offset(r, k);
                        let v = self.b.ins().load(ty, aligned(), registers, offset);
                        self.b.def_var(self.variables.vectors[index][k], v);
                    }
                }
            }
        }
        self.rows.entries.push(expected);
        for p in bits_of(self.preds[0] & needed.preds) {
            let predicates = self.predicates;
            let bits = self.b.ins().load(types::I64, aligned(), predicates, 8 * i32::from(p));
            if self.at.state.is_uniform_pred(p) && self.shape.lanes > 1 {
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

    fn register_offset(&self, r: u8, k: usize) -> i32 {
        let bytes = usize::from(r) * self.shape.lane_words * self.shape.bytes() + 16 * k;
        i32::try_from(bytes).unwrap_or(i32::MAX)
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
        let changed = self.at.local.changed & self.region.registers & needed.regs;
        let (mut rows, mut others) = (Vec::new(), 0);
        for r in bits_of(changed) {
            let class = self.reg(r).class;
            match class {
                Class::Const(_) => rows.push((r, class)),
                Class::Uniform | Class::Affine(_) => {
                    rows.push((r, class));
                    let scalar = self.reg_scalar(r);
                    let offset = at!(scalars) + 8 * i32::from(r);
                    self.b.ins().store(aligned(), scalar, self.frame, offset);
                }
                Class::Vector => {
                    others |= 1 << r;
                    let vectors = self.reg_vectors(r);
                    for (k, &v) in vectors.iter().enumerate() {
                        let (registers, offset) = (self.registers, self.register_offset(r, k));
                        self.b.ins().store(aligned(), v, registers, offset);
                    }
                }
            }
        }
        for p in bits_of(self.preds[1] & needed.preds) {
            let (bits, predicates) = (self.pred_bits(p), self.predicates);
            self.b.ins().store(aligned(), bits, predicates, 8 * i32::from(p));
        }
        let active = self.active_bits();
        if let (Place::At(pc), Body::Foreign { .. }) = (place, self.at.inst.body)
            && pc == self.at.inst.pc
        {
            others |= self.at.inst.registers().1.map_or(0, |dst| 1 << dst);
            let next = self.long(self.at.inst.next);
            self.b.ins().store(aligned(), next, self.frame, at!(next));
        }
        let pc = match place {
            Place::At(pc) => self.long(pc),
            Place::Value(value) => value,
        };
        let left = self.budget_left();
        let exits = &mut self.rows.exits;
        let leaves = Exit { rows, others };
        let exit = exits.iter().position(|other| *other == leaves).unwrap_or(exits.len());
        if exit == exits.len() {
            exits.push(leaves);
        }
        let exit = self.long(exit as u64);
        let fields = [
            (active, at!(active)),
            (pc, at!(pc)),
            (left, at!(budget)),
            (why, at!(leave)),
            (exit, at!(exit)),
        ];
        for (value, offset) in fields {
            self.b.ins().store(aligned(), value, self.frame, offset);
        }
        self.b.ins().return_(&[]);
    }
}

/// The numbers of the bits that are set, lowest first.
pub(super) fn bits_of(bits: u64) -> impl Iterator<Item = u8> {
    (0..64).filter(move |bit| bits >> bit & 1 != 0)
}
