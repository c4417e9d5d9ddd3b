//! Kernels of an OpenCL benchmark, with their inputs, and the same on the host: the product of two square matrices of
//! floats, bitonic sort, and a picture under a small square mask.

use std::array::from_fn;

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;
use harp_isa::ArchId;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::array::{Array, int};
use super::{Generator, Output, built, index_type};

/// Matrix product, a work-item an element: parameters `a`, `b`, `c` and the length of a side.
pub(super) fn matmul(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("matmul", arch, |bld| {
        let [a, b, c] = from_fn(|_| bld.param(ParamType::Pointer));
        let n = bld.param(index_type(arch));
        let (column, row) = (bld.global_id(0), bld.global_id(1));
        let (word, float) = (bld.word_int(), bld.word_float());
        let sum = bld.declare_var(float);
        // A variable reads 0 before it is set.
        let (zero, one) = (bld.ins().iconst(word, 0), bld.ins().iconst(word, 1));
        bld.for_range_unsigned(zero, n, one, |bld, k| {
            let index = cell(bld, row, n, k);
            let x = bld.load_elem(float, a, index);
            let index = cell(bld, k, n, column);
            let y = bld.load_elem(float, b, index);
            let product = bld.ins().fmul(x, y);
            let old = bld.use_var(sum);
            let new = bld.ins().fadd(old, product);
            bld.def_var(sum, new);
        });
        let index = cell(bld, row, n, column);
        let result = bld.use_var(sum);
        bld.store_elem(result, c, index);
    })
}

/// The index of a cell in rows of this length.
fn cell(b: &mut KernelBuilder<'_>, row: Value, length: Value, column: Value) -> Value {
    let start = b.ins().imul(row, length);
    b.ins().iadd(start, column)
}

/// The side of the matrices.
fn matrix_side(scale: u32) -> usize {
    256 >> (scale - 1)
}

fn matrices(scale: u32) -> (Vec<f32>, Vec<f32>) {
    let mut numbers = Generator::new().map(|number| (number & 15) as f32);
    let mut next = move || numbers.next().expect("the generator never ends");
    (0..matrix_side(scale).pow(2)).map(|_| (next(), next())).unzip()
}

/// The product's elements.
pub(super) fn run_matmul(device: &Device, kernel: &Kernel, scale: u32) -> Output {
    let (n, (a, b)) = (matrix_side(scale), matrices(scale));
    let (x, y) = (Array::of_floats(device, &a)?, Array::of_floats(device, &b)?);
    let product = Array::of_floats(device, &vec![0.0; n * n])?;
    let args = [x.arg(), y.arg(), product.arg(), int(device, i32::try_from(n)?)];
    device.launch(kernel, LaunchConfig::grid_2d(n, n), &args)?;
    Ok(product.words(device)?)
}

pub(super) fn host_matmul(scale: u32) -> Vec<u32> {
    let (n, (a, b)) = (matrix_side(scale), matrices(scale));
    let element = |row: usize, column: usize| {
        (0..n).fold(0.0, |sum: f32, k| sum + a[row * n + k] * b[k * n + column])
    };
    (0..n * n).map(|index| element(index / n, index % n).to_bits()).collect()
}

/// Bitonic sort, a launch a step of comparing and exchanging: parameters `d`, the length of the runs that are merged, and
/// the distance of the elements that are compared.
pub(super) fn bitonic(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("bitonic", arch, |b| {
        let d = b.param(ParamType::Pointer);
        let (k, j) = (b.param(index_type(arch)), b.param(index_type(arch)));
        let i = b.global_id(0);
        let word = b.word_int();
        let l = b.ins().bxor(i, j);
        let is_lower = b.ins().icmp(IntCC::SignedGreaterThan, l, i);
        b.if_then(is_lower, |b| {
            let low = b.load_elem(word, d, i);
            let high = b.load_elem(word, d, l);
            let bit = b.ins().band(i, k);
            let up = b.ins().icmp_imm_s(IntCC::Equal, bit, 0);
            let above = b.ins().icmp(IntCC::SignedGreaterThan, low, high);
            let exchange = b.ins().icmp(IntCC::Equal, above, up);
            b.if_then(exchange, |b| {
                b.store_elem(high, d, i);
                b.store_elem(low, d, l);
            });
        });
    })
}

fn unsorted(scale: u32) -> Vec<i32> {
    let length = 1 << 16 >> (scale - 1);
    Generator::new().take(length).map(u32::cast_signed).collect()
}

/// Runs all steps; the sorted elements.
pub(super) fn run_bitonic(device: &Device, kernel: &Kernel, scale: u32) -> Output {
    let numbers = unsorted(scale);
    let array = Array::of_ints(device, &numbers)?;
    let mut run = 2;
    while run <= numbers.len() {
        let mut distance = run / 2;
        while distance > 0 {
            let [run, distance_arg] = [run, distance].map(|step| int(device, step as i32));
            let args = [array.arg(), run, distance_arg];
            device.launch(kernel, LaunchConfig::grid_1d(numbers.len()), &args)?;
            distance /= 2;
        }
        run *= 2;
    }
    Ok(array.words(device)?)
}

pub(super) fn host_bitonic(scale: u32) -> Vec<u32> {
    let mut numbers = unsorted(scale);
    numbers.sort_unstable();
    numbers.into_iter().map(i32::cast_unsigned).collect()
}

/// The mask's side.
const MASK: usize = 5;

/// A picture under a mask, a work-item an element, with a test for the border: parameters are the picture, the mask, the
/// result, the picture's width and height and the mask's side.
pub(super) fn convolve(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("convolve", arch, |b| {
        let [picture, mask, out] = from_fn(|_| b.param(ParamType::Pointer));
        let [width, height, side] = from_fn(|_| b.param(index_type(arch)));
        let (x, y) = (b.global_id(0), b.global_id(1));
        let word = b.word_int();
        let (zero, one) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
        let radius = b.ins().ushr_imm_u(side, 1);
        let sum = b.declare_var(word);
        b.def_var(sum, zero);
        b.for_range_unsigned(zero, side, one, |b, j| {
            b.for_range_unsigned(zero, side, one, |b, i| {
                let column = b.ins().iadd(x, i);
                let column = b.ins().isub(column, radius);
                let row = b.ins().iadd(y, j);
                let row = b.ins().isub(row, radius);
                let inside_row = between(b, column, width);
                let inside_column = between(b, row, height);
                let inside = b.ins().band(inside_row, inside_column);
                b.if_then(inside, |b| {
                    let index = cell(b, row, width, column);
                    let value = b.load_elem(word, picture, index);
                    let index = cell(b, j, side, i);
                    let weight = b.load_elem(word, mask, index);
                    let product = b.ins().imul(value, weight);
                    let old = b.use_var(sum);
                    let new = b.ins().iadd(old, product);
                    b.def_var(sum, new);
                });
            });
        });
        let index = cell(b, y, width, x);
        let result = b.use_var(sum);
        b.store_elem(result, out, index);
    })
}

/// `0 <= value && value < end`.
fn between(b: &mut KernelBuilder<'_>, value: Value, end: Value) -> Value {
    let above = b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, value, 0);
    let below = b.ins().icmp(IntCC::SignedLessThan, value, end);
    b.ins().band(above, below)
}

/// The picture's side, the picture and the mask.
fn picture(scale: u32) -> (usize, Vec<i32>, Vec<i32>) {
    let side: usize = 512 >> (scale - 1);
    let mut numbers = Generator::new().map(u32::cast_signed);
    let picture = numbers.by_ref().take(side * side).map(|number| number & 255).collect();
    let mask = numbers.take(MASK * MASK).map(|number| (number & 7) - 3).collect();
    (side, picture, mask)
}

/// The result's elements.
pub(super) fn run_convolve(device: &Device, kernel: &Kernel, scale: u32) -> Output {
    let (n, picture, mask) = picture(scale);
    let (from, weights) = (Array::of_ints(device, &picture)?, Array::of_ints(device, &mask)?);
    let out = Array::of_ints(device, &vec![0; n * n])?;
    let [width, height] = [n; 2].map(|n| int(device, n as i32));
    let args = [from.arg(), weights.arg(), out.arg(), width, height, int(device, MASK as i32)];
    device.launch(kernel, LaunchConfig::grid_2d(n, n), &args)?;
    Ok(out.words(device)?)
}

pub(super) fn host_convolve(scale: u32) -> Vec<u32> {
    let (n, picture, mask) = picture(scale);
    let weighted = |y: usize, x: usize, j: usize, i: usize| {
        let row = (y + j).checked_sub(MASK / 2).filter(|&row| row < n)?;
        let column = (x + i).checked_sub(MASK / 2).filter(|&column| column < n)?;
        Some(picture[row * n + column] * mask[j * MASK + i])
    };
    let element = |at: usize| {
        let places = (0..MASK * MASK).map(|place| (place / MASK, place % MASK));
        places.filter_map(|(j, i)| weighted(at / n, at % n, j, i)).sum::<i32>().cast_unsigned()
    };
    (0..n * n).map(element).collect()
}
