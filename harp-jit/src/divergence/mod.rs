//! Manages the divergence of control: rewrites a function so that the machine can run it with lanes that
//! disagree, and plans how each branch is executed.
//!
//! A uniform branch is a plain branch. At a divergent one the machine `split`s: it runs the true side
//! with some lanes and then the false side with the others, each up to the `join` of this split (Gupta
//! 2016, algorithms 1 to 4). That is right only if the code between is entered through the branch alone,
//! and if lanes cannot come back to the branch before they join. Where that is not so, the code is
//! rearranged until it is:
//!
//! 1. [`shared_headers`]: two loops of the program do not share a header if lanes wait for each other in the
//!    outer one only;
//! 2. [`mod@canonicalize`]: all cycles become natural loops with one back edge;
//! 3. [`Uniformity`]: which branches diverge;
//! 4. [`calls`]: calls on whose targets lanes disagree, and tail calls that not all lanes make;
//! 5. [`Regions`]: the smallest region around each divergent branch that is entered in one place;
//! 6. [`Decisions`]: how each region is managed;
//! 7. [`mod@structurize`]: the function is written anew.
//!
//! Nothing is refused but what comes to [`TooMany`] values that are set in one place and kept in others. The
//! function must be legalized. [`check()`] proves, without the plan's reasons, that
//! every path joins what it split.

use std::collections::BTreeMap;
use std::fmt;

use cranelift_codegen::entity::{EntityRef, EntitySet};
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use hashbrown::{HashMap, HashSet};

use crate::analysis::{Known, Uniformity};
use crate::error::CompileError;
use crate::intrinsic::Intrinsic;
use crate::times::{Clock, Stage};
use profile::{BranchSite, Branches};

mod calls;
mod canonicalize;
mod check;
#[cfg(test)]
mod claims;
pub(crate) mod decide;
mod edges;
pub(crate) mod predicate;
pub(crate) mod profile;
#[cfg(test)]
mod random_tests;
mod regions;
pub(crate) mod shared_headers;
mod structurize;
#[cfg(test)]
mod tests;
pub(crate) mod validate;

pub(crate) use canonicalize::canonicalize;
pub(crate) use check::check;
pub(crate) use regions::{RegionId, Regions};
pub(crate) use structurize::structurize;

/// A divergent branch and the block where its lanes come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The `brif`, emitted with a `split` in front of it.
    pub(crate) branch: Inst,
    /// The block that begins with the `join`. None if no lane comes back: all ways end in traps or
    /// run for ever.
    pub(crate) join: Option<Block>,
}

/// A region to be if-converted, entered through its head alone and left to its end alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PredicatedRegion {
    /// The block whose branch begins it. What the block holds besides is run by all lanes.
    pub(crate) head: Block,
    /// What lies between head and end, in topological order.
    pub(crate) blocks: Vec<Block>,
    /// Where all lanes go on. Only this region leads here.
    pub(crate) end: Block,
}

/// How the branches of a function are executed. What is not in it is a plain branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The join of each [`Split`], by its branch.
    splits: BTreeMap<Inst, Option<Block>>,
    joins: EntitySet<Block>,
    /// Apart from each other.
    pub(crate) predicated: Vec<PredicatedRegion>,
    /// Conditions that say where lanes are bound for.
    pub(crate) steering: Steering,
    /// What does not stand for anything in the program.
    own: Own,
    /// The branches that are the function's own.
    sites: HashMap<Inst, BranchSite>,
    /// The branches of the function as it was that these are copies of; none if it is as it was.
    origins: Option<HashMap<Inst, Origin>>,
}

/// Conditions that are not the function's own: they send lanes where they are bound for, after its control
/// flow was rearranged.
pub(crate) type Steering = EntitySet<Value>;

/// Calls of intrinsics that are not the program's: votes among lanes, and values that nobody looks at, put in where
/// control flow was rearranged.
pub(crate) type Own = EntitySet<Inst>;

/// What a branch is a copy of.
#[derive(Clone, Copy, Debug)]
struct Origin {
    branch: Inst,
    /// [`BranchSite::exact`].
    exact: bool,
}

impl Plan {
    /// For lanes that are alone.
    pub(crate) fn unsplit(own: Own) -> Plan {
        Plan { own, ..Plan::default() }
    }

    /// Whether a `split` belongs in front of this branch.
    pub(crate) fn is_split(&self, branch: Inst) -> bool {
        self.splits.contains_key(&branch)
    }

    /// Whether the lanes that this branch parts are waited for nowhere.
    fn is_unjoined(&self, branch: Inst) -> bool {
        self.splits.get(&branch).is_some_and(Option::is_none)
    }

    /// Whether this block begins with a `join`.
    pub(crate) fn is_join(&self, block: Block) -> bool {
        self.joins.contains(block)
    }

    /// Whether this call is none of the program's.
    fn is_own(&self, call: Inst) -> bool {
        self.own.contains(call)
    }

    /// The divergent branches with their joins.
    #[cfg(test)]
    pub(crate) fn splits(&self) -> impl ExactSizeIterator<Item = Split> {
        self.splits.iter().map(|(&branch, &join)| Split { branch, join })
    }

    /// What a branch is, if it is one of the function's own.
    pub(crate) fn branch_site(&self, branch: Inst) -> Option<BranchSite> {
        self.sites.get(&branch).copied()
    }

    /// Notes that `branch` is a copy of `origin`.
    fn copied(&mut self, branch: Inst, origin: Origin) {
        self.origins.get_or_insert_default().insert(branch, origin);
    }

    fn add(&mut self, Split { branch, join }: Split) {
        self.joins.extend(join);
        self.splits.insert(branch, join);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (branch, join) in &self.splits {
            match join {
                Some(join) => writeln!(f, "{branch}: split, join in {join}")?,
                None => writeln!(f, "{branch}: split, no join")?,
            }
        }
        for PredicatedRegion { head, end, .. } in &self.predicated {
            writeln!(f, "{head} to {end}: predicated")?;
        }
        Ok(())
    }
}

/// How a region is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Technique {
    /// Split and join, as it stands. Only for [nested](regions::Region::nested) regions.
    SplitJoin,
    /// Its parts one after the other, each behind a guard.
    Linear,
    /// If-conversion, with all regions in it. Only where nothing in it is a loop, a call, a trap, a
    /// vote or a barrier.
    Predicate,
}

/// A technique for each region.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    techniques: HashMap<RegionId, Technique>,
}

impl Decisions {
    /// Chooses a technique for a region. For regions without a choice it is split and join, where that
    /// is possible, else linearization.
    pub(crate) fn choose(&mut self, region: RegionId, technique: Technique) {
        self.techniques.insert(region, technique);
    }

    /// Which regions are predicated, themselves or as a part of one around them.
    pub(crate) fn predicated(&self, regions: &Regions) -> HashSet<RegionId> {
        let mut found = HashSet::new();
        for id in regions.outside_in() {
            let around = regions.get(id).parent.is_some_and(|around| found.contains(&around));
            if around || self.technique(regions, id) == Technique::Predicate {
                found.insert(id);
            }
        }
        found
    }

    /// The technique for a region.
    pub(crate) fn technique(&self, regions: &Regions, id: RegionId) -> Technique {
        let nested = regions.get(id).nested;
        let possible = |chosen: &Technique| nested || *chosen != Technique::SplitJoin;
        let default = if nested { Technique::SplitJoin } else { Technique::Linear };
        self.techniques.get(&id).copied().filter(possible).unwrap_or(default)
    }
}

/// More of something than is compiled in acceptable time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany {
    pub(crate) what: &'static str,
    /// How many were counted until it was given up.
    pub(crate) given: usize,
    pub(crate) limit: usize,
}

impl TooMany {
    /// The same as the user sees it, of the function with this name.
    pub(crate) fn explain(self, name: &str) -> CompileError {
        let TooMany { what, given, limit } = self;
        CompileError::TooMany { kernel: name.to_owned(), what, given, limit }
    }
}

/// A function before its regions are decided upon.
pub(crate) struct Prepared {
    /// In canonical form.
    pub(crate) func: Function,
    pub(crate) facts: Uniformity,
    pub(crate) regions: Regions,
    pub(crate) steering: Steering,
    pub(crate) own: Own,
}

/// Brings a function, of which `known` is known, to the form in which regions are decided upon.
///
/// # Errors
///
/// Those of [`canonicalize()`].
pub(crate) fn prepare(
    mut func: Function,
    known: Known<'_>,
    clock: &Clock,
) -> Result<Prepared, TooMany> {
    clock.begin(Stage::Divergence);
    let mut steering = Steering::new();
    let insts = func.dfg.num_insts();
    canonicalize(&mut func, &mut steering)?;
    loop {
        clock.begin(Stage::Analysis);
        let facts = Uniformity::compute(&func, known);
        let regions = Regions::find(&func, &facts);
        clock.begin(Stage::Divergence);
        if calls::make_convergent(&mut func, &facts, &regions, &mut steering) {
            canonicalize(&mut func, &mut steering)?;
            continue;
        }
        let own = calls_since(&func, insts);
        return Ok(Prepared { func, facts, regions, steering, own });
    }
}

/// The calls of intrinsics among the instructions that were made after the first `insts`.
fn calls_since(func: &Function, insts: usize) -> Own {
    let made = (insts..func.dfg.num_insts()).map(Inst::new);
    let mut own = Own::new();
    own.extend(made.filter(|&inst| Intrinsic::of_call(func, inst).is_some()));
    own
}

impl Prepared {
    /// The function with its divergence managed as decided, and how its branches are executed.
    /// Branches keep the names that `branches` has for them.
    ///
    /// # Errors
    ///
    /// Those of [`mod@structurize`].
    pub(crate) fn manage(
        self,
        decisions: &Decisions,
        branches: &Branches,
    ) -> Result<(Function, Plan), TooMany> {
        let (func, mut plan) = if self.regions.is_empty() {
            (self.func, Plan { steering: self.steering, own: self.own, ..Plan::default() })
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
        Ok((func, plan))
    }
}
