//! Array elements.

use std::panic::Location;

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};

use super::{Caller, KernelBuilder};

/// Arrays are aligned to their elements; their addresses are the user's, so an access can trap.
fn element_flags() -> MemFlagsData {
    MemFlagsData::new().with_aligned()
}

impl KernelBuilder<'_> {
    /// Loads element `index` of the array of `ty` at address `base`.
    ///
    /// `base` and `index` are words, `ty` an integer or float of at most 64 bits. The address must
    /// be a multiple of the size of `ty`. A bad address is a trap that names this call.
    #[track_caller]
    pub fn load_elem(&mut self, ty: Type, base: Value, index: Value) -> Value {
        let place = Location::caller();
        self.enter(place);
        let ty = self.scalar_type(ty, "element", place);
        let address = self.element(ty, base, index, place);
        self.inner.ins().load(ty, element_flags(), address, 0)
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
        self.inner.ins().store(element_flags(), value, address, 0);
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
