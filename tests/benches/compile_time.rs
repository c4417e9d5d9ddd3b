//! Compile times beside those of Cranelift's code generator for the host, on the same CLIF: optimized,
//! without checks, up to the bytes. The functions of harp32 have the same statements, with addresses of
//! 4 bytes.

use std::hint::black_box;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use harp_isa::{ArchId, WordSize};
use harp_tests::workloads::{Native, code_bytes, generated, handwritten, instructions};

const SIZES: [usize; 5] = [10, 100, 1000, 10_000, 100_000];

fn compile_time(c: &mut Criterion) {
    let native = Native::new().expect("a host that Cranelift knows");
    let archs: [ArchId; 2] = ["harp64+x", "harp32"].map(|id| id.parse().expect("a good id"));
    let mut group = c.benchmark_group("compile_time");
    group.sampling_mode(SamplingMode::Flat).sample_size(20);
    let mut rows = vec![("by hand".to_owned(), [WordSize::Eight, WordSize::Four].map(handwritten))];
    rows.extend(SIZES.map(|size| {
        let both = [WordSize::Eight, WordSize::Four].map(|word| vec![generated(size, word)]);
        (size.to_string(), both)
    }));
    for (name, functions) in rows {
        let insts: usize = functions[0].iter().map(instructions).sum();
        group.throughput(Throughput::Elements(insts as u64));
        for (arch, functions) in archs.iter().zip(&functions) {
            group.bench_function(BenchmarkId::new(arch.to_string(), &name), |b| {
                b.iter(|| {
                    for func in functions {
                        black_box(code_bytes(func, *arch).expect("it compiles"));
                    }
                });
            });
        }
        group.bench_function(BenchmarkId::new(native.name(), &name), |b| {
            b.iter(|| {
                for func in &functions[0] {
                    black_box(native.code_bytes(func).expect("it compiles"));
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, compile_time);
criterion_main!(benches);
