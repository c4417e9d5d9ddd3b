//! Instructions with their operands and guard.

use std::fmt;

use thiserror::Error;

use crate::arch::{ArchId, Encoding};
use crate::opcode::{OperandKind, Role};
use crate::reg::{Gpr, Pred, RegClass};
use crate::table::{Op, Opcode};

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A general register.
    Gpr(Gpr),
    /// A predicate register.
    Pred(Pred),
    /// An immediate or a displacement.
    Imm(i64),
}

impl From<Gpr> for Operand {
    fn from(reg: Gpr) -> Self {
        Operand::Gpr(reg)
    }
}

impl From<Pred> for Operand {
    fn from(reg: Pred) -> Self {
        Operand::Pred(reg)
    }
}

impl From<i64> for Operand {
    fn from(imm: i64) -> Self {
        Operand::Imm(imm)
    }
}

/// Operands that do not fit an opcode.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OperandError {
    /// Too few or too many operands.
    #[error("`{}` takes {expected} operands, {given} given", opcode.mnemonic())]
    Count {
        /// The instruction.
        opcode: Opcode,
        /// How many operands it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// An operand of the wrong kind.
    #[error("operand {} (`{}`) of `{}` cannot be {given:?}", index + 1, opcode.operands()[*index].name, opcode.mnemonic())]
    Kind {
        /// The instruction.
        opcode: Opcode,
        /// Which operand, from 0.
        index: usize,
        /// What was given.
        given: Operand,
    },
}

/// The Rust types that stand for operands in [`Op`].
pub(crate) trait TypedOperand: Sized {
    fn take(operand: Operand, opcode: Opcode, index: usize) -> Result<Self, OperandError>;
}

macro_rules! typed_operand {
    ($ty:ty, $variant:ident) => {
        impl TypedOperand for $ty {
            fn take(operand: Operand, opcode: Opcode, index: usize) -> Result<Self, OperandError> {
                match operand {
                    Operand::$variant(value) => Ok(value),
                    given => Err(OperandError::Kind { opcode, index, given }),
                }
            }
        }
    };
}

typed_operand!(Gpr, Gpr);
typed_operand!(Pred, Pred);
typed_operand!(i64, Imm);

/// An instruction: an operation and, optionally, the predicate that guards it.
///
/// In a lane whose guard is false the operation has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The predicate, if the instruction is predicated.
    pub guard: Option<Pred>,
    /// What it does.
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
    /// `arch` decides how a negative immediate looks: sign-extended to 64 bits in the word
    /// encoding, cut to the word in the byte encoding.
    pub fn display(&self, arch: ArchId) -> impl fmt::Display + '_ {
        self.display_with(arch, |_| None)
    }

    /// As [`display`](Self::display), with `symbol` naming immediates that refer to something.
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
            write!(f, "{guard} ? ")?;
        }
        write!(f, "{} ", op.opcode().mnemonic())?;
        let mut result = Ok(());
        op.for_each_operand(|operand| {
            result = result.and_then(|()| match operand {
                Operand::Gpr(reg) => write!(f, "{reg} "),
                Operand::Pred(reg) => write!(f, "{reg} "),
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

impl OperandKind {
    /// Whether an operand of this kind can be `operand`, register numbers and ranges aside.
    pub const fn accepts(self, operand: Operand) -> bool {
        matches!(
            (self, operand),
            (OperandKind::Gpr(_), Operand::Gpr(_))
                | (OperandKind::Pred(_), Operand::Pred(_))
                | (OperandKind::Imm | OperandKind::Rel, Operand::Imm(_))
        )
    }
}
