//! Pictures: the Mandelbrot set, and a picture under a small square mask.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::{FloatCC, IntCC};
use harp_jit::ir::{Value, types};
use harp_jit::{BuildError, KernelBuilder, KernelSource};
use harp_runtime::{Arg, Device, LaunchConfig};

use super::int::{built, cell, global_id, iconst, load, store};
use super::{Launch, Output};
use crate::Generator;

/// Rounds after which a point counts as one of the set.
const LIMIT: i32 = 256;

/// The rounds that each point takes to leave: parameters `out`, width and height of the picture, and the most rounds.
pub(super) fn mandelbrot(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("mandelbrot", arch, |b| {
        let (out, w, h) = (b.buffer::<i32>("out"), b.scalar::<i32>("w"), b.scalar::<i32>("h"));
        let limit = b.scalar::<i32>("limit");
        let (px, py) = (global_id(b, 0), global_id(b, 1));
        let (cx, cy) = (coordinate(b, px, w, -2.0), coordinate(b, py, h, -1.5));
        let (zero, none) = (b.ins().f32const(0.0), iconst(b, 0));
        let (two, four) = (b.ins().f32const(2.0), b.ins().f32const(4.0));
        let [_, _, rounds] = b.loop_with([zero, zero, none], |b, [x, y, rounds]| {
            let is_last = b.ins().icmp(IntCC::SignedGreaterThanOrEqual, rounds, limit);
            b.break_if(is_last);
            let (xx, yy) = (b.ins().fmul(x, x), b.ins().fmul(y, y));
            let distance = b.ins().fadd(xx, yy);
            let stays = b.ins().fcmp(FloatCC::LessThan, distance, four);
            let leaves = b.ins().icmp_imm_s(IntCC::Equal, stays, 0);
            b.break_if(leaves);
            let difference = b.ins().fsub(xx, yy);
            let next = b.ins().fadd(difference, cx);
            let twice = b.ins().fmul(two, x);
            let product = b.ins().fmul(twice, y);
            [next, b.ins().fadd(product, cy), b.ins().iadd_imm_s(rounds, 1)]
        });
        let at = cell(b, py, w, px);
        store(b, out, at, rounds);
    })
}

/// `start + 3 * position / extent`
fn coordinate(b: &mut KernelBuilder<'_>, position: Value, extent: Value, start: f32) -> Value {
    let [position, extent] = [position, extent].map(|v| b.ins().fcvt_from_sint(types::F32, v));
    let (three, start) = (b.ins().f32const(3.0), b.ins().f32const(start));
    let scaled = b.ins().fmul(three, position);
    let scaled = b.ins().fdiv(scaled, extent);
    b.ins().fadd(start, scaled)
}

/// The side of the picture.
fn side(scale: u32) -> usize {
    256 >> (scale - 1)
}

/// The rounds of each point.
pub(super) fn run_mandelbrot(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let n = side(scale);
    let out = device.buffer_zeroed::<i32>(n * n)?;
    let extent = Arg::from(i32::try_from(n)?);
    let args = [Arg::from(&out), extent.clone(), extent, Arg::from(LIMIT)];
    launch(LaunchConfig::grid_2d(n, n), &args)?;
    Ok(device.read(&out)?.into_iter().map(i32::cast_unsigned).collect())
}

pub(super) fn host_mandelbrot(scale: u32) -> Vec<u32> {
    mandelbrot_by(scale, |a, b, c| a * b + c)
}

/// With products and sums rounded once, where clang lets it be.
pub(super) fn contracted_mandelbrot(scale: u32) -> Vec<u32> {
    mandelbrot_by(scale, f32::mul_add)
}

fn mandelbrot_by(scale: u32, product_and_sum: fn(f32, f32, f32) -> f32) -> Vec<u32> {
    let n = side(scale);
    let rounds = |at: usize| {
        let coordinate = |position: usize, start: f32| start + 3.0 * position as f32 / n as f32;
        let (cx, cy) = (coordinate(at % n, -2.0), coordinate(at / n, -1.5));
        let (mut x, mut y, mut rounds) = (0.0_f32, 0.0_f32, 0);
        while rounds < LIMIT && product_and_sum(x, x, y * y) < 4.0 {
            (x, y) = (product_and_sum(x, x, -(y * y)) + cx, product_and_sum(2.0 * x, y, cy));
            rounds += 1;
        }
        rounds.cast_unsigned()
    };
    (0..n * n).map(rounds).collect()
}

/// The mask's side.
const MASK: usize = 5;

/// A work-item an element of the result, with a test for the border: parameters are the picture, the mask, the result,
/// the picture's width and height and the mask's side.
pub(super) fn convolve(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("convolve", arch, |b| {
        let [picture, mask, out] = ["in", "mask", "out"].map(|name| b.buffer::<i32>(name));
        let [width, height, side] = ["w", "h", "m"].map(|name| b.scalar::<i32>(name));
        let (x, y) = (global_id(b, 0), global_id(b, 1));
        let [zero, one] = [0, 1].map(|value| iconst(b, value));
        let radius = b.ins().ushr_imm_u(side, 1);
        let sum = b.declare_var(types::I32);
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
                    let at = cell(b, row, width, column);
                    let value = load(b, picture, at);
                    let at = cell(b, j, side, i);
                    let weight = load(b, mask, at);
                    let product = b.ins().imul(value, weight);
                    let old = b.use_var(sum);
                    let new = b.ins().iadd(old, product);
                    b.def_var(sum, new);
                });
            });
        });
        let at = cell(b, y, width, x);
        let result = b.use_var(sum);
        store(b, out, at, result);
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
pub(super) fn run_convolve(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let (n, picture, mask) = picture(scale);
    let (from, weights) = (device.buffer_from_slice(&picture)?, device.buffer_from_slice(&mask)?);
    let out = device.buffer_zeroed::<i32>(n * n)?;
    let [width, height, side] = [n, n, MASK].map(|extent| Arg::from(extent as i32));
    let args = [Arg::from(&from), Arg::from(&weights), Arg::from(&out), width, height, side];
    launch(LaunchConfig::grid_2d(n, n), &args)?;
    Ok(device.read(&out)?.into_iter().map(i32::cast_unsigned).collect())
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
