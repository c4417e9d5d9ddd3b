//! Checks random functions, thousands of them, against cranelift-interpreter, and prints what was
//! reached. See `harp_tests::fuzzing::functions`.
//!
//! ```text
//! cargo run --release --example functions -p harp-tests -- --count 20000 --json counts.json
//! cargo run --release --example functions -p harp-tests -- --seed 1234 --count 1
//! ```
//!
//! A module that fails is made smaller and printed, and the exit code is 1.
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{error, fs, thread};

use clap::Parser;
use harp_isa::ArchId;
use harp_tests::fuzzing::functions::{
    CONSTRUCTS, Counts, Reached, all_operations, bytes_of, run, shrink,
};
use harp_tests::progress::Progress;
use serde_json::json;

/// How many smaller modules are tried when one fails.
const ATTEMPTS: usize = 4000;

/// So many functions must reach everything.
const ENOUGH: u64 = 5000;

/// Checks random functions against cranelift-interpreter.
#[derive(Debug, Parser)]
struct Options {
    /// The first seed; each gives a module of a few functions.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Functions to check, at least.
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// Only this machine, at all levels.
    #[arg(long)]
    arch: Option<ArchId>,
    /// Threads; all that the host offers, if not given.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// A file for the counts.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Box<dyn error::Error>> {
    let Options { seed, count, arch, threads, json } = Options::parse();
    let threads = threads.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let progress = Progress::new(count, "functions");
    let reached = run(seed.., count, arch, threads, &|functions| progress.inc(functions));
    progress.finish();
    let reached = match reached {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            println!("seed {seed} fails: {}", failure.message);
            println!("it is made smaller ...");
            println!("{}", shrink(&bytes_of(seed), failure, ATTEMPTS));
            println!("--seed {seed} --count 1 replays it");
            return Ok(ExitCode::FAILURE);
        }
    };
    let complete = print(&reached);
    if let Some(path) = json {
        fs::write(path, serde_json::to_string_pretty(&as_json(&reached))?)?;
    }
    // One machine alone lacks the types of others, and a few functions lack much.
    let vacuous = !complete && arch.is_none() && count >= ENOUGH;
    Ok(if vacuous { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints the counts. Whether everything was reached that the generator is to make.
fn print(reached: &Reached) -> bool {
    let lists = [
        ("operations executed", &reached.operations),
        ("constructs", &reached.constructs),
        ("machines", &reached.machines),
        ("endings", &reached.endings),
    ];
    for (title, counts) in lists {
        println!("{title}:");
        for (name, count) in counts {
            println!("  {count:8} {name}");
        }
    }
    println!(
        "{} functions in {} modules, compiled {} times, {} runs that agree, {} instructions issued",
        reached.functions, reached.modules, reached.compilations, reached.runs, reached.issued
    );
    let missing = |name: &String| !reached.operations.contains_key(name);
    let operations: Vec<String> = all_operations().into_iter().filter(missing).collect();
    println!("operations never executed: {operations:?}");
    let missing = |name: &&str| !reached.constructs.contains_key(*name);
    let constructs: Vec<&str> = CONSTRUCTS.into_iter().filter(missing).collect();
    println!("constructs never executed: {constructs:?}");
    operations.is_empty() && constructs.is_empty()
}

fn as_json(reached: &Reached) -> serde_json::Value {
    let counts = |counts: &Counts| json!(counts);
    json!({
        "modules": reached.modules,
        "functions": reached.functions,
        "compilations": reached.compilations,
        "runs": reached.runs,
        "instructions issued": reached.issued,
        "operations executed": counts(&reached.operations),
        "operations compiled": counts(&reached.compiled_operations),
        "constructs": counts(&reached.constructs),
        "machines": counts(&reached.machines),
        "endings": counts(&reached.endings),
    })
}
