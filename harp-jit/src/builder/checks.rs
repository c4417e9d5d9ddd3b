//! What a kernel says about itself: checks that trap, assumptions, and what is likely.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, SourceLoc, TrapCode, Value, types};
use harp_isa::WordSize;

use super::{Caller, KernelBuilder};
use crate::intrinsic::Intrinsic;
use crate::source::SourcePlace;

/// The trap of an assertion that does not hold: `user129`.
const ASSERTION: TrapCode = TrapCode::unwrap_user(129);

impl KernelBuilder<'_> {
    /// Traps with `code` in the lanes where `condition`, an integer, is not 0. The launch's error has the code
    /// and the place of this call.
    #[track_caller]
    pub fn trap_if(&mut self, condition: Value, code: TrapCode) {
        let place = Location::caller();
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        self.inner.ins().trapnz(condition, code);
    }

    /// Traps in the lanes where `condition`, an integer, is 0. The launch's error has the message and the place
    /// of this call; the trap's code is `user129`.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("gather", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// # let (data, indices, i) = (b.buffer::<i32>("data"), b.buffer::<u32>("indices"), b.global_id(0));
    /// let (index, len) = (b.load(indices, i), b.scalar::<u32>("len"));
    /// let inside = b.ins().icmp(IntCC::UnsignedLessThan, index, len);
    /// b.assert(inside, "the index is within the array");
    /// # let x = b.load(data, index);
    /// # b.store(data, i, x);
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn assert(&mut self, condition: Value, message: &str) {
        let place = Location::caller();
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        self.assert_at(condition, message, place);
    }

    /// Returns `value`, which the compiler then takes to be equal in all executing lanes.
    ///
    /// The compiler trusts the user on this. If lanes disagree and a branch depends on the value, the machine
    /// traps. [`assert_uniform`](Self::assert_uniform) checks it.
    #[track_caller]
    pub fn assume_uniform(&mut self, value: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_scalar(value, "value assumed uniform", place);
        self.same_type(Intrinsic::AssumeUniform, value)
    }

    /// Returns `value`, which the compiler then takes to be equal in all executing lanes, and checks that it
    /// is, bit for bit. In lanes that disagree with another one, which is chosen in an unspecified way, the
    /// kernel traps as with [`assert`](Self::assert).
    ///
    /// The check takes an exchange among the lanes of the warp and a branch.
    #[track_caller]
    pub fn assert_uniform(&mut self, value: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_scalar(value, "value asserted to be uniform", place);
        let ty = self.inner.func.dfg.value_type(value);
        let bits = self.bits(value);
        let shared = self.same_type(Intrinsic::OfSomeLane, bits);
        let same = self.inner.ins().icmp(IntCC::Equal, bits, shared);
        self.assert_at(same, "the value is uniform", place);
        match ty.is_float() {
            true => self.inner.ins().bitcast(ty, MemFlagsData::new(), shared),
            false => shared,
        }
    }

    /// Traps as [`assert`](Self::assert) does unless all lanes of the warp execute this that entered the
    /// kernel: none has returned or takes another way. Lanes without a work-item, at the end of the grid, do
    /// not enter it.
    ///
    /// The check takes a [`ballot`](Self::ballot) here and one at the kernel's start.
    #[track_caller]
    pub fn assert_convergent(&mut self) {
        let place = Location::caller();
        self.enter(place);
        let entered = self.entered(place);
        let mut same = None;
        for (&part, entered) in self.executing().iter().zip(entered) {
            let one = self.inner.ins().iconst(types::I8, 1);
            let callee = self.callee(part, self.word_int());
            let call = self.inner.ins().call(callee, &[one]);
            let executing = self.inner.inst_results(call)[0];
            let equal = self.inner.ins().icmp(IntCC::Equal, entered, executing);
            same = Some(match same {
                Some(before) => self.inner.ins().band(before, equal),
                None => equal,
            });
        }
        if let Some(same) = same {
            self.assert_at(same, "all lanes of the warp are here", place);
        }
    }

    /// Returns `condition`, an integer, of which the builder notes that it is mostly not 0.
    ///
    /// The [`Adaptive`](crate::DivergenceStrategy::Adaptive) strategy, the only one that estimates costs, then
    /// expects one lane in a hundred to find 0, at branches on this value: those of
    /// [`if_then`](Self::if_then) and all other methods of this builder with a condition, but not those of
    /// [`ins`](Self::ins). A profile counts for more. Nothing else changes, and being wrong costs time only.
    #[track_caller]
    pub fn likely(&mut self, condition: Value) -> Value {
        self.hint(condition, true, Location::caller())
    }

    /// Returns `condition`, an integer, of which the builder notes that it is mostly 0: see
    /// [`likely`](Self::likely).
    #[track_caller]
    pub fn unlikely(&mut self, condition: Value) -> Value {
        self.hint(condition, false, Location::caller())
    }

    fn hint(&mut self, condition: Value, likely: bool, place: Caller) -> Value {
        self.enter(place);
        let condition = self.checked_int(condition, "condition", place);
        self.hints.insert(condition, likely);
        condition
    }

    /// The ballots that together identify the executing lanes if all of them vote for it.
    pub(super) fn executing(&self) -> &'static [Intrinsic] {
        match self.arch.word() {
            WordSize::Four if self.arch.lanes() > 32 => &[Intrinsic::Ballot, Intrinsic::BallotHigh],
            _ => &[Intrinsic::Ballot],
        }
    }

    /// Traps with the message in lanes where the condition is 0.
    fn assert_at(&mut self, condition: Value, message: &str, place: Caller) {
        let before = self.sources.intern(SourcePlace::from(place));
        let number = self.sources.intern_with_message(SourcePlace::from(place), message);
        self.trap_unless(condition, number);
        self.inner.set_srcloc(before);
    }

    fn trap_unless(&mut self, condition: Value, number: SourceLoc) {
        self.inner.set_srcloc(number);
        self.inner.ins().trapz(condition, ASSERTION);
    }

    /// Calls an intrinsic whose result has its operand's type.
    fn same_type(&mut self, intrinsic: Intrinsic, value: Value) -> Value {
        let callee = self.callee(intrinsic, self.inner.func.dfg.value_type(value));
        let call = self.inner.ins().call(callee, &[value]);
        self.inner.inst_results(call)[0]
    }

    /// The bits of an integer or a float as an integer.
    pub(super) fn bits(&mut self, value: Value) -> Value {
        let ty = self.inner.func.dfg.value_type(value);
        if !ty.is_float() {
            return value;
        }
        self.inner.ins().bitcast(ty.as_int(), MemFlagsData::new(), value)
    }
}
