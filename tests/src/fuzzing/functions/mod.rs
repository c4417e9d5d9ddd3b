//! Random modules on one lane of many machines, optimized or not, against the oracle.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use harp_isa::{ArchId, WordSize};
use harp_jit::OptLevel;

use crate::fuzzing::{in_threads, panic_text, random_bytes};
use crate::generate::functions::module;
use crate::oracle::{CompiledCase, Effect, ModuleCase};

mod coverage;
mod shrink;

pub use coverage::{CONSTRUCTS, Counts, Reached, all_operations, operation};
pub use shrink::{shrink, simplify};

/// Both word sizes, both encodings, with and without the extension, 8 to 64 general registers, 2 to 64
/// predicates; counts that are no powers of two, too.
pub const ARCHS: [&str; 18] = [
    "harp32",
    "harp64",
    "4w8/2/4/4",
    "8w8/2/4/1",
    "4w63/64/4/4",
    "8w63/64/2/2+x",
    "4w32/16/8/8+x",
    "harp64+x",
    "4b8/2/1/1+x",
    "8b8/2/2/1",
    "4b63/64/2/1",
    "8b64/64/2/1+x",
    "4w12/5/4/2+x",
    "8w9/3/2/2",
    "4b16/16/2/1",
    "8b32/32/8/8",
    "4w64/64/4/4",
    "8w63/2/1/1",
];

/// Bytes that a seed gives: enough for the largest module.
const BYTES: usize = 12_000;

/// A machine and a level.
pub type Target = (ArchId, OptLevel);

/// The bytes of a seed: short ones too, whose modules are small, and what fails is easy to read.
pub fn bytes_of(seed: u64) -> Vec<u8> {
    random_bytes(seed, BYTES >> (seed / 2 % 4))
}

/// What a seed runs on: two machines with the same word, one at both levels. Consecutive seeds take
/// all machines in turn. With `only`, that machine at both levels.
pub fn targets_of(seed: u64, only: Option<ArchId>) -> Vec<Target> {
    if let Some(arch) = only {
        return vec![(arch, OptLevel::None), (arch, OptLevel::Speed)];
    }
    let word = if seed.is_multiple_of(2) { WordSize::Four } else { WordSize::Eight };
    let archs = ARCHS.map(|id| id.parse::<ArchId>().expect("the list above holds machines"));
    let archs: Vec<ArchId> = archs.into_iter().filter(|arch| arch.word() == word).collect();
    let turn = seed / 2;
    let at = |index: u64| archs[(index % archs.len() as u64) as usize];
    let second = if (turn / 2).is_multiple_of(2) { OptLevel::Speed } else { OptLevel::None };
    vec![(at(turn), OptLevel::None), (at(turn), OptLevel::Speed), (at(turn + 4), second)]
}

/// A module that did not do what it should.
#[derive(Debug)]
pub struct Failure {
    /// The machine.
    pub arch: ArchId,
    /// The level.
    pub opt_level: OptLevel,
    /// What went wrong.
    pub message: String,
    /// The module and the call.
    pub case: Box<ModuleCase>,
    /// The machine code; none if there is none.
    pub code: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { arch, opt_level, message, case, code } = self;
        writeln!(f, "on {arch} at {opt_level:?}: {message}\n{case}")?;
        code.as_ref().map_or(Ok(()), |code| f.write_str(code))
    }
}

/// Compiles the module of `bytes` for all `targets`, whose word is the same, calls it, and compares
/// with the oracle.
///
/// # Errors
///
/// The first target that differs or fails. Nothing that the generator makes may be unsupported.
///
/// # Panics
///
/// If there are no targets.
pub fn check(bytes: &[u8], targets: &[Target]) -> Result<Reached, Box<Failure>> {
    let case = module(bytes, targets[0].0.word());
    check_case(&case, targets)
}

/// The same for a module.
///
/// # Errors
///
/// As [`check`].
///
/// # Panics
///
/// If there are no targets.
pub fn check_case(case: &ModuleCase, targets: &[Target]) -> Result<Reached, Box<Failure>> {
    let fail = |(arch, opt_level): Target, message: String, code: Option<String>| {
        Box::new(Failure { arch, opt_level, message, case: Box::new(case.clone()), code })
    };
    let (expected, executed) = catch_unwind(AssertUnwindSafe(|| case.expected()))
        .map_err(|panic| {
            fail(targets[0], format!("the oracle panicked: {}", panic_text(&*panic)), None)
        })?
        .map_err(|error| fail(targets[0], format!("the oracle: {error}"), None))?;
    let mut reached = Reached::of(case, &expected, &executed);
    for &(arch, opt_level) in targets {
        let target = (arch, opt_level);
        let compiled = catch_unwind(AssertUnwindSafe(|| case.compile(arch, opt_level)))
            .map_err(|panic| {
                fail(target, format!("compiling panicked: {}", panic_text(&*panic)), None)
            })?
            .map_err(|error| fail(target, error.to_string(), None))?;
        let fail = |message: String| fail(target, message, Some(code(&compiled)));
        let (observed, stats) = catch_unwind(AssertUnwindSafe(|| case.observed(&compiled)))
            .map_err(|panic| fail(format!("the machine panicked: {}", panic_text(&*panic))))?
            .map_err(|error| fail(error.to_string()))?;
        if let Some(difference) = case.difference(&expected, &observed) {
            return Err(fail(difference));
        }
        reached += agreed(target, &compiled, &observed);
        reached.issued += stats.issued();
    }
    Ok(reached)
}

fn agreed((arch, opt_level): Target, compiled: &CompiledCase, observed: &Effect) -> Reached {
    let mut reached = Reached {
        runs: 1,
        compilations: compiled.stats.len() as u64,
        machines: Counts::from([(format!("{arch} {opt_level:?}"), 1)]),
        endings: Counts::from([(coverage::ending(observed), 1)]),
        ..Reached::default()
    };
    let spills = compiled.stats.iter().any(|stats| stats.spill_slots > 0);
    let predicates = compiled.stats.iter().any(|stats| stats.predicate_spills > 0);
    for (name, there) in [("spill slots", spills), ("spilled predicates", predicates)] {
        if there {
            reached.constructs.insert(name.to_owned(), 1);
        }
    }
    reached
}

fn code(compiled: &CompiledCase) -> String {
    let functions = compiled.module.functions().iter();
    functions.map(|func| format!("{}:\n{}", func.name(), func.disassembly())).collect()
}

/// Runs seeds until as many functions were checked as asked for. `progress` hears of the functions of
/// each seed. Several threads share the seeds; what is reached does not depend on how many.
///
/// # Errors
///
/// The failing seed that is smallest, and its failure, not made smaller.
pub fn run(
    seeds: impl Iterator<Item = u64>,
    functions: u64,
    only: Option<ArchId>,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Reached, (u64, Box<Failure>)> {
    let mut reached = Reached::default();
    let mut seeds = seeds.peekable();
    while reached.functions < functions && seeds.peek().is_some() {
        // As many at a time as surely are not too many.
        let few = ((functions - reached.functions) / 4).clamp(1, 32 * threads as u64);
        let round: Vec<u64> = seeds.by_ref().take(few as usize).collect();
        let results = in_threads(&round, threads, || {
            move |seed: u64| check(&bytes_of(seed), &targets_of(seed, only))
        });
        for (seed, result) in round.iter().zip(results) {
            let more = result.map_err(|failure| (*seed, failure))?;
            progress(more.functions);
            reached += more;
        }
    }
    Ok(reached)
}
