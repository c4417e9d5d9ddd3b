//! The conversion of operands to the typed ones of an [`Op`](super::Op).

use thiserror::Error;

use super::Opcode;
use crate::operand::Operand;
use crate::reg::{Gpr, Pred};

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

/// The Rust types of operands in [`Op`](super::Op).
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
