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
//! inner loop: what they compute becomes parameters of the inner header. This depends on which loops lanes leave together, so
//! it follows the analysis, which is repeated.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::HashSet;

use super::canonicalize::insert_dispatch;
use super::edges::{Edge, edges_to};
use super::handed_on::HandedOn;
use super::meetings::waiting;
use super::regions::Regions;
use crate::analysis::{Callees, Level, LevelId, Node, Uniformity};
use crate::plan::Steering;

/// Joins one loop with the loop around it. Returns whether there was one; facts about the function are invalid then.
/// Conditions that steer lanes are added to `steering`.
pub(super) fn join(
    func: &mut Function,
    facts: &Uniformity,
    regions: &Regions,
    callees: &dyn Callees,
    steering: &mut Steering,
) -> bool {
    let inner_loops = inner_loops(facts, regions);
    if inner_loops.is_empty() {
        return false;
    }
    let waiting = waiting(func, callees);
    let mut joints =
        inner_loops.into_iter().filter_map(|inner| joint_of(func, facts, &waiting, inner));
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
    /// What blocks before the inner loop compute for those behind its header.
    handed_on: HandedOn,
}

/// The inner loop and the one around it, if they are to be joined.
fn joint_of(
    func: &Function,
    facts: &Uniformity,
    waiting: &EntitySet<Block>,
    (id, node, inner): Inner,
) -> Option<Joint> {
    let levels = facts.flow().levels();
    let level = levels.level(id);
    let inside: HashSet<Block> = levels.blocks(id, node..node + 1).into_iter().collect();
    let around = levels.blocks(id, 0..level.end());
    let (own, others): (Vec<_>, Vec<_>) = around.iter().partition(|block| inside.contains(*block));
    let goes_on = levels.exits(inner).iter().any(|exit| around.contains(exit));
    let waits = own.into_iter().any(|block| waiting.contains(block));
    if !goes_on || !waits || others.into_iter().any(|block| waiting.contains(block)) {
        return None;
    }
    let before = nodes_before(level, node)?;
    let before = before.into_iter().flat_map(|before| levels.blocks(id, before..before + 1));
    let before: HashSet<Block> = before.collect();
    let header = levels.first_block(level.nodes[node]);
    let dominates = |above, below| facts.flow().dominates(above, below);
    // None if others use it, too: those that trap.
    let handed_on = HandedOn::find(func, &before, header, func.layout.blocks(), dominates)?;
    let outer_header = levels.first_block(level.nodes[0]);
    Some(Joint { outer_header, header, inside, handed_on })
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

impl Joint {
    fn join(&self, func: &mut Function, steering: &mut Steering) {
        let Joint { outer_header, header, ref inside, .. } = *self;
        func.dfg.resolve_all_aliases();
        let cfg = ControlFlowGraph::with_function(func);
        let (back, entering): (Vec<Edge>, Vec<Edge>) =
            edges_to(func, &cfg, header).into_iter().partition(|edge| inside.contains(&edge.from));
        self.handed_on.hand_on(func, &back, &entering);
        let mut edges = edges_to(func, &cfg, outer_header);
        edges.extend(back);
        insert_dispatch(func, &[outer_header, header], &edges, steering);
    }
}
