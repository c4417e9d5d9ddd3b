//! Uniformity analysis: which values and branches are uniform.
//!
//! *Uniform* means equal in all lanes that execute the definition together; for a branch, that these lanes
//! all take the same side. A [`Width`] says among which lanes; branches need at least a warp. The analysis
//! runs forward to a fixpoint ([`solver`](super::solver)) from sources of divergence: lane and work-item
//! numbers, memory that may be written, calls about which nothing is known. From there divergence spreads
//!
//! * along data: to results of operations and to block parameters;
//! * by control: to the parameters of blocks where lanes meet that took different sides of a divergent branch
//!   ([`sync`](super::sync));
//! * in time: to uses outside of a loop, of values defined in it, if lanes leave it in different iterations.
//!
//! It assumes that lanes which enter the function enter it together, and that they reconverge as described in
//! [`levels`](super::levels). Where it is not sure it says divergent. Lanes that are elsewhere, or have left
//! the kernel early, do not count, so they do not make the values of others divergent. (Karrenberg and Hack,
//! CC 2012; Lee et al., "Convergence and scalarization for data-parallel architectures", CGO 2013; Timofeev,
//! "Scalarization across threads", 2016.)

use std::fmt::Write as _;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};

use super::calls::{DirectCall, Known, Linkages};
use super::cause::Cause;
use super::limit::Limit;
use super::once::Loads;
use super::solver::Solver;
use super::{Flow, Graph};
use crate::intrinsic::Intrinsic;
use crate::width::Width;

/// The largest number of causes in a message.
const MAX_CAUSES: usize = 100;

/// The values and branches of a function that are not uniform, and why. All others are uniform in the whole
/// grid.
pub(crate) struct Uniformity {
    flow: Flow,
    values: SecondaryMap<Value, Limit>,
    branches: SecondaryMap<Block, Limit>,
    calls: Vec<Inst>,
    linkages: Linkages,
}

impl Uniformity {
    /// Analyses `func`; `known` is what is known about it.
    pub(crate) fn compute(func: &Function, known: Known<'_>) -> Uniformity {
        Uniformity::of(func, Graph::compute(func), known)
    }

    /// The same, where the graph of the function's blocks is known.
    pub(crate) fn of(func: &Function, graph: Graph, known: Known<'_>) -> Uniformity {
        let flow = Flow::of(func, graph);
        let solver = Solver::solve(func, &flow, known, Loads::Each);
        let calls = divergent_calls(func, &flow, &solver);
        let linkages = linkages(func, &flow, &solver);
        let Solver { values, branches, .. } = solver;
        Uniformity { flow, values, branches, calls, linkages }
    }

    /// What the function passes to its callees and callers.
    pub(crate) fn linkages(&self) -> &Linkages {
        &self.linkages
    }

    /// The indirect calls whose targets may differ between lanes.
    pub(crate) fn divergent_calls(&self) -> &[Inst] {
        &self.calls
    }

    /// The control flow of the function.
    pub(crate) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The graph of the function's blocks, which outlives what is said of its values.
    pub(crate) fn into_graph(self) -> Graph {
        self.flow.graph
    }

    /// The width of `value` where it is defined.
    ///
    /// Outside of the loop of its definition it may be divergent even so.
    pub(crate) fn width(&self, func: &Function, value: Value) -> Width {
        self.values[func.dfg.resolve_aliases(value)].width
    }

    /// Why `value` is divergent where it is defined; none if it is uniform in a warp there.
    ///
    /// Outside of the loop of its definition it may be divergent even so.
    #[cfg(test)]
    pub(crate) fn divergence(&self, func: &Function, value: Value) -> Option<Cause> {
        self.values[func.dfg.resolve_aliases(value)].divergence()
    }

    /// Why lanes may take different edges at the end of `block`; none if they do not.
    pub(crate) fn branch_divergence(&self, block: Block) -> Option<Cause> {
        self.branches[block].divergence()
    }

    /// The chain of causes from the end of `block` to a source of divergence, for messages.
    pub(crate) fn explain_branch(&self, func: &Function, block: Block) -> String {
        format!("{block}{}", self.explain_cause(func, self.branches[block].cause))
    }

    fn explain_cause(&self, func: &Function, mut next: Option<Cause>) -> String {
        let mut text = String::new();
        // A cause refers to something known before it, so the chain ends; but it can be as long as the
        // function.
        for _ in 0..MAX_CAUSES {
            let Some(cause) = next else { return text };
            let _ = write!(text, " <- {cause}");
            next = match cause {
                Cause::Operand(value) => self.values[func.dfg.resolve_aliases(value)].cause,
                Cause::Merge(branch) | Cause::Iteration { branch, .. } => {
                    func.layout.inst_block(branch).and_then(|block| self.branches[block].cause)
                }
                _ => None,
            };
        }
        if next.is_some() {
            text += " <- ...";
        }
        text
    }

    /// All values and branches that are not uniform in the grid with width and cause, one per line.
    pub(crate) fn dump(&self, func: &Function) -> String {
        let mut text = String::new();
        for value in func.dfg.values() {
            if let Some(cause) = self.values[value].cause {
                let _ = writeln!(text, "{value}: {}, {cause}", self.width(func, value));
            }
        }
        for block in func.layout.blocks().filter(|&block| self.branches[block].cause.is_some()) {
            let width = self.branches[block].width;
            let _ = writeln!(text, "branch of {}: {width}", self.explain_branch(func, block));
        }
        text
    }
}

fn divergent_calls(func: &Function, flow: &Flow, solver: &Solver<'_>) -> Vec<Inst> {
    let mut calls = Vec::new();
    for block in flow.blocks() {
        for inst in func.layout.block_insts(block) {
            // Tail calls included.
            let InstructionData::CallIndirect { .. } = func.dfg.insts[inst] else { continue };
            let target = func.dfg.inst_args(inst)[0];
            if solver.used(target, block).width == Width::Thread {
                calls.push(inst);
            }
        }
    }
    calls
}

/// What is passed to callees, and back to callers.
fn linkages(func: &Function, flow: &Flow, solver: &Solver<'_>) -> Linkages {
    let mut linkages = Linkages {
        results: vec![Width::Grid; func.signature.returns.len()],
        ..Linkages::default()
    };
    for block in flow.blocks() {
        for inst in func.layout.block_insts(block) {
            let args = || {
                let args = func.dfg.inst_args(inst).iter();
                args.map(|&arg| solver.used(arg, block).width).collect::<Vec<_>>()
            };
            let data = &func.dfg.insts[inst];
            match *data {
                InstructionData::Call { func_ref, .. } if !is_intrinsic(func, inst) => {
                    linkages.calls.push(DirectCall { callee: func_ref, args: args() });
                }
                InstructionData::FuncAddr { func_ref, .. } => linkages.addresses.push(func_ref),
                _ => {}
            }
            let returned = match data.opcode() {
                Opcode::Return => args(),
                Opcode::ReturnCall | Opcode::ReturnCallIndirect => (0..linkages.results.len())
                    .map(|index| solver.call_limit(inst, block, index).width)
                    .collect(),
                _ => continue,
            };
            for (result, width) in linkages.results.iter_mut().zip(returned) {
                *result = width.min(*result);
            }
        }
    }
    linkages
}

fn is_intrinsic(func: &Function, inst: Inst) -> bool {
    Intrinsic::of_call(func, inst).is_some()
}
