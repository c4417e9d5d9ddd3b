//! What was decided, and why, for people and tools.

use std::fmt;

use crate::profile::BranchId;
use crate::source::SourcePlace;
use crate::strategy::Technique;

/// How the divergence of a function's branches is managed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DivergenceReport {
    /// The kernel's or function's name.
    pub function: String,
    /// [`Kernel::branch_fingerprint`](crate::Kernel::branch_fingerprint) of what would be compiled.
    pub fingerprint: u64,
    /// The blocks of its control-flow graph, in reverse post-order.
    pub blocks: Vec<BlockReport>,
    /// Its branches, in reverse post-order.
    pub branches: Vec<BranchReport>,
    /// The regions in which divergence is managed.
    pub regions: Vec<RegionReport>,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockReport {
    /// Its name, as in the legal CLIF.
    pub name: String,
    /// Where it leads; of a branch first where it leads if the condition is true.
    pub successors: Vec<String>,
}

/// One branch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BranchReport {
    /// The branch.
    pub id: BranchId,
    /// Where it was built.
    pub place: Option<SourcePlace>,
    /// The block that it ends, as in the legal CLIF.
    pub block: String,
    /// Why lanes may disagree; none if they do not.
    pub divergent: Option<String>,
    /// How it is executed.
    pub technique: Technique,
    /// The smallest region around it, if there is one: an index of [`DivergenceReport::regions`].
    pub region: Option<usize>,
    /// How warps are expected to decide.
    pub odds: OddsReport,
}

/// A region in which divergence is managed: entered at its head alone, left to its end alone. Either
/// of two regions lies in the other, or they are apart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionReport {
    /// The block whose branch it begins with.
    pub head: String,
    /// The blocks between head and end that lie in no smaller region. The others are those of the regions that
    /// have this one as their [`parent`](RegionReport::parent), with their heads.
    pub blocks: Vec<String>,
    /// How many blocks there are between head and end, those of smaller regions included.
    pub size: usize,
    /// Where all ways lead; none if that is the end of a loop's round, or of the function.
    pub end: Option<String>,
    /// The smallest region around it: an index of [`DivergenceReport::regions`].
    pub parent: Option<usize>,
    /// The divergent branches that belong to no smaller region.
    pub branches: Vec<BranchId>,
    /// Whether split and join suffice where it is not predicated; if not it is linearized.
    pub nested: bool,
    /// What was decided, for it or for a region around it.
    pub technique: Technique,
    /// What the alternatives cost; none if it cannot be predicated.
    pub costs: Option<CostReport>,
}

/// What a region costs: expected instructions of a warp, each time that it comes to the head.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CostReport {
    /// As branches that split, or linearized; regions inside in the cheaper way.
    pub branches: f64,
    /// Predicated as a whole.
    pub predicated: f64,
}

/// How warps are expected to decide at a branch: parts of its executions, 1 together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OddsReport {
    /// All active lanes find the condition true.
    pub all_true: f64,
    /// All active lanes find it false.
    pub all_false: f64,
    /// They disagree.
    pub divergent: f64,
    /// Whether this was counted in a profile, not guessed.
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
        Ok(())
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
