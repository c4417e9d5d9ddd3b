//! The order of blocks in memory.
//!
//! Blocks keep their order, except that a loop's test moves behind the loop: a header that ends in a
//! conditional branch is placed after the last block that jumps back to it. An iteration then takes one jump,
//! the conditional one, instead of two; entering the loop takes one more.
//!
//! A branch whose taken side follows directly costs a jump over a jump. If the opposite of its condition
//! costs the same, [`turn_branches`] exchanges its sides. Which block follows is known once it is known which moves
//! there are between blocks, so that is done after register allocation.

use harp_isa::Opcode;
use hashbrown::HashMap;

use crate::profile::BranchSite;
use crate::regalloc::{Allocated, Step};
use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// All blocks, the entry first.
pub(super) fn order(vcode: &VCode) -> Vec<BlockId> {
    // Headers that move, by the block that they will follow: the last one that jumps back. That block is
    // never a moving header, so it stays in its place.
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

/// Exchanges the sides of branches whose taken side will follow directly, if the condition is a comparison
/// with 0 that has no other use.
pub(crate) fn turn_branches(vcode: &mut VCode, allocated: &Allocated) {
    let mut mentions = vec![0_u32; vcode.num_regs];
    for inst in &vcode.insts {
        inst.for_each_reg(|reg, _| mentions[reg.index()] += 1);
    }
    let passed =
        (0..vcode.blocks.len()).map(|index| passed_by(vcode, allocated, BlockId::new(index)));
    let passed: Vec<Option<BlockId>> = passed.collect();
    // From the last block on: the first following block that does more than jump.
    let mut next = None;
    for id in order(vcode).into_iter().rev() {
        if passed[id.index()].is_none() {
            turn_branch(vcode, id, next, &passed, &mentions);
            next = Some(id);
        }
    }
}

fn turn_branch(
    vcode: &mut VCode,
    id: BlockId,
    next: Option<BlockId>,
    passed: &[Option<BlockId>],
    mentions: &[u32],
) {
    let MInst::CondBr { condition, taken, not_taken, split, site } = *last(vcode, id) else {
        return;
    };
    let end = |block: BlockId| passed[block.index()].unwrap_or(block);
    if next != Some(end(taken)) || next == Some(end(not_taken)) || mentions[condition.index()] != 2
    {
        return;
    }
    let block = &mut vcode.blocks[id.index()];
    let (rest, branch) = vcode.insts[block.insts.clone()].split_at_mut(block.insts.len() - 1);
    let Some(opcode) = rest.iter_mut().rev().find_map(|inst| test_of(inst, condition)) else {
        return;
    };
    *opcode = if *opcode == Opcode::Rtop { Opcode::Iszero } else { Opcode::Rtop };
    let site = site.map(|site| BranchSite { inverted: !site.inverted, ..site });
    branch[0] = MInst::CondBr { condition, taken: not_taken, not_taken: taken, split, site };
    block.succs.reverse();
}

/// The opcode of a comparison with 0 that defines a predicate in all lanes.
fn test_of(inst: &mut MInst, condition: Reg) -> Option<&mut Opcode> {
    match inst {
        MInst::Op { opcode: opcode @ (Opcode::Rtop | Opcode::Iszero), guard: None, operands } => {
            (operands.first() == Some(&MOperand::Def(condition))).then_some(opcode)
        }
        _ => None,
    }
}

/// The target of a block that only jumps.
fn passed_by(vcode: &VCode, allocated: &Allocated, id: BlockId) -> Option<BlockId> {
    let mut steps = allocated.steps(id);
    match (steps.next()?, steps.next()) {
        (Step::Inst(inst), None) => match vcode.insts[inst] {
            MInst::Jump { target, .. } => Some(target),
            _ => None,
        },
        _ => None,
    }
}
