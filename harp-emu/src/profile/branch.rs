//! Counts of how warps decide at branches.

use std::collections::BTreeMap;

use harp_isa::{Instruction, Op, Opcode, OpcodeFlags, Pred};

use super::Histogram;

/// The most pairs of masks that [`BranchCounts::masks`] lists.
pub const LISTED_BRANCH_MASKS: usize = 64;

/// How warps decided at a branch.
///
/// A branch is a `split`, or an instruction with a guard that may change the pc or the active mask. A `split`
/// without a guard counts as true in all lanes. The lanes *taken* are the active ones whose guard is true.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct BranchCounts {
    /// The instruction.
    #[cfg_attr(feature = "json", serde(serialize_with = "crate::json::opcode"))]
    pub opcode: Opcode,
    /// Its guard.
    #[cfg_attr(feature = "json", serde(skip))]
    pub guard: Option<Pred>,
    /// How often a warp executed it.
    pub executed: u64,
    /// How often all active lanes took it.
    pub unanimous_true: u64,
    /// How often no active lane took it.
    pub unanimous_false: u64,
    /// How often some active lanes took it and some did not.
    pub divergent: u64,
    /// How many lanes were active each time.
    pub active: Histogram,
    /// How many lanes took it each time.
    pub taken: Histogram,
    /// How often each pair of masks occurred, for the first [`LISTED_BRANCH_MASKS`] pairs. The counts are
    /// exact if [`unlisted`](Self::unlisted) is 0; otherwise occurrences on cores that did not list the pair
    /// are missing.
    #[cfg_attr(feature = "json", serde(serialize_with = "super::json::mask_list"))]
    pub masks: BTreeMap<BranchMasks, u64>,
    /// How often a pair of masks occurred that is not listed.
    pub unlisted: u64,
}

/// The lanes that were active at a branch and those that took it; lane 0 in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchMasks {
    /// The active lanes.
    pub active: u64,
    /// Those that took it.
    pub taken: u64,
}

/// Whether the instruction is a branch as counted here.
pub(super) fn is_branch(instruction: Instruction) -> bool {
    let may_steer = instruction.op.opcode().flags().contains(OpcodeFlags::CONTROL);
    matches!(instruction.op, Op::Split {}) || (may_steer && instruction.guard.is_some())
}

impl BranchCounts {
    pub(super) fn new(opcode: Opcode, guard: Option<Pred>) -> BranchCounts {
        BranchCounts {
            opcode,
            guard,
            executed: 0,
            unanimous_true: 0,
            unanimous_false: 0,
            divergent: 0,
            active: Histogram::default(),
            taken: Histogram::default(),
            masks: BTreeMap::new(),
            unlisted: 0,
        }
    }

    /// Counts one execution of the branch.
    pub(super) fn count(&mut self, active: u64, taken: u64) {
        self.executed += 1;
        let decision = match taken {
            _ if taken == active => &mut self.unanimous_true,
            0 => &mut self.unanimous_false,
            _ => &mut self.divergent,
        };
        *decision += 1;
        self.active.add_lanes(active);
        self.taken.add_lanes(taken);
        self.list(BranchMasks { active, taken }, 1);
    }

    pub(super) fn merge(&mut self, other: &BranchCounts) {
        self.executed += other.executed;
        self.unanimous_true += other.unanimous_true;
        self.unanimous_false += other.unanimous_false;
        self.divergent += other.divergent;
        self.active.merge(&other.active);
        self.taken.merge(&other.taken);
        other.masks.iter().for_each(|(&masks, &times)| self.list(masks, times));
        self.unlisted += other.unlisted;
    }

    fn list(&mut self, masks: BranchMasks, times: u64) {
        let has_room = self.masks.len() < LISTED_BRANCH_MASKS;
        match self.masks.get_mut(&masks) {
            Some(count) => *count += times,
            None if has_room => {
                self.masks.insert(masks, times);
            }
            None => self.unlisted += times,
        }
    }
}
