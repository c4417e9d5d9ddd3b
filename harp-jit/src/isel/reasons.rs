//! Reasons why an instruction has no rule.

use cranelift_codegen::ir::{Inst, InstructionData};

use super::Lower;
use crate::options::Execution;

impl Lower<'_> {
    /// The reason, or at least the operation that has no rule.
    pub(super) fn reason(&self, inst: Inst) -> String {
        let data = &self.func.dfg.insts[inst];
        let (opcode, arch) = (data.opcode(), self.arch);
        let several = self.execution != Execution::SingleLane;
        if matches!(data, InstructionData::Store { .. }) && several && !arch.has_extension() {
            return "a store of less than an aligned word without extension X where several lanes \
                    run: reading and writing the word would lose what other lanes store beside it"
                .to_owned();
        }
        format!("`{opcode}` with these operands on {arch}")
    }
}
