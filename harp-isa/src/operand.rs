//! Operands of instructions.

use crate::opcode::OperandKind;
use crate::reg::{Gpr, Pred};

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

impl OperandKind {
    /// Whether `operand` is of this kind. Register numbers and ranges are not checked.
    pub const fn accepts(self, operand: Operand) -> bool {
        matches!(
            (self, operand),
            (OperandKind::Gpr(_), Operand::Gpr(_))
                | (OperandKind::Pred(_), Operand::Pred(_))
                | (OperandKind::Imm | OperandKind::Rel, Operand::Imm(_))
        )
    }
}
