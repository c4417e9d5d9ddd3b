//! The user's choice of how divergence is managed.

use serde::{Deserialize, Serialize};

mod assignment;

pub use assignment::Assignment;

/// How divergent branches are managed: with `split` and `join`, or by predication.
///
/// Only acyclic regions without calls, traps and operations of the whole warp can be predicated. All others
/// split, under every strategy; [`CompileStats`](crate::CompileStats) has the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergenceStrategy {
    /// `split` before the branch, `join` at its immediate post-dominator (Gupta 2016, section 4.1).
    SplitJoin,
    /// If-conversion (Gupta 2016, section 4.2) wherever it is possible: of regions of up to 64 blocks whose
    /// instructions do not depend on which lanes execute them together.
    Predicate,
    /// If-conversion of the branches whose condition depends on the lane's number (Gupta 2016,
    /// algorithms 5 and 6).
    Static,
    /// If-conversion of the branches on which lanes disagreed in the run that
    /// [`CompileOptions::profile`](crate::CompileOptions::profile) describes (Gupta 2016, algorithm 8).
    Profile(ProfileParams),
    /// The technique with the fewest expected instructions of a warp, estimated from the code of both
    /// alternatives and from how often lanes disagree, by the profile if there is one.
    #[default]
    Adaptive,
}

/// Thresholds by which a profile's counts mean that a branch is unanimous (Gupta 2016, section 4.3.2), in
/// thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileParams {
    /// A lane that takes a branch in a loop more often than this is assumed to take it always:
    /// loopHighUnanFrac.
    pub loop_high: u16,
    /// A lane that takes a branch in a loop less often than this is assumed to never take it:
    /// loopLowUnanFrac.
    pub loop_low: u16,
    /// A branch at which more warps than this share are unanimous counts as unanimous: unanFrac.
    pub unanimous: u16,
}

impl Default for ProfileParams {
    /// The values of the thesis: 0.9, 0.1 and 0.9.
    fn default() -> ProfileParams {
        ProfileParams { loop_high: 900, loop_low: 100, unanimous: 900 }
    }
}

/// How a branch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Technique {
    /// A plain branch: lanes agree.
    Branch,
    /// `split` and `join`.
    SplitJoin,
    /// Linearization: the branch sets where lanes go next, and guards in front of later blocks let them in.
    Linear,
    /// Predication: the branch is removed, and both sides are executed under predicates.
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
