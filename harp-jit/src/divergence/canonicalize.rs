//! The canonical form of control flow: every cycle is a natural loop with one back edge.
//!
//! A cycle with several entries gets a dispatch block in front: all edges to its entries go through it and
//! pass a number that says which entry they lead to (the dispatch of a strongly connected region; see Erosa
//! and Hendren, ICCL 1994, for the problem). The dispatch block is then the header of a natural loop, and
//! cycles within the rest are treated in the same way. A header with several back edges gets one latch. Where
//! some back edges are to form a loop of their own, [`shared_headers`](super::shared_headers) has given that
//! loop a header before.
//!
//! Assumes legal CLIF in which every block is reachable. The function computes the same as before, and
//! dominance among the old blocks is unchanged: each entry of a cycle is reachable without the others, so no
//! block in the cycle dominates it, and a block outside dominates all entries or none.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Type, Value};
use hashbrown::{HashMap, HashSet};
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::TooMany;
use super::edges::{Edge, edges_to, hand_on};
use crate::analysis::{Graph, is_reducible};
use crate::intrinsic::Intrinsic;
use crate::plan::Steering;

/// The largest number of arguments that edges pass to dispatch blocks: each edge passes the arguments of all
/// entries, so there are as many as edges times entries.
const MAX_DISPATCHED: usize = 100_000;

/// See the [module](self). Conditions that steer lanes are added to `steering`. Returns the graph of the result.
///
/// # Errors
///
/// If edges would pass more than [`MAX_DISPATCHED`] arguments to the dispatch blocks.
pub(crate) fn canonicalize(func: &mut Function, steering: &mut Steering) -> Result<Graph, TooMany> {
    let mut cfg = ControlFlowGraph::with_function(func);
    let mut dominators = DominatorTree::with_function(func, &cfg);
    if !is_reducible(&cfg, &dominators) {
        let mut dispatched = 0;
        let mut todo = vec![dominators.cfg_postorder().to_vec()];
        while let Some(blocks) = todo.pop() {
            for cycle in cycles(func, &blocks) {
                todo.push(without_header(func, &mut cfg, cycle, steering, &mut dispatched)?);
            }
        }
        cfg.compute(func);
        dominators.compute(func, &cfg);
    }
    if one_latch_each(func, &cfg, &dominators) {
        return Ok(Graph::compute(func));
    }
    Ok(Graph::with_dominators(func, cfg, dominators))
}

/// The strongly connected components of the graph of these blocks that contain a cycle.
fn cycles(func: &Function, blocks: &[Block]) -> Vec<Vec<Block>> {
    let mut graph: DiGraph<Block, ()> = DiGraph::new();
    let nodes: HashMap<Block, NodeIndex> =
        blocks.iter().map(|&block| (block, graph.add_node(block))).collect();
    let mut own_successor = HashSet::new();
    for &block in blocks {
        for successor in func.block_successors(block) {
            if let Some(&to) = nodes.get(&successor) {
                graph.add_edge(nodes[&block], to, ());
            }
            if successor == block {
                own_successor.insert(block);
            }
        }
    }
    let parts = tarjan_scc(&graph).into_iter();
    let parts = parts.map(|part| part.into_iter().map(|node| graph[node]).collect::<Vec<_>>());
    parts.filter(|part| part.len() > 1 || own_successor.contains(&part[0])).collect()
}

/// The blocks of a cycle without its header, which is created if there is none.
fn without_header(
    func: &mut Function,
    cfg: &mut ControlFlowGraph,
    cycle: Vec<Block>,
    steering: &mut Steering,
    dispatched: &mut usize,
) -> Result<Vec<Block>, TooMany> {
    let inside: HashSet<Block> = cycle.iter().copied().collect();
    let outer = |&&block: &&Block| cfg.pred_iter(block).any(|pred| !inside.contains(&pred.block));
    let mut entries: Vec<Block> = cycle.iter().filter(outer).copied().collect();
    entries.sort_unstable();
    if let [header] = entries[..] {
        return Ok(cycle.into_iter().filter(|&block| block != header).collect());
    }
    let params: usize = entries.iter().map(|&entry| func.dfg.num_block_params(entry)).sum();
    let edges: usize = entries.iter().map(|&entry| cfg.pred_iter(entry).count()).sum();
    *dispatched = dispatched.saturating_add(edges.saturating_mul(1 + params));
    if *dispatched > MAX_DISPATCHED {
        let what = "arguments that edges pass into cycles with several entries";
        return Err(TooMany { what, given: *dispatched, limit: MAX_DISPATCHED });
    }
    let mut edges: Vec<Edge> =
        entries.iter().flat_map(|&entry| edges_to(func, cfg, entry)).collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.inst, edge.side));
    let Dispatch { ways, chain } = insert_dispatch(func, &entries, &edges, steering);
    let mut rest = cycle;
    let ways = edges.iter().zip(ways).filter(|(edge, _)| inside.contains(&edge.from));
    rest.extend(ways.map(|(_, way)| way).chain(chain));
    cfg.compute(func);
    Ok(rest)
}

/// The blocks of a dispatch, except the one that it begins with.
pub(super) struct Dispatch {
    /// For each edge, the block that says where it leads to.
    ways: Vec<Block>,
    /// The comparisons.
    chain: Vec<Block>,
}

/// Redirects `edges`, which lead to `entries`, through a new dispatch block.
pub(super) fn insert_dispatch(
    func: &mut Function,
    entries: &[Block],
    edges: &[Edge],
    steering: &mut Steering,
) -> Dispatch {
    let dispatch = func.dfg.make_block();
    let number = func.dfg.append_block_param(dispatch, I32);
    // The concatenated parameters of all entries.
    let types: Vec<Vec<Type>> =
        entries.iter().map(|&entry| func.dfg.block_param_types(entry).collect()).collect();
    let params: Vec<Vec<Value>> = types
        .iter()
        .map(|types| types.iter().map(|&ty| func.dfg.append_block_param(dispatch, ty)).collect())
        .collect();
    let mut ways = Vec::new();
    for before in edges {
        let target = before.target(func);
        let args = before.arguments(func);
        let way = func.dfg.make_block();
        func.layout.append_block(way);
        let place = func.srcloc(before.inst);
        let mut at = FuncCursor::new(func).with_srcloc(place).at_bottom(way);
        let index = entries.iter().position(|&entry| entry == target);
        let index = index.expect("edges lead to entries");
        let mut all: Vec<BlockArg> = vec![at.ins().iconst(I32, index as i64).into()];
        for (other, types) in types.iter().enumerate() {
            if other == index {
                all.extend(args.iter().copied());
            } else {
                all.extend(types.iter().map(|&ty| BlockArg::Value(undef(&mut at, ty))));
            }
        }
        at.ins().jump(dispatch, &all);
        before.redirect(func, way, &[]);
        ways.push(way);
    }
    let chain = dispatch_body(func, dispatch, number, entries, &params, steering);
    Dispatch { ways, chain }
}

/// Writes a chain of comparisons; returns its blocks except the first.
fn dispatch_body(
    func: &mut Function,
    dispatch: Block,
    number: Value,
    entries: &[Block],
    params: &[Vec<Value>],
    steering: &mut Steering,
) -> Vec<Block> {
    let mut chain = Vec::new();
    let mut here = dispatch;
    for (index, (&entry, params)) in entries.iter().zip(params).enumerate() {
        let args: Vec<BlockArg> = params.iter().map(|&param| param.into()).collect();
        func.layout.append_block(here);
        let mut at = FuncCursor::new(func).at_bottom(here);
        if index + 1 == entries.len() {
            at.ins().jump(entry, &args);
            break;
        }
        let next = at.func.dfg.make_block();
        let index = at.ins().iconst(I32, index as i64);
        let here_it_is = at.ins().icmp(IntCC::Equal, number, index);
        at.ins().brif(here_it_is, entry, &args, next, &[]);
        steering.insert(here_it_is);
        chain.push(next);
        here = next;
    }
    chain
}

/// An undefined value.
pub(super) fn undef(at: &mut FuncCursor<'_>, ty: Type) -> Value {
    let callee = Intrinsic::Undef.declare(at.func, ty);
    let call = at.ins().call(callee, &[]);
    at.func.dfg.first_result(call)
}

/// Gives each loop header with several back edges a latch that all of these go through. Returns whether there was one.
fn one_latch_each(func: &mut Function, cfg: &ControlFlowGraph, dominators: &DominatorTree) -> bool {
    let mut changed = false;
    for &header in dominators.cfg_postorder() {
        // Several latches have several branches.
        if cfg.pred_iter(header).nth(1).is_none() {
            continue;
        }
        let back = |edge: &Edge| dominators.block_dominates(header, edge.from);
        let back: Vec<Edge> = edges_to(func, cfg, header).into_iter().filter(back).collect();
        let mut latches = back.iter().map(|edge| edge.inst);
        let first = latches.next();
        if latches.all(|inst| Some(inst) == first) {
            continue;
        }
        changed = true;
        let latch = hand_on(func, header);
        for edge in back {
            let args = edge.arguments(func);
            edge.redirect(func, latch, &args);
        }
    }
    changed
}
