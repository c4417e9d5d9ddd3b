//! SSA form where further edges have made blocks reachable past what dominated them.
//!
//! A value that does not dominate a use any more becomes block parameters on the iterated dominance frontier of its definition,
//! where it is live (Cytron et al., "Efficiently computing static single assignment form and the control dependence graph",
//! TOPLAS 1991). On ways past the definition, which nobody takes, it is anything.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value, ValueDef};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::super::edges::{Edge, edges_to};
use super::zero;
use crate::analysis::{Graph, reachable};

/// Makes all values dominate their uses again. Assumes that none has an alias, and that there is a [`zero`] of the types
/// of those that do not.
pub(super) fn repair(func: &mut Function) {
    let graph = Graph::compute(func);
    let frontiers = frontiers(&graph);
    for value in broken(func, &graph) {
        let Some(home) = home(func, value) else { continue };
        let users = users(func, value);
        let live = live(&graph, home, users.iter().map(|&(block, _)| block));
        let params = iterated(&frontiers, home).into_iter().filter(|&block| live.contains(block));
        let ty = func.dfg.value_type(value);
        let params = params.map(|block| (block, func.dfg.append_block_param(block, ty)));
        let one = Repaired { home, value, params: params.collect(), graph: &graph };
        one.rewrite(func, &users);
    }
}

/// The values that do not dominate all their uses.
fn broken(func: &Function, graph: &Graph) -> Vec<Value> {
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for block in func.layout.blocks() {
        let insts = func.layout.block_insts(block);
        for value in insts.flat_map(|inst| func.dfg.inst_values(inst)) {
            let home = home(func, value);
            let is_broken = home.is_some_and(|home| !graph.dominators.block_dominates(home, block));
            if is_broken && seen.insert(value) {
                found.push(value);
            }
        }
    }
    found
}

/// The block of a value's definition.
pub(super) fn home(func: &Function, value: Value) -> Option<Block> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Union(..) => None,
    }
}

/// The instructions that use a value, and their blocks.
fn users(func: &Function, value: Value) -> Vec<(Block, Inst)> {
    let blocks = func.layout.blocks();
    let insts = blocks.flat_map(|block| func.layout.block_insts(block).map(move |it| (block, it)));
    insts.filter(|&(_, inst)| func.dfg.inst_values(inst).any(|used| used == value)).collect()
}

/// The dominance frontier of each block (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001).
fn frontiers(graph: &Graph) -> SecondaryMap<Block, SmallVec<[Block; 2]>> {
    let Graph { cfg, dominators, .. } = graph;
    let mut found: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    for &block in dominators.cfg_postorder() {
        let above = dominators.idom(block);
        for pred in cfg.pred_iter(block).filter(|pred| dominators.is_reachable(pred.block)) {
            let up = std::iter::successors(Some(pred.block), |&it| dominators.idom(it));
            for it in up.take_while(|&it| Some(it) != above) {
                if !found[it].contains(&block) {
                    found[it].push(block);
                }
            }
        }
    }
    found
}

fn iterated(frontiers: &SecondaryMap<Block, SmallVec<[Block; 2]>>, home: Block) -> Vec<Block> {
    let next = |block| frontiers[block].iter().copied();
    reachable(next(home), None, next)
}

/// The blocks at whose beginnings a value is live.
fn live(graph: &Graph, home: Block, users: impl Iterator<Item = Block>) -> EntitySet<Block> {
    let preds = |block| graph.cfg.pred_iter(block).map(|pred| pred.block);
    let users = users.filter(|&block| block != home);
    let mut live = EntitySet::new();
    live.extend(reachable(users, Some(home), preds));
    live
}

/// A value and the parameters that it becomes.
struct Repaired<'a> {
    home: Block,
    value: Value,
    params: HashMap<Block, Value>,
    graph: &'a Graph,
}

impl Repaired<'_> {
    /// What it is at the end of a block; none on ways past its definition.
    fn at(&self, block: Block) -> Option<Value> {
        let dominators = &self.graph.dominators;
        let mut up = std::iter::successors(Some(block), |&it| dominators.idom(it));
        up.find_map(|block| match block == self.home {
            true => Some(self.value),
            false => self.params.get(&block).copied(),
        })
    }

    fn rewrite(&self, func: &mut Function, users: &[(Block, Inst)]) {
        for &(block, inst) in users.iter().filter(|(block, _)| *block != self.home) {
            let here = self.at(block).unwrap_or(self.value);
            func.dfg.map_inst_values(inst, |used| if used == self.value { here } else { used });
        }
        // In the same order in every run, as zeros get their numbers in it.
        let mut blocks: Vec<Block> = self.params.keys().copied().collect();
        blocks.sort_unstable();
        for block in blocks {
            for edge in edges_to(func, &self.graph.cfg, block) {
                self.pass(func, edge, block);
            }
        }
    }

    /// Passes the value along an edge to a block with a parameter for it.
    fn pass(&self, func: &mut Function, edge: Edge, block: Block) {
        let passed = self.at(edge.from).unwrap_or_else(|| {
            let ty = func.dfg.value_type(self.value);
            zero(&mut FuncCursor::new(func).at_inst(edge.inst), ty)
        });
        let mut args = edge.arguments(func);
        args.push(BlockArg::Value(passed));
        edge.redirect(func, block, &args);
    }
}
