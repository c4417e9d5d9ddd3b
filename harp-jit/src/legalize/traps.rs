//! Turns conditional traps into branches.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, Opcode, TrapCode, Value,
};

use super::control::append_block;
use crate::constant;

/// The opcodes that trap under a condition, which becomes explicit.
pub(super) const REPLACED: [Opcode; 4] =
    [Opcode::Trapz, Opcode::Trapnz, Opcode::UaddOverflowTrap, Opcode::Sdiv];

/// The condition of a conditional trap.
#[derive(Clone, Copy)]
enum TrapIf {
    Zero,
    NotZero,
}

/// Replaces every conditional trap, and every trap inside another operation, by a branch.
pub(super) fn explicit_traps(func: &mut Function) {
    let mut at = FuncCursor::new(func);
    while at.next_block().is_some() {
        // Each case leaves the cursor at the instructions after the trap, which are then in a block of their
        // own.
        while let Some(inst) = at.next_inst() {
            at.use_srcloc(inst);
            match at.func.dfg.insts[inst] {
                InstructionData::CondTrap { opcode, arg, code } => {
                    let when = match opcode {
                        Opcode::Trapz => TrapIf::Zero,
                        _ => TrapIf::NotZero,
                    };
                    trap_before(&mut at, inst, arg, when, code);
                    at.goto_inst(inst);
                    at.remove_inst_and_step_back();
                }
                InstructionData::IntAddTrap { args: [x, y], code, .. } => {
                    overflowing_add(&mut at, inst, x, y, code);
                }
                InstructionData::Binary { opcode: Opcode::Sdiv, args: [x, y] } => {
                    overflowing_division(&mut at, inst, x, y);
                }
                _ => {}
            }
        }
    }
}

/// An unsigned sum overflows exactly if it is less than one of its terms.
fn overflowing_add(at: &mut FuncCursor<'_>, inst: Inst, x: Value, y: Value, code: TrapCode) {
    let sum = at.func.replace(inst).iadd(x, y);
    let next = at.func.layout.next_inst(inst).expect("an addition does not end a block");
    at.goto_inst(next);
    let overflow = at.ins().icmp(IntCC::UnsignedLessThan, sum, x);
    trap_before(at, next, overflow, TrapIf::NotZero, code);
    let rest = at.func.layout.inst_block(next).expect("it is in the layout");
    at.goto_top(rest);
}

/// `sdiv` traps if the smallest number is divided by -1, which the machine does not detect.
fn overflowing_division(at: &mut FuncCursor<'_>, inst: Inst, x: Value, y: Value) {
    let ty = at.func.dfg.value_type(x);
    if !ty.is_int() || ty.bits() > 64 {
        return;
    }
    let smallest = i64::MIN >> (64 - ty.bits());
    let differs =
        |value, from| constant::signed(&at.func.dfg, value).is_some_and(|given| given != from);
    if differs(x, smallest) || differs(y, -1) {
        return;
    }
    let [x, y] = [(x, smallest), (y, -1)].map(|(value, bad)| {
        let bad = at.ins().iconst(ty, Imm64::new(bad).zero_extend_from_width(ty.bits()));
        at.ins().icmp(IntCC::Equal, value, bad)
    });
    let overflow = at.ins().band(x, y);
    trap_before(at, inst, overflow, TrapIf::NotZero, TrapCode::INTEGER_OVERFLOW);
    at.goto_inst(inst);
}

/// Splits the block before `inst`; the first part branches on `condition` to a trap or to `inst`.
fn trap_before(
    at: &mut FuncCursor<'_>,
    inst: Inst,
    condition: Value,
    when: TrapIf,
    code: TrapCode,
) {
    let func = &mut *at.func;
    let before = func.layout.inst_block(inst).expect("it is in the layout");
    let [rest, trap] = std::array::from_fn(|_| func.dfg.make_block());
    func.layout.split_block(rest, inst);
    let mut in_trap = append_block(func, trap, inst);
    in_trap.ins().trap(code);
    func.layout.set_cold(trap);
    at.goto_bottom(before);
    match when {
        TrapIf::Zero => at.ins().brif(condition, rest, &[], trap, &[]),
        TrapIf::NotZero => at.ins().brif(condition, trap, &[], rest, &[]),
    };
}
