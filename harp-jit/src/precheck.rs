//! What Cranelift's verifier takes for granted.
//!
//! It has two gaps that later steps, or the verifier itself, answer with a panic: a function without
//! blocks passes, and an instruction whose controlling type its opcode does not have is reported,
//! but then asked for the types that follow from it, such as half of a scalar's lanes.

use cranelift_codegen::ir::{Function, Inst, Type};

/// Looks for these gaps in any function, also one that is otherwise malformed.
///
/// # Errors
///
/// What is wrong, in the words of a verifier.
pub(crate) fn precheck(func: &Function) -> Result<(), String> {
    if func.layout.entry_block().is_none() {
        return Err("the function has no blocks".to_owned());
    }
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        let allowed = func.dfg.insts[inst].opcode().constraints().ctrl_typeset();
        let (Some(allowed), Some(ty)) = (allowed, controlling_type(func, inst)) else { continue };
        if !allowed.contains(ty) {
            let text = func.dfg.display_inst(inst);
            return Err(format!("- {inst} ({text}): has an invalid controlling type {ty}"));
        }
    }
    Ok(())
}

/// The type that decides about the others; none if the instruction lacks the operand or result that
/// has it, which the verifier finds.
fn controlling_type(func: &Function, inst: Inst) -> Option<Type> {
    let data = &func.dfg.insts[inst];
    let value = if data.opcode().constraints().requires_typevar_operand() {
        data.typevar_operand(&func.dfg.value_lists)?
    } else {
        *func.dfg.inst_results(inst).first()?
    };
    func.dfg.value_is_valid(value).then(|| func.dfg.value_type(value))
}
