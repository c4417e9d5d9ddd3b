//! Refuses what no later step supports, before the mid-end can hide it.

use cranelift_codegen::ir::{Function, Opcode};

use super::Opcodes;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;

/// Refuses a pinned register.
///
/// # Errors
///
/// The first instruction that uses it.
pub(super) fn check_registers(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    let what = "a pinned register";
    refuse(func, opcodes, &[Opcode::GetPinnedReg, Opcode::SetPinnedReg], what)
}

/// Refuses calls of intrinsics with parameters or results that these do not have. This comes before floats
/// become integers, which could make a wrong signature right.
///
/// # Errors
///
/// The first such call.
pub(super) fn check_intrinsics(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    if !opcodes.contain_any(&[Opcode::Call]) {
        return Ok(());
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let Some(intrinsic) = Intrinsic::misused_by(func, inst) {
                let what = format!("`{intrinsic}` with such parameters and results");
                return Err(Unsupported { inst, block, what });
            }
        }
    }
    Ok(())
}

/// Refuses calls that catch exceptions. This comes before the mid-end, because their results are block
/// arguments, which no later step supports.
///
/// # Errors
///
/// The first such call.
pub(super) fn check_calls(func: &Function, opcodes: &Opcodes) -> Result<(), Unsupported> {
    let what = "a call that catches exceptions";
    refuse(func, opcodes, &[Opcode::TryCall, Opcode::TryCallIndirect], what)
}

/// Refuses instructions with an opcode in `refused`; `opcodes` are those that occur in `func`.
fn refuse(
    func: &Function,
    opcodes: &Opcodes,
    refused: &[Opcode],
    what: &str,
) -> Result<(), Unsupported> {
    if !opcodes.contain_any(refused) {
        return Ok(());
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if refused.contains(&func.dfg.insts[inst].opcode()) {
                return Err(Unsupported { inst, block, what: what.to_owned() });
            }
        }
    }
    Ok(())
}
