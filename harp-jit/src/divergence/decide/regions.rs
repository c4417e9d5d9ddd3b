//! Regions that can be predicated.

use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode};

use crate::analysis::{Level, LevelId, Node, Uniformity};
use crate::divergence::{RegionId, Regions};
use crate::intrinsic::Intrinsic;

/// A region without cycles, of which nothing depends on which lanes execute it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: RegionId,
    /// Ends in a branch; does not belong to `blocks`.
    pub(crate) head: Block,
    /// In topological order.
    pub(crate) blocks: Vec<Block>,
    /// Where all ways lead; none if that is the end of a loop's round, by several edges.
    pub(crate) end: Option<Block>,
    /// Whether split and join suffice where it is not predicated.
    pub(crate) nested: bool,
}

/// The regions that can be predicated, each after those inside of it.
pub(super) fn candidates(func: &Function, facts: &Uniformity, regions: &Regions) -> Vec<Candidate> {
    let found = regions.iter().filter_map(|(id, _)| candidate(func, facts, regions, id));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|candidate| candidate.blocks.len());
    found
}

fn candidate(
    func: &Function,
    facts: &Uniformity,
    regions: &Regions,
    id: RegionId,
) -> Option<Candidate> {
    let region = regions.get(id);
    let flow = facts.flow();
    if region.level == LevelId::DOOMED {
        return None;
    }
    let level = flow.levels().level(region.level);
    if region.nodes.iter().any(|&node| matches!(level.nodes[node], Node::Loop(_))) {
        return None;
    }
    let mut blocks = regions.blocks(flow, id);
    let head = blocks.remove(0);
    // Only values are chosen, which takes no branch however it is managed.
    if blocks.is_empty() {
        return None;
    }
    // Ways to traps are on another level.
    let live = |block: Block| flow.post_dominators().reaches_return(block);
    let all = || std::iter::once(head).chain(blocks.iter().copied());
    let leaves = !all().flat_map(|block| flow.successors(block)).all(live);
    let mut insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    let returns = func.block_successors(head).next().is_none();
    if leaves || returns || !insts.all(|inst| is_predicable(func, inst)) {
        return None;
    }
    let end = (region.end < level.end()).then(|| end_block(level, facts, region.end));
    Some(Candidate { id, head, blocks, end, nested: region.nested })
}

fn end_block(level: &Level, facts: &Uniformity, end: usize) -> Block {
    facts.flow().levels().first_block(level.nodes[end])
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
