//! Checks addresses that the code promises to be aligned.
//!
//! An access with the flag `aligned` becomes one machine instruction, which at an unaligned address silently
//! moves only the bytes up to the end of the word. The checks are for programs whose promises are in doubt:
//! an `and` and a conditional trap before each access, which the mid-end shares between accesses to the same
//! address.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{I16, I32};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode, TrapCode, Type, Value};

/// The trap of an address that is not aligned as promised: `user128`.
pub(crate) const MISALIGNED: TrapCode = TrapCode::unwrap_user(128);

/// Inserts a check before each access with the flag `aligned`, unless it has `notrap`, too.
pub(crate) fn check_alignment(func: &mut Function) {
    let mut at = FuncCursor::new(func);
    while at.next_block().is_some() {
        while let Some(inst) = at.next_inst() {
            let data = at.func.dfg.insts[inst];
            let promised = data
                .memflags_data(&at.func.dfg)
                .is_some_and(|flags| flags.aligned() && !flags.notrap());
            let Some((ty, address)) = accessed(at.func, inst) else { continue };
            if !promised || ty.bytes() == 1 {
                continue;
            }
            at.use_srcloc(inst);
            let offset = data.load_store_offset().unwrap_or(0);
            let address = match offset {
                0 => address,
                offset => at.ins().iadd_imm_s(address, i64::from(offset)),
            };
            let beyond = at.ins().band_imm_u(address, i64::from(ty.bytes() - 1));
            at.ins().trapnz(beyond, MISALIGNED);
        }
    }
}

/// The integer or float type that is read or written, and the address. Atomic operations trap on misaligned
/// addresses by themselves.
fn accessed(func: &Function, inst: Inst) -> Option<(Type, Value)> {
    let ty = match func.dfg.insts[inst].opcode() {
        Opcode::Load => func.dfg.value_type(func.dfg.first_result(inst)),
        Opcode::Store => func.dfg.value_type(func.dfg.inst_args(inst)[0]),
        Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => I16,
        Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => I32,
        _ => return None,
    };
    Some((ty, *func.dfg.inst_args(inst).last()?))
}
