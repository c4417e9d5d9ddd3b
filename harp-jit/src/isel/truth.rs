//! Block parameters that live in predicates.
//!
//! A truth value of CLIF is a number, so a block parameter with a truth value would be converted to a number
//! on every edge and tested again after it. If all edges pass truth values and some use needs a truth value,
//! the parameter stays in the predicate file instead.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{BlockArg, Function, InstructionData, Opcode, Value, ValueDef};
use hashbrown::HashMap;

use crate::intrinsic::Intrinsic;

/// The block parameters that live in predicates.
pub(super) fn predicate_params(func: &Function) -> EntitySet<Value> {
    let entry = func.layout.entry_block();
    let blocks = func.layout.blocks().filter(|&block| Some(block) != entry);
    let params = blocks.flat_map(|block| func.dfg.block_params(block)).copied();
    let mut candidates = EntitySet::new();
    candidates.extend(params.filter(|&param| func.dfg.value_type(param) == I8));
    if candidates.is_empty() {
        return candidates;
    }
    let passed = passed(func);
    // A parameter that is passed a number is not a candidate, nor one that is passed the former.
    let mut checked = false;
    while !checked {
        checked = true;
        for &(arg, param) in &passed {
            if candidates.contains(param) && !is_truth(func, &candidates, arg) {
                candidates.remove(param);
                checked = false;
            }
        }
    }
    asked_for(func, &passed, &candidates)
}

/// The depth to which operands of truth values are followed.
const DEPTH: u32 = 8;

/// Pairs of arguments and the parameters that they are passed to.
fn passed(func: &Function) -> Vec<(Value, Value)> {
    let dfg = &func.dfg;
    let mut passed = Vec::new();
    for branch in func.layout.blocks().filter_map(|block| func.layout.last_inst(block)) {
        let calls = dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        for call in calls {
            let params = dfg.block_params(call.block(&dfg.value_lists));
            let args = call.args(&dfg.value_lists).filter_map(|arg: BlockArg| arg.as_value());
            passed.extend(args.map(|arg| dfg.resolve_aliases(arg)).zip(params.iter().copied()));
        }
    }
    passed
}

/// Whether a value is 0 or 1 by its definition, provided that the parameters in `params` are.
pub(super) fn is_truth(func: &Function, params: &EntitySet<Value>, value: Value) -> bool {
    is_truth_within(func, params, value, DEPTH)
}

fn is_truth_within(func: &Function, params: &EntitySet<Value>, value: Value, depth: u32) -> bool {
    let value = func.dfg.resolve_aliases(value);
    let inst = match func.dfg.value_def(value) {
        ValueDef::Result(inst, 0) => inst,
        _ => return params.contains(value),
    };
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => matches!(imm.bits(), 0 | 1),
        InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
        InstructionData::Binary { opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor, args } => {
            depth > 0 && args.iter().all(|&arg| is_truth_within(func, params, arg, depth - 1))
        }
        InstructionData::Call { .. } => {
            Intrinsic::of_call(func, inst).is_some_and(Intrinsic::is_truth)
        }
        _ => false,
    }
}

/// The candidates that are used as a condition, or passed on to one that is.
fn asked_for(
    func: &Function,
    passed: &[(Value, Value)],
    candidates: &EntitySet<Value>,
) -> EntitySet<Value> {
    let mut asked = EntitySet::new();
    let mut todo = Vec::new();
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        match func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } => todo.push(arg),
            InstructionData::Ternary { opcode: Opcode::Select, args } => todo.push(args[0]),
            InstructionData::Binary { opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor, args } => {
                todo.extend(args);
            }
            InstructionData::Call { .. }
                if Intrinsic::of_call(func, inst).is_some_and(Intrinsic::asks_for_truth) =>
            {
                todo.extend(func.dfg.inst_args(inst));
            }
            _ => {}
        }
    }
    let mut sources: HashMap<Value, Vec<Value>> = HashMap::new();
    for &(arg, param) in passed.iter().filter(|(_, param)| candidates.contains(*param)) {
        sources.entry(param).or_default().push(arg);
    }
    while let Some(value) = todo.pop() {
        let value = func.dfg.resolve_aliases(value);
        if candidates.contains(value) && asked.insert(value) {
            todo.extend(sources.get(&value).into_iter().flatten());
        }
    }
    asked
}
