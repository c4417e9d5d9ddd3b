//! From a built kernel to machine code, and the same with every check on.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::saxpy;

fn compile(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile/saxpy");
    for arch in ["harp32", "harp64", "4w32/16/32/16+x"] {
        let machine: ArchId = arch.parse().expect("a good id");
        for (name, opt_level, verify) in [
            ("unoptimized", OptLevel::None, false),
            ("optimized", OptLevel::Speed, false),
            ("checked", OptLevel::Speed, true),
        ] {
            let options = CompileOptions { opt_level, verify, ..CompileOptions::default() };
            group.bench_function(BenchmarkId::new(name, arch), |b| {
                b.iter(|| {
                    let source = saxpy::source(machine).expect("a good kernel");
                    black_box(source.compile(&options).expect("a supported kernel"))
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, compile);
criterion_main!(benches);
