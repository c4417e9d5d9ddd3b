//! Random kernels with all control flow there is, on many machines, by every strategy, against the oracle.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use harp_isa::{ArchId, WordSize};
use harp_jit::{
    BranchCounts, BranchProfile, CompileError, CompileOptions, DivergenceStrategy, ModuleError,
    OptLevel, ProfileParams,
};
use harp_runtime::{Device, DeviceConfig};

use super::{in_threads, panic_text, random_bytes};
use crate::generate::Family;
use crate::generate::divergent::{self, Generated};
use crate::generate::{calls, graphs};
use crate::oracle::{CaseError, CompiledKernel, Expected, KernelCase};

mod coverage;
mod shapes;
mod shrink;

pub use coverage::{CONSTRUCTS, Counts, GRAPH_CONSTRUCTS, Reached, Unproved};
pub use shapes::check_catalogue;
pub use shrink::shrink;

/// 1 to 64 lanes, 2 to 64 predicates, 8 to 64 general registers, both word sizes and encodings, with and
/// without the extension; counts that are no powers of two, too.
pub const ARCHS: [&str; 24] = [
    "harp32",
    "4w8/2/1/1",
    "4b8/2/8/2",
    "4w16/4/2/4",
    "4w64/8/64/1",
    "4b12/64/32/1",
    "4w32/16/32/2+x",
    "4b64/64/64/1+x",
    "4b8/3/2/2+x",
    "4w8/8/16/2+x",
    "4w16/2/8/1+x",
    "4b8/2/1/3+x",
    "harp64",
    "8w8/2/64/1",
    "8b64/64/32/1",
    "8b8/2/2/4",
    "8w12/5/8/3",
    "8w63/64/1/1",
    "8w16/16/8/2+x",
    "8b8/2/16/1+x",
    "8w64/2/1/2+x",
    "8b32/64/32/1+x",
    "8w9/3/64/1+x",
    "8w8/8/2/2+x",
];

/// All strategies that need no profile.
pub const STRATEGIES: [DivergenceStrategy; 4] = [
    DivergenceStrategy::SplitJoin,
    DivergenceStrategy::Predicate,
    DivergenceStrategy::Static,
    DivergenceStrategy::Adaptive,
];

/// A strategy, and whether it is given a profile of the kernel, from a launch of the kernel with splits
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// The strategy.
    pub strategy: DivergenceStrategy,
    /// Whether there is a profile.
    pub profile: bool,
}

impl Way {
    const fn new(name: &'static str, strategy: DivergenceStrategy) -> Way {
        Way { name, strategy, profile: false }
    }
}

/// All strategies, one of them with a profile and without.
pub const WAYS: [Way; 6] = [
    Way::new("split-join", DivergenceStrategy::SplitJoin),
    Way::new("predicate", DivergenceStrategy::Predicate),
    Way::new("static", DivergenceStrategy::Static),
    Way { name: "profile", strategy: PROFILE, profile: true },
    Way::new("adaptive", DivergenceStrategy::Adaptive),
    Way { name: "adaptive-profile", strategy: DivergenceStrategy::Adaptive, profile: true },
];

/// The parameters of [`ProfileParams::default`].
const PROFILE: DivergenceStrategy =
    DivergenceStrategy::Profile(ProfileParams { loop_high: 900, loop_low: 100, unanimous: 900 });

/// Bytes that a seed gives: enough for the largest kernel.
const BYTES: usize = 6000;

/// Whether finished code is proved to keep lanes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// It is not.
    #[default]
    No,
    /// It is, and what is not proved is counted.
    Counted,
    /// It is, and what is not proved fails.
    Required,
}

/// What a kernel runs on, and how it is compiled for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub arch: ArchId,
    /// The level.
    pub opt_level: OptLevel,
    /// How divergence is managed.
    pub way: Way,
    /// Whether the compiler checks what it makes.
    pub verify: bool,
    /// Whether the finished code is proved to keep lanes together, which takes longer than all else.
    pub prove: Proof,
    /// Cores of the machine.
    pub cores: u16,
    /// Whether the code counts what its branches do.
    pub counts: bool,
}

impl Target {
    /// One core, checked, without proof.
    pub const fn new(arch: ArchId, opt_level: OptLevel, way: Way) -> Target {
        Target { arch, opt_level, way, verify: true, prove: Proof::No, cores: 1, counts: false }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { arch, opt_level, way, cores, counts, .. } = self;
        write!(f, "{arch} {opt_level:?} {}", way.name)?;
        if *cores > 1 {
            write!(f, " on {cores} cores")?;
        }
        f.write_str(if *counts { " with counts" } else { "" })
    }
}

/// What kernels bytes stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernels {
    /// Those with all control flow there is: [`crate::generate::divergent`].
    #[default]
    ControlFlow,
    /// Those with functions of which callers know what they do: [`crate::generate::calls`].
    Calls,
    /// Those with the blocks of any graph: [`crate::generate::graphs`].
    Graphs,
}

impl Kernels {
    /// The kernel that `bytes` stand for on machines of this family.
    pub fn generate(self, bytes: &[u8], family: Family) -> Generated {
        match self {
            Kernels::ControlFlow => divergent::kernel(bytes, family),
            Kernels::Calls => calls::kernel(bytes, family),
            Kernels::Graphs => graphs::kernel(bytes, family),
        }
    }

    /// The constructs that a run of a thousand of them must have executed.
    pub fn constructs(self) -> &'static [&'static str] {
        match self {
            Kernels::ControlFlow => &CONSTRUCTS,
            Kernels::Calls => &[],
            Kernels::Graphs => &GRAPH_CONSTRUCTS,
        }
    }
}

/// What seeds run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// What is run.
    pub kernels: Kernels,
    /// Only this machine.
    pub arch: Option<ArchId>,
    /// Only this way to manage divergence.
    pub way: Option<Way>,
    /// All ways for each machine and level, instead of one.
    pub every_way: bool,
    /// The compiler does not check what it makes: only what the machine does decides.
    pub unverified: bool,
    /// Whether finished code is proved to keep lanes together.
    pub prove: Proof,
}

/// The bytes of a seed: short ones too, whose kernels are small, and what fails is easy to read.
pub fn bytes_of(seed: u64) -> Vec<u8> {
    random_bytes(seed, BYTES >> (seed / 4 % 4))
}

/// What a seed runs on: two machines of one family, one at both levels. Consecutive seeds take all
/// families, machines and strategies in turn.
pub fn targets_of(seed: u64, selection: Selection) -> Vec<Target> {
    let word = if seed.is_multiple_of(2) { WordSize::Four } else { WordSize::Eight };
    let extension = seed / 2 % 2 == 1;
    let archs = ARCHS.map(|id| id.parse::<ArchId>().expect("the list above holds machines"));
    let family = Family { word, extension };
    let archs: Vec<ArchId> = archs.into_iter().filter(|&arch| Family::of(arch) == family).collect();
    let turn = seed / 4;
    let at = |list: &[ArchId], index: u64| list[(index % list.len() as u64) as usize];
    let (first, second) = match selection.arch {
        Some(arch) => (arch, arch),
        None => (at(&archs, turn), at(&archs, turn + 1 + turn / 6 % 5)),
    };
    let level = if (turn / 2).is_multiple_of(2) { OptLevel::Speed } else { OptLevel::None };
    let mut machines = vec![(first, OptLevel::None), (first, OptLevel::Speed)];
    if second != first {
        machines.push((second, level));
    }
    let mut targets = Vec::new();
    let verify = !selection.unverified;
    let prove = if verify { selection.prove } else { Proof::No };
    for (at, (arch, opt_level)) in machines.into_iter().enumerate() {
        let one = WAYS[(turn as usize + turn as usize / WAYS.len() + at) % WAYS.len()];
        let ways = match selection {
            Selection { way: Some(way), .. } => vec![way],
            Selection { every_way: true, .. } => WAYS.to_vec(),
            _ => vec![one],
        };
        // No two of these periods, nor those above, have a common factor that matters.
        let (cores, counts) = match selection.kernels {
            Kernels::Graphs => ([1, 2, 1, 3, 1][turn as usize % 5], turn % 7 < 2),
            _ => (1, false),
        };
        targets.extend(ways.into_iter().map(|way| {
            let target = Target::new(arch, opt_level, way);
            Target { verify, prove, cores, counts, ..target }
        }));
    }
    targets
}

/// A machine of each kind, with so many cores, made when it is needed.
#[derive(Debug, Default)]
pub struct Machines(HashMap<(ArchId, u16), Device>);

impl Machines {
    /// Runs something on a machine.
    fn on<T>(
        &mut self,
        Target { arch, cores, .. }: Target,
        run: impl FnOnce(&mut Device) -> Result<T, CaseError>,
    ) -> Result<T, CaseError> {
        let mut device = match self.0.remove(&(arch, cores)) {
            Some(device) => device,
            None => {
                let config = DeviceConfig::new(arch);
                Device::new(DeviceConfig { memory_bytes: 16 << 20, cores, ..config })?
            }
        };
        let result = run(&mut device);
        // After a panic there is a new one.
        self.0.insert((arch, cores), device);
        result
    }
}

/// A kernel that did not do what it should.
#[derive(Debug)]
pub struct Failure {
    /// On what.
    pub target: Target,
    /// What went wrong.
    pub message: String,
    /// The kernel and the launch.
    pub case: Box<KernelCase>,
    /// The machine code; none if there is none.
    pub code: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { target, message, case, code } = self;
        writeln!(f, "on {target}: {message}\n{case}")?;
        code.as_ref().map_or(Ok(()), |code| f.write_str(code))
    }
}

/// Compiles the kernel of `bytes` for all `targets`, which are of one family, launches it, and compares
/// with the oracle.
///
/// # Errors
///
/// The first target that differs or fails. What is not supported is counted, as
/// refused.
///
/// # Panics
///
/// If there are no targets.
pub fn check(
    kernels: Kernels,
    bytes: &[u8],
    targets: &[Target],
    machines: &mut Machines,
) -> Result<Reached, Box<Failure>> {
    let generated = kernels.generate(bytes, Family::of(targets[0].arch));
    check_generated(&generated, targets, machines)
}

/// The same for a kernel that was generated already.
///
/// # Errors
///
/// See [`check`].
///
/// # Panics
///
/// If there are no targets.
pub fn check_generated(
    generated: &Generated,
    targets: &[Target],
    machines: &mut Machines,
) -> Result<Reached, Box<Failure>> {
    let case = &generated.case;
    let fail = |target: Target, message: String, code: Option<String>| {
        Box::new(Failure { target, message, case: Box::new(case.clone()), code })
    };
    let expected = |target: Target| {
        catch_unwind(AssertUnwindSafe(|| case.expected(target.arch.lanes())))
            .map_err(|panic| {
                fail(target, format!("the oracle panicked: {}", panic_text(&*panic)), None)
            })?
            .map_err(|error| fail(target, format!("the oracle: {error}"), None))
    };
    let (mut known, trace) = expected(targets[0])?;
    let mut lanes = targets[0].arch.lanes();
    let mut reached = Reached::of(generated, &known, &trace);
    for &target in targets {
        if generated.asks_for_lane && target.arch.lanes() != lanes {
            (known, _) = expected(target)?;
            lanes = target.arch.lanes();
        }
        reached += check_target(case, &known, target, machines)
            .map_err(|(message, code)| fail(target, message, code))?;
    }
    Ok(reached)
}

/// Checks and proves the kernel that bytes behind the first one stand for; the first one says on what it runs.
///
/// # Panics
///
/// If it fails, is refused, or is not proved although the proof is not too long.
pub fn fuzz(kernels: Kernels, bytes: &[u8], machines: &mut Machines) {
    let Some((&turn, rest)) = bytes.split_first() else { return };
    let selection = Selection { kernels, prove: Proof::Counted, ..Selection::default() };
    match check(kernels, rest, &targets_of(turn.into(), selection), machines) {
        Ok(reached) => {
            assert!(reached.refused.is_empty(), "{:?}", reached.refused);
            let mut unproved = reached.unproved.iter();
            if let Some(refuted) = unproved.find(|one| !one.is_too_long()) {
                panic!("{refuted}");
            }
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// Message and code of what went wrong.
type Wrong = (String, Option<String>);

fn check_target(
    case: &KernelCase,
    expected: &Expected,
    target: Target,
    machines: &mut Machines,
) -> Result<Reached, Wrong> {
    let Target { arch, opt_level, way, verify, prove, counts, .. } = target;
    let mut options = CompileOptions { opt_level, verify, ..CompileOptions::default() };
    if way.profile {
        options.divergence = DivergenceStrategy::SplitJoin;
        let compiled = match compile(case, arch, options.clone())? {
            Ok(compiled) => compiled,
            Err(refused) => return Ok(refused),
        };
        let run = |device: &mut Device| case.profiled(&compiled.kernel, device);
        let (_, seen) = launched(&compiled, || machines.on(target, run))?;
        let Some(seen) = seen else {
            return Ok(Reached { unprofiled: 1, ..Reached::default() });
        };
        let profile = match counted(case, expected, target, options.clone(), machines)? {
            Ok(profile) => profile,
            Err(refused) => return Ok(refused),
        };
        if let Some(difference) = profiles_differ(&seen, &profile) {
            return Err((difference, Some(code(&compiled))));
        }
        options.profile = Some(Arc::new(profile));
    }
    options.divergence = way.strategy;
    options.count_branches = counts;
    let compiled = match compile(case, arch, options)? {
        Ok(compiled) => compiled,
        Err(refused) => return Ok(refused),
    };
    let mut reached = match prove {
        Proof::No => Reached::default(),
        Proof::Counted | Proof::Required => Reached::proof(target, &compiled.kernel),
    };
    if prove == Proof::Required
        && let Some(unproved) = reached.unproved.first()
    {
        return Err((format!("not proved: {}", unproved.error), Some(code(&compiled))));
    }
    let run = |device: &mut Device| match counts {
        true => Ok(case.profiled(&compiled.kernel, device)?.0),
        false => case.observed(&compiled.kernel, device),
    };
    let observed = launched(&compiled, || machines.on(target, run))?;
    match case.difference(expected, &observed, arch.lanes().into()) {
        Some(difference) => Err((difference, Some(code(&compiled)))),
        None => {
            reached += Reached::agreed(target, &compiled, &observed);
            Ok(reached)
        }
    }
}

/// The profile that a kernel makes itself, whose results must be those that are expected.
fn counted(
    case: &KernelCase,
    expected: &Expected,
    target: Target,
    options: CompileOptions,
    machines: &mut Machines,
) -> Result<Result<BranchProfile, Reached>, Wrong> {
    let arch = target.arch;
    let compiled = match compile(case, arch, CompileOptions { count_branches: true, ..options })? {
        Ok(compiled) => compiled,
        Err(refused) => return Ok(Err(refused)),
    };
    let run = |device: &mut Device| case.profiled(&compiled.kernel, device);
    let (observed, profile) = launched(&compiled, || machines.on(target, run))?;
    let difference = case.difference(expected, &observed, arch.lanes().into());
    match (difference, profile) {
        (None, Some(profile)) => Ok(Ok(profile)),
        (difference, _) => {
            let what = difference.unwrap_or_else(|| "there is no profile".to_owned());
            Err((format!("counting branches: {what}"), Some(code(&compiled))))
        }
    }
}

/// Whether what was seen of branches is not what the kernel counted of them. Not all branches can be seen.
pub fn profiles_differ(seen: &BranchProfile, counted: &BranchProfile) -> Option<String> {
    let same = (seen.fingerprint == counted.fingerprint).then_some(());
    let difference = |seen: &BranchCounts| {
        let mut seen = seen.clone();
        seen.warps.sort_by_key(|warp| (warp.core, warp.warp));
        let counted = counted.branch(seen.id);
        (counted != Some(&seen)).then(|| format!("seen {seen:?}, counted {counted:?}"))
    };
    match same {
        Some(()) => seen.branches.iter().find_map(difference),
        None => Some("the branches are others if they are counted".to_owned()),
    }
}

/// The compiled kernel, or what is counted if the compiler refuses it.
fn compile(
    case: &KernelCase,
    arch: ArchId,
    options: CompileOptions,
) -> Result<Result<CompiledKernel, Reached>, Wrong> {
    let compiled = catch_unwind(AssertUnwindSafe(|| case.compile(arch, options)))
        .map_err(|panic| (format!("compiling panicked: {}", panic_text(&*panic)), None))?;
    match compiled {
        Ok(compiled) => Ok(Ok(compiled)),
        Err(ModuleError::Compile(CompileError::Unsupported { what, .. })) => {
            Ok(Err(Reached::refused(&what)))
        }
        Err(error) => Err((error.to_string(), None)),
    }
}

/// What a launch of `compiled` gives.
fn launched<T>(
    compiled: &CompiledKernel,
    launch: impl FnOnce() -> Result<T, CaseError>,
) -> Result<T, Wrong> {
    let wrong = |message: String| (message, Some(code(compiled)));
    catch_unwind(AssertUnwindSafe(launch))
        .map_err(|panic| wrong(format!("the machine panicked: {}", panic_text(&*panic))))?
        .map_err(|error| wrong(error.to_string()))
}

fn code(compiled: &CompiledKernel) -> String {
    let functions = compiled.kernel.functions().iter();
    let functions: String =
        functions.map(|func| format!("{}:\n{}", func.name(), func.disassembly())).collect();
    format!("{}:\n{}{functions}", compiled.kernel.name(), compiled.kernel.disassembly())
}

/// Runs as many seeds from `first` on as asked for. `progress` hears of how many are done. Several threads
/// share the seeds; what is reached does not depend on how many.
///
/// # Errors
///
/// The failing seed that is smallest, and its failure, not made smaller.
pub fn run(
    first: u64,
    count: u64,
    selection: Selection,
    threads: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Reached, (u64, Box<Failure>)> {
    let mut reached = Reached::default();
    let seeds: Vec<u64> = (first..first.saturating_add(count)).collect();
    for round in seeds.chunks(64 * threads.max(1)) {
        let results = in_threads(round, threads, || {
            let mut machines = Machines::default();
            move |seed: u64| {
                let targets = targets_of(seed, selection);
                let family = Family::of(targets[0].arch);
                let generated = selection.kernels.generate(&bytes_of(seed), family);
                check_generated(&generated, &targets, &mut machines)
            }
        });
        for (seed, result) in round.iter().zip(results) {
            let mut one = result.map_err(|failure| (*seed, failure))?;
            one.unproved.iter_mut().for_each(|unproved| unproved.seed = Some(*seed));
            reached += one;
        }
        progress(round.len() as u64);
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::replay;

    #[test]
    fn regressions() {
        let mut machines = Machines::default();
        let targets = [("divergent", Kernels::ControlFlow), ("graphs", Kernels::Graphs)];
        for (folder, kernels) in targets {
            replay(folder, |bytes| fuzz(kernels, bytes, &mut machines));
        }
    }
}
