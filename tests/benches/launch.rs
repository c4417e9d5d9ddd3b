//! Launches: an empty kernel over one work-item (what a launch costs at least), over one for each lane of a large
//! core (what starting warps costs), over many (what walking the grid costs), and saxpy; and workloads in each tier, and
//! with checks and without.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Kernel, KernelBuilder, KernelSource};
use harp_runtime::{Arg, Checks, Device, DeviceConfig, LaunchConfig, Tier};
use harp_tests::harpbench::peers::WORKLOADS;
use harp_tests::saxpy;

const ARCHS: [&str; 3] = ["harp32", "4w32/16/16/16+x", "4w32/16/32/16+x"];
const LARGE: &str = "4w32/16/64/64+x";
const ITEMS: usize = 1 << 20;

fn empty(arch: ArchId) -> Kernel {
    let mut source = KernelSource::new("empty", arch);
    let mut b = KernelBuilder::new(&mut source);
    b.return_();
    b.finalize().expect("a good kernel");
    source.compile(&CompileOptions::default()).expect("a supported kernel")
}

fn device(arch: ArchId) -> Device {
    Device::new(DeviceConfig::new(arch)).expect("enough memory")
}

fn launches(c: &mut Criterion) {
    let all = ["harp32", "4w32/16/16/16+x", "4w32/16/32/16+x", LARGE];
    let shapes: [(_, _, &[&str]); 3] = [
        ("launch/empty/1", 1, &all),
        ("launch/empty/4096", 4096, &[LARGE]),
        ("launch/empty/1Mi", ITEMS, &ARCHS),
    ];
    for (name, items, archs) in shapes {
        let mut group = c.benchmark_group(name);
        for &arch in archs {
            let machine = arch.parse().expect("a good id");
            let (kernel, device) = (empty(machine), device(machine));
            group.bench_function(BenchmarkId::from_parameter(arch), |b| {
                b.iter(|| device.launch(&kernel, LaunchConfig::grid_1d(items), &[]));
            });
        }
        group.finish();
    }
}

fn saxpy_launches(c: &mut Criterion) {
    let mut group = c.benchmark_group("launch/saxpy/1Mi");
    group.throughput(Throughput::Elements(ITEMS as u64));
    let (x, y) = saxpy::inputs(ITEMS);
    for arch in ARCHS {
        let machine = arch.parse().expect("a good id");
        let source = saxpy::source(machine).expect("a good kernel");
        let kernel = source.compile(&CompileOptions::default()).expect("a supported kernel");
        let device = device(machine);
        let x = device.buffer_from_slice(&x).expect("enough memory");
        let y = device.buffer_from_slice(&y).expect("enough memory");
        let args = [Arg::from(&x), Arg::from(&y), Arg::from(saxpy::FACTOR)];
        group.bench_function(BenchmarkId::from_parameter(arch), |b| {
            b.iter(|| device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &args));
        });
    }
    group.finish();
}

/// What host code brings: each workload interpreted, and as devices run it.
fn tiers(c: &mut Criterion) {
    let arch: ArchId = "4w32/16/32/16+x".parse().expect("a good id");
    for workload in WORKLOADS {
        let mut group = c.benchmark_group(format!("launch/tier/{}", workload.name));
        group.sample_size(10);
        let source = (workload.source)(arch).expect("a good kernel");
        let kernel = source.compile(&CompileOptions::default()).expect("a supported kernel");
        for (name, tier) in [("interpreter", Tier::Interpreter), ("tiered", Tier::Tiered)] {
            let config = DeviceConfig { tier, ..DeviceConfig::new(arch) };
            let device = Device::new(config).expect("enough memory");
            group.bench_function(name, |b| b.iter(|| workload.run(&device, &kernel, 3)));
        }
        group.finish();
    }
}

/// What checks cost: each workload interpreted, and checked.
fn checked_launches(c: &mut Criterion) {
    let arch: ArchId = "4w32/16/32/16+x".parse().expect("a good id");
    for workload in WORKLOADS {
        let mut group = c.benchmark_group(format!("launch/checked/{}", workload.name));
        group.sample_size(10);
        for (name, checks) in [("unchecked", None), ("checked", Some(Checks::all()))] {
            let report_accesses = checks.is_some();
            let options = CompileOptions { report_accesses, ..CompileOptions::default() };
            let source = (workload.source)(arch).expect("a good kernel");
            let kernel = source.compile(&options).expect("a supported kernel");
            let tier = Tier::Interpreter;
            let config = DeviceConfig { checks, tier, ..DeviceConfig::new(arch) };
            let device = Device::new(config).expect("enough memory");
            group.bench_function(name, |b| b.iter(|| workload.run(&device, &kernel, 3)));
        }
        group.finish();
    }
}

criterion_group!(benches, launches, saxpy_launches, tiers, checked_launches);
criterion_main!(benches);
