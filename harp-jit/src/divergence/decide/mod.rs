//! Decides how regions with divergent branches are managed: by split and join, linearization, or predication.
//!
//! Assumes a legal function in canonical form and facts about it. Regions without a decision are split and
//! joined where that is possible, else linearized.

use cranelift_codegen::ir::{Block, Function, Inst};
use harp_isa::ArchId;
use hashbrown::{HashMap, HashSet};

use super::{Decisions, Method, Prepared, RegionId};
use crate::analysis::Node;
use crate::if_convert::Trial;
use crate::isel::BlockIds;
use crate::profile::{BranchId, BranchProfile, Branches, ProfileError};
use crate::source::SourceMap;
use crate::strategy::{Assignment, DivergenceStrategy, ProfileParams, Technique};
use crate::vcode::VCode;

mod cost;
mod def_use;
mod observed;
mod regions;
mod report;

use cost::{Costs, Model, Priced};
use def_use::{Unanimity, classify};
use regions::{Candidate, candidates};
pub use report::{
    BlockReport, BranchReport, CostReport, DivergenceReport, OddsReport, RegionReport,
};

/// The inputs of decisions.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The name of the function.
    pub(crate) name: &'a str,
    pub(crate) arch: ArchId,
    pub(crate) prepared: &'a Prepared,
    pub(crate) branches: &'a Branches,
    /// A profile of the function, checked to fit it.
    pub(crate) profile: Option<&'a BranchProfile>,
    /// Techniques that the user chose for branches of the function.
    pub(crate) assignment: Option<&'a Assignment>,
}

/// The number of divergent branches, and how many of these are predicated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) divergent: usize,
    pub(crate) predicated: usize,
}

/// Decides for all regions. `select` gives code for the function without splits; only strategies that compare
/// costs call it.
///
/// # Errors
///
/// If the strategy needs a profile and there is none, and the errors of `select`.
pub(crate) fn decide<E: From<ProfileError>>(
    facts: Facts<'_>,
    strategy: DivergenceStrategy,
    select: impl FnOnce() -> Result<(VCode, BlockIds), E>,
) -> Result<Decisions, E> {
    if facts.prepared.regions.is_empty() {
        return Ok(Decisions::default());
    }
    let wanted: Vec<Candidate> = match strategy {
        DivergenceStrategy::SplitJoin => Vec::new(),
        DivergenceStrategy::Predicate => facts.candidates(|_| true),
        DivergenceStrategy::Static => {
            facts.candidates(|block| facts.unanimity(block) == Unanimity::Nonunanimous)
        }
        DivergenceStrategy::Profile(params) => {
            let missing = || ProfileError::Missing { function: facts.name.to_owned() };
            let profile = facts.profile.ok_or_else(missing)?;
            facts.candidates(|block| facts.disagreed(profile, block, params))
        }
        DivergenceStrategy::Adaptive => {
            let candidates = facts.candidates(|_| true);
            if candidates.is_empty() {
                candidates
            } else {
                let (mut vcode, blocks) = select()?;
                let priced = facts.price(candidates, &mut vcode, &blocks);
                let cheaper = priced.into_iter().filter(Priced::is_cheaper_predicated);
                cheaper.map(|priced| priced.candidate).collect()
            }
        }
    };
    let mut decisions = Decisions::default();
    for candidate in wanted {
        decisions.choose(candidate.id, Method::Predicate);
    }
    if let Some(assignment) = facts.assignment {
        facts.assign(assignment, &mut decisions);
    }
    Ok(decisions)
}

/// Reports what was decided and what the alternatives cost. `vcode` is code for the function without splits.
pub(crate) fn report(
    facts: Facts<'_>,
    decisions: &Decisions,
    (mut vcode, blocks): (VCode, BlockIds),
    sources: &SourceMap,
) -> DivergenceReport {
    let Prepared { func, facts: uniformity, regions, .. } = facts.prepared;
    let odds = Model::new(facts, &vcode, &blocks);
    let priced = facts.price(facts.candidates(|_| true), &mut vcode, &blocks);
    let predicated = decisions.predicated(regions);
    let mut branches = Vec::new();
    for block in uniformity.flow().blocks() {
        let Some(inst) = func.layout.last_inst(block) else { continue };
        let Some(id) = facts.branches.id(inst) else { continue };
        let counts = facts.profile.and_then(|profile| profile.branch(id));
        let divergent = uniformity.branch_divergence(block);
        branches.push(BranchReport {
            id,
            place: sources.place(facts.branches.place(id)).cloned(),
            block: block.to_string(),
            divergent: divergent.map(|_| uniformity.explain_branch(func, block)),
            technique: facts.technique(decisions, &predicated, block),
            region: facts.region_of(block).map(RegionId::index),
            odds: odds.odds(block).report(counts.is_some_and(|counts| counts.executed > 0)),
        });
    }
    let costs: HashMap<RegionId, Costs> =
        priced.iter().map(|priced| (priced.candidate.id, priced.costs)).collect();
    let region = |(id, _): (RegionId, _)| {
        facts.region_report(decisions, predicated.contains(&id), id, costs.get(&id).copied())
    };
    DivergenceReport {
        function: facts.name.to_owned(),
        fingerprint: facts.branches.fingerprint(),
        blocks: (uniformity.flow().blocks())
            .map(|block| BlockReport {
                name: block.to_string(),
                successors: func.block_successors(block).map(|to| to.to_string()).collect(),
            })
            .collect(),
        branches,
        regions: regions.iter().map(region).collect(),
        values: Vec::new(),
    }
}

impl Facts<'_> {
    fn func(&self) -> &Function {
        &self.prepared.func
    }

    /// Counts the branches that `decisions` cover.
    pub(crate) fn shares(&self, decisions: &Decisions) -> Shares {
        let mut shares = Shares::default();
        let predicated = decisions.predicated(&self.prepared.regions);
        for block in self.divergent_branches() {
            shares.divergent += 1;
            let technique = self.technique(decisions, &predicated, block);
            shares.predicated += usize::from(technique == Technique::Predicate);
        }
        shares
    }

    fn divergent_branches(&self) -> impl Iterator<Item = Block> + '_ {
        let uniformity = &self.prepared.facts;
        let is_divergent = |&block: &Block| {
            uniformity.branch_divergence(block).is_some() && self.branch(block).is_some()
        };
        uniformity.flow().blocks().filter(is_divergent)
    }

    /// The branch at the end of `block`.
    fn branch(&self, block: Block) -> Option<Inst> {
        let inst = self.func().layout.last_inst(block)?;
        self.branches.id(inst).map(|_| inst)
    }

    /// How the branch at the end of `block` is executed.
    fn technique(
        &self,
        decisions: &Decisions,
        predicated: &HashSet<RegionId>,
        block: Block,
    ) -> Technique {
        let Prepared { facts, regions, .. } = self.prepared;
        match self.region_of(block) {
            Some(id) if predicated.contains(&id) => Technique::Predicate,
            _ if facts.branch_divergence(block).is_none() => Technique::Branch,
            Some(id) if decisions.technique(regions, id) == Method::Linear => Technique::Linear,
            _ => Technique::SplitJoin,
        }
    }

    /// The smallest region that contains `block`.
    fn region_of(&self, block: Block) -> Option<RegionId> {
        let Prepared { facts, regions, .. } = self.prepared;
        let (level, node) = facts.flow().levels().place(block)?;
        regions.innermost(level, node)
    }

    /// The divergent branches that belong to a region, but not to a smaller one.
    fn own_branches(&self, id: RegionId) -> impl Iterator<Item = BranchId> + '_ {
        let Prepared { func, facts, regions, .. } = self.prepared;
        let region = regions.get(id);
        let level = facts.flow().levels().level(region.level);
        let block = |&node: &usize| match level.nodes[node] {
            Node::Block(block) => func.layout.last_inst(block),
            Node::Loop(_) => None,
        };
        region.branches.iter().filter_map(block).filter_map(|inst| self.branches.id(inst))
    }

    /// Applies `assignment` as far as possible.
    fn assign(&self, assignment: &Assignment, decisions: &mut Decisions) {
        let candidates = self.candidates(|_| true).into_iter().map(|found| found.id);
        let candidates: HashSet<RegionId> = candidates.collect();
        for (id, _) in self.prepared.regions.iter() {
            let chosen = self.own_branches(id).find_map(|branch| assignment.get(branch));
            let technique = match chosen {
                Some(Technique::Predicate) if candidates.contains(&id) => Method::Predicate,
                Some(Technique::Linear) => Method::Linear,
                Some(_) => Method::SplitJoin,
                None => continue,
            };
            decisions.choose(id, technique);
        }
    }

    /// The report about a region. `costs` are given if it can be predicated.
    fn region_report(
        &self,
        decisions: &Decisions,
        predicated: bool,
        id: RegionId,
        costs: Option<Costs>,
    ) -> RegionReport {
        let Prepared { facts, regions, .. } = self.prepared;
        let region = regions.get(id);
        let level = facts.flow().levels().level(region.level);
        let block = |node: usize| facts.flow().levels().first_block(level.nodes[node]).to_string();
        let technique = match decisions.technique(regions, id) {
            _ if predicated => Technique::Predicate,
            Method::Linear => Technique::Linear,
            _ => Technique::SplitJoin,
        };
        let parts = regions.parts(region.level, region.nodes.clone(), Some(id));
        let own = parts.into_iter().filter(|&(node, inner)| inner.is_none() && node != region.head);
        let blocks =
            own.flat_map(|(node, _)| facts.flow().levels().blocks(region.level, node..node + 1));
        let blocks = blocks.map(|block| block.to_string()).collect();
        RegionReport {
            head: block(region.head),
            blocks,
            size: level.blocks_before[region.nodes.end]
                - level.blocks_before[region.nodes.start]
                - 1,
            end: (region.end < level.end()).then(|| block(region.end)),
            parent: region.parent.map(RegionId::index),
            branches: self.own_branches(id).collect(),
            nested: region.nested,
            technique,
            costs: costs.map(|Costs { branches, predicated }| CostReport { branches, predicated }),
        }
    }

    /// The regions that can be predicated and own a `wanted` branch; each after those inside it.
    fn candidates(&self, wanted: impl Fn(Block) -> bool) -> Vec<Candidate> {
        let Prepared { func, facts, regions, .. } = self.prepared;
        let mut found = candidates(func, facts, regions);
        found.retain(|candidate| {
            let region = regions.get(candidate.id);
            let levels = facts.flow().levels();
            let blocks = region
                .branches
                .iter()
                .map(|&node| levels.first_block(levels.level(region.level).nodes[node]));
            blocks.into_iter().any(&wanted)
        });
        found
    }

    /// The classification of the branch at the end of `block` by definitions.
    fn unanimity(&self, block: Block) -> Unanimity {
        self.branch(block).map_or(Unanimity::Indeterminate, |inst| {
            classify(self.func(), self.prepared.facts.flow(), inst)
        })
    }

    /// Whether lanes are predicted to disagree at the end of `block`. Branches that were never executed are
    /// taken to be unanimous.
    fn disagreed(&self, profile: &BranchProfile, block: Block, params: ProfileParams) -> bool {
        let id = self.branch(block).and_then(|inst| self.branches.id(inst));
        let counts = id.and_then(|id| profile.branch(id)).filter(|counts| counts.executed > 0);
        let in_loop = self.prepared.facts.flow().is_in_loop(block);
        counts.is_some_and(|counts| !observed::is_unanimous(counts, in_loop, params))
    }

    fn price(
        &self,
        candidates: Vec<Candidate>,
        vcode: &mut VCode,
        blocks: &BlockIds,
    ) -> Vec<Priced> {
        let model = Model::new(*self, vcode, blocks);
        model.price(candidates, &mut Trial::new(vcode, self.arch), blocks)
    }
}

impl Priced {
    fn is_cheaper_predicated(&self) -> bool {
        self.costs.predicated < self.costs.branches
    }
}
