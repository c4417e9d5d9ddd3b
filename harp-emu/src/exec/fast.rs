//! The fast path, which executes a program run by run.
//!
//! A run is a sequence of instructions that the same lanes execute one after the other (see
//! [`Slot::run`]). Budget, pc, executing lanes and counts are updated once per run; within it only the
//! operations are done. If an instruction must be left to the precise path, the run ends early and pc and
//! counts are corrected.

use std::ptr;

use super::code::{Code, Codes, Slot};
use super::simd::{Level, Table};
use super::system::System;
use super::{End, Env, Exec, Fast, Precise, Way};
use crate::warp::Warp;
use crate::word::Word;

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

/// Why the fast path stopped. The warp's pc is at the next instruction.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// As many instructions as allowed were issued.
    Budget,
    /// The next instruction is not decoded.
    Undecoded,
    /// The next instruction needs the precise path.
    Other,
}

/// Issues at most `budget` instructions of a warp.
pub(crate) fn run<W: Word, const C: usize>(
    level: Level,
    mut host: Host<'_, '_, W, C>,
    codes: &Codes,
    budget: u64,
) -> End<W> {
    let mut left = budget;
    loop {
        // The precise path may have changed the mode.
        let code = codes.of(host.warp.supervisor);
        match run_fast(level, &mut host, code, &mut left) {
            Stop::Budget => return End::Budget,
            Stop::Undecoded if host.env.translates => {
                return host.exec::<Precise>().run_elsewhere(left);
            }
            Stop::Undecoded => return End::Undecoded,
            Stop::Other => {
                let Some(slot) = code.find(host.warp.pc) else {
                    return End::Undecoded;
                };
                let end = host.exec::<Precise>().issue_one(&code.slots()[slot], None);
                if !matches!(end, End::Budget) {
                    return end;
                }
                left -= 1;
            }
        }
    }
}

/// Issues one instruction of a warp, as the precise path does: for what is left to the interpreter because it is
/// seldom fast.
pub(crate) fn run_one<W: Word, const C: usize>(
    mut host: Host<'_, '_, W, C>,
    codes: &Codes,
) -> End<W> {
    let code = codes.of(host.warp.supervisor);
    match code.find(host.warp.pc) {
        Some(slot) => host.exec::<Precise>().issue_one(&code.slots()[slot], None),
        None => End::Undecoded,
    }
}

/// Issues at most `budget` instructions of a warp on the fast path, and counts `budget` down.
fn run_fast<W: Word, const C: usize>(
    level: Level,
    host: &mut Host<'_, '_, W, C>,
    code: &Code,
    budget: &mut u64,
) -> Stop {
    let pc_mask = W::ONES.to_u64();
    let slots = code.slots();
    let mut pc = host.warp.pc;
    let mut left = *budget;
    // The sum over instructions of the lanes that executed them.
    let mut insts = 0;
    let mut exec = host.exec::<Fast>();
    let handlers = Table::<W, C>::new(level);
    // The last address that was looked up, and its slots: loops come back to it.
    let (mut known, mut there): (u64, &[Slot]) = (pc, &[]);
    let stop = 'jump: loop {
        if pc != known || there.is_empty() {
            let Some(found) = code.find(pc).and_then(|at| slots.get(at..)) else {
                break if left == 0 { Stop::Budget } else { Stop::Undecoded };
            };
            (known, there) = (pc, found);
        }
        let mut here = there;
        loop {
            let first = &here[0];
            let mut count = u64::from(first.run);
            let mut bytes = first.run_bytes;
            // One comparison finds runs of no instructions and runs that are too long.
            if count.wrapping_sub(1) >= left {
                if left == 0 {
                    break 'jump Stop::Budget;
                }
                if count == 0 {
                    // The end of a chain.
                    continue 'jump;
                }
                count = whole_steps(&here[..left as usize]);
                if count == 0 {
                    break 'jump Stop::Other;
                }
                bytes = size_of_run(&here[..count as usize]);
            }
            let (run, after) = here.split_at(count as usize);
            let behind = pc.wrapping_add(bytes.into()) & pc_mask;
            let mask = exec.warp.active & exec.warp.preds[usize::from(first.guard % 128)];
            exec.next = behind;
            if mask != 0 || first.unconditional {
                handlers.set_mask(&mut exec, mask);
                let mut stopped = None;
                let mut rest = run.iter();
                while let Some(slot) = rest.next() {
                    // A branch and not a sum: the host need not wait for the number to find the next slot.
                    if slot.in_step > 1 {
                        rest.next();
                    }
                    if handlers.handle(&mut exec, slot.handler, &slot.step).is_break() {
                        let pc = || {
                            let done = size_of_run(before(run, slot));
                            pc.wrapping_add(done.into()) & pc_mask
                        };
                        if exec.stores_to_device(&slot.op, pc) {
                            continue;
                        }
                        stopped = Some(slot);
                        break;
                    }
                }
                if let Some(slot) = stopped {
                    let done = before(run, slot);
                    left -= done.len() as u64;
                    insts += done.len() as u64 * exec.executing();
                    pc = pc.wrapping_add(size_of_run(done).into()) & pc_mask;
                    break 'jump Stop::Other;
                }
                insts += count * exec.executing();
            }
            left -= count;
            here = after;
            pc = exec.next;
            if pc != behind {
                continue 'jump;
            }
        }
    };
    let issued = *budget - left;
    let spared = exec.spared;
    let stats = &mut exec.warp.stats;
    stats.steps += issued;
    stats.insts = stats.insts.wrapping_add(insts - spared);
    host.warp.pc = pc;
    *budget = left;
    stop
}

/// How many of the instructions, from the first on, can be done in whole steps, without splitting a pair.
#[cold]
#[inline(never)]
fn whole_steps(slots: &[Slot]) -> u64 {
    let mut count = 0;
    while let Some(slot) = slots.get(count) {
        let next = count + usize::from(slot.in_step);
        if next > slots.len() {
            break;
        }
        count = next;
    }
    count as u64
}

#[cold]
#[inline(never)]
fn size_of_run(slots: &[Slot]) -> u32 {
    slots.iter().map(|slot| u32::from(slot.size)).sum()
}

/// The slots of a run that come before `slot`. A search finds them, so that the loop need not count.
#[cold]
#[inline(never)]
fn before<'a>(run: &'a [Slot], slot: &Slot) -> &'a [Slot] {
    let count = run.iter().take_while(|other| !ptr::eq(*other, slot)).count();
    &run[..count]
}
