//! Regions that can be predicated.
//!
//! A region has one entry, its head, and one exit, its end. For a branch it is the smallest such region:
//! where one of the blocks that a branch leads to is entered by another way, too, the head moves up to
//! the block that dominates both. `if (a || b) x else y` with a divergent `b` is a region that `a` heads.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode};

use crate::analysis::Flow;
use crate::intrinsic::Intrinsic;

/// A region without cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Ends in a branch; does not belong to `blocks`.
    pub(crate) head: Block,
    /// In topological order.
    pub(crate) blocks: Vec<Block>,
    /// Where all ways from the head lead; does not belong to `blocks`.
    pub(crate) end: Block,
}

impl Region {
    /// The smallest region without cycles that the branch at the end of `block` is in, as its head or
    /// further down. None if all have cycles, or if not all ways lead to one end.
    pub(crate) fn around(flow: &Flow, block: Block) -> Option<Region> {
        let mut head = block;
        loop {
            let end = flow.post_dominators().immediate(head)?;
            let mut blocks = flow.region(head);
            let mut inside = EntitySet::new();
            inside.extend(blocks.iter().copied().chain([head]));
            let mut entries = blocks.iter().flat_map(|&block| flow.predecessors(block));
            let Some(foreign) = entries.find(|&from| !inside.contains(from)) else {
                blocks.sort_by_key(|&block| flow.position(block));
                let later = |from: Block, to| flow.position(from) < flow.position(to);
                let acyclic = blocks
                    .iter()
                    .all(|&from| flow.successors(from).all(|to| to == end || later(from, to)));
                let is_apart = blocks.iter().all(|&inner| inner != head && inner != end);
                return (acyclic && is_apart).then_some(Region { head, blocks, end });
            };
            let above = flow.common_dominator(head, foreign);
            if above == head {
                return None;
            }
            head = above;
        }
    }

    /// What in the region is lost on lanes that do not belong there; none if it can be predicated.
    pub(crate) fn obstacle(&self, func: &Function) -> Option<Inst> {
        let mut insts = self.blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        insts.find(|&inst| !is_predicable(func, inst))
    }

    /// Whether the branch at the end of `block` belongs to the region.
    pub(crate) fn holds_branch(&self, block: Block) -> bool {
        self.head == block || self.blocks.contains(&block)
    }
}

/// Whether lanes may execute an instruction together with others that do not belong there, under a
/// guard or without.
fn is_predicable(func: &Function, inst: Inst) -> bool {
    if let Some(intrinsic) = Intrinsic::of_call(func, inst) {
        return intrinsic.is_private();
    }
    let opcode = func.dfg.insts[inst].opcode();
    match func.dfg.insts[inst] {
        InstructionData::Jump { .. } | InstructionData::Brif { .. } => true,
        _ if opcode.is_call() || opcode.is_terminator() => false,
        _ => !matches!(opcode, Opcode::Trapz | Opcode::Trapnz),
    }
}
