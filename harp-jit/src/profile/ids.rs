//! Ids of branches, which do not depend on how the branches are executed.

use std::fmt;

use cranelift_codegen::ir::{Function, Inst, InstructionData, SourceLoc};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::analysis::Flow;

/// Identifies a branch of a function: by the place where it was built, and its ordinal among the branches of
/// that place, in reverse post-order.
///
/// The same source, compiled with the same options for the same machine, has the same branch ids under every
/// strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BranchId {
    /// The number of the place in the source; `u32::MAX` if it has none.
    pub place: u32,
    /// The branch's ordinal at its place, from 0.
    pub ordinal: u32,
}

impl fmt::Display for BranchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            u32::MAX => write!(f, "?.{}", self.ordinal),
            place => write!(f, "{place}.{}", self.ordinal),
        }
    }
}

/// A place in the code where a branch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchSite {
    /// The branch.
    pub id: BranchId,
    /// Whether the machine's condition is the negation of the branch's: lanes that jump found the branch's
    /// condition false.
    pub inverted: bool,
    /// Whether exactly the lanes that execute the branch execute this. At the top of a loop that lanes leave
    /// one by one, lanes that have left may execute it, too.
    pub exact: bool,
}

/// The branches of a function, in reverse post-order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branches {
    all: Vec<(BranchId, Inst)>,
    by_inst: HashMap<Inst, BranchId>,
}

impl Branches {
    /// Assigns ids to the branches of `func`.
    pub(crate) fn new(func: &Function, flow: &Flow) -> Branches {
        let mut ordinals: HashMap<u32, u32> = HashMap::new();
        let mut result = Branches::default();
        for inst in flow.blocks().filter_map(|block| func.layout.last_inst(block)) {
            if let InstructionData::Brif { .. } = func.dfg.insts[inst] {
                let place = func.srcloc(inst).bits();
                let ordinal = ordinals.entry(place).or_default();
                let id = BranchId { place, ordinal: *ordinal };
                *ordinal += 1;
                result.all.push((id, inst));
                result.by_inst.insert(inst, id);
            }
        }
        result
    }

    /// All branches of the function.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (BranchId, Inst)> {
        self.all.iter().copied()
    }

    /// The ids of all branches.
    pub(crate) fn ids(&self) -> impl Iterator<Item = BranchId> {
        self.iter().map(|(id, _)| id)
    }

    /// The id of a branch.
    pub(crate) fn id(&self, inst: Inst) -> Option<BranchId> {
        self.by_inst.get(&inst).copied()
    }

    /// The source location where a branch was built.
    pub(crate) fn place(&self, id: BranchId) -> SourceLoc {
        SourceLoc::new(id.place)
    }

    /// A number that distinguishes the branches of one function from those of another: FNV-1a (Fowler, Noll,
    /// Vo) over the ids.
    pub(crate) fn fingerprint(&self) -> u64 {
        let numbers = self.ids().flat_map(|id| [id.place, id.ordinal]);
        numbers.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}
