//! The fixpoint of [uniformity](super::uniformity).
//!
//! It starts with everything uniform in the whole grid and narrows widths as needed: first in one pass over
//! the function in reverse post-order, then along the uses of values that change after they were visited.
//! Every value is narrowed at most three times, so the work is proportional to the number of uses, and to the
//! sizes of regions of divergent branches that have side entrances or that lanes do not leave together. Once
//! these have exceeded [`MAX_REGION_WORK`], lanes are assumed to meet in every block.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstructionData, MemFlagsData, Opcode, Value, ValueDef,
};
use cranelift_codegen::loop_analysis::Loop;

use super::calls::{Callees, Known, Params};
use super::cause::Cause;
use super::levels::{Node, Reconvergence};
use super::limit::Limit;
use super::once::{Loads, is_plain_load};
use super::uses::Uses;
use super::{Flow, edges, sync};
use crate::intrinsic::Intrinsic;
use crate::width::{Rule, Width};

/// The limit of the sum of squared sizes of all regions searched for meeting points: computing dominators
/// takes as long in the worst case. If every branch has a region as large as the function, the limit is
/// reached with about a thousand branches.
const MAX_REGION_WORK: usize = 1_000_000_000;

/// A change that affects code visited already.
enum Change {
    Value(Value),
    /// Lanes leave the loop in different iterations.
    Left(Loop),
}

pub(super) struct Solver<'a> {
    func: &'a Function,
    flow: &'a Flow,
    callees: &'a dyn Callees,
    loads: Loads,
    irreducible: bool,
    uses: Uses,
    /// The blocks visited already.
    seen: EntitySet<Block>,
    changes: Vec<Change>,
    pub(super) values: SecondaryMap<Value, Limit>,
    pub(super) branches: SecondaryMap<Block, Limit>,
    /// The width within which lanes leave a loop in the same iteration, and the branch that limits it.
    left: SecondaryMap<Loop, (Width, Option<Inst>)>,
    /// Whether lanes leave any loop in different iterations.
    any_left: bool,
    /// The sum of squared sizes of the regions searched so far.
    region_work: usize,
}

impl<'a> Solver<'a> {
    /// Analyses `func`; `known` is what is known about it.
    pub(super) fn solve(
        func: &'a Function,
        flow: &'a Flow,
        known: Known<'a>,
        loads: Loads,
    ) -> Solver<'a> {
        let mut solver = Solver {
            func,
            flow,
            callees: known.callees,
            loads,
            irreducible: !flow.is_reducible(),
            uses: Uses::new(func, flow),
            seen: EntitySet::new(),
            changes: Vec::new(),
            values: SecondaryMap::new(),
            branches: SecondaryMap::new(),
            left: SecondaryMap::new(),
            any_left: false,
            region_work: 0,
        };
        solver.values.resize(func.dfg.num_values());
        solver.function_params(known.params);
        for block in flow.blocks() {
            if solver.irreducible && Some(block) != func.layout.entry_block() {
                solver.narrow_params(block, Limit::divergent(Cause::Irreducible));
            }
            for inst in func.layout.block_insts(block) {
                // The branch may lead back to this very block.
                if func.layout.last_inst(block) == Some(inst) {
                    solver.seen.insert(block);
                }
                solver.visit(inst, block);
            }
        }
        while let Some(change) = solver.changes.pop() {
            match change {
                Change::Value(value) => solver.value_changed(value),
                Change::Left(around) => solver.loop_left(around),
            }
        }
        solver
    }

    fn function_params(&mut self, params: Params<'_>) {
        let Some(entry) = self.func.layout.entry_block() else { return };
        for (index, &param) in self.func.dfg.block_params(entry).iter().enumerate() {
            self.narrow(param, entry, Limit::new(params.width(index), Cause::Argument));
        }
    }

    /// Revisits the uses of a value.
    fn value_changed(&mut self, value: Value) {
        for index in 0..self.uses.of(value).len() {
            let user = self.uses.of(value)[index];
            if let Some(block) = self.func.layout.inst_block(user)
                && self.seen.contains(block)
            {
                self.visit(user, block);
            }
        }
    }

    /// Revisits the uses, outside of the loop, of the loop's values.
    fn loop_left(&mut self, around: Loop) {
        let mut todo = vec![around];
        let mut blocks = Vec::new();
        let levels = self.flow.levels();
        while let Some(inner) = todo.pop() {
            for &node in &levels.level(levels.of_loop(inner)).nodes {
                match node {
                    Node::Block(block) => blocks.push(block),
                    Node::Loop(inner) => todo.push(inner),
                }
            }
        }
        let func = self.func;
        for block in blocks {
            let results = func.layout.block_insts(block).flat_map(|i| func.dfg.inst_results(i));
            for &value in func.dfg.block_params(block).iter().chain(results) {
                for index in 0..self.uses.of(value).len() {
                    let user = self.uses.of(value)[index];
                    let Some(home) = func.layout.inst_block(user) else { continue };
                    // The arguments of an edge are used in its target.
                    let outside = !self.flow.graph.loops.is_in_loop(home, around)
                        || func.dfg.insts[user].opcode().is_branch();
                    if outside && self.seen.contains(home) {
                        self.visit(user, home);
                    }
                }
            }
        }
    }

    /// Applies all rules for an instruction.
    fn visit(&mut self, inst: Inst, block: Block) {
        let func = self.func;
        let results = func.dfg.inst_results(inst);
        let opcode = func.dfg.insts[inst].opcode();
        if !results.is_empty() {
            if opcode.is_call() && !self.irreducible && Intrinsic::of_call(func, inst).is_none() {
                for (index, &result) in results.iter().enumerate() {
                    self.narrow(result, block, self.call_limit(inst, block, index));
                }
            } else if results.iter().any(|&result| self.values[result].width > Width::Thread) {
                let limit = self.result_limit(inst, block);
                for &result in results {
                    self.narrow(result, block, limit);
                }
            }
        }
        if opcode.is_terminator() {
            self.terminator(inst, block);
        }
    }

    fn terminator(&mut self, inst: Inst, block: Block) {
        let limit = self.branch_limit(inst, block);
        if limit.width < self.branches[block].width {
            self.branches[block] = limit;
            if !self.irreducible {
                self.part(inst, block, limit.width);
            }
        }
        let dfg = &self.func.dfg;
        for edge in edges(dfg, inst) {
            let to = edge.block(&dfg.value_lists);
            let args = edge.args(&dfg.value_lists);
            for (&param, arg) in dfg.block_params(to).iter().zip(args) {
                let limit = match arg {
                    // The value is used in `to`: the edge may leave a loop.
                    BlockArg::Value(value) => self.used(value, to),
                    _ => Limit::divergent(Cause::Operation),
                };
                self.narrow(param, to, limit);
            }
        }
    }

    /// Narrows `value`, defined in `home`, to `limit`.
    fn narrow(&mut self, value: Value, home: Block, limit: Limit) {
        if limit.width < self.values[value].width {
            self.values[value] = limit;
            if self.seen.contains(home) {
                self.changes.push(Change::Value(value));
            }
        }
    }

    fn narrow_params(&mut self, block: Block, limit: Limit) {
        let func = self.func;
        for &param in func.dfg.block_params(block) {
            self.narrow(param, block, limit);
        }
    }

    /// The width, as known so far, of the results of `inst`, which is not a call of a function.
    fn result_limit(&self, inst: Inst, block: Block) -> Limit {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let opcode = data.opcode();
        if let Some(intrinsic) = Intrinsic::of_call(self.func, inst) {
            let cause = Cause::Intrinsic(intrinsic);
            return match intrinsic.rule() {
                // Lanes may have voted in different iterations.
                Rule::Shared if self.irreducible && intrinsic != Intrinsic::AssumeUniform => {
                    Limit::divergent(Cause::Irreducible)
                }
                Rule::Fixed(width) => Limit::new(width, cause),
                Rule::Shared => self.operands(inst, block).widened(cause),
            };
        }
        if self.irreducible {
            return Limit::divergent(Cause::Irreducible);
        }
        if opcode.can_load() {
            let plain = opcode == Opcode::Load;
            let readonly = data.memflags_data(dfg).is_some_and(MemFlagsData::readonly);
            if !(plain && readonly) {
                let own = Limit::divergent(Cause::Memory);
                let once = self.loads == Loads::Once
                    && is_plain_load(self.func, inst)
                    && self.flow.reaches_return(block);
                let same = Limit::new(Width::Warp, Cause::Memory);
                return if once { self.operands(inst, block).and(same) } else { own };
            }
        }
        let known = dfg.inst_values(inst).next().is_some() || is_constant(opcode);
        if !known || opcode.is_call() || opcode.other_side_effects() {
            return Limit::divergent(Cause::Operation);
        }
        self.operands(inst, block)
    }

    /// The least width of the operands.
    fn operands(&self, inst: Inst, block: Block) -> Limit {
        let values = self.func.dfg.inst_values(inst);
        values.fold(Limit::default(), |limit, value| limit.and(self.used(value, block)))
    }

    /// The width of a result of a call.
    pub(super) fn call_limit(&self, inst: Inst, block: Block, index: usize) -> Limit {
        let fact = match self.func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => {
                self.callees.result(self.func, func_ref, index)
            }
            _ => None,
        };
        let Some(fact) = fact else { return Limit::divergent(Cause::Operation) };
        let args = self.func.dfg.inst_args(inst).iter().enumerate();
        let asked = args.filter(|&(arg, _)| fact.depends.contains(arg));
        let limit = Limit::new(fact.width, Cause::Operation);
        asked.fold(limit, |limit, (_, &arg)| limit.and(self.used(arg, block)))
    }

    /// The width, as known so far, within which lanes take the same side of `inst`.
    fn branch_limit(&self, inst: Inst, block: Block) -> Limit {
        match self.func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => {
                self.used(arg, block)
            }
            InstructionData::Jump { .. } => Limit::default(),
            data if data.opcode().is_branch() => Limit::divergent(Cause::Operation),
            _ => Limit::default(),
        }
    }

    /// The width of `value` where it is used in `block`.
    pub(super) fn used(&self, value: Value, block: Block) -> Limit {
        let value = self.func.dfg.resolve_aliases(value);
        let limit = Limit::new(self.values[value].width, Cause::Operand(value));
        if !self.any_left || limit.width == Width::Thread {
            return limit;
        }
        let home = match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(home, _) => Some(home),
            ValueDef::Union(..) => None,
        };
        let Some(home) = home else { return Limit::divergent(Cause::Operation) };
        let outside = |&around: &Loop| !self.flow.graph.loops.is_in_loop(block, around);
        let loops = self.flow.loops_around(home).take_while(outside);
        loops.fold(limit, |limit, around| match self.left[around] {
            (width, Some(branch)) => {
                limit.and(Limit::new(width, Cause::Iteration { value, branch }))
            }
            (_, None) => limit,
        })
    }

    /// Assumes that lanes meet in every block, whichever branch they diverged at: `branch` exceeded the
    /// limit.
    fn meet_everywhere(&mut self, branch: Inst) {
        let (func, flow) = (self.func, self.flow);
        let entry = func.layout.entry_block();
        for block in flow.blocks().filter(|&block| Some(block) != entry) {
            self.narrow_params(block, Limit::divergent(Cause::Merge(branch)));
        }
    }

    /// Applies the rules for a branch at the end of `block`, on which lanes agree within `width` at most.
    fn part(&mut self, branch: Inst, block: Block, width: Width) {
        let limit = Limit::new(width, Cause::Merge(branch));
        if let Some(meetings) = self.flow.plain_meetings(self.func, block) {
            for meeting in meetings {
                self.narrow_params(meeting, limit);
            }
            let flow = self.flow;
            for &meeting in flow.doomed_meetings() {
                self.narrow_params(meeting, limit);
            }
            return;
        }
        let Reconvergence { end, left } = self.flow.levels().reconvergence(block);
        if self.region_work < MAX_REGION_WORK {
            let region = self.flow.region(block, end);
            for meeting in sync::meeting_points(self.func, self.flow, block, &region, end) {
                self.narrow_params(meeting, limit);
            }
            self.region_work = self.region_work.saturating_add(region.len().pow(2));
            if self.region_work >= MAX_REGION_WORK {
                self.meet_everywhere(branch);
            }
        }
        for around in left {
            if width < self.left[around].0 {
                self.left[around] = (width, Some(branch));
                self.any_left = true;
                self.changes.push(Change::Left(around));
            }
        }
    }
}

/// Whether an operation without operands gives the same result in all lanes.
fn is_constant(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Iconst
            | Opcode::F16const
            | Opcode::F32const
            | Opcode::F64const
            | Opcode::F128const
            | Opcode::Vconst
            | Opcode::FuncAddr
            | Opcode::SymbolValue
    )
}
