//! Accesses to addresses that may lie anywhere.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;

use super::super::parts::{
    LaneLoop, expand, guest, is_beyond, load, load_odd, narrow, store, store_odd, vector_constant,
    vector_of,
};
use super::super::values::Vectors;
use super::super::{Emitter, aligned};
use super::Helper;
use crate::body::{Access, Update};
use crate::frame::{Leave, at, scratch};
use crate::rules::Lanes;
use crate::shape::Shape;

/// What such a function does, with the addresses in scratch vector 0. Where one of them is not usable it does nothing but
/// say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Anywhere {
    access: Access,
    task: Task,
    /// Whether all lanes execute. Otherwise the frame says which.
    all: bool,
    /// Whether words need not be aligned.
    odd: bool,
}

/// How it accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Loads into scratch vector 3; lanes that do not execute get any word.
    Load,
    /// Stores the words in scratch vector 1, lowest lane first.
    Store,
    /// Does an atomic operation with the words in scratch vector 1, lowest lane first, if it compares, with those in scratch
    /// vector 2. What was there goes into scratch vector 3.
    Update(Update),
}

impl Emitter<'_, '_> {
    /// Loads from any addresses; leaves if one is not usable.
    pub(in super::super) fn gather(
        &mut self,
        addresses: &[Value],
        access: Access,
        lanes: Lanes,
    ) -> Vec<Value> {
        self.put_scratch(0, addresses);
        let executing = self.if_not_all(lanes);
        self.access_anywhere(access, Task::Load, executing);
        self.scratch_vectors(3)
    }

    /// Stores to any addresses; leaves if one is not usable.
    pub(in super::super) fn scatter(
        &mut self,
        addresses: &[Value],
        values: &[Value],
        access: Access,
        lanes: Lanes,
    ) {
        self.put_scratch(0, addresses);
        self.put_scratch(1, values);
        let executing = self.if_not_all(lanes);
        self.access_anywhere(access, Task::Store, executing);
    }

    /// Updates words at any addresses and returns what was there; leaves if one is not usable. The words are the
    /// addresses, the operation's own, and, if it compares, the expected ones.
    pub(in super::super) fn update(
        &mut self,
        update: Update,
        words: &[Vectors],
        access: Access,
        lanes: Lanes,
    ) -> Vec<Value> {
        words.iter().enumerate().for_each(|(number, words)| self.put_scratch(number, words));
        let mut executing = self.if_not_all(lanes);
        if self.at.inst.is_once() {
            let bits = self.executing_bits();
            let negated = self.b.ins().ineg(bits);
            executing = Some(self.b.ins().band(bits, negated));
        }
        self.access_anywhere(access, Task::Update(update), executing);
        self.scratch_vectors(3)
    }

    /// The lanes that execute, if these are not all.
    fn if_not_all(&mut self, lanes: Lanes) -> Option<Value> {
        (lanes != Lanes::All).then(|| self.executing_bits())
    }

    fn access_anywhere(&mut self, access: Access, task: Task, executing: Option<Value>) {
        let all = executing.is_none();
        let (frame, memory) = (self.frame, self.memory);
        if let Some(executing) = executing {
            self.b.ins().store(aligned(), executing, frame, at!(executing));
        }
        if self.rules.leaves {
            // Behind it, something may have been stored.
            let never = self.b.ins().iconst(types::I8, 0);
            let here = self.or_in_any_case(never);
            self.leave_only_if(here, Leave::Access);
        }
        // Under a predicate, often no lane of a warp executes.
        let skipped = executing.map(|executing| {
            let [called, behind] = [self.b.create_block(), self.b.create_block()];
            self.b.ins().brif(executing, called, &[], behind, &[]);
            self.b.seal_block(called);
            self.b.switch_to_block(called);
            behind
        });
        let odd = self.may_be_odd(access) && !matches!(task, Task::Update(_));
        self.call_helper(Helper::Anywhere(Anywhere { access, task, all, odd }), memory);
        let outside = self.b.ins().load(types::I64, aligned(), frame, at!(outside));
        let is_outside = self.b.ins().icmp_imm_s(IntCC::NotEqual, outside, 0);
        self.leave_only_if(is_outside, Leave::Access);
        if let Some(behind) = skipped {
            self.b.ins().jump(behind, &[]);
            self.b.seal_block(behind);
            self.b.switch_to_block(behind);
        }
    }
}

impl Anywhere {
    /// Emits the function, for machines with that much memory.
    pub(super) fn body<'b>(
        self,
        mut b: FunctionBuilder<'b>,
        (frame, memory): (Value, Value),
        shape: Shape,
        memory_bytes: u64,
    ) -> FunctionBuilder<'b> {
        let last = memory_bytes.checked_sub(self.access.bytes as u64);
        let (usable, outside) = (b.create_block(), b.create_block());
        let Anywhere { access, task, odd, .. } = self;
        let mut code =
            Code { b, shape, access, task, odd, last: last.unwrap_or(0), frame, memory, outside };
        match last {
            None => {
                code.b.ins().jump(outside, &[]);
            }
            Some(_) if self.all => code.all_lanes(usable),
            Some(_) => code.some_lanes(usable),
        }
        for (block, is_outside) in [(usable, 0), (outside, 1)] {
            code.b.switch_to_block(block);
            let flag = code.b.ins().iconst(types::I64, is_outside);
            code.b.ins().store(aligned(), flag, frame, at!(outside));
            code.b.ins().return_(&[]);
        }
        code.b
    }
}

/// With as many lanes it is faster to load in all than one after the other.
const MANY_LANES: i64 = 8;

/// A helper while it is emitted.
struct Code<'b> {
    b: FunctionBuilder<'b>,
    shape: Shape,
    access: Access,
    task: Task,
    odd: bool,
    /// The last usable address.
    last: u64,
    frame: Value,
    memory: Value,
    /// Where control goes if an address is not usable.
    outside: Block,
}

impl Code<'_> {
    /// The access in all lanes of the machine. Then control goes to `done`.
    fn all_lanes(&mut self, done: Block) {
        let otherwise = if self.odd { self.b.create_block() } else { self.outside };
        if self.shape.is_whole() {
            let bad = self.any_outside();
            let go_on = self.b.create_block();
            self.b.ins().brif(bad, otherwise, &[], go_on, &[]);
            self.b.switch_to_block(go_on);
        } else {
            self.each_lane(|e, _, address| e.check(address, false, otherwise));
        }
        if let Task::Update(_) = self.task {
            let bits = self.b.ins().iconst(types::I64, self.shape.full().cast_signed());
            self.for_each_lane(bits, Self::access_lane);
        } else {
            self.by_vectors(done);
            self.in_all_lanes();
        }
        self.b.ins().jump(done, &[]);
        if self.odd {
            self.b.switch_to_block(otherwise);
            let bits = self.b.ins().iconst(types::I64, self.shape.full().cast_signed());
            self.one_by_one(bits, done);
        }
    }

    /// The access in the lanes of these bits, whose addresses are not known to be usable, or aligned. Then control goes to
    /// `done`.
    fn one_by_one(&mut self, bits: Value, done: Block) {
        let (odd, outside) = (self.odd, self.outside);
        self.for_each_lane(bits, |e, _, address| e.check(address, odd, outside));
        match odd {
            true => self.for_each_lane(bits, Self::access_odd),
            false => self.for_each_lane(bits, Self::access_lane),
        }
        self.b.ins().jump(done, &[]);
    }

    /// The access of a lane, whose address need not be aligned.
    fn access_odd(&mut self, here: Value, address: Value) {
        let (int, place) = (self.shape.int(), (self.memory, address));
        if self.task == Task::Store {
            let word = self.b.ins().load(int, aligned(), here, scratch(1));
            store_odd(&mut self.b, int, word, place);
        } else {
            let word = load_odd(&mut self.b, int, place);
            self.b.ins().store(aligned(), word, here, scratch(3));
        }
    }

    /// The access in the lanes that execute. Then control goes to `done`.
    fn some_lanes(&mut self, done: Block) {
        let bits = self.b.ins().load(types::I64, aligned(), self.frame, at!(executing));
        if self.shape.is_whole() {
            // Mostly the addresses of the other lanes are usable, too: then nobody must tell them apart.
            let bad = self.any_outside();
            let [some_bad, all_usable] = self.branch(bad);
            self.b.switch_to_block(all_usable);
            match self.task {
                Task::Load => self.load_at_once(bits, done),
                Task::Store => self.store_at_once(bits, done),
                Task::Update(_) => {}
            }
            self.for_each_lane(bits, Self::access_lane);
            self.b.ins().jump(done, &[]);
            self.b.switch_to_block(some_bad);
            self.many_at_once(bits, done);
        }
        self.one_by_one(bits, done);
    }

    /// If many of these bits are set, gives the other lanes usable addresses; if all are then, does the access and goes to
    /// `done`.
    fn many_at_once(&mut self, bits: Value, done: Block) {
        let ty = self.shape.int_vector();
        let [many, otherwise] = self.are_many(bits);
        self.b.switch_to_block(many);
        let usable = match self.task {
            Task::Load => self.vector(|_| 0),
            _ => self.first_plain(),
        };
        for (k, mask) in expand(&mut self.b, self.shape, bits).into_iter().enumerate() {
            let place = scratch(0) + 16 * k as i32;
            let addresses = self.b.ins().load(ty, aligned(), self.frame, place);
            let addresses = self.b.ins().bitselect(mask, addresses, usable);
            self.b.ins().store(aligned(), addresses, self.frame, place);
        }
        let bad = self.any_outside();
        let all_usable = self.b.create_block();
        self.b.ins().brif(bad, otherwise, &[], all_usable, &[]);
        self.b.switch_to_block(all_usable);
        match self.task {
            Task::Load => self.in_all_lanes(),
            _ => self.for_each_lane(bits, Self::access_lane),
        }
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(otherwise);
    }

    /// Blocks for whether in many lanes or few the bits are set.
    fn are_many(&mut self, bits: Value) -> [Block; 2] {
        let count = self.b.ins().popcnt(bits);
        let are_many = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, count, MANY_LANES);
        self.branch(are_many)
    }

    /// Loads in all lanes, if many execute, whose addresses have all been checked, and goes to `done`.
    fn load_at_once(&mut self, bits: Value, done: Block) {
        let [many, few] = self.are_many(bits);
        self.b.switch_to_block(many);
        self.by_vectors(done);
        self.in_all_lanes();
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(few);
    }

    /// Stores vectors, if all lanes execute, whose addresses have all been checked, and goes to `done`.
    fn store_at_once(&mut self, bits: Value, done: Block) {
        let full = self.shape.full().cast_signed();
        let is_full = self.b.ins().icmp_imm_s(IntCC::Equal, bits, full);
        let [all, some] = self.branch(is_full);
        self.b.switch_to_block(all);
        self.by_vectors(done);
        self.b.ins().jump(some, &[]);
        self.b.switch_to_block(some);
    }

    /// Where the lanes of each vector access consecutive words, or load the same word, as those of a row of a small block
    /// do, accesses a vector at a time and goes to `done`.
    fn by_vectors(&mut self, done: Block) {
        if !self.shape.is_whole() || self.access.bytes != self.shape.bytes() {
            return;
        }
        let bytes = self.shape.bytes();
        let steps = self.vector(|i| (bytes * i) as u64);
        let zero = self.vector(|_| 0);
        let each = self.b.create_block();
        // The first vector tells most others.
        let distances = self.distances(0);
        let differ = self.b.ins().bxor(distances, steps);
        let are_others = self.b.ins().vany_true(differ);
        let [others, rows] = self.branch(are_others);
        self.b.switch_to_block(rows);
        self.unless_all(steps, each);
        for k in 0..self.shape.vectors() {
            let place = 16 * k as i32;
            let address = self.address(k * self.shape.per_vector());
            let host = self.b.ins().iadd(self.memory, address);
            let ty = self.shape.int_vector();
            if self.task == Task::Store {
                let words = self.b.ins().load(ty, aligned(), self.frame, scratch(1) + place);
                self.b.ins().store(guest(), words, host, 0);
            } else {
                let words = self.b.ins().load(ty, guest(), host, 0);
                self.b.ins().store(aligned(), words, self.frame, scratch(3) + place);
            }
        }
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(others);
        if self.task == Task::Store {
            self.b.ins().jump(each, &[]);
        } else {
            let are_others = self.b.ins().vany_true(distances);
            let same = self.b.create_block();
            self.b.ins().brif(are_others, each, &[], same, &[]);
            self.b.switch_to_block(same);
            self.unless_all(zero, each);
            for k in 0..self.shape.vectors() {
                let word = self.word(k * self.shape.per_vector());
                let words = self.b.ins().splat(self.shape.int_vector(), word);
                self.b.ins().store(aligned(), words, self.frame, scratch(3) + 16 * k as i32);
            }
            self.b.ins().jump(done, &[]);
        }
        self.b.switch_to_block(each);
    }

    /// Goes to `each` unless the lanes of all other vectors but the first are at these distances, too.
    fn unless_all(&mut self, distances: Value, each: Block) {
        let differ: Vec<Value> = (1..self.shape.vectors())
            .map(|k| {
                let here = self.distances(k);
                self.b.ins().bxor(here, distances)
            })
            .collect();
        if differ.is_empty() {
            return;
        }
        let differ = self.fold(&differ, |b, x, y| b.ins().bor(x, y));
        let differs = self.b.ins().vany_true(differ);
        let go_on = self.b.create_block();
        self.b.ins().brif(differs, each, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// How far the lanes' addresses of a vector are from its first lane's.
    fn distances(&mut self, vector: usize) -> Value {
        let ty = self.shape.int_vector();
        let place = scratch(0) + 16 * vector as i32;
        let addresses = self.b.ins().load(ty, aligned(), self.frame, place);
        let first = self.b.ins().extractlane(addresses, 0);
        let first = self.b.ins().splat(ty, first);
        self.b.ins().isub(addresses, first)
    }

    /// The access in all lanes, at addresses that have been checked.
    fn in_all_lanes(&mut self) {
        if self.task == Task::Store {
            return self.each_lane(Self::access_lane);
        }
        // Words that are stored one by one would be slow to read as a vector.
        for k in 0..self.shape.vectors() {
            let words: Vec<Value> = self.shape.lanes_of(k).map(|lane| self.word(lane)).collect();
            let vector = vector_of(&mut self.b, self.shape.int_vector(), &words);
            self.b.ins().store(aligned(), vector, self.frame, scratch(3) + 16 * k as i32);
        }
    }

    /// `f` for all lanes, lowest first: it gets the frame moved to the lane, and its address.
    fn each_lane(&mut self, f: impl Fn(&mut Self, Value, Value)) {
        for lane in 0..self.shape.lanes {
            let distance = (lane * self.shape.bytes()) as i64;
            let here = self.b.ins().iadd_imm_s(self.frame, distance);
            let address = self.address(lane);
            f(self, here, address);
        }
    }

    /// What a lane loads.
    fn word(&mut self, lane: usize) -> Value {
        let address = self.address(lane);
        let host = self.b.ins().iadd(self.memory, address);
        load(&mut self.b, self.shape.int(), (host, 0), self.access)
    }

    /// The address of a lane, in 8 bytes.
    fn address(&mut self, lane: usize) -> Value {
        let frame = self.frame;
        self.address_at(frame, (lane * self.shape.bytes()) as i32)
    }

    fn address_at(&mut self, place: Value, distance: i32) -> Value {
        match self.shape.bytes() {
            4 => self.b.ins().uload32(aligned(), place, scratch(0) + distance),
            _ => self.b.ins().load(types::I64, aligned(), place, scratch(0) + distance),
        }
    }

    /// The access of a lane whose words of the scratch vectors are in the frame moved to `here`.
    fn access_lane(&mut self, here: Value, address: Value) {
        let (int, access) = (self.shape.int(), self.access);
        let host = self.b.ins().iadd(self.memory, address);
        match self.task {
            Task::Load => {
                let word = load(&mut self.b, int, (host, 0), access);
                self.b.ins().store(aligned(), word, here, scratch(3));
            }
            Task::Store => {
                let word = self.b.ins().load(int, aligned(), here, scratch(1));
                store(&mut self.b, int, (word, host, 0), access);
            }
            Task::Update(update) => {
                let old = self.update_word(update, here, host);
                let is_half = self.b.func.dfg.value_type(old) != int;
                let old = if is_half { self.b.ins().uextend(int, old) } else { old };
                self.b.ins().store(aligned(), old, here, scratch(3));
            }
        }
    }

    /// An atomic operation at an address of the host with the words in the frame moved to `here`. Returns what was there.
    fn update_word(&mut self, update: Update, here: Value, host: Value) -> Value {
        let (int, ty) = (self.shape.int(), narrow(self.access));
        let word = |e: &mut Self, number| {
            let word = e.b.ins().load(int, aligned(), here, scratch(number));
            if ty == int { word } else { e.b.ins().ireduce(ty, word) }
        };
        let value = word(self, 1);
        match update {
            Update::Combine(op) => self.b.ins().atomic_rmw(ty, guest(), op, host, value),
            Update::Compare => {
                let expected = word(self, 2);
                self.b.ins().atomic_cas(guest(), host, expected, value)
            }
        }
    }

    /// A loop over the lanes whose bits are set, lowest first: `f` gets the frame moved to the lane, and its address.
    fn for_each_lane(&mut self, bits: Value, f: impl FnOnce(&mut Self, Value, Value)) {
        let lanes = LaneLoop::begin(&mut self.b, bits);
        let distance = self.b.ins().imul_imm_s(lanes.lane, self.shape.bytes() as i64);
        let here = self.b.ins().iadd(self.frame, distance);
        let address = self.address_at(here, 0);
        f(self, here, address);
        lanes.end(&mut self.b);
    }

    /// Goes to `otherwise` if an address is not usable. If it may be `odd`, it need not be aligned.
    fn check(&mut self, address: Value, odd: bool, otherwise: Block) {
        let (last, access) = match odd {
            // A word that begins in memory lies there.
            true => {
                let more = self.access.bytes as u64 - 1;
                (self.last + more, Access { aligned: false, ..self.access })
            }
            false => (self.last, self.access),
        };
        let mut bad = is_beyond(&mut self.b, address, last, access);
        if self.task != Task::Load {
            let from = self.plain_from();
            let low = self.b.ins().icmp(IntCC::UnsignedLessThan, address, from);
            bad = self.b.ins().bor(bad, low);
        }
        let go_on = self.b.create_block();
        self.b.ins().brif(bad, otherwise, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// The first address of plain stores.
    fn plain_from(&mut self) -> Value {
        self.b.ins().load(types::I64, aligned(), self.frame, at!(plain_from))
    }

    /// The same in all lanes of a vector.
    fn first_plain(&mut self) -> Value {
        let from = self.plain_from();
        let word = match self.shape.bytes() {
            4 => self.b.ins().ireduce(types::I32, from),
            _ => from,
        };
        self.b.ins().splat(self.shape.int_vector(), word)
    }

    /// Whether the address of any lane is not usable, whether it executes or not.
    fn any_outside(&mut self) -> Value {
        let ty = self.shape.int_vector();
        let addresses: Vec<Value> = (0..self.shape.vectors())
            .map(|k| self.b.ins().load(ty, aligned(), self.frame, scratch(0) + 16 * k as i32))
            .collect();
        let from = (self.task != Task::Load).then(|| self.first_plain());
        let (last, bytes) = (self.last, self.access.bytes as u64);
        let last = self.vector(|_| last);
        let mut bad = self.beyond(&addresses, last, from);
        if self.access.aligned && bytes > 1 {
            let all = self.fold(&addresses, |b, x, y| b.ins().bor(x, y));
            let low = self.vector(|_| bytes - 1);
            let odd = self.b.ins().band(all, low);
            bad = self.b.ins().bor(bad, odd);
        }
        self.b.ins().vany_true(bad)
    }

    /// A vector that is not zero if any address is above `last`, or below `from`, as unsigned words.
    fn beyond(&mut self, addresses: &[Value], last: Value, from: Option<Value>) -> Value {
        if self.shape.bytes() == 4 {
            let highest = self.fold(addresses, |b, x, y| b.ins().umax(x, y));
            let highest = self.b.ins().umax(highest, last);
            let bad = self.b.ins().bxor(highest, last);
            let Some(from) = from else { return bad };
            let lowest = self.fold(addresses, |b, x, y| b.ins().umin(x, y));
            let lowest = self.b.ins().umin(lowest, from);
            let below = self.b.ins().bxor(lowest, from);
            return self.b.ins().bor(bad, below);
        }
        // Memory takes at most the lower half of the addresses, so each of these differences has the top bit if and only
        // if the address is bad.
        let bad: Vec<Value> = addresses
            .iter()
            .map(|&address| {
                let behind = self.b.ins().isub(last, address);
                let bad = self.b.ins().bor(address, behind);
                let Some(from) = from else { return bad };
                let below = self.b.ins().isub(address, from);
                self.b.ins().bor(bad, below)
            })
            .collect();
        let all = self.fold(&bad, |b, x, y| b.ins().bor(x, y));
        let top = self.vector(|_| 1 << 63);
        self.b.ins().band(all, top)
    }

    fn fold(
        &mut self,
        vectors: &[Value],
        f: impl Fn(&mut FunctionBuilder<'_>, Value, Value) -> Value,
    ) -> Value {
        vectors[1..].iter().fold(vectors[0], |a, &b| f(&mut self.b, a, b))
    }

    fn vector(&mut self, word: impl Fn(usize) -> u64) -> Value {
        vector_constant(&mut self.b, self.shape.int_vector(), word)
    }

    /// Blocks for whether it holds or not.
    fn branch(&mut self, condition: Value) -> [Block; 2] {
        let blocks @ [holds, fails] = [self.b.create_block(), self.b.create_block()];
        self.b.ins().brif(condition, holds, &[], fails, &[]);
        blocks
    }
}
