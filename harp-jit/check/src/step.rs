//! One instruction with what surrounds it.

use harp_isa::{Instruction, OpcodeFlags};

use crate::live::After;
use crate::places::Place;
use crate::record::{Claims, Role, Selected};

/// An instruction with what surrounds it.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) at: usize,
    pub(crate) instruction: Instruction,
    pub(crate) guard: Option<Place>,
    pub(crate) role: Option<&'a Role>,
    pub(crate) after: &'a After,
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
