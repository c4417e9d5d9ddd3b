//! Loops in the new function.
//!
//! A loop that its lanes leave together, by its header's branch or any other uniform one, keeps its form. A
//! loop that they leave in different iterations is *masked*:
//!
//! ```text
//!             live = true
//!     round:  split on live: the body, in which all ways end at `merge`; lanes that leave
//!             the loop set live = false
//!     merge:  if any lane is live, go to `round`
//!     after:  go where each lane left to
//! ```
//!
//! Lanes that have left keep the values of their last iteration: their edge, from `round` to `merge`, sets
//! nothing.
//!
//! A header that only computes, and whose branch is an exit for lanes, is run by all lanes in every iteration
//! (an *open* header). Its condition is then the guard of the body. For lanes that left by it, it has the
//! same value in each later iteration, so without other exits no variable needs to say which lanes are live:
//!
//! ```text
//!     round:  the header; if no lane goes on, go to `after`
//!             split on the condition: the body
//!     merge:  go to `round`
//! ```

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{Block, Inst, InstBuilder, InstructionData, Type, Value};
use cranelift_codegen::loop_analysis::Loop;
use cranelift_frontend::Variable;

use super::edges::{Landing, Set};
use super::{Mask, Scope, Writer};
use crate::analysis::{LevelId, Node};

/// A header that all lanes of the loop run.
struct OpenHeader {
    branch: Inst,
    /// The edge out of the loop: 0 if the condition is true.
    leaves: usize,
    /// Whether it is the only exit.
    only_exit: bool,
}

impl Writer<'_> {
    /// Writes a loop that all of its lanes leave together.
    pub(super) fn plain_loop(&mut self, inner: Loop) {
        let levels = self.facts.flow().levels();
        let level = levels.of_loop(inner);
        let header = levels.first_block(Node::Loop(inner));
        let block = self.entry(header);
        self.back[header] = Some(block);
        self.scopes.push(Scope { level, frames: Vec::new(), mask: None });
        self.nodes(level, 0..self.end_of(level), None);
        self.scopes.pop();
        self.b.seal_block(block);
    }

    /// Writes a loop that runs until none of its lanes is live; `node` on `outer` is the loop.
    pub(super) fn masked_loop(&mut self, outer: LevelId, node: usize, inner: Loop) {
        let levels = self.facts.flow().levels();
        let level = levels.of_loop(inner);
        let header = levels.first_block(Node::Loop(inner));
        let open = self.open_header(level, header);
        let needs_live = open.as_ref().is_none_or(|open| !open.only_exit);

        let before = self.entry(header);
        self.start(before);
        self.forget(header);
        self.forget_loop(inner, header);
        let [round, merge, after] = std::array::from_fn(|_| self.b.create_block());
        let live = needs_live.then(|| self.b.declare_var(I8));
        if let Some(live) = live {
            let yes = self.b.ins().iconst(I8, 1);
            self.b.def_var(live, yes);
        }
        let exit = self.exit_variable(inner);
        self.b.ins().jump(round, &[]);
        self.b.switch_to_block(round);

        let mask = Mask { live, exit, merge, open_header: open.is_some() };
        self.scopes.push(Scope { level, frames: Vec::new(), mask: Some(mask) });
        let passed = match open {
            Some(open) => self.open_rounds(level, header, &open, mask, after),
            None => {
                self.closed_rounds(level, header, mask, round, after);
                Vec::new()
            }
        };
        self.scopes.pop();
        self.b.seal_block(round);
        self.start(after);
        for (variable, value) in passed {
            self.b.def_var(variable, value);
        }
        self.dispatch(outer, node, inner, header, exit);
    }

    /// Makes undefined, where a loop begins, what its blocks define and the parameters of its exits: each
    /// lane sets them in the loop before it reads them. Otherwise they would be live from as far back as the
    /// function's entry. Headers of enclosing loops are exits, too, but their parameters belong to the
    /// current iteration.
    fn forget_loop(&mut self, inner: Loop, header: Block) {
        let flow = self.facts.flow();
        let levels = flow.levels();
        let level = levels.of_loop(inner);
        let own = levels.blocks(level, 0..levels.level(level).end()).into_iter();
        let mut variables: Vec<(Value, Variable)> =
            own.flat_map(|block| self.variables_of(block)).collect();
        // The header's parameters are set already.
        variables.retain(|(value, _)| !self.old.dfg.block_params(header).contains(value));
        let behind = levels.exits(inner).iter().filter(|&&exit| !flow.dominates(exit, header));
        for &param in behind.flat_map(|&exit| self.old.dfg.block_params(exit)) {
            variables.extend(self.variables[param].map(|variable| (param, variable)));
        }
        for (value, variable) in variables {
            let undef = self.undef(self.old.dfg.value_type(value));
            self.b.def_var(variable, undef);
        }
    }

    /// Writes the iterations of a loop in which only live lanes run the header.
    fn closed_rounds(
        &mut self,
        level: LevelId,
        header: Block,
        mask: Mask,
        round: Block,
        after: Block,
    ) {
        let live = mask.live.expect("without an open header it is asked who is live");
        let body = self.b.create_block();
        let is_live = self.b.use_var(live);
        self.plan.steering.insert(is_live);
        let branch = self.b.ins().brif(is_live, body, &[], mask.merge, &[]);
        self.split(branch, Some(mask.merge));
        self.blocks[header] = Some(body);
        self.nodes(level, 0..self.end_of(level), None);
        self.start(mask.merge);
        let is_live = self.b.use_var(live);
        self.plan.steering.insert(is_live);
        let any = self.any(is_live);
        self.b.ins().brif(any, round, &[], after, &[]);
    }

    /// Writes the iterations of a loop in which all lanes run the header. Returns the variables that are set
    /// where all lanes have left.
    fn open_rounds(
        &mut self,
        level: LevelId,
        header: Block,
        open: &OpenHeader,
        mask: Mask,
        after: Block,
    ) -> Vec<(Variable, Value)> {
        let round = self.b.current_block().expect("the builder stands where a round begins");
        self.body(header);
        let InstructionData::Brif { arg, blocks, .. } = self.old.dfg.insts[open.branch] else {
            unreachable!("an open header ends in a branch");
        };
        self.b.set_srcloc(self.old.srcloc(open.branch));
        let condition = self.value(arg);
        let mut goes_on = self.truth(condition);
        if open.leaves == 0 {
            goes_on = self.not(goes_on, false);
        }
        let leaving = self.edge(header, &blocks[open.leaves]);
        let mut passed = Vec::new();
        if open.only_exit {
            for &(variable, set, _) in &leaving.sets {
                if let Set::Old(value) = set {
                    passed.push((variable, self.value(value)));
                }
            }
        }
        if let Some(live) = mask.live {
            let is_live = self.b.use_var(live);
            goes_on = self.b.ins().band(is_live, goes_on);
            self.b.def_var(live, goes_on);
            self.plan.steering.insert(is_live);
        }
        // Without a variable, the program's own condition says which lanes are live.
        self.copied.remove(goes_on);
        self.plan.steering.insert(goes_on);
        let any = self.any(goes_on);
        let guard = self.b.create_block();
        self.b.ins().brif(any, guard, &[], after, &[]);
        self.start(guard);
        let staying = self.edge(header, &blocks[1 - open.leaves]);
        let skipping = Landing::at(mask.merge);
        self.joins.insert((level, 0), mask.merge);
        self.branch(goes_on, staying, skipping, Some((level, 0)));
        let region = self.regions.innermost(level, 0);
        self.nodes(level, 1..self.end_of(level), region);
        self.start(mask.merge);
        self.b.ins().jump(round, &[]);
        passed
    }

    /// Whether all lanes can run the header in every iteration.
    fn open_header(&self, level: LevelId, header: Block) -> Option<OpenHeader> {
        let (old, flow) = (self.old, self.facts.flow());
        let branch = old.layout.last_inst(header).filter(|_| self.is_brif(header))?;
        let region = self.regions.get(self.regions.innermost(level, 0)?);
        let own = region.nested && region.branches == [0] && region.end == self.end_of(level);
        let computes = old.layout.block_insts(header).filter(|&inst| inst != branch).all(|inst| {
            let opcode = old.dfg.insts[inst].opcode();
            let effect = opcode.can_trap() || opcode.other_side_effects() || opcode.is_call();
            !effect && !opcode.can_load() && !opcode.can_store()
        });
        if !own || !computes || self.verbatim > 0 {
            return None;
        }
        let levels = flow.levels();
        let InstructionData::Brif { blocks, .. } = old.dfg.insts[branch] else { return None };
        let pool = &old.dfg.value_lists;
        let leaves = |target: Block| levels.node_at(level, target).is_none();
        let [on_true, on_false] = blocks.map(|call| leaves(call.block(pool)));
        let side = match (on_true, on_false) {
            (true, false) => 0,
            (false, true) => 1,
            _ => return None,
        };
        let (exit, stays) = (blocks[side].block(pool), blocks[1 - side].block(pool));
        let doomed = |block| !flow.reaches_return(block);
        if stays == header || (doomed(exit) && !doomed(header)) {
            return None;
        }
        let ways_out = flow.blocks().filter(|&block| levels.node_at(level, block).is_some());
        let ways_out = ways_out.flat_map(|block| flow.successors(block));
        let ways_out = ways_out.filter(|&to| leaves(to) && (doomed(header) || !doomed(to))).count();
        let only_exit = ways_out == 1;
        // Each lane sets what the edge passes once, when it leaves.
        let passes = blocks[side].len(pool) > 0;
        (only_exit || !passes).then_some(OpenHeader { branch, leaves: side, only_exit })
    }

    /// The variable that says by which of several exits a lane left. It is initially the header's exit, if
    /// the header has one, because lanes that leave by an open header do not set it.
    fn exit_variable(&mut self, inner: Loop) -> Option<Variable> {
        let exits = self.facts.flow().levels().exits(inner);
        if exits.len() < 2 {
            return None;
        }
        let ty = exit_type(exits.len());
        let variable = self.b.declare_var(ty);
        let first = self.b.ins().iconst(ty, 0);
        self.b.def_var(variable, first);
        Some(variable)
    }

    /// The value that says that a lane left by the exit with this number.
    pub(super) fn exit_number(&self, inner: Loop, number: i64) -> Set {
        Set::Number(exit_type(self.facts.flow().levels().exits(inner).len()), number)
    }

    /// Sends each lane to the exit by which it left.
    fn dispatch(
        &mut self,
        outer: LevelId,
        node: usize,
        inner: Loop,
        header: Block,
        exit: Option<Variable>,
    ) {
        let exits = self.facts.flow().levels().exits(inner).to_vec();
        let mut landings: Vec<Landing> =
            exits.iter().map(|&target| self.land(header, target)).collect();
        let Some(variable) = exit else {
            let landing = landings.pop().expect("a masked loop is left somewhere");
            return self.jump(landing);
        };
        let left_by = self.b.use_var(variable);
        if let [_, _] = landings[..] {
            let (second, first) = (landings.pop(), landings.pop());
            let [first, second] = [first, second].map(|landing| landing.expect("there are two"));
            self.plan.steering.insert(left_by);
            return self.branch(left_by, second, first, Some((outer, node)));
        }
        let mut number = landings.len() as i64 - 1;
        let mut rest = landings.pop().expect("there are more than two");
        // From the last to the first: edges that cannot be merged need blocks of their own.
        let mut chain = Vec::new();
        for landing in landings.into_iter().rev() {
            number -= 1;
            if landing.block == rest.block && chain.is_empty() {
                let here = self.left_by(left_by, number);
                rest = self.merge(here, landing, rest);
            } else {
                chain.push((number, landing));
            }
        }
        for (number, landing) in chain.into_iter().rev() {
            let here = self.left_by(left_by, number);
            let next = self.b.create_block();
            let other = Landing::at(next);
            self.branch(here, landing, other, Some((outer, node)));
            self.start(next);
        }
        self.jump(rest);
    }

    /// Whether a lane left by the exit with this number.
    fn left_by(&mut self, exit: Value, number: i64) -> Value {
        let here = self.b.ins().icmp_imm_u(IntCC::Equal, exit, number);
        self.plan.steering.insert(here);
        here
    }
}

/// With two exits, a truth value says which one.
fn exit_type(exits: usize) -> Type {
    if exits == 2 { I8 } else { I32 }
}
