//! Interrupts: which there are. What a warp keeps while it handles one is part of its state (see `warp`).

/// What interrupts a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interrupt {
    /// The instruction `trap`.
    Trap,
    /// A page that no mapping is for.
    PageMiss,
    /// A page that does not permit the access.
    PagePermission,
    /// An invalid instruction, or a privileged one in user mode.
    Invalid,
    /// Lanes that disagree on the predicate of a change of control.
    DivergentBranch,
    /// A division by zero.
    DivideByZero,
    /// A byte of console input.
    ConsoleInput,
}

impl Interrupt {
    /// What the handler finds in `%r0`.
    pub fn number(self) -> u8 {
        match self {
            Interrupt::Trap => 0,
            Interrupt::PageMiss => 1,
            Interrupt::PagePermission => 2,
            Interrupt::Invalid => 3,
            Interrupt::DivergentBranch => 4,
            Interrupt::DivideByZero => 5,
            Interrupt::ConsoleInput => 8,
        }
    }

    /// Whether the instruction that raises it is carried out anew after the handler. Such an
    /// interrupt is a double fault while interrupts are off; the other instructions are skipped.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Interrupt::PageMiss | Interrupt::PagePermission | Interrupt::DivergentBranch)
    }
}
