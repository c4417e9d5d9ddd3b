//! Mutations of finished kernels: does harp-jit's checker see that something is wrong?
//!
//! A mutant is a kernel's machine code with one thing broken of those on which lanes keeping together
//! hangs. It is run beside the original: what matters is whether mutants that give other results, trap
//! or never end are objected to. A mutant that happens to do the same may be objected to or not.

use std::collections::BTreeMap;
use std::fmt;

use harp_isa::ArchId;
use harp_jit::{
    CompileError, CompileOptions, DivergenceStrategy, FunctionCode, Kernel, ModuleError, OptLevel,
};
use harp_runtime::{Device, DeviceConfig};

use crate::fuzzing::divergent::{ARCHS, Kernels, STRATEGIES, bytes_of};
use crate::generate::Family;
use crate::oracle::{CaseError, Expected, KernelCase, Observed};

mod handwritten;
mod mutants;

pub use mutants::{Kind, Mutant, mutants};

/// How many times as many instructions as the original a mutant may take before it counts as endless.
const PATIENCE: u64 = 8;

/// What came of the mutants of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Mutants that were run.
    pub mutants: usize,
    /// Those that did something else than the original.
    pub changing: usize,
    /// Those of them to which the checker objected.
    pub caught: usize,
    /// Those to which it objected although they did the same.
    pub refused: usize,
    /// How the ones it did not object to are made, and what they did.
    pub survivors: Vec<String>,
}

/// What came of all mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Kernels that were looked at.
    pub kernels: usize,
    /// Those that the checker cannot prove as they are. They were not broken.
    pub unproved: Vec<String>,
    /// By kind.
    pub kinds: BTreeMap<Kind, Tally>,
}

impl Outcome {
    /// Mutants that did something else, and those of them that were caught.
    pub fn totals(&self) -> (usize, usize) {
        let all = self.kinds.values();
        all.fold((0, 0), |(changing, caught), tally| {
            (changing + tally.changing, caught + tally.caught)
        })
    }

    /// Adds what came of others.
    pub fn add(&mut self, other: Outcome) {
        self.kernels += other.kernels;
        self.unproved.extend(other.unproved);
        for (kind, tally) in other.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.mutants += tally.mutants;
            own.changing += tally.changing;
            own.caught += tally.caught;
            own.refused += tally.refused;
            own.survivors.extend(tally.survivors);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} kernels, {} of them not proved", self.kernels, self.unproved.len())?;
        writeln!(
            f,
            "{:28} {:>8} {:>9} {:>8} {:>7} {:>18}",
            "mutation", "mutants", "changing", "caught", "share", "caught, the same"
        )?;
        for (kind, tally) in &self.kinds {
            let share = 100.0 * tally.caught as f64 / tally.changing.max(1) as f64;
            writeln!(
                f,
                "{:28} {:>8} {:>9} {:>8} {share:>6.1}% {:>18}",
                kind.to_string(),
                tally.mutants,
                tally.changing,
                tally.caught,
                tally.refused
            )?;
        }
        for (kind, tally) in &self.kinds {
            for survivor in &tally.survivors {
                writeln!(f, "survivor, {kind}: {survivor}")?;
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
///
/// # Errors
///
/// If the kernel cannot be compiled or run.
pub fn random(kernels: Kernels, seed: u64, each: usize) -> Result<Outcome, MutationError> {
    let turn = seed as usize;
    let arch: ArchId = ARCHS[turn % ARCHS.len()].parse().expect("the list holds machines");
    let case = kernels.generate(&bytes_of(seed), Family::of(arch)).case;
    let options = CompileOptions {
        opt_level: if (turn / ARCHS.len()).is_multiple_of(4) {
            OptLevel::None
        } else {
            OptLevel::Speed
        },
        divergence: STRATEGIES[turn / 2 % STRATEGIES.len()],
        // The checker is asked later, and then needs what that notes down.
        verify: true,
        ..CompileOptions::default()
    };
    let compiled = match case.compile(arch, options) {
        Ok(compiled) => compiled.kernel,
        Err(ModuleError::Compile(CompileError::Unsupported { .. })) => {
            return Ok(Outcome::default());
        }
        Err(error) => return Err(Box::new(error).into()),
    };
    let config = DeviceConfig { memory_bytes: 16 << 20, ..DeviceConfig::new(arch) };
    let mut device = Device::new(config).map_err(|error| Box::new(CaseError::from(error)))?;
    let name = format!("seed {seed} on {arch}");
    break_kernel(&name, &case, &compiled, &mut device, (seed, each))
}

/// Breaks the handwritten kernels on all their machines; at most so many mutants of a kind and kernel.
///
/// # Errors
///
/// If one cannot be compiled or run.
pub fn handwritten(each: usize) -> Result<Outcome, MutationError> {
    let mut outcome = Outcome::default();
    for arch in handwritten::archs() {
        let config = DeviceConfig { memory_bytes: 4 << 20, ..DeviceConfig::new(arch) };
        let mut device = Device::new(config).map_err(|error| Box::new(CaseError::from(error)))?;
        for (seed, case) in (0..).zip(handwritten::handwritten()) {
            // Predicated, they would have few splits and joins to break.
            let divergence = DivergenceStrategy::SplitJoin;
            let options = CompileOptions { divergence, verify: true, ..CompileOptions::default() };
            let compiled = case.compile(arch, options).map_err(Box::new)?;
            let name = format!("{} on {arch}", case.module.functions[0].name);
            outcome.add(break_kernel(&name, &case, &compiled.kernel, &mut device, (seed, each))?);
        }
    }
    Ok(outcome)
}

/// Breaks a compiled kernel and its functions, each of them at most `each` times a kind, chosen by the seed.
///
/// # Errors
///
/// If the kernel cannot be run.
pub fn break_kernel(
    name: &str,
    case: &KernelCase,
    original: &Kernel,
    device: &mut Device,
    (seed, each): (u64, usize),
) -> Result<Outcome, MutationError> {
    if let Err(error) = original.check() {
        let unproved = vec![format!("{name}: {error}")];
        return Ok(Outcome { kernels: 1, unproved, ..Outcome::default() });
    }
    let unbroken = case.observed(original, device).map_err(Box::new)?;
    let Observed::Memory(memory, report) = unbroken else {
        return Ok(Outcome::default());
    };
    let fuel = 10_000 + PATIENCE * report.stats.issued();
    let expected = Expected::Memory(memory);
    let mut outcome = Outcome { kernels: 1, ..Outcome::default() };
    let functions = original.functions().iter().map(FunctionCode::code);
    let all = std::iter::once(original.code()).chain(functions).enumerate();
    let broken = all.flat_map(|(function, code)| {
        let mutants = mutants(code, original.arch(), seed, each).into_iter();
        mutants.map(move |mutant| (function, mutant))
    });
    for (function, mutant) in broken {
        let Some(kernel) = original.with_code(function, &mutant.code) else { continue };
        let tally = outcome.kinds.entry(mutant.kind).or_default();
        tally.mutants += 1;
        let objected = kernel.check().is_err();
        // What the machine refuses to start does something else, too.
        let difference = match case.observed_within(&kernel, device, fuel) {
            Ok(observed) => case.difference(&expected, &observed, original.arch().lanes().into()),
            Err(error) => Some(error.to_string()),
        };
        match difference {
            Some(difference) => {
                tally.changing += 1;
                tally.caught += usize::from(objected);
                if !objected {
                    let first = difference.lines().next().unwrap_or_default();
                    tally.survivors.push(format!("{name}: {}: {first}", mutant.what));
                }
            }
            None => tally.refused += usize::from(objected),
        }
    }
    Ok(outcome)
}
