//! The precise path: one instruction after the other, each reported to an observer.
//!
//! Every instruction is fetched anew. So changes to code are seen at once, whoever makes them, and pages may
//! be mapped anywhere, whereas the fast path only runs code in pages that are in place.

use std::ops::ControlFlow;

use harp_isa::{Instruction, Op, Operand, Role, Sharing};

use super::code::{self, Slot};
use super::{End, Event, Exec, NEXT, Precise};
use crate::inspect::WarpView;
use crate::observe::{Issue, Observer, Retire};
use crate::tlb::PAGE;
use crate::trap::PageAccess;
use crate::trap::TrapKind;
use crate::word::Word;

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// Issues at most `budget` instructions.
    pub(crate) fn run_precisely(
        &mut self,
        budget: u64,
        mut observer: Option<&mut dyn Observer>,
    ) -> End<W> {
        for _ in 0..budget {
            let pc = self.warp.pc;
            let slot = match self.fetch(pc) {
                Ok(slot) => slot,
                Err(kind) => return End::NoInstruction(kind),
            };
            let end = self.issue_one(&slot, observer.as_deref_mut());
            if !matches!(end, End::Budget) {
                return end;
            }
        }
        End::Budget
    }

    /// Issues at most `budget` instructions, as long as they lie in pages that are not in place. If the first
    /// lies in a page that is, it returns [`End::Undecoded`].
    pub(crate) fn run_elsewhere(&mut self, budget: u64) -> End<W> {
        for issued in 0..budget {
            let pages = self.system.tlb.in_place(self.warp.supervisor);
            if pages.permit(self.warp.pc, PageAccess::Fetch) {
                return if issued == 0 { End::Undecoded } else { End::Budget };
            }
            let end = self.run_precisely(1, None);
            if !matches!(end, End::Budget) {
                return end;
            }
        }
        End::Budget
    }

    /// Issues the instruction at the pc.
    pub(super) fn issue_one(
        &mut self,
        slot: &Slot,
        mut observer: Option<&mut (dyn Observer + '_)>,
    ) -> End<W> {
        let pc = self.warp.pc;
        self.next = pc.wrapping_add(u64::from(slot.size)) & W::ONES.to_u64();
        let enabled = self.warp.active & self.warp.preds[usize::from(slot.guard)];
        self.all_enabled = enabled;
        let is_once = slot.sharing == Sharing::Once;
        self.set_mask(if is_once { enabled & enabled.wrapping_neg() } else { enabled });
        if let Some(observer) = observer.as_deref_mut() {
            observer.issue(&self.issue(slot));
        }
        self.warp.stats.steps += 1;
        let before = self.warp.active;
        let audits = self.system.audit.is_some();
        let flow = if audits && self.check_shared(&slot.instruction()).is_break() {
            ControlFlow::Break(())
        } else if self.mask == 0 && !slot.unconditional {
            NEXT
        } else {
            self.warp.stats.insts += self.executing();
            let flow = slot.op.accept(self);
            if is_once && enabled != 0 {
                self.share_destinations(slot.op);
            }
            if audits && !matches!(self.event, Some(Event::Trap { .. })) {
                self.note_shared(slot.op, before);
            }
            flow
        };
        if let Some(observer) = observer {
            observer.retire(&self.retire(slot));
        }
        if flow.is_break() {
            let event = self.event.take().expect("a turn that ends says why");
            return End::Event { event, next: self.next };
        }
        self.warp.pc = self.next;
        End::Budget
    }

    /// Gives what the first executing lane has written to shared registers to all lanes. Of a `wspawn`, whose destination
    /// belongs to another warp, and of an instruction that has trapped it is the old value.
    fn share_destinations(&mut self, op: Op) {
        let lane = self.first();
        Instruction::new(op).for_each_register(|operand, _, role| match operand {
            _ if role == Role::Use => {}
            Operand::Gpr(reg) => drop(self.share(reg, self.lane(reg, lane))),
            Operand::Pred(reg) => drop(self.share_pred(reg, self.pred(reg) >> lane & 1 != 0)),
            Operand::Imm(_) => {}
        });
    }

    /// The instruction at `pc`.
    fn fetch(&mut self, pc: u64) -> Result<Slot, TrapKind> {
        let (arch, cells) = (self.env.arch, self.env.cells);
        if !self.env.translates {
            let (bytes, count) = code::bytes_at(cells, pc)?;
            let decoded = self.system.decoded.decode(pc, &bytes, count, arch);
            return decoded.map_err(TrapKind::InvalidInstruction);
        }
        let place = self.translate(pc, PageAccess::Fetch)?;
        let (mut bytes, count) = code::bytes_at(cells, place)?;
        let in_page = (PAGE - pc % PAGE) as usize;
        match self.system.decoded.decode(pc, &bytes, in_page.min(count), arch) {
            // The instruction may continue in the next page, whose physical page need not be the next one.
            Err(_) if in_page <= count && in_page < bytes.len() => {
                let next_page = pc.wrapping_add(in_page as u64) & W::ONES.to_u64();
                let place = self.translate(next_page, PageAccess::Fetch)?;
                let (rest, rest_count) = code::bytes_at(cells, place)?;
                let count = (in_page + rest_count).min(bytes.len());
                bytes[in_page..].copy_from_slice(&rest[..rest.len() - in_page]);
                Slot::decode(&bytes[..count], arch)
            }
            decoded => decoded,
        }
        .map_err(TrapKind::InvalidInstruction)
    }

    /// The instruction about to be issued, for observers.
    fn issue(&self, slot: &Slot) -> Issue<'_> {
        Issue {
            arch: self.env.arch,
            core: self.env.core,
            warp: self.number,
            pc: self.warp.pc,
            instruction: slot.instruction(),
            executing: self.mask,
            enabled: self.all_enabled,
            state: WarpView::new(self.warp),
        }
    }

    /// The instruction that was carried out or has trapped, for observers.
    fn retire(&self, slot: &Slot) -> Retire<'_> {
        let trap = match &self.event {
            Some(Event::Trap { kind, .. }) => Some(kind),
            _ => None,
        };
        Retire {
            arch: self.env.arch,
            core: self.env.core,
            warp: self.number,
            pc: self.warp.pc,
            instruction: slot.instruction(),
            executing: self.mask,
            next: self.next,
            trap,
            state: WarpView::new(self.warp),
        }
    }
}
