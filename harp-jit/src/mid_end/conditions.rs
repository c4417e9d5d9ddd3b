//! Orders the operands of conjunctions and disjunctions of conditions.
//!
//! Machines have few predicates. So what a loop does not change is combined first: the mid-end then moves that out of
//! the loop, where one predicate takes the place of several.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types,
};
use cranelift_codegen::loop_analysis::LoopAnalysis;

/// Rewrites `(a & b) & c`, where `a` is from a deeper loop than `b` and `c` and nothing else reads `a & b`, as
/// `a & (b & c)`; `|` alike. Values have no aliases.
pub(crate) fn combine_invariant_first(func: &mut Function, loops: &LoopAnalysis) {
    if loops.loops().next().is_none() {
        return;
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let combinations: Vec<Inst> = insts.filter(|&inst| combination(func, inst).is_some()).collect();
    if combinations.is_empty() {
        return;
    }
    let mut conditions = Conditions::new(func, loops);
    for inst in combinations {
        conditions.regroup(func, inst);
    }
}

struct Conditions {
    /// In how many loops each value is defined.
    depths: SecondaryMap<Value, usize>,
    /// How often each value is read.
    reads: SecondaryMap<Value, usize>,
}

impl Conditions {
    fn new(func: &Function, loops: &LoopAnalysis) -> Conditions {
        let (mut depths, mut reads) = (SecondaryMap::new(), SecondaryMap::<_, usize>::new());
        depths.resize(func.dfg.num_values());
        reads.resize(func.dfg.num_values());
        for block in func.layout.blocks() {
            let depth = loops.loop_level(block).level();
            func.dfg.block_params(block).iter().for_each(|&param| depths[param] = depth);
            for inst in func.layout.block_insts(block) {
                func.dfg.inst_results(inst).iter().for_each(|&result| depths[result] = depth);
                func.dfg.inst_values(inst).for_each(|value| reads[value] += 1);
            }
        }
        Conditions { depths, reads }
    }

    fn regroup(&mut self, func: &mut Function, inst: Inst) {
        let Some((opcode, args)) = combination(func, inst) else { return };
        for [inner, c] in [args, [args[1], args[0]]] {
            let ValueDef::Result(within, _) = func.dfg.value_def(inner) else { continue };
            let Some((_, parts)) = combination(func, within).filter(|(own, _)| *own == opcode)
            else {
                continue;
            };
            let deeper = |a: Value, b: Value| self.depths[a] > self.depths[b].max(self.depths[c]);
            let [a, b] = if deeper(parts[0], parts[1]) { parts } else { [parts[1], parts[0]] };
            if self.reads[inner] > 1 || !deeper(a, b) {
                continue;
            }
            let place = func.srcloc(inst);
            let mut at = FuncCursor::new(func).at_inst(inst).with_srcloc(place);
            let outer = match opcode {
                Opcode::Band => at.ins().band(b, c),
                _ => at.ins().bor(b, c),
            };
            self.depths[outer] = self.depths[b].max(self.depths[c]);
            self.reads[outer] = 1;
            func.dfg.insts[inst] = InstructionData::Binary { opcode, args: [a, outer] };
            return;
        }
    }
}

/// The operands of a conjunction or disjunction of conditions.
fn combination(func: &Function, inst: Inst) -> Option<(Opcode, [Value; 2])> {
    match func.dfg.insts[inst] {
        InstructionData::Binary { opcode: opcode @ (Opcode::Band | Opcode::Bor), args } => {
            (func.dfg.value_type(args[0]) == types::I8).then_some((opcode, args))
        }
        _ => None,
    }
}
