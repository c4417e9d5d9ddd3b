//! Prints the largest errors of the functions beside OpenCL's limits and the errors of the host's library, and the
//! instructions of a warp, beyond those of `fabs`, for arguments that need no rare case.
//!
//! ```text
//! cargo run --release -p harp-libm --example ulps -- --samples 1048576
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use clap::Parser;
use harp_libm::{Accuracy, Float, Fma, Math, Operand};

#[path = "../tests/suite/support/mod.rs"]
mod support;

use support::machine::{Machine, usual_arch};
use support::samples::{samples, typical};
use support::ulps::ulps;
use support::wide::Reference;
use support::{expected, host};

#[derive(Parser)]
struct Options {
    /// Arguments per function.
    #[arg(long, default_value_t = 1 << 16)]
    samples: usize,
    /// Only functions of this format: f32 or f64.
    #[arg(long)]
    float: Option<String>,
    /// The machine.
    #[arg(long)]
    arch: Option<String>,
    /// Code for machines without a fast fma.
    #[arg(long)]
    slow_fma: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these functions.
    names: Vec<String>,
}

/// The largest error so far and where it is.
#[derive(Clone, Copy, Default)]
struct Worst {
    ulps: f64,
    args: [f64; 3],
    result: f64,
    exact: f64,
}

impl Worst {
    fn add(&mut self, ulps: f64, args: [f64; 3], result: f64, exact: f64) {
        if ulps > self.ulps {
            *self = Worst { ulps, args, result, exact };
        }
    }
}

fn main() {
    let options = Options::parse();
    println!("| function | format | ulps | OpenCL's limit | the host's | instructions | at |");
    println!("|---|---|---|---|---|---|---|");
    for (float, name) in [(Float::F32, "f32"), (Float::F64, "f64")] {
        if options.float.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for &math in Math::ALL {
            let names = &options.names;
            let is_wanted = names.is_empty() || names.iter().any(|name| name == math.name());
            if is_wanted && !matches!(math, Math::Mad | Math::Nan) {
                print_row(math, float, name, &options);
            }
        }
    }
}

fn print_row(math: Math, float: Float, format: &str, options: &Options) {
    let arch = options.arch.as_deref().unwrap_or(usual_arch(float));
    let fma = if options.slow_fma { Fma::Slow } else { Fma::Fast };
    let machine = Machine::new(arch, math, float, fma);
    let samples = samples(math, float, options.samples, options.seed);
    let baseline = Machine::new(arch, Math::Fabs, float, fma);
    let [issued, overhead] = [(&machine, math), (&baseline, Math::Fabs)]
        .map(|(machine, math)| machine.run(&typical(math, float, 1 << 12)).1);
    let issued = issued - overhead;
    let (mut worst, mut of_host) = (Worst::default(), Worst::default());
    let mut reference = Reference::default();
    for chunk in samples.chunks(1 << 16) {
        let (results, _) = machine.run(chunk);
        for (&args, result) in chunk.iter().zip(results) {
            let expected = expected(math, float, args, &mut reference);
            for (index, operand) in math.results().iter().enumerate() {
                let (result, exact) = (result[index], expected[index]);
                let error = match operand {
                    Operand::Float => ulps(result, exact, float),
                    _ if result == exact.to_f64() => 0.0,
                    _ => f64::INFINITY,
                };
                worst.add(error, args, result, exact.to_f64());
                if let Some(host) = of_its_host(math, float, args).filter(|_| index == 0) {
                    of_host.add(ulps(host, exact, float), args, host, exact.to_f64());
                }
            }
        }
    }
    let limit = match math.accuracy(float) {
        Accuracy::Exact => "exact".to_owned(),
        Accuracy::Ulps(limit) => limit.to_string(),
        _ => "none".to_owned(),
    };
    let Worst { ulps, args, result, exact } = worst;
    let args = &args[..math.parameters().len()];
    let name = math.name();
    let host = of_host.ulps;
    println!(
        "| {name} | {format} | {ulps:.3} | {limit} | {host:.3} | {issued:.0} | {args:?}: {result:e}, {exact:e} |"
    );
}

fn of_its_host(math: Math, float: Float, args: [f64; 3]) -> Option<f64> {
    match float {
        Float::F32 => host::single(math, args),
        Float::F64 => host::double(math, args).map(|[first, _]| first),
    }
}
