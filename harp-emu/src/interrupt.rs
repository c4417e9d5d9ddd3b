//! Interrupts: which there are, and what a warp keeps while it handles one.

use crate::warp::{FILE, Warp};
use crate::word::Word;

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

/// What `reti` brings back: of the registers those of lane 0.
pub(crate) struct Shadow<W> {
    pub(crate) regs: [W; FILE],
    /// Predicate i of lane 0 is bit i.
    pub(crate) preds: u64,
    pub(crate) active: u64,
    pub(crate) active_count: u8,
    pub(crate) supervisor: bool,
    pub(crate) interrupts: bool,
    pub(crate) pc: u64,
}

impl<W: Word, const C: usize> Warp<W, C> {
    /// Sends the warp to the handler at `entry`, to come back to `back`.
    pub(crate) fn interrupt(
        &mut self,
        interrupt: Interrupt,
        address: Option<u64>,
        back: u64,
        entry: u64,
    ) {
        let lane_0 = |bits: u64, i: usize| (self.preds[i] & 1) << i | bits;
        self.shadow = Some(Box::new(Shadow {
            regs: std::array::from_fn(|i| self.regs[i][0][0]),
            preds: (0..FILE).fold(0, lane_0),
            active: self.active,
            active_count: self.active_count,
            supervisor: self.supervisor,
            interrupts: self.interrupts,
            pc: back,
        }));
        // The original ends its `trap` as any instruction, with as many lanes as there were.
        let count = if interrupt == Interrupt::Trap { self.active_count } else { 1 };
        self.activate(count);
        self.regs[0][0][0] = W::from_u64(interrupt.number().into());
        if let Some(address) = address {
            self.regs[1][0][0] = W::from_u64(address);
        }
        self.supervisor = true;
        self.interrupts = false;
        self.pc = entry;
    }

    /// Goes back to before the last interrupt; the address at which the warp goes on. `None` if there
    /// was none.
    pub(crate) fn return_from_interrupt(&mut self) -> Option<u64> {
        let shadow = self.shadow.as_deref()?;
        for (i, &value) in shadow.regs.iter().enumerate() {
            self.regs[i][0][0] = value;
            self.preds[i] = (self.preds[i] & !1) | (shadow.preds >> i & 1);
        }
        self.active = shadow.active;
        self.active_count = shadow.active_count;
        self.supervisor = shadow.supervisor;
        self.interrupts = shadow.interrupts;
        Some(shadow.pc)
    }
}
