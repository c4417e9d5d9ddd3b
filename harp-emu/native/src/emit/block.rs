//! The instructions of a block.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::check::Checked;
use super::slots::Slot;
use super::values::{PredVal, Val, Vectors};
use super::write::Written;
use super::{Emitter, aligned};
use crate::body::{Body, Inst};
use crate::class::Class;
use crate::frame::{Leave, at};
use crate::region::{Key, Region};
use crate::rules::{Lanes, lanes};
use crate::state::{Bits, State};

/// Registers and predicates as values.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) regs: Vec<Val>,
    /// Of registers that were written in some lanes only, what was written.
    pub(super) written: Vec<Option<Written>>,
    pub(super) preds: Vec<PredVal>,
    /// The predicates that the block has written.
    pub(super) written_preds: u64,
    /// The registers that the block has written.
    pub(super) written_regs: u64,
    /// Of those, the ones that the machine's registers hold all the same, as bits.
    pub(super) homed: u64,
    /// The registers that may differ from those in memory.
    pub(super) changed: u64,
    /// Addresses that can be accessed.
    pub(super) checked: Vec<Checked>,
}

impl Local {
    fn new(state: &State, changed: u64) -> Local {
        Local {
            regs: state.regs.iter().map(|&class| Val::of(class)).collect(),
            written: vec![None; state.regs.len()],
            preds: vec![PredVal::default(); 64],
            written_preds: 0,
            written_regs: 0,
            homed: 0,
            changed,
            checked: Vec::new(),
        }
    }
}

/// What was done in a block so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) issued: u64,
    /// Instructions, loads and stores that all active lanes executed.
    pub(super) plain: [u64; 3],
    /// Those that were done once for all.
    pub(super) once: [u64; 3],
    /// The sums of the lanes that executed others.
    pub(super) sums: [Option<Value>; 3],
    /// Instructions that count for all lanes that were activated.
    pub(super) activated: u64,
}

/// A place to go back to, and the stub that does.
#[derive(Clone, Debug)]
pub(super) struct Stub {
    pub(super) block: Block,
    pub(super) pc: u64,
    pub(super) local: Local,
    pub(super) counts: Counts,
    /// What must be written back.
    pub(super) needed: Bits,
}

/// Where the emitter is.
pub(super) struct At {
    pub(super) key: Key,
    pub(super) inst: Inst,
    /// The instruction's place in the block.
    pub(super) index: usize,
    /// What is known before the instruction.
    pub(super) state: State,
    pub(super) local: Local,
    pub(super) counts: Counts,
    /// Whether something has been done since the last stub's place that cannot be taken back.
    pub(super) has_effect: bool,
    pub(super) stubs: Vec<Stub>,
    /// The budget at the head of the block.
    pub(super) budget: Option<Value>,
    pub(super) masks: Masks,
    /// The words of memory whose contents are known.
    pub(super) slots: Vec<Slot>,
    /// Lanes whose number was taken, and it.
    pub(super) counted: Option<(Value, Value)>,
}

/// Lanes, as bits and as vectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    /// The active ones.
    active: Option<Value>,
    active_vectors: Option<Vectors>,
    /// Those that execute the instruction.
    executing: Option<Value>,
    executing_vectors: Option<Vectors>,
    /// Those of the active ones that executed the last guarded instruction, and its guard.
    guarded: Option<(Value, Value)>,
    guarded_vectors: Option<Vectors>,
}

impl At {
    pub(super) fn start(region: &Region, key: Key) -> At {
        let block = &region.blocks[&key];
        At {
            key,
            inst: block.insts[0],
            index: 0,
            state: block.state.clone(),
            local: Local::new(&block.state, block.changed),
            counts: Counts::default(),
            has_effect: true,
            stubs: Vec::new(),
            budget: None,
            masks: Masks::default(),
            slots: Vec::new(),
            counted: None,
        }
    }
}

impl Emitter<'_, '_> {
    /// Emits a block.
    pub(super) fn block(&mut self, key: Key) {
        let insts = self.region.blocks[&key].insts.clone();
        self.at = At::start(self.region, key);
        self.b.switch_to_block(self.blocks[&key]);
        let budget = self.b.use_var(self.variables.budget);
        self.at.budget = Some(budget);
        self.take_slots();
        self.begin_leaving();
        let short = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, budget, insts.len() as i64);
        self.leave_if(short, Leave::Budget);
        let mut is_open = true;
        let count = insts.len();
        let mut index = 0;
        while let Some(&inst) = insts.get(index) {
            (self.at.inst, self.at.index) = (inst, index);
            self.rules.arrive(&mut self.at.state, inst.pc, key.full);
            self.forget_executing();
            if index + 1 == count && inst.ends_block() {
                self.control();
                is_open = false;
                break;
            }
            index += match self.few_lanes(&insts[index..]) {
                0 => {
                    self.instruction();
                    1
                }
                done => done,
            };
        }
        if is_open {
            let next = Key { pc: self.at.inst.next, ..key };
            let mut state = self.at.state.clone();
            self.rules.arrive(&mut state, next.pc, next.full);
            self.go(next, &state);
        }
        for stub in std::mem::take(&mut self.at.stubs) {
            self.stub(stub);
        }
    }

    pub(super) fn instruction(&mut self) {
        let inst = self.at.inst;
        let lanes = lanes(&self.at.state, &inst, self.at.key.full);
        let mut after = self.at.state.clone();
        self.rules.step(&mut after, &inst, self.at.key.full);
        match inst.body {
            Body::Map { opcode, dst, sources, count } => {
                let val = self.map(opcode, &sources[..count], lanes);
                self.write(dst, val, lanes, &after);
            }
            Body::Test { compare, dst, a, b } => {
                let val = self.test(compare, a, b, lanes);
                self.write_pred(dst, val, lanes, &after);
            }
            Body::Logic { logic, dst, a, b } => {
                let val = self.logic(logic, a, b);
                self.write_pred(dst, val, lanes, &after);
            }
            Body::FromPred { dst, src } => {
                let val = self.pred_word(src);
                self.write(dst, val, lanes, &after);
            }
            Body::Load { dst, base, offset, access } => {
                let val = self.load(base, offset, access, lanes);
                self.write(dst, val, lanes, &after);
            }
            Body::Store { value, base, offset, access } => {
                self.store(value, base, offset, access, lanes);
            }
            Body::Atomic { update, dst, address, value, access } => {
                let val = self.atomic(update, (dst, address, value), access, lanes);
                self.write(dst, val, lanes, &after);
            }
            Body::Csr { dst, index } => {
                let val = self.csr(index);
                self.write(dst, val, lanes, &after);
            }
            Body::Ballot { dst, src, index } => {
                let (bits, executing) = (self.pred_bits(src), self.executing_bits());
                let chosen = self.b.ins().band(bits, executing);
                let val = self.mask_word(chosen, index);
                self.write(dst, val, lanes, &after);
            }
            Body::Shuffle { dst, value, from } => {
                let val = self.shuffle(value, from);
                let val = if self.shape.lanes == 1 { self.coerce_first(val) } else { val };
                self.write(dst, val, lanes, &after);
            }
            Body::Jump { link: Some(link), .. } => {
                let val = Val::of(Class::Const(inst.next));
                self.write(link, val, lanes, &after);
            }
            _ => {}
        }
        self.count_inst(lanes);
        self.at.state = after;
    }

    fn coerce_first(&mut self, mut val: Val) -> Val {
        val.class = Class::Uniform;
        let scalar = self.scalar(&mut val);
        Val::uniform(scalar)
    }

    fn pred_word(&mut self, src: u8) -> Val {
        if self.at.state.is_uniform_pred(src) || self.at.inst.is_once() {
            let flag = self.first_flag(src);
            let ty = self.shape.int();
            return Val::uniform(self.b.ins().uextend(ty, flag));
        }
        let vectors = self.pred_vectors(src);
        let one = self.vector_constant(self.shape.int_vector(), |_| 1);
        Val::vector(self.each(&vectors, |e, v| e.b.ins().band(v, one)))
    }

    fn csr(&mut self, index: u8) -> Val {
        let place = |number: usize| at!(place) + 8 * number as i32;
        let offset = match index {
            0 => {
                let class = if self.shape.lanes == 1 { Class::Const(0) } else { Class::Affine(1) };
                let scalar = Some(self.constant(0));
                return Val { class, scalar, vectors: None };
            }
            3 => return Val::of(Class::Const(self.shape.lanes as u64)),
            4 => return Val::of(Class::Const(self.shape.arch.warps().into())),
            8 | 9 => {
                let active = self.active_bits();
                return self.mask_word(active, index - 8);
            }
            1 => place(0),
            2 => place(1),
            _ => place(2),
        };
        let ty = self.shape.int();
        Val::uniform(self.b.ins().load(ty, aligned(), self.frame, offset))
    }

    /// Word number `index` of a mask.
    fn mask_word(&mut self, bits: Value, index: u8) -> Val {
        let width = i64::from(self.shape.word.bits());
        let word = match (self.shape.bytes(), index) {
            (4, 0) => self.b.ins().ireduce(types::I32, bits),
            (4, _) => {
                let high = self.b.ins().ushr_imm_u(bits, width);
                self.b.ins().ireduce(types::I32, high)
            }
            (_, 0) => bits,
            _ => self.long(0),
        };
        Val::uniform(word)
    }

    // Masks

    /// Another instruction executes, or the same one in other lanes.
    pub(super) fn forget_executing(&mut self) {
        (self.at.masks.executing, self.at.masks.executing_vectors) = (None, None);
    }

    /// Makes these lanes the active ones. What those before have done is counted.
    pub(super) fn activate(&mut self, active: Value) {
        self.at.masks = Masks { active: Some(active), ..Masks::default() };
    }

    pub(super) fn active_bits(&mut self) -> Value {
        let active = match self.at.masks.active {
            Some(active) => active,
            None if self.at.key.full => self.long(self.shape.full()),
            None => self.b.use_var(self.variables.active),
        };
        self.at.masks.active = Some(active);
        active
    }

    /// The lanes that execute the instruction, as bits.
    pub(super) fn executing_bits(&mut self) -> Value {
        if let Some(bits) = self.at.masks.executing {
            return bits;
        }
        let bits = match (self.at.inst.guard, self.at.key.full) {
            (None, _) => self.active_bits(),
            (Some(guard), true) => self.pred_bits(guard),
            (Some(guard), false) => {
                let (active, bits) = (self.active_bits(), self.pred_bits(guard));
                match self.at.masks.guarded {
                    Some((executing, known)) if known == bits => executing,
                    _ => {
                        let executing = self.b.ins().band(active, bits);
                        self.at.masks.guarded = Some((executing, bits));
                        self.at.masks.guarded_vectors = None;
                        executing
                    }
                }
            }
        };
        self.at.masks.executing = Some(bits);
        bits
    }

    /// The lanes that execute the instruction, as vectors.
    pub(super) fn executing_vectors(&mut self) -> Vectors {
        if let Some(vectors) = &self.at.masks.executing_vectors {
            return vectors.clone();
        }
        let vectors = match (self.at.inst.guard, self.at.key.full) {
            (None, _) => self.active_vectors(),
            (Some(guard), true) => self.pred_vectors(guard),
            (Some(_), false) => {
                // From bits: what a comparison yields blends with one instruction.
                let bits = self.executing_bits();
                let known = self.at.masks.guarded_vectors.clone();
                let vectors = known.unwrap_or_else(|| self.expand(bits));
                self.at.masks.guarded_vectors = Some(vectors.clone());
                vectors
            }
        };
        self.at.masks.executing_vectors = Some(vectors.clone());
        vectors
    }

    pub(super) fn active_vectors(&mut self) -> Vectors {
        if let Some(vectors) = &self.at.masks.active_vectors {
            return vectors.clone();
        }
        let bits = self.active_bits();
        let vectors = self.expand(bits);
        self.at.masks.active_vectors = Some(vectors.clone());
        vectors
    }

    /// Those of the lanes that execute.
    pub(super) fn only_executing(&mut self, bits: Value) -> Value {
        let executing = self.executing_bits();
        self.b.ins().band(bits, executing)
    }

    // Counts

    /// Counts the instruction.
    pub(super) fn count_inst(&mut self, lanes: Lanes) {
        self.at.counts.issued += 1;
        self.count(0, lanes);
    }

    pub(super) fn count_load(&mut self, lanes: Lanes) {
        self.count(1, lanes);
    }

    pub(super) fn count_store(&mut self, lanes: Lanes) {
        self.count(2, lanes);
    }

    /// Counts an instruction, a load or a store, which are numbers 0 to 2 of [`Counts`].
    pub(super) fn count(&mut self, what: usize, lanes: Lanes) {
        let is_once = self.at.inst.is_once();
        if lanes == Lanes::All || self.at.inst.guard.is_none() {
            let counts = &mut self.at.counts;
            let counts = if is_once { &mut counts.once } else { &mut counts.plain };
            counts[what] += 1;
            return;
        }
        let bits = self.executing_bits();
        let count = if is_once { self.once_if_any(bits) } else { self.number_of(bits) };
        let sum = match self.at.counts.sums[what] {
            Some(sum) => self.b.ins().iadd(sum, count),
            None => count,
        };
        self.at.counts.sums[what] = Some(sum);
    }

    /// The number of lanes.
    fn number_of(&mut self, bits: Value) -> Value {
        let count = match self.at.counted {
            Some((counted, count)) if counted == bits => count,
            _ => self.b.ins().popcnt(bits),
        };
        self.at.counted = Some((bits, count));
        count
    }

    /// Adds what was counted to the frame's counts.
    pub(super) fn settle(&mut self) {
        let issued = self.at.counts.issued;
        let counts = std::mem::replace(&mut self.at.counts, Counts { issued, ..Counts::default() });
        self.flush(&counts);
    }

    /// Adds counts to the frame's.
    fn flush(&mut self, counts: &Counts) {
        let fields = [at!(insts), at!(loads), at!(stores)];
        for (what, offset) in fields.into_iter().enumerate() {
            let mut added = counts.sums[what];
            let mut add = |e: &mut Self, value| {
                added = Some(match added {
                    Some(sum) => e.b.ins().iadd(sum, value),
                    None => value,
                });
            };
            if counts.plain[what] > 0 {
                let value = if self.at.key.full {
                    self.long(counts.plain[what] * self.shape.lanes as u64)
                } else {
                    let active = self.active_bits();
                    let lanes = self.b.ins().popcnt(active);
                    self.b.ins().imul_imm_s(lanes, counts.plain[what] as i64)
                };
                add(self, value);
            }
            if counts.once[what] > 0 {
                let value = self.long(counts.once[what]);
                add(self, value);
            }
            if what == 0 && counts.activated > 0 {
                let activated =
                    self.b.ins().load(types::I64, aligned(), self.frame, at!(activated));
                let value = self.b.ins().imul_imm_s(activated, counts.activated as i64);
                add(self, value);
            }
            if let Some(added) = added {
                let old = self.b.ins().load(types::I64, aligned(), self.frame, offset);
                let new = self.b.ins().iadd(old, added);
                self.b.ins().store(aligned(), new, self.frame, offset);
            }
        }
    }

    // Leaving

    /// What is needed before instruction number `index` of the block.
    pub(super) fn needed_at(&self, index: usize) -> Bits {
        let block = self.live.get(&self.at.key.first());
        block.and_then(|bits| bits.get(index)).copied().unwrap_or(Bits::ALL)
    }

    /// From here on it may be left: to here, if something has been done that cannot be taken back.
    pub(super) fn begin_leaving(&mut self) {
        if !std::mem::replace(&mut self.at.has_effect, false) {
            return;
        }
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        self.b.append_block_param(block, types::I64);
        self.at.stubs.push(Stub {
            block,
            pc: if self.at.counts.issued == 0 { self.at.key.pc } else { self.at.inst.pc },
            local: self.at.local.clone(),
            counts: self.at.counts.clone(),
            needed: self.needed_at(if self.at.counts.issued == 0 { 0 } else { self.at.index }),
        });
    }

    /// Leaves if `bad`.
    pub(super) fn leave_if(&mut self, bad: Value, why: Leave) {
        if self.known(bad) == Some(0) {
            return;
        }
        let bad = self.or_in_any_case(bad);
        self.leave_only_if(bad, why);
    }

    /// Leaves if `bad`, never in any other case.
    pub(super) fn leave_only_if(&mut self, bad: Value, why: Leave) {
        if let Some(either) = self.disjuncts(bad) {
            // Two jumps behind comparisons are shorter than the two results and what joins them.
            return either.into_iter().for_each(|bad| self.leave_only_if(bad, why));
        }
        let Some(stub) = self.at.stubs.last().map(|stub| stub.block) else { return };
        let why = self.long(why as u64);
        let go_on = self.b.create_block();
        self.b.ins().brif(bad, stub, &[why.into()], go_on, &[]);
        self.b.seal_block(go_on);
        self.b.switch_to_block(go_on);
    }

    /// `bad`, or whether the frame says that it is to be left here.
    pub(super) fn or_in_any_case(&mut self, bad: Value) -> Value {
        if !self.rules.leaves {
            return bad;
        }
        let leaving = self.b.ins().load(types::I64, aligned(), self.frame, at!(leaving));
        let is_here = self.b.ins().icmp_imm_s(IntCC::Equal, leaving, self.places);
        self.places += 1;
        self.b.ins().bor(bad, is_here)
    }

    /// Leaves if `bad` and any lane executes.
    pub(super) fn leave_if_executing(&mut self, bad: Value, why: Leave) {
        if self.at.inst.guard.is_none() {
            return self.leave_if(bad, why);
        }
        if self.known(bad) == Some(0) {
            return;
        }
        let bits = self.executing_bits();
        let some = self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
        let bad = self.b.ins().band(bad, some);
        self.leave_if(bad, why);
    }

    /// Leaves if any lane executes.
    pub(super) fn leave_always(&mut self, why: Leave) {
        self.begin_leaving();
        let bad = self.b.ins().iconst(types::I8, 1);
        self.leave_if_executing(bad, why);
    }
}
