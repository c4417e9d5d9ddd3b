//! Instructions with their operands and guard.

use std::fmt;

use crate::arch::{ArchId, Encoding};
use crate::opcode::Role;
use crate::operand::Operand;
use crate::reg::{Pred, RegClass};
use crate::table::Op;

/// An instruction: an operation and, optionally, the predicate that guards it.
///
/// In a lane whose guard is false the operation has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The predicate, if the instruction is predicated.
    pub guard: Option<Pred>,
    /// The operation with its operands.
    pub op: Op,
}

impl Instruction {
    /// An instruction that is not predicated.
    pub const fn new(op: Op) -> Self {
        Self { guard: None, op }
    }

    /// The same operation under the predicate `guard`.
    pub const fn guarded_by(self, guard: Pred) -> Self {
        Self { guard: Some(guard), op: self.op }
    }

    /// Calls `visit` with each register operand and its role under the guard. The guard itself is
    /// not among them.
    pub fn for_each_register(&self, mut visit: impl FnMut(Operand, RegClass, Role)) {
        let mut descriptions = self.op.opcode().operands().iter();
        self.op.for_each_operand(|operand| {
            let kind = descriptions.next().expect("the table describes every operand").kind;
            if let Some((class, role)) = kind.register() {
                let role = if self.guard.is_some() { role.under_guard() } else { role };
                visit(operand, class, role);
            }
        });
    }

    /// The instruction as the disassembler prints it, immediates as 64-bit hexadecimal numbers.
    ///
    /// `arch` decides which registers are shared, and how a negative immediate looks: sign-extended
    /// to 64 bits in the word encoding, truncated to the word in the byte encoding.
    pub fn display(&self, arch: ArchId) -> impl fmt::Display + '_ {
        self.display_with(arch, |_| None)
    }

    /// As [`display`](Self::display), with `symbol` in place of an immediate that is a reference.
    pub fn display_with<'a>(
        &'a self,
        arch: ArchId,
        symbol: impl Fn(i64) -> Option<&'a str> + 'a,
    ) -> impl fmt::Display + 'a {
        Display { instruction: self, arch, symbol }
    }
}

impl From<Op> for Instruction {
    fn from(op: Op) -> Self {
        Instruction::new(op)
    }
}

struct Display<'a, F> {
    instruction: &'a Instruction,
    arch: ArchId,
    symbol: F,
}

impl<'a, F: Fn(i64) -> Option<&'a str>> fmt::Display for Display<'a, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Instruction { guard, op } = self.instruction;
        if let Some(guard) = guard {
            write!(f, "{} ? ", self.arch.pred_name(*guard))?;
        }
        write!(f, "{} ", op.opcode().mnemonic())?;
        let mut result = Ok(());
        op.for_each_operand(|operand| {
            result = result.and_then(|()| match operand {
                Operand::Gpr(reg) => write!(f, "{} ", self.arch.gpr_name(reg)),
                Operand::Pred(reg) => write!(f, "{} ", self.arch.pred_name(reg)),
                Operand::Imm(imm) => match (self.symbol)(imm) {
                    Some(name) => f.write_str(name),
                    None => write!(f, "#{:#x}", self.printed(imm)),
                },
            });
        });
        result?;
        f.write_str(";")
    }
}

impl<F> Display<'_, F> {
    fn printed(&self, imm: i64) -> u64 {
        match self.arch.encoding() {
            Encoding::Word => imm.cast_unsigned(),
            Encoding::Byte => imm.cast_unsigned() & self.arch.word().mask(),
        }
    }
}
