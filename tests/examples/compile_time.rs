//! Prints how long functions take to compile, side by side with Cranelift's code generator for the
//! host on the same CLIF: optimized, without checks, up to the bytes. The compilers take turns; what
//! is printed are medians.
//!
//! ```text
//! cargo run --release --features native --example compile_time -p harp-tests [ROUNDS] [SIZE]...
//! ```
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cranelift_codegen::ir::Function;
use harp_isa::{ArchId, WordSize};
use harp_tests::workloads::{Native, code_bytes, generated, handwritten, instructions};

/// Instructions compiled before a clock is read again, at least.
const INSTS_PER_SAMPLE: usize = 20_000;
const SIZES: [usize; 5] = [10, 100, 1000, 10_000, 100_000];

/// Compiles the functions again and again; how long each time took, in nanoseconds an instruction.
fn sample(functions: &[Function], mut compile: impl FnMut(&Function) -> usize) -> f64 {
    let insts: usize = functions.iter().map(instructions).sum();
    let times = INSTS_PER_SAMPLE.div_ceil(insts);
    let start = Instant::now();
    for _ in 0..times {
        for func in functions {
            black_box(compile(func));
        }
    }
    nanoseconds(start.elapsed()) / (insts * times) as f64
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().map_or(Ok(15), |rounds| rounds.parse())?;
    let mut sizes = args.map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?;
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let archs: [ArchId; 2] = ["harp64+x".parse()?, "harp32".parse()?];
    let native = Native::new()?;
    let mut rows: Vec<(String, [Vec<Function>; 2])> =
        vec![("by hand".to_owned(), [handwritten(WordSize::Eight), handwritten(WordSize::Four)])];
    rows.extend(sizes.into_iter().map(|size| {
        let both = [WordSize::Eight, WordSize::Four].map(|word| vec![generated(size, word)]);
        (format!("generated {size}"), both)
    }));

    println!("nanoseconds per CLIF instruction, median of {rounds} rounds\n");
    println!(
        "{:<18} {:>8} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}",
        "functions",
        "insts",
        archs[0],
        native.name(),
        "ratio",
        "bytes",
        "bytes",
        archs[1]
    );
    for (name, [functions, narrow]) in rows {
        let insts: usize = functions.iter().map(instructions).sum();
        let host = |func: &Function| native.code_bytes(func).expect("it compiles");
        let harp =
            |arch: ArchId| move |func: &Function| code_bytes(func, arch).expect("it compiles");
        let bytes: usize = functions.iter().map(harp(archs[0])).sum();
        let native_bytes: usize = functions.iter().map(host).sum();
        let mut samples = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            let ours = sample(&functions, harp(archs[0]));
            let theirs = sample(&functions, host);
            samples[0].push(ours);
            samples[1].push(theirs);
            samples[2].push(ours / theirs);
            samples[3].push(sample(&narrow, harp(archs[1])));
        }
        let [ours, theirs, ratio, narrow] = samples.map(median);
        println!(
            "{name:<18} {insts:>8} {ours:>9.0} {theirs:>9.0} {ratio:>9.2} {bytes:>7} \
             {native_bytes:>9} {narrow:>9.0}"
        );
    }
    Ok(())
}
