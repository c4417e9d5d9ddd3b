//! The uses of values.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Function, Inst, Value};

use super::Flow;

/// The instructions that use each value, as operands or as arguments of blocks.
pub(super) struct Uses {
    /// Where the instructions of each value begin in `insts`, and the end.
    starts: Vec<usize>,
    insts: Vec<Inst>,
}

impl Uses {
    /// The uses in reachable blocks.
    pub(super) fn new(func: &Function, flow: &Flow) -> Uses {
        let mut starts = vec![0; func.dfg.num_values() + 1];
        let mut all = Vec::with_capacity(2 * func.dfg.num_insts());
        for block in flow.blocks() {
            for inst in func.layout.block_insts(block) {
                for value in func.dfg.inst_values(inst) {
                    let value = func.dfg.resolve_aliases(value);
                    starts[value.index()] += 1;
                    all.push((value, inst));
                }
            }
        }
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        // From the end, so that each start is right when all are filled in.
        let mut insts = vec![Inst::new(0); all.len()];
        for (value, inst) in all.into_iter().rev() {
            starts[value.index()] -= 1;
            insts[starts[value.index()]] = inst;
        }
        Uses { starts, insts }
    }

    /// The instructions that use `value`, which must not be an alias, in the order of blocks.
    pub(super) fn of(&self, value: Value) -> &[Inst] {
        &self.insts[self.starts[value.index()]..self.starts[value.index() + 1]]
    }
}
