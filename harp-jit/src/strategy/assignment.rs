//! Techniques chosen for single branches, by a search for the best ones or by a user.

use std::collections::BTreeMap;

use super::Technique;
use crate::profile::BranchId;

/// Techniques for branches. A region uses the technique of the first of its
/// [branches](crate::RegionReport::branches) that has one.
///
/// If a technique is not possible for a region, such as to predicate a loop, the region is managed as under
/// [`DivergenceStrategy::SplitJoin`](crate::DivergenceStrategy::SplitJoin). Regions inside a predicated
/// region are predicated with it. Branches that do not exist are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assignment {
    techniques: BTreeMap<BranchId, Technique>,
}

impl Assignment {
    /// An empty assignment.
    pub fn new() -> Assignment {
        Assignment::default()
    }

    /// Chooses a technique for a branch, replacing an earlier choice. [`Technique::Branch`] means
    /// [`Technique::SplitJoin`], because lanes may disagree.
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
