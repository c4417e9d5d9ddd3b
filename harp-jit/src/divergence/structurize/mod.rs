//! Rebuilds a function so that split and join suffice for every remaining divergent branch.
//!
//! The function is rewritten block by block, through a builder that repairs SSA form ([`ssa`]): every value
//! whose definition may no longer dominate its uses becomes a variable. The code of the old function becomes:
//!
//! * a [nested](super::regions::Region::nested) region stays as it is, with a join block at its end;
//! * a *linear* region becomes a sequence of its parts in topological order. A variable says where each lane
//!   goes next; a guard in front of each part lets in the lanes that run it (Moll and Hack, "Partial
//!   control-flow linearization", PLDI 2018). A nested region inside is one part;
//! * a *predicated* region is copied as it is, for if-conversion later;
//! * a loop that lanes leave in different iterations is *masked*: it runs until no lane is live ([`loops`]).
//!
//! Uniform branches and loops stay as they are, also within regions.
//!
//! The facts about the old function say which branches diverge; the new function is not analysed. Assumes
//! canonical control flow ([`canonicalize`](mod@super::canonicalize)). The result has all blocks of the old
//! function, with their instructions in order, and further blocks around them.

use std::ops::Range;

use cranelift_codegen::Context;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{Block, Function, InstBuilder, Layout, Opcode, Type, Value};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::Variable;
use hashbrown::{HashMap, HashSet};

use super::regions::{RegionId, Regions};
use super::{Decisions, Method, Prepared, TooMany, spinning};
use crate::aliases;
use crate::analysis::{Graph, LevelId, LiveRanges, Node, Uniformity};
use crate::intrinsic::Intrinsic;
use crate::plan::{Own, Plan, PredicatedRegion, Split, Steering};

mod dominators;
mod edges;
mod linear;
mod loops;
mod ssa;
mod values;

use edges::Codes;
use ssa::{Builder, MAX_KNOWN};

/// The function with managed divergence, the graph of its blocks, and how its branches are executed.
///
/// # Errors
///
/// If the SSA builder would track more than [`MAX_KNOWN`] values of variables at the ends of blocks.
pub(crate) fn structurize(
    prepared: &Prepared,
    decisions: &Decisions,
) -> Result<(Function, Graph, Plan), TooMany> {
    let Prepared { func: old, facts, regions, steering, own } = prepared;
    let mut func = old.clone();
    func.layout = Layout::new();
    let (values, blocks) = (func.dfg.num_values(), func.dfg.num_blocks());
    let mut writer = Writer {
        old,
        facts,
        regions,
        decisions,
        steering,
        own,
        copied: EntitySet::new(),
        b: Builder::new(&mut func),
        blocks: SecondaryMap::with_capacity(blocks),
        variables: SecondaryMap::with_capacity(values),
        escapes: SecondaryMap::with_capacity(values),
        live: LiveRanges::new(old, facts.flow()),
        fixed: SecondaryMap::with_capacity(values),
        read_at_once: EntitySet::new(),
        here: HashMap::new(),
        constants: HashMap::new(),
        undefs: Vec::new(),
        scopes: Vec::new(),
        joins: HashMap::new(),
        resets: SecondaryMap::new(),
        back: SecondaryMap::new(),
        verbatim: 0,
        predicated: Vec::new(),
        plan: Plan { origins: Some(HashMap::new()), ..Plan::default() },
    };
    writer.function();
    let Writer { mut plan, predicated, copied, b, .. } = writer;
    if b.known() > MAX_KNOWN {
        let what = "values to keep while lanes wait for others";
        return Err(TooMany { what, given: b.known(), limit: MAX_KNOWN });
    }
    spinning::forget_ways(&mut func);
    plan.predicated =
        predicated.into_iter().map(|(head, end)| predicated_region(&func, head, end)).collect();
    let (func, graph, steering) = without_constant_parameters(func, &plan.steering);
    plan.steering.clear();
    plan.steering.extend(steering.into_iter().filter(|&value| !copied.contains(value)));
    Ok((func, graph, plan))
}

/// Removes block parameters for which all edges pass the same value. Returns the graph, too, which stays the same, and what
/// these values are now: a parameter that is gone has no name any more.
fn without_constant_parameters(
    func: Function,
    values: &EntitySet<Value>,
) -> (Function, Graph, Vec<Value>) {
    let mut context = Context::for_function(func);
    context.compute_cfg();
    context.compute_domtree();
    // On unless it is turned off.
    let mut flags = settings::builder();
    flags.set("enable_verifier", "false").expect("Cranelift has this setting");
    let flags = settings::Flags::new(flags);
    context.remove_constant_phis(&flags).expect("the verifier is not asked");
    let dfg = &mut context.func.dfg;
    let values = values.iter().map(|value| dfg.resolve_aliases(value)).collect();
    aliases::resolve_all(dfg);
    let Context { func, cfg, domtree, .. } = context;
    let graph = Graph::with_dominators(&func, cfg, domtree);
    (func, graph, values)
}

/// The blocks between `head` and `end`, in topological order.
fn predicated_region(func: &Function, head: Block, end: Block) -> PredicatedRegion {
    let mut order = Vec::new();
    let mut seen: HashSet<Block> = HashSet::from([head, end]);
    let mut stack = vec![(head, func.block_successors(head).collect::<Vec<_>>())];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => {
                stack.push((next, func.block_successors(next).collect()));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.pop();
    order.reverse();
    PredicatedRegion { head, blocks: order, end }
}

/// The context of the code being written, on one level.
struct Scope {
    level: LevelId,
    /// From the outermost to the innermost.
    frames: Vec<Frame>,
    /// Set in a masked loop.
    mask: Option<Mask>,
}

/// Where edges that leave a part of a level lead instead.
enum Frame {
    /// Edges to `end` lead to `block`.
    End { end: usize, block: Block },
    /// Edges out of `members` set the code of their target and lead to `next`, except edges to `direct`.
    Part { members: Range<usize>, codes: Codes, next: Block, direct: Option<usize> },
}

/// A masked loop. All edges that end an iteration lead to `merge`.
#[derive(Clone, Copy)]
struct Mask {
    /// Whether the lane continues, if a variable says so.
    live: Option<Variable>,
    /// The exit by which the lane left, if there are several.
    exit: Option<Variable>,
    merge: Block,
    /// Whether lanes that are not live run the header, too.
    open_header: bool,
}

struct Writer<'a> {
    old: &'a Function,
    facts: &'a Uniformity,
    regions: &'a Regions,
    decisions: &'a Decisions,
    /// Conditions of the old function that steer lanes.
    steering: &'a Steering,
    /// Calls in the old function that are not the program's own.
    own: &'a Own,
    /// Values that the program itself computes: they are not steering conditions, even if they are used as
    /// such.
    copied: EntitySet<Value>,
    b: Builder<'a>,
    /// The new targets of edges to old blocks.
    blocks: SecondaryMap<Block, Option<Block>>,
    /// Variables of values that may differ in blocks other than their own.
    variables: SecondaryMap<Value, Option<Variable>>,
    /// Values that are used outside of the loop of their definition.
    escapes: SecondaryMap<Value, bool>,
    /// Where values of the old function are live.
    live: LiveRanges<'a>,
    /// Parameters that share their variables with others.
    read_at_once: EntitySet<Value>,
    /// The new values of those that dominate all their uses.
    fixed: SecondaryMap<Value, Option<Value>>,
    /// The new values, in the current old block, of those that have a variable.
    here: HashMap<Value, Value>,
    /// Constants of the current new block.
    constants: HashMap<(Block, Value), Value>,
    /// An undefined value of each type.
    undefs: Vec<(Type, Value)>,
    /// The current scopes; the innermost level is the last.
    scopes: Vec<Scope>,
    /// The join blocks of nodes at which lanes diverge.
    joins: HashMap<(LevelId, usize), Block>,
    /// Variables that become undefined at the begin of a block.
    resets: SecondaryMap<Block, Vec<(Variable, Type)>>,
    /// The targets of back edges to a header, in loops that are not masked.
    back: SecondaryMap<Block, Option<Block>>,
    /// The number of enclosing regions that are copied as they are.
    verbatim: usize,
    /// Heads and ends of the predicated regions.
    predicated: Vec<(Block, Block)>,
    plan: Plan,
}

impl Writer<'_> {
    fn function(&mut self) {
        self.find_variables();
        for block in self.facts.flow().blocks() {
            self.blocks[block] = Some(self.b.create_block());
        }
        for level in [LevelId::LIVE, LevelId::DOOMED] {
            self.scopes.push(Scope { level, frames: Vec::new(), mask: None });
            self.nodes(level, 0..self.end_of(level), None);
            self.scopes.pop();
        }
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().expect("code is written on some level")
    }

    /// The new block for an old one, as edges from elsewhere see it.
    fn entry(&self, block: Block) -> Block {
        self.blocks[block].expect("what can be reached has a block")
    }

    /// The new block where a node begins.
    fn node_entry(&self, level: LevelId, node: usize) -> Block {
        let levels = self.facts.flow().levels();
        self.entry(levels.first_block(levels.level(level).nodes[node]))
    }

    /// Continues in `block`, whose predecessors are all known, and seals it.
    fn start(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    /// Writes these nodes: all or some of those of the region `within`.
    fn nodes(&mut self, level: LevelId, nodes: Range<usize>, within: Option<RegionId>) {
        if self.verbatim > 0 {
            return nodes.for_each(|node| self.node(level, node));
        }
        for (node, inner) in self.regions.parts(level, nodes, within) {
            match inner {
                Some(inner) => self.region(inner),
                None => self.node(level, node),
            }
        }
    }

    fn region(&mut self, id: RegionId) {
        let regions = self.regions;
        let region = regions.get(id);
        let (level, end) = (region.level, region.end);
        let open = level == LevelId::DOOMED && end == self.end_of(level);
        match self.decisions.technique(regions, id) {
            // No lane returns from there.
            _ if open => self.node(level, region.head),
            Method::SplitJoin => {
                let join = self.b.create_block();
                self.joins.insert((level, region.head), join);
                self.scope().frames.push(Frame::End { end, block: join });
                self.nodes(level, region.nodes.clone(), Some(id));
                self.scope().frames.pop();
                self.start(join);
                self.jump_to_node(level, end);
            }
            Method::Predicate => {
                let after = self.b.create_block();
                self.scope().frames.push(Frame::End { end, block: after });
                self.verbatim += 1;
                self.nodes(level, region.nodes.clone(), Some(id));
                self.verbatim -= 1;
                self.scope().frames.pop();
                let head = self.node_entry(level, region.head);
                // If both edges of the branch lead to one block, a choice of values has replaced it.
                let last = self.b.func.layout.last_inst(head);
                if last.is_some_and(|inst| self.b.func.dfg.insts[inst].opcode() == Opcode::Brif) {
                    self.predicated.push((head, after));
                }
                self.start(after);
                self.jump_to_node(level, end);
            }
            Method::Linear => self.linear(id),
        }
    }

    fn end_of(&self, level: LevelId) -> usize {
        self.facts.flow().levels().level(level).end()
    }

    fn node(&mut self, level: LevelId, node: usize) {
        match self.facts.flow().levels().level(level).nodes[node] {
            Node::Block(block) => {
                match self.back[block] {
                    // It has a back edge, too: not all predecessors are known yet.
                    Some(header) => self.b.switch_to_block(header),
                    None => self.start(self.entry(block)),
                }
                self.block(level, node, block);
            }
            Node::Loop(inner) if self.regions.is_masked(inner) => {
                self.masked_loop(level, node, inner);
            }
            Node::Loop(inner) => self.plain_loop(inner),
        }
    }

    /// Writes an old block at the builder's position.
    fn block(&mut self, level: LevelId, node: usize, block: Block) {
        self.body(block);
        self.terminator(level, node, block);
    }

    /// Writes the instructions of an old block before its terminator.
    fn body(&mut self, block: Block) {
        self.here.clear();
        if self.old.layout.entry_block() == Some(block) {
            self.function_parameters(block);
        }
        self.forget(block);
        self.read_parameters(block);
        let old = self.old;
        for inst in old.layout.block_insts(block) {
            if !old.dfg.insts[inst].opcode().is_terminator() {
                self.copy(inst);
            }
        }
    }

    /// Makes the variables undefined that are reset at the begin of `block`.
    fn forget(&mut self, block: Block) {
        // Looking at what is not there does not make room for it.
        if self.resets[block].is_empty() {
            return;
        }
        for (variable, ty) in std::mem::take(&mut self.resets[block]) {
            let undef = self.undef(ty);
            self.b.def_var(variable, undef);
        }
    }

    /// Records that the branch just written is a split.
    fn split(&mut self, branch: cranelift_codegen::ir::Inst, join: Option<Block>) {
        self.plan.add(Split { branch, join });
    }

    /// Whether lanes may diverge after a node.
    fn parts(&self, level: LevelId, node: usize) -> bool {
        let innermost = self.regions.innermost(level, node);
        innermost.is_some_and(|id| self.regions.get(id).branches.contains(&node))
    }

    /// The types that structurization itself needs undefined values of, besides those of the variables.
    const OWN_TYPES: [Type; 2] = [I8, I32];

    fn any(&mut self, condition: Value) -> Value {
        let callee = Intrinsic::Any.declare(self.b.func, I8);
        let call = self.b.ins().call(callee, &[condition]);
        self.plan.own.insert(call);
        self.b.func.dfg.first_result(call)
    }

    /// Whether an old block ends in a branch.
    fn is_brif(&self, block: Block) -> bool {
        let last = self.old.layout.last_inst(block);
        last.is_some_and(|inst| self.old.dfg.insts[inst].opcode() == Opcode::Brif)
    }
}
