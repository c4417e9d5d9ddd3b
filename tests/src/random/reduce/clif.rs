//! Functions without what does not matter: instructions left out or constants, branches that are jumps.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode};

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
        for part in [Part::Function, Part::Slots, Part::Blocks] {
            let mut smaller = smallest.clone();
            if remove(&mut smaller, part) && keeps(&smaller) {
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

/// What goes at once.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The last function, if no other names it, also out of tables.
    Function,
    /// Stack slots, arguments and declarations that nothing uses.
    Slots,
    /// Blocks into which only one jump leads.
    Blocks,
}

/// Removes something. Whether there was any.
fn remove(case: &mut Case, part: Part) -> bool {
    match part {
        Part::Function => {
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
        Part::Slots => {
            let mut changed = false;
            for func in &mut case.functions {
                changed |= drop_unused_slots(func);
            }
            changed
        }
        Part::Blocks => case.functions.iter_mut().any(join_blocks),
    }
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

/// The last stack slots as far as nothing uses them.
fn drop_unused_slots(func: &mut Function) -> bool {
    let used = insts(func).into_iter().filter_map(|inst| func.dfg.insts[inst].stack_slot());
    let used: Vec<_> = used.collect();
    let kept: Vec<_> =
        func.sized_stack_slots.iter().map(|(slot, data)| (slot, data.clone())).collect();
    let count = kept.iter().rposition(|(slot, _)| used.contains(slot)).map_or(0, |last| last + 1);
    if count == kept.len() {
        return false;
    }
    func.sized_stack_slots.clear();
    for (_, data) in kept.into_iter().take(count) {
        func.sized_stack_slots.push(data);
    }
    true
}

/// Puts a block at the end of the one that jumps to it, if no other does.
fn join_blocks(func: &mut Function) -> bool {
    let all: Vec<_> = func.layout.blocks().collect();
    let leading = |func: &Function, to| -> usize {
        let successors = all.iter().flat_map(|&block| func.block_successors(block));
        successors.filter(|&successor| successor == to).count()
    };
    for &block in &all {
        let Some(last) = func.layout.last_inst(block) else { continue };
        let InstructionData::Jump { destination, .. } = func.dfg.insts[last] else { continue };
        let next = destination.block(&func.dfg.value_lists);
        if next == block || Some(next) == func.layout.entry_block() || leading(func, next) != 1 {
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
    match data {
        InstructionData::Brif { blocks, .. } => {
            let pool = &func.dfg.value_lists;
            let (block, args) =
                (blocks[way].block(pool), blocks[way].args(pool).collect::<Vec<_>>());
            func.replace(inst).jump(block, &args);
            return true;
        }
        InstructionData::BranchTable { table, .. } => {
            let branches = func.dfg.jump_tables[table].all_branches();
            let Some(&call) = branches.get(way) else { return false };
            let pool = &func.dfg.value_lists;
            let (block, args) = (call.block(pool), call.args(pool).collect::<Vec<_>>());
            func.replace(inst).jump(block, &args);
            return true;
        }
        _ => {}
    }
    let constant = matches!(
        data.opcode(),
        Opcode::Iconst
            | Opcode::F32const
            | Opcode::F64const
            | Opcode::StackAddr
            | Opcode::SymbolValue
    );
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
    let Some(entry) = func.layout.entry_block() else { return };
    let mut reached = vec![entry];
    let mut at = 0;
    while at < reached.len() {
        for successor in func.block_successors(reached[at]).collect::<Vec<_>>() {
            if !reached.contains(&successor) {
                reached.push(successor);
            }
        }
        at += 1;
    }
    for block in func.layout.blocks().collect::<Vec<_>>() {
        if reached.contains(&block) {
            continue;
        }
        while let Some(inst) = func.layout.first_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}
