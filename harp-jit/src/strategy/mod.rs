//! How the divergence of branches is to be managed, as users say it.

use serde::{Deserialize, Serialize};

mod assignment;

pub use assignment::Assignment;

/// How branches are handled on which lanes of a warp may disagree: by `split` and `join`, or predicated.
///
/// Only acyclic regions without calls, traps and what else concerns the whole warp can be predicated.
/// All else splits, under every strategy; [`CompileStats`](crate::CompileStats) has the shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergenceStrategy {
    /// `split` before the branch, `join` at its immediate post-dominator (Gupta 2016, section 4.1).
    SplitJoin,
    /// If-conversion (Gupta 2016, section 4.2) wherever it is possible: of regions of up to 64 blocks, in which
    /// nothing depends on which lanes execute it together.
    Predicate,
    /// If-conversion of the branches whose condition depends on the lane's number (Gupta 2016,
    /// algorithms 5 and 6).
    Static,
    /// If-conversion of the branches on which lanes disagreed in the run that
    /// [`CompileOptions::profile`](crate::CompileOptions::profile) is of (Gupta 2016, algorithm 8).
    Profile(ProfileParams),
    /// Whatever costs fewer instructions of a warp, as far as that can be told: from the code of both
    /// alternatives and from how often lanes disagree, by the profile if there is one.
    #[default]
    Adaptive,
}

/// From when on the counts of a profile mean that a branch is unanimous (Gupta 2016, section 4.3.2), in
/// thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileParams {
    /// A lane that takes a branch in a loop more often than this is taken to take it always:
    /// loopHighUnanFrac.
    pub loop_high: u16,
    /// A lane that takes a branch in a loop less often than this is taken to take it never:
    /// loopLowUnanFrac.
    pub loop_low: u16,
    /// A branch at which more warps than this are unanimous is unanimous: unanFrac.
    pub unanimous: u16,
}

impl Default for ProfileParams {
    /// Those of the source: 0.9, 0.1 and 0.9.
    fn default() -> ProfileParams {
        ProfileParams { loop_high: 900, loop_low: 100, unanimous: 900 }
    }
}

/// How a branch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
