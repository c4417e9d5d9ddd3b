//! Turns instructions that query the frame into calls of intrinsics.
//!
//! HARP code has no frame pointer. Code that asks for it gets the address of the frame's end, the stack
//! pointer at the function's entry.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder, InstructionData, Opcode, Type};

use super::Opcodes;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;

/// Replaces these instructions. `word` is the integer type of addresses, `opcodes` are those that occur.
///
/// # Errors
///
/// The first of them whose result is narrower than a word.
pub(crate) fn frame_values(
    func: &mut Function,
    word: Type,
    opcodes: &Opcodes,
) -> Result<(), Unsupported> {
    if !opcodes.contain_any(&[Opcode::GetFramePointer, Opcode::GetReturnAddress]) {
        return Ok(());
    }
    let mut at = FuncCursor::new(func);
    while let Some(block) = at.next_block() {
        while let Some(inst) = at.next_inst() {
            let intrinsic = match at.func.dfg.insts[inst] {
                InstructionData::NullAry { opcode: Opcode::GetFramePointer } => Intrinsic::FrameEnd,
                InstructionData::NullAry { opcode: Opcode::GetReturnAddress } => {
                    Intrinsic::ReturnAddress
                }
                _ => continue,
            };
            let ty = at.func.dfg.value_type(at.func.dfg.first_result(inst));
            if ty.bits() < word.bits() {
                let what = format!("an address of type {ty}, which is narrower than a word");
                return Err(Unsupported { inst, block, what });
            }
            let callee = intrinsic.declare(at.func, word);
            if ty == word {
                at.func.replace(inst).call(callee, &[]);
                continue;
            }
            at.use_srcloc(inst);
            let call = at.ins().call(callee, &[]);
            let value = at.func.dfg.first_result(call);
            at.func.replace(inst).uextend(ty, value);
        }
    }
    Ok(())
}
