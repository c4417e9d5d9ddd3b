//! Joins a loop that lanes leave in different rounds, though they wait for each other in it, with the loop around it.
//!
//! `common; do { if (d) { work; common } barrier } while (u)` is one loop, in which all lanes reach the barrier together. A
//! compiler that keeps only one copy of `common` makes two loops of it:
//!
//! ```text
//!     outer: common; jump inner                    header: brif from outside or `work`, outer, inner
//!     inner: barrier; brif u, test, exit           outer:  common; jump inner
//!     test:  brif d, work, inner                   inner:  barrier; brif u, test, exit
//!     work:  work; jump outer                      test:   brif d, work, header
//!                                                  work:   work; jump header
//! ```
//!
//! In the inner loop lanes with `d` would wait behind it while the others reach the barrier without them. As OpenCL requires
//! that all work-items of a group reach it, both loops are one: lanes begin a round together whichever of them they go on
//! with.
//!
//! Only loops that wait inside of the inner loop alone are joined, and only if all ways from the outer header lead into the
//! inner loop: what they compute becomes parameters of the inner header. Nor may lanes look at others elsewhere in the outer
//! loop: those that are still in the inner one would be missing there. This depends on which loops lanes leave together, so it
//! follows the analysis, which is repeated.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function, Value};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::{HashMap, HashSet};

use super::canonicalize::insert_dispatch;
use super::edges::{Edge, edges_to};
use super::meetings::waiting;
use super::regions::Regions;
use crate::analysis::{Callees, Level, LevelId, Node, Uniformity};
use crate::plan::Steering;

/// Joins one loop with the loop around it. Returns whether there was one; facts about the function are invalid then.
/// `gathering` are the blocks in which lanes look at others. Conditions that steer lanes are added to `steering`.
pub(super) fn join(
    func: &mut Function,
    facts: &Uniformity,
    regions: &Regions,
    gathering: &EntitySet<Block>,
    callees: &dyn Callees,
    steering: &mut Steering,
) -> bool {
    let inner_loops = inner_loops(facts, regions);
    if inner_loops.is_empty() {
        return false;
    }
    let waiting = waiting(func, callees);
    let mut joints = inner_loops
        .into_iter()
        .filter_map(|inner| joint_of(func, facts, [&waiting, gathering], inner));
    let Some(joint) = joints.next() else { return false };
    joint.join(func, steering);
    true
}

/// A loop in another one: the level of that, the inner loop's node on it, and the inner loop.
type Inner = (LevelId, usize, Loop);

/// The loops in others that lanes leave in different rounds.
fn inner_loops(facts: &Uniformity, regions: &Regions) -> Vec<Inner> {
    let levels = facts.flow().levels();
    let inside = levels.ids().filter(|&id| levels.level(id).around.is_some());
    let nodes = inside.flat_map(|id| {
        let nodes = levels.level(id).nodes.iter().enumerate();
        nodes.map(move |(node, kind)| (id, node, *kind))
    });
    let masked = |(id, node, kind)| match kind {
        Node::Loop(inner) if regions.is_masked(inner) => Some((id, node, inner)),
        _ => None,
    };
    nodes.filter_map(masked).collect()
}

/// A loop to be joined with the one around it.
struct Joint {
    outer_header: Block,
    header: Block,
    /// The blocks of the inner loop.
    inside: HashSet<Block>,
    /// What blocks before the inner loop compute for those behind its header, which dominates these, and where it is used.
    handed_on: Vec<Value>,
    users: Vec<Block>,
}

/// The inner loop and the one around it, if they are to be joined.
fn joint_of(
    func: &Function,
    facts: &Uniformity,
    [waiting, gathering]: [&EntitySet<Block>; 2],
    (id, node, inner): Inner,
) -> Option<Joint> {
    let levels = facts.flow().levels();
    let level = levels.level(id);
    let inside: HashSet<Block> = levels.blocks(id, node..node + 1).into_iter().collect();
    let around = levels.blocks(id, 0..level.end());
    let (own, others): (Vec<_>, Vec<_>) = around.iter().partition(|block| inside.contains(*block));
    let goes_on = levels.exits(inner).iter().any(|exit| around.contains(exit));
    let waits = own.into_iter().any(|block| waiting.contains(block));
    if !goes_on || !waits || others.into_iter().any(|block| gathering.contains(block)) {
        return None;
    }
    let before = nodes_before(level, node)?;
    let before = before.into_iter().flat_map(|before| levels.blocks(id, before..before + 1));
    let before: HashSet<Block> = before.collect();
    let header = levels.first_block(level.nodes[node]);
    let (handed_on, users) = handed_on(func, facts, &before, header)?;
    let outer_header = levels.first_block(level.nodes[0]);
    Some(Joint { outer_header, header, inside, handed_on, users })
}

/// The nodes from which `node` is reachable on a level, if all ways from them lead there.
fn nodes_before(level: &Level, node: usize) -> Option<HashSet<usize>> {
    let mut found = HashSet::new();
    let mut todo = level.preds[node].clone();
    while let Some(before) = todo.pop() {
        if found.insert(before) {
            todo.extend(level.preds[before].iter().copied());
        }
    }
    let leads_there = |next: &usize| *next == node || found.contains(next);
    let all = found.iter().all(|&before| level.succs[before].iter().all(leads_there));
    all.then_some(found)
}

/// The values that the blocks `before` define and blocks behind `header` use, and these blocks. None if others use them, too:
/// those that trap.
fn handed_on(
    func: &Function,
    facts: &Uniformity,
    before: &HashSet<Block>,
    header: Block,
) -> Option<(Vec<Value>, Vec<Block>)> {
    let defined: HashSet<Value> = before
        .iter()
        .flat_map(|&block| {
            let insts = func.layout.block_insts(block);
            let results = insts.flat_map(|inst| func.dfg.inst_results(inst));
            func.dfg.block_params(block).iter().chain(results).copied()
        })
        .collect();
    let (mut values, mut users) = (Vec::new(), Vec::new());
    for block in func.layout.blocks().filter(|block| !before.contains(block)) {
        let insts = func.layout.block_insts(block);
        let used = insts.flat_map(|inst| func.dfg.inst_values(inst));
        let used = used.map(|value| func.dfg.resolve_aliases(value));
        let used: Vec<Value> = used.filter(|value| defined.contains(value)).collect();
        if used.is_empty() {
            continue;
        }
        if !facts.flow().dominates(header, block) {
            return None;
        }
        users.push(block);
        values.extend(used);
    }
    values.sort_unstable();
    values.dedup();
    Some((values, users))
}

impl Joint {
    fn join(&self, func: &mut Function, steering: &mut Steering) {
        let Joint { outer_header, header, ref inside, .. } = *self;
        func.dfg.resolve_all_aliases();
        let cfg = ControlFlowGraph::with_function(func);
        let (back, entering): (Vec<Edge>, Vec<Edge>) =
            edges_to(func, &cfg, header).into_iter().partition(|edge| inside.contains(&edge.from));
        self.hand_on(func, &back, &entering);
        let mut edges = edges_to(func, &cfg, outer_header);
        edges.extend(back);
        insert_dispatch(func, &[outer_header, header], &edges, steering);
    }

    /// Makes what is handed on parameters of the inner header.
    fn hand_on(&self, func: &mut Function, back: &[Edge], entering: &[Edge]) {
        let param = |&value: &Value| {
            let ty = func.dfg.value_type(value);
            (value, func.dfg.append_block_param(self.header, ty))
        };
        let params: Vec<(Value, Value)> = self.handed_on.iter().map(param).collect();
        let param_of: HashMap<Value, Value> = params.iter().copied().collect();
        for &block in &self.users {
            let insts: Vec<_> = func.layout.block_insts(block).collect();
            for inst in insts {
                func.dfg.map_inst_values(inst, |value| *param_of.get(&value).unwrap_or(&value));
            }
        }
        let add = |func: &mut Function, edge: &Edge, more: &mut dyn Iterator<Item = Value>| {
            let args: Vec<BlockArg> =
                edge.arguments(func).into_iter().chain(more.map(BlockArg::Value)).collect();
            edge.redirect(func, self.header, &args);
        };
        for edge in entering {
            add(func, edge, &mut self.handed_on.iter().copied());
        }
        for edge in back {
            add(func, edge, &mut params.iter().map(|&(_, param)| param));
        }
    }
}
