//! Privileged instructions: interrupts, address translation, user mode.

use harp_isa::{Gpr, Opcode};

use super::lanes::lanes_of;
use super::{Event, Exec, Flow, NEXT, Precise};
use crate::trap::TrapKind;
use crate::word::Word;

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// A trap unless the warp is in supervisor mode.
    #[inline(always)]
    fn privileged(&mut self, opcode: Opcode) -> Flow {
        if self.warp.supervisor {
            return NEXT;
        }
        let lanes = self.warp.active;
        self.trap_uncounted(TrapKind::Privileged { opcode }, lanes)
    }

    /// Goes on, after a look at what may interrupt the warp by now.
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

    /// The last executing lane's entry stays.
    #[inline(never)]
    pub(super) fn do_skep(&mut self, entry: Gpr) -> Flow {
        self.privileged(Opcode::Skep)?;
        let Some(last) = self.mask.checked_ilog2() else {
            return NEXT;
        };
        self.system.entry = Some(self.lane(entry, last as usize).to_u64());
        self.unmasked()
    }

    /// Lane 0 returns; without it nothing happens.
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
        let Some(pc) = self.warp.return_from_interrupt() else {
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

    /// Lane by lane, lowest first.
    #[inline(never)]
    pub(super) fn do_tlbadd(&mut self, virt: Gpr, phys: Gpr, flags: Gpr) -> Flow {
        self.privileged(Opcode::Tlbadd)?;
        for lane in lanes_of(self.mask) {
            let [virt, phys, flags] = [virt, phys, flags].map(|reg| self.lane(reg, lane).to_u64());
            if let Err(kind) = self.system.tlb.add(virt, phys, flags) {
                return self.trap(kind, 1 << lane);
            }
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn do_tlbrm(&mut self, virt: Gpr) -> Flow {
        self.privileged(Opcode::Tlbrm)?;
        for lane in lanes_of(self.mask) {
            let virt = self.lane(virt, lane).to_u64();
            self.system.tlb.remove(virt);
        }
        NEXT
    }

    #[inline(never)]
    pub(super) fn do_tlbflush(&mut self) -> Flow {
        self.privileged(Opcode::Tlbflush)?;
        if self.mask != 0 {
            self.system.tlb.flush();
        }
        NEXT
    }
}
