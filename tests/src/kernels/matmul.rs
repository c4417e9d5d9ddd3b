//! The product of two square matrices of floats, a work-item an element.

use std::error::Error;

use harp_isa::ArchId;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::array::{Array, int};
use super::{Generator, index_type};

/// The kernel: parameters `a`, `b`, `c` and the length of a side.
///
/// # Errors
///
/// None as long as the builder takes what it is given.
pub fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("matmul", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let bld = &mut builder;
    let [a, b, c] = std::array::from_fn(|_| bld.param(ParamType::Pointer));
    let n = bld.param(index_type(arch));
    let (column, row) = (bld.global_id(0), bld.global_id(1));
    let (word, float) = (bld.word_int(), bld.word_float());
    let sum = bld.declare_var(float);
    // A variable reads 0 before it is set.
    let zero = bld.ins().iconst(word, 0);
    let one = bld.ins().iconst(word, 1);
    bld.for_range(zero, n, one, |bld, k| {
        let start = bld.ins().imul(row, n);
        let index = bld.ins().iadd(start, k);
        let x = bld.load_elem(float, a, index);
        let start = bld.ins().imul(k, n);
        let index = bld.ins().iadd(start, column);
        let y = bld.load_elem(float, b, index);
        let product = bld.ins().fmul(x, y);
        let old = bld.use_var(sum);
        let new = bld.ins().fadd(old, product);
        bld.def_var(sum, new);
    });
    let start = bld.ins().imul(row, n);
    let index = bld.ins().iadd(start, column);
    let result = bld.use_var(sum);
    bld.store_elem(result, c, index);
    bld.return_();
    builder.finalize()?;
    Ok(source)
}

/// The side of the matrices.
fn side(scale: u32) -> usize {
    256 >> (scale - 1)
}

fn inputs(scale: u32) -> (Vec<f32>, Vec<f32>) {
    let mut numbers = Generator::new().map(|number| (number & 15) as f32);
    let mut next = move || numbers.next().expect("the generator never ends");
    (0..side(scale).pow(2)).map(|_| (next(), next())).unzip()
}

/// Runs the kernel; the product's elements.
///
/// # Errors
///
/// Whatever the device reports.
pub fn run(device: &mut Device, kernel: &Kernel, scale: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let (n, (a, b)) = (side(scale), inputs(scale));
    let (x, y) = (Array::of_floats(device, &a)?, Array::of_floats(device, &b)?);
    let product = Array::of_floats(device, &vec![0.0; n * n])?;
    let args = [x.arg(), y.arg(), product.arg(), int(device, i32::try_from(n)?)];
    device.launch(kernel, LaunchConfig::grid_2d(n, n), &args)?;
    Ok(product.words(device)?)
}

/// The same on the host.
pub fn on_host(scale: u32) -> Vec<u32> {
    let (n, (a, b)) = (side(scale), inputs(scale));
    let element = |row: usize, column: usize| {
        (0..n).fold(0.0, |sum: f32, k| sum + a[row * n + k] * b[k * n + column])
    };
    (0..n * n).map(|index| element(index / n, index % n).to_bits()).collect()
}
