//! Divergence management: rewrites a function so that the machine can run it with lanes that disagree, and
//! plans how each branch is executed.
//!
//! A uniform branch is a plain branch. At a divergent one the machine `split`s: it runs the true side with
//! some lanes and then the false side with the others, each up to the `join` of this split (Gupta 2016,
//! algorithms 1 to 4). That is correct only if the code between is entered through the branch alone, and if
//! lanes cannot come back to the branch before they join. Where that does not hold, the control flow is
//! rearranged until it does:
//!
//! 1. [`shared_headers`]: separates loops that share a header if lanes wait for each other in the outer one
//!    only;
//! 2. [`mod@canonicalize`]: all cycles become natural loops with one back edge;
//! 3. [`Uniformity`]: which branches diverge;
//! 4. [`loads`]: what branches are decided by is loaded once for all lanes, where lanes share registers;
//! 5. [`Regions`]: the smallest region around each divergent branch that is entered in one place;
//! 6. [`waiting_loops`]: joins loops that lanes leave in different rounds, though they wait for each other there;
//! 7. [`calls`]: calls on whose targets lanes disagree, and tail calls that not all lanes make;
//! 8. [`Decisions`]: how each region is managed;
//! 9. [`mod@structurize`]: the function is rewritten.
//!
//! Before all that, while atomic accesses still are such, [`spinning`] adds what belongs to loops that wait for it.
//!
//! The only functions refused are those with [`TooMany`] values that are set in one place and live through
//! others. Assumes a legalized function. [`check()`] proves from the plan alone that every path joins what it
//! split.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Inst};
use hashbrown::{HashMap, HashSet};

use crate::analysis::{Graph, Known, Loads, Uniformity};
use crate::error::CompileError;
use crate::intrinsic::Intrinsic;
use crate::plan::{Origin, Own, Plan, Steering};
use crate::profile::{BranchSite, Branches};
use crate::times::{Clock, Stage};

mod calls;
mod canonicalize;
mod check;
#[cfg(test)]
mod claims;
pub(crate) mod decide;
mod edges;
mod loads;
pub(crate) mod meetings;
#[cfg(test)]
mod random_tests;
mod regions;
pub(crate) mod shared_headers;
pub(crate) mod spinning;
mod structurize;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod validation_tests;
mod waiting_loops;

pub(crate) use canonicalize::canonicalize;
pub(crate) use check::check;
pub(crate) use regions::{RegionId, Regions};
pub(crate) use structurize::structurize;

/// How a region is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    /// Split and join, without rearranging. Only for [nested](regions::Region::nested) regions.
    SplitJoin,
    /// Linearization: its parts one after the other, each behind a guard.
    Linear,
    /// If-conversion, including all regions inside. Only if it contains no loop, call, trap, vote or barrier.
    Predicate,
}

/// The chosen technique for each region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    methods: HashMap<RegionId, Method>,
}

impl Decisions {
    /// Chooses a technique for a region. The default is split and join where that is possible, else
    /// linearization.
    pub(crate) fn choose(&mut self, region: RegionId, technique: Method) {
        self.methods.insert(region, technique);
    }

    /// The regions that are predicated, themselves or as a part of an enclosing region.
    pub(crate) fn predicated(&self, regions: &Regions) -> HashSet<RegionId> {
        let mut found = HashSet::new();
        for id in regions.outside_in() {
            let around = regions.get(id).parent.is_some_and(|around| found.contains(&around));
            if around || self.technique(regions, id) == Method::Predicate {
                found.insert(id);
            }
        }
        found
    }

    /// The technique for a region.
    pub(crate) fn technique(&self, regions: &Regions, id: RegionId) -> Method {
        let nested = regions.get(id).nested;
        let possible = |chosen: &Method| nested || *chosen != Method::SplitJoin;
        let default = if nested { Method::SplitJoin } else { Method::Linear };
        self.methods.get(&id).copied().filter(possible).unwrap_or(default)
    }
}

/// A count that exceeds what can be compiled in acceptable time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    pub(crate) what: &'static str,
    /// The count when compilation was given up.
    pub(crate) given: usize,
    pub(crate) limit: usize,
}

impl TooMany {
    /// The error as the user sees it, for the function with this name.
    pub(crate) fn explain(self, name: &str) -> CompileError {
        let TooMany { what, given, limit } = self;
        CompileError::TooMany { kernel: name.to_owned(), what, given, limit }
    }
}

/// A function in the form in which its regions are decided upon.
pub(crate) struct Prepared {
    /// The function in canonical form.
    pub(crate) func: Function,
    pub(crate) facts: Uniformity,
    pub(crate) regions: Regions,
    pub(crate) steering: Steering,
    pub(crate) own: Own,
}

/// Brings a function to canonical form and analyses it; `known` is what the caller knows about the function, and `loads`
/// whether lanes may share what they load. The first `of_program` instructions are the program's, others only count.
///
/// # Errors
///
/// Those of [`canonicalize()`].
pub(crate) fn prepare(
    mut func: Function,
    known: Known<'_>,
    loads: Loads,
    of_program: usize,
    clock: &Clock,
) -> Result<Prepared, TooMany> {
    clock.begin(Stage::Divergence);
    let mut steering = Steering::new();
    let insts = func.dfg.num_insts();
    let mut graph = canonicalize(&mut func, &mut steering)?;
    loop {
        clock.begin(Stage::Analysis);
        let facts = Uniformity::of(&func, graph, known);
        if loads == Loads::Once && loads::load_once(&mut func, &facts, known) {
            graph = facts.into_graph();
            continue;
        }
        let own = calls_since(&func, of_program);
        let gathering = meetings::gathering(&func, known.callees, &own);
        let regions = Regions::find(&func, &facts, &gathering);
        clock.begin(Stage::Divergence);
        let joined = waiting_loops::join(
            &mut func,
            &facts,
            &regions,
            &gathering,
            known.callees,
            &mut steering,
        );
        if joined || calls::make_convergent(&mut func, &facts, &regions, &mut steering) {
            graph = canonicalize(&mut func, &mut steering)?;
            continue;
        }
        let own = calls_since(&func, insts);
        return Ok(Prepared { func, facts, regions, steering, own });
    }
}

/// The calls of intrinsics among the instructions created after the first `insts`.
fn calls_since(func: &Function, insts: usize) -> Own {
    let made = (insts..func.dfg.num_insts()).map(Inst::new);
    let mut own = Own::new();
    own.extend(made.filter(|&inst| Intrinsic::of_call(func, inst).is_some()));
    own
}

impl Prepared {
    /// Rewrites the function as decided, and plans how its branches are executed. Branches keep their ids
    /// from `branches`. Also returns the graph of the new function.
    ///
    /// # Errors
    ///
    /// Those of [`mod@structurize`].
    pub(crate) fn manage(
        self,
        decisions: &Decisions,
        branches: &Branches,
    ) -> Result<(Function, Graph, Plan), TooMany> {
        let (func, graph, mut plan) = if self.regions.is_empty() {
            let plan = Plan { steering: self.steering, own: self.own, ..Plan::default() };
            let mut func = self.func;
            let graph = match spinning::forget_ways(&mut func) {
                true => Graph::compute(&func),
                false => self.facts.into_graph(),
            };
            (func, graph, plan)
        } else {
            structurize(&self, decisions)?
        };
        let insts = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
        for inst in insts {
            let origin = match &plan.origins {
                Some(origins) => origins.get(&inst).copied(),
                None => Some(Origin { branch: inst, exact: true }),
            };
            let Some(Origin { branch, exact }) = origin else { continue };
            if let Some(id) = branches.id(branch) {
                plan.sites.insert(inst, BranchSite { id, inverted: false, exact });
            }
        }
        Ok((func, graph, plan))
    }
}
