//! What work-groups mean to code.

use cranelift_codegen::ir::Function;
use serde::{Deserialize, Serialize};

use crate::intrinsic::Intrinsic;
use crate::vcode::{MInst, VCode};

/// What the work-groups of a launch mean to code, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Grouping {
    /// Nothing: it does the same whichever work-items share a warp.
    #[default]
    Indifferent,
    /// It asks other lanes, or for its own number. The lanes of a warp are of one group, where there are groups.
    Lanes,
    /// It needs them.
    Groups,
}

impl Grouping {
    /// What they mean to a function as it was built, and to its code.
    pub(crate) fn of(source: &Function, vcode: &VCode) -> Grouping {
        if vcode.insts.iter().any(MInst::uses_groups) {
            return Grouping::Groups;
        }
        let mut insts = source.layout.blocks().flat_map(|block| source.layout.block_insts(block));
        let sees_lanes = |inst| Intrinsic::of_call(source, inst).is_some_and(Intrinsic::sees_lanes);
        if insts.any(sees_lanes) { Grouping::Lanes } else { Grouping::Indifferent }
    }
}
