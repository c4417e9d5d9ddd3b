//! Breaks the finished code of many random kernels, and counts what harp-jit's checker finds.
//!
//! `cargo run --release --example mutations -p harp-tests -- --count 2000`

use std::process::ExitCode;
use std::thread;

use clap::Parser;
use harp_tests::fuzzing::divergent::Kernels;
use harp_tests::mutate::{Outcome, handwritten, random};

/// Breaks the finished code of random kernels.
#[derive(Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many kernels.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Mutants of a kernel and kind.
    #[arg(long, default_value_t = 8)]
    each: usize,
    /// Kernels that call functions of which is known what they do with their arguments.
    #[arg(long)]
    calls: bool,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]
fn main() -> ExitCode {
    let Options { first, count, each, calls } = Options::parse();
    let kernels = if calls { Kernels::Calls } else { Kernels::ControlFlow };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let results = thread::scope(|scope| {
        let share = |thread| {
            let seeds = (first + thread..first + count).step_by(threads as usize);
            let failed = |seed| move |error| format!("seed {seed}: {error}");
            seeds.map(|seed| random(kernels, seed, each).map_err(failed(seed))).collect::<Vec<_>>()
        };
        let threads: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || share(thread))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("nothing panics"));
        joined.flatten().collect::<Vec<_>>()
    });
    let mut outcome = Outcome::default();
    let mut failed = false;
    let own = handwritten(each).map_err(|error| error.to_string());
    for result in results.into_iter().chain([own]) {
        match result {
            Ok(more) => outcome.add(more),
            Err(error) => {
                eprintln!("{error}");
                failed = true;
            }
        }
    }
    println!("{outcome}");
    let (changing, caught) = outcome.totals();
    println!("caught {caught} of {changing} that change something");
    failed |= changing == 0 || !outcome.unproved.is_empty();
    if failed || caught * 100 < changing * 99 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
