//! Random kernels on many machines, at all optimization levels, against the oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::ir::Function;
use harp_emu::TrapKind;
use harp_isa::ArchId;
use harp_jit::{CompileError, Kernel, OptLevel};
use harp_runtime::Device;

use super::panic_text;
use super::reduce::fewer_bytes;
use crate::generate::{self, Family};
use crate::oracle::{Case, CaseError, Expected, Observed, device};

/// Both word sizes, both encodings, with and without extension, 8 to 64 general registers, 2 to 64
/// predicates, 1 to 64 lanes.
pub const ARCHS: [&str; 10] = [
    "harp32",
    "harp64",
    "4w32/16/8/2+x",
    "8w16/16/4/2+x",
    "8b8/2/16/1+x",
    "4b16/16/2/1",
    "4w8/2/4/2",
    "8b64/64/16/1",
    "4w64/64/1/1",
    "8w8/2/64/1",
];

/// All levels.
pub const OPT_LEVELS: [OptLevel; 2] = [OptLevel::None, OptLevel::Speed];

/// Entries of the divergence stack that a split takes at most. The runtime library has one, around the
/// kernel, so that only more of them show that the kernel split.
const SPLIT_ENTRIES: usize = 2;

/// A machine of each kind.
#[derive(Debug)]
pub struct Machines(Vec<(ArchId, Device)>);

impl Machines {
    /// All of [`ARCHS`].
    ///
    /// # Panics
    ///
    /// If the host does not give their memory.
    #[expect(clippy::new_without_default, reason = "it takes memory")]
    pub fn new() -> Machines {
        let ids = ARCHS.map(|id| id.parse().expect("the list above holds machines"));
        Machines(ids.map(|arch| (arch, device(arch).expect("4 MiB are little"))).into())
    }

    /// The machines by what kernels may use on them.
    fn families(&mut self) -> BTreeMap<Family, Vec<&mut (ArchId, Device)>> {
        let mut families = BTreeMap::<Family, Vec<_>>::new();
        for machine in &mut self.0 {
            families.entry(Family::of(machine.0)).or_default().push(machine);
        }
        families
    }
}

/// What a run of cases came to, so that a vacuous one is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Kernels that were built, one a family of machines.
    pub kernels: usize,
    /// Launches that agreed with the oracle.
    pub launches: usize,
    /// Those in which warps split, and split again under a split; some are not recognized.
    pub split: usize,
    /// See `split`.
    pub split_twice: usize,
    /// Launches of kernels with spill slots, and with predicates in them.
    pub spilled: usize,
    /// See `spilled`.
    pub spilled_predicates: usize,
    /// Launches of kernels with loops.
    pub loops: usize,
    /// Launches of kernels with branches that are uniform.
    pub uniform_branches: usize,
    /// Launches that trapped as they should.
    pub bad_addresses: usize,
    /// See `bad_addresses`.
    pub divisions_by_zero: usize,
    /// See `bad_addresses`.
    pub trap_codes: usize,
    /// The CLIF operations of kernels that ran.
    pub opcodes: BTreeSet<String>,
    /// What was not supported, and how many compilations of it.
    pub unsupported: BTreeMap<String, usize>,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        self.kernels += other.kernels;
        self.launches += other.launches;
        self.split += other.split;
        self.split_twice += other.split_twice;
        self.spilled += other.spilled;
        self.spilled_predicates += other.spilled_predicates;
        self.loops += other.loops;
        self.uniform_branches += other.uniform_branches;
        self.bad_addresses += other.bad_addresses;
        self.divisions_by_zero += other.divisions_by_zero;
        self.trap_codes += other.trap_codes;
        self.opcodes.extend(other.opcodes);
        for (what, count) in other.unsupported {
            *self.unsupported.entry(what).or_default() += count;
        }
    }
}

/// A kernel that did not do what it should.
#[derive(Debug)]
pub struct Failure {
    /// The machine.
    pub arch: ArchId,
    /// The level.
    pub opt_level: OptLevel,
    /// What went wrong.
    pub message: String,
    /// The kernel as it was built, with grid and arguments; none if it was not.
    pub case: Option<Box<Case>>,
    /// The machine code; none if there is none.
    pub code: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { arch, opt_level, message, case, code } = self;
        writeln!(f, "on {arch} at {opt_level:?}: {message}")?;
        if let Some(case) = case {
            writeln!(f, "{case}")?;
        }
        code.as_ref().map_or(Ok(()), |code| f.write_str(code))
    }
}

/// Compiles and launches the kernel of `bytes` everywhere and compares with the oracle.
///
/// # Errors
///
/// The first machine and level that differ, or where something failed otherwise than by not being
/// supported.
pub fn check(bytes: &[u8], machines: &mut Machines) -> Result<Reached, Box<Failure>> {
    let mut reached = Reached::default();
    for (_, members) in machines.families() {
        let arch = members[0].0;
        let fail = |message: String, case: Option<&Case>| {
            let case = case.cloned().map(Box::new);
            Box::new(Failure { arch, opt_level: OptLevel::None, message, case, code: None })
        };
        let case = generate::kernel(bytes, arch).map_err(|error| fail(error.to_string(), None))?;
        let expected = catch_unwind(AssertUnwindSafe(|| case.expected()))
            .map_err(|_| fail("the oracle panicked".to_owned(), Some(&case)))?
            .map_err(|error| fail(error.to_string(), Some(&case)))?;
        reached.kernels += 1;
        for (arch, device) in members {
            for opt_level in OPT_LEVELS {
                reached += compare(&case, &expected, *arch, device, opt_level)?;
            }
        }
    }
    Ok(reached)
}

/// Runs a case on one machine at one level.
///
/// # Errors
///
/// If it differs from what is expected, or fails otherwise than by not being supported.
pub fn compare(
    case: &Case,
    expected: &Expected,
    arch: ArchId,
    device: &mut Device,
    opt_level: OptLevel,
) -> Result<Reached, Box<Failure>> {
    let fail = |message: String, kernel: Option<&Kernel>| {
        let code = kernel.map(Kernel::disassembly);
        Box::new(Failure { arch, opt_level, message, case: Some(Box::new(case.clone())), code })
    };
    let run = || -> Result<_, CaseError> {
        let kernel = case.compile(arch, opt_level)?;
        let observed = case.observed(&kernel, device)?;
        Ok((kernel, observed))
    };
    let (kernel, observed) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(done)) => done,
        Ok(Err(CaseError::Compile(error))) => match *error {
            CompileError::Unsupported { what, .. } => {
                let unsupported = BTreeMap::from([(reason(&what), 1)]);
                return Ok(Reached { unsupported, ..Reached::default() });
            }
            error => return Err(fail(error.to_string(), None)),
        },
        Ok(Err(error)) => return Err(fail(error.to_string(), None)),
        Err(panic) => return Err(fail(format!("it panicked: {}", panic_text(&*panic)), None)),
    };
    match case.difference(expected, &observed, arch.lanes().into()) {
        Some(difference) => Err(fail(difference, Some(&kernel))),
        None => Ok(counts(case, &kernel, &observed)),
    }
}

fn counts(case: &Case, kernel: &Kernel, observed: &Observed) -> Reached {
    let stats = kernel.stats();
    let mut reached = Reached {
        launches: 1,
        spilled: usize::from(stats.spill_slots > 0),
        spilled_predicates: usize::from(kernel.stats().predicate_spills > 0),
        loops: usize::from(has_loop(&case.func)),
        uniform_branches: usize::from(stats.branches > stats.divergent_branches),
        opcodes: opcodes(&case.func),
        ..Reached::default()
    };
    match observed {
        Observed::Memory(_, report) => {
            let depth = report.stats.divergence_high_water();
            reached.split = usize::from(depth > SPLIT_ENTRIES);
            reached.split_twice = usize::from(depth > 2 * SPLIT_ENTRIES);
        }
        Observed::Trap(trap) => match trap.trap.kind {
            TrapKind::BadAddress { .. } => reached.bad_addresses = 1,
            TrapKind::DivideByZero => reached.divisions_by_zero = 1,
            _ => reached.trap_codes = 1,
        },
    }
    reached
}

/// Whether a block branches to itself or to one that the builder laid out before.
fn has_loop(func: &Function) -> bool {
    let mut seen = BTreeSet::new();
    func.layout.blocks().any(|block| {
        seen.insert(block);
        func.block_successors(block).any(|successor| seen.contains(&successor))
    })
}

fn opcodes(func: &Function) -> BTreeSet<String> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    insts.map(|inst| func.dfg.insts[inst].opcode().to_string()).collect()
}

/// What is not supported, without the names of blocks and without where divergence comes from.
fn reason(what: &str) -> String {
    let (reason, _) = what.split_once(" (divergent").unwrap_or((what, ""));
    reason.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Bytes that fail as `bytes` do, on the same machine and level, but stand for a smaller kernel.
///
/// Takes `attempts` at most.
pub fn shrink(bytes: &[u8], failure: &Failure, attempts: usize) -> Option<Box<Failure>> {
    let (arch, opt_level) = (failure.arch, failure.opt_level);
    let mut smallest: Option<Box<Failure>> = None;
    let fails = |bytes: &[u8]| {
        let case = generate::kernel(bytes, arch).ok()?;
        let expected = catch_unwind(AssertUnwindSafe(|| case.expected())).ok()?.ok()?;
        let mut device = device(arch).ok()?;
        compare(&case, &expected, arch, &mut device, opt_level).err()
    };
    fewer_bytes(bytes, &mut { attempts }, |bytes| {
        fails(bytes).map(|smaller| smallest = Some(smaller)).is_some()
    });
    smallest
}
