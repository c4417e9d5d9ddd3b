//! Sums and products of floats: `y := a * x + y`, and the product of two square matrices.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelSource};
use harp_runtime::{Arg, Device, LaunchConfig};

use super::int::{built, cell, global_id, iconst, load, store};
use super::{Launch, Output};
use crate::Generator;

const FACTOR: f32 = 2.5;

/// Parameters `x`, `y` and the factor.
pub(super) fn saxpy(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("saxpy", arch, |b| {
        let (x, y) = (b.buffer::<f32>("x"), b.buffer::<f32>("y"));
        let (a, i) = (b.scalar::<f32>("a"), b.global_id(0));
        let (xi, yi) = (b.load(x, i), b.load(y, i));
        let product = b.ins().fmul(a, xi);
        let sum = b.ins().fadd(product, yi);
        b.store(y, i, sum);
    })
}

/// Two arrays of whole numbers up to `mask`, taken in turn.
fn floats(len: usize, mask: u32) -> (Vec<f32>, Vec<f32>) {
    let mut numbers = Generator::new().map(|number| (number & mask) as f32);
    let mut next = move || numbers.next().expect("the generator never ends");
    (0..len).map(|_| (next(), next())).unzip()
}

fn vectors(scale: u32) -> (Vec<f32>, Vec<f32>) {
    floats(1 << 20 >> (scale - 1), 1023)
}

pub(super) fn run_saxpy(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let (x, y) = vectors(scale);
    let (x, y) = (device.buffer_from_slice(&x)?, device.buffer_from_slice(&y)?);
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(FACTOR)];
    launch(LaunchConfig::grid_1d(y.len()), &args)?;
    Ok(device.read(&y)?.into_iter().map(f32::to_bits).collect())
}

pub(super) fn host_saxpy(scale: u32) -> Vec<u32> {
    let (x, y) = vectors(scale);
    x.iter().zip(y).map(|(x, y)| (FACTOR * x + y).to_bits()).collect()
}

/// A work-item an element of the product: parameters `a`, `b`, `c` and the length of a side.
pub(super) fn matmul(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("matmul", arch, |bld| {
        let (a, b) = (bld.buffer::<f32>("a"), bld.buffer::<f32>("b"));
        let (c, n) = (bld.buffer::<f32>("c"), bld.scalar::<i32>("n"));
        let (column, row) = (global_id(bld, 0), global_id(bld, 1));
        let start = [iconst(bld, 0), bld.ins().f32const(0.0)];
        let [_, sum] = bld.loop_with(start, |bld, [k, sum]| {
            let is_last = bld.ins().icmp(IntCC::SignedGreaterThanOrEqual, k, n);
            bld.break_if(is_last);
            let at = cell(bld, row, n, k);
            let x = load(bld, a, at);
            let at = cell(bld, k, n, column);
            let y = load(bld, b, at);
            let product = bld.ins().fmul(x, y);
            [bld.ins().iadd_imm_s(k, 1), bld.ins().fadd(sum, product)]
        });
        let at = cell(bld, row, n, column);
        store(bld, c, at, sum);
    })
}

/// The side of the matrices.
fn side(scale: u32) -> usize {
    256 >> (scale - 1)
}

/// The product's elements.
pub(super) fn run_matmul(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let n = side(scale);
    let (a, b) = floats(n * n, 15);
    let (a, b) = (device.buffer_from_slice(&a)?, device.buffer_from_slice(&b)?);
    let product = device.buffer_zeroed::<f32>(n * n)?;
    let args = [Arg::from(&a), Arg::from(&b), Arg::from(&product), Arg::from(i32::try_from(n)?)];
    launch(LaunchConfig::grid_2d(n, n), &args)?;
    Ok(device.read(&product)?.into_iter().map(f32::to_bits).collect())
}

pub(super) fn host_matmul(scale: u32) -> Vec<u32> {
    let n = side(scale);
    let (a, b) = floats(n * n, 15);
    let element = |row: usize, column: usize| {
        (0..n).fold(0.0, |sum: f32, k| sum + a[row * n + k] * b[k * n + column])
    };
    (0..n * n).map(|index| element(index / n, index % n).to_bits()).collect()
}
