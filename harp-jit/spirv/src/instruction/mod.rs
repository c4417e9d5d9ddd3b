//! Instructions within blocks, by family.

mod arithmetic;
mod atomic;
mod builtin;
mod collective;
mod composite;
mod convert;
mod copy;
mod dot;
mod generic;
mod group;
mod imported;
mod intel;
mod matrix;
mod memory;
mod subgroup;

use rspirv::spirv::Op;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Instruction, op_name};

pub(crate) use arithmetic::Of;

impl Translator<'_, '_, '_> {
    /// Translates an instruction that neither ends a block nor calls a function.
    pub(crate) fn instruction(&mut self, inst: Instruction<'_>) -> Result<()> {
        let families = [
            Self::arithmetic,
            Self::integer_dot,
            Self::memory,
            Self::composite,
            Self::conversion,
            Self::generic,
            Self::atomic,
            Self::group,
            Self::subgroup,
            Self::intel_subgroup,
            Self::matrix,
        ];
        for family in families {
            if family(self, inst)? {
                return Ok(());
            }
        }
        match inst.op {
            Op::ExtInst => self.extended(inst),
            // Control flow is taken as it is: merges are hints, as assumptions are.
            Op::Nop
            | Op::SelectionMerge
            | Op::LoopMerge
            | Op::LifetimeStart
            | Op::LifetimeStop
            | Op::AssumeTrueKHR => Ok(()),
            op => Err(SpirvErrorKind::unsupported(op_name(op))),
        }
    }
}
