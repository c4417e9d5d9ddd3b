//! Sets of extended instructions.

use harp_libm::Math;
use rspirv::grammar::{
    BaseInstruction, ExtInstOp, GLSL_STD_450_INSTRUCTION_TABLE, OPENCL_STD_100_INSTRUCTION_TABLE,
};
use rspirv::spirv::GlslStd450Op;

/// A set of extended instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionSet {
    OpenCl,
    Glsl,
}

/// Whether the instructions of the set with this name do nothing.
pub(crate) fn is_silent(set: &str) -> bool {
    set.starts_with("NonSemantic.") || ["OpenCL.DebugInfo.100", "DebugInfo"].contains(&set)
}

/// The name of an extended instruction.
pub(crate) fn name(set: InstructionSet, number: u32) -> Option<&'static str> {
    let found: Option<&BaseInstruction<'_, ExtInstOp>> = match set {
        InstructionSet::OpenCl => OPENCL_STD_100_INSTRUCTION_TABLE.lookup_opcode(number),
        InstructionSet::Glsl => GLSL_STD_450_INSTRUCTION_TABLE.lookup_opcode(number),
    };
    found.map(|row| row.opname)
}

/// Whether an extended instruction stores a result through its last operand, and does nothing else with it.
pub(crate) fn stores_to_pointer(set: InstructionSet, number: u32) -> bool {
    match set {
        InstructionSet::OpenCl => {
            let math = name(set, number).and_then(Math::from_name);
            math.is_some_and(|math| math.results().len() > 1)
        }
        InstructionSet::Glsl => {
            [GlslStd450Op::Modf as u32, GlslStd450Op::Frexp as u32].contains(&number)
        }
    }
}
