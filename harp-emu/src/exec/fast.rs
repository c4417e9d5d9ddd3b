//! The fast ways through a program: run by run.
//!
//! A run is a sequence of instructions that the same lanes execute one after the other (see
//! [`Slot::run`]). Budget, pc, executing lanes and counts are seen to once a run; in between there
//! is nothing but the operations. Where an instruction is left to the precise way a run ends early
//! and the accounts are set right.

use std::ptr;

use super::{End, Env, Exec, Full, Masked, Precise, Way};
use crate::code::{Code, Slot};
use crate::simd::Level;
use crate::system::System;
use crate::warp::Warp;
use crate::word::Word;

/// A run at least as long as this is worth a change of the way.
const LONG: usize = 8;

/// A warp, and what it needs to run.
pub(crate) struct Host<'a, 'm, W: Word, const C: usize> {
    pub(crate) warp: &'a mut Warp<W, C>,
    pub(crate) env: &'a Env<'m, W>,
    pub(crate) system: &'a mut System,
    /// The warp's number.
    pub(crate) number: u8,
}

impl<W: Word, const C: usize> Host<'_, '_, W, C> {
    #[inline(always)]
    fn exec<P: Way>(&mut self) -> Exec<'_, W, C, P> {
        Exec::new(self.warp, self.env, self.system, self.number)
    }
}

/// Why one of the fast ways came back, its warp standing at the next instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// As many instructions as allowed were issued.
    Budget,
    /// The next instruction is not decoded.
    Undecoded,
    /// The other fast way is the right one for what comes next.
    Mask,
    /// The next instruction is one for the precise way.
    Other,
}

/// Issues at most `budget` instructions of a warp.
pub(crate) fn run<W: Word, const C: usize>(
    level: Level,
    mut host: Host<'_, '_, W, C>,
    code: &Code,
    budget: u64,
) -> End<W> {
    let mut left = budget;
    let mut is_full = host.warp.active == host.env.full();
    loop {
        let stop = match is_full {
            true => level.run::<W, C, Full>(&mut host, code, &mut left),
            false => level.run::<W, C, Masked>(&mut host, code, &mut left),
        };
        match stop {
            Stop::Budget => return End::Budget,
            Stop::Undecoded => return End::Undecoded,
            Stop::Mask => is_full = !is_full,
            Stop::Other => {
                let Some(slot) = code.find(host.warp.pc) else {
                    return End::Undecoded;
                };
                let end = host.exec::<Precise>().issue_one(&code.slots()[slot], None);
                if !matches!(end, End::Budget) {
                    return end;
                }
                left -= 1;
                is_full = host.warp.active == host.env.full();
            }
        }
    }
}

/// Issues at most `left` instructions of a warp in one of the fast ways, and counts `left` down.
#[inline(always)]
pub(crate) fn run_way<W: Word, const C: usize, P: Way>(
    host: &mut Host<'_, '_, W, C>,
    code: &Code,
    budget: &mut u64,
) -> Stop {
    let pc_mask = W::ONES.to_u64();
    let slots = code.slots();
    let mut pc = host.warp.pc;
    let mut left = *budget;
    let mut exec = host.exec::<P>();
    let stop = 'jump: loop {
        let Some(mut at) = code.find(pc) else {
            break if left == 0 { Stop::Budget } else { Stop::Undecoded };
        };
        let mut jumped = true;
        loop {
            let first = &slots[at];
            let mut count = usize::from(first.run);
            let mut bytes = first.run_bytes;
            if count as u64 > left {
                count = whole_steps(&slots[at..][..left as usize]);
                if count == 0 && left != 0 {
                    break 'jump Stop::Other;
                }
                bytes = size_of_run(&slots[at..][..count]);
            }
            if count == 0 {
                if left == 0 {
                    break 'jump Stop::Budget;
                }
                // The end of a chain.
                continue 'jump;
            }
            let behind = pc.wrapping_add(bytes.into()) & pc_mask;
            let mask = exec.warp.active & exec.warp.preds[usize::from(first.guard % 128)];
            exec.next = behind;
            if mask != 0 || first.unconditional {
                let is_full = mask == exec.full;
                if is_full != P::FULL && (P::FULL || jumped || count >= LONG) {
                    break 'jump Stop::Mask;
                }
                exec.set_mask(mask);
                let run = &slots[at..][..count];
                let mut stopped = None;
                let mut rest = run.iter();
                while let Some(slot) = rest.next() {
                    let flow = if P::FULL {
                        slot.step.accept(&mut exec, || _ = rest.next())
                    } else {
                        slot.op.accept(&mut exec)
                    };
                    if flow.is_break() {
                        stopped = Some(slot);
                        break;
                    }
                }
                if let Some(slot) = stopped {
                    let done = before(run, slot);
                    exec.count(done.len());
                    left -= done.len() as u64;
                    pc = pc.wrapping_add(size_of_run(done).into()) & pc_mask;
                    break 'jump Stop::Other;
                }
                exec.count(count);
            } else {
                exec.warp.stats.steps += count as u64;
            }
            left -= count as u64;
            at += count;
            pc = exec.next;
            if pc != behind {
                continue 'jump;
            }
            jumped = false;
        }
    };
    host.warp.pc = pc;
    *budget = left;
    stop
}

/// How many of the instructions from the first on are whole steps.
#[cold]
#[inline(never)]
fn whole_steps(slots: &[Slot]) -> usize {
    let mut count = 0;
    while let Some(slot) = slots.get(count) {
        let next = count + if slot.step.is_pair() { 2 } else { 1 };
        if next > slots.len() {
            break;
        }
        count = next;
    }
    count
}

#[cold]
#[inline(never)]
fn size_of_run(slots: &[Slot]) -> u32 {
    slots.iter().map(|slot| u32::from(slot.size)).sum()
}

/// The slots of a run that come before one of them. Found by looking, so that the loop need not
/// count.
#[cold]
#[inline(never)]
fn before<'a>(run: &'a [Slot], slot: &Slot) -> &'a [Slot] {
    let count = run.iter().take_while(|other| !ptr::eq(*other, slot)).count();
    &run[..count]
}
