//! How the branches of a function are executed by lanes that may disagree.

use std::collections::BTreeMap;
use std::fmt;

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Inst, Value};
use hashbrown::HashMap;

use crate::profile::BranchSite;

/// A divergent branch and the block where its lanes reconverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The `brif`, emitted with a `split` in front of it.
    pub(crate) branch: Inst,
    /// The block that begins with the `join`. None if lanes do not reconverge: all paths end in traps or run
    /// for ever.
    pub(crate) join: Option<Block>,
}

/// A region to be if-converted, entered only through its head and left only to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PredicatedRegion {
    /// The block that ends in the region's branch. All lanes run its other instructions.
    pub(crate) head: Block,
    /// The blocks between head and end, in topological order.
    pub(crate) blocks: Vec<Block>,
    /// The block where all lanes continue. Only edges from this region lead to it.
    pub(crate) end: Block,
}

/// How the branches of a function are executed. Branches without an entry are plain branches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The join of each [`Split`], by its branch.
    pub(crate) splits: BTreeMap<Inst, Option<Block>>,
    pub(crate) joins: EntitySet<Block>,
    /// The regions to predicate; they are disjoint.
    pub(crate) predicated: Vec<PredicatedRegion>,
    /// Conditions that steer lanes.
    pub(crate) steering: Steering,
    /// Calls that the compiler inserted.
    pub(crate) own: Own,
    /// The ids of branches that the function itself has.
    pub(crate) sites: HashMap<Inst, BranchSite>,
    /// For each branch, the branch of the original function that it is a copy of; none if the function was
    /// not rewritten.
    pub(crate) origins: Option<HashMap<Inst, Origin>>,
}

/// Steering conditions, which the function itself does not have: after its control flow was rearranged they
/// decide where lanes go next.
pub(crate) type Steering = EntitySet<Value>;

/// Calls of intrinsics that the compiler inserted when it rearranged control flow: votes among lanes, and
/// undefined values.
pub(crate) type Own = EntitySet<Inst>;

/// The branch that another one is a copy of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) branch: Inst,
    /// [`BranchSite::exact`].
    pub(crate) exact: bool,
}

impl Plan {
    /// The plan for single lanes.
    pub(crate) fn unsplit(own: Own) -> Plan {
        Plan { own, ..Plan::default() }
    }

    /// Whether a `split` precedes this branch.
    pub(crate) fn is_split(&self, branch: Inst) -> bool {
        self.splits.contains_key(&branch)
    }

    /// Whether the lanes of this split never reconverge.
    pub(crate) fn is_unjoined(&self, branch: Inst) -> bool {
        self.splits.get(&branch).is_some_and(Option::is_none)
    }

    /// Whether this block begins with a `join`.
    pub(crate) fn is_join(&self, block: Block) -> bool {
        self.joins.contains(block)
    }

    /// Whether the compiler inserted this call.
    pub(crate) fn is_own(&self, call: Inst) -> bool {
        self.own.contains(call)
    }

    /// The divergent branches with their joins.
    #[cfg(test)]
    pub(crate) fn splits(&self) -> impl ExactSizeIterator<Item = Split> {
        self.splits.iter().map(|(&branch, &join)| Split { branch, join })
    }

    /// The id and site of a branch, if the function itself has it.
    pub(crate) fn branch_site(&self, branch: Inst) -> Option<BranchSite> {
        self.sites.get(&branch).copied()
    }

    /// Records that `branch` is a copy of `origin`.
    pub(crate) fn copied(&mut self, branch: Inst, origin: Origin) {
        self.origins.get_or_insert_default().insert(branch, origin);
    }

    pub(crate) fn add(&mut self, Split { branch, join }: Split) {
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
