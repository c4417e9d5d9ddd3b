//! Array elements, plain and atomic.

use std::panic::Location;

use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Type, Value};

use super::{Caller, KernelBuilder};

/// Flags of element accesses. Arrays are aligned to their elements. The user chooses the address, so an
/// access can trap.
pub(super) fn element_flags(constant: bool) -> MemFlagsData {
    let flags = MemFlagsData::new().with_aligned();
    if constant { flags.with_readonly() } else { flags }
}

impl KernelBuilder<'_> {
    /// Loads element `index` of the array of `ty` at address `base`.
    ///
    /// `base` and `index` are words, `ty` an integer or float of at most 64 bits. An address without memory
    /// behind it causes a trap that names this call.
    ///
    /// The address must be a multiple of the size of `ty`; the builder trusts the user on this. For a word at
    /// an unaligned address the machine silently moves only the bytes up to the end of the aligned word in
    /// which it begins. With [`CompileOptions::check_alignment`](crate::CompileOptions::check_alignment) this
    /// is a trap, too, that names this call; the check costs two or three instructions per access. For data
    /// that need not be aligned, use `ins().load` with flags that do not promise alignment.
    #[track_caller]
    pub fn load_elem(&mut self, ty: Type, base: Value, index: Value) -> Value {
        self.load_with(element_flags(false), ty, base, index)
    }

    /// Loads an element with these flags.
    #[track_caller]
    pub(super) fn load_with(
        &mut self,
        flags: MemFlagsData,
        ty: Type,
        base: Value,
        index: Value,
    ) -> Value {
        let place = Location::caller();
        self.enter(place);
        let ty = self.scalar_type(ty, "element", place);
        let address = self.element(ty, base, index, place);
        self.inner.ins().load(ty, flags, address, 0)
    }

    /// Stores `value` as element `index` of an array of its type at address `base`.
    ///
    /// See [`load_elem`](KernelBuilder::load_elem).
    #[track_caller]
    pub fn store_elem(&mut self, value: Value, base: Value, index: Value) {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_scalar(value, "element", place);
        let ty = self.inner.func.dfg.value_type(value);
        let address = self.element(ty, base, index, place);
        self.inner.ins().store(element_flags(false), value, address, 0);
    }

    /// Atomically replaces element `index` of an array at address `base` by `op` of the element and `value`.
    /// The element has the type of `value`, an integer. The result is the old element. Lanes that access the
    /// same element take turns, the lowest first.
    ///
    /// Without extension X, lanes and warps take turns under a lock, which takes about 100 instructions and ten for each
    /// lane of the warp. So does [`store_elem`](KernelBuilder::store_elem) of an element that is smaller than a word.
    /// For the rest see [`load_elem`](KernelBuilder::load_elem).
    #[track_caller]
    pub fn atomic_elem(
        &mut self,
        op: AtomicRmwOp,
        value: Value,
        base: Value,
        index: Value,
    ) -> Value {
        let place = Location::caller();
        self.enter(place);
        let value = self.checked_int(value, "operand of an atomic operation", place);
        let ty = self.inner.func.dfg.value_type(value);
        let address = self.element(ty, base, index, place);
        self.inner.ins().atomic_rmw(ty, element_flags(false), op, address, value)
    }

    /// Atomically replaces element `index` of an array at address `base` by `new` if it equals `expected`.
    /// The element has the type of `new`, an integer. The result is the old element.
    ///
    /// See [`atomic_elem`](KernelBuilder::atomic_elem).
    #[track_caller]
    pub fn compare_exchange_elem(
        &mut self,
        expected: Value,
        new: Value,
        base: Value,
        index: Value,
    ) -> Value {
        let place = Location::caller();
        self.enter(place);
        let new = self.checked_int(new, "new value of an element", place);
        let ty = self.inner.func.dfg.value_type(new);
        let expected = self.checked(expected, ty, "expected value of an element", place);
        let address = self.element(ty, base, index, place);
        self.inner.ins().atomic_cas(element_flags(false), address, expected, new)
    }

    /// `base + index * size of ty`.
    fn element(&mut self, ty: Type, base: Value, index: Value, place: Caller) -> Value {
        let word = self.word_int();
        let base = self.checked(base, word, "address of an array", place);
        let index = self.checked(index, word, "index", place);
        let shift = ty.bytes().trailing_zeros();
        if shift == 0 {
            return self.inner.ins().iadd(base, index);
        }
        let shift = self.inner.ins().iconst(word, i64::from(shift));
        let offset = self.inner.ins().ishl(index, shift);
        self.inner.ins().iadd(base, offset)
    }
}
