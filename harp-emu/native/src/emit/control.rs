//! Jumps, splits and joins, and the edges between blocks.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::values::{Val, Vectors};
use super::ways::Place;
use super::{Emitter, aligned};
use crate::body::Body;
use crate::class::Class;
use crate::code;
use crate::frame::{ENTRIES, Leave, NOWHERE, RawEntry, at};
use crate::region::Key;
use crate::rows::bits_of;
use crate::rules::{Lanes, lanes};
use crate::state::{Bits, State};

/// Where a jump goes.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// To an address.
    At(u64),
    /// Out of the region, to what all lanes of a register hold.
    In(u8),
}

/// Bytes of an entry of the divergence stack.
const ENTRY_BYTES: i32 = size_of::<RawEntry>() as i32;

/// What an entry of the divergence stack says.
struct Entry {
    mask: Value,
    resume: Value,
}

impl Emitter<'_, '_> {
    /// Emits the last instruction of a block that ends with one of control.
    pub(super) fn control(&mut self) {
        match self.at.inst.body {
            Body::Jump { link, target } => self.jump(link, Target::At(target)),
            Body::JumpTo { link, target } => {
                let place = self.rules.target(&self.at.state, &self.at.inst, link, target);
                let is_uniform = self.at.state.regs[usize::from(target)].is_uniform();
                match place {
                    Some(pc) => self.jump(link, Target::At(pc)),
                    None if is_uniform => self.jump(link, Target::In(target)),
                    None => self.foreign(),
                }
            }
            Body::Split => self.split(),
            Body::Join => self.join(),
            Body::Barrier { id, warps } => self.barrier(id, warps),
            _ => self.foreign(),
        }
    }

    /// Leaves the instruction to the interpreter.
    fn foreign(&mut self) {
        let needed = self.needed_at(self.at.index);
        self.exit(Place::At(self.at.inst.pc), Leave::Foreign, needed);
    }

    /// Leaves for a barrier, whose operands are those of the first active lane, unless the warp passes it alone.
    fn barrier(&mut self, id: u8, warps: u8) {
        if self.at.inst.guard.is_some() {
            return self.foreign();
        }
        let [id, warps] = [id, warps].map(|r| {
            let val = self.reg(r);
            let mut first = self.in_first(val);
            let word = self.scalar(&mut first);
            self.lengthen(word)
        });
        let insts = match self.at.inst.is_once() {
            true => self.long(1),
            false => {
                let active = self.active_bits();
                self.b.ins().popcnt(active)
            }
        };
        for (k, word) in [id, warps, insts].into_iter().enumerate() {
            self.b.ins().store(aligned(), word, self.frame, at!(barrier) + 8 * k as i32);
        }
        if self.rules.passes {
            self.pass_if_alone(warps);
        }
        let needed = self.needed_at(self.at.index);
        self.exit(Place::At(self.at.inst.pc), Leave::Barrier, needed);
    }

    /// Goes on behind a barrier for so many warps, if the warp passes it alone.
    fn pass_if_alone(&mut self, warps: Value) {
        let is_for_one = self.b.ins().icmp_imm_s(IntCC::Equal, warps, 1);
        let blocks @ [alone, on, waits] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(is_for_one, alone, &[], waits, &[]);
        self.b.switch_to_block(alone);
        let active = self.active_bits();
        self.b.ins().store(aligned(), active, self.frame, at!(active));
        let call = self.call_host(code::passes_address(), &[], Some(types::I64));
        let passes = self.b.inst_results(call)[0];
        self.b.ins().brif(passes, on, &[], waits, &[]);
        blocks.iter().for_each(|&block| self.b.seal_block(block));
        self.in_block(on, Self::pass);
        self.b.switch_to_block(waits);
    }

    /// Goes on behind a barrier.
    fn pass(&mut self) {
        let (inst, full) = (self.at.inst, self.at.key.full);
        let mut state = self.at.state.clone();
        self.count_inst(lanes(&state, &inst, full));
        self.rules.step(&mut state, &inst, full);
        self.at.slots.clear();
        self.rules.arrive(&mut state, inst.next, full);
        self.go(Key::new(inst.next, full), &state);
    }

    /// Whether the lanes are known to agree on the guard.
    fn has_uniform_guard(&self) -> bool {
        self.at.inst.guard.is_some_and(|guard| self.at.state.is_uniform_pred(guard))
    }

    /// Blocks for a condition, from which the second one goes on.
    pub(super) fn branch(&mut self, condition: Value) -> [Block; 2] {
        let ways = [self.b.create_block(), self.b.create_block()];
        self.b.ins().brif(condition, ways[0], &[], ways[1], &[]);
        ways.iter().for_each(|&way| self.b.seal_block(way));
        ways
    }

    /// Emits something in a block, from the state here.
    pub(super) fn in_block(&mut self, block: Block, f: impl FnOnce(&mut Self)) {
        let (local, counts) = (self.at.local.clone(), self.at.counts.clone());
        let (masks, state, inst) = (self.at.masks.clone(), self.at.state.clone(), self.at.inst);
        self.b.switch_to_block(block);
        f(self);
        (self.at.local, self.at.counts) = (local, counts);
        (self.at.masks, self.at.state, self.at.inst) = (masks, state, inst);
    }

    /// Jumps where the guard says so. Lanes must agree.
    fn jump(&mut self, link: Option<u8>, target: Target) {
        let (inst, full) = (self.at.inst, self.at.key.full);
        let lanes = lanes(&self.at.state, &inst, full);
        if inst.guard.is_none() {
            self.count_inst(lanes);
            return self.taken(link, target);
        }
        self.begin_leaving();
        let uniform_guard = inst.guard.filter(|_| self.has_uniform_guard());
        let condition = if let Some(guard) = uniform_guard {
            // All active lanes execute it if it is taken, else none.
            self.at.counts.issued += 1;
            self.pred_flag(guard)
        } else {
            self.count_inst(lanes);
            self.executing_bits()
        };
        let [some, none] = self.branch(condition);
        self.in_block(none, |e| {
            let state = e.at.state.clone();
            e.go(Key::new(inst.next, full), &state);
        });
        self.b.switch_to_block(some);
        if uniform_guard.is_some() {
            self.count(0, Lanes::All);
        } else {
            let active = self.active_bits();
            let differ = self.b.ins().icmp(IntCC::NotEqual, condition, active);
            self.leave_if(differ, Leave::Trap);
        }
        self.taken(link, target);
    }

    /// The jump, which all active lanes take.
    fn taken(&mut self, link: Option<u8>, target: Target) {
        match target {
            Target::At(pc) => {
                let state = self.write_link(link);
                self.go(Key::new(pc, self.at.key.full), &state);
            }
            Target::In(register) => {
                let place = self.reg_scalar(register);
                let place = self.lengthen(place);
                self.write_link(link);
                let needed = Bits::ALL.without(self.at.state.garbage);
                self.exit(Place::Value(place), Leave::End, needed);
            }
        }
    }

    /// Writes the link in all active lanes. Returns what is known then.
    fn write_link(&mut self, link: Option<u8>) -> State {
        let full = self.at.key.full;
        self.at.inst.guard = None;
        self.forget_executing();
        let mut after = self.at.state.clone();
        self.rules.step(&mut after, &self.at.inst, full);
        if let Some(link) = link {
            let val = Val::of(Class::Const(self.at.inst.next));
            let lanes = lanes(&self.at.state, &self.at.inst, full);
            self.write(link, val, lanes, &after);
        }
        self.at.state = after.clone();
        after
    }

    // The divergence stack

    fn stack_len(&mut self) -> Value {
        self.b.ins().load(types::I64, aligned(), self.frame, at!(stack_len))
    }

    /// The host's address of entry number `len`, less the offset of the stack in the frame.
    fn entry(&mut self, len: Value) -> Value {
        let distance = self.b.ins().imul_imm_s(len, i64::from(ENTRY_BYTES));
        let frame = self.frame;
        self.b.ins().iadd(frame, distance)
    }

    fn split(&mut self) {
        let (inst, full) = (self.at.inst, self.at.key.full);
        let may_diverge = inst.guard.is_some() && !self.has_uniform_guard();
        let known = self.rules.edges(&self.at.state, &inst, full)[0].1.clone();
        self.begin_leaving();
        let (active, taken) = (self.active_bits(), self.executing_bits());
        let len = self.push_checked(if may_diverge { 2 } else { 1 });
        self.at.counts.issued += 1;
        self.at.counts.activated += 1;
        self.settle();
        if may_diverge {
            let others = self.b.ins().bxor(active, taken);
            let some = self.b.ins().icmp_imm_s(IntCC::NotEqual, taken, 0);
            let rest = self.b.ins().icmp_imm_s(IntCC::NotEqual, others, 0);
            let diverges = self.b.ins().band(some, rest);
            let [apart, together] = self.branch(diverges);
            self.in_block(apart, |e| {
                let resume = e.long(inst.next);
                e.push(len, 0, active, None);
                e.push(len, 1, others, Some(resume));
                e.pushed(len, 2);
                e.go_with(Key::new(inst.next, false), &known, taken);
            });
            self.b.switch_to_block(together);
        }
        self.push(len, 0, active, None);
        self.pushed(len, 1);
        self.go(Key::new(inst.next, full), &known);
    }

    /// Leaves if there is no room for `count` entries. Returns how many there are.
    fn push_checked(&mut self, count: i64) -> Value {
        let len = self.stack_len();
        let limit = self.b.ins().load(types::I64, aligned(), self.frame, at!(stack_limit));
        let after = self.b.ins().iadd_imm_s(len, count);
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, after, limit);
        self.leave_if(over, Leave::Trap);
        len
    }

    fn push(&mut self, len: Value, number: i32, mask: Value, resume: Option<Value>) {
        let entry = self.entry(len);
        let base = at!(stack) + number * ENTRY_BYTES;
        let resume = resume.unwrap_or_else(|| self.long(NOWHERE));
        let behind = self.long(self.at.inst.next);
        for (k, word) in [mask, resume, behind].into_iter().enumerate() {
            self.b.ins().store(aligned(), word, entry, base + 8 * k as i32);
        }
    }

    fn pushed(&mut self, len: Value, count: i64) {
        let len = self.b.ins().iadd_imm_s(len, count);
        self.b.ins().store(aligned(), len, self.frame, at!(stack_len));
        let old = self.b.ins().load(types::I64, aligned(), self.frame, at!(high_water));
        let new = self.b.ins().umax(old, len);
        self.b.ins().store(aligned(), new, self.frame, at!(high_water));
    }

    /// Removes the topmost entry; leaves if there is none.
    fn pop(&mut self) -> Entry {
        let len = self.stack_len();
        let limit = self.long(ENTRIES as u64);
        let less = self.b.ins().iadd_imm_s(len, -1);
        let bad = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, less, limit);
        self.leave_if(bad, Leave::Trap);
        self.b.ins().store(aligned(), less, self.frame, at!(stack_len));
        let entry = self.entry(less);
        let mut word = |k: i32| self.b.ins().load(types::I64, aligned(), entry, at!(stack) + 8 * k);
        Entry { mask: word(0), resume: word(1) }
    }

    fn join(&mut self) {
        let (inst, full) = (self.at.inst, self.at.key.full);
        self.begin_leaving();
        let level = self.at.state.stack.last().copied();
        let Entry { mask, resume } = self.pop();
        self.at.counts.issued += 1;
        self.at.counts.activated += 1;
        self.settle();
        let mut popped = self.at.state.clone();
        popped.stack.pop();
        let resumes = self.b.ins().icmp_imm_s(IntCC::NotEqual, resume, NOWHERE.cast_signed());
        let [other, next] = self.branch(resumes);
        self.in_block(other, |e| {
            let state = e.at.state.clone();
            match level {
                Some(level) if !full => {
                    e.go_with(Key::new(level.behind, false), &state, mask);
                }
                _ => {
                    e.activate(mask);
                    let needed = Bits::ALL.without(state.garbage);
                    e.exit(Place::Value(resume), Leave::End, needed);
                }
            }
        });
        self.b.switch_to_block(next);
        match level.and_then(|level| level.was_full) {
            Some(was_full) => {
                self.go_with(Key::new(inst.next, was_full), &popped, mask);
            }
            None => {
                let all = self.long(self.shape.full());
                let is_full = self.b.ins().icmp(IntCC::Equal, mask, all);
                let [all, some] = self.branch(is_full);
                self.in_block(all, |e| e.go_with(Key::new(inst.next, true), &popped, mask));
                self.b.switch_to_block(some);
                self.go_with(Key::new(inst.next, false), &popped, mask);
            }
        }
    }

    // Edges

    /// Goes on at `key` with other active lanes. What the lanes before have done is counted.
    fn go_with(&mut self, key: Key, state: &State, active: Value) {
        self.activate(active);
        self.go(key, state);
    }

    /// Goes on at `key`, where `state` holds.
    pub(super) fn go(&mut self, key: Key, state: &State) {
        self.settle();
        let not_garbage = Bits::ALL.without(state.garbage);
        let key = self.region.loops.target(self.at.key, &self.at.inst, key);
        let block = self.region.blocks.get(&key);
        let block = block.filter(|block| state.has_stack(&block.state.stack));
        let slots = block.and_then(|block| self.all_followed(&block.state));
        let (Some(block), Some(slots)) = (block, slots) else {
            return self.exit(Place::At(key.pc), Leave::End, not_garbage);
        };
        let needed = self.live.get(&key.first()).and_then(|bits| bits.first()).copied();
        let needed = needed.unwrap_or(Bits::ALL);
        if let Some(bad) = self.unmet(&block.state, state, needed) {
            let bad = self.or_in_any_case(bad);
            let [out, on] = self.branch(bad);
            self.in_block(out, |e| e.exit(Place::At(key.pc), Leave::Guard, not_garbage));
            self.b.switch_to_block(on);
        }
        self.define(&block.state, needed);
        self.define_slots(slots);
        let left = self.budget_left();
        self.b.def_var(self.variables.budget, left);
        if !key.full {
            let active = self.active_bits();
            self.b.def_var(self.variables.active, active);
        }
        let target = self.blocks[&key];
        self.b.ins().jump(target, &[]);
    }

    /// Defines the variables that a block needs before which `state` holds, and brings home what it expects there.
    fn define(&mut self, state: &State, needed: Bits) {
        let mut homed: Vec<(usize, Vectors)> = Vec::new();
        for r in bits_of(self.region.registers & needed.regs) {
            let index = usize::from(r);
            let class = state.regs[index];
            let local = self.at.local.regs[index].clone();
            let has_no_form = local.scalar.is_none() && local.vectors.is_none();
            if has_no_form && local.class == class {
                // The variables have it.
                continue;
            }
            match class {
                Class::Const(_) => {}
                Class::Uniform | Class::Affine(_) => {
                    let scalar = self.reg_scalar(r);
                    self.b.def_var(self.variables.scalars[index], scalar);
                }
                Class::Vector if self.is_at_home(index) => {}
                Class::Vector if self.has_home(index) => {
                    self.rows.stored |= 1 << r;
                    homed.push((index, self.reg_vectors(r)));
                }
                Class::Vector => {
                    let vectors = self.reg_vectors(r);
                    for (k, &v) in vectors.iter().enumerate() {
                        self.b.def_var(self.variables.vectors[index][k], v);
                    }
                }
            }
        }
        // One vector of all registers after the other, so that little is alive at the same time: see `late`.
        for k in 0..self.shape.vectors() {
            homed.iter().for_each(|(r, vectors)| self.store_register(*r, k, vectors[k]));
        }
        for p in bits_of(self.at.local.written_preds & needed.preds) {
            let bits = self.pred_bits(p);
            self.b.def_var(self.variables.preds[usize::from(p)], bits);
        }
    }

    /// Whether what the target expects, and is not known to hold, does not; `None` if all of it is known.
    fn unmet(&mut self, expected: &State, known: &State, needed: Bits) -> Option<Value> {
        let mut bad: Option<Value> = None;
        for r in bits_of(self.region.registers & needed.regs) {
            let index = usize::from(r);
            let class = expected.regs[index];
            if known.regs[index].join(class) != class {
                let differs = self.differs(r, class);
                bad = Some(self.either(bad, differs));
            }
        }
        let preds = expected.uniform_preds & !known.uniform_preds & self.preds[0] & needed.preds;
        for p in bits_of(preds) {
            let bits = self.pred_bits(p);
            let differs = self.differs_among_lanes(bits);
            bad = Some(self.either(bad, differs));
        }
        bad
    }

    pub(super) fn either(&mut self, a: Option<Value>, b: Value) -> Value {
        match a {
            Some(a) => self.b.ins().bor(a, b),
            None => b,
        }
    }

    /// Whether the bits are neither all set nor none.
    pub(super) fn differs_among_lanes(&mut self, bits: Value) -> Value {
        let some = self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
        let full = self.long(self.shape.full());
        let rest = self.b.ins().icmp(IntCC::NotEqual, bits, full);
        self.b.ins().band(some, rest)
    }

    /// Whether a register's value is not of that class.
    fn differs(&mut self, r: u8, class: Class) -> Value {
        let vectors = self.reg_vectors(r);
        self.differ_from(&vectors, class)
    }

    /// Whether these are not of that class.
    pub(super) fn differ_from(&mut self, vectors: &[Value], class: Class) -> Value {
        let mut val = match class {
            Class::Const(_) => Val::of(class),
            _ => {
                let first = self.b.ins().extractlane(vectors[0], 0);
                Val { class, scalar: Some(first), vectors: None }
            }
        };
        let wanted = self.vectors(&mut val);
        let mut differ = self.zip(vectors, &wanted, |e, a, b| e.b.ins().bxor(a, b));
        if let (false, Some(last)) = (self.shape.is_whole(), differ.last_mut()) {
            let (first, lanes) = ((vectors.len() - 1) * self.shape.per_vector(), self.shape.lanes);
            let ty = self.shape.int_vector();
            let real = self.vector_constant(ty, |i| if first + i < lanes { u64::MAX } else { 0 });
            *last = self.b.ins().band(*last, real);
        }
        let all = differ.into_iter().reduce(|a, b| self.b.ins().bor(a, b));
        match all {
            Some(all) => self.b.ins().vany_true(all),
            None => self.b.ins().iconst(types::I8, 0),
        }
    }
}
