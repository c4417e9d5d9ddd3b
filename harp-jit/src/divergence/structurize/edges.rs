//! The edges of the new function: their targets, and the variables that they set.
//!
//! An edge sets the parameters of its target. Where the code around it is rearranged, the edge leads
//! elsewhere first, and sets variables that steer its lanes: see [`Frame`].

use std::rc::Rc;

use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{Block, BlockCall, InstBuilder, InstructionData, Type, Value};
use cranelift_frontend::Variable;
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::{Frame, Writer};
use crate::analysis::{LevelId, Node};
use crate::plan::Origin;

/// The codes of the targets that lanes of a linear region may go to.
#[derive(Clone)]
pub(super) struct Codes {
    pub(super) variable: Variable,
    pub(super) ty: Type,
    /// Codes by node, or by the region's end. Targets that no guard tests have no code.
    pub(super) of: Rc<HashMap<usize, i64>>,
}

/// The value that an edge sets a variable to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// A value of the old function.
    Old(Value),
    New(Value),
    Number(Type, i64),
}

impl Set {
    /// Whether the value is a number of the truth values' type: 0 or 1.
    fn is_truth(self) -> bool {
        matches!(self, Set::Number(I8, _))
    }
}

/// The value of a variable for lanes that take the other edge of a branch, if that edge does not set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// Undefined: no lane reads it.
    Free,
    /// Unchanged.
    Kept,
    /// Unchanged, if those lanes may still read this parameter: see [`Writer::is_read`].
    KeptIfRead(Value),
    /// True.
    True,
}

pub(super) type Assignment = (Variable, Set, Otherwise);

/// What an edge sets: mostly little.
type Assignments = SmallVec<[Assignment; 4]>;

/// The first target of an edge, and the variables that the edge sets.
#[derive(Clone, Debug)]
pub(super) struct Landing {
    pub(super) block: Block,
    pub(super) sets: Assignments,
    /// The blocks of the old function that its lanes will go to.
    pub(super) bound_for: SmallVec<[Block; 4]>,
}

impl Landing {
    /// A landing at a block of the new function, which sets nothing.
    pub(super) fn at(block: Block) -> Landing {
        Landing { block, sets: SmallVec::new(), bound_for: SmallVec::new() }
    }
}

impl Writer<'_> {
    pub(super) fn terminator(&mut self, level: LevelId, node: usize, block: Block) {
        let old = self.old;
        let inst = old.layout.last_inst(block).expect("a block ends in a terminator");
        self.b.set_srcloc(old.srcloc(inst));
        match old.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let landing = self.edge(block, &destination);
                self.jump(landing);
            }
            InstructionData::Brif { arg, blocks, .. } => {
                let condition = self.value(arg);
                if self.steering.contains(arg) {
                    self.plan.steering.insert(condition);
                }
                let [on_true, on_false] = blocks.map(|call| self.edge(block, &call));
                self.branch(condition, on_true, on_false, Some((level, node)));
            }
            _ => {
                self.build(inst);
            }
        }
    }

    /// The landing of an edge of the old function.
    pub(super) fn edge(&mut self, from: Block, call: &BlockCall) -> Landing {
        let pool = &self.old.dfg.value_lists;
        let target = call.block(pool);
        let args = call.args(pool).filter_map(|arg| arg.as_value());
        let mut landing = self.land(from, target);
        let params = self.old.dfg.block_params(target);
        let sets = params.iter().zip(args).filter_map(|(&param, arg)| {
            Some((self.variables[param]?, Set::Old(arg), Otherwise::KeptIfRead(param)))
        });
        // The arguments are computed before the variables that steer lanes are set.
        landing.sets = sets.chain(std::mem::take(&mut landing.sets)).collect();
        landing
    }

    /// Whether lanes that will go to any of these blocks may read a parameter before they set it.
    ///
    /// If so, they must not overwrite it where they share a block with lanes that set it: *an edge sets
    /// variables for the lanes that take it, and all other lanes keep what they may read*. Lanes may read the
    /// parameter if it is live in such a block; those of the headers of enclosing loops can be, and a back edge
    /// sets them anew. Also, lanes that have left a loop with an open header run that header in every later
    /// iteration, so what the header reads must stay as it was when they left.
    fn is_read(&mut self, param: Value, bound_for: &[Block]) -> bool {
        let live = self.live.of(param, self.home(param));
        if bound_for.iter().any(|&block| live.is_live_in(block)) {
            return true;
        }
        let levels = self.facts.flow().levels();
        let open = self.scopes.iter().filter(|scope| scope.mask.is_some_and(|m| m.open_header));
        let mut headers = open.map(|scope| levels.first_block(levels.level(scope.level).nodes[0]));
        headers.any(|header| live.is_read_in(header))
    }

    /// The landing of an edge to an old block.
    pub(super) fn land(&mut self, from: Block, target: Block) -> Landing {
        let flow = self.facts.flow();
        let reaches_return = |block| flow.reaches_return(block);
        let (mut sets, bound_for) = (Assignments::new(), smallvec![target]);
        if reaches_return(from) && !reaches_return(target) {
            return Landing { block: self.entry(target), sets, bound_for };
        }
        let levels = flow.levels();
        for depth in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[depth];
            let level = levels.level(scope.level);
            let back = level.around.is_some() && levels.first_block(level.nodes[0]) == target;
            let node = levels.node_at(scope.level, target).filter(|_| !back);
            if node.is_none()
                && let Some(mask) = scope.mask
                && !back
            {
                sets.extend(mask.live.map(|live| (live, Set::Number(I8, 0), Otherwise::True)));
                let around = level.around.expect("a masked level is a loop's");
                let exit = levels.exits(around).iter().position(|&exit| exit == target);
                let number = exit.expect("an edge out of a loop leads to an exit") as i64;
                // Lanes that stay may leave by an open header later, which does not set the variable.
                let kept = if mask.open_header { Otherwise::Kept } else { Otherwise::Free };
                let set = |exit| (exit, self.exit_number(around, number), kept);
                sets.extend(mask.exit.map(set));
            }
            if let Some(block) = self.route(depth, node.unwrap_or(level.end()), &mut sets) {
                return Landing { block, sets, bound_for };
            }
            if node.is_some() {
                return Landing { block: self.entry(target), sets, bound_for };
            }
            if back {
                let block = self.back[target].expect("a loop's header comes first");
                return Landing { block, sets, bound_for };
            }
        }
        Landing { block: self.entry(target), sets, bound_for }
    }

    /// The block where lanes go first on their way to a node of a level, if they do not go there directly.
    fn route(&self, depth: usize, node: usize, sets: &mut Assignments) -> Option<Block> {
        let scope = &self.scopes[depth];
        for frame in scope.frames.iter().rev() {
            match frame {
                Frame::End { end, block } if *end == node => return Some(*block),
                Frame::End { .. } => {}
                Frame::Part { direct, .. } if *direct == Some(node) => return None,
                Frame::Part { members, codes, next, .. } => {
                    if !members.contains(&node) {
                        let code = codes.of.get(&node);
                        sets.extend(code.map(|&code| {
                            (codes.variable, Set::Number(codes.ty, code), Otherwise::Free)
                        }));
                        return Some(*next);
                    }
                }
            }
        }
        let at_end = node == self.end_of(scope.level);
        scope.mask.filter(|_| at_end).map(|mask| mask.merge)
    }

    /// Sends lanes that have run a region to its end.
    pub(super) fn jump_to_node(&mut self, level: LevelId, node: usize) {
        let mut sets = Assignments::new();
        let routed = self.route(self.scopes.len() - 1, node, &mut sets);
        let block = routed.unwrap_or_else(|| self.node_entry(level, node));
        self.jump(Landing { sets, ..Landing::at(block) });
    }

    pub(super) fn jump(&mut self, landing: Landing) {
        self.assign(landing.sets.iter().map(|&(variable, set, _)| (variable, set)));
        self.b.ins().jump(landing.block, &[]);
    }

    /// Sets variables simultaneously.
    fn assign(&mut self, sets: impl Iterator<Item = (Variable, Set)>) {
        let values: SmallVec<[(Variable, Value); 4]> =
            sets.map(|(variable, set)| (variable, self.read(set))).collect();
        for (variable, value) in values {
            self.b.def_var(variable, value);
        }
    }

    fn read(&mut self, set: Set) -> Value {
        match set {
            Set::Old(value) => self.value(value),
            Set::New(value) => value,
            Set::Number(ty, number) => self.b.ins().iconst(ty, number),
        }
    }

    /// Writes a branch on a new value; `node` is the node whose branch it is. If both edges lead to one
    /// block, only a choice of values is left.
    pub(super) fn branch(
        &mut self,
        condition: Value,
        on_true: Landing,
        on_false: Landing,
        node: Option<(LevelId, usize)>,
    ) {
        if on_true.block == on_false.block {
            let landing = self.merge(condition, on_true, on_false);
            self.jump(landing);
            return;
        }
        let place = self.b.srcloc();
        let join = node.and_then(|node| self.joins.remove(&node));
        let sides = [(1, on_true), (0, on_false)].map(|(truth, landing)| {
            let edge = if landing.sets.is_empty() { landing.block } else { self.b.create_block() };
            (truth, landing, edge)
        });
        let parts = node.is_some_and(|(level, node)| self.parts(level, node));
        let truth = self.truth_for(condition, &sides);
        let condition = truth.unwrap_or(condition);
        let inst = self.b.ins().brif(condition, sides[0].2, &[], sides[1].2, &[]);
        if parts && self.verbatim == 0 {
            self.split(inst, join);
        }
        if let Some(origin) = node.and_then(|(level, node)| self.origin(level, node)) {
            self.plan.copied(inst, origin);
        }
        for (side, landing, edge) in sides {
            if edge != landing.block {
                self.start(edge);
                self.b.set_srcloc(place);
                self.edge_block(landing, truth, side);
            }
        }
    }

    /// The original branch at the end of a node that is a block. Lanes that have left a masked loop may run
    /// its header, too.
    fn origin(&self, level: LevelId, node: usize) -> Option<Origin> {
        let Node::Block(block) = self.facts.flow().levels().level(level).nodes[node] else {
            return None;
        };
        let branch = self.old.layout.last_inst(block).filter(|_| self.is_brif(block))?;
        let mask = self.scopes.last().and_then(|scope| scope.mask);
        let exact = node != 0 || mask.is_none_or(|mask| !mask.open_header);
        Some(Origin { branch, exact })
    }

    /// The condition as a truth value, if that can replace one that an edge sets.
    fn truth_for(&mut self, condition: Value, sides: &[(i64, Landing, Block); 2]) -> Option<Value> {
        let wanted = sides.iter().any(|(side, landing, _)| {
            landing.sets.iter().any(|&(_, set, _)| set == Set::Number(I8, *side))
        });
        wanted.then(|| self.truth(condition))
    }

    fn edge_block(&mut self, landing: Landing, truth: Option<Value>, side: i64) {
        let sets = landing.sets.iter().map(|&(variable, set, _)| match truth {
            Some(truth) if set == Set::Number(I8, side) => (variable, Set::New(truth)),
            _ => (variable, set),
        });
        self.assign(sets);
        self.b.ins().jump(landing.block, &[]);
    }

    /// Merges the two edges into one.
    pub(super) fn merge(&mut self, condition: Value, a: Landing, b: Landing) -> Landing {
        let find = |landing: &Landing, wanted: Variable| {
            landing.sets.iter().find(|(variable, ..)| *variable == wanted).map(|set| set.1)
        };
        let only_b = b.sets.iter().filter(|(variable, ..)| find(&a, *variable).is_none());
        let all: Assignments = a.sets.iter().chain(only_b).copied().collect();
        let mut sides: SmallVec<[_; 4]> = SmallVec::new();
        for (variable, set, otherwise) in all {
            let (set_by_a, set_by_b) = (find(&a, variable), find(&b, variable));
            let others = if set_by_a.is_none() { &a.bound_for } else { &b.bound_for };
            let other = match otherwise {
                _ if set_by_a.is_some() && set_by_b.is_some() => None,
                Otherwise::Free => None,
                Otherwise::True => Some(Set::Number(I8, 1)),
                Otherwise::KeptIfRead(param) if !self.is_read(param, others) => None,
                Otherwise::Kept | Otherwise::KeptIfRead(_) => {
                    Some(Set::New(self.b.use_var(variable)))
                }
            };
            let on_true = set_by_a.or(other).unwrap_or(set);
            let on_false = set_by_b.or(other).unwrap_or(set);
            sides.push((variable, on_true, on_false, otherwise));
        }
        // If the condition becomes a truth value, that is used for all choices.
        let becomes = |&(_, x, y, _): &(_, Set, Set, _)| x != y && x.is_truth() && y.is_truth();
        let condition = if sides.iter().any(becomes) { self.truth(condition) } else { condition };
        let negates = |x: Set, y: Set| (x, y) == (Set::Number(I8, 0), Set::Number(I8, 1));
        let is_read = sides.iter().any(|&(_, x, y, _)| x != y && !negates(x, y));
        let mut sets = Assignments::new();
        for (variable, on_true, on_false, otherwise) in sides {
            let value = match negates(on_true, on_false) {
                true => self.not(condition, is_read),
                false => self.choose(condition, on_true, on_false),
            };
            sets.push((variable, Set::New(value), otherwise));
        }
        let mut bound_for = a.bound_for;
        bound_for.extend(b.bound_for);
        Landing { block: a.block, sets, bound_for }
    }

    /// Chooses one of two values by a condition; it is the condition itself if they are true and false.
    fn choose(&mut self, condition: Value, on_true: Set, on_false: Set) -> Value {
        match (on_true, on_false) {
            (x, y) if x == y => self.read(x),
            (Set::Number(I8, 1), Set::Number(I8, 0)) => condition,
            (x, y) => {
                let (x, y) = (self.read(x), self.read(y));
                if x == y { x } else { self.b.ins().select(condition, x, y) }
            }
        }
    }
}
