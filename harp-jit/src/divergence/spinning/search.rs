//! The loops that wait, and where what they wait for is written.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::HashSet;

use super::super::meetings::{gathering, gathers};
use super::accesses::{Part, is_exchange, is_fence, may_wait, parts, read_by, written_by};
use super::repair::home;
use super::{Ways, has_zero, way};
use crate::analysis::{Callees, Graph, edges, reachable};
use crate::constant;
use crate::plan::Own;

/// A loop that waits.
struct Spin {
    header: Block,
    blocks: EntitySet<Block>,
    /// The parts of the addresses that it reads.
    watched: HashSet<Part>,
    /// Whether it takes what it waits for, by exchanges: then only those give it back that have left the loop.
    takes: bool,
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
    /// The blocks in which work-items gather.
    gathering: EntitySet<Block>,
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
        let gathering = gathering(func, callees, &Own::new());
        Search { func, graph, order, callees, gathering }
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
        let is_written = self.all_write(&spin, &behind, &same);
        let mut places = match is_written {
            true => self.last_writes(&behind, &same),
            false => self.last_writes(&behind, &any),
        };
        let mut others = Vec::new();
        if !is_written || !spin.takes {
            others = self.where_others_come(&spin, &behind.seen, &same);
            if others.is_empty() {
                let later = self.later(&spin);
                others = self.later_writes(&spin, &later, &same);
                others.extend(self.where_others_come(&spin, &later, &same));
            }
        }
        // A lane may come to them in any later round of the loops around.
        let is_wide = !others.is_empty() || !spin.takes;
        places.extend(others);
        if places.is_empty() {
            places = self.where_others_come(&spin, &behind.seen, &any);
        }
        self.keep_last(&mut places, &spin);
        if places.is_empty() { None } else { self.ways(&spin, places, is_wide) }
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

    /// The ways back from these places, unless work-items gather in the cycle that they make: the smallest one, or a wide one.
    fn ways(&self, spin: &Spin, places: Vec<Inst>, is_wide: bool) -> Option<Ways> {
        let Search { func, graph: Graph { cfg, dominators, .. }, .. } = *self;
        let header = spin.header;
        let from: HashSet<Block> =
            places.iter().filter_map(|&inst| func.layout.inst_block(inst)).collect();
        // What comes behind a place in its block is in the cycle only if it leads back there.
        let gathers_inside = |cycle: &HashSet<Block>, block: Block| {
            let leads_back = || cfg.succ_iter(block).any(|next| cycle.contains(&next));
            self.gathering.contains(block) && (!from.contains(&block) || leads_back())
        };
        let gathers =
            |cycle: &HashSet<Block>| cycle.iter().any(|&block| gathers_inside(cycle, block));
        let is_natural = from.iter().all(|&block| dominators.block_dominates(header, block));
        let around = self.loops_around(header, &from);
        let mut cycles = around.into_iter().map(|around| self.cycle(header, &from, around));
        let larger = match is_wide {
            true => cycles.rfind(|cycle| !gathers(cycle)),
            false if is_natural => None,
            false => cycles.next().filter(|cycle| !gathers(cycle)),
        };
        let preds = |block| cfg.pred_iter(block).map(|pred| pred.block);
        let body = || reachable(from.iter().copied(), Some(header), preds).into_iter().collect();
        if larger.is_none() && (!is_natural || gathers(&body())) {
            return None;
        }
        let entry = larger.and_then(|cycle| self.entry(header, &cycle));
        Some(Ways { header, places, entry, is_plain: is_natural && entry.is_none() })
    }

    /// Where a way to a header begins from outside of a cycle, if it is not entered there otherwise.
    fn entry(&self, header: Block, cycle: &HashSet<Block>) -> Option<Inst> {
        let Graph { cfg, dominators, .. } = self.graph;
        if cfg.pred_iter(header).any(|pred| !cycle.contains(&pred.block)) {
            return None;
        }
        let mut above = std::iter::successors(dominators.idom(header), |&it| dominators.idom(it));
        let outside = above.find(|block| !cycle.contains(block))?;
        self.func.layout.last_inst(outside)
    }

    /// The loops around a loop's header and these blocks, the innermost first, and at last none.
    fn loops_around(&self, header: Block, from: &HashSet<Block>) -> Vec<Option<Loop>> {
        let loops = &self.graph.loops;
        let own = loops.innermost_loop(header).and_then(|id| loops.loop_parent(id));
        let around = std::iter::successors(own, |&id| loops.loop_parent(id));
        let around = around.filter(|&id| from.iter().all(|&block| loops.is_in_loop(block, id)));
        around.map(Some).chain([None]).collect()
    }

    /// The blocks on ways from a loop's header to these blocks and, by new ways back, to the header again, in a round of the
    /// loop `around`.
    fn cycle(&self, header: Block, from: &HashSet<Block>, around: Option<Loop>) -> HashSet<Block> {
        let Graph { cfg, loops, .. } = self.graph;
        let is_open = |block: &Block| {
            around.is_none_or(|id| loops.is_in_loop(*block, id) && loops.loop_header(id) != *block)
        };
        let next = |block| cfg.succ_iter(block).filter(is_open);
        let last = |block| {
            let ways = from.iter().copied().filter(move |_| block == header);
            cfg.pred_iter(block).map(|pred| pred.block).chain(ways).filter(is_open)
        };
        let mut behind = EntitySet::new();
        behind.extend(reachable(std::iter::once(header), None, next));
        let before = reachable(std::iter::once(header), None, last);
        before.into_iter().filter(|&block| behind.contains(block)).collect()
    }

    /// The loop, if it waits and has no way back from behind yet.
    fn spin(&self, id: Loop) -> Option<Spin> {
        let Graph { cfg, dominators, loops } = self.graph;
        let header = loops.loop_header(id);
        let has_way = cfg.pred_iter(header).any(|pred| way(self.func, pred.inst).is_some());
        let mut blocks = EntitySet::new();
        let inside = dominators.cfg_postorder().iter().copied();
        blocks.extend(inside.filter(|&block| loops.is_in_loop(block, id)));
        let gathers = blocks.iter().any(|block| self.gathering.contains(block));
        let types = self.func.dfg.block_param_types(header);
        if has_way || gathers || types.into_iter().any(|ty| !has_zero(ty)) {
            return None;
        }
        let (watched, takes) = self.watched(header, &blocks);
        (!watched.is_empty()).then_some(Spin { header, blocks, watched, takes })
    }

    fn insts(&self, blocks: &EntitySet<Block>) -> impl Iterator<Item = Inst> + use<'_> {
        let blocks: Vec<Block> = blocks.iter().collect();
        blocks.into_iter().flat_map(|block| self.func.layout.block_insts(block))
    }

    /// The parts of the addresses from which a loop reads what decides whether it goes on, and whether it only does so by exchanges.
    fn watched(&self, header: Block, blocks: &EntitySet<Block>) -> (HashSet<Part>, bool) {
        let Search { func, graph: Graph { cfg, .. }, .. } = *self;
        let ordered = self.insts(blocks).any(|inst| is_fence(func, inst));
        let leaves = |block: &Block| cfg.succ_iter(*block).any(|to| !blocks.contains(to));
        let mut todo: Vec<Value> =
            blocks.iter().filter(leaves).filter_map(|block| self.condition(block)).collect();
        let is_inside = |value| home(func, value).is_some_and(|home| blocks.contains(home));
        let (mut seen, mut found, mut takes) = (HashSet::new(), HashSet::new(), true);
        while let Some(value) = todo.pop() {
            if !seen.insert(value) {
                continue;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _) if is_inside(value) => {
                    let varies =
                        |value| is_inside(value) && constant::signed(&func.dfg, value).is_none();
                    let address = read_by(func, inst, ordered, varies);
                    takes &= address.is_none() || is_exchange(func, inst);
                    found.extend(address.into_iter().flat_map(|it| parts(func, it)));
                    todo.extend(func.dfg.inst_args(inst));
                }
                ValueDef::Param(block, number) if is_inside(value) => {
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
        (found, takes)
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
        self.next(block).filter(move |&next| self.order[next] > self.order[block])
    }

    /// The same in any round.
    fn next(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.graph.cfg.succ_iter(block).filter(move |_| !self.gathering.contains(block))
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

    /// Where ways on which others write meet the blocks behind the loop.
    fn where_others_come(
        &self,
        spin: &Spin,
        behind: &EntitySet<Block>,
        is_one: &dyn Fn(Value) -> bool,
    ) -> Vec<Inst> {
        let Search { func, graph: Graph { cfg, dominators, .. }, .. } = *self;
        let preds = |block| cfg.pred_iter(block).map(|pred| pred.block);
        let mut before = EntitySet::new();
        before.extend(reachable(preds(spin.header), None, preds));
        let is_beside = |block: &Block| !behind.contains(*block) && !before.contains(*block);
        let blocks = dominators.cfg_postorder().iter().copied().filter(is_beside);
        let writers = blocks.filter(|&block| self.behind_write(block, is_one).is_some());
        let mut beside = Behind::default();
        self.walk(writers.collect(), &spin.blocks, &mut beside);
        let from = beside.blocks.iter().filter(|block| is_beside(block));
        let meets = from.flat_map(|&block| self.onwards(block));
        let meets = meets.filter(|&next| behind.contains(next));
        meets.filter_map(|block| func.layout.first_inst(block)).collect()
    }

    /// The blocks behind a loop, in later rounds of the loops around it, too.
    fn later(&self, spin: &Spin) -> EntitySet<Block> {
        let next = |block| self.next(block).filter(|&next| !spin.blocks.contains(next));
        let mut later = EntitySet::new();
        later.extend(reachable(spin.blocks.iter().flat_map(next), None, next));
        later
    }

    /// The places behind such writes in these later blocks, but for those by which all lanes have come to the loop.
    fn later_writes(
        &self,
        spin: &Spin,
        later: &EntitySet<Block>,
        is_one: &dyn Fn(Value) -> bool,
    ) -> Vec<Inst> {
        let dominators = &self.graph.dominators;
        let others = later.iter().filter(|&block| !dominators.block_dominates(block, spin.header));
        others.filter_map(|block| self.behind_write(block, is_one)).collect()
    }
}
