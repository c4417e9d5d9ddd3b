//! Programs in OpenCL C and WGSL, written from the descriptions of well-known algorithms, do what references on the host
//! do: on machines of both word sizes, from optimized code and not, and under all strategies in turn.

mod aes;
mod clusters;
mod elimination;
mod finance;
mod graphs;
mod grids;
mod linear;
mod pictures;
mod products;
mod sequences;
mod shaders;
mod simulations;
mod sorting;
mod statistics;

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::support::{Case, Level, STRATEGIES, numbers};
use harp_isa::{ArchId, WordSize};
use harp_runtime::{Device, DeviceConfig, LaunchConfig};
use harp_spirv::SpirvModule;

/// Few and many lanes, warps and registers; the extension and not.
const MACHINES: [&str; 6] =
    ["4w32/16/32/16+x", "8w12/5/8/8", "harp32", "8w32/32/16/16+x", "4w16/4/2/64", "8b16/2/16/8+x"];

/// Runs a program on all machines, from optimized code and not. The strategies take turns, which the names' lengths begin.
fn everywhere(name: &str, file: impl Fn(WordSize, Level) -> String, test: impl Fn(&Case)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let levels = [Level::Optimized, Level::Unoptimized];
    let cases = MACHINES.iter().flat_map(|id| levels.map(|level| (id, level)));
    let strategies = STRATEGIES.into_iter().cycle().skip(name.len());
    for ((id, level), divergence) in cases.zip(strategies) {
        let arch: ArchId = id.parse().unwrap();
        let file = folder.join(file(arch.word(), level));
        let module = SpirvModule::parse(&fs::read(&file).unwrap());
        let module = module.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        test(&Case { arch, level, divergence, module, device });
    }
}

fn opencl(name: &str, test: impl Fn(&Case)) {
    let file = |word, level| format!("opencl/{}", crate::support::file(name, word, level));
    everywhere(name, file, test);
}

fn webgpu(name: &str, test: impl Fn(&Case)) {
    everywhere(name, |_, _| format!("webgpu/{name}.spv"), test);
}

/// A line of work-items in groups.
fn groups(items: usize, group: usize) -> LaunchConfig {
    LaunchConfig::grid_1d(items.next_multiple_of(group)).with_groups_1d(group)
}

/// A plane of work-items in groups.
fn tiles(extents: [usize; 2], group: [usize; 2]) -> LaunchConfig {
    let [x, y] = [0, 1].map(|d| extents[d].next_multiple_of(group[d]));
    LaunchConfig::grid_2d(x, y).with_groups([group[0], group[1], 1])
}

fn floats(seed: u64, count: usize, range: Range<f32>) -> Vec<f32> {
    let part = |n: u64| (n >> 40) as f32 / (1 << 24) as f32;
    numbers(seed).take(count).map(|n| range.start + part(n) * (range.end - range.start)).collect()
}

fn integers(seed: u64, count: usize, range: Range<i32>) -> Vec<i32> {
    let len = (range.end - range.start) as u64;
    numbers(seed).take(count).map(|n| range.start + ((n >> 20) % len) as i32).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// Compares numbers that may differ by a part of themselves, or of 1 if they are smaller.
#[track_caller]
fn close<T: Copy + Into<f64>>(given: &[T], wanted: &[f64], tolerance: f64, case: &Case) {
    assert_eq!(given.len(), wanted.len());
    for (at, (&given, &wanted)) in given.iter().zip(wanted).enumerate() {
        let given = given.into();
        let limit = tolerance * wanted.abs().max(1.0);
        assert!((given - wanted).abs() <= limit, "{at} is {given}, not {wanted} on {case}");
    }
}
