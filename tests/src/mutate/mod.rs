//! Mutations of finished kernels: does harp-jit's checker see that something is wrong?
//!
//! A mutant is a kernel's machine code with one thing broken of those on which lanes keeping together
//! hangs. It is run beside the original: what matters is whether mutants that give other results, trap
//! or never end are objected to. A mutant that happens to do the same may be objected to or not.

use std::fmt;
use std::ops::AddAssign;

use harp_jit::{
    CompileError, CompileOptions, DivergenceStrategy, FunctionCode, ModuleError, OptLevel,
};

use crate::generate::{Family, Kind as Cases};
use crate::machines::{ALL, Machines, SHARED, Setup, parsed};
use crate::oracle::{Case, CaseError, Compiled, Effect, Ending, options};
use crate::random::{WAYS, bytes_of};

mod handwritten;
mod mutants;

pub use mutants::Kind;
use mutants::mutants;

/// How many times as many instructions as the original a mutant may take before it counts as endless.
const PATIENCE: u64 = 8;

/// A mutant that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// What is broken.
    pub kind: Kind,
    /// How it is made.
    pub what: String,
    /// What it did otherwise than the original; none if it did the same.
    pub difference: Option<String>,
    /// Whether the checker objected.
    pub objected: bool,
}

/// What came of all mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Kernels that were looked at.
    pub kernels: usize,
    /// Those that the checker cannot prove as they are. They were not broken.
    pub unproved: Vec<String>,
    /// Mutants of the others.
    pub mutants: Vec<Tried>,
}

impl Outcome {
    /// Mutants of some kinds that did something else, and those of them that were caught.
    pub fn totals(&self, of: impl Fn(Kind) -> bool) -> (usize, usize) {
        let changing = self.mutants.iter().filter(|it| of(it.kind) && it.difference.is_some());
        (changing.clone().count(), changing.filter(|it| it.objected).count())
    }
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.kernels += other.kernels;
        self.unproved.extend(other.unproved);
        self.mutants.extend(other.mutants);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} kernels, {} of them not proved", self.kernels, self.unproved.len())?;
        f.write_str(
            "mutation, mutants, changing, caught, share, caught although they do the same:\n",
        )?;
        for kind in Kind::all() {
            let mutants = self.mutants.iter().filter(|it| it.kind == kind);
            let refused = mutants.clone().filter(|it| it.objected && it.difference.is_none());
            let (mutants, refused) = (mutants.count(), refused.count());
            let (changing, caught) = self.totals(|it| it == kind);
            let share = 100.0 * caught as f64 / changing.max(1) as f64;
            writeln!(
                f,
                "{:28} {mutants:>8} {changing:>9} {caught:>8} {share:>6.1}% {refused:>9}",
                kind.to_string()
            )?;
        }
        for Tried { kind, what, difference, objected } in &self.mutants {
            if let (Some(difference), false) = (difference, objected) {
                writeln!(f, "survivor, {kind}: {what}: {difference}")?;
            }
        }
        self.unproved.iter().try_for_each(|kernel| writeln!(f, "not proved: {kernel}"))
    }
}

/// Why a kernel's mutants were not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MutationError {
    /// It does not compile.
    #[error(transparent)]
    Compile(#[from] Box<ModuleError>),
    /// It cannot be run.
    #[error(transparent)]
    Run(#[from] Box<CaseError>),
}

/// Breaks the random kernel of a seed, for a machine and a level that the seed chooses too; at most so many
/// mutants of a kind. Nothing comes of kernels that are not supported, or trap.
/// Fails if the kernel cannot be compiled or run.
pub fn random(
    cases: Cases,
    seed: u64,
    each: usize,
    machines: &mut Machines,
) -> Result<Outcome, MutationError> {
    let turn = seed as usize;
    let count = ALL.len() + SHARED.len();
    let mut all = parsed(ALL).chain(parsed(SHARED));
    let arch = all.nth(turn % count).expect("it is one of them");
    let case = cases.generate(&bytes_of(cases, seed), Family::of(arch)).case;
    let is_plain = (turn / count).is_multiple_of(4);
    // The checker is asked later, and then needs what verification notes down.
    let strategies = WAYS.iter().filter(|way| !way.profile).map(|way| way.strategy);
    let options = CompileOptions {
        divergence: strategies.cycle().nth(turn / 2 % 64).expect("there are some"),
        ..options(if is_plain { OptLevel::None } else { OptLevel::Speed })
    };
    let compiled = match case.compile(arch, options) {
        Ok(compiled) => compiled,
        Err(ModuleError::Compile(CompileError::Unsupported { .. })) => {
            return Ok(Outcome::default());
        }
        Err(error) => return Err(Box::new(error).into()),
    };
    let name = format!("seed {seed} on {arch}");
    break_kernel(&name, &case, &compiled, machines, (seed, each))
}

/// Breaks the handwritten kernels on all their machines; at most so many mutants of a kind and kernel.
/// Fails if one cannot be compiled or run.
pub fn handwritten(each: usize, machines: &mut Machines) -> Result<Outcome, MutationError> {
    let mut outcome = Outcome::default();
    for arch in parsed(handwritten::ARCHS) {
        for (seed, case) in (0..).zip(handwritten::handwritten()) {
            // Predicated, they would have few splits and joins to break.
            let divergence = DivergenceStrategy::SplitJoin;
            let options = CompileOptions { divergence, ..options(OptLevel::Speed) };
            let compiled = case.compile(arch, options).map_err(Box::new)?;
            let name = format!("{} on {arch}", case.functions[0].name);
            outcome += break_kernel(&name, &case, &compiled, machines, (seed, each))?;
        }
    }
    Ok(outcome)
}

/// Breaks a compiled kernel and its functions, each of them at most `each` times a kind, chosen by the seed.
/// Fails if the kernel cannot be run.
fn break_kernel(
    name: &str,
    case: &Case,
    original: &Compiled,
    machines: &mut Machines,
    (seed, each): (u64, usize),
) -> Result<Outcome, MutationError> {
    let Some(original) = original.kernel() else { return Ok(Outcome::default()) };
    let device = machines.device(Setup::new(original.arch())).map_err(Box::new)?;
    if let Err(error) = original.check() {
        let unproved = vec![format!("{name}: {error}")];
        return Ok(Outcome { kernels: 1, unproved, ..Outcome::default() });
    }
    let unbroken = case.launch(original, device, |config| config).map_err(Box::new)?;
    let Ok(values) = unbroken.ending else { return Ok(Outcome::default()) };
    let fuel = 10_000 + PATIENCE * unbroken.issued;
    let expected = Effect { ending: Ending::Values(values), memory: unbroken.memory };
    let mut outcome = Outcome { kernels: 1, ..Outcome::default() };
    let functions = original.functions().iter().map(FunctionCode::code);
    let all = std::iter::once(original.code()).chain(functions).enumerate();
    let broken = all.flat_map(|(function, code)| {
        let mutants = mutants(code, original.arch(), seed, each).into_iter();
        mutants.map(move |mutant| (function, mutant))
    });
    for (function, mutant) in broken {
        let Some(kernel) = original.with_code(function, &mutant.code) else { continue };
        let objected = kernel.check().is_err();
        // What the machine refuses to start does something else, too.
        let difference = match case.launch(&kernel, device, |config| config.with_fuel(fuel)) {
            Ok(observed) => case.difference(&expected, &observed, original),
            Err(error) => Some(error.to_string()),
        };
        let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
        let (what, difference) = (format!("{name}: {}", mutant.what), difference.map(first));
        outcome.mutants.push(Tried { kind: mutant.kind, what, difference, objected });
    }
    Ok(outcome)
}
