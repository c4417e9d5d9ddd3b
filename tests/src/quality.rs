//! How many instructions code has, by kind: what tells good code from bad without running it.

use std::fmt;

use harp_isa::abi::RegisterRoles;
use harp_isa::{
    ArchId, DecodeError, Instruction, Op, OpcodeFlags, Operand, OperandKind, disassemble,
};

/// The names of the kinds: copies of a register; `ldi`, which makes constants or begins what makes them; loads, stores and
/// atomics, outside the frame and from the stack pointer; what writes a predicate, or reads one as its only source; jumps,
/// calls, returns, traps, `split` and `join`; all else, which comes first.
pub const KINDS: [&str; 7] =
    ["compute", "constant", "move", "memory", "frame", "predicate", "control"];

/// Instructions by kind; each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; KINDS.len()]);

impl Counts {
    /// Counts the instructions of machine code that holds nothing else. Fails if it does hold something else.
    pub fn of(code: &[u8], arch: ArchId) -> Result<Counts, DecodeError> {
        let mut counts = Counts::default();
        for (_, instruction) in disassemble(code, 0, arch) {
            let kind = kind(&instruction?, arch);
            counts.0[KINDS.iter().position(|name| *name == kind).expect("it is one of them")] += 1;
        }
        Ok(counts)
    }
}

fn kind(instruction: &Instruction, arch: ArchId) -> &'static str {
    let opcode = instruction.op.opcode();
    let flags = opcode.flags();
    let stack_pointer = Operand::Gpr(RegisterRoles::new(arch).stack_pointer());
    let mut names_stack = false;
    instruction.op.for_each_operand(|operand| names_stack |= operand == stack_pointer);
    let is_predicate = |kind: OperandKind| matches!(kind, OperandKind::Pred(_));
    let of_predicates = opcode.operands().iter().any(|operand| is_predicate(operand.kind));
    let memory = OpcodeFlags::LOAD | OpcodeFlags::STORE | OpcodeFlags::ATOMIC;
    match instruction.op {
        Op::Split {} | Op::Join {} => "control",
        _ if flags.contains(OpcodeFlags::CONTROL) => "control",
        _ if flags.intersects(memory) && names_stack => "frame",
        _ if flags.intersects(memory) => "memory",
        Op::Orp { a, b, .. } if a == b => "move",
        _ if of_predicates => "predicate",
        Op::Ori { imm: 0, .. } => "move",
        Op::Ldi { .. } => "constant",
        _ => "compute",
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.iter().sum::<usize>())?;
        self.0.iter().try_for_each(|count| write!(f, " | {count}"))
    }
}
