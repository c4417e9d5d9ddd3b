//! Faults and interrupts: the guest's handler gets them, or the run ends.

use harp_isa::Encoding;

use super::Lanes;
use crate::interrupt::Interrupt;
use crate::trap::{BarrierWait, Trap, TrapKind};
use crate::warp::{Status, Warp};
use crate::word::Word;

impl<W: Word, const C: usize> Lanes<'_, W, C> {
    /// Handles a fault of warp `number`, whose pc is at the instruction that faults; `next` is the one after it.
    pub(super) fn fault(
        &mut self,
        number: usize,
        kind: TrapKind,
        lanes: u64,
        next: u64,
    ) -> Result<(), Box<Trap>> {
        let interrupt = match kind.interrupt() {
            Some(interrupt) if self.env.handles_interrupts => interrupt,
            _ => return Err(self.trap_at(number, kind, lanes)),
        };
        let warp = &mut self.warps[number];
        let address = kind.page_address();
        let kind = match (warp.interrupts, self.system.entry) {
            (true, Some(entry)) => {
                let back = if interrupt.repeats() { warp.pc } else { next };
                warp.interrupt(interrupt, address, back, entry);
                self.audit_interrupt(number);
                return Ok(());
            }
            (true, None) => TrapKind::NoHandler { interrupt, cause: Box::new(kind) },
            (false, _) if interrupt.repeats() => {
                TrapKind::DoubleFault { interrupt, cause: Box::new(kind) }
            }
            (false, _) => {
                warp.pc = next;
                return Ok(());
            }
        };
        Err(self.trap_at(number, kind, lanes))
    }

    /// Handles the fault that there is no instruction at the pc of warp `number`, or none that may be fetched.
    pub(super) fn no_instruction(
        &mut self,
        number: usize,
        kind: TrapKind,
    ) -> Result<(), Box<Trap>> {
        let warp = &mut self.warps[number];
        let mut next = warp.pc;
        if matches!(kind, TrapKind::InvalidInstruction(_)) {
            // An invalid instruction counts as issued; one that cannot be fetched does not.
            warp.stats.steps += 1;
            self.issued += 1;
            next = next.wrapping_add(invalid_bytes(self.env.arch)) & W::ONES.to_u64();
        }
        let lanes = warp.active;
        self.fault(number, kind, lanes, next)
    }

    /// Interrupts warp `number` if there is console input and it may be interrupted.
    pub(super) fn poll_console(&mut self, number: usize) {
        if self.may_be_interrupted(number)
            && let Some(entry) = self.system.entry
            && self.system.console.has_input()
        {
            self.settle(number);
            let warp = &mut self.warps[number];
            let back = warp.pc;
            warp.interrupt(Interrupt::ConsoleInput, None, back, entry);
            self.audit_interrupt(number);
        }
    }

    /// Saves what lanes have written to shared registers, if that is checked.
    fn audit_interrupt(&mut self, number: usize) {
        if let Some(audit) = &mut self.system.audit {
            audit.interrupt(number);
        }
    }

    /// Whether console input may interrupt warp `number`.
    pub(super) fn may_be_interrupted(&self, number: usize) -> bool {
        number == 0
            && self.env.handles_interrupts
            && self.system.entry.is_some()
            && self.warps[number].status == Status::Ready
            && self.warps[number].interrupts
    }

    /// Traps if warps wait. To be called when none is ready.
    pub(super) fn check_deadlock(&self) -> Result<(), Box<Trap>> {
        let wait = |(number, warp): (usize, &Warp<W, C>)| match warp.status {
            Status::Waiting { id, warps, .. } => Some(BarrierWait {
                warp: u8::try_from(number).expect("at most 64 warps"),
                pc: warp.pc,
                lanes: warp.active,
                barrier: id,
                wanted: warps,
            }),
            Status::Ready | Status::Stopped => None,
        };
        let waiting: Vec<_> = self.warps.iter().enumerate().filter_map(wait).collect();
        match waiting.first() {
            None => Ok(()),
            Some(&BarrierWait { warp, lanes, .. }) => {
                Err(self.trap_at(warp.into(), TrapKind::Deadlock { waiting }, lanes))
            }
        }
    }

    pub(super) fn trap_at(&self, number: usize, kind: TrapKind, lanes: u64) -> Box<Trap> {
        let warp = u8::try_from(number).expect("at most 64 warps");
        let pc = self.warps[number].pc;
        Box::new(Trap { kind, core: self.env.core, warp, pc, lanes })
    }
}

/// The size that is assumed for an invalid instruction. In the byte encoding, where sizes differ, it is that
/// of the bytes that every instruction has: guard and opcode.
fn invalid_bytes(arch: harp_isa::ArchId) -> u64 {
    match arch.encoding() {
        Encoding::Word => arch.word().bytes().into(),
        Encoding::Byte => 2,
    }
}
