//! The order in which blocks lie in memory.
//!
//! Blocks keep their order, except that a loop's test moves behind the loop: a header that ends in a
//! conditional branch is laid out after the last block that jumps back to it. A round then takes one
//! jump, the conditional one, instead of two; entering the loop takes one more.

use hashbrown::HashMap;

use crate::vcode::{BlockId, MInst, VCode};

/// All blocks, the entry first.
pub(super) fn order(vcode: &VCode) -> Vec<BlockId> {
    // Headers that move, by the block that they come to lie behind: the last one that jumps back. No
    // header is one of those, so these stay in their places.
    let mut moved_behind: HashMap<BlockId, Vec<BlockId>> = HashMap::new();
    let mut moves = vec![false; vcode.blocks.len()];
    for (header, block) in vcode.blocks() {
        if !matches!(last(vcode, header), MInst::CondBr { .. }) {
            continue;
        }
        let jumps_back =
            |&&latch: &&BlockId| latch > header && matches!(last(vcode, latch), MInst::Jump { .. });
        if let Some(&latch) = block.preds.iter().filter(jumps_back).max() {
            moved_behind.entry(latch).or_default().push(header);
            moves[header.index()] = true;
        }
    }
    let mut order = Vec::with_capacity(vcode.blocks.len());
    for (id, _) in vcode.blocks().filter(|(id, _)| !moves[id.index()]) {
        order.push(id);
        // The innermost loop's header comes first.
        order.extend(moved_behind.remove(&id).into_iter().flatten().rev());
    }
    order
}

fn last(vcode: &VCode, block: BlockId) -> &MInst {
    &vcode.insts[vcode.blocks[block.index()].insts.end - 1]
}
