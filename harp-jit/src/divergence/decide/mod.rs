//! Decides how branches are executed: as branches, by split and join where lanes may disagree, or
//! predicated.
//!
//! Assumes a legal function and facts about it. The result says nothing about branches that are left
//! to split and join.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function};
use harp_isa::ArchId;

use crate::analysis::Uniformity;
use crate::divergence::predicate::Trial;
use crate::divergence::profile::{BranchProfile, Branches, ProfileError};
use crate::isel::BlockIds;
use crate::source::SourceMap;
use crate::vcode::VCode;

mod cost;
mod def_use;
mod observed;
mod regions;
mod report;
mod strategy;

use cost::{Model, Priced};
use def_use::{Unanimity, classify};
pub(crate) use regions::Region;
pub use report::{BranchReport, DivergenceReport, OddsReport, RegionReport, Technique};
pub use strategy::{DivergenceStrategy, ProfileParams};

/// Which regions are predicated. They have no blocks in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    predicated: Vec<Region>,
    /// The blocks whose branches are in these regions: heads and members.
    inside: EntitySet<Block>,
}

/// What decisions are made from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The name of the function.
    pub(crate) name: &'a str,
    pub(crate) arch: ArchId,
    pub(crate) func: &'a Function,
    pub(crate) uniformity: &'a Uniformity,
    pub(crate) branches: &'a Branches,
    /// A profile of the function; it has been checked.
    pub(crate) profile: Option<&'a BranchProfile>,
}

/// Decides for all branches. `select` gives code for the function without splits, for which it is asked
/// only by strategies that compare costs.
///
/// # Errors
///
/// If the strategy needs a profile that is not there, and those of `select`.
pub(crate) fn decide<E: From<ProfileError>>(
    facts: Facts<'_>,
    strategy: DivergenceStrategy,
    select: impl FnOnce() -> Result<(VCode, BlockIds), E>,
) -> Result<Decisions, E> {
    let wanted = match strategy {
        DivergenceStrategy::SplitJoin => Vec::new(),
        DivergenceStrategy::Predicate => facts.divergent_regions(|_| true),
        DivergenceStrategy::Static => {
            facts.divergent_regions(|block| facts.unanimity(block) == Unanimity::Nonunanimous)
        }
        DivergenceStrategy::Profile(params) => {
            let missing = || ProfileError::Missing { function: facts.name.to_owned() };
            let profile = facts.profile.ok_or_else(missing)?;
            facts.divergent_regions(|block| facts.disagreed(profile, block, params))
        }
        DivergenceStrategy::Adaptive => {
            let regions = facts.regions(|_| true);
            if regions.is_empty() {
                return Ok(Decisions::default());
            }
            let (mut vcode, blocks) = select()?;
            let priced = facts.price(regions, &mut vcode, &blocks);
            let cheaper = priced.into_iter().filter(Priced::is_cheaper_predicated);
            cheaper.map(|priced| priced.region).collect()
        }
    };
    Ok(Decisions::predicate(wanted))
}

/// Says what was decided and what the alternatives cost. `vcode` is code for the function without
/// splits.
pub(crate) fn report(
    facts: Facts<'_>,
    decisions: &Decisions,
    (mut vcode, blocks): (VCode, BlockIds),
    sources: &SourceMap,
) -> DivergenceReport {
    let Facts { func, uniformity, .. } = facts;
    let model = Model::new(
        func,
        uniformity,
        facts.arch,
        (facts.branches, facts.profile),
        (&vcode, &blocks),
    );
    let mut trial = Trial::new(&mut vcode, facts.arch);
    let priced = model.price(facts.regions(|_| true), &mut trial, &blocks);
    let mut branches = Vec::new();
    for block in uniformity.flow().blocks() {
        let Some(inst) = func.layout.last_inst(block) else { continue };
        let Some(id) = facts.branches.id(func, inst) else { continue };
        let divergent = uniformity.branch_divergence(block);
        let technique = match divergent {
            _ if decisions.predicates(block) => Technique::Predicate,
            Some(_) => Technique::SplitJoin,
            None => Technique::Branch,
        };
        let around = priced.iter().find(|priced| priced.region.holds_branch(block));
        let odds = model.odds(block);
        let counts = facts.profile.and_then(|profile| profile.branch(id));
        branches.push(BranchReport {
            id,
            place: facts.branches.place(id).and_then(|place| sources.place(place)).cloned(),
            block: block.to_string(),
            divergent: divergent.map(|_| uniformity.explain_branch(func, block)),
            technique,
            region: around.map(Priced::report),
            odds: OddsReport {
                all_true: odds.all_true,
                all_false: odds.all_false,
                divergent: odds.divergent,
                counted: counts.is_some_and(|counts| counts.executed > 0),
            },
        });
    }
    DivergenceReport { function: facts.name.to_owned(), branches }
}

impl Facts<'_> {
    /// The regions around branches that can be predicated: each once, and after those inside of it.
    fn regions(&self, wanted: impl Fn(Block) -> bool) -> Vec<Region> {
        let flow = self.uniformity.flow();
        let is_branch = |&block: &Block| flow.successors(block).count() > 1 && wanted(block);
        let found = flow.blocks().filter(is_branch).filter_map(|at| Region::around(flow, at));
        let mut regions: Vec<_> =
            found.filter(|region| region.obstacle(self.func).is_none()).collect();
        // A region inside of another has fewer blocks, and begins later.
        regions.sort_by_key(|region| {
            (region.blocks.len(), std::cmp::Reverse(flow.position(region.head)))
        });
        regions.dedup();
        regions
    }

    fn divergent_regions(&self, wanted: impl Fn(Block) -> bool) -> Vec<Region> {
        self.regions(|block| self.uniformity.branch_divergence(block).is_some() && wanted(block))
    }

    /// What definitions tell about the branch at the end of `block`.
    fn unanimity(&self, block: Block) -> Unanimity {
        let inst = self.func.layout.last_inst(block);
        inst.map_or(Unanimity::Indeterminate, |inst| {
            classify(self.func, self.uniformity.flow(), inst)
        })
    }

    /// Whether lanes are predicted to disagree at the end of `block`. Of what was never executed nothing
    /// is known, and it is taken for unanimous.
    fn disagreed(&self, profile: &BranchProfile, block: Block, params: ProfileParams) -> bool {
        let inst = self.func.layout.last_inst(block);
        let id = inst.and_then(|inst| self.branches.id(self.func, inst));
        let counts = id.and_then(|id| profile.branch(id)).filter(|counts| counts.executed > 0);
        let in_loop = self.uniformity.flow().is_in_loop(block);
        counts.is_some_and(|counts| !observed::is_unanimous(counts, in_loop, params))
    }

    fn price(&self, regions: Vec<Region>, vcode: &mut VCode, blocks: &BlockIds) -> Vec<Priced> {
        let profile = (self.branches, self.profile);
        let model = Model::new(self.func, self.uniformity, self.arch, profile, (vcode, blocks));
        model.price(regions, &mut Trial::new(vcode, self.arch), blocks)
    }
}

impl Priced {
    fn is_cheaper_predicated(&self) -> bool {
        self.costs.predicated < self.costs.branches
    }

    fn report(&self) -> RegionReport {
        let Region { head, blocks, end } = &self.region;
        RegionReport {
            head: head.to_string(),
            blocks: blocks.iter().map(Block::to_string).collect(),
            end: end.to_string(),
            branches: self.costs.branches,
            predicated: self.costs.predicated,
        }
    }
}

impl Decisions {
    /// To predicate those of `regions` that lie in no other.
    fn predicate(mut regions: Vec<Region>) -> Decisions {
        regions.sort_by_key(|region| std::cmp::Reverse(region.blocks.len()));
        let mut decisions = Decisions::default();
        for region in regions {
            if !decisions.inside.contains(region.head) {
                decisions.inside.insert(region.head);
                decisions.inside.extend(region.blocks.iter().copied());
                decisions.predicated.push(region);
            }
        }
        decisions
    }

    /// Whether the branch at the end of `block` is predicated.
    pub(crate) fn predicates(&self, block: Block) -> bool {
        self.inside.contains(block)
    }

    /// The regions that are predicated.
    pub(crate) fn into_predicated(self) -> Vec<Region> {
        self.predicated
    }
}
