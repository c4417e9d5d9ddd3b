//! The order in which blocks lie in memory.
//!
//! Blocks keep their order, except that a loop's test moves behind the loop: a header that ends in a
//! conditional branch is laid out after the last block that jumps back to it. A round then takes one
//! jump, the conditional one, instead of two; entering the loop takes one more.

use crate::vcode::{BlockId, MInst, VCode};

/// All blocks, the entry first.
pub(super) fn order(vcode: &VCode) -> Vec<BlockId> {
    let mut order: Vec<BlockId> = vcode.blocks().map(|(id, _)| id).collect();
    for (header, block) in vcode.blocks() {
        if !matches!(last(vcode, header), MInst::CondBr { .. }) {
            continue;
        }
        let jumps_back =
            |&&latch: &&BlockId| latch > header && matches!(last(vcode, latch), MInst::Jump { .. });
        let place = |id: BlockId| order.iter().position(|&other| other == id);
        let latches = block.preds.iter().filter(jumps_back);
        if let Some(to) = latches.filter_map(|&latch| place(latch)).max()
            && let Some(from) = place(header)
            && from < to
        {
            order[from..=to].rotate_left(1);
        }
    }
    order
}

fn last(vcode: &VCode, block: BlockId) -> &MInst {
    &vcode.insts[vcode.blocks[block.index()].insts.end - 1]
}
