//! What modules say of how kernels run: execution modes, and the constant that is the size of work-groups.
//!
//! Modes that promise something, or ask for what is so anyway, change nothing. Denormals are kept, also where a mode asks for zeros.

use rspirv::spirv::{BuiltIn, ExecutionMode, Op};

use super::SpirvModule;
use crate::constants::Scalar;
use crate::error::{Result, SpirvErrorKind};
use crate::reader::{Declares, Instruction, declares};

/// What an execution mode means for its kernel.
enum Mode {
    LocalSize([u32; 3]),
    SubgroupSize(u32),
    /// The kernel is to run before all others.
    Initializer,
    Unsupported(ExecutionMode),
    Ignored,
}

impl SpirvModule {
    /// Whether an instruction is the constant that stands for the size of work-groups.
    pub(super) fn is_local_size(&self, at: usize) -> bool {
        let Instruction { op, id, .. } = self.code.get(at);
        declares(op) == Declares::Constant
            && self.decorations.builtin(id) == Some(BuiltIn::WorkgroupSize as u32)
    }

    /// Takes in what an execution mode, or that constant, says. The constant is for all kernels, and comes before what their modes
    /// say.
    pub(super) fn take_mode(&mut self, at: usize) -> Result<()> {
        let inst = self.code.get(at);
        if declares(inst.op) == Declares::Constant {
            let size = self.constant_size(inst)?;
            self.entry_points.iter_mut().for_each(|entry| entry.local_size = Some(size));
            return Ok(());
        }
        let (function, mode) = (inst.word(0)?, self.mode(inst)?);
        for entry in self.entry_points.iter_mut().filter(|entry| entry.function == function) {
            match mode {
                Mode::LocalSize(size) => entry.local_size = Some(size),
                Mode::SubgroupSize(items) => entry.subgroup_size = Some(items),
                Mode::Initializer => entry.is_initializer = true,
                Mode::Unsupported(mode) => {
                    let what = format!("the execution mode {mode:?}");
                    entry.problem.get_or_insert(SpirvErrorKind::unsupported(what));
                }
                Mode::Ignored => {}
            }
        }
        Ok(())
    }

    fn constant_size(&self, inst: Instruction<'_>) -> Result<[u32; 3]> {
        match self.constants.scalars(inst.id, &self.types)?[..] {
            [Scalar::Bits(x), Scalar::Bits(y), Scalar::Bits(z)] => Ok([x, y, z].map(narrow)),
            _ => {
                Err(SpirvErrorKind::malformed("a size of work-groups of other than three numbers"))
            }
        }
    }

    fn mode(&self, inst: Instruction<'_>) -> Result<Mode> {
        let of = |index| match inst.op {
            Op::ExecutionMode => inst.word(index),
            _ => self.constants.length(inst.word(index)?, &self.types).map(narrow),
        };
        let Some(mode) = ExecutionMode::from_u32(inst.word(1)?) else { return Ok(Mode::Ignored) };
        Ok(match mode {
            ExecutionMode::LocalSize | ExecutionMode::LocalSizeId => {
                Mode::LocalSize([of(2)?, of(3)?, of(4)?])
            }
            ExecutionMode::SubgroupSize => Mode::SubgroupSize(of(2)?),
            ExecutionMode::Initializer => Mode::Initializer,
            ExecutionMode::SubgroupsPerWorkgroup
            | ExecutionMode::SubgroupsPerWorkgroupId
            | ExecutionMode::RoundingModeRTZ
            | ExecutionMode::RoundingModeRTPINTEL
            | ExecutionMode::RoundingModeRTNINTEL
            | ExecutionMode::FloatingPointModeALTINTEL
            | ExecutionMode::DerivativeGroupQuadsNV => Mode::Unsupported(mode),
            _ => Mode::Ignored,
        })
    }
}

fn narrow(extent: u64) -> u32 {
    u32::try_from(extent).unwrap_or(u32::MAX)
}
