//! The loops that wait, and where what they wait for is written.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::HashSet;

use super::super::edges::{Edge, edges_to};
use super::super::handed_on::HandedOn;
use super::super::meetings::gathers;
use super::accesses::{Part, is_fence, may_wait, parts, read_by, written_by};
use super::{Ways, has_zero, is_never};
use crate::analysis::{Callees, Graph, edges, reachable};

/// A loop that waits.
struct Spin {
    header: Block,
    blocks: EntitySet<Block>,
    /// The parts of the addresses that it reads.
    watched: HashSet<Part>,
}

/// What comes behind a loop: up to where work-items gather, and no way back.
#[derive(Default)]
struct Behind {
    /// The blocks in post-order of a depth-first search.
    blocks: Vec<Block>,
    seen: EntitySet<Block>,
}

pub(super) struct Search<'a> {
    func: &'a Function,
    graph: &'a Graph,
    /// The number of each block in reverse post-order.
    order: SecondaryMap<Block, usize>,
    callees: &'a dyn Callees,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        func: &'a Function,
        graph: &'a Graph,
        callees: &'a dyn Callees,
    ) -> Search<'a> {
        let mut order = SecondaryMap::with_capacity(func.dfg.num_blocks());
        for (number, &block) in graph.dominators.cfg_postorder().iter().rev().enumerate() {
            order[block] = number;
        }
        Search { func, graph, order, callees }
    }

    /// The ways back that are missing.
    pub(super) fn all_ways(&self) -> Vec<Ways> {
        let loops = &self.graph.loops;
        let mut may = EntitySet::new();
        for &block in self.graph.dominators.cfg_postorder() {
            if self.func.layout.block_insts(block).any(|inst| may_wait(self.func, inst)) {
                let innermost = loops.innermost_loop(block);
                may.extend(std::iter::successors(innermost, |&id| loops.loop_parent(id)));
            }
        }
        loops.loops().filter(|&id| may.contains(id)).filter_map(|id| self.ways_of(id)).collect()
    }

    /// The ways back to a loop's header, if some are missing.
    fn ways_of(&self, id: Loop) -> Option<Ways> {
        let spin = self.spin(id)?;
        let behind = self.behind(&spin);
        let same = |address| parts(self.func, address).any(|part| spin.watched.contains(&part));
        let any = |_| true;
        let mut places = if self.all_write(&spin, &behind, &same) {
            self.last_writes(&behind, &same)
        } else {
            let mut places = self.last_writes(&behind, &any);
            places.extend(self.where_others_come(&spin, &behind, &same));
            if places.is_empty() {
                places = self.where_others_come(&spin, &behind, &any);
            }
            places
        };
        self.keep_last(&mut places, &spin);
        if places.is_empty() { None } else { self.ways(&spin, places) }
    }

    /// Drops places from which others are reached.
    fn keep_last(&self, places: &mut Vec<Inst>, spin: &Spin) {
        let home = |inst: &Inst| self.func.layout.inst_block(*inst);
        let mut seen = EntitySet::new();
        places.retain(|inst| home(inst).is_some_and(|block| seen.insert(block)));
        let blocks: Vec<Block> = places.iter().filter_map(home).collect();
        places.retain(|inst| {
            let mut behind = Behind::default();
            let next = home(inst).into_iter().flat_map(|block| self.onwards(block)).collect();
            self.walk(next, &spin.blocks, &mut behind);
            !blocks.iter().any(|&block| behind.seen.contains(block))
        });
    }

    /// The ways back from these places. None if some value cannot be handed on.
    fn ways(&self, spin: &Spin, places: Vec<Inst>) -> Option<Ways> {
        let Search { func, graph: Graph { cfg, dominators, .. }, .. } = *self;
        let header = spin.header;
        let dominates = |above, below| dominators.block_dominates(above, below);
        let from = places.iter().filter_map(|&inst| func.layout.inst_block(inst));
        let from: Vec<Block> = from.collect();
        let above = std::iter::successors(dominators.idom(header), |&it| dominators.idom(it));
        let before: Vec<Block> =
            above.take_while(|&it| !from.iter().all(|&from| dominates(it, from))).collect();
        let top = before.last().copied();
        let before: HashSet<Block> = before.into_iter().collect();
        // Behind the first of them, they are passed as before.
        let next = |block| {
            let ends = before.contains(&block);
            cfg.succ_iter(block).filter(move |_| !ends)
        };
        let behind = reachable(std::iter::once(header), None, next);
        let to_header = edges_to(func, cfg, header).into_iter();
        let (back, entering): (Vec<Edge>, Vec<Edge>) =
            to_header.partition(|edge| dominates(header, edge.from));
        let is_plain = before.is_empty();
        let lacks_values = |block: &Block| match before.contains(block) {
            true => Some(*block) != top,
            false => entering.iter().any(|edge| edge.from == *block),
        };
        if !is_plain && behind.iter().any(lacks_values) {
            return None;
        }
        let handed_on = HandedOn::find(func, &before, header, behind.into_iter(), dominates)?;
        Some(Ways { header, places, handed_on, back, entering, is_plain })
    }

    /// The loop, if it waits and has no way back from behind yet.
    fn spin(&self, id: Loop) -> Option<Spin> {
        let Graph { cfg, dominators, loops } = self.graph;
        let header = loops.loop_header(id);
        let has_way = cfg.pred_iter(header).any(|pred| match self.func.dfg.insts[pred.inst] {
            InstructionData::Brif { arg, .. } => is_never(self.func, arg),
            _ => false,
        });
        let mut blocks = EntitySet::new();
        let inside = dominators.cfg_postorder().iter().copied();
        blocks.extend(inside.filter(|&block| loops.is_in_loop(block, id)));
        let gathers = self.insts(&blocks).any(|inst| gathers(self.func, inst, self.callees));
        let types = self.func.dfg.block_param_types(header);
        if has_way || gathers || types.into_iter().any(|ty| !has_zero(ty)) {
            return None;
        }
        let watched = self.watched(header, &blocks);
        (!watched.is_empty()).then_some(Spin { header, blocks, watched })
    }

    fn insts(&self, blocks: &EntitySet<Block>) -> impl Iterator<Item = Inst> + use<'_> {
        let blocks: Vec<Block> = blocks.iter().collect();
        blocks.into_iter().flat_map(|block| self.func.layout.block_insts(block))
    }

    /// The parts of the addresses from which a loop reads what decides whether it goes on.
    fn watched(&self, header: Block, blocks: &EntitySet<Block>) -> HashSet<Part> {
        let Search { func, graph: Graph { cfg, .. }, .. } = *self;
        let ordered = self.insts(blocks).any(|inst| is_fence(func, inst));
        let leaves = |block: &Block| cfg.succ_iter(*block).any(|to| !blocks.contains(to));
        let mut todo: Vec<Value> =
            blocks.iter().filter(leaves).filter_map(|block| self.condition(block)).collect();
        let (mut seen, mut found) = (HashSet::new(), HashSet::new());
        while let Some(value) = todo.pop() {
            if !seen.insert(value) {
                continue;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _) => {
                    let home = func.layout.inst_block(inst);
                    if !home.is_some_and(|home| blocks.contains(home)) {
                        continue;
                    }
                    let varies = |value| {
                        let home = self.home(value);
                        home.is_some_and(|home| blocks.contains(home)) && !is_constant(func, value)
                    };
                    let address = read_by(func, inst, ordered, varies);
                    found.extend(address.into_iter().flat_map(|it| parts(func, it)));
                    todo.extend(func.dfg.inst_args(inst));
                }
                ValueDef::Param(block, number) if blocks.contains(block) => {
                    let back = cfg.pred_iter(block).filter(|pred| blocks.contains(pred.block));
                    for pred in back {
                        for edge in edges(&func.dfg, pred.inst) {
                            let pool = &func.dfg.value_lists;
                            if edge.block(pool) == block {
                                todo.extend(
                                    edge.args(pool).nth(number).and_then(|arg| arg.as_value()),
                                );
                            }
                        }
                    }
                    if block != header {
                        todo.extend(self.conditions_before(block, blocks));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// What the branches are decided by that choose the edge by which a block is entered.
    fn conditions_before(&self, block: Block, blocks: &EntitySet<Block>) -> Vec<Value> {
        let Graph { cfg, dominators, .. } = self.graph;
        let above = dominators.idom(block);
        let preds =
            |block| cfg.pred_iter(block).map(|pred| pred.block).filter(|&b| blocks.contains(b));
        let between = reachable(preds(block), above, preds);
        between.into_iter().chain(above).filter_map(|block| self.condition(block)).collect()
    }

    /// What the branch at the end of a block is decided by.
    fn condition(&self, block: Block) -> Option<Value> {
        let last = self.func.layout.last_inst(block)?;
        let branches = self.func.dfg.insts[last].opcode() != Opcode::Jump;
        self.func.dfg.inst_args(last).first().copied().filter(|_| branches)
    }

    /// The block of a value's definition.
    fn home(&self, value: Value) -> Option<Block> {
        match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        }
    }

    /// The exits of a loop in the same round of the loops around it.
    fn exits(&self, spin: &Spin) -> Vec<Block> {
        spin.blocks.iter().flat_map(|block| self.onwards(block)).collect()
    }

    fn behind(&self, spin: &Spin) -> Behind {
        let mut behind = Behind::default();
        self.walk(self.exits(spin), &spin.blocks, &mut behind);
        behind
    }

    /// Walks on from these blocks, past those that are closed.
    fn walk(&self, from: Vec<Block>, closed: &EntitySet<Block>, behind: &mut Behind) {
        let mut todo: Vec<(Block, bool)> = from.into_iter().map(|block| (block, false)).collect();
        while let Some((block, done)) = todo.pop() {
            if done {
                behind.blocks.push(block);
            } else if !closed.contains(block) && behind.seen.insert(block) {
                todo.push((block, true));
                todo.extend(self.onwards(block).map(|next| (next, false)));
            }
        }
    }

    /// The blocks behind one in the same round of the loops around it, if work-items do not gather in it.
    fn onwards(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        let mut insts = self.func.layout.block_insts(block);
        let gathers = insts.any(|inst| gathers(self.func, inst, self.callees));
        let next = self.graph.cfg.succ_iter(block).filter(move |_| !gathers);
        next.filter(move |&next| self.order[next] > self.order[block])
    }

    /// The instruction behind the last write in a block, before work-items gather in it.
    fn behind_write(&self, block: Block, is_one: &dyn Fn(Value) -> bool) -> Option<Inst> {
        let func = self.func;
        let insts = func.layout.block_insts(block);
        let insts = insts.take_while(|&inst| !gathers(func, inst, self.callees));
        let writes = insts.filter(|&inst| written_by(func, inst).is_some_and(is_one));
        func.layout.next_inst(writes.last()?)
    }

    /// The places behind writes from which no other ones are reached.
    fn last_writes(&self, behind: &Behind, is_one: &dyn Fn(Value) -> bool) -> Vec<Inst> {
        let mut leads = EntitySet::new();
        let mut found = Vec::new();
        for &block in &behind.blocks {
            let leads_on = self.onwards(block).any(|next| leads.contains(next));
            let place = self.behind_write(block, is_one);
            if leads_on || place.is_some() {
                leads.insert(block);
            }
            found.extend(place.filter(|_| !leads_on));
        }
        found
    }

    /// Whether all ways from the loop, but those that trap, pass such a write.
    fn all_write(&self, spin: &Spin, behind: &Behind, is_one: &dyn Fn(Value) -> bool) -> bool {
        let Search { func, graph: Graph { cfg, .. }, .. } = *self;
        let mut closed = spin.blocks.clone();
        let writes = |block: &&Block| self.behind_write(**block, is_one).is_some();
        closed.extend(behind.blocks.iter().filter(writes).copied());
        let mut missing = Behind::default();
        self.walk(self.exits(spin), &closed, &mut missing);
        let traps = |block| {
            let last = func.layout.last_inst(block);
            last.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::Trap)
        };
        // Those that return, gather or begin another round end without one.
        let goes_on = |block| {
            let inside = cfg.succ_iter(block).filter(|&next| spin.blocks.contains(next));
            let onwards = self.onwards(block).filter(|&next| !spin.blocks.contains(next));
            let count = inside.count() + onwards.count();
            count > 0 && count == cfg.succ_iter(block).count()
        };
        spin.blocks.iter().all(goes_on)
            && missing.blocks.iter().all(|&block| traps(block) || goes_on(block))
    }

    /// Where ways on which others write meet the ways behind the loop.
    fn where_others_come(
        &self,
        spin: &Spin,
        behind: &Behind,
        is_one: &dyn Fn(Value) -> bool,
    ) -> Vec<Inst> {
        let Search { func, graph: Graph { cfg, dominators, .. }, .. } = *self;
        let preds = |block| cfg.pred_iter(block).map(|pred| pred.block);
        let mut before = EntitySet::new();
        before.extend(reachable(preds(spin.header), None, preds));
        let mut found = Vec::new();
        for &block in dominators.cfg_postorder() {
            let is_beside = !behind.seen.contains(block) && !before.contains(block);
            if !is_beside || self.behind_write(block, is_one).is_none() {
                continue;
            }
            let mut beside = Behind::default();
            self.walk(vec![block], &spin.blocks, &mut beside);
            let order = dominators.cfg_postorder().iter().rev();
            let meets = |it: &&Block| beside.seen.contains(**it) && behind.seen.contains(**it);
            let place = order.into_iter().find(meets).and_then(|&it| func.layout.first_inst(it));
            found.extend(place);
        }
        found
    }
}

fn is_constant(func: &Function, value: Value) -> bool {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => func.dfg.insts[inst].opcode() == Opcode::Iconst,
        _ => false,
    }
}
