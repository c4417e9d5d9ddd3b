//! Functions without what does not matter: instructions left out or constants, branches that are jumps.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{BlockCall, Function, Inst, InstBuilder, InstructionData, Opcode};

use crate::oracle::{Address, Case};

/// Instructions of all functions.
pub(in super::super) fn instruction_count(case: &Case) -> usize {
    case.functions.iter().map(|func| insts(func).len()).sum()
}

fn insts(func: &Function) -> Vec<Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Tries to do without each instruction, the last ones first, until nothing more can go. `keeps` says
/// whether the rest is as good; it is asked about `left` times at most.
pub(in super::super) fn fewer_instructions(
    case: Case,
    left: usize,
    mut keeps: impl FnMut(&Case) -> bool,
) -> Case {
    let mut left = left;
    let mut smallest = case;
    loop {
        let mut changed = false;
        let parts: [fn(&mut Case) -> bool; 3] = [
            drop_function,
            |case| case.functions.iter_mut().any(drop_unused_slots),
            |case| case.functions.iter_mut().any(join_blocks),
        ];
        for remove in parts {
            let mut smaller = smallest.clone();
            if remove(&mut smaller) && keeps(&smaller) {
                (smallest, changed) = (smaller, true);
            }
        }
        for index in 0..smallest.functions.len() {
            for inst in insts(&smallest.functions[index]).into_iter().rev() {
                for way in 0..2 {
                    if left == 0 {
                        return smallest;
                    }
                    let mut smaller = smallest.clone();
                    let func = &mut smaller.functions[index];
                    if func.layout.inst_block(inst).is_none() || !simpler(func, inst, way) {
                        continue;
                    }
                    drop_unreachable(func);
                    left -= 1;
                    if keeps(&smaller) {
                        (smallest, changed) = (smaller, true);
                        break;
                    }
                }
            }
        }
        if !changed {
            return smallest;
        }
    }
}

/// Removes the last function, if no other names it, also out of tables. Whether it could.
fn drop_function(case: &mut Case) -> bool {
    let last = case.functions.len() - 1;
    let name = case.functions[last].name.to_string();
    if last == 0 || case.functions[..last].iter().any(|func| names(func, &name)) {
        return false;
    }
    case.functions.pop();
    for datum in &mut case.data {
        datum.addresses.retain(|&(_, address)| address != Address::Function(last));
    }
    true
}

/// Whether a function calls the one of this name, or takes its address.
fn names(func: &Function, name: &str) -> bool {
    insts(func).into_iter().any(|inst| {
        let func_ref = match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } | InstructionData::FuncAddr { func_ref, .. } => {
                func_ref
            }
            _ => return false,
        };
        func.dfg.ext_funcs[func_ref].name.display(Some(&func.params)).to_string() == name
    })
}

/// Removes the last stack slots as far as nothing uses them. Whether there were any.
fn drop_unused_slots(func: &mut Function) -> bool {
    let used: Vec<_> =
        insts(func).into_iter().filter_map(|inst| func.dfg.insts[inst].stack_slot()).collect();
    let slots = &mut func.sized_stack_slots;
    let last = slots.keys().rfind(|slot| used.contains(slot));
    let count = last.map_or(0, |slot| slot.as_u32() as usize + 1);
    let changed = count < slots.len();
    let kept: Vec<_> = slots.values().take(count).cloned().collect();
    slots.clear();
    for data in kept {
        slots.push(data);
    }
    changed
}

/// Puts a block at the end of the one that jumps to it, if no other does. Whether there was one.
fn join_blocks(func: &mut Function) -> bool {
    let all: Vec<_> = func.layout.blocks().collect();
    let cfg = ControlFlowGraph::with_function(func);
    for &block in &all {
        let Some(last) = func.layout.last_inst(block) else { continue };
        let InstructionData::Jump { destination, .. } = func.dfg.insts[last] else { continue };
        let next = destination.block(&func.dfg.value_lists);
        if next == block
            || Some(next) == func.layout.entry_block()
            || cfg.pred_iter(next).count() != 1
        {
            continue;
        }
        let args: Vec<_> =
            destination.args(&func.dfg.value_lists).filter_map(|arg| arg.as_value()).collect();
        let params = func.dfg.detach_block_params(next);
        let params = params.as_slice(&func.dfg.value_lists).to_vec();
        for (param, arg) in params.into_iter().zip(args) {
            func.dfg.change_to_alias(param, arg);
        }
        func.layout.remove_inst(last);
        while let Some(inst) = func.layout.first_inst(next) {
            func.layout.remove_inst(inst);
            func.layout.append_inst(inst, block);
        }
        func.layout.remove_block(next);
        func.dfg.resolve_all_aliases();
        return true;
    }
    false
}

/// Makes something simpler of an instruction. Whether that was possible.
fn simpler(func: &mut Function, inst: Inst, way: usize) -> bool {
    let data = func.dfg.insts[inst];
    let ways: &[BlockCall] = match &data {
        InstructionData::Brif { blocks, .. } => blocks,
        InstructionData::BranchTable { table, .. } => func.dfg.jump_tables[*table].all_branches(),
        _ => &[],
    };
    if let Some(&call) = ways.get(way) {
        let pool = &func.dfg.value_lists;
        let (block, args) = (call.block(pool), call.args(pool).collect::<Vec<_>>());
        func.replace(inst).jump(block, &args);
        return true;
    }
    use Opcode::{F32const, F64const, Iconst, StackAddr, SymbolValue};
    let constant = [Iconst, F32const, F64const, StackAddr, SymbolValue].contains(&data.opcode());
    let used = func.dfg.inst_results(inst).to_vec();
    let is_used = insts(func).iter().any(|&user| {
        func.dfg.inst_values(user).any(|value| used.contains(&func.dfg.resolve_aliases(value)))
    });
    if data.opcode().is_terminator() || way > 0 {
        return false;
    }
    if !is_used {
        func.layout.remove_inst(inst);
        return true;
    }
    let &[result] = used.as_slice() else { return false };
    let ty = func.dfg.value_type(result);
    if constant || !(ty.is_int() || matches!(ty, F32 | F64)) {
        return false;
    }
    let mut at = FuncCursor::new(func).at_inst(inst);
    let one = match ty {
        F32 => at.ins().f32const(1.0),
        F64 => at.ins().f64const(1.0),
        _ => at.ins().iconst(ty, 1),
    };
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, one);
    func.layout.remove_inst(inst);
    func.dfg.resolve_all_aliases();
    true
}

fn drop_unreachable(func: &mut Function) {
    let dominators = DominatorTree::with_function(func, &ControlFlowGraph::with_function(func));
    for block in func.layout.blocks().collect::<Vec<_>>() {
        if !dominators.is_reachable(block) {
            while let Some(inst) = func.layout.first_inst(block) {
                func.layout.remove_inst(inst);
            }
            func.layout.remove_block(block);
        }
    }
}
