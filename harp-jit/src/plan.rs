//! How the branches of a function are executed by lanes that may disagree.

use std::collections::BTreeMap;
use std::fmt;

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Inst, Value};
use hashbrown::HashMap;

use crate::profile::BranchSite;

/// A divergent branch and the block where its lanes come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The `brif`, emitted with a `split` in front of it.
    pub(crate) branch: Inst,
    /// The block that begins with the `join`. None if no lane comes back: all ways end in traps or
    /// run for ever.
    pub(crate) join: Option<Block>,
}

/// A region to be if-converted, entered through its head alone and left to its end alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PredicatedRegion {
    /// The block whose branch begins it. What the block holds besides is run by all lanes.
    pub(crate) head: Block,
    /// What lies between head and end, in topological order.
    pub(crate) blocks: Vec<Block>,
    /// Where all lanes go on. Only this region leads here.
    pub(crate) end: Block,
}

/// How the branches of a function are executed. What is not in it is a plain branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The join of each [`Split`], by its branch.
    pub(crate) splits: BTreeMap<Inst, Option<Block>>,
    pub(crate) joins: EntitySet<Block>,
    /// Apart from each other.
    pub(crate) predicated: Vec<PredicatedRegion>,
    /// Conditions that say where lanes are bound for.
    pub(crate) steering: Steering,
    /// What does not stand for anything in the program.
    pub(crate) own: Own,
    /// The branches that are the function's own.
    pub(crate) sites: HashMap<Inst, BranchSite>,
    /// The branches of the function as it was that these are copies of; none if it is as it was.
    pub(crate) origins: Option<HashMap<Inst, Origin>>,
}

/// Conditions that are not the function's own: they send lanes where they are bound for, after its control
/// flow was rearranged.
pub(crate) type Steering = EntitySet<Value>;

/// Calls of intrinsics that are not the program's: votes among lanes, and values that nobody looks at, put in where
/// control flow was rearranged.
pub(crate) type Own = EntitySet<Inst>;

/// What a branch is a copy of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) branch: Inst,
    /// [`BranchSite::exact`].
    pub(crate) exact: bool,
}

impl Plan {
    /// For lanes that are alone.
    pub(crate) fn unsplit(own: Own) -> Plan {
        Plan { own, ..Plan::default() }
    }

    /// Whether a `split` belongs in front of this branch.
    pub(crate) fn is_split(&self, branch: Inst) -> bool {
        self.splits.contains_key(&branch)
    }

    /// Whether the lanes that this branch parts are waited for nowhere.
    pub(crate) fn is_unjoined(&self, branch: Inst) -> bool {
        self.splits.get(&branch).is_some_and(Option::is_none)
    }

    /// Whether this block begins with a `join`.
    pub(crate) fn is_join(&self, block: Block) -> bool {
        self.joins.contains(block)
    }

    /// Whether this call is none of the program's.
    pub(crate) fn is_own(&self, call: Inst) -> bool {
        self.own.contains(call)
    }

    /// The divergent branches with their joins.
    #[cfg(test)]
    pub(crate) fn splits(&self) -> impl ExactSizeIterator<Item = Split> {
        self.splits.iter().map(|(&branch, &join)| Split { branch, join })
    }

    /// What a branch is, if it is one of the function's own.
    pub(crate) fn branch_site(&self, branch: Inst) -> Option<BranchSite> {
        self.sites.get(&branch).copied()
    }

    /// Notes that `branch` is a copy of `origin`.
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
