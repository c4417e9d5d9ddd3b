//! Parameters and arrays of Rust's types: handles that keep an array's address and an index apart, with
//! elements whose type is checked.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use cranelift_codegen::ir::{AtomicRmwOp, Type, Value, types};

use super::memory::element_flags;
use super::{Caller, KernelBuilder, Param, ParamType};
use crate::error::BuildErrorKind;

mod sealed {
    pub trait Sealed {}
}

/// A type that arrays can have as their elements: the integers of 1, 2, 4 and 8 bytes and the two floats.
pub trait ElementType: sealed::Sealed + Copy + 'static {
    /// The CLIF type, which has no sign.
    const CLIF: Type;
}

/// An [`ElementType`] that is an integer, as atomic operations need it.
pub trait IntegerElement: ElementType {}

/// A type that scalar parameters can have: the [elements](ElementType), `usize` and `bool`.
pub trait ScalarType: sealed::Sealed + Copy + 'static {
    /// The parameter's type.
    const PARAM: ParamType;
}

macro_rules! elements {
    ($($ty:ty: $clif:ident)*) => { $(
        impl sealed::Sealed for $ty {}
        impl ElementType for $ty {
            const CLIF: Type = types::$clif;
        }
        impl ScalarType for $ty {
            const PARAM: ParamType = ParamType::$clif;
        }
    )* };
}

elements!(u8: I8 i8: I8 u16: I16 i16: I16 u32: I32 i32: I32 u64: I64 i64: I64 f32: F32 f64: F64);

macro_rules! integers {
    ($($ty:ty)*) => { $( impl IntegerElement for $ty {} )* };
}

integers!(u8 i8 u16 i16 u32 i32 u64 i64);

impl sealed::Sealed for usize {}
impl ScalarType for usize {
    const PARAM: ParamType = ParamType::Word;
}

impl sealed::Sealed for bool {}
impl ScalarType for bool {
    const PARAM: ParamType = ParamType::Bool;
}

/// An array of `T` in memory, as a kernel under construction sees it: that of a [parameter](KernelBuilder::buffer),
/// of a [work-group](KernelBuilder::group_buffer), or at [an address](BufferParam::at).
///
/// [`KernelBuilder::load`] and [`KernelBuilder::store`] access its elements.
pub struct BufferParam<T> {
    base: Value,
    /// Whether nothing changes its contents while the kernel runs.
    constant: bool,
    element: PhantomData<fn() -> T>,
}

impl<T: ElementType> BufferParam<T> {
    /// The array at an address that the kernel computes, a word: a multiple of the element's size.
    pub fn at(base: Value) -> BufferParam<T> {
        BufferParam { base, constant: false, element: PhantomData }
    }

    /// The address of its first element.
    pub fn base(self) -> Value {
        self.base
    }
}

impl<T> Clone for BufferParam<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BufferParam<T> {}

impl<T> fmt::Debug for BufferParam<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferParam<{}>({})", std::any::type_name::<T>(), self.base)
    }
}

impl KernelBuilder<'_> {
    /// Adds a parameter that is a buffer of `T`. A launch checks that its argument is a buffer whose elements
    /// have the same CLIF type, and names the parameter if not.
    ///
    /// A name that another parameter has is an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("axpy", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// let (x, y) = (b.buffer::<f32>("x"), b.buffer::<f32>("y"));
    /// let (a, i) = (b.scalar::<f32>("a"), b.global_id(0));
    /// let (xi, yi) = (b.load(x, i), b.load(y, i));
    /// let product = b.ins().fmul(a, xi);
    /// let sum = b.ins().fadd(product, yi);
    /// b.store(y, i, sum);
    /// b.return_();
    /// b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn buffer<T: ElementType>(&mut self, name: &str) -> BufferParam<T> {
        let param = Param::new(Some(name), ParamType::Pointer, Some(T::CLIF));
        BufferParam::at(self.add_param(param, Location::caller()))
    }

    /// Adds a parameter that is a buffer of `T` which nothing changes while the kernel runs, as the kernel promises: neither
    /// the kernel itself, in any of its work-items, nor through another parameter. In return, an element whose index is the
    /// same in all lanes is the same, too: a branch on it does not diverge.
    ///
    /// Stores to it are errors, also atomic ones. A launch trusts the promise unless it
    /// [is checked](crate::CompileOptions::report_accesses).
    ///
    /// A name that another parameter has is an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("fill", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// let (settings, out) = (b.constant_buffer::<i32>("settings"), b.buffer::<i32>("out"));
    /// let (zero, i) = (b.ins().iconst(types::I32, 0), b.global_id(0));
    /// // All lanes take the same side.
    /// let is_on = b.load(settings, zero);
    /// b.if_then(is_on, |b| b.store(out, i, is_on));
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn constant_buffer<T: ElementType>(&mut self, name: &str) -> BufferParam<T> {
        let param = Param::new(Some(name), ParamType::Pointer, Some(T::CLIF));
        let base = self.add_param(param.with_constant_contents(), Location::caller());
        BufferParam { constant: true, ..BufferParam::at(base) }
    }

    /// Adds a parameter that is a number: its value, of the CLIF type of `T`. A `usize` is a word, which the
    /// launch's argument must fit; a `bool` is an `i8` of 0 or 1.
    ///
    /// A name that another parameter has is an error.
    #[track_caller]
    pub fn scalar<T: ScalarType>(&mut self, name: &str) -> Value {
        self.add_param(Param::new(Some(name), T::PARAM, None), Location::caller())
    }

    /// Adds a parameter that is an array of `T` which the work-items of a group share. The launch's argument is
    /// its length. Each group has its own array; its initial contents are unspecified.
    ///
    /// A name that another parameter has is an error.
    #[track_caller]
    pub fn group_param<T: ElementType>(&mut self, name: &str) -> BufferParam<T> {
        let param = Param::new(Some(name), ParamType::Group, Some(T::CLIF));
        BufferParam::at(self.add_param(param, Location::caller()))
    }

    /// An array of `len` elements of `T` which the work-items of a group share, as
    /// [`group_array`](Self::group_array).
    ///
    /// More than 2^28 bytes in a kernel are an error, which has the name.
    #[track_caller]
    pub fn group_buffer<T: ElementType>(&mut self, name: &str, len: u32) -> BufferParam<T> {
        BufferParam::at(self.add_group_array(Some(name), T::CLIF, len, Location::caller()))
    }

    /// Loads element `index`, a word, of an array. See [`load_elem`](Self::load_elem).
    #[track_caller]
    pub fn load<T: ElementType>(&mut self, array: BufferParam<T>, index: Value) -> Value {
        self.load_with(element_flags(array.constant), T::CLIF, array.base, index)
    }

    /// Stores `value`, of the CLIF type of `T`, as element `index`, a word, of an array. See
    /// [`store_elem`](Self::store_elem).
    #[track_caller]
    pub fn store<T: ElementType>(&mut self, array: BufferParam<T>, index: Value, value: Value) {
        let place = Location::caller();
        self.enter(place);
        self.check_written(array, place);
        let value = self.checked(value, T::CLIF, "element", place);
        self.store_elem(value, array.base, index);
    }

    /// Atomically replaces element `index` of an array by `op` of the element and `value`; the result is the
    /// old element. See [`atomic_elem`](Self::atomic_elem).
    #[track_caller]
    pub fn atomic<T: IntegerElement>(
        &mut self,
        op: AtomicRmwOp,
        array: BufferParam<T>,
        index: Value,
        value: Value,
    ) -> Value {
        let place = Location::caller();
        self.enter(place);
        self.check_written(array, place);
        let value = self.checked(value, T::CLIF, "operand of an atomic operation", place);
        self.atomic_elem(op, value, array.base, index)
    }

    /// Atomically replaces element `index` of an array by `new` if it equals `expected`; the result is the old
    /// element. See [`compare_exchange_elem`](Self::compare_exchange_elem).
    #[track_caller]
    pub fn compare_exchange<T: IntegerElement>(
        &mut self,
        array: BufferParam<T>,
        index: Value,
        expected: Value,
        new: Value,
    ) -> Value {
        let place = Location::caller();
        self.enter(place);
        self.check_written(array, place);
        let new = self.checked(new, T::CLIF, "new value of an element", place);
        self.compare_exchange_elem(expected, new, array.base, index)
    }

    /// Refuses to write to what is constant.
    fn check_written<T>(&mut self, array: BufferParam<T>, place: Caller) {
        if array.constant {
            self.fail(BuildErrorKind::ConstantBuffer, place);
        }
    }
}
