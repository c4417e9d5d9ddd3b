//! Structured control flow from closures: conditions and cases. Loops are in a module of their own.
//!
//! The closures get the builder and may do anything with it: define variables, nest, leave the kernel. After
//! each of these calls the current block is a different one.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, TrapCode, Type, Value};

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

    /// `on_true` where `condition`, an integer, is not 0, else `on_false`. Both are computed and of one type.
    #[track_caller]
    pub fn select(&mut self, condition: Value, on_true: Value, on_false: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        let on_true = self.checked_scalar(on_true, "value to select", place);
        let ty = self.inner.func.dfg.value_type(on_true);
        let on_false = self.checked(on_false, ty, "value to select", place);
        self.inner.ins().select(condition, on_true, on_false)
    }

    /// Builds a case for each of `keys`, which are compared with `value`, an integer, in this order, and one
    /// for all other values: calls `case` with each key, and at last with none.
    ///
    /// A key must fit the type of `value`, signed or unsigned. One that does not, and one that is given twice,
    /// is an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("operations", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// # let (kinds, data, i) = (b.buffer::<u8>("kinds"), b.buffer::<i32>("data"), b.global_id(0));
    /// let (kind, x) = (b.load(kinds, i), b.load(data, i));
    /// b.switch(kind, &[0, 1], |b, case| {
    ///     let result = match case {
    ///         Some(0) => b.ins().ineg(x),
    ///         Some(_) => b.ins().iadd(x, x),
    ///         None => return,
    ///     };
    ///     b.store(data, i, result);
    /// });
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn switch(
        &mut self,
        value: Value,
        keys: &[i64],
        mut case: impl FnMut(&mut Self, Option<i64>),
    ) {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_int(value, "value of a switch", place);
        let ty = self.inner.func.dfg.value_type(value);
        let after = self.inner.create_block();
        let mut seen = Vec::new();
        for &given in keys {
            let key = self.integer(given, ty, place);
            if seen.contains(&key) {
                self.fail(BuildErrorKind::DuplicateCase { given }, place);
            }
            seen.push(key);
            let [inside, next] = std::array::from_fn(|_| self.inner.create_block());
            self.enter(place);
            let key = self.inner.ins().iconst(ty, key);
            let equal = self.inner.ins().icmp(IntCC::Equal, value, key);
            self.branch(equal, inside, next, place);
            self.switch_to_sealed(inside);
            case(self, Some(given));
            self.go_to(after, &[], place);
            self.switch_to_sealed(next);
        }
        case(self, None);
        self.go_to(after, &[], place);
        self.switch_to_sealed(after);
    }

    /// Ends the kernel in the lanes where `condition`, an integer, is not 0: these work-items are done.
    #[track_caller]
    pub fn return_if(&mut self, condition: Value) {
        let place = Location::caller();
        let (inside, after) = (self.inner.create_block(), self.inner.create_block());
        self.branch(condition, inside, after, place);
        self.switch_to_sealed(inside);
        self.enter(place);
        self.inner.ins().return_(&[]);
        self.switch_to_sealed(after);
    }

    /// An integer constant of the machine's [word](Self::word_int).
    ///
    /// A value that fits the word neither as a signed nor as an unsigned integer is an error.
    #[track_caller]
    pub fn word_const(&mut self, value: i64) -> Value {
        let place = Location::caller();
        self.enter(place);
        let word = self.word_int();
        let value = self.integer(value, word, place);
        self.inner.ins().iconst(word, value)
    }

    /// A constant of the machine's [native float](Self::word_float): rounded to the nearest on machines with
    /// 4-byte words.
    #[track_caller]
    pub fn float_const(&mut self, value: f64) -> Value {
        self.enter(Location::caller());
        match self.word_float() {
            cranelift_codegen::ir::types::F32 => self.inner.ins().f32const(value as f32),
            _ => self.inner.ins().f64const(value),
        }
    }

    /// The immediate of a constant of type `ty`, an integer; 0 and an error if it does not fit.
    fn integer(&mut self, given: i64, ty: Type, place: Caller) -> Imm64 {
        let (bits, value) = (ty.bits(), i128::from(given));
        // Constants of wider types than words are refused later, so their range does not matter.
        if bits >= 64 || (-(1_i128 << (bits - 1))..1_i128 << bits).contains(&value) {
            return Imm64::new(given).zero_extend_from_width(bits.min(64));
        }
        self.fail(BuildErrorKind::Constant { given, ty }, place);
        0.into()
    }

    /// Ends the current block with a branch on `condition`.
    pub(super) fn branch(
        &mut self,
        condition: Value,
        on_true: Block,
        on_false: Block,
        place: Caller,
    ) {
        self.branch_with(condition, (on_true, &[]), (on_false, &[]), place);
    }

    /// Ends the current block with a branch on `condition` that passes arguments. The side that the condition
    /// is not [likely](Self::likely) to take goes through a cold block.
    pub(super) fn branch_with(
        &mut self,
        condition: Value,
        on_true: (Block, &[BlockArg]),
        on_false: (Block, &[BlockArg]),
        place: Caller,
    ) {
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        let sealed = [on_true.0, on_false.0].into_iter().find(|&block| self.sealed.contains(block));
        if let Some(block) = sealed {
            self.fail(BuildErrorKind::BlockSealed { block }, place);
            self.inner.ins().trap(TrapCode::HEAP_OUT_OF_BOUNDS);
            return;
        }
        let (mut first, mut second, mut cold) = (on_true, on_false, None);
        if let Some(&likely) = self.hints.get(&condition) {
            let unlikely = if likely { &mut second } else { &mut first };
            let detour = self.inner.create_block();
            cold = Some((detour, std::mem::replace(unlikely, (detour, &[]))));
        }
        self.inner.ins().brif(condition, first.0, first.1, second.0, second.1);
        if let Some((detour, (target, args))) = cold {
            self.switch_to_sealed(detour);
            self.enter(place);
            self.inner.ins().jump(target, args);
            self.inner.set_cold_block(detour);
        }
    }

    /// Ends the current block, unless it has ended, with a jump.
    ///
    /// A closure that sealed all blocks sealed `block` before this jump: an error.
    pub(super) fn go_to(&mut self, block: Block, args: &[BlockArg], place: Caller) {
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
