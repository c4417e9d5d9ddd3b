//! Splits headers shared by two loops whose lanes wait for each other in the outer one only.
//!
//! Two back edges to one header may belong to two loops: `do { do { .. } while (d); barrier } while (u)`
//! without a block in front of the inner loop. In the graph they look like one loop with a `continue`, and
//! other passes treat them so: all lanes begin an iteration together. Here that would let some lanes reach
//! the barrier while others iterate. As OpenCL requires (all work-items or none execute a barrier in an
//! iteration), lanes that go back without passing a barrier must do so in a loop of their own. So the header
//! is divided: back edges from behind a barrier, and edges into the loop, get a new header in front.
//!
//! ```text
//!     h: brif d, h, b                 outer: jump h
//!     b: barrier; brif u, h, exit     h: brif d, h, b
//!                                     b: barrier; brif u, outer, exit
//! ```
//!
//! A back edge belongs to the outer loop if a barrier may be passed on some path to it. Latches that only
//! forward their parameters are bypassed; what a shared latch computes is not duplicated.
//!
//! This concerns the loops of the source program, so it comes before all else: a dispatch block made for a
//! cycle with several entries is not a header that loops share.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder};

use super::edges::{Edge, destinations, edges_to, hand_on};
use super::meetings::waiting;
use crate::analysis::Callees;
use crate::legalize;

/// An edge to a header, a back edge or an entry, and the arguments that it passes.
struct Way {
    edge: Edge,
    args: Vec<BlockArg>,
}

/// See the [module](self). `callees` says in which calls lanes may gather.
pub(crate) fn divide(func: &mut Function, callees: &dyn Callees) {
    let waiting = waiting(func, callees);
    if waiting.is_empty() {
        return;
    }
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let mut divided = false;
    for &header in dominators.cfg_postorder() {
        if !cfg.pred_iter(header).any(|pred| dominators.block_dominates(header, pred.block)) {
            continue;
        }
        let back = back_edges(func, &cfg, &dominators, header);
        let waits = |way: &Way| waits_on_the_way(&cfg, &waiting, header, way.edge.from);
        let (outer, inner): (Vec<_>, Vec<_>) = back.into_iter().partition(waits);
        if !outer.is_empty() && !inner.is_empty() {
            divide_header(func, &cfg, &dominators, header, outer, inner);
            divided = true;
        }
    }
    if divided {
        // Bypassed latches are unreachable now.
        legalize::reachable(func);
    }
}

/// The back edges to `header`. For a block that only forwards its parameters, its incoming edges count
/// instead.
fn back_edges(
    func: &Function,
    cfg: &ControlFlowGraph,
    dominators: &DominatorTree,
    header: Block,
) -> Vec<Way> {
    let mut found = Vec::new();
    let mut todo = ways_to(func, cfg, header);
    todo.retain(|way| dominators.block_dominates(header, way.edge.from));
    while let Some(way) = todo.pop() {
        let Edge { from, inst, .. } = way.edge;
        let hands_on = func.layout.first_inst(from) == Some(inst);
        if !hands_on || destinations(func, inst) > 1 || from == header {
            found.push(way);
            continue;
        }
        // Only the header follows, so no other block uses the parameters.
        let params = func.dfg.block_params(from);
        for before in ways_to(func, cfg, from) {
            let handed_on = |arg: &BlockArg| {
                let value = func.dfg.resolve_aliases(arg.as_value()?);
                let index = params.iter().position(|&param| param == value)?;
                Some(before.args[index])
            };
            let args = way.args.iter().map(|arg| handed_on(arg).unwrap_or(*arg)).collect();
            todo.push(Way { args, ..before });
        }
    }
    // In layout order, independent of the order in which they were found.
    found.sort_by_key(|way| (way.edge.inst, way.edge.side));
    found
}

fn ways_to(func: &Function, cfg: &ControlFlowGraph, block: Block) -> Vec<Way> {
    let edges = edges_to(func, cfg, block).into_iter();
    edges.map(|edge| Way { edge, args: edge.arguments(func).into_vec() }).collect()
}

/// Whether lanes may wait on some path from `header` to `last`, in the loop that the back edge from `last`
/// closes.
fn waits_on_the_way(
    cfg: &ControlFlowGraph,
    waiting: &EntitySet<Block>,
    header: Block,
    last: Block,
) -> bool {
    let mut seen = EntitySet::new();
    let mut todo = vec![last];
    while let Some(block) = todo.pop() {
        if !seen.insert(block) {
            continue;
        }
        if waiting.contains(block) {
            return true;
        }
        if block != header {
            todo.extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
    }
    false
}

/// Puts a new header in front of `header`, for the edges into the loop and the `outer` back edges.
fn divide_header(
    func: &mut Function,
    cfg: &ControlFlowGraph,
    dominators: &DominatorTree,
    header: Block,
    outer: Vec<Way>,
    inner: Vec<Way>,
) {
    let mut entering = ways_to(func, cfg, header);
    entering.retain(|way| !dominators.block_dominates(header, way.edge.from));
    let front = hand_on(func, header);
    for way in entering.into_iter().chain(outer) {
        lead(func, &way, front);
    }
    for way in inner {
        lead(func, &way, header);
    }
}

/// Redirects an edge to `to`; through a block of its own if the branch leads there already.
fn lead(func: &mut Function, Way { edge, args }: &Way, to: Block) {
    let mut others = (0..destinations(func, edge.inst)).filter(|&side| side != edge.side);
    if !others.any(|side| Edge { side, ..*edge }.target(func) == to) {
        return edge.redirect(func, to, args);
    }
    let between = func.dfg.make_block();
    func.layout.append_block(between);
    FuncCursor::new(func).at_bottom(between).ins().jump(to, args);
    edge.redirect(func, between, &[]);
}
