//! The random-test machine: cases made of seeds, on many machines, by every strategy, against the oracle.
//!
//! [`run`] is a campaign: it checks seeds in all threads, counts what they reached, and stops at the smallest one that
//! fails, which [`shrink`](fn@shrink) makes smaller. The example `random` is its command line.

use std::fmt;
use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use harp_isa::{ArchId, WordSize};
use harp_jit::{DivergenceStrategy, OptLevel, ProfileParams};
use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::generate::{Family, Generated, Kind};
use crate::machines::Machines;
use crate::seeds::random_bytes;

mod catalogue;
mod check;
mod constructs;
mod coverage;
mod reduce;
mod shrink;

pub use catalogue::check_catalogue;
pub use check::{Failure, check_generated, fuzz};
pub use constructs::{Needed, needed};
pub(crate) use coverage::add;
pub use coverage::{Counts, Reached, Unproved, counts, merge};
pub use shrink::shrink;

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

/// All strategies, one of them with a profile and without.
pub const WAYS: [Way; 6] = [
    way("split-join", DivergenceStrategy::SplitJoin, false),
    way("predicate", DivergenceStrategy::Predicate, false),
    way("static", DivergenceStrategy::Static, false),
    way("profile", PROFILE, true),
    way("adaptive", DivergenceStrategy::Adaptive, false),
    way("adaptive-profile", DivergenceStrategy::Adaptive, true),
];

const fn way(name: &'static str, strategy: DivergenceStrategy, profile: bool) -> Way {
    Way { name, strategy, profile }
}

/// The parameters of [`ProfileParams::default`].
const PROFILE: DivergenceStrategy =
    DivergenceStrategy::Profile(ProfileParams { loop_high: 900, loop_low: 100, unanimous: 900 });

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
    /// Whether launches are checked, in which nothing may be found.
    pub watched: bool,
    /// Whether the kernel is written as SPIR-V, and what is read back is compiled.
    pub spirv: bool,
    /// Whether the kernel is launched in host code, too, which must not make any difference.
    pub native: bool,
}

impl Target {
    /// One core, checked, without proof.
    pub const fn new(arch: ArchId, opt_level: OptLevel, way: Way) -> Target {
        let (verify, prove, cores) = (true, Proof::No, 1);
        let (counts, watched, spirv, native) = (false, false, false, false);
        Target { arch, opt_level, way, verify, prove, cores, counts, watched, spirv, native }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { arch, opt_level, way, cores, counts, watched, spirv, native, .. } = self;
        write!(f, "{arch} {opt_level:?} {}", way.name)?;
        if *cores > 1 {
            write!(f, " on {cores} cores")?;
        }
        f.write_str(if *counts { " with counts" } else { "" })?;
        f.write_str(if *watched { ", checked" } else { "" })?;
        f.write_str(if *spirv { ", from SPIR-V" } else { "" })?;
        f.write_str(if *native { ", also in host code" } else { "" })
    }
}

/// What seeds run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// What is run.
    pub kind: Kind,
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
    /// Whether launches are checked, in which nothing may be found.
    pub watched: bool,
    /// Whether kernels are written as SPIR-V, and what is read back is compiled.
    pub spirv: bool,
    /// Whether kernels are launched in host code, too, which must not make any difference.
    pub native: bool,
}

/// The bytes of a seed: short ones too, whose cases are small, and what fails is easy to read.
pub fn bytes_of(kind: Kind, seed: u64) -> Vec<u8> {
    random_bytes(seed, kind.bytes() >> (seed / 4 % 4))
}

/// The case of a seed, and what it runs on.
pub fn case_of(seed: u64, selection: Selection) -> (Generated, Vec<Target>) {
    let targets = targets_of(seed, selection);
    let bytes = bytes_of(selection.kind, seed);
    (selection.kind.generate(&bytes, Family::of(targets[0].arch)), targets)
}

/// What a seed runs on: two machines of one family, one at both levels. Consecutive seeds take all
/// families, machines and strategies in turn.
pub fn targets_of(seed: u64, selection: Selection) -> Vec<Target> {
    let word = if seed.is_multiple_of(2) { WordSize::Four } else { WordSize::Eight };
    let extension = seed / 2 % 2 == 1;
    let family = Family { word, extension };
    let archs = selection.kind.machines().filter(|&arch| Family::of(arch) == family);
    let archs: Vec<ArchId> = archs.collect();
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
            // A single lane never diverges.
            Selection { kind: Kind::Functions, .. } => vec![WAYS[0]],
            Selection { way: Some(way), .. } => vec![way],
            Selection { every_way: true, .. } => WAYS.to_vec(),
            _ => vec![one],
        };
        // No two of these periods, nor those above, have a common factor that matters.
        let (cores, counts) = match selection.kind {
            Kind::Graphs => ([1, 2, 1, 3, 1][turn as usize % 5], turn % 7 < 2),
            _ => (1, false),
        };
        targets.extend(ways.into_iter().map(|way| {
            let Selection { watched, spirv, native, .. } = selection;
            let target = Target::new(arch, opt_level, way);
            Target { verify, prove, cores, counts, watched, spirv, native, ..target }
        }));
    }
    targets
}

/// Runs seeds in all threads. `progress` hears of each that is done. What is reached does not depend on how many threads
/// there are. Fails with the failing seed that is smallest, and its failure, not made smaller.
pub fn run(
    seeds: Range<u64>,
    selection: Selection,
    progress: &(dyn Fn() + Sync),
) -> Result<Reached, (u64, Box<Failure>)> {
    let mut reached = together(seeds, progress, |seed, machines| {
        let (generated, targets) = case_of(seed, selection);
        let mut reached: Reached = check_generated(&generated, &targets, machines)?;
        reached.unproved.iter_mut().for_each(|unproved| unproved.seed = Some(seed));
        Ok(reached)
    })?;
    reached.unproved.sort_by_key(|unproved| unproved.seed);
    Ok(reached)
}

/// What `check` comes to for all numbers together. Threads take one after the other, so that none waits for another.
/// Fails with the smallest number for which it fails, and how: those above it are left out then.
pub fn together<R: AddAssign + Default + Send, E: Send>(
    numbers: Range<u64>,
    progress: &(dyn Fn() + Sync),
    check: impl Fn(u64, &mut Machines) -> Result<R, E> + Sync,
) -> Result<R, (u64, E)> {
    let failed = AtomicU64::new(u64::MAX);
    let results = numbers.par_bridge().map(|number| {
        if number > failed.load(Ordering::Relaxed) {
            return Ok(R::default());
        }
        let result = Machines::of_thread(|machines| check(number, machines));
        progress();
        result.map_err(|error| {
            failed.fetch_min(number, Ordering::Relaxed);
            (number, error)
        })
    });
    results.reduce(
        || Ok(R::default()),
        |one, other| match (one, other) {
            (Ok(mut one), Ok(other)) => {
                one += other;
                Ok(one)
            }
            (Err(one), Err(other)) => Err(if one.0 <= other.0 { one } else { other }),
            (Err(error), _) | (_, Err(error)) => Err(error),
        },
    )
}
