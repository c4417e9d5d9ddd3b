//! Regions that can be predicated.

use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode};

use crate::analysis::{Level, LevelId, Node, Uniformity};
use crate::divergence::{RegionId, Regions};
use crate::intrinsic::Intrinsic;

/// The largest number of blocks of a region that can be predicated. A warp runs through all of them, so
/// larger regions do not pay; and regions are nested, and each is examined as a whole.
const MAX_BLOCKS: usize = 64;

/// A region without cycles whose instructions do not depend on which lanes execute them together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: RegionId,
    /// A block that ends in a branch; it is not in `blocks`.
    pub(crate) head: Block,
    /// In topological order.
    pub(crate) blocks: Vec<Block>,
    /// The target of all edges out of the region; none if that is the end of a loop's iteration, by several
    /// edges.
    pub(crate) end: Option<Block>,
    /// The edges from the head or the blocks out of a loop whose lanes wait for each other.
    pub(crate) exits: Vec<Exit>,
    /// Whether split and join suffice if the region is not predicated.
    pub(crate) nested: bool,
}

/// An edge out of a loop that runs until all of its lanes have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) from: Block,
    pub(crate) to: Block,
    /// Whether there are several exits, so that it must be recorded which one a lane has taken.
    pub(crate) several: bool,
}

/// The regions that can be predicated, each after those inside it.
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
    if region.nodes.len() > MAX_BLOCKS {
        return None;
    }
    if region.nodes.clone().any(|node| matches!(level.nodes[node], Node::Loop(_))) {
        return None;
    }
    let mut blocks = regions.blocks(flow, id);
    let head = blocks.remove(0);
    // Without blocks only values are chosen, which needs no branch under any technique.
    if blocks.is_empty() {
        return None;
    }
    // Edges to traps belong to another level.
    let live = |block: Block| flow.reaches_return(block);
    let all = || std::iter::once(head).chain(blocks.iter().copied());
    let leaves = !all().flat_map(|block| flow.successors(block)).all(live);
    let mut insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    let returns = func.block_successors(head).next().is_none();
    if leaves || returns || !insts.all(|inst| is_predicable(func, inst)) {
        return None;
    }
    let end = (region.end < level.end()).then(|| end_block(level, facts, region.end));
    let exits = all().flat_map(|from| exits(facts, regions, level, from)).collect();
    Some(Candidate { id, head, blocks, end, exits, nested: region.nested })
}

/// The edges from a block out of the loop that `level` belongs to.
fn exits(facts: &Uniformity, regions: &Regions, level: &Level, from: Block) -> Vec<Exit> {
    let Some(around) = level.around.filter(|&around| regions.is_masked(around)) else {
        return Vec::new();
    };
    let exits = facts.flow().levels().exits(around);
    let out = facts.flow().successors(from).filter(|to| exits.contains(to));
    out.map(|to| Exit { from, to, several: exits.len() > 1 }).collect()
}

fn end_block(level: &Level, facts: &Uniformity, end: usize) -> Block {
    facts.flow().levels().first_block(level.nodes[end])
}

/// Whether lanes that are not in the region may execute an instruction along with those that are, guarded or
/// not.
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
