//! A picture under a small square mask: a work-item an element, with a test for the border.

use std::error::Error;

use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;
use harp_isa::ArchId;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::array::{Array, int};
use super::{Generator, index_type};

/// The mask's side.
const MASK: usize = 5;

/// The kernel: parameters are the picture, the mask, the result, the picture's width and height and the
/// mask's side.
///
/// # Errors
///
/// None as long as the builder takes what it is given.
pub fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("convolve", arch);
    let mut b = KernelBuilder::new(&mut source);
    let [picture, mask, out] = std::array::from_fn(|_| b.param(ParamType::Pointer));
    let [width, height, side] = std::array::from_fn(|_| b.param(index_type(arch)));
    let (x, y) = (b.global_id(0), b.global_id(1));
    let word = b.word_int();
    let (zero, one) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
    let radius = b.ins().ushr_imm_u(side, 1);
    let sum = b.declare_var(word);
    b.def_var(sum, zero);
    b.for_range(zero, side, one, |b, j| {
        b.for_range(zero, side, one, |b, i| {
            let column = b.ins().iadd(x, i);
            let column = b.ins().isub(column, radius);
            let row = b.ins().iadd(y, j);
            let row = b.ins().isub(row, radius);
            let inside_row = between(b, column, width);
            let inside_column = between(b, row, height);
            let inside = b.ins().band(inside_row, inside_column);
            b.if_then(inside, |b| {
                let start = b.ins().imul(row, width);
                let index = b.ins().iadd(start, column);
                let value = b.load_elem(word, picture, index);
                let start = b.ins().imul(j, side);
                let index = b.ins().iadd(start, i);
                let weight = b.load_elem(word, mask, index);
                let product = b.ins().imul(value, weight);
                let old = b.use_var(sum);
                let new = b.ins().iadd(old, product);
                b.def_var(sum, new);
            });
        });
    });
    let start = b.ins().imul(y, width);
    let index = b.ins().iadd(start, x);
    let result = b.use_var(sum);
    b.store_elem(result, out, index);
    b.return_();
    b.finalize()?;
    Ok(source)
}

/// `0 <= value && value < end`.
fn between(b: &mut KernelBuilder<'_>, value: Value, end: Value) -> Value {
    let above = b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, value, 0);
    let below = b.ins().icmp(IntCC::SignedLessThan, value, end);
    b.ins().band(above, below)
}

fn side(scale: u32) -> usize {
    512 >> (scale - 1)
}

/// The picture and the mask.
fn inputs(scale: u32) -> (Vec<i32>, Vec<i32>) {
    let mut numbers = Generator::new().map(u32::cast_signed);
    let picture = numbers.by_ref().take(side(scale).pow(2)).map(|number| number & 255).collect();
    let mask = numbers.take(MASK * MASK).map(|number| (number & 7) - 3).collect();
    (picture, mask)
}

/// Runs the kernel; the result's elements.
///
/// # Errors
///
/// Whatever the device reports.
pub fn run(device: &mut Device, kernel: &Kernel, scale: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let (n, (picture, mask)) = (side(scale), inputs(scale));
    let (from, weights) = (Array::of_ints(device, &picture)?, Array::of_ints(device, &mask)?);
    let out = Array::of_ints(device, &vec![0; n * n])?;
    let [width, height] = [n; 2].map(|n| int(device, n as i32));
    let args = [from.arg(), weights.arg(), out.arg(), width, height, int(device, MASK as i32)];
    device.launch(kernel, LaunchConfig::grid_2d(n, n), &args)?;
    Ok(out.words(device)?)
}

/// The same on the host.
pub fn on_host(scale: u32) -> Vec<u32> {
    let (n, (picture, mask)) = (side(scale), inputs(scale));
    let mut out = Vec::with_capacity(n * n);
    for (y, x) in (0..n).flat_map(|y| (0..n).map(move |x| (y, x))) {
        let mut sum = 0_i32;
        for (j, i) in (0..MASK).flat_map(|j| (0..MASK).map(move |i| (j, i))) {
            let row = (y + j).checked_sub(MASK / 2).filter(|&row| row < n);
            let column = (x + i).checked_sub(MASK / 2).filter(|&column| column < n);
            if let (Some(row), Some(column)) = (row, column) {
                sum += picture[row * n + column] * mask[j * MASK + i];
            }
        }
        out.push(sum.cast_unsigned());
    }
    out
}
