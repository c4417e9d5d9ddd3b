//! Names of branches that do not depend on how they are executed.

use std::fmt;

use cranelift_codegen::ir::{Function, Inst, InstructionData, SourceLoc};
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use crate::analysis::Flow;
use crate::vcode::{MInst, VCode};

/// A branch of a function: the place where it was built, and which of the branches of that place it
/// is, in reverse post-order.
///
/// The same source, compiled with the same options for the same machine, has the same branches,
/// whatever the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BranchId {
    /// The number of the place in the source; `u32::MAX` if it has none.
    pub place: u32,
    /// Which branch of the place, from 0.
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

/// Where a branch is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchSite {
    /// The branch.
    pub id: BranchId,
    /// Whether the machine's condition is the opposite of the branch's: lanes that take the jump found
    /// the branch's condition false.
    pub inverted: bool,
}

/// The branches of a function, in reverse post-order.
///
/// While code is generated a branch is known by its source location: each gets one of its own, a
/// *stamp*, which copies of the instruction keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branches {
    ids: Vec<BranchId>,
    stamps: HashMap<SourceLoc, (BranchId, SourceLoc)>,
}

impl Branches {
    /// Names and stamps the branches of `func`.
    pub(crate) fn stamp(func: &mut Function, flow: &Flow) -> Branches {
        let branches: Vec<Inst> = flow
            .blocks()
            .filter_map(|block| func.layout.last_inst(block))
            .filter(|&inst| matches!(func.dfg.insts[inst], InstructionData::Brif { .. }))
            .collect();
        let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        let used: HashSet<u32> = insts.map(|inst| func.srcloc(inst).bits()).collect();
        // The largest number stands for no place.
        let mut free = (0..u32::MAX).rev().filter(|number| !used.contains(number));
        let mut ordinals: HashMap<u32, u32> = HashMap::new();
        let mut result = Branches::default();
        for inst in branches {
            let place = func.srcloc(inst);
            let ordinal = ordinals.entry(place.bits()).or_default();
            let id = BranchId { place: place.bits(), ordinal: *ordinal };
            *ordinal += 1;
            let stamp = SourceLoc::new(free.next().expect("a function has fewer instructions"));
            result.ids.push(id);
            result.stamps.insert(stamp, (id, place));
            func.set_srcloc(inst, stamp);
        }
        result
    }

    /// All branches of the function.
    pub(crate) fn ids(&self) -> &[BranchId] {
        &self.ids
    }

    /// The branch `inst`, or the one that it is a copy of.
    pub(crate) fn id(&self, func: &Function, inst: Inst) -> Option<BranchId> {
        self.stamps.get(&func.srcloc(inst)).map(|&(id, _)| id)
    }

    /// Where a branch was built.
    pub(crate) fn place(&self, id: BranchId) -> Option<SourceLoc> {
        self.ids.contains(&id).then(|| SourceLoc::new(id.place))
    }

    /// Gives the instructions of `func` the places that they had.
    pub(crate) fn restore(&self, func: &mut Function) {
        for block in func.layout.blocks().collect::<Vec<_>>() {
            for inst in func.layout.block_insts(block).collect::<Vec<_>>() {
                if let Some(&(_, place)) = self.stamps.get(&func.srcloc(inst)) {
                    func.set_srcloc(inst, place);
                }
            }
        }
    }

    /// Gives the instructions of `vcode` the places that they had, and notes which are branches.
    pub(crate) fn restore_in(&self, vcode: &mut VCode) {
        for (index, place) in vcode.srclocs.iter_mut().enumerate() {
            let Some(&(id, original)) = self.stamps.get(place) else { continue };
            *place = original;
            if matches!(vcode.insts[index], MInst::CondBr { .. }) {
                vcode.branches.insert(index, BranchSite { id, inverted: false });
            }
        }
    }

    /// A number that tells the branches of one function from those of another: FNV-1a (Fowler, Noll,
    /// Vo) over the ids.
    pub(crate) fn fingerprint(&self) -> u64 {
        let numbers = self.ids.iter().flat_map(|id| [id.place, id.ordinal]);
        numbers.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}
