//! Whether an instruction is the one that was selected.

use harp_isa::{Op, Operand, Pred};
use smallvec::SmallVec;

use super::error::CodeFault;
use super::places::Places;
use super::record::{Name, Named, Role};
use super::state::State;
use super::transfer::Step;
use super::value::operands;

/// The instruction is the one that was selected, with the predicates that were selected.
pub(super) fn check(state: &State, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
    let mut expect = |reg: Pred, name: Name| {
        if !state.is_named(Places::pred(reg), name) {
            let operand = Operand::Pred(reg);
            report(CodeFault::Predicate { operand, selected: name });
        }
    };
    let op = step.instruction.op;
    let guard = step.instruction.guard;
    if let Some(Role::Part { guard: Some(name), .. }) = step.role
        && let Some(reg) = guard
    {
        expect(reg, *name);
    }
    if let Some(selected) = step.selected() {
        if let (Some(reg), Some(name)) = (guard, selected.guard) {
            expect(reg, name);
        }
        for (reg, named) in predicates(op).into_iter().zip(&selected.predicates) {
            if let Named::Use(name) | Named::Mod { old: name, .. } = *named {
                expect(reg, name);
            }
        }
    }
    let wanted = match step.role {
        Some(Role::Selected(selected)) => {
            if op.opcode() != selected.opcode {
                report(CodeFault::Opcode { selected: selected.opcode.mnemonic() });
            }
            Some(selected.guard.is_some())
        }
        Some(Role::Part { guard: Some(_), .. }) => Some(true),
        _ => None,
    };
    if let Some(selected) = wanted
        && guard.is_some() != selected
    {
        report(CodeFault::Guard { selected });
    }
}

/// Selected predicates are where the instruction puts them.
pub(super) fn name_results(state: &mut State, step: &Step<'_>) {
    let predicates = predicates(step.instruction.op).into_iter();
    if let Some(Role::Part { defines: Some(name), .. }) = step.role {
        predicates.take(1).for_each(|reg| state.rename(*name, Places::pred(reg)));
        return;
    }
    let Some(selected) = step.selected() else { return };
    for (operand, named) in predicates.zip(&selected.predicates) {
        if let Named::Def(name) | Named::Mod { new: name, .. } = *named {
            state.rename(name, Places::pred(operand));
        }
    }
}

/// The predicate operands of an operation.
fn predicates(op: Op) -> SmallVec<[Pred; 3]> {
    let predicate = |operand| match operand {
        Operand::Pred(reg) => Some(reg),
        Operand::Gpr(_) | Operand::Imm(_) => None,
    };
    operands(op).into_iter().filter_map(predicate).collect()
}
