//! Operations across lanes: barriers, votes, shuffles, reductions, and code that runs in one lane after the
//! other.
//!
//! Votes and shuffles are among the lanes of a warp that execute them together: under the same conditions and
//! in the same iteration of each loop. Where lanes diverge at a condition, each side votes on its own.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::{Caller, KernelBuilder};
use crate::error::BuildErrorKind;
use crate::intrinsic::{Intrinsic, Orders, Reduction};

impl KernelBuilder<'_> {
    /// Waits until all work-items of the work-group have reached the barrier. Afterwards all of them see what
    /// any of them wrote before it.
    ///
    /// All must reach the same barrier. If some do not, the launch ends in a trap: a divergent barrier if
    /// they are of the same warp, else a deadlock. So do not use a barrier under a condition on which
    /// work-items of a group can disagree, nor after an early return of some of them.
    #[track_caller]
    pub fn barrier(&mut self) {
        self.enter(Location::caller());
        let callee = self.callee(Intrinsic::Barrier(Orders::All), self.word_int());
        self.inner.ins().call(callee, &[]);
    }

    /// Whether `condition`, an integer, is not 0 in any of the executing lanes: an `i8` of 0 or 1, the same
    /// in all of them.
    #[track_caller]
    pub fn any(&mut self, condition: Value) -> Value {
        self.vote(Intrinsic::Any, condition, Location::caller())
    }

    /// Whether `condition`, an integer, is not 0 in all executing lanes: an `i8` of 0 or 1, the same in all
    /// of them.
    #[track_caller]
    pub fn all(&mut self, condition: Value) -> Value {
        self.vote(Intrinsic::All, condition, Location::caller())
    }

    /// The executing lanes in which `condition`, an integer, is not 0: a word with a bit for each lane, the
    /// same in all of them. Part 0 covers the lowest lanes, as many as a word has bits. Part 1 covers the
    /// lanes above, which only machines with 4-byte words can have. Another part is an error.
    ///
    /// Without extension X it is a loop over the lanes.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("places", "4w32/16/32/16".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// // Of the lanes whose value is odd, how many come before this one?
    /// let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
    /// let value = b.load_elem(types::I32, data, i);
    /// let odd = b.ins().band_imm_u(value, 1);
    /// let mask = b.ballot(odd, 0);
    /// let (one, lane) = (b.ins().iconst(types::I32, 1), b.lane_id());
    /// let own = b.ins().ishl(one, lane);
    /// let below = b.ins().iadd_imm_s(own, -1);
    /// let before = b.ins().band(mask, below);
    /// let count = b.ins().popcnt(before);
    /// b.store_elem(count, data, i);
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn ballot(&mut self, condition: Value, part: u8) -> Value {
        let place = Location::caller();
        self.enter(place);
        let intrinsic = match part {
            0 => Intrinsic::Ballot,
            1 => Intrinsic::BallotHigh,
            given => {
                self.fail(BuildErrorKind::BallotPart { given }, place);
                return self.placeholder(self.word_int());
            }
        };
        let truth = self.truth(condition, place);
        let callee = self.callee(intrinsic, self.word_int());
        let call = self.inner.ins().call(callee, &[truth]);
        self.inner.inst_results(call)[0]
    }

    /// The `value` of lane number `lane`, a word. If the warp has no such lane, or that lane does not execute
    /// this shuffle, the result is the lane's own value.
    #[track_caller]
    pub fn shuffle(&mut self, value: Value, lane: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_scalar(value, "value to shuffle", place);
        let word = self.word_int();
        let lane = self.checked(lane, word, "number of the lane", place);
        let ty = self.inner.func.dfg.value_type(value);
        let callee = self.callee(Intrinsic::Shuffle, ty);
        let call = self.inner.ins().call(callee, &[value, lane]);
        self.inner.inst_results(call)[0]
    }

    /// Combines the values of all executing lanes into one, which is the same in all of them.
    ///
    /// A value whose type the reduction does not support is an error.
    ///
    /// ```
    /// # use harp_jit::{Reduction, prelude::*};
    /// # let mut source = KernelSource::new("sum", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// // Each warp adds up what its lanes have, and one of them stores it.
    /// let (data, sums, i) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer), b.global_id(0));
    /// let value = b.load_elem(types::I32, data, i);
    /// let sum = b.reduce(Reduction::Iadd, value);
    /// let (lane, lanes) = (b.lane_id(), b.lane_count());
    /// let first = b.ins().icmp_imm_s(IntCC::Equal, lane, 0);
    /// b.if_then(first, |b| {
    ///     let warp = b.ins().udiv(i, lanes);
    ///     b.store_elem(sum, sums, warp);
    /// });
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn reduce(&mut self, reduction: Reduction, value: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_scalar(value, "value to reduce", place);
        let given = self.inner.func.dfg.value_type(value);
        let intrinsic = Intrinsic::Reduce(reduction);
        if !intrinsic.is_of(given) {
            let opcode = reduction.opcode();
            self.fail(BuildErrorKind::ControllingType { opcode, given }, place);
            return self.placeholder(given);
        }
        let callee = self.callee(intrinsic, given);
        let call = self.inner.ins().call(callee, &[value]);
        self.inner.inst_results(call)[0]
    }

    /// Runs `body` in the executing lanes one after the other, in the order of their numbers.
    ///
    /// Use it for what the lanes of a warp cannot do at the same time, such as taking a lock. With a plain
    /// loop, the lanes that wait for the lock would hold up the lane that has it, which could never release
    /// it.
    ///
    /// ```
    /// # use harp_jit::{ir::AtomicRmwOp, prelude::*};
    /// # let mut source = KernelSource::new("count", "4w32/16/32/16+x".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// let (lock, count) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    /// let [zero, one] = [0, 1].map(|value| b.ins().iconst(types::I32, value));
    /// b.for_each_active_lane(|b| {
    ///     b.while_loop(|b| b.compare_exchange_elem(zero, one, lock, zero), |_| {});
    ///     let old = b.load_elem(types::I32, count, zero);
    ///     let new = b.ins().iadd(old, one);
    ///     b.store_elem(new, count, zero);
    ///     b.atomic_elem(AtomicRmwOp::Xchg, zero, lock, zero);
    /// });
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn for_each_active_lane(&mut self, body: impl FnOnce(&mut Self)) {
        let place = Location::caller();
        let (own, count) = (self.lane_id(), self.lane_count());
        self.enter(place);
        let word = self.word_int();
        let zero = self.inner.ins().iconst(word, 0);
        let one = self.inner.ins().iconst(word, 1);
        self.for_range_unsigned(zero, count, one, |b, lane| {
            b.enter(place);
            let turn = b.inner.ins().icmp(IntCC::Equal, lane, own);
            b.if_then(turn, body);
        });
    }

    fn vote(&mut self, vote: Intrinsic, condition: Value, place: Caller) -> Value {
        self.enter(place);
        let truth = self.truth(condition, place);
        let callee = self.callee(vote, types::I8);
        let call = self.inner.ins().call(callee, &[truth]);
        self.inner.inst_results(call)[0]
    }

    /// An `i8` that is not 0 where `condition` is not 0.
    fn truth(&mut self, condition: Value, place: Caller) -> Value {
        let condition = self.checked_int(condition, "condition", place);
        if self.inner.func.dfg.value_type(condition) == types::I8 {
            return condition;
        }
        self.inner.ins().icmp_imm_s(IntCC::NotEqual, condition, 0)
    }
}
