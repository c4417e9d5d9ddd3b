//! What was decided, and why, for people and tools.

use std::fmt;

use serde::Serialize;

use crate::divergence::profile::BranchId;
use crate::source::SourcePlace;

/// How the divergence of a function's branches is managed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DivergenceReport {
    /// The kernel's or function's name.
    pub function: String,
    /// Its branches, in reverse post-order.
    pub branches: Vec<BranchReport>,
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
    /// The smallest region around it that can be predicated, if there is one.
    pub region: Option<RegionReport>,
    /// How warps are expected to decide.
    pub odds: OddsReport,
}

/// How a branch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Technique {
    /// Lanes agree: a plain branch.
    Branch,
    /// `split` and `join`.
    SplitJoin,
    /// Linearized: it says where lanes are bound for, and blocks behind it let in those that are.
    Linear,
    /// It is no more: both sides are executed, under predicates.
    Predicate,
}

/// A region that can be predicated, and what it costs: expected instructions of a warp, each time that it
/// comes to the head.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegionReport {
    /// The block whose branch it begins with.
    pub head: String,
    /// The blocks between head and end.
    pub blocks: Vec<String>,
    /// Where all ways lead; none if that is the end of a loop's round.
    pub end: Option<String>,
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

impl Technique {
    /// The name, as in `split-join`.
    pub fn name(self) -> &'static str {
        match self {
            Technique::Branch => "branch",
            Technique::SplitJoin => "split-join",
            Technique::Linear => "linear",
            Technique::Predicate => "predicate",
        }
    }
}

impl fmt::Display for DivergenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "`{}`, {} branches", self.function, self.branches.len())?;
        self.branches.iter().try_for_each(|branch| write!(f, "{branch}"))
    }
}

impl fmt::Display for BranchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.id, self.block)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        match &self.divergent {
            Some(cause) => writeln!(f, ": {}, divergent: {cause}", self.technique.name())?,
            None => writeln!(f, ": {}, uniform", self.technique.name())?,
        }
        let OddsReport { all_true, all_false, divergent, counted } = self.odds;
        let how = if counted { "counted" } else { "guessed" };
        writeln!(f, "    true {all_true:.2}, false {all_false:.2}, both {divergent:.2}, {how}")?;
        match &self.region {
            Some(RegionReport { head, blocks, end, branches, predicated }) => {
                let end = end.as_deref().unwrap_or("the end of the round");
                let count = blocks.len();
                writeln!(
                    f,
                    "    {head} to {end}, {count} blocks: {branches:.1} as branches, \
                     {predicated:.1} predicated"
                )
            }
            None => writeln!(f, "    no region around it can be predicated"),
        }
    }
}
