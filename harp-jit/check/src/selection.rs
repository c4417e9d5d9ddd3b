//! Whether instructions are those that were selected.

use harp_isa::{Instruction, OpcodeFlags, Pred};

use crate::code::{Code, Placed};
use crate::error::{CodeError, CodeFault};
use crate::live::After;
use crate::op::predicates;
use crate::places::{Place, Places};
use crate::record::{Claims, Name, Named, Role, Selected};
use crate::repeats::Repeated;
use crate::state::State;
use crate::structure::Structure;

/// An instruction with what surrounds it.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) at: usize,
    pub(crate) instruction: Instruction,
    pub(crate) guard: Option<Place>,
    pub(crate) role: Option<&'a Role>,
    pub(crate) after: &'a After,
    pub(crate) repeated: &'a Repeated,
}

impl Step<'_> {
    pub(crate) fn flags(&self) -> OpcodeFlags {
        self.instruction.op.opcode().flags()
    }

    pub(crate) fn selected(&self) -> Option<&Selected> {
        match self.role {
            Some(Role::Selected(selected)) => Some(selected),
            _ => None,
        }
    }

    pub(crate) fn claims(&self) -> Claims {
        self.selected().map(|selected| selected.claims).unwrap_or_default()
    }
}

/// Proves that every instruction does the same as the one that was selected, and has a guard if that had one.
pub(crate) fn check(code: &Code<'_>, structure: &Structure) -> Result<(), CodeError> {
    for at in structure.blocks.iter().flat_map(|block| block.first..=block.last) {
        let Placed { instruction, note, .. } = code.insts[at];
        let guarded = match note.map(|note| &note.role) {
            Some(Role::Selected(selected)) => {
                if instruction.op.opcode() != selected.opcode {
                    let selected = selected.opcode.mnemonic();
                    return Err(code.error(at, CodeFault::Opcode { selected }));
                }
                selected.guard.is_some()
            }
            Some(Role::Part { guard: Some(_), .. }) => true,
            _ => continue,
        };
        if instruction.guard.is_some() != guarded {
            return Err(code.error(at, CodeFault::Guard { selected: guarded }));
        }
    }
    Ok(())
}

/// The predicates are those that were selected.
pub(crate) fn check_predicates(
    code: &Code<'_>,
    state: &State<'_>,
    step: &Step<'_>,
    report: &mut dyn FnMut(CodeFault),
) {
    let mut expect = |reg: Pred, name: Name| {
        if !state.is_named(Places::pred(reg), name) {
            report(CodeFault::Predicate { register: code.register(reg), selected: name });
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
}

/// Selected predicates are where the instruction puts them.
pub(crate) fn name_results(state: &mut State<'_>, step: &Step<'_>) {
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
