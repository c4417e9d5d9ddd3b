//! The report of decisions, for people and tools.

use std::fmt;

use crate::profile::BranchId;
use crate::sharing::ValueReport;
use crate::source::SourcePlace;
use crate::strategy::Technique;

/// How the divergence of a function's branches is managed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DivergenceReport {
    /// The kernel's or function's name.
    pub function: String,
    /// The [`Kernel::branch_fingerprint`](crate::Kernel::branch_fingerprint) that the compiled kernel would
    /// have.
    pub fingerprint: u64,
    /// The blocks of its control-flow graph, in reverse post-order.
    pub blocks: Vec<BlockReport>,
    /// Its branches, in reverse post-order.
    pub branches: Vec<BranchReport>,
    /// The regions in which divergence is managed.
    pub regions: Vec<RegionReport>,
    /// Its values, in the order of the selected code, on machines whose lanes share registers.
    pub values: Vec<ValueReport>,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockReport {
    /// The block's name, as in the legal CLIF.
    pub name: String,
    /// The block's successors; for a branch the true side first.
    pub successors: Vec<String>,
}

/// One branch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BranchReport {
    /// The branch.
    pub id: BranchId,
    /// The source place where it was built.
    pub place: Option<SourcePlace>,
    /// The block that the branch ends, as in the legal CLIF.
    pub block: String,
    /// Why lanes may disagree; none if they agree.
    pub divergent: Option<String>,
    /// How it is executed.
    pub technique: Technique,
    /// The smallest region that contains it, if any: an index of [`DivergenceReport::regions`].
    pub region: Option<usize>,
    /// How warps are expected to decide.
    pub odds: OddsReport,
}

/// A region in which divergence is managed: entered only at its head, left only to its end. Two regions are
/// disjoint, or one contains the other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionReport {
    /// The block that ends in the region's first branch.
    pub head: String,
    /// The blocks between head and end that belong to no smaller region. The others are those of the regions
    /// that have this one as their [`parent`](RegionReport::parent), with their heads.
    pub blocks: Vec<String>,
    /// The number of blocks between head and end, including those of smaller regions.
    pub size: usize,
    /// The target of all edges out of the region; none if that is the end of a loop's iteration, or of the
    /// function.
    pub end: Option<String>,
    /// The smallest enclosing region: an index of [`DivergenceReport::regions`].
    pub parent: Option<usize>,
    /// The divergent branches that belong to this region, but not to a smaller one.
    pub branches: Vec<BranchId>,
    /// Whether split and join suffice if the region is not predicated; if not, it is linearized.
    pub nested: bool,
    /// The chosen technique, for this region or for an enclosing one.
    pub technique: Technique,
    /// The costs of the alternatives; none if the region cannot be predicated.
    pub costs: Option<CostReport>,
}

/// The costs of a region: expected instructions of a warp, per execution of the head.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CostReport {
    /// As branches that split, or linearized; regions inside use the cheaper technique.
    pub branches: f64,
    /// Predicated as a whole.
    pub predicated: f64,
}

/// How warps are expected to decide at a branch: shares of its executions, which add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OddsReport {
    /// All active lanes find the condition true.
    pub all_true: f64,
    /// All active lanes find it false.
    pub all_false: f64,
    /// They disagree.
    pub divergent: f64,
    /// Whether the odds come from a profile, not from an estimate.
    pub counted: bool,
}

impl fmt::Display for DivergenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DivergenceReport { function, branches, regions, .. } = self;
        writeln!(f, "`{function}`: {} branches, {} regions", branches.len(), regions.len())?;
        branches.iter().try_for_each(|branch| write!(f, "{branch}"))?;
        for (number, region) in regions.iter().enumerate() {
            write!(f, "region {number}: {region}")?;
        }
        if !self.values.is_empty() {
            let shared = self.values.iter().filter(|value| value.shared.is_some()).count();
            writeln!(f, "{} values, {shared} of them shared:", self.values.len())?;
        }
        self.values.iter().try_for_each(|value| write!(f, "{value}"))
    }
}

impl fmt::Display for BranchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "branch {} in {}", self.id, self.block)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        match &self.divergent {
            Some(cause) => writeln!(f, ": {}, divergent: {cause}", self.technique.name())?,
            None => writeln!(f, ": {}, uniform", self.technique.name())?,
        }
        let OddsReport { all_true, all_false, divergent, counted } = self.odds;
        let how = if counted { "counted" } else { "guessed" };
        let parts = format!("true {all_true:.2}, false {all_false:.2}, both {divergent:.2}");
        match self.region {
            Some(region) => writeln!(f, "    {parts}, {how}; region {region}"),
            None => writeln!(f, "    {parts}, {how}"),
        }
    }
}

impl fmt::Display for RegionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RegionReport { head, end, technique, size, .. } = self;
        let end = end.as_deref().unwrap_or("the end of the round");
        let inside = self.parent.map(|parent| format!(", inside region {parent}"));
        let inside = inside.unwrap_or_default();
        let otherwise = if self.nested { "split-join" } else { "linear" };
        writeln!(f, "{head} to {end}, {size} blocks between{inside}: {}", technique.name())?;
        match self.costs {
            Some(CostReport { branches, predicated }) => {
                writeln!(f, "    costs: {otherwise} {branches:.1}, predicate {predicated:.1}")
            }
            None => writeln!(f, "    only {otherwise} is possible"),
        }
    }
}
