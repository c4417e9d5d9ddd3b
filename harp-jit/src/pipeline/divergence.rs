//! The pipeline's stage that manages divergence: it collects what the stage needs from the function's
//! surroundings, and checks the stage's results.

use cranelift_codegen::ir::Function;

use crate::analysis::{Graph, Known, Loads};
use crate::divergence::decide::{self, DivergenceReport, Shares};
use crate::divergence::{self, Decisions, Prepared, shared_headers};
use crate::error::CompileError;
use crate::if_convert::{self, Predicated};
use crate::isel::{self, BlockIds};
use crate::plan::{Plan, PredicatedRegion};
use crate::profile::{self, Branches, CounterLayout};
use crate::times::{Clock, Stage};
use crate::unit::Unit;
use crate::validate::{self, Difference};
use crate::vcode::VCode;

/// A function whose divergence is managed.
pub(crate) struct Managed {
    pub(crate) func: Function,
    /// The graph of its blocks.
    pub(crate) graph: Graph,
    pub(crate) plan: Plan,
    pub(crate) branches: Branches,
    pub(crate) shares: Shares,
}

/// Manages divergence: rearranges control flow and decides how each branch is executed.
pub(crate) fn manage(
    func: Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<Managed, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let mut before = options.verify.then(|| func.clone());
    let (prepared, branches) = prepare_from(func, &mut before, unit, clock)?;
    clock.begin(Stage::Divergence);
    let facts = facts(&prepared, &branches, unit)?;
    let decisions = decide(facts, unit)?;
    let shares = facts.shares(&decisions);
    let (func, graph, plan) =
        prepared.manage(&decisions, &branches).map_err(|error| error.explain(name))?;
    unit.verify(&func, "divergence management")?;
    if options.verify {
        divergence::check(&func, &plan).map_err(|error| CompileError::Internal {
            stage: "divergence management",
            message: format!("`{name}`: {error}"),
        })?;
    }
    if let Some(before) = before {
        same_values(&before, &func, &plan, arch.lanes(), unit)?;
    }
    Ok(Managed { func, graph, plan, branches, shares })
}

/// Brings a legal function to canonical form, in which divergence is decided upon, and names its branches. A
/// function that is to count its branches gets the counters after that.
pub(crate) fn prepare(
    func: Function,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<(Prepared, Branches), CompileError> {
    prepare_from(func, &mut None, unit, clock)
}

/// Does the work of [`prepare`]. `before`, if given, is a copy of `func`; it is updated so that it has the
/// same effects as the result.
fn prepare_from(
    mut func: Function,
    before: &mut Option<Function>,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<(Prepared, Branches), CompileError> {
    clock.begin(Stage::Divergence);
    shared_headers::divide(&mut func, &unit.callees());
    let insts = func.dfg.num_insts();
    let (prepared, branches) = canonical_form(func, insts, unit, clock)?;
    let Some(argument) = unit.counters else { return Ok((prepared, branches)) };
    let Prepared { mut func, steering, own, .. } = prepared;
    if let Some(before) = before {
        // Nothing is planned yet, so the comparison runs single lanes.
        same_values(before, &func, &Plan::unsplit(own), 1, unit)?;
    }
    profile::instrument(&mut func, &branches, CounterLayout::new(unit.arch, &branches), argument);
    if let Some(before) = before {
        before.clone_from(&func);
    }
    let (mut prepared, counted) = canonical_form(func, insts, unit, clock)?;
    prepared.steering.extend(steering.iter());
    if !counted.ids().eq(branches.ids()) {
        let message = format!("`{}`: its branches are others with counters", unit.name);
        return Err(CompileError::Internal { stage: "counting branches", message });
    }
    Ok((prepared, counted))
}

/// Checks that `after` has the same effects as `before`, in warps of at most `lanes` lanes.
fn same_values(
    before: &Function,
    after: &Function,
    plan: &Plan,
    lanes: u8,
    unit: Unit<'_>,
) -> Result<(), CompileError> {
    let callees = unit.callees();
    let known = Known { params: unit.params(), callees: &callees };
    validate::rearranged(before, after, plan, known, lanes).map_err(|error| different(&error, unit))
}

fn different(error: &Difference, unit: Unit<'_>) -> CompileError {
    let message = format!("`{}`: {error}", unit.name);
    CompileError::Internal { stage: "validation of values", message }
}

fn canonical_form(
    func: Function,
    of_program: usize,
    unit: Unit<'_>,
    clock: &Clock,
) -> Result<(Prepared, Branches), CompileError> {
    let (name, callees) = (unit.name, unit.callees());
    let known = Known { params: unit.params(), callees: &callees };
    let loads = if super::shares(unit) { Loads::Once } else { Loads::Each };
    let prepared = divergence::prepare(func, known, loads, of_program, clock)
        .map_err(|error| error.explain(name))?;
    callees
        .check(&prepared.func, &prepared.facts)
        .map_err(|message| CompileError::Invalid { kernel: name.to_owned(), message })?;
    unit.verify(&prepared.func, "canonical control flow")?;
    log::debug!("uniformity of `{name}`:\n{}", prepared.facts.dump(&prepared.func));
    let branches = Branches::new(&prepared.func, prepared.facts.flow());
    Ok((prepared, branches))
}

/// Collects the facts that decisions are based on.
fn facts<'a>(
    prepared: &'a Prepared,
    branches: &'a Branches,
    unit: Unit<'a>,
) -> Result<decide::Facts<'a>, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let profile = options.profile.as_deref();
    profile.map_or(Ok(()), |profile| profile.check(name, branches))?;
    let assignment = options.assignment.as_deref();
    Ok(decide::Facts { name, arch, prepared, branches, profile, assignment })
}

fn decide(facts: decide::Facts<'_>, unit: Unit<'_>) -> Result<Decisions, CompileError> {
    decide::decide(facts, unit.options.divergence, || unsplit(facts.prepared, unit))
}

/// Selects code for the function without splits, for the cost model to look at.
fn unsplit(prepared: &Prepared, unit: Unit<'_>) -> Result<(VCode, BlockIds), CompileError> {
    let Prepared { func, facts, .. } = prepared;
    isel::select(func, facts.flow().graph(), &Plan::default(), unit.target())
        .map_err(|error| error.explain(func, unit.sources))
}

/// If-converts the regions that the plan predicates.
pub(crate) fn predicate(
    vcode: &mut VCode,
    plan: &Plan,
    blocks: &BlockIds,
    unit: Unit<'_>,
) -> Result<Predicated, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let internal = |message: String| CompileError::Internal { stage: "predication", message };
    let region = |region: &PredicatedRegion| if_convert::Region {
        head: blocks.of(region.head),
        end: blocks.of(region.end),
    };
    let regions: Vec<_> = plan.predicated.iter().map(region).collect();
    let before = (options.verify && !regions.is_empty()).then(|| vcode.clone());
    let predicated = if_convert::convert(vcode, &regions, arch)
        .map_err(|error| internal(format!("`{name}`: {error}")))?;
    if !regions.is_empty() {
        log::debug!("VCode of `{name}`, predicated:\n{vcode}");
    }
    if options.verify {
        vcode.validate().map_err(|error| internal(format!("`{name}`: {error}\n{vcode}")))?;
    }
    if let Some(before) = before {
        validate::converted(&before, vcode, arch.word())
            .map_err(|error| different(&error, unit))?;
    }
    Ok(predicated)
}

/// Reports how divergence would be managed in a legal function, and what the alternatives cost.
pub(crate) fn explain(func: Function, unit: Unit<'_>) -> Result<DivergenceReport, CompileError> {
    let (prepared, branches) = prepare(func, unit, &Clock::new())?;
    let facts = facts(&prepared, &branches, unit)?;
    let decisions = decide(facts, unit)?;
    let code = unsplit(&prepared, unit)?;
    Ok(decide::report(facts, &decisions, code, unit.sources))
}
