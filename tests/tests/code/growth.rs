//! What compilation takes grows about as the function does, also where control flow has a shape that generated
//! code has; what cannot be so is refused.

use std::fs;
use std::time::Instant;

use harp_isa::ArchId;
use harp_jit::{
    CompileError, CompileOptions, CompiledFunction, Compiler, DivergenceStrategy, SourceMap,
};
use harp_tests::workloads::Shape;

/// Machines with 4-byte and 8-byte words, with the extension and without.
const ARCHS: [&str; 3] = ["harp32", "4w32/16/32/16+x", "harp64+x"];

fn options(divergence: DivergenceStrategy) -> CompileOptions {
    CompileOptions { divergence, verify: false, ..CompileOptions::default() }
}

fn compile(shape: Shape, size: usize, arch: ArchId) -> Result<CompiledFunction, CompileError> {
    let func = shape.function(size, arch.word());
    Compiler::new(arch, options(DivergenceStrategy::SplitJoin)).compile_function(&func)
}

/// Nanoseconds that this thread has run: what else the machine does is not in it, where the system says.
fn processor_time(start: Instant) -> u128 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|number| number.parse().ok());
    first.unwrap_or_else(|| start.elapsed().as_nanos())
}

/// Nanoseconds below which a time says little: some systems count in ticks.
const LEAST_TIME: u128 = 20_000_000;

/// How much longer it takes for a function four times as large: the least of several times that were measured.
/// It is 4 if times are linear, 16 if they are quadratic.
fn growth(size: usize, work: impl Fn(usize)) -> f64 {
    let start = Instant::now();
    let time = |size: usize| {
        let (before, mut rounds) = (processor_time(start), 0.0);
        loop {
            work(size);
            rounds += 1.0;
            let time = processor_time(start) - before;
            if time >= LEAST_TIME {
                return time as f64 / rounds;
            }
        }
    };
    let mut least = f64::INFINITY;
    for _ in 0..4 {
        let small = time(size).min(time(size));
        least = least.min(time(4 * size) / small);
        if least < 8.0 {
            break;
        }
    }
    least
}

/// Up to the allocation of registers: regalloc2 0.15.2 goes over the parameters of all blocks before again for many
/// of its registers, which takes as long as the rest together from about 1,000 loops in a row on.
#[test]
fn times_grow_about_as_functions_do() {
    for (shape, size) in
        [(Shape::Table, 400), (Shape::OneExit, 400), (Shape::Loops, 400), (Shape::Nest, 400)]
    {
        for arch in ARCHS {
            let arch: ArchId = arch.parse().unwrap();
            let selected = |size: usize| {
                let func = shape.function(size, arch.word());
                let options = options(DivergenceStrategy::SplitJoin);
                Compiler::new(arch, options).stages(&func, &SourceMap::new()).unwrap();
            };
            let times = growth(size, selected);
            assert!(times < 10.0, "{} on {arch}: {times}", shape.name());
        }
    }
}

/// Also where costs are compared, and told.
#[test]
fn explanations_grow_about_as_functions_do() {
    let arch: ArchId = "harp32".parse().unwrap();
    for shape in [Shape::Table, Shape::OneExit, Shape::Loops] {
        let work = |size: usize| {
            let func = shape.function(size, arch.word());
            let options = options(DivergenceStrategy::Adaptive);
            let report =
                Compiler::new(arch, options).explain_function(&func, &SourceMap::new()).unwrap();
            // Each block is in one region.
            let blocks: usize = report.regions.iter().map(|region| region.blocks.len()).sum();
            assert!(blocks <= report.blocks.len());
        };
        let times = growth(300, work);
        assert!(times < 10.0, "{}: {times}", shape.name());
    }
}

/// Entries that lead to one target are tested for one after the other.
#[test]
fn frames_do_not_grow_with_tables() {
    for arch in ARCHS {
        let arch: ArchId = arch.parse().unwrap();
        let bytes = compile(Shape::TwoTargets, 1000, arch).unwrap().frame_bytes();
        let fewer = compile(Shape::TwoTargets, 250, arch).unwrap().frame_bytes();
        assert_eq!(bytes, fewer, "on {arch}");
        assert!(bytes < 256, "{bytes} on {arch}");
    }
}

fn assert_refused(shape: Shape, size: usize, arch: ArchId) {
    match compile(shape, size, arch) {
        Err(CompileError::TooMany { given, limit, .. }) => assert!(given > limit),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was compiled"),
    }
}

/// All edges of a cycle pass what any of its entries takes.
#[test]
fn cycles_of_too_many_entries_are_refused() {
    let arch = "harp32".parse().unwrap();
    assert_refused(Shape::Complete, 80, arch);
    compile(Shape::Complete, 15, arch).unwrap();
}

/// What each block sets lives on all ways that lead past it.
#[test]
fn too_many_side_entrances_are_refused() {
    let arch = "harp32".parse().unwrap();
    assert_refused(Shape::SideEntrances, 6400, arch);
    compile(Shape::SideEntrances, 100, arch).unwrap();
}
