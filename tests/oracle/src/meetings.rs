//! Places where all work-items meet: barriers, and sums over lanes.
//!
//! A barrier does nothing for work-items that do not communicate. But all of a group must come to the same barriers in
//! the same order, each in the same round of all loops around it (OpenCL C 3.0, section 6.15.8). Here all
//! work-items of the grid must: so every division into groups is right. The same goes for sums over the lanes of a warp.

use std::collections::{BTreeSet, HashMap};

use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};

use super::OracleError;

/// A place that a work-item came to, and how often it had come to the head of each cycle around it.
pub(super) type Meeting = (Inst, Vec<u64>);

/// The places of a kernel where work-items meet, and those that one of them comes to.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    /// By place the heads of the cycles around it, from the outermost on; none if a cycle has several entries.
    heads: HashMap<Inst, Option<Vec<Block>>>,
    visits: HashMap<Block, u64>,
    seen: Vec<Meeting>,
}

impl Meetings {
    pub(super) fn of(func: &Function) -> Meetings {
        let heads = places(func).into_iter().map(|(inst, block)| (inst, heads(func, block)));
        Meetings { heads: heads.collect(), ..Meetings::default() }
    }

    /// The work-item enters a block.
    pub(super) fn enter(&mut self, block: Block) {
        if !self.heads.is_empty() {
            *self.visits.entry(block).or_default() += 1;
        }
    }

    /// The work-item comes to a place; false if no rounds can be counted there.
    pub(super) fn meet(&mut self, inst: Inst) -> bool {
        let Some(Some(heads)) = self.heads.get(&inst) else { return false };
        let rounds = heads.iter().map(|head| self.visits[head]).collect();
        self.seen.push((inst, rounds));
        true
    }

    /// What the work-item came to. The next one begins.
    pub(super) fn take(&mut self) -> Vec<Meeting> {
        self.visits.clear();
        std::mem::take(&mut self.seen)
    }
}

/// Those places where work-items can meet: in cycles with one entry, and where one of them returns from. Work-items that
/// trap for sure do not wait for others.
pub(super) fn possible(func: &Function) -> BTreeSet<Inst> {
    let is_possible = |block| heads(func, block).is_some() && returns(func, block);
    let all = places(func).into_iter();
    all.filter(|&(_, block)| is_possible(block)).map(|(inst, _)| inst).collect()
}

/// Those places where all of these work-items meet, also at those before them.
pub(super) fn common(func: &Function, items: &[Vec<Meeting>]) -> BTreeSet<Inst> {
    let mut kept = BTreeSet::new();
    for (inst, _) in places(func) {
        kept.insert(inst);
        if !agree(items, |other| kept.contains(&other)) {
            kept.remove(&inst);
        }
    }
    kept
}

/// Removes all other barriers. There must be no sums.
pub(super) fn keep(func: &mut Function, kept: &BTreeSet<Inst>) {
    for (inst, _) in places(func) {
        if !kept.contains(&inst) {
            func.layout.remove_inst(inst);
        }
    }
}

/// Fails if work-items do not all meet.
pub(super) fn check(items: &[Vec<Meeting>]) -> Result<(), OracleError> {
    if agree(items, |_| true) { Ok(()) } else { Err(OracleError::Apart) }
}

/// Whether all work-items come to the same of these places.
fn agree(items: &[Vec<Meeting>], of: impl Fn(Inst) -> bool) -> bool {
    let meetings = |item: usize| items[item].iter().filter(|(inst, _)| of(*inst));
    (1..items.len()).all(|item| meetings(item).eq(meetings(0)))
}

/// All places, and their blocks.
pub(super) fn places(func: &Function) -> Vec<(Inst, Block)> {
    let insts = |block| func.layout.block_insts(block).map(move |inst| (inst, block));
    let all = func.layout.blocks().flat_map(insts);
    all.filter(|&(inst, _)| is_meeting(func, inst)).collect()
}

/// Whether an instruction is a call of the barrier, or of the sum over lanes.
pub(super) fn is_meeting(func: &Function, inst: Inst) -> bool {
    let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return false };
    let name = func.dfg.ext_funcs[func_ref].name.display(None).to_string();
    ["%harp_barrier", "%harp_reduce_iadd"].contains(&name.as_str())
}

/// Whether a return can be reached from a block.
fn returns(func: &Function, block: Block) -> bool {
    let cfg = ControlFlowGraph::with_function(func);
    let all = func.layout.blocks().collect();
    let mut behind = reached(block, &all, |block| cfg.succ_iter(block));
    behind.insert(block);
    let is_return = |inst: Inst| func.dfg.insts[inst].opcode().is_return();
    behind.into_iter().any(|block| func.layout.last_inst(block).is_some_and(is_return))
}

/// The heads of the cycles around a block, from the outermost on: a strongly connected part, then one of what is left
/// without its head, and so on. None if one has several entries.
fn heads(func: &Function, block: Block) -> Option<Vec<Block>> {
    let cfg = ControlFlowGraph::with_function(func);
    let next = |block| cfg.succ_iter(block);
    let before = |block| cfg.pred_iter(block).map(|pred| pred.block);
    let all: BTreeSet<Block> = func.layout.blocks().collect();
    let entry = func.layout.entry_block()?;
    let mut live = reached(entry, &all, next);
    live.insert(entry);
    let (mut nodes, mut heads) = (live.clone(), Vec::new());
    loop {
        let behind = reached(block, &nodes, before);
        let part: BTreeSet<Block> =
            reached(block, &nodes, next).intersection(&behind).copied().collect();
        if !part.contains(&block) {
            return Some(heads);
        }
        let from_outside = |pred| live.contains(&pred) && !part.contains(&pred);
        let mut entries = part.iter().filter(|&&node| before(node).any(from_outside));
        let (Some(&head), None) = (entries.next(), entries.next()) else { return None };
        heads.push(head);
        if head == block {
            return Some(heads);
        }
        nodes = part;
        nodes.remove(&head);
    }
}

/// The blocks among `nodes` to which at least one step leads from a block.
fn reached<I: Iterator<Item = Block>>(
    from: Block,
    nodes: &BTreeSet<Block>,
    next: impl Fn(Block) -> I,
) -> BTreeSet<Block> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(block) = open.pop() {
        open.extend(next(block).filter(|to| nodes.contains(to) && found.insert(*to)));
    }
    found
}
