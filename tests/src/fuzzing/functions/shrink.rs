//! Smaller modules that fail as larger ones do.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode};

use super::{Failure, check_case};
use crate::generate::functions::module;
use crate::oracle::{Address, Ending, ModuleCase, Stop};

/// A module that fails on the same machine and level as `bytes` do, but is smaller; `failure` itself if
/// none is found.
///
/// First fewer bytes are tried in the manner of delta debugging (Zeller and Hildebrandt 2002): shorter,
/// parts left out, parts zero. Then instructions are left out or become constants, and branches become
/// jumps. Takes `attempts` at most.
pub fn shrink(bytes: &[u8], failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    let smaller = fewer_bytes(bytes, failure, &mut { attempts / 2 });
    fewer_instructions(smaller, &mut { attempts - attempts / 2 })
}

/// The same, beginning with the module itself.
pub fn simplify(failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    fewer_instructions(failure, &mut { attempts })
}

/// The failure of a case on the machine and level of another one, if it is of the same kind.
fn fails(case: &ModuleCase, like: &Failure) -> Option<Box<Failure>> {
    let failure = check_case(case, &[(like.arch, like.opt_level)]).err()?;
    let same = kind(&failure.message) == kind(&like.message);
    (same && (failure.code.is_none() || case.is_determined())).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.ends_with(" found") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}

fn fewer_bytes(bytes: &[u8], failure: Box<Failure>, left: &mut usize) -> Box<Failure> {
    let mut smallest = failure;
    let mut bytes = bytes.to_vec();
    let mut part = bytes.len() / 2;
    while part > 0 && *left > 0 {
        let mut start = 0;
        let mut changed = false;
        while start < bytes.len() && *left > 0 {
            let end = bytes.len().min(start + part);
            let truncated = bytes[..start].to_vec();
            let removed = [&bytes[..start], &bytes[end..]].concat();
            let mut zeroed = bytes.clone();
            zeroed[start..end].fill(0);
            let mut found = false;
            for candidate in [truncated, removed, zeroed] {
                if candidate == bytes || *left == 0 {
                    continue;
                }
                *left -= 1;
                let case = module(&candidate, smallest.arch.word());
                if size(&case) > size(&smallest.case) {
                    continue;
                }
                if let Some(smaller) = fails(&case, &smallest) {
                    (bytes, smallest, found, changed) = (candidate, smaller, true, true);
                    break;
                }
            }
            if !found || bytes.get(start..end).is_some_and(|part| part.iter().all(|&b| b == 0)) {
                start += part;
            }
        }
        if !changed || part > 1 {
            part /= 2;
        }
    }
    smallest
}

fn size(case: &ModuleCase) -> usize {
    case.functions.iter().map(|func| insts(func).len()).sum()
}

fn insts(func: &Function) -> Vec<Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect()
}

/// Tries to do without each instruction, the last ones first, until nothing more can go.
fn fewer_instructions(failure: Box<Failure>, left: &mut usize) -> Box<Failure> {
    let mut smallest = failure;
    let ending = |case: &ModuleCase| case.expected().ok().map(|(effect, _)| effect.ending);
    let before = ending(&smallest.case);
    loop {
        let mut changed = false;
        for part in [Part::Function, Part::Slots, Part::Blocks] {
            let mut case = (*smallest.case).clone();
            if remove(&mut case, part)
                && let Some(smaller) = fails(&case, &smallest)
            {
                (smallest, changed) = (smaller, true);
            }
        }
        for index in 0..smallest.case.functions.len() {
            for inst in insts(&smallest.case.functions[index]).into_iter().rev() {
                for way in 0..2 {
                    if *left == 0 {
                        return smallest;
                    }
                    let mut case = (*smallest.case).clone();
                    let func = &mut case.functions[index];
                    if func.layout.inst_block(inst).is_none() || !simpler(func, inst, way) {
                        continue;
                    }
                    drop_unreachable(func);
                    *left -= 1;
                    // Addresses that became numbers are no finding.
                    let ending = ending(&case);
                    let strange =
                        ending == Some(Ending::Trap(Stop::BadAddress)) && ending != before;
                    if let (false, Some(smaller)) = (strange, fails(&case, &smallest)) {
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
    /// The last function, with its table.
    Function,
    /// Stack slots, arguments and declarations that nothing uses.
    Slots,
    /// Blocks into which only one jump leads.
    Blocks,
}

/// Removes something. Whether there was any.
fn remove(case: &mut ModuleCase, part: Part) -> bool {
    match part {
        Part::Function => {
            let last = case.functions.len() - 1;
            let is_last = |&(_, address): &(usize, Address)| address == Address::Function(last);
            let used: Vec<bool> =
                case.data.iter().map(|datum| datum.addresses.iter().any(is_last)).collect();
            if last == 0 {
                return false;
            }
            case.functions.pop();
            for (datum, used) in case.data.iter_mut().zip(used) {
                if used {
                    datum.addresses.retain(|address| !is_last(address));
                }
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

#[cfg(test)]
mod tests {
    use harp_isa::{ArchId, WordSize};
    use harp_jit::OptLevel;

    use super::*;

    #[test]
    fn only_what_fails_is_left() {
        // Something that is not supported, among much that is.
        let text = "function %f(i64, i32) -> i64 {
                ss0 = explicit_slot 16
                fn0 = %g(i64) -> i64
            block0(v0: i64, v1: i32):
                v2 = stack_addr.i64 ss0
                store v0, v2
                v3 = call fn0(v0)
                br_table v1, block3, [block1(v3), block2]
            block1(v4: i64):
                v5 = iadd v4, v0
                v6 = uextend.i128 v5
                v7, v8 = isplit v6
                jump block2
            block2:
                v9 = load.i64 v2
                brif v9, block3, block1(v9)
            block3:
                return v3
            }
            function %g(i64) -> i64 {
            block0(v0: i64):
                v1 = imul v0, v0
                return v1
            }";
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let args = vec![0_i64.into(), 7_i32.into()];
        let case = ModuleCase { word: WordSize::Eight, functions, data: Vec::new(), args };
        let failure = check_case(&case, &[(ArchId::HARP64, OptLevel::Speed)]).unwrap_err();
        assert!(failure.message.contains("i128"), "{failure}");
        let smaller = simplify(failure, 1000);
        assert!(smaller.message.contains("i128"), "{smaller}");
        assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
        let left = insts(&smaller.case.functions[0]);
        // A branch to the rest, it, its operand, the jump back and the return's operand.
        assert!(left.len() <= 8, "{smaller}");
        assert!(smaller.case.functions[0].sized_stack_slots.is_empty(), "{smaller}");
    }
}
