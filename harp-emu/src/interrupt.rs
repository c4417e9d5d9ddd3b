//! The kinds of interrupts. The state that a warp saves while it handles one is in `warp`.

/// An event that can interrupt a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interrupt {
    /// The instruction `trap`.
    Trap,
    /// An access to a page without a mapping.
    PageMiss,
    /// An access that its page does not permit.
    PagePermission,
    /// An invalid instruction, or a privileged one in user mode.
    Invalid,
    /// Lanes that disagree on the predicate of a jump or another change of control.
    DivergentBranch,
    /// A division by zero.
    DivideByZero,
    /// A byte of console input.
    ConsoleInput,
}

impl Interrupt {
    /// The number that the handler finds in `%r0`.
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

    /// Whether the instruction that raises it is executed again after the handler. While interrupts are off,
    /// such an interrupt is a double fault, whereas the instructions of other interrupts are skipped.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Interrupt::PageMiss | Interrupt::PagePermission | Interrupt::DivergentBranch)
    }
}
