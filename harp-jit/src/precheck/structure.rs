//! Checks the structure that passes assume even if the verifier does not run: each block ends in a
//! terminator, and branches lead to blocks of the function that take as many arguments, but not to its entry.

use cranelift_codegen::ir::{Block, Function, Inst};

use crate::analysis::edges;

/// Checks the blocks of a function all of whose references exist. The error comes with the instruction, if
/// one is the cause.
pub(super) fn check(func: &Function) -> Result<(), (Option<Inst>, String)> {
    let Some(entry) = func.layout.entry_block() else {
        return Err((None, "the function has no blocks".to_owned()));
    };
    for block in func.layout.blocks() {
        let Some(last) = func.layout.last_inst(block) else {
            return Err((None, format!("- {block} has no instructions")));
        };
        for inst in func.layout.block_insts(block) {
            let ends = func.dfg.insts[inst].opcode().is_terminator();
            if ends != (inst == last) {
                let message = match ends {
                    true => format!("ends {block}, but is not its last instruction"),
                    false => format!("is the last instruction of {block}, but does not end it"),
                };
                return Err((Some(inst), message));
            }
        }
        check_branches(func, entry, last).map_err(|message| (Some(last), message))?;
    }
    Ok(())
}

fn check_branches(func: &Function, entry: Block, inst: Inst) -> Result<(), String> {
    let dfg = &func.dfg;
    for call in edges(dfg, inst) {
        let block = call.block(&dfg.value_lists);
        if !func.layout.is_block_inserted(block) {
            return Err(format!("invalid block reference {block}"));
        }
        if block == entry {
            return Err(format!("invalid reference to entry block {block}"));
        }
        let (given, wanted) = (call.len(&dfg.value_lists), dfg.num_block_params(block));
        if given != wanted {
            return Err(format!("{given} arguments for {block}, which has {wanted} parameters"));
        }
    }
    Ok(())
}
