//! The interpreter next to straight-line Rust: the same operations equally often, for the same host
//! instructions. Throughput counts instructions that the guest issues, on both sides.

mod kernels;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use harp_emu::Simd;
use kernels::{Case, Host, Kernel, Mask, check, run_bound};

const ITERATIONS: u32 = 10_000;

fn compare(c: &mut Criterion, group: &str, kernels: &[Kernel], masks: &[Mask]) {
    let mut group = c.benchmark_group(group);
    for simd in [Simd::Detect, Simd::Baseline] {
        for &kernel in kernels {
            for &mask in masks {
                for lanes in [8, 16, 32, 64] {
                    let case = Case { kernel, mask, lanes, simd, iterations: ITERATIONS };
                    check(&Case { iterations: 100, ..case });
                    let guest = case.guest();
                    group.throughput(Throughput::Elements(guest.run()));
                    let name = |side| format!("{simd:?} {kernel:?} {mask:?} {side}");
                    let id = BenchmarkId::new(name("interpreter"), lanes);
                    group.bench_function(id, |b| b.iter(|| guest.run()));
                    let mut host = Host::new(&case);
                    let id = BenchmarkId::new(name("bound"), lanes);
                    group.bench_function(id, |b| b.iter(|| run_bound(&mut host)));
                }
            }
        }
    }
    group.finish();
}

fn alu_bound(c: &mut Criterion) {
    compare(c, "alu_bound", &[Kernel::Alu], &[Mask::Full]);
}

fn masks(c: &mut Criterion) {
    compare(c, "masks", &[Kernel::Alu], &[Mask::Partial]);
}

fn memory(c: &mut Criterion) {
    let masks = [Mask::Full, Mask::Partial];
    compare(c, "memory", &[Kernel::UnitStride, Kernel::Scattered], &masks);
}

criterion_group!(benches, alu_bound, masks, memory);
criterion_main!(benches);
