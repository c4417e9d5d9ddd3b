//! One case on some machines.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use harp_emu::{Stats, WarpStats};
use harp_jit::{BranchProfile, CompileError, CompileOptions, DivergenceStrategy, ModuleError};
use harp_runtime::{Checks, Device, LaunchConfig, Tier};

use super::{Counts, Proof, Reached, Selection, Target, targets_of};
use crate::generate::{Family, Generated, Kind};
use crate::machines::{Machines, Setup};
use crate::oracle::{self, Case, Compiled, Effect, Lanes, Observed};
use crate::spirv::{self, RoundTripError};

/// A case that did not do what it should.
#[derive(Debug)]
pub struct Failure {
    /// On what.
    pub target: Target,
    /// What went wrong.
    pub message: String,
    /// The case.
    pub case: Box<Case>,
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

/// Compiles a case for all `targets`, which are of its family, runs it, and compares with the oracle. Fails with the first
/// target that differs or fails. What is not supported is counted, as refused. Panics if there are no targets.
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
        let expected = caught("the oracle", || case.expected(target.arch));
        expected.map_err(|message| fail(target, message, None))
    };
    let (mut known, trace) = expected(targets[0])?;
    let mut lanes = Lanes::from(targets[0].arch);
    let mut reached = Reached::of(generated, &known, &trace);
    for &target in targets {
        if generated.asks_for_lane && Lanes::from(target.arch) != lanes {
            (known, _) = expected(target)?;
            lanes = target.arch.into();
        }
        let from_spirv = target.spirv.then(|| spirv::expected(&known));
        let run = Run { case, expected: from_spirv.as_ref().unwrap_or(&known), target };
        match run.compared(machines) {
            Ok(more) => reached += more,
            Err(Left::Counted(more)) => reached += *more,
            Err(Left::Wrong(message, code)) => return Err(fail(target, message, code)),
        }
    }
    Ok(reached)
}

/// Checks and proves the case that bytes behind the first one stand for; the first one says on what it runs.
/// Panics if it fails, is refused, or is not proved although the proof is not too long.
pub fn fuzz(kind: Kind, bytes: &[u8]) {
    let Some((&turn, rest)) = bytes.split_first() else { return };
    let prove = if kind == Kind::Functions { Proof::No } else { Proof::Counted };
    let selection = Selection { kind, prove, ..Selection::default() };
    let targets = targets_of(turn.into(), selection);
    let generated = kind.generate(rest, Family::of(targets[0].arch));
    match Machines::of_thread(|machines| check_generated(&generated, &targets, machines)) {
        Ok(reached) => {
            assert!(reached.refused.is_empty(), "{:?}", reached.refused);
            let mut unproved = reached.unproved.iter();
            if let Some(refuted) = unproved.find(|one| !one.error.undecided) {
                panic!("{refuted}");
            }
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// What something comes to that must neither fail nor panic; else what `what` says.
fn caught<T, E: fmt::Display>(what: &str, run: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|error| format!("{what}: {error}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("{what} panicked: {}", text.unwrap_or("(no message)")))
        }
    }
}

/// Why there is nothing to compare.
enum Left {
    /// The compiler refuses the case, or there is no profile: what is counted of that.
    Counted(Box<Reached>),
    /// Message and code of what went wrong.
    Wrong(String, Option<String>),
}

/// A case on one target.
struct Run<'a> {
    case: &'a Case,
    expected: &'a Effect,
    target: Target,
}

impl Run<'_> {
    fn compared(&self, machines: &mut Machines) -> Result<Reached, Left> {
        let Target { opt_level, way, verify, prove, counts, watched, native, .. } = self.target;
        let report_accesses = watched;
        let mut options = CompileOptions { verify, report_accesses, ..oracle::options(opt_level) };
        if way.profile {
            options.profile = Some(Arc::new(self.profile(&options, machines)?));
        }
        options.divergence = way.strategy;
        options.count_branches = counts;
        let compiled = self.compile(options)?;
        let mut reached = Reached::default();
        if let (Some(kernel), Proof::Counted | Proof::Required) = (compiled.kernel(), prove) {
            reached += Reached::proof(self.target, kernel);
        }
        if let (Proof::Required, Some(unproved)) = (prove, reached.unproved.first()) {
            let message = format!("not proved: {}", unproved.error);
            return Err(Left::Wrong(message, Some(compiled.disassembly())));
        }
        let observed = self.observed(&compiled, machines, |config| {
            let config = if counts { config.with_branch_profile() } else { config };
            // What lanes have in common counts as right only if each of them has computed it.
            let config = if self.target.arch.has_shared() { config.with_audit() } else { config };
            if watched { config.with_checks(self.checks()) } else { config }
        })?;
        reached += Reached::agreed(self.target, &compiled, &observed);
        if native {
            for tier in [Tier::Native, Tier::Leaving, Tier::Recorded] {
                reached += self.again_in_host_code(&compiled, tier)?;
            }
        }
        Ok(reached)
    }

    /// The same launches in host code, which cost as many instructions, in each warp: two, as the second one finds what was
    /// translated in the first.
    fn again_in_host_code(&self, compiled: &Compiled, tier: Tier) -> Result<Reached, Left> {
        // New ones: which lanes count an instruction may depend on what launches before have left on the stacks.
        let machines = &mut Machines::default();
        let mut issued_again = 0;
        for launch in ["first", "second"] {
            let before = &self.observed(compiled, machines, |config| config)?;
            let again = self.observed_in(tier, compiled, machines, |config| config)?;
            let reports = (again.report.as_ref(), before.report.as_ref());
            let is_same = match reports {
                // How far cores are when others wait for them does, too.
                (Some(_), Some(_)) if self.case.waits && self.target.cores > 1 => true,
                (Some(again), Some(before)) => cost_the_same(&again.stats, &before.stats),
                // How far other cores come before one traps depends on the tier.
                _ => again.issued == before.issued || self.target.cores > 1,
            };
            if !is_same {
                let [again, before] = [&again, before]
                    .map(|seen| (seen.issued, seen.report.as_ref().map(|report| &report.stats)));
                let what = format!("{launch} launch in host code ({tier:?})");
                let message = format!("{what}: {again:?}; before: {before:?}");
                return Err(Left::Wrong(message, Some(compiled.disassembly())));
            }
            issued_again += again.issued;
        }
        let device = machines.device(self.setup(tier)).ok();
        let in_host_code = device.and_then(Device::tier_stats).map_or(0, |stats| stats.issued);
        let of_tier = |count| Counts::from([(format!("{tier:?}"), count)]);
        let issued_again = of_tier(issued_again);
        let issued_in_host_code = of_tier(in_host_code);
        Ok(Reached { issued_again, issued_in_host_code, ..Reached::default() })
    }

    fn setup(&self, tier: Tier) -> Setup {
        let Target { arch, cores, .. } = self.target;
        Setup { arch, cores, tier }
    }

    /// All checks but that of types, as buffers are bytes to the host. What is done under a lock is a race to them.
    fn checks(&self) -> Checks {
        let mut checks = Checks::all();
        (checks.types, checks.races) = (false, !self.case.waits);
        checks
    }

    /// What branches do under splits alone: the kernel counts it itself, and so does who looks on, and both must say
    /// the same.
    fn profile(
        &self,
        options: &CompileOptions,
        machines: &mut Machines,
    ) -> Result<BranchProfile, Left> {
        let mut branches = |count_branches| {
            let divergence = DivergenceStrategy::SplitJoin;
            let options = CompileOptions { divergence, count_branches, ..options.clone() };
            let compiled = self.compile(options)?;
            let observed = self.observed(&compiled, machines, LaunchConfig::with_branch_profile)?;
            Ok((compiled, observed.report.and_then(|report| report.branches)))
        };
        let (compiled, Some(seen)) = branches(false)? else {
            return Err(Left::Counted(Box::new(Reached { unprofiled: 1, ..Reached::default() })));
        };
        let difference = match branches(true)? {
            (_, Some(counted)) if self.case.waits => return Ok(counted),
            (_, Some(counted)) => match profiles_differ(&seen, &counted) {
                None => return Ok(counted),
                Some(difference) => difference,
            },
            _ => "counting branches: there is no profile".to_owned(),
        };
        Err(Left::Wrong(difference, Some(compiled.disassembly())))
    }

    fn compile(&self, options: CompileOptions) -> Result<Compiled, Left> {
        let Target { arch, spirv, .. } = self.target;
        let compile = || match spirv {
            true => Ok::<_, fmt::Error>(spirv::compile(self.case, arch, &options)),
            false => Ok(self.case.compile(arch, options).map_err(RoundTripError::from)),
        };
        let compiled = caught("compiling", compile).map_err(|panic| Left::Wrong(panic, None))?;
        let refused = |what: &str| Left::Counted(Box::new(Reached::refused(what)));
        compiled.map_err(|error| match error {
            RoundTripError::Compile(ModuleError::Compile(CompileError::Unsupported {
                what,
                ..
            })) => refused(&what),
            RoundTripError::Unwritable(what) => refused(&what.to_string()),
            error => Left::Wrong(error.to_string(), None),
        })
    }

    /// What the machine does, which must be as expected.
    fn observed(
        &self,
        compiled: &Compiled,
        machines: &mut Machines,
        config: impl FnOnce(LaunchConfig) -> LaunchConfig,
    ) -> Result<Observed, Left> {
        self.observed_in(Tier::Interpreter, compiled, machines, config)
    }

    fn observed_in(
        &self,
        tier: Tier,
        compiled: &Compiled,
        machines: &mut Machines,
        config: impl FnOnce(LaunchConfig) -> LaunchConfig,
    ) -> Result<Observed, Left> {
        let run = || machines.run(self.case, compiled, self.setup(tier), config);
        let wrong = |message: String| Left::Wrong(message, Some(compiled.disassembly()));
        let observed = caught("the machine", run).map_err(wrong)?;
        let lanes = compiled.kernel().map_or_else(|| self.target.arch.into(), Lanes::from);
        match self.case.difference(self.expected, &observed, lanes) {
            None => Ok(observed),
            Some(difference) => Err(wrong(difference)),
        }
    }
}

/// Whether two runs of a kernel have cost the same in each warp, but for lanes. Predicated code may compute guards, on which no
/// result depends, of registers that nobody has written, and then a few lanes more or fewer execute an instruction.
fn cost_the_same(one: &Stats, other: &Stats) -> bool {
    let warps = |stats: &Stats| -> Vec<WarpStats> {
        stats.cores.iter().flat_map(|core| core.warps.clone()).collect()
    };
    let (one, other) = (warps(one), warps(other));
    let is_close = |one: u64, other: u64| one.abs_diff(other) <= one / 64 + 4;
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| {
            let but_for_lanes = WarpStats { insts: one.insts, ..*other };
            *one == but_for_lanes && is_close(one.insts, other.insts)
        })
}

/// Whether what was seen of branches is not what the kernel counted of them. Not all branches can be seen.
fn profiles_differ(seen: &BranchProfile, counted: &BranchProfile) -> Option<String> {
    if seen.fingerprint != counted.fingerprint {
        return Some("the branches are others if they are counted".to_owned());
    }
    seen.branches.iter().find_map(|seen| {
        let mut seen = seen.clone();
        seen.warps.sort_by_key(|warp| (warp.core, warp.warp));
        let counted = counted.branch(seen.id);
        (counted != Some(&seen)).then(|| format!("seen {seen:?}, counted {counted:?}"))
    })
}
