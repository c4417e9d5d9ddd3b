//! Techniques chosen by somebody else: a search for the best ones, or a user.

use std::collections::BTreeMap;

use super::Technique;
use crate::profile::BranchId;

/// Techniques for branches. A region is managed in the way that is chosen for the first of its
/// [branches](crate::RegionReport::branches) that one is chosen for.
///
/// What is not possible in a region, such as to predicate a loop, is done as
/// [`DivergenceStrategy::SplitJoin`](crate::DivergenceStrategy::SplitJoin) does it. What lies in a
/// predicated region is predicated with it. Branches that do not exist are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assignment {
    techniques: BTreeMap<BranchId, Technique>,
}

impl Assignment {
    /// Nothing chosen.
    pub fn new() -> Assignment {
        Assignment::default()
    }

    /// Chooses a technique for a branch, instead of the one that was chosen before. One of
    /// [`Technique::Branch`] is as [`Technique::SplitJoin`]: lanes may disagree.
    pub fn choose(&mut self, branch: BranchId, technique: Technique) {
        self.techniques.insert(branch, technique);
    }

    /// The technique for a branch.
    pub fn get(&self, branch: BranchId) -> Option<Technique> {
        self.techniques.get(&branch).copied()
    }

    /// All choices, in the order of branches.
    pub fn iter(&self) -> impl Iterator<Item = (BranchId, Technique)> + '_ {
        self.techniques.iter().map(|(&branch, &technique)| (branch, technique))
    }
}

impl FromIterator<(BranchId, Technique)> for Assignment {
    fn from_iter<I: IntoIterator<Item = (BranchId, Technique)>>(choices: I) -> Assignment {
        Assignment { techniques: choices.into_iter().collect() }
    }
}
