//! Which values and branches are uniform.
//!
//! *Uniform* means equal in all lanes that execute the definition together, and for a branch that
//! these lanes all take the same side. The analysis goes forward to a fixpoint from what is divergent
//! by itself: lane and work-item numbers, memory that may be written, calls. From there divergence
//! spreads
//!
//! * along data: to results of operations and to block parameters;
//! * by control: to the parameters of blocks where lanes meet that took different sides of a
//!   divergent branch ([`sync`]);
//! * in time: to uses outside of a loop, of values defined in it, if lanes leave it in different
//!   iterations.
//!
//! It assumes that the lanes that enter the function enter it together, and that they
//! reconverge as [`levels`](super::levels) has it. Where it is not sure it says divergent. (Karrenberg and Hack, CC 2012; Lee et al., "Convergence and scalarization for
//! data-parallel architectures", CGO 2013.)

use std::fmt::Write as _;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstructionData, MemFlagsData, Opcode, Value, ValueDef,
};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::HashMap;

use super::cause::Cause;
use super::levels::Reconvergence;
use super::{Flow, sync};
use crate::intrinsic::{Intrinsic, Variation};

/// What is divergent in a function, and why. All else is uniform.
pub(crate) struct Uniformity {
    flow: Flow,
    values: SecondaryMap<Value, Option<Cause>>,
    branches: SecondaryMap<Block, Option<Cause>>,
    calls: Vec<Inst>,
}

/// What is known about the parameters of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Params {
    /// They are the same in all lanes: a kernel's.
    Uniform,
    /// Nothing.
    Divergent,
}

impl Uniformity {
    /// Analyses `func`, of whose parameters `params` is known.
    pub(crate) fn compute(func: &Function, params: Params) -> Uniformity {
        let flow = Flow::compute(func);
        let mut solver = Solver {
            func,
            params,
            irreducible: !flow.is_reducible(),
            flow: &flow,
            values: SecondaryMap::new(),
            branches: SecondaryMap::new(),
            meetings: SecondaryMap::new(),
            left: HashMap::new(),
        };
        while solver.pass() {}
        let calls = solver.divergent_calls();
        let Solver { values, branches, .. } = solver;
        Uniformity { flow, values, branches, calls }
    }

    /// The indirect calls on whose targets lanes may disagree.
    pub(crate) fn divergent_calls(&self) -> &[Inst] {
        &self.calls
    }

    /// The control flow of the function.
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Why `value` is divergent where it is defined; none if it is uniform there.
    ///
    /// Outside of the loop of its definition it may diverge nevertheless.
    pub(crate) fn divergence(&self, func: &Function, value: Value) -> Option<Cause> {
        self.values[func.dfg.resolve_aliases(value)]
    }

    /// Why the lanes that end `block` may go different ways; none if they do not.
    pub(crate) fn branch_divergence(&self, block: Block) -> Option<Cause> {
        self.branches[block]
    }

    /// The chain of causes from the end of `block` to a source of divergence, for messages.
    pub(crate) fn explain_branch(&self, func: &Function, block: Block) -> String {
        format!("{block}{}", self.explain_cause(func, self.branches[block]))
    }

    fn explain_cause(&self, func: &Function, mut next: Option<Cause>) -> String {
        let mut text = String::new();
        // A cause names what was known before, so the chain ends.
        while let Some(cause) = next {
            let _ = write!(text, " <- {cause}");
            next = match cause {
                Cause::Operand(value) => self.divergence(func, value),
                Cause::Merge(branch) | Cause::Iteration { branch, .. } => {
                    func.layout.inst_block(branch).and_then(|block| self.branches[block])
                }
                _ => None,
            };
        }
        text
    }

    /// Every divergent value and branch with its cause, one a line.
    pub(crate) fn dump(&self, func: &Function) -> String {
        let values = func.dfg.values().filter_map(|value| Some((value, self.values[value]?)));
        let mut text: String =
            values.map(|(value, cause)| format!("{value}: divergent, {cause}\n")).collect();
        for block in func.layout.blocks().filter(|&block| self.branches[block].is_some()) {
            let _ = writeln!(text, "branch of {}", self.explain_branch(func, block));
        }
        text
    }
}

struct Solver<'a> {
    func: &'a Function,
    params: Params,
    flow: &'a Flow,
    irreducible: bool,
    values: SecondaryMap<Value, Option<Cause>>,
    branches: SecondaryMap<Block, Option<Cause>>,
    /// Blocks where lanes meet that a divergent branch parted.
    meetings: SecondaryMap<Block, Option<Inst>>,
    /// Loops that lanes leave in different iterations, with a branch that is to blame.
    left: HashMap<Loop, Inst>,
}

impl Solver<'_> {
    /// Goes once through the function; returns whether anything new was found.
    fn pass(&mut self) -> bool {
        let mut changed = false;
        let flow = self.flow;
        for block in flow.blocks() {
            for (index, &param) in self.func.dfg.block_params(block).iter().enumerate() {
                if self.values[param].is_none() {
                    let cause = self.param_cause(block, index);
                    self.values[param] = cause;
                    changed |= cause.is_some();
                }
            }
            for inst in self.func.layout.block_insts(block) {
                changed |= self.visit(inst, block);
            }
        }
        changed
    }

    fn visit(&mut self, inst: Inst, block: Block) -> bool {
        let mut changed = false;
        let results = self.func.dfg.inst_results(inst);
        if results.iter().any(|&result| self.values[result].is_none())
            && let Some(cause) = self.result_cause(inst, block)
        {
            changed = true;
            for &result in results {
                self.values[result].get_or_insert(cause);
            }
        }
        if self.branches[block].is_none()
            && let Some(cause) = self.branch_cause(inst, block)
        {
            changed = true;
            self.branches[block] = Some(cause);
            self.part(inst, block);
        }
        changed
    }

    /// Why parameter `index` of `block` is divergent as far as is known.
    fn param_cause(&self, block: Block, index: usize) -> Option<Cause> {
        if Some(block) == self.func.layout.entry_block() {
            return (self.params == Params::Divergent).then_some(Cause::Argument);
        }
        if self.irreducible {
            return Some(Cause::Irreducible);
        }
        if let Some(branch) = self.meetings[block] {
            return Some(Cause::Merge(branch));
        }
        self.flow.predecessors(block).find_map(|pred| {
            let branch = self.func.layout.last_inst(pred)?;
            let dfg = &self.func.dfg;
            let calls =
                dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
            let calls = calls.iter().filter(|call| call.block(&dfg.value_lists) == block);
            calls.map(|call| call.args(&dfg.value_lists).nth(index)).find_map(|arg| match arg {
                // The argument is used in `block`: the edge may leave a loop.
                Some(BlockArg::Value(value)) => self.use_cause(value, block),
                _ => Some(Cause::Operation),
            })
        })
    }

    /// Why the results of `inst` are divergent as far as is known.
    fn result_cause(&self, inst: Inst, block: Block) -> Option<Cause> {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        let opcode = data.opcode();
        if let Some(intrinsic) = Intrinsic::of_call(self.func, inst) {
            return match intrinsic.variation() {
                Variation::Divergent => Some(Cause::Intrinsic(intrinsic)),
                // Lanes can have voted in different rounds.
                Variation::UniformInMask if self.irreducible => Some(Cause::Irreducible),
                Variation::UniformInWarp
                | Variation::UniformInMask
                | Variation::AssumedUniform
                | Variation::Nothing => None,
            };
        }
        if self.irreducible {
            return Some(Cause::Irreducible);
        }
        if opcode.is_call() {
            return Some(Cause::Operation);
        }
        if opcode.can_load() {
            let plain = opcode == Opcode::Load;
            let readonly = data.memflags_data(dfg).is_some_and(MemFlagsData::readonly);
            if !(plain && readonly) {
                return Some(Cause::Memory);
            }
        }
        let mut operands = dfg.inst_values(inst).peekable();
        let known = operands.peek().is_some() || is_constant(opcode);
        if !known || opcode.other_side_effects() {
            return Some(Cause::Operation);
        }
        operands.find_map(|value| self.use_cause(value, block))
    }

    /// Why lanes go different ways after `inst`, as far as is known.
    fn branch_cause(&self, inst: Inst, block: Block) -> Option<Cause> {
        match self.func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => {
                self.use_cause(arg, block)
            }
            InstructionData::Jump { .. } => None,
            data => data.opcode().is_branch().then_some(Cause::Operation),
        }
    }

    /// Why `value` is divergent when it is used in `block`.
    fn use_cause(&self, value: Value, block: Block) -> Option<Cause> {
        let value = self.func.dfg.resolve_aliases(value);
        if self.values[value].is_some() {
            return Some(Cause::Operand(value));
        }
        let home = match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst)?,
            ValueDef::Param(home, _) => home,
            ValueDef::Union(..) => return Some(Cause::Operation),
        };
        let mut loops = self.flow.loops_around(home);
        let branch = loops.find_map(|around| {
            let branch = self.left.get(&around)?;
            (!self.flow.loops.is_in_loop(block, around)).then_some(*branch)
        })?;
        Some(Cause::Iteration { value, branch })
    }

    fn divergent_calls(&self) -> Vec<Inst> {
        let mut calls = Vec::new();
        for block in self.flow.blocks() {
            for inst in self.func.layout.block_insts(block) {
                let InstructionData::CallIndirect { .. } = self.func.dfg.insts[inst] else {
                    continue;
                };
                let target = self.func.dfg.inst_args(inst)[0];
                if self.use_cause(target, block).is_some() {
                    calls.push(inst);
                }
            }
        }
        calls
    }

    /// Draws the conclusions from a divergent branch at the end of `block`.
    fn part(&mut self, branch: Inst, block: Block) {
        let Reconvergence { end, left } = self.flow.levels().reconvergence(block);
        let region = self.flow.region(block, end);
        for meeting in sync::meeting_points(self.func, self.flow, block, &region, end) {
            self.meetings[meeting].get_or_insert(branch);
        }
        for around in left {
            self.left.entry(around).or_insert(branch);
        }
    }
}

/// Whether an operation without operands gives the same in all lanes.
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
