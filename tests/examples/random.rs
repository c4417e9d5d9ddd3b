//! Checks random cases, thousands of them, against cranelift-interpreter, and prints what was reached. See
//! `harp_tests::random`.
//!
//! ```text
//! cargo run --release --example random -p harp-tests -- kernels --count 20000 --json counts.json
//! cargo run --release --example random -p harp-tests -- functions --seed 1234 --count 1
//! cargo run --release --example random -p harp-tests -- mutations --count 2000 --of calls
//! ```
//!
//! A case that fails is made smaller and printed; what the compiler refuses is counted. The exit code is
//! 1 then, and also if many cases left out something that the generator is to make.
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{error, fs};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, ValueEnum};
use harp_isa::ArchId;
use harp_tests::generate::Kind;
use harp_tests::generate::graphs::catalogue;
use harp_tests::machines::Machines;
use harp_tests::mutate::{handwritten, random};
use harp_tests::progress::Progress;
use harp_tests::random::{
    Proof, Reached, Selection, WAYS, Way, bytes_of, case_of, check_catalogue, needed, run, shrink,
    together,
};
use harp_tests::spirv::write;

/// How many smaller cases are tried when one fails.
const ATTEMPTS: usize = 4000;

/// So many cases must reach everything: constructs, and operations in all types.
fn enough(kind: Kind) -> u64 {
    if needed(kind).operations.is_empty() { 1000 } else { 8000 }
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Functions that one lane calls: all operations, memory in all widths, calls of all kinds.
    Functions,
    /// Kernels with the same operations and memory, in many lanes.
    Lowerings,
    /// Kernels with all control flow that statements make.
    Kernels,
    /// Kernels that call functions of which is known what they do with their arguments.
    Calls,
    /// Kernels with the blocks of any graph.
    Graphs,
    /// Shapes of the catalogue of graphs, `count` rounds of them from the one numbered `seed` on.
    Catalogue,
    /// Whether the checker finds what is broken in the finished code of kernels.
    Mutations,
}

/// Checks random cases against cranelift-interpreter.
#[derive(Debug, Parser)]
struct Options {
    what: What,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Cases to check; a seed gives one.
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
    /// Checks what launches do with memory: nothing may be found.
    #[arg(long, conflicts_with_all = ["check", "proved"])]
    watched: bool,
    /// Writes kernels as SPIR-V, and compiles what is read back.
    #[arg(long)]
    spirv: bool,
    /// Launches kernels in host code, too: nothing may be different.
    #[arg(long)]
    native: bool,
    /// Saves the modules of SPIR-V in a folder instead, for spirv-val, say.
    #[arg(long, value_name = "FOLDER")]
    modules: Option<PathBuf>,
    /// Threads; all that the host offers, if not given.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// A file for the counts.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Prints a line for every case that fails, instead of the first one made smaller.
    #[arg(long)]
    every_failure: bool,
    /// Prints the cases instead, and what they hold.
    #[arg(long)]
    print: bool,
    /// What mutations break: kernels, calls, graphs or lowerings.
    #[arg(long, value_parser = kind, default_value = "kernels")]
    of: Kind,
    /// Mutants of a kernel and kind of mutation.
    #[arg(long, default_value_t = 8)]
    each: usize,
}

/// An option that was given, though it makes no difference.
fn ignored(matches: &ArgMatches, what: What) -> Option<String> {
    let always = ["what", "seed", "count", "threads"];
    let of_mutations = ["of", "each"];
    let is_taken = |option: &str| {
        always.contains(&option)
            || match what {
                What::Catalogue => false,
                What::Mutations => of_mutations.contains(&option),
                _ => !of_mutations.contains(&option),
            }
    };
    let options = Options::command();
    let options = options.get_arguments().map(|argument| argument.get_id().as_str());
    let given = |option: &&str| {
        matches.value_source(option).is_some_and(|source| source == ValueSource::CommandLine)
    };
    let mut ignored = options.filter(given).filter(|option| !is_taken(option));
    ignored.next().map(|option| option.replace('_', "-"))
}

fn way(name: &str) -> Result<Way, String> {
    let known = WAYS.into_iter().find(|way| way.name == name);
    known.ok_or_else(|| format!("one of {:?}", WAYS.map(|way| way.name)))
}

fn kind(name: &str) -> Result<Kind, String> {
    let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    known.ok_or_else(|| format!("one of {:?}", Kind::ALL.map(Kind::name)))
}

type Done = Result<ExitCode, Box<dyn error::Error>>;

fn main() -> Done {
    let matches = Options::command().get_matches();
    let options = Options::from_arg_matches(&matches)?;
    if let Some(option) = ignored(&matches, options.what) {
        let problem = format!("`--{option}` means nothing for these cases");
        Options::command().error(ErrorKind::ArgumentConflict, problem).exit();
    }
    let threads = options.threads.map_or(0, NonZeroUsize::get);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let kind = match options.what {
        What::Functions => Kind::Functions,
        What::Lowerings => Kind::Lowerings,
        What::Kernels => Kind::Kernels,
        What::Calls => Kind::Calls,
        What::Graphs => Kind::Graphs,
        What::Catalogue => return Ok(check_shapes(&options)),
        What::Mutations => return break_kernels(&options),
    };
    let prove = match (options.check, options.proved) {
        (true, _) => Proof::Counted,
        (_, true) => Proof::Required,
        _ => Proof::No,
    };
    let Options { arch, strategy: way, every_strategy: every_way, unverified, .. } = options;
    let Options { watched, spirv, native, .. } = options;
    let selection =
        Selection { kind, arch, way, every_way, unverified, prove, watched, spirv, native };
    let seeds = options.seed..options.seed.saturating_add(options.count);
    if options.print {
        seeds.for_each(|seed| print_case(seed, selection));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &options.modules {
        for seed in seeds {
            let module = write(&case_of(seed, selection).0.case)?;
            fs::write(folder.join(format!("{}-{seed}.spv", kind.name())), module)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if options.every_failure {
        return Ok(list_failures(&options, selection));
    }
    let progress = Progress::new(options.count, "cases");
    let reached = run(seeds, selection, &|| progress.inc(1));
    progress.finish();
    let reached = match reached {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            println!("seed {seed} fails on {}: {}", failure.target, failure.message);
            println!("it is made smaller ...");
            println!("{}", shrink(kind, &bytes_of(kind, seed), failure, ATTEMPTS));
            println!("{} --seed {seed} --count 1 replays it", kind.name());
            return Ok(ExitCode::FAILURE);
        }
    };
    print_counts(&reached);
    if let Some(path) = options.json {
        fs::write(path, serde_json::to_string_pretty(&reached)?)?;
    }
    let missing = needed(kind).missing(&reached);
    println!("never executed: {missing:?}");
    // One machine alone may lack registers to spill, and a few cases lack much.
    let vacuous = !missing.is_empty() && arch.is_none() && options.count >= enough(kind);
    Ok(ended(!vacuous && reached.refused.is_empty() && reached.unproved.is_empty()))
}

fn ended(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_shapes(&Options { seed, count, .. }: &Options) -> ExitCode {
    let progress = Progress::new(count * catalogue().len() as u64, "shapes");
    let reached = check_catalogue(seed..seed.saturating_add(count), &|| progress.inc(1));
    progress.finish();
    match reached {
        Ok(reached) => {
            print_counts(&reached);
            ended(reached.refused.is_empty())
        }
        Err((named, round, failure)) => {
            println!("`{}` (of {}) fails in round {round}", named.name, named.source);
            println!("{failure}");
            println!("it is made smaller ...");
            println!("{}", shrink(Kind::Graphs, &[], failure, ATTEMPTS));
            println!("catalogue --seed {round} --count 1 replays it");
            ExitCode::FAILURE
        }
    }
}

fn break_kernels(&Options { seed, count, of, each, .. }: &Options) -> Done {
    let progress = Progress::new(count, "kernels");
    let broken =
        together(seed..seed.saturating_add(count), &|| progress.inc(1), |seed, machines| {
            random(of, seed, each, machines)
        });
    progress.finish();
    let mut outcome = broken.map_err(|(seed, error)| {
        format!("{error}: mutations --of {} --seed {seed} --count 1 replays it", of.name())
    })?;
    outcome += handwritten(each, &mut Machines::default())?;
    println!("{outcome}");
    let (changing, caught) = outcome.totals(|_| true);
    println!("caught {caught} of {changing} that change something");
    let well = changing > 0 && outcome.unproved.is_empty() && caught * 100 >= changing * 99;
    Ok(ended(well))
}

fn list_failures(&Options { seed, count, .. }: &Options, selection: Selection) -> ExitCode {
    let mut failures = 0;
    let progress = Progress::new(count, "cases");
    for seed in seed..seed.saturating_add(count) {
        let result = run(seed..seed + 1, selection, &|| progress.inc(1));
        if let Err((_, failure)) = result {
            let functions = failure.case.functions.iter();
            let blocks: usize = functions.map(|func| func.layout.blocks().count()).sum();
            let message = failure.message.lines().next().unwrap_or_default().to_owned();
            println!("{seed}: {blocks} blocks, {}: {message}", failure.target);
            failures += 1;
        }
    }
    progress.finish();
    println!("{failures} of {count} cases fail");
    ended(failures == 0)
}

fn print_case(seed: u64, selection: Selection) {
    let (generated, targets) = case_of(seed, selection);
    for target in targets {
        println!("; {target}");
    }
    for mark in generated.marks {
        println!("; function {}, {}: {}", mark.function, mark.block, mark.construct);
    }
    println!("{}", generated.case);
}

fn print_counts(reached: &Reached) {
    let lists = [
        ("operations executed", &reached.operations),
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
    for (tier, again) in &reached.issued_again {
        let there = reached.issued_in_host_code.get(tier).unwrap_or(&0);
        println!("{again} instructions again by {tier}, {there} of them in host code");
    }
    let Reached { cases, functions, compilations, runs, issued, .. } = reached;
    println!(
        "{cases} cases of {functions} functions, compiled {compilations} times, {runs} runs that agree, \
         {issued} instructions issued"
    );
    println!("{} branches, {} of them divergent", reached.branches, reached.divergent_branches);
}
