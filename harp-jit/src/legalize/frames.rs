//! Questions about the frame as calls of intrinsics.
//!
//! Cranelift's verifier refuses `get_frame_pointer` and `get_return_address` where it knows no target, so
//! this happens even before it. HARP code has no frame pointer; where it asks for one it gets the address
//! where its frame ends, the stack pointer at its entry.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder, InstructionData, Opcode, Type};

use super::Opcodes;
use crate::intrinsic::Intrinsic;

/// Replaces these instructions in any function, also one that is malformed, except where the result is
/// less than a word. `word` is the integer of addresses, `opcodes` are those that occur.
pub(crate) fn frame_values(func: &mut Function, word: Type, opcodes: &Opcodes) {
    if !opcodes.contain_any(&[Opcode::GetFramePointer, Opcode::GetReturnAddress]) {
        return;
    }
    let mut at = FuncCursor::new(func);
    while at.next_block().is_some() {
        while let Some(inst) = at.next_inst() {
            let intrinsic = match at.func.dfg.insts[inst] {
                InstructionData::NullAry { opcode: Opcode::GetFramePointer } => Intrinsic::FrameEnd,
                InstructionData::NullAry { opcode: Opcode::GetReturnAddress } => {
                    Intrinsic::ReturnAddress
                }
                _ => continue,
            };
            let &[result] = at.func.dfg.inst_results(inst) else { continue };
            let ty = at.func.dfg.value_type(result);
            if !ty.is_int() || ty.bits() < word.bits() {
                continue;
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
}
