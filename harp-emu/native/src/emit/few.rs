//! What is done lane by lane where few lanes are active.
//!
//! Loads from anywhere go lane by lane in any case, and what computes their addresses, and comes of what they load, would be
//! done for all lanes of the machine beside. If few are active, a loop over these does a whole run of such
//! instructions in each of them, on words. Its registers are in the machine's before and behind.
//!
//! An address may turn out not to be usable in any round. So registers that are needed where the region is left then are
//! written by a second loop, and all addresses of a store are checked before the first word is stored.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use harp_isa::{Opcode, Sharing};

use super::values::{PredVal, Val};
use super::{Emitter, aligned};
use crate::body::{Access, Body, Inst};
use crate::class::Class;
use crate::frame::{SCRATCH, scratch};
use crate::rows::bits_of;
use crate::rules::{is_integer, lanes};
use crate::state::State;

/// Instructions that can be done lane by lane.
struct Run {
    insts: Vec<Inst>,
    /// What is known behind them.
    after: State,
    /// Registers that they read before they write them, and those that they write, as bits.
    reads: u64,
    writes: u64,
    /// Of those that they write, the ones that lanes which are not active may read later.
    keeps: u64,
    /// Predicates that they write, as bits.
    preds: u64,
    loads: usize,
}

impl Emitter<'_, '_> {
    /// Emits those of a block's next instructions for few lanes and for many for which that is worth it. Returns how many
    /// these are.
    pub(super) fn few_lanes(&mut self, insts: &[Inst]) -> usize {
        if self.at.key.full || self.homes != u64::MAX {
            return 0;
        }
        if let Body::Store { value, base, offset, access } = self.at.inst.body
            && self.at.inst.sharing == Sharing::Each
            && self.at.state.regs[usize::from(base)] == Class::Vector
        {
            self.store_in_lanes(value, base, offset, access);
            return 1;
        }
        let run = self.run(insts);
        if run.loads > 0 {
            self.run_in_lanes(&run);
            return run.insts.len();
        }
        0
    }

    /// The longest run from the instruction on at which the emitter is.
    fn run(&self, insts: &[Inst]) -> Run {
        let after = self.at.state.clone();
        let [reads, writes, keeps, preds] = [0; 4];
        let mut run = Run { insts: Vec::new(), after, reads, writes, keeps, preds, loads: 0 };
        for &inst in insts {
            let mut after = run.after.clone();
            self.rules.step(&mut after, &inst, self.at.key.full);
            let (sources, dst) = inst.registers();
            let reads = sources.into_iter().chain(dst.filter(|_| inst.guard.is_some()));
            let reads = reads.fold(0, |bits, r| bits | 1u64 << r) & !run.writes;
            let writes = run.writes | dst.map_or(0, |dst| 1u64 << dst);
            // Who executes is counted before the run.
            let is_known = inst.guard.is_none_or(|guard| run.preds >> guard & 1 == 0);
            let fits = writes.count_ones() as usize <= SCRATCH && is_known;
            if !fits || !self.can_go_lane_by_lane(&run.after, &inst, &after) {
                break;
            }
            let waiting_read = self.rules.waiting_read(&run.after, &inst, self.at.key.full);
            run.reads |= reads;
            run.keeps |= dst.map_or(0, |dst| 1 << dst) & waiting_read;
            run.writes = writes;
            run.preds |= inst.pred_written().map_or(0, |pred| 1 << pred);
            if let Body::Load { base, .. } = inst.body {
                let is_any = run.after.regs[usize::from(base)] == Class::Vector;
                run.loads += usize::from(is_any);
            }
            run.insts.push(inst);
            run.after = after;
        }
        run
    }

    /// Whether an instruction between these states may be part of a run.
    fn can_go_lane_by_lane(&self, before: &State, inst: &Inst, after: &State) -> bool {
        let writes_vector =
            inst.registers().1.is_none_or(|dst| after.regs[usize::from(dst)] == Class::Vector);
        let writes_bits = inst.pred_written().is_none_or(|pred| !after.is_uniform_pred(pred));
        let is_one = match inst.body {
            Body::Map { opcode, .. } => is_of_words(opcode),
            Body::Test { .. } => !self.rules.agrees(before, inst),
            Body::Logic { logic, .. } => !logic.is_vote(),
            Body::Load { base, .. } => !before.regs[usize::from(base)].is_uniform(),
            _ => false,
        };
        inst.sharing == Sharing::Each && writes_vector && writes_bits && is_one
    }

    /// Emits a run.
    fn run_in_lanes(&mut self, run: &Run) {
        let (index, full) = (self.at.index, self.at.key.full);
        self.prepare(run.reads, run.keeps);
        for p in bits_of(run.insts.iter().fold(run.preds, |bits, inst| bits | inst.preds_read())) {
            self.pred_bits(p);
        }
        self.begin_leaving();
        let before = self.at.state.clone();
        for inst in &run.insts {
            self.at.inst = *inst;
            self.forget_executing();
            let lanes = lanes(&self.at.state, inst, full);
            if let Body::Load { .. } = inst.body {
                self.count_load(lanes);
            }
            self.count_inst(lanes);
            self.rules.step(&mut self.at.state, inst, full);
        }
        self.at.state = before;
        let needed = run.writes & self.needed_at(index + run.insts.len()).regs;
        let active = self.active_bits();
        let most = most_lanes(run, self.shape.vectors());
        let few = |e: &mut Self| e.in_each_lane(run, needed, active);
        let many = |e: &mut Self| {
            for (k, &inst) in run.insts.iter().enumerate() {
                (e.at.inst, e.at.index) = (inst, index + k);
                e.forget_executing();
                e.instruction();
            }
            bits_of(needed).for_each(|r| e.store_home(r));
            bits_of(run.preds).map(|p| e.pred_bits(p)).collect()
        };
        let preds = self.few_or_many(active, most, run.preds.count_ones(), few, many);
        self.at.state = run.after.clone();
        self.at.index = index + run.insts.len() - 1;
        self.forget_executing();
        bits_of(run.writes).for_each(|r| self.is_at_home_now(r));
        for (p, bits) in bits_of(run.preds).zip(preds) {
            self.at.local.preds[usize::from(p)] =
                PredVal { bits: Some(bits), ..PredVal::default() };
        }
        self.at.local.written_preds |= run.preds;
        self.at.has_effect = true;
    }

    /// Emits the instruction at which the emitter is, a store to addresses that may lie anywhere.
    fn store_in_lanes(&mut self, value: u8, base: u8, offset: u64, access: Access) {
        let (inst, full) = (self.at.inst, self.at.key.full);
        let lanes = lanes(&self.at.state, &inst, full);
        self.prepare(1 << value | 1 << base, 0);
        self.begin_leaving();
        let executing = self.executing_bits();
        self.count_store(lanes);
        self.count_inst(lanes);
        let few = |e: &mut Self| {
            for stores in [false, true] {
                let (each, mut lane) = e.begin_lanes(executing);
                let base = e.lane_word(base, &mut lane);
                let offset = e.constant(offset);
                let place = e.b.ins().iadd(base, offset);
                if stores {
                    let word = e.lane_word(value, &mut lane);
                    e.store_in_lane(word, place, access);
                } else {
                    e.leave_if_outside(place, access, true);
                }
                each.end(&mut e.b);
            }
            Vec::new()
        };
        let many = |e: &mut Self| {
            e.store(value, base, offset, access, lanes);
            Vec::new()
        };
        self.few_or_many(executing, MOST_STORES, 0, few, many);
        self.stored_to_slot(value, base, offset, access);
        self.rules.step(&mut self.at.state, &inst, full);
        self.at.has_effect = true;
    }

    /// Does something one way if at most as many lanes are set in `bits`, the other way if more are. What either makes
    /// but for its results nobody else knows.
    fn few_or_many(
        &mut self,
        bits: Value,
        most: i64,
        results: u32,
        few: impl FnOnce(&mut Self) -> Vec<Value>,
        many: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let count = self.b.ins().popcnt(bits);
        let are_few = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, count, most);
        let done = self.b.create_block();
        for _ in 0..results {
            self.b.append_block_param(done, types::I64);
        }
        let ways = self.branch(are_few);
        let mut way = |block, f: &mut dyn FnMut(&mut Self) -> Vec<Value>| {
            let (counted, slots, index) = (self.at.counted, self.at.slots.clone(), self.at.index);
            self.in_block(block, |e| {
                let values = f(e);
                e.b.ins().jump(done, &values.into_iter().map(Into::into).collect::<Vec<_>>());
            });
            (self.at.counted, self.at.slots, self.at.index) = (counted, slots, index);
        };
        let (mut few, mut many) = (Some(few), Some(many));
        way(ways[0], &mut |e| few.take().map_or_else(Vec::new, |f| f(e)));
        way(ways[1], &mut |e| many.take().map_or_else(Vec::new, |f| f(e)));
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.b.block_params(done).to_vec()
    }

    /// Brings registers that lanes `read`, as bits, to where each lane finds its words, and all lanes of those that it `keeps`
    /// to the machine's registers.
    fn prepare(&mut self, read: u64, keeps: u64) {
        for r in bits_of(read | keeps) {
            let is_vector = self.at.state.regs[usize::from(r)] == Class::Vector;
            if !is_vector {
                self.reg_scalar(r);
            }
            let is_wanted = is_vector || keeps >> r & 1 != 0;
            if is_wanted && !self.is_at_home(r.into()) {
                self.store_home(r);
                self.at.local.homed |= 1 << r;
                self.rows.stored |= 1 << r;
                self.at.has_effect = true;
            }
        }
    }

    /// Stores all vectors of a register in the machine's.
    fn store_home(&mut self, r: u8) {
        for (k, &v) in self.reg_vectors(r).iter().enumerate() {
            self.store_register(r.into(), k, v);
        }
    }

    /// The machine's register holds what was written to a register.
    fn is_at_home_now(&mut self, r: u8) {
        let (index, bit) = (usize::from(r), 1 << r);
        let local = &mut self.at.local;
        (local.regs[index], local.written[index]) = (Val::of(Class::Vector), None);
        local.homed |= bit;
        local.changed |= bit;
        local.written_regs |= bit;
        self.rows.stored |= bit;
    }

    /// A run in each of the `active` lanes, of which the registers that are `needed` behind it are written, as bits. Returns the
    /// predicates that it writes.
    fn in_each_lane(&mut self, run: &Run, needed: u64, active: Value) -> Vec<Value> {
        let left = self.at.stubs.last().map_or(u64::MAX, |stub| stub.needed.regs);
        let late: Vec<u8> = bits_of(needed & left).collect();
        let preds: Vec<(u8, Variable)> =
            bits_of(run.preds).map(|p| (p, self.b.declare_var(types::I64))).collect();
        for &(p, variable) in &preds {
            // Each round sets its lane's bit, or not.
            let bits = self.pred_bits(p);
            let others = self.b.ins().band_not(bits, active);
            self.b.def_var(variable, others);
        }
        let (each, mut lane) = self.begin_lanes(active);
        for &inst in &run.insts {
            self.in_lane(inst, &mut lane);
        }
        for r in bits_of(needed & !left) {
            let word = self.lane_word(r, &mut lane);
            self.store_lane_word(r, &lane, word);
        }
        if !late.is_empty() {
            let aside = self.lane_address(self.frame, lane.number);
            for (k, &r) in late.iter().enumerate() {
                let word = self.lane_word(r, &mut lane);
                self.b.ins().store(aligned(), word, aside, scratch(k));
            }
        }
        for &(p, variable) in &preds {
            let flag = self.lane_flag(p, &mut lane);
            self.put_bit(variable, lane.number, flag);
        }
        each.end(&mut self.b);
        if !late.is_empty() {
            let (each, lane) = self.begin_lanes(active);
            let aside = self.lane_address(self.frame, lane.number);
            for (k, &r) in late.iter().enumerate() {
                let ty = self.shape.int();
                let word = self.b.ins().load(ty, aligned(), aside, scratch(k));
                self.store_lane_word(r, &lane, word);
            }
            each.end(&mut self.b);
        }
        preds.iter().map(|&(_, variable)| self.b.use_var(variable)).collect()
    }
}

/// Whether the host does the operation on words in few instructions, and never stops.
fn is_of_words(opcode: Opcode) -> bool {
    is_integer(opcode) || matches!(opcode, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul)
}

/// With as many lanes at most a store takes less time lane by lane.
const MOST_STORES: i64 = 12;

/// With as many lanes at most a run takes less time lane by lane: a guess by the host's instructions.
fn most_lanes(run: &Run, vectors: usize) -> i64 {
    let others = run.insts.len() - run.loads;
    let in_all = 4 * vectors * others + (120 + 14 * vectors) * run.loads;
    let in_one = 12 + 3 * others + 8 * run.loads;
    (in_all / in_one) as i64
}
