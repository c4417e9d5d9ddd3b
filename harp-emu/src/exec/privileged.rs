//! Privileged instructions: interrupts, address translation, user mode.

use harp_isa::{Gpr, Opcode};

use super::lanes::lanes_of;
use super::{Event, Exec, Flow, NEXT, Precise};
use crate::tlb::PAGE;
use crate::trap::TrapKind;
use crate::word::Word;

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// Traps unless the warp is in supervisor mode.
    #[inline(always)]
    fn privileged(&mut self, opcode: Opcode) -> Flow {
        if self.warp.supervisor {
            return NEXT;
        }
        let lanes = self.warp.active;
        self.trap_uncounted(TrapKind::Privileged { opcode }, lanes)
    }

    /// Goes on, after the core has checked for interrupts that have become possible.
    fn unmasked(&mut self) -> Flow {
        if self.env.handles_interrupts { self.leave(Event::Unmasked) } else { NEXT }
    }

    #[inline(never)]
    pub(super) fn do_di(&mut self) -> Flow {
        self.privileged(Opcode::Di)?;
        if self.mask != 0 {
            self.warp.interrupts = false;
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn do_ei(&mut self) -> Flow {
        self.privileged(Opcode::Ei)?;
        if self.mask == 0 {
            return NEXT;
        }
        self.warp.interrupts = true;
        self.unmasked()
    }

    /// Sets the handler's entry to that of the last executing lane.
    #[inline(never)]
    pub(super) fn do_skep(&mut self, entry: Gpr) -> Flow {
        self.privileged(Opcode::Skep)?;
        let Some(last) = self.mask.checked_ilog2() else {
            return NEXT;
        };
        self.system.entry = Some(self.lane(entry, last as usize).to_u64());
        self.unmasked()
    }

    /// Returns from an interrupt if lane 0 executes this; otherwise nothing happens.
    #[inline(never)]
    pub(super) fn do_reti(&mut self) -> Flow {
        self.privileged(Opcode::Reti)?;
        if self.mask == 0 {
            return NEXT;
        }
        self.converged(Opcode::Reti)?;
        if self.mask & 1 == 0 {
            return NEXT;
        }
        let Some(pc) = self.warp.return_from_interrupt(self.env.arch) else {
            return self.trap(TrapKind::NothingSaved, 1);
        };
        self.next = pc;
        self.unmasked()
    }

    #[inline(never)]
    pub(super) fn do_jmpru(&mut self, target: Gpr) -> Flow {
        self.privileged(Opcode::Jmpru)?;
        if self.mask == 0 {
            return NEXT;
        }
        self.jump_to(Opcode::Jmpru, target)?;
        self.warp.supervisor = false;
        NEXT
    }

    /// Adds the mappings lane by lane, lowest first.
    #[inline(never)]
    pub(super) fn do_tlbadd(&mut self, virt: Gpr, phys: Gpr, flags: Gpr) -> Flow {
        self.privileged(Opcode::Tlbadd)?;
        for lane in lanes_of(self.mask) {
            let [virt, phys, flags] = [virt, phys, flags].map(|reg| self.lane(reg, lane).to_u64());
            match self.system.tlb.add(virt, phys, flags) {
                Ok(is_lost) => self.note_page(virt, is_lost),
                Err(kind) => return self.trap(kind, 1 << lane),
            }
        }
        self.after_changes()
    }

    #[inline(never)]
    pub(super) fn do_tlbrm(&mut self, virt: Gpr) -> Flow {
        self.privileged(Opcode::Tlbrm)?;
        for lane in lanes_of(self.mask) {
            let virt = self.lane(virt, lane).to_u64();
            let is_lost = self.system.tlb.remove(virt);
            self.note_page(virt, is_lost);
        }
        self.after_changes()
    }

    #[inline(never)]
    pub(super) fn do_tlbflush(&mut self) -> Flow {
        self.privileged(Opcode::Tlbflush)?;
        if self.mask != 0 {
            self.system.tlb.flush();
            self.note_pages(0, u64::MAX);
        }
        self.after_changes()
    }

    /// Remembers the page of an address if code that was fetched from it `is_lost`.
    fn note_page(&mut self, address: u64, is_lost: bool) {
        if is_lost {
            let first = address / PAGE * PAGE;
            self.note_pages(first, first + (PAGE - 1));
        }
    }

    /// Remembers that what was decoded from these addresses may no longer be fetched.
    fn note_pages(&mut self, first: u64, last: u64) {
        if self.env.translates {
            self.system.changed.push((first, last));
        }
    }
}
