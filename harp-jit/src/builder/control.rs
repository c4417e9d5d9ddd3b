//! Structured control flow from closures.
//!
//! The closures get the builder and may do anything with it: define variables, nest, leave the kernel. After
//! each of these calls the current block is a different one.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, TrapCode, Value};

use super::{Caller, KernelBuilder};
use crate::error::BuildErrorKind;

impl KernelBuilder<'_> {
    /// Runs `then` in the lanes where `condition`, an integer, is not 0.
    #[track_caller]
    pub fn if_then(&mut self, condition: Value, then: impl FnOnce(&mut Self)) {
        let place = Location::caller();
        let (inside, after) = (self.inner.create_block(), self.inner.create_block());
        self.branch(condition, inside, after, place);
        self.switch_to_sealed(inside);
        then(self);
        self.go_to(after, &[], place);
        self.switch_to_sealed(after);
    }

    /// Runs `then` in the lanes where `condition`, an integer, is not 0, and `otherwise` in the
    /// other ones.
    #[track_caller]
    pub fn if_else(
        &mut self,
        condition: Value,
        then: impl FnOnce(&mut Self),
        otherwise: impl FnOnce(&mut Self),
    ) {
        let place = Location::caller();
        let [on_true, on_false, after] = std::array::from_fn(|_| self.inner.create_block());
        self.branch(condition, on_true, on_false, place);
        self.switch_to_sealed(on_true);
        then(self);
        self.go_to(after, &[], place);
        self.switch_to_sealed(on_false);
        otherwise(self);
        self.go_to(after, &[], place);
        self.switch_to_sealed(after);
    }

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
        let condition = condition(self);
        self.branch(condition, inside, after, place);
        self.switch_to_sealed(inside);
        body(self);
        self.go_to(header, &[], place);
        self.seal_once(header);
        self.switch_to_sealed(after);
    }

    /// Runs `body` with a counter that starts at `start` and grows by `step` as long as it is below `end`.
    /// All are unsigned integers of one type. The counter wraps around at the end of its type.
    #[track_caller]
    pub fn for_range(
        &mut self,
        start: Value,
        end: Value,
        step: Value,
        body: impl FnOnce(&mut Self, Value),
    ) {
        let place = Location::caller();
        self.enter(place);
        let start = self.checked_int(start, "start of the range", place);
        let ty = self.inner.func.dfg.value_type(start);
        let end = self.checked(end, ty, "end of the range", place);
        let step = self.checked(step, ty, "step of the range", place);

        let [header, inside, after] = std::array::from_fn(|_| self.inner.create_block());
        let counter = self.inner.append_block_param(header, ty);
        self.go_to(header, &[start.into()], place);
        self.inner.switch_to_block(header);
        let more = self.inner.ins().icmp(IntCC::UnsignedLessThan, counter, end);
        self.branch(more, inside, after, place);
        self.switch_to_sealed(inside);
        body(self, counter);
        if !self.has_ended() {
            self.enter(place);
            let next = self.inner.ins().iadd(counter, step);
            self.go_to(header, &[next.into()], place);
        }
        self.seal_once(header);
        self.switch_to_sealed(after);
    }

    /// Ends the current block with a branch on `condition`.
    fn branch(&mut self, condition: Value, on_true: Block, on_false: Block, place: Caller) {
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        self.inner.ins().brif(condition, on_true, &[], on_false, &[]);
    }

    /// Ends the current block, unless it has ended, with a jump.
    ///
    /// A closure that sealed all blocks sealed `block` before this jump: an error.
    fn go_to(&mut self, block: Block, args: &[BlockArg], place: Caller) {
        if self.has_ended() {
            return;
        }
        self.enter(place);
        if self.sealed.contains(block) {
            self.fail(BuildErrorKind::BlockSealed { block }, place);
            self.inner.ins().trap(TrapCode::HEAP_OUT_OF_BOUNDS);
        } else {
            self.inner.ins().jump(block, args);
        }
    }
}
