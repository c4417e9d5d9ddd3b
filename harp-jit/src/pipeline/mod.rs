//! The pipeline: takes one function from CLIF to machine code, stage by stage.
//!
//! ```text
//! CLIF       precheck, verify; legalize::before, mid_end, loops that wait, legalize::between, (mid_end,) legalize::after
//!              -> legal CLIF: values of at most a word, all control flow explicit
//!            divergence: shared headers, canonical form, uniformity, decisions, structurization
//!              -> managed CLIF and a plan: which branches split, what joins, what is to be predicated
//!            isel -> VCode; if_convert -> the same without the regions that the plan predicates; sharing -> the same with
//!              shared registers, where the machine has any
//!            regalloc, emit -> machine code; harp-check, where it is asked for
//! ```
//!
//! Selection runs once in this sequence. Decisions by cost run it again on the side, without splits, on the
//! CLIF that they are about, because only selected instructions tell what it costs to predicate a region.

use cranelift_codegen::ir::Function;

use crate::abi::EntryKind;
use crate::accesses::MemoryAccess;
use crate::analysis::Graph;
use crate::builder::KernelSource;
use crate::divergence::decide::{DivergenceReport, Shares};
use crate::divergence::{meetings, spinning};
use crate::error::CompileError;
use crate::function::CompiledFunction;
use crate::groups::Grouping;
use crate::if_convert::Predicated;
use crate::options::{CompileOptions, Execution, OptLevel};
use crate::precheck::{explained, precheck, verify};
use crate::profile::{BranchCounters, Branches};
use crate::regalloc::{self, Allocated};
use crate::stats::CompileStats;
use crate::times::{Clock, Stage};
use crate::unit::Unit;
use crate::vcode::{Callee, MInst, VCode};
use crate::{accesses, emit, isel, legalize, mid_end, sharing};

mod code;
mod divergence;
mod record;

use divergence::Managed;

/// Runs the whole pipeline.
pub(crate) fn compile(source: &Function, unit: Unit<'_>) -> Result<CompiledFunction, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let clock = Clock::new();
    let clif_insts = count_insts(source);
    let reported = options.report_accesses.then(|| report_accesses(source, unit)).transpose()?;
    let (func, accesses) = match &reported {
        Some((func, accesses)) => (func, accesses.as_slice()),
        None => (source, [].as_slice()),
    };
    let Selected { func, mut vcode, predicated, branches, shares } = select(func, unit, &clock)?;

    let grouping = Grouping::of(source, &vcode);
    let setting = setting(&vcode, grouping, unit);
    clock.begin(Stage::Sharing);
    share(&mut vcode, setting, unit)?;
    clock.begin(Stage::Allocation);
    let allocated = regalloc::allocate(&vcode, arch, options.verify)?;
    clock.begin(Stage::Emission);
    emit::turn_branches(&mut vcode, &allocated);
    let emitted = code::emit(&vcode, &allocated, unit)?;

    let stats = CompileStats {
        clif_insts,
        optimized_insts: count_insts(&func),
        ..statistics(shares, predicated, &vcode, &allocated)
    };
    let compiled = code::assemble(unit, setting, vcode, emitted, stats);
    let compiled = CompiledFunction {
        branch_fingerprint: branches.fingerprint(),
        counters: unit.counters.map(|_| {
            BranchCounters::new(name, arch, branches.ids().collect(), branches.fingerprint())
        }),
        times: clock.times(),
        accesses: accesses.into(),
        grouping,
        may_gather: meetings::may_gather(source, &unit.callees()),
        ..compiled
    };
    if options.check_code {
        code::check(&compiled)?;
    }
    Ok(compiled)
}

/// Shares registers, where the machine has such, and checks their places.
fn share(vcode: &mut VCode, setting: sharing::Setting, unit: Unit<'_>) -> Result<(), CompileError> {
    if shares(unit) {
        sharing::share(vcode, setting);
        if unit.options.verify {
            sharing::check(vcode, unit.arch, unit.entry).map_err(|error| {
                let message = format!("`{}`: {error}\n{vcode}", unit.name);
                CompileError::Internal { stage: "sharing", message }
            })?;
        }
    }
    Ok(())
}

/// Whether lanes may share registers. Where accesses are reported each lane reports its own, also if others do the same.
fn shares(unit: Unit<'_>) -> bool {
    let CompileOptions { execution, report_accesses, .. } = *unit.options;
    unit.arch.has_shared() && execution == Execution::Simt && !report_accesses
}

/// What sharing depends on beside the code.
fn setting(vcode: &VCode, grouping: Grouping, unit: Unit<'_>) -> sharing::Setting {
    let by_rows = walks_by_rows(vcode, grouping, unit);
    sharing::Setting { arch: unit.arch, entry: unit.entry, by_rows }
}

/// Whether launches walk by rows of the grid, because positions by rows are used: so only if work-groups mean nothing to the
/// kernel and to all that is linked to it.
fn walks_by_rows(vcode: &VCode, grouping: Grouping, unit: Unit<'_>) -> bool {
    let is_asked = shares(unit) && unit.options.by_rows;
    if unit.entry != EntryKind::Kernel || !is_asked || grouping != Grouping::Indifferent {
        return false;
    }
    // What it refers to is linked to it, whether it is called or not, and launches go by all that is linked.
    let is_free = |name: &str| {
        unit.library.is_some_and(|library| library.is_free_of_groups(name))
            || unit.symbols.is_free_of_groups(name)
    };
    let calls_any = |inst: &MInst| {
        let (MInst::Call { callee, .. } | MInst::TailCall { callee, .. }) = inst else {
            return false;
        };
        matches!(callee, Callee::Register { .. })
    };
    !unit.kernel.is_some_and(KernelSource::uses_groups)
        && !vcode.insts.iter().any(calls_any)
        && vcode.references().all(is_free)
}

/// Reports how divergence would be managed in a function, what the alternatives cost, and which values would be shared.
pub(crate) fn explain(source: &Function, unit: Unit<'_>) -> Result<DivergenceReport, CompileError> {
    let clock = Clock::new();
    let func = legal(source, unit, &clock)?;
    let code = shares(unit).then(|| select_legal(func.clone(), unit, &clock)).transpose()?;
    let mut report = divergence::explain(func, unit)?;
    if let Some(Selected { mut vcode, .. }) = code {
        let setting = setting(&vcode, Grouping::of(source, &vcode), unit);
        share(&mut vcode, setting, unit)?;
        report.values = sharing::explain(&vcode, setting, unit.sources);
    }
    Ok(report)
}

/// The function with reports of its accesses to memory, and the table of them.
fn report_accesses(
    func: &Function,
    unit: Unit<'_>,
) -> Result<(Function, Vec<MemoryAccess>), CompileError> {
    check_input(func, unit)?;
    let mut func = func.clone();
    let shape = unit.kernel.map(KernelSource::shape);
    let Unit { arch, symbols, sources, .. } = unit;
    let accesses = accesses::report(&mut func, arch.word(), shape.as_ref(), symbols, sources);
    unit.verify(&func, "reports of accesses")?;
    Ok((func, accesses))
}

/// The result of the pipeline's first half.
pub(crate) struct Selected {
    /// Managed CLIF.
    pub(crate) func: Function,
    pub(crate) vcode: VCode,
    predicated: Predicated,
    branches: Branches,
    shares: Shares,
}

/// Runs the pipeline's first half: up to machine instructions over virtual registers.
pub(crate) fn select(
    func: &Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<Selected, CompileError> {
    select_legal(legal(func, unit, clock)?, unit, clock)
}

/// The same from a legal function.
fn select_legal(func: Function, unit: Unit<'_>, clock: &Clock) -> Result<Selected, CompileError> {
    let Unit { name, options, .. } = unit;
    clock.begin(Stage::Divergence);
    let Managed { func, graph, plan, branches, shares } = match options.execution {
        Execution::Simt => divergence::manage(func, unit, clock)?,
        Execution::SingleLane => {
            let (plan, branches, shares) = Default::default();
            Managed { graph: Graph::compute(&func), func, plan, branches, shares }
        }
    };
    log::debug!("legal CLIF of `{name}`:\n{}\nplan:\n{plan}", func.display());

    clock.begin(Stage::Selection);
    let (mut vcode, blocks) = isel::select(&func, &graph, &plan, unit.target())
        .map_err(|error| error.explain(&func, unit.sources))?;
    log::debug!("VCode of `{name}`:\n{vcode}");
    let predicated = divergence::predicate(&mut vcode, &plan, &blocks, unit)?;
    Ok(Selected { func, vcode, predicated, branches, shares })
}

/// The function in legal CLIF: verified, brought to the machine's word, and optimized.
pub(crate) fn legal(
    func: &Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<Function, CompileError> {
    let Unit { arch, options, .. } = unit;
    options.check()?;
    check_input(func, unit)?;
    let mut func = func.clone();
    legalize::before(&mut func, arch, options.check_alignment)
        .map_err(|error| error.explain(&func, unit.sources))?;
    let mut func = mid_end::optimize(func, options)?;
    if options.execution == Execution::Simt && arch.lanes() > 1 {
        spinning::extend(&mut func, &unit.callees());
        unit.verify(&func, "loops that wait")?;
    }
    let rerun = legalize::between(&mut func, arch, options.execution, unit.large_code())
        .map_err(|error| error.explain(&func, unit.sources))?;
    unit.verify(&func, "fitting values to words")?;
    let mut func = if rerun { mid_end::optimize(func, options)? } else { func };
    clock.begin(Stage::Legalization);
    legalize::after(&mut func);
    mid_end::simplify_conditions(&mut func);
    if options.opt_level == OptLevel::Speed {
        mid_end::compare_shifted(&mut func);
    }
    unit.verify(&func, "legalization")?;
    Ok(func)
}

/// The function in canonical form, in which divergence is decided upon.
pub(crate) fn canonical(func: &Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    let clock = Clock::new();
    let (prepared, _) = divergence::prepare(legal(func, unit, &clock)?, unit, &clock)?;
    Ok(prepared.func)
}

/// Refuses invalid CLIF, and types that no machine has.
fn check_input(func: &Function, unit: Unit<'_>) -> Result<(), CompileError> {
    let Unit { name, options, .. } = unit;
    precheck(func).map_err(|refusal| refusal.explain(name, func, unit.sources))?;
    if options.verify_input || options.verify {
        let invalid = |message: String| CompileError::Invalid { kernel: name.to_owned(), message };
        verify(func, &options.flags())
            .map_err(|errors| invalid(explained(&errors, func, unit.sources)))?;
    }
    Ok(())
}

fn count_insts(func: &Function) -> usize {
    func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum()
}

fn statistics(
    shares: Shares,
    predicated: Predicated,
    vcode: &VCode,
    allocated: &Allocated,
) -> CompileStats {
    let (mut moves, mut predicate_spills) = (0, 0);
    for edit in allocated.moves() {
        moves += 1;
        predicate_spills += usize::from(edit.is_predicate_spill());
    }
    CompileStats {
        selected_insts: vcode.insts.len(),
        moves,
        predicate_spills,
        spill_slots: allocated.slots(),
        branches: predicated.branches
            + vcode.blocks.iter().filter(|block| block.succs.len() == 2).count(),
        divergent_branches: shares.divergent,
        predicated_branches: predicated.branches,
        predicated_divergent_branches: shares.predicated,
        ..CompileStats::default()
    }
}
