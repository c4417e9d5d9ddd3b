//! Loops from closures.
//!
//! Inside of the closures [`break_if`](KernelBuilder::break_if) and
//! [`continue_if`](KernelBuilder::continue_if) leave the innermost loop or its round.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};

use super::{Caller, KernelBuilder};
use crate::constant;
use crate::error::BuildErrorKind;

/// A loop that is being built.
pub(super) struct Loop {
    /// Where the next round begins; none until a round is left early, if something must be done before the
    /// next one.
    again: Option<Block>,
    exit: Block,
    /// The values with which the round began.
    values: Vec<Value>,
}

/// Which way out of a round.
#[derive(Clone, Copy)]
enum Way {
    Break,
    Continue,
}

impl KernelBuilder<'_> {
    /// Runs `body` as long as `condition` gives an integer that is not 0. The condition is tested first.
    #[track_caller]
    pub fn while_loop(
        &mut self,
        condition: impl FnOnce(&mut Self) -> Value,
        body: impl FnOnce(&mut Self),
    ) {
        let place = Location::caller();
        let [header, inside, after] = std::array::from_fn(|_| self.inner.create_block());
        self.enter(place);
        self.go_to(header, &[], place);
        self.inner.switch_to_block(header);
        let frame = Loop { again: Some(header), exit: after, values: Vec::new() };
        self.within(frame, |b| {
            let condition = condition(b);
            b.branch(condition, inside, after, place);
            b.switch_to_sealed(inside);
            body(b);
        });
        self.go_to(header, &[], place);
        self.seal_once(header);
        self.switch_to_sealed(after);
    }

    /// Runs `body` with a counter that starts at `start` and changes by `step`, as long as it is below `end`,
    /// or above `end` if `step` is negative. All are *signed* integers of one type. With a `step` of 0 nothing
    /// runs.
    ///
    /// The counter must not pass the end of its type: it wraps around there. A `step` that is a constant, of
    /// either sign, makes the shortest code.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("sums", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// # let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// // -2, -1, 0, 1
    /// let [start, end, step] = [-2, 2, 1].map(|value| b.ins().iconst(types::I32, value));
    /// b.for_range(start, end, step, |b, k| {
    ///     let old = b.load(data, i);
    ///     let new = b.ins().iadd(old, k);
    ///     b.store(data, i, new);
    /// });
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn for_range(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        body: impl FnOnce(&mut Self, Value),
    ) {
        let place = Location::caller();
        let [start, end, step] = self.range([start, end, step], place);
        let sign = match constant::signed(&self.inner.func.dfg, step) {
            Some(step) => Ok(step.signum()),
            None => {
                let signs = [IntCC::SignedGreaterThan, IntCC::SignedLessThan];
                Err(signs.map(|sign| self.inner.ins().icmp_imm_s(sign, step, 0)))
            }
        };
        let more = |b: &mut Self, counter| match sign {
            Ok(1) => b.inner.ins().icmp(IntCC::SignedLessThan, counter, end),
            Ok(-1) => b.inner.ins().icmp(IntCC::SignedGreaterThan, counter, end),
            Ok(_) => b.inner.ins().iconst(cranelift_codegen::ir::types::I8, 0),
            Err([up, down]) => {
                let below = b.inner.ins().icmp(IntCC::SignedLessThan, counter, end);
                let above = b.inner.ins().icmp(IntCC::SignedGreaterThan, counter, end);
                let below = b.inner.ins().band(up, below);
                let above = b.inner.ins().band(down, above);
                b.inner.ins().bor(below, above)
            }
        };
        self.count(start, step, more, body, place);
    }

    /// Runs `body` with a counter that starts at `start` and grows by `step` as long as it is below `end`.
    /// All are *unsigned* integers of one type, such as indices. The counter wraps around at the end of its
    /// type.
    #[track_caller]
    pub fn for_range_unsigned(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        body: impl FnOnce(&mut Self, Value),
    ) {
        let place = Location::caller();
        let [start, end, step] = self.range([start, end, step], place);
        let more =
            |b: &mut Self, counter| b.inner.ins().icmp(IntCC::UnsignedLessThan, counter, end);
        self.count(start, step, more, body, place);
    }

    /// Repeats `body` until it is left. The first round begins with the values `initial`, each other one with
    /// those that `body` returned, or that [`continue_if_with`](Self::continue_if_with) passed. The loop's
    /// results are the values that [`break_if_with`](Self::break_if_with) passed, or with which the round began
    /// that [`break_if`](Self::break_if) left.
    ///
    /// All of them have the types of `initial`. Values of another type, or of another number, are an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("powers", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// # let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// // The smallest power of two that is not less than the element, and its exponent.
    /// let x = b.load(data, i);
    /// let [one, zero] = [1, 0].map(|value| b.ins().iconst(types::I32, value));
    /// let [power, exponent] = b.loop_with([one, zero], |b, [power, exponent]| {
    ///     let enough = b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, power, x);
    ///     b.break_if(enough);
    ///     [b.ins().iadd(power, power), b.ins().iadd(exponent, one)]
    /// });
    /// # let sum = b.ins().iadd(power, exponent);
    /// # b.store(data, i, sum);
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn loop_with<const N: usize>(
        &mut self,
        initial: [Value; N],
        body: impl FnOnce(&mut Self, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let place = Location::caller();
        self.enter(place);
        let initial = initial.map(|value| self.checked_scalar(value, "value of a loop", place));
        let types = initial.map(|value| self.inner.func.dfg.value_type(value));
        let [header, exit] = std::array::from_fn(|_| self.inner.create_block());
        let values = types.map(|ty| self.inner.append_block_param(header, ty));
        let results = types.map(|ty| self.inner.append_block_param(exit, ty));
        self.go_to(header, &initial.map(BlockArg::from), place);
        self.inner.switch_to_block(header);
        let frame = Loop { again: Some(header), exit, values: values.to_vec() };
        let mut next = values;
        self.within(frame, |b| next = body(b, values));
        if !self.has_ended() {
            self.enter(place);
            let next = self.loop_values(&values, &next, place);
            self.go_to(header, &next, place);
        }
        self.seal_once(header);
        self.switch_to_sealed(exit);
        results
    }

    /// Leaves the innermost loop in the lanes where `condition`, an integer, is not 0. The results of a
    /// [`loop_with`](Self::loop_with) are the values with which this round began.
    ///
    /// Outside of the closures of a loop this is an error.
    #[track_caller]
    pub fn break_if(&mut self, condition: Value) {
        self.leave("break_if", Way::Break, Some(condition), None, Location::caller());
    }

    /// Leaves the innermost loop. The results of a [`loop_with`](Self::loop_with) are the values with which
    /// this round began. The current block ends, as by [`return_`](Self::return_): use it in the closure of a
    /// condition.
    ///
    /// Outside of the closures of a loop this is an error.
    #[track_caller]
    pub fn break_(&mut self) {
        self.leave("break_", Way::Break, None, None, Location::caller());
    }

    /// Leaves the innermost loop, a [`loop_with`](Self::loop_with), with these results in the lanes where
    /// `condition`, an integer, is not 0.
    ///
    /// Outside of the closures of a loop this is an error, and so are values that are not the loop's.
    #[track_caller]
    pub fn break_if_with(&mut self, condition: Value, results: &[Value]) {
        let results = Some(results);
        self.leave("break_if_with", Way::Break, Some(condition), results, Location::caller());
    }

    /// Goes on with the next round of the innermost loop in the lanes where `condition`, an integer, is not 0:
    /// a [`for_range`](Self::for_range) steps its counter, a [`while_loop`](Self::while_loop) tests its
    /// condition, and a [`loop_with`](Self::loop_with) begins with the values of this round again.
    ///
    /// Outside of the closures of a loop this is an error.
    #[track_caller]
    pub fn continue_if(&mut self, condition: Value) {
        self.leave("continue_if", Way::Continue, Some(condition), None, Location::caller());
    }

    /// Goes on with the next round of the innermost loop, as [`continue_if`](Self::continue_if) does. The
    /// current block ends, as by [`return_`](Self::return_): use it in the closure of a condition.
    ///
    /// Outside of the closures of a loop this is an error.
    #[track_caller]
    pub fn continue_(&mut self) {
        self.leave("continue_", Way::Continue, None, None, Location::caller());
    }

    /// Goes on with the next round of the innermost loop, a [`loop_with`](Self::loop_with), with these values
    /// in the lanes where `condition`, an integer, is not 0.
    ///
    /// Outside of the closures of a loop this is an error, and so are values that are not the loop's.
    #[track_caller]
    pub fn continue_if_with(&mut self, condition: Value, values: &[Value]) {
        let values = Some(values);
        self.leave("continue_if_with", Way::Continue, Some(condition), values, Location::caller());
    }

    fn leave(
        &mut self,
        method: &'static str,
        way: Way,
        condition: Option<Value>,
        values: Option<&[Value]>,
        place: Caller,
    ) {
        self.enter(place);
        let Some(frame) = self.loops.last() else {
            self.fail(BuildErrorKind::NoLoop { method }, place);
            return;
        };
        let (began, exit, again) = (frame.values.clone(), frame.exit, frame.again);
        let args = match values {
            Some(values) => self.loop_values(&began, values, place),
            None => began.iter().map(|&value| value.into()).collect(),
        };
        let target = match way {
            Way::Break => exit,
            Way::Continue => again.unwrap_or_else(|| {
                let block = self.inner.create_block();
                self.loops.last_mut().expect("there is one").again = Some(block);
                block
            }),
        };
        let Some(condition) = condition else {
            self.go_to(target, &args, place);
            return;
        };
        let rest = self.inner.create_block();
        self.branch_with(condition, (target, &args), (rest, &[]), place);
        self.switch_to_sealed(rest);
    }

    /// Checks that `given` are as many values as `wanted`, of the same types.
    fn loop_values(&mut self, wanted: &[Value], given: &[Value], place: Caller) -> Vec<BlockArg> {
        let (expected, count) = (wanted.len(), given.len());
        if count != expected {
            self.fail(BuildErrorKind::LoopValues { expected, given: count }, place);
        }
        let given = given.iter().copied().map(Some).chain(std::iter::repeat(None));
        let args = wanted.iter().zip(given).map(|(&wanted, given)| {
            let ty = self.inner.func.dfg.value_type(wanted);
            let value = given.unwrap_or(wanted);
            self.checked(value, ty, "value of the loop", place).into()
        });
        args.collect()
    }

    /// Builds a part of a loop: `break_if` and `continue_if` in it are about this loop. Returns where rounds
    /// go that were left early.
    fn within(&mut self, frame: Loop, build: impl FnOnce(&mut Self)) -> Option<Block> {
        let depth = self.loops.len();
        self.loops.push(frame);
        build(self);
        let again = self.loops.get(depth).and_then(|frame| frame.again);
        self.loops.truncate(depth);
        again
    }

    /// The start, end and step of a range: integers of one type.
    fn range(&mut self, [start, end, step]: [Value; 3], place: Caller) -> [Value; 3] {
        self.enter(place);
        let start = self.checked_int(start, "start of the range", place);
        let ty = self.inner.func.dfg.value_type(start);
        let end = self.checked(end, ty, "end of the range", place);
        let step = self.checked(step, ty, "step of the range", place);
        [start, end, step]
    }

    /// Runs `body` with a counter as long as there are `more` rounds.
    fn count(
        &mut self,
        start: Value,
        step: Value,
        more: impl FnOnce(&mut Self, Value) -> Value,
        body: impl FnOnce(&mut Self, Value),
        place: Caller,
    ) {
        let ty = self.inner.func.dfg.value_type(start);
        let [header, inside, after] = std::array::from_fn(|_| self.inner.create_block());
        let counter = self.inner.append_block_param(header, ty);
        self.go_to(header, &[start.into()], place);
        self.inner.switch_to_block(header);
        let more = more(self, counter);
        self.branch(more, inside, after, place);
        self.switch_to_sealed(inside);
        let frame = Loop { again: None, exit: after, values: Vec::new() };
        if let Some(latch) = self.within(frame, |b| body(b, counter)) {
            self.go_to(latch, &[], place);
            self.switch_to_sealed(latch);
        }
        if !self.has_ended() {
            self.enter(place);
            let next = self.inner.ins().iadd(counter, step);
            self.go_to(header, &[next.into()], place);
        }
        self.seal_once(header);
        self.switch_to_sealed(after);
    }
}
