//! Checks random kernels, thousands of them, against cranelift-interpreter lane by lane, and prints what
//! was reached. See `harp_tests::fuzzing::divergent`.
//!
//! ```text
//! cargo run --release --example kernels -p harp-tests -- --count 20000 --json counts.json
//! cargo run --release --example kernels -p harp-tests -- --seed 1234 --count 1 --every-strategy
//! ```
//!
//! A kernel that fails is made smaller and printed; what the compiler refuses is counted. The exit code is
//! 1 then, and also if many kernels left out something that the generator is to make.
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{error, fs, thread};

use clap::Parser;
use cranelift_codegen::ir::Function;
use harp_isa::ArchId;
use harp_tests::fuzzing::divergent::{
    Kernels, Proof, Reached, Selection, Unproved, WAYS, Way, bytes_of, check_catalogue, run,
    shrink, targets_of,
};
use harp_tests::generate::Family;
use harp_tests::progress::Progress;
use serde_json::json;

/// How many smaller kernels are tried when one fails.
const ATTEMPTS: usize = 4000;

/// So many kernels must reach everything.
const ENOUGH: u64 = 1000;

/// Checks random kernels against cranelift-interpreter.
#[derive(Debug, Parser)]
struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Kernels to check.
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// Only this machine, with what its family has.
    #[arg(long)]
    arch: Option<ArchId>,
    /// Only this strategy: split-join, predicate, static, profile, adaptive, or adaptive-profile.
    #[arg(long, value_parser = way)]
    strategy: Option<Way>,
    /// All strategies on each machine, instead of one.
    #[arg(long)]
    every_strategy: bool,
    /// Leaves the compiler's own checks out: only what the machine does decides.
    #[arg(long)]
    unverified: bool,
    /// Proves of the finished code that it keeps lanes together, and counts what is not proved.
    #[arg(long, conflicts_with = "unverified")]
    check: bool,
    /// The same, but the first one that is not proved is made smaller.
    #[arg(long, conflicts_with_all = ["unverified", "check"])]
    proved: bool,
    /// Threads; all that the host offers, if not given.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// A file for the counts.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Prints a line for every kernel that fails, instead of the first one made smaller.
    #[arg(long)]
    every_failure: bool,
    /// Kernels that call functions of which is known what they do with their arguments.
    #[arg(long)]
    calls: bool,
    /// Kernels with the blocks of any graph.
    #[arg(long, conflicts_with = "calls")]
    graphs: bool,
    /// Shapes of the catalogue of graphs, `count` rounds of them from the one numbered `seed` on.
    #[arg(long, conflicts_with_all = ["calls", "graphs", "print", "every_failure"])]
    catalogue: bool,
    /// Prints the kernels instead, and what they hold.
    #[arg(long)]
    print: bool,
}

fn way(name: &str) -> Result<Way, String> {
    let known = WAYS.into_iter().find(|way| way.name == name);
    known.ok_or_else(|| format!("one of {:?}", WAYS.map(|way| way.name)))
}

fn main() -> Result<ExitCode, Box<dyn error::Error>> {
    let Options {
        seed,
        count,
        arch,
        strategy,
        every_strategy,
        unverified,
        check,
        proved,
        threads,
        json,
        every_failure,
        calls,
        graphs,
        catalogue,
        print,
    } = Options::parse();
    let kernels = match (calls, graphs) {
        (true, _) => Kernels::Calls,
        (_, true) => Kernels::Graphs,
        _ => Kernels::ControlFlow,
    };
    let prove = match (check, proved) {
        (true, _) => Proof::Counted,
        (_, true) => Proof::Required,
        _ => Proof::No,
    };
    let (way, every_way) = (strategy, every_strategy);
    let selection = Selection { kernels, arch, way, every_way, unverified, prove };
    if print {
        (seed..seed.saturating_add(count)).for_each(|seed| print_kernel(seed, selection));
        return Ok(ExitCode::SUCCESS);
    }
    let threads = threads.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    if catalogue {
        return Ok(check_shapes(seed as usize..seed.saturating_add(count) as usize, threads));
    }
    if every_failure {
        return Ok(list_failures(seed, count, selection));
    }
    let progress = Progress::new(count, "kernels");
    let reached = run(seed, count, selection, threads, &|kernels| progress.inc(kernels));
    progress.finish();
    let reached = match reached {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            println!("seed {seed} fails on {}: {}", failure.target, failure.message);
            println!("it is made smaller ...");
            println!("{}", shrink(kernels, &bytes_of(seed), failure, ATTEMPTS));
            println!("--seed {seed} --count 1 replays it");
            return Ok(ExitCode::FAILURE);
        }
    };
    let complete = print_counts(&reached, kernels.constructs());
    if let Some(path) = json {
        fs::write(path, serde_json::to_string_pretty(&as_json(&reached))?)?;
    }
    // One machine alone may lack registers to spill, and a few kernels lack much.
    let vacuous = !complete && arch.is_none() && count >= ENOUGH;
    let failed = vacuous || !reached.refused.is_empty() || !reached.unproved.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn check_shapes(rounds: Range<usize>, threads: usize) -> ExitCode {
    match check_catalogue(rounds, threads) {
        Ok(reached) => {
            print_counts(&reached, &[]);
            if reached.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err((named, round, failure)) => {
            println!("`{}` (of {}) fails in round {round}", named.name, named.source);
            println!("{failure}");
            println!("it is made smaller ...");
            println!("{}", shrink(Kernels::Graphs, &[], failure, ATTEMPTS));
            ExitCode::FAILURE
        }
    }
}

fn list_failures(first: u64, count: u64, selection: Selection) -> ExitCode {
    let mut failures = 0;
    for seed in first..first.saturating_add(count) {
        if let Err((_, failure)) = run(seed, 1, selection, 1, &|_| {}) {
            let blocks: usize = failure.case.module.functions.iter().map(block_count).sum();
            let message = failure.message.lines().next().unwrap_or_default().to_owned();
            println!("{seed}: {blocks} blocks, {}: {message}", failure.target);
            failures += 1;
        }
    }
    println!("{failures} of {count} kernels fail");
    if failures > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn block_count(func: &Function) -> usize {
    func.layout.blocks().count()
}

fn print_kernel(seed: u64, selection: Selection) {
    let targets = targets_of(seed, selection);
    let family = Family::of(targets[0].arch);
    let generated = selection.kernels.generate(&bytes_of(seed), family);
    for target in targets {
        println!("; {target}");
    }
    for mark in generated.marks {
        println!("; function {}, {}: {}", mark.function, mark.block, mark.construct);
    }
    println!("{}", generated.case);
}

/// Prints the counts. Whether everything was reached that the generator is to make.
fn print_counts(reached: &Reached, constructs: &[&str]) -> bool {
    let lists = [
        ("constructs", &reached.constructs),
        ("machines", &reached.machines),
        ("strategies", &reached.strategies),
        ("divergent branches that became predicates", &reached.predicated_branches),
        ("endings", &reached.endings),
        ("refused", &reached.refused),
    ];
    for (title, counts) in lists {
        println!("{title}:");
        for (name, count) in counts {
            println!("  {count:8} {name}");
        }
    }
    if reached.proved > 0 || !reached.unproved.is_empty() {
        println!("{} compilations proved, {} not:", reached.proved, reached.unproved.len());
        reached.unproved.iter().for_each(|unproved| println!("  {unproved}"));
    }
    println!(
        "{} kernels, {} functions, {} launches that agree, {} instructions issued",
        reached.kernels, reached.functions, reached.launches, reached.issued
    );
    println!("{} branches, {} of them divergent", reached.branches, reached.divergent_branches);
    let missing = |name: &&str| !reached.constructs.contains_key(*name);
    let missing: Vec<&str> = constructs.iter().copied().filter(missing).collect();
    println!("constructs never executed: {missing:?}");
    missing.is_empty()
}

fn as_json(reached: &Reached) -> serde_json::Value {
    json!({
        "kernels": reached.kernels,
        "functions": reached.functions,
        "launches": reached.launches,
        "instructions issued": reached.issued,
        "branches": reached.branches,
        "divergent branches": reached.divergent_branches,
        "constructs": reached.constructs,
        "machines": reached.machines,
        "strategies": reached.strategies,
        "predicated divergent branches": reached.predicated_branches,
        "launches without a profile": reached.unprofiled,
        "endings": reached.endings,
        "refused": reached.refused,
        "proved": reached.proved,
        "unproved": reached.unproved.iter().map(unproved_as_json).collect::<Vec<_>>(),
    })
}

fn unproved_as_json(unproved: &Unproved) -> serde_json::Value {
    let Unproved { seed, target, error } = unproved;
    json!({ "seed": seed, "target": target.to_string(), "error": error.to_string() })
}
