//! The audit of shared registers: whether each lane reads what it has written itself.
//!
//! Code that keeps a value of each lane in a shared register is right as long as lanes that write it agree, and no
//! lane reads what others have written while it did not execute: those on the other side of a `split`, or in a later
//! iteration of a loop that it has left. With registers of their own lanes would not notice each other, so this
//! remembers what each lane would have. It is opt-in ([`MachineConfig::audit_shared`](crate::MachineConfig)), and belongs
//! to the precise path.

use harp_isa::{ArchId, Gpr, Instruction, Op, Operand, RegClass, Role};

use super::lanes::{index, lanes_of, pred_index};
use super::{Exec, Flow, NEXT, Precise};
use crate::trap::TrapKind;
use crate::warp::{FILE, Warp};
use crate::word::Word;

/// What each lane of each warp of a core has last written to shared registers.
pub(crate) struct Audit {
    arch: ArchId,
    warps: Vec<Known>,
}

/// What the lanes of a warp have last written.
#[derive(Clone)]
struct Known {
    /// For each shared register, the words by lane.
    gprs: Vec<[u64; FILE]>,
    /// For each shared predicate, the bits by lane.
    preds: Vec<u64>,
    /// As it was before the last interrupt.
    saved: Option<Box<Known>>,
}

impl Audit {
    /// No warp has been started.
    pub(super) fn new(arch: ArchId) -> Audit {
        Audit { arch, warps: Vec::new() }
    }

    /// The next warp starts, with all registers 0.
    pub(crate) fn start(&mut self) {
        self.warps.push(Known {
            gprs: vec![[0; FILE]; self.arch.shared_gprs().into()],
            preds: vec![0; self.arch.shared_preds().into()],
            saved: None,
        });
    }

    /// The warp that was started last starts with `value` in a shared register.
    pub(crate) fn start_with(&mut self, reg: Gpr, value: u64) {
        let number = usize::from(reg.index() - self.arch.gprs());
        if let Some(known) = self.warps.last_mut() {
            known.gprs[number] = [value; FILE];
        }
    }

    /// A warp is interrupted.
    pub(crate) fn interrupt(&mut self, warp: usize) {
        let known = &mut self.warps[warp];
        known.saved = None;
        known.saved = Some(Box::new(known.clone()));
    }

    /// A warp returns from an interrupt.
    fn return_from_interrupt(&mut self, warp: usize) {
        let known = &mut self.warps[warp];
        if let Some(saved) = &known.saved {
            (known.gprs, known.preds) = (saved.gprs.clone(), saved.preds.clone());
        }
    }
}

impl Known {
    /// These lanes know what the shared register has.
    fn learn_gpr(&mut self, number: usize, value: u64, lanes: u64) {
        lanes_of(lanes).for_each(|lane| self.gprs[number][lane] = value);
    }

    fn learn_pred(&mut self, number: usize, value: bool, lanes: u64) {
        let pred = &mut self.preds[number];
        *pred = if value { *pred | lanes } else { *pred & !lanes };
    }

    /// These lanes know what all shared registers of their warp have.
    fn learn_all<W: Word, const C: usize>(&mut self, warp: &Warp<W, C>, arch: ArchId, lanes: u64) {
        for number in 0..arch.shared_gprs() {
            let value = warp.regs[usize::from(arch.gprs() + number)][0][0].to_u64();
            self.learn_gpr(number.into(), value, lanes);
        }
        for number in 0..arch.shared_preds() {
            let value = warp.preds[usize::from(arch.preds() + number)] & 1 != 0;
            self.learn_pred(number.into(), value, lanes);
        }
    }

    /// Lane `to` becomes a copy of lane `from`.
    fn clone_lane(&mut self, from: usize, to: usize) {
        for words in &mut self.gprs {
            words[to] = words[from];
        }
        for bits in &mut self.preds {
            *bits = *bits & !(1 << to) | (*bits >> from & 1) << to;
        }
    }
}

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// Traps in lanes that are about to read from a shared register what they have not written. All active lanes read the
    /// guard, and all whose guard is true the operands, also of what is done once: each would have done it.
    pub(super) fn check_shared(&mut self, instruction: &Instruction) -> Flow {
        if let Some(guard) = instruction.guard {
            self.check_operand(guard.into(), self.warp.active)?;
        }
        let mut flow = NEXT;
        // The roles without the guard: what a skipped lane keeps it does not read.
        Instruction::new(instruction.op).for_each_register(|operand, _, role| {
            if role != Role::Def && flow.is_continue() {
                flow = self.check_operand(operand, self.all_enabled);
            }
        });
        flow
    }

    /// Traps in those of `lanes` that have last written another value.
    fn check_operand(&mut self, operand: Operand, lanes: u64) -> Flow {
        let arch = self.env.arch;
        let Some(audit) = &self.system.audit else { return NEXT };
        let known = &audit.warps[usize::from(self.number)];
        let (class, number, shared, own): (_, _, _, &dyn Fn(usize) -> u64) = match operand {
            Operand::Gpr(reg) if arch.is_shared_gpr(reg) => {
                let number = reg.index() - arch.gprs();
                let own = &known.gprs[usize::from(number)];
                (RegClass::Gpr, number, self.lane(reg, 0).to_u64(), &|lane| own[lane])
            }
            Operand::Pred(pred) if arch.is_shared_pred(pred) => {
                let number = pred.index() - arch.preds();
                let own = known.preds[usize::from(number)];
                (RegClass::Pred, number, self.pred(pred) & 1, &move |lane| own >> lane & 1)
            }
            _ => return NEXT,
        };
        let differ = lanes_of(lanes)
            .filter(|&lane| own(lane) != shared)
            .fold(0u64, |differ, lane| differ | 1 << lane);
        if differ == 0 {
            return NEXT;
        }
        let own = own(differ.trailing_zeros() as usize);
        self.trap(TrapKind::SharedMismatch { class, number, shared, own }, differ)
    }

    /// Remembers what lanes know after an instruction. Before it, the lanes `before` were active.
    pub(super) fn note_shared(&mut self, op: Op, before: u64) {
        let arch = self.env.arch;
        let Some(audit) = &mut self.system.audit else { return };
        let known = &mut audit.warps[usize::from(self.number)];
        let lanes = self.all_enabled;
        match op {
            // Its destination belongs to another warp.
            Op::Wspawn { .. } => {}
            Op::Clone { lane: to } => {
                for from in lanes_of(self.mask) {
                    let to = self.warp.regs[index(to)].as_flattened()[from].to_u64();
                    known.clone_lane(from, to as usize);
                }
            }
            Op::Reti {} => audit.return_from_interrupt(self.number.into()),
            _ => {
                let (regs, preds) = (&self.warp.regs, &self.warp.preds);
                Instruction::new(op).for_each_register(|operand, _, role| match operand {
                    _ if role == Role::Use => {}
                    Operand::Gpr(reg) if arch.is_shared_gpr(reg) => {
                        let value = regs[index(reg)][0][0].to_u64();
                        known.learn_gpr((reg.index() - arch.gprs()).into(), value, lanes);
                    }
                    Operand::Pred(pred) if arch.is_shared_pred(pred) => {
                        let value = preds[pred_index(pred)] & 1 != 0;
                        known.learn_pred((pred.index() - arch.preds()).into(), value, lanes);
                    }
                    _ => {}
                });
                // Lanes that the others activate begin with what these have.
                if matches!(op, Op::Jalis { .. } | Op::Jalrs { .. } | Op::Jmprt { .. }) {
                    known.learn_all(self.warp, arch, self.warp.active & !before);
                }
            }
        }
    }
}
