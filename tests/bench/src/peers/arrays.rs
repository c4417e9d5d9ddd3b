//! Arrays of integers: bitonic sort, sums of work-groups, binary search.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelSource};
use harp_runtime::{Arg, Device, LaunchConfig};

use super::int::{built, global_id, iconst, int, load, store};
use super::{Launch, Output};
use crate::Generator;

/// Bitonic sort, a launch a step of comparing and exchanging: parameters `d`, the length of the runs that are merged, and
/// the distance of the elements that are compared.
pub(super) fn bitonic(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("bitonic", arch, |b| {
        let d = b.buffer::<i32>("d");
        let (k, j) = (b.scalar::<i32>("k"), b.scalar::<i32>("j"));
        let i = global_id(b, 0);
        let l = b.ins().bxor(i, j);
        let is_lower = b.ins().icmp(IntCC::SignedGreaterThan, l, i);
        b.if_then(is_lower, |b| {
            let (low, high) = (load(b, d, i), load(b, d, l));
            let bit = b.ins().band(i, k);
            let up = b.ins().icmp_imm_s(IntCC::Equal, bit, 0);
            let above = b.ins().icmp(IntCC::SignedGreaterThan, low, high);
            let exchange = b.ins().icmp(IntCC::Equal, above, up);
            b.if_then(exchange, |b| {
                store(b, d, i, high);
                store(b, d, l, low);
            });
        });
    })
}

fn unsorted(scale: u32) -> Vec<i32> {
    let length = 1 << 16 >> (scale - 1);
    Generator::new().take(length).map(u32::cast_signed).collect()
}

/// Runs all steps; the sorted elements.
pub(super) fn run_bitonic(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let numbers = device.buffer_from_slice(&unsorted(scale))?;
    let length = i32::try_from(numbers.len())?;
    let mut run = 2;
    while run <= length {
        let mut distance = run / 2;
        while distance > 0 {
            let args = [Arg::from(&numbers), Arg::from(run), Arg::from(distance)];
            launch(LaunchConfig::grid_1d(numbers.len()), &args)?;
            distance /= 2;
        }
        run *= 2;
    }
    Ok(device.read(&numbers)?.into_iter().map(i32::cast_unsigned).collect())
}

pub(super) fn host_bitonic(scale: u32) -> Vec<u32> {
    let mut numbers = unsorted(scale);
    numbers.sort_unstable();
    numbers.into_iter().map(i32::cast_unsigned).collect()
}

/// The work-items of a group.
const GROUP: usize = 128;

/// The sum of each group's elements, by halves: parameters `in`, `out` and the memory of the group.
pub(super) fn reduce(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("reduce", arch, |b| {
        let (input, output) = (b.buffer::<i32>("in"), b.buffer::<i32>("out"));
        let sums = b.group_param::<i32>("tmp");
        let (own, size) = (b.local_id(0), b.local_size(0));
        let (own, size) = (int(b, own), int(b, size));
        let at = global_id(b, 0);
        let first = load(b, input, at);
        store(b, sums, own, first);
        b.barrier();
        let half = b.ins().ushr_imm_u(size, 1);
        b.loop_with([half], |b, [half]| {
            let goes_on = b.ins().icmp_imm_s(IntCC::Equal, half, 0);
            b.break_if(goes_on);
            let adds = b.ins().icmp(IntCC::SignedLessThan, own, half);
            b.if_then(adds, |b| {
                let other = b.ins().iadd(own, half);
                let (x, y) = (load(b, sums, own), load(b, sums, other));
                let sum = b.ins().iadd(x, y);
                store(b, sums, own, sum);
            });
            b.barrier();
            [b.ins().ushr_imm_u(half, 1)]
        });
        let is_first = b.ins().icmp_imm_s(IntCC::Equal, own, 0);
        b.if_then(is_first, |b| {
            let (zero, group) = (iconst(b, 0), b.group_id(0));
            let sum = load(b, sums, zero);
            b.store(output, group, sum);
        });
    })
}

fn summands(scale: u32) -> Vec<i32> {
    let length = 1 << 20 >> (scale - 1);
    Generator::new().take(length).map(|number| (number & 255).cast_signed()).collect()
}

/// The sums.
pub(super) fn run_reduce(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let input = device.buffer_from_slice(&summands(scale))?;
    let output = device.buffer_zeroed::<i32>(input.len() / GROUP)?;
    let args = [Arg::from(&input), Arg::from(&output), Arg::group::<i32>(GROUP)];
    let groups = LaunchConfig::grid_1d(input.len()).with_groups_1d(GROUP);
    launch(groups, &args)?;
    Ok(device.read(&output)?.into_iter().map(i32::cast_unsigned).collect())
}

pub(super) fn host_reduce(scale: u32) -> Vec<u32> {
    let sums = summands(scale);
    sums.chunks(GROUP).map(|group| group.iter().sum::<i32>().cast_unsigned()).collect()
}

/// The position of a key in sorted numbers, or -1: parameters `hay` and its length, `key`, `pos`.
pub(super) fn binsearch(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("binsearch", arch, |b| {
        let (hay, n) = (b.buffer::<i32>("hay"), b.scalar::<i32>("n"));
        let (keys, positions) = (b.buffer::<i32>("key"), b.buffer::<i32>("pos"));
        let i = global_id(b, 0);
        let key = load(b, keys, i);
        let (low, none, last) = (iconst(b, 0), iconst(b, -1), b.ins().iadd_imm_s(n, -1));
        let [_, _, found] = b.loop_with([low, last, none], |b, [low, high, none]| {
            let is_empty = b.ins().icmp(IntCC::SignedGreaterThan, low, high);
            b.break_if(is_empty);
            let sum = b.ins().iadd(low, high);
            let middle = b.ins().sshr_imm_u(sum, 1);
            let value = load(b, hay, middle);
            let is_it = b.ins().icmp(IntCC::Equal, value, key);
            b.break_if_with(is_it, &[low, high, middle]);
            let is_below = b.ins().icmp(IntCC::SignedLessThan, value, key);
            let (above, below) = (b.ins().iadd_imm_s(middle, 1), b.ins().iadd_imm_s(middle, -1));
            [b.select(is_below, above, low), b.select(is_below, high, below), none]
        });
        store(b, positions, i, found);
    })
}

/// The numbers and the keys.
fn hay(scale: u32) -> (Vec<i32>, Vec<i32>) {
    let hay: Vec<i32> = (0..1 << 16).map(|number| 3 * number).collect();
    let keys = Generator::new().take(1 << 18 >> (scale - 1));
    (hay, keys.map(|number| (number % (3 << 16)).cast_signed()).collect())
}

/// The positions.
pub(super) fn run_binsearch(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let (hay, keys) = hay(scale);
    let length = i32::try_from(hay.len())?;
    let (hay, keys) = (device.buffer_from_slice(&hay)?, device.buffer_from_slice(&keys)?);
    let positions = device.buffer_zeroed::<i32>(keys.len())?;
    let args = [Arg::from(&hay), Arg::from(length), Arg::from(&keys), Arg::from(&positions)];
    launch(LaunchConfig::grid_1d(keys.len()), &args)?;
    Ok(device.read(&positions)?.into_iter().map(i32::cast_unsigned).collect())
}

pub(super) fn host_binsearch(scale: u32) -> Vec<u32> {
    let (hay, keys) = hay(scale);
    let position = |key: &i32| hay.binary_search(key).map_or(u32::MAX, |found| found as u32);
    keys.iter().map(position).collect()
}
