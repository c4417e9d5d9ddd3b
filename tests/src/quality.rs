//! How many instructions code has, by kind: what tells good code from bad without running it.

use std::fmt;

use harp_isa::abi::RegisterRoles;
use harp_isa::{
    ArchId, DecodeError, Instruction, Op, OpcodeFlags, Operand, OperandKind, disassemble,
};

/// Instructions by kind; each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jumps, calls, returns, traps, `split` and `join`.
    pub control: usize,
    /// What writes a predicate, or reads one as its only source: compares, logic, `ptor`.
    pub predicate: usize,
    /// Loads, stores and atomics, outside the frame.
    pub memory: usize,
    /// Loads and stores from the stack pointer: spills, saved registers, stack slots.
    pub frame: usize,
    /// Copies of a register.
    pub moves: usize,
    /// `ldi`: constants, or the first instruction of those that take several.
    pub constant: usize,
    /// All else.
    pub compute: usize,
}

impl Counts {
    /// Counts the instructions of machine code that holds nothing else. Fails if it does hold something else.
    pub fn of(code: &[u8], arch: ArchId) -> Result<Counts, DecodeError> {
        let mut counts = Counts::default();
        for (_, instruction) in disassemble(code, 0, arch) {
            *counts.kind(&instruction?, arch) += 1;
        }
        Ok(counts)
    }

    fn kind(&mut self, instruction: &Instruction, arch: ArchId) -> &mut usize {
        let opcode = instruction.op.opcode();
        let flags = opcode.flags();
        let stack_pointer = Operand::Gpr(RegisterRoles::new(arch).stack_pointer());
        let mut names_stack = false;
        instruction.op.for_each_operand(|operand| names_stack |= operand == stack_pointer);
        let is_predicate = |kind: OperandKind| matches!(kind, OperandKind::Pred(_));
        let of_predicates = opcode.operands().iter().any(|operand| is_predicate(operand.kind));
        let memory = OpcodeFlags::LOAD | OpcodeFlags::STORE | OpcodeFlags::ATOMIC;
        match instruction.op {
            Op::Split {} | Op::Join {} => &mut self.control,
            _ if flags.contains(OpcodeFlags::CONTROL) => &mut self.control,
            _ if flags.intersects(memory) && names_stack => &mut self.frame,
            _ if flags.intersects(memory) => &mut self.memory,
            Op::Orp { a, b, .. } if a == b => &mut self.moves,
            _ if of_predicates => &mut self.predicate,
            Op::Ori { imm: 0, .. } => &mut self.moves,
            Op::Ldi { .. } => &mut self.constant,
            _ => &mut self.compute,
        }
    }

    /// All instructions.
    pub fn total(&self) -> usize {
        self.columns().iter().map(|&(_, count)| count).sum()
    }

    /// The names and values of all counts.
    pub fn columns(&self) -> [(&'static str, usize); 7] {
        [
            ("compute", self.compute),
            ("constant", self.constant),
            ("move", self.moves),
            ("memory", self.memory),
            ("frame", self.frame),
            ("predicate", self.predicate),
            ("control", self.control),
        ]
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        self.columns().iter().try_for_each(|(_, count)| write!(f, " | {count}"))
    }
}
