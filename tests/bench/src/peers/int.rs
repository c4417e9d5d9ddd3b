//! What kernels in the manner of OpenCL C are made of: all numbers have 32 bits, whatever the machine's word.

use harp_isa::{ArchId, WordSize};
use harp_jit::ir::{Value, types};
use harp_jit::{BufferParam, BuildError, ElementType, KernelBuilder, KernelSource};

/// The kernel that `make` builds, and which returns behind that.
pub(super) fn built(
    name: &str,
    arch: ArchId,
    make: impl FnOnce(&mut KernelBuilder<'_>),
) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new(name, arch);
    let mut b = KernelBuilder::new(&mut source);
    make(&mut b);
    b.return_();
    b.finalize()?;
    Ok(source)
}

/// A word, such as a position in the grid, as OpenCL's `int`.
pub(super) fn int(b: &mut KernelBuilder<'_>, word: Value) -> Value {
    match b.arch().word() {
        WordSize::Four => word,
        WordSize::Eight => b.ins().ireduce(types::I32, word),
    }
}

/// An `int` as an index.
pub(super) fn index(b: &mut KernelBuilder<'_>, int: Value) -> Value {
    match b.arch().word() {
        WordSize::Four => int,
        WordSize::Eight => b.ins().sextend(types::I64, int),
    }
}

/// The position in the grid.
pub(super) fn global_id(b: &mut KernelBuilder<'_>, dim: u8) -> Value {
    let id = b.global_id(dim);
    int(b, id)
}

pub(super) fn iconst(b: &mut KernelBuilder<'_>, value: i64) -> Value {
    b.ins().iconst(types::I32, value)
}

/// The element at an `int`.
pub(super) fn load<T: ElementType>(
    b: &mut KernelBuilder<'_>,
    array: BufferParam<T>,
    at: Value,
) -> Value {
    let at = index(b, at);
    b.load(array, at)
}

pub(super) fn store<T: ElementType>(
    b: &mut KernelBuilder<'_>,
    array: BufferParam<T>,
    at: Value,
    value: Value,
) {
    let at = index(b, at);
    b.store(array, at, value);
}

/// The index of a cell in rows of this length.
pub(super) fn cell(b: &mut KernelBuilder<'_>, row: Value, length: Value, column: Value) -> Value {
    let start = b.ins().imul(row, length);
    b.ins().iadd(start, column)
}
