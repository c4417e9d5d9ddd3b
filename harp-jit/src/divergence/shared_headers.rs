//! Loops that share a header, where lanes wait for each other in the outer one only.
//!
//! Two edges back to one header may be those of two loops: `do { do { .. } while (d); barrier } while (u)`
//! without a block in front of the inner loop. In the graph they look like one loop with a `continue`, and
//! that is how they are taken otherwise: all lanes begin a round together. Here that would let some of them
//! reach the barrier while others go round. As OpenCL wants it (all work-items or none execute a barrier in
//! a round), lanes that go back without passing a barrier must do so in a loop of their own. So the header
//! is divided: the edges back from behind a barrier, and those into the loop, get a header in front.
//!
//! ```text
//!     h: brif d, h, b                 outer: jump h
//!     b: barrier; brif u, h, exit     h: brif d, h, b
//!                                     b: barrier; brif u, outer, exit
//! ```
//!
//! An edge back that barriers may or may not be passed on the way to belongs to the outer loop. Latches that
//! only hand on what they are given are seen through; what a shared latch computes is not duplicated.
//!
//! This is about the loops of the program, so it comes before all else: a block that lanes are sent through to
//! the entries of a cycle is no header that loops share.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Type};

use super::edges::{arguments, destinations, redirect, target};
use crate::analysis::Callees;
use crate::intrinsic::Intrinsic;

/// An edge to a header, from its loop or into it.
struct Edge {
    from: Block,
    inst: Inst,
    side: usize,
    args: Vec<BlockArg>,
}

/// See the [module](self). `callees` says which calls may wait.
pub(crate) fn divide(func: &mut Function, callees: &dyn Callees) {
    let waiting = waiting(func, callees);
    if waiting.is_empty() {
        return;
    }
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let mut divided = false;
    for &header in dominators.cfg_postorder() {
        let back = back_edges(func, &cfg, &dominators, header);
        let waits = |edge: &Edge| waits_on_the_way(&cfg, &waiting, header, edge.from);
        let (outer, inner): (Vec<_>, Vec<_>) = back.into_iter().partition(waits);
        if !outer.is_empty() && !inner.is_empty() {
            divide_header(func, &cfg, &dominators, header, outer, inner);
            divided = true;
        }
    }
    if divided {
        remove_unreachable(func);
    }
}

/// Latches that were seen through are entered by nobody any more.
fn remove_unreachable(func: &mut Function) {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks.into_iter().filter(|&block| !dominators.is_reachable(block)) {
        while let Some(inst) = func.layout.first_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}

/// The blocks in which lanes may wait for others.
fn waiting(func: &Function, callees: &dyn Callees) -> EntitySet<Block> {
    let mut found = EntitySet::new();
    for block in func.layout.blocks() {
        let mut insts = func.layout.block_insts(block);
        if insts.any(|inst| may_wait(func, inst, callees)) {
            found.insert(block);
        }
    }
    found
}

fn may_wait(func: &Function, inst: Inst, callees: &dyn Callees) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => match Intrinsic::of_call(func, inst) {
            Some(intrinsic) => intrinsic == Intrinsic::Barrier,
            None => callees.may_wait(func, func_ref),
        },
        data => data.opcode().is_call(),
    }
}

/// The edges back to `header`, those by way of blocks that only hand on what they are given from where
/// these are entered.
fn back_edges(
    func: &Function,
    cfg: &ControlFlowGraph,
    dominators: &DominatorTree,
    header: Block,
) -> Vec<Edge> {
    let mut found = Vec::new();
    let mut todo = edges_to(func, cfg, header);
    todo.retain(|edge| dominators.block_dominates(header, edge.from));
    while let Some(edge) = todo.pop() {
        let hands_on = func.layout.first_inst(edge.from) == Some(edge.inst);
        if !hands_on || destinations(func, edge.inst) > 1 || edge.from == header {
            found.push(edge);
            continue;
        }
        // Nothing but the header comes behind, so nobody else looks at the parameters.
        let params = func.dfg.block_params(edge.from);
        for before in edges_to(func, cfg, edge.from) {
            let handed_on = |arg: &BlockArg| {
                let value = func.dfg.resolve_aliases(arg.as_value()?);
                let index = params.iter().position(|&param| param == value)?;
                Some(before.args[index])
            };
            let args = edge.args.iter().map(|arg| handed_on(arg).unwrap_or(*arg)).collect();
            todo.push(Edge { args, ..before });
        }
    }
    // In the order of the code, whatever the order in which they were found.
    found.sort_by_key(|edge| (edge.inst, edge.side));
    found
}

/// The edges to a block that can be reached.
fn edges_to(func: &Function, cfg: &ControlFlowGraph, block: Block) -> Vec<Edge> {
    let mut insts: Vec<(Block, Inst)> =
        cfg.pred_iter(block).map(|pred| (pred.block, pred.inst)).collect();
    insts.sort_unstable();
    insts.dedup();
    let edges = insts.into_iter().flat_map(|(from, inst)| {
        let sides =
            (0..destinations(func, inst)).filter(move |&side| target(func, inst, side) == block);
        sides.map(move |side| Edge { from, inst, side, args: arguments(func, inst, side) })
    });
    edges.collect()
}

/// Whether lanes may wait on some way from `header` to `last`, in the loop that an edge back from there
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

/// Puts a header in front of `header`, for the edges into the loop and `outer` ones.
fn divide_header(
    func: &mut Function,
    cfg: &ControlFlowGraph,
    dominators: &DominatorTree,
    header: Block,
    outer: Vec<Edge>,
    inner: Vec<Edge>,
) {
    let mut entering = edges_to(func, cfg, header);
    entering.retain(|edge| !dominators.block_dominates(header, edge.from));
    let front = func.dfg.make_block();
    let types: Vec<Type> = func.dfg.block_param_types(header).collect();
    let params: Vec<BlockArg> =
        types.into_iter().map(|ty| func.dfg.append_block_param(front, ty).into()).collect();
    func.layout.append_block(front);
    FuncCursor::new(func).at_bottom(front).ins().jump(header, &params);
    for edge in entering.into_iter().chain(outer) {
        lead(func, &edge, front);
    }
    for edge in inner {
        lead(func, &edge, header);
    }
}

/// Lets an edge lead to `to`: by a block of its own if the branch leads there already.
fn lead(func: &mut Function, edge: &Edge, to: Block) {
    let other_side = |side| side != edge.side && target(func, edge.inst, side) == to;
    if !(0..destinations(func, edge.inst)).any(other_side) {
        return redirect(func, edge.inst, edge.side, to, &edge.args);
    }
    let between = func.dfg.make_block();
    func.layout.append_block(between);
    FuncCursor::new(func).at_bottom(between).ins().jump(to, &edge.args);
    redirect(func, edge.inst, edge.side, between, &[]);
}
