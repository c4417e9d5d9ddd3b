//! A translated region: its host code, and the instructions that it was made of.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cranelift_codegen::isa::OwnedTargetIsa;
use harp_emu::{Frame, MemoryWords};

use crate::begin::Ways;
use crate::calls::Callee;
use crate::code::HostFunction;
use crate::emit::{Emitted, emit};
use crate::live::{Live, Reads, live};
use crate::needs::needs;
use crate::observe::{self, Fetcher, levels, memory_bytes, observed};
use crate::record::Seen;
use crate::region::{self, Block, Bounds, Key, Met, Needs, Region, Room};
use crate::rows::Rows;
use crate::rules::{Assumed, Rules};
use crate::shape::Shape;
use crate::state::{Bits, State};
use crate::stats::LeaveCounts;
use crate::waiting::waiting;

/// A region with host code.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) region: Region,
    pub(crate) function: HostFunction,
    pub(crate) rows: Rows,
    /// Places at which it may be left in any case.
    pub(crate) places: u64,
    pub(crate) rules: Rules,
    /// How warps come to its head, if they begin there.
    pub(crate) ways: Ways,
    /// The bytes of its instructions, and of others that it depends on, by address, in runs without gaps.
    code: BTreeMap<u64, Vec<u8>>,
    /// The processor time that it took to make, if nothing else ran.
    pub(crate) time: Duration,
    tally: Mutex<Tally>,
}

/// What was seen of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// How its visits ended.
    pub(crate) left: LeaveCounts,
    /// Instructions issued in them.
    pub(crate) issued: u64,
    /// Visits that ended where control came to blocks that no region has.
    pub(crate) ended: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, more: Tally) {
        self.left.add(more.left);
        self.issued += more.issued;
        self.ended += more.ended;
    }
}

/// Joins instructions that lie one behind the other.
fn runs(code: BTreeMap<u64, Vec<u8>>) -> BTreeMap<u64, Vec<u8>> {
    let mut runs: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for (pc, bytes) in code {
        match runs.last_entry() {
            Some(mut run) if run.key() + run.get().len() as u64 == pc => {
                run.get_mut().extend(bytes);
            }
            _ => {
                runs.insert(pc, bytes);
            }
        }
    }
    runs
}

/// A region that is not translated yet.
#[derive(Debug)]
pub(crate) struct Formed {
    pub(crate) region: Region,
    rules: Rules,
    /// How warps come to its head, if they begin there.
    pub(crate) ways: Ways,
    /// What must be exact where it is left.
    live: Live,
    code: BTreeMap<u64, Vec<u8>>,
    /// Bytes of the machine's memory.
    memory_bytes: u64,
    time: Duration,
}

impl Formed {
    /// The region of the warp at its pc, of the blocks that were `seen` if only those are wanted. `None` if there is none
    /// that is worth it.
    pub(crate) fn new(
        frame: &Frame<'_>,
        rules: Rules,
        seen: Option<&Seen>,
        met: &Met,
    ) -> Option<Formed> {
        let (start, shape) = (Instant::now(), rules.shape);
        let head = Key::new(*frame.pc, *frame.active == shape.full());
        let mut whole = Fetcher::new(shape, frame.memory);
        let waiting = rules.callee.map(|callee| waiting(rules, callee, &mut |pc| whole.fetch(pc)));
        let waiting = waiting.unwrap_or_default();
        // What lanes read where they wait depends on all of the function.
        let mut code = if waiting.is_empty() { BTreeMap::new() } else { whole.code };
        let loaded = seen.map(|seen| &seen.loaded);
        let mut fetcher = Fetcher::new(shape, frame.memory).knowing(loaded, waiting);
        let first = fetcher.fetch(head.pc)?;
        let seen = seen.map(|seen| &seen.blocks);
        let room = room(rules, head.pc);
        // A known link shows where the function returns to, and what matters there.
        let mut unknown = State::unknown(shape);
        let link = shape.link();
        unknown.regs[link] = observed(frame, rules, 1 << link, &first).regs[link];
        unknown.stack = levels(frame, shape);
        let unknown = met.at(head, unknown);
        let plain = Rules { assumed: Assumed::Nothing, ..rules };
        let all = Room { inside: room.known, ..room };
        let bounds = Bounds { room: all, seen, needs: &Needs::new(), met };
        let trial = region::form(plain, head, unknown, bounds, &mut |pc| fetcher.fetch(pc))?;
        let needs = needs(&trial, plain);
        // Registers that the region may only pass on do not matter to it.
        let matters = live(&trial, plain, Reads::Inside);
        let at_head = matters.get(&head).and_then(|bits| bits.first()).map_or(0, |bits| bits.regs);
        let mut state = met.at(head, observed(frame, rules, at_head, &first));
        if let Some(need) = needs.get(&head) {
            need.cut(&mut state.stack);
        }
        let bounds = Bounds { room, seen, needs: &needs, met };
        let region = region::form(rules, head, state, bounds, &mut |pc| fetcher.fetch(pc))?;
        let live = needed(&trial, &matters, &region, plain);
        let used = region.blocks.values().flat_map(|block| &block.insts).map(|inst| inst.pc);
        code.extend(used.filter_map(|pc| Some((pc, fetcher.code.get(&pc)?.clone()))));
        let code = runs(code);
        let memory_bytes = memory_bytes(frame.memory);
        let (ways, time) = (Ways::new(), start.elapsed());
        Some(Formed { region, rules, ways, live, code, memory_bytes, time })
    }

    pub(crate) fn shape(&self) -> Shape {
        self.rules.shape
    }

    /// Translates it. `None` if the host cannot.
    pub(crate) fn translate(self, isa: &OwnedTargetIsa) -> Option<Translated> {
        let start = Instant::now();
        let Formed { region, rules, ways, live, code, memory_bytes, time } = self;
        let emitted = emit(&region, &live, rules, memory_bytes, &**isa);
        let Emitted { helpers, region: context, rows, places } = emitted;
        let function =
            HostFunction::compile(isa.clone(), helpers, context, rules.shape, memory_bytes)?;
        let time = time + start.elapsed();
        let tally = Mutex::default();
        Some(Translated { region, function, rows, places, rules, ways, code, time, tally })
    }
}

impl Translated {
    /// Adds what was seen of it, and returns what was seen in all.
    pub(crate) fn add(&self, more: Tally) -> Tally {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.add(more);
        *tally
    }

    /// Whether memory holds the instructions that it was made of, for a machine of that shape and a program that calls
    /// so.
    pub(crate) fn holds(
        &self,
        shape: Shape,
        callee: Option<Callee>,
        memory: MemoryWords<'_>,
    ) -> bool {
        self.rules.shape == shape
            && self.rules.callee == callee
            && self.code.iter().all(|(&pc, bytes)| observe::holds(memory, pc, bytes))
    }

    /// The addresses of its instructions: the first, and that behind the last.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        let start = self.code.keys().next().copied().unwrap_or(0);
        let end = self.code.iter().next_back().map_or(0, |(&pc, bytes)| pc + bytes.len() as u64);
        start..end
    }
}

/// What must be exact before the instructions of a region when it is left there: what is live in the `trial`, in which
/// nothing is assumed that may turn out wrong later. It is all where nothing says what may be dead, where the two differ, and
/// where control comes to the region's block from one that the trial had no room for, with other values than the trial knows
/// in what `matters` there.
fn needed(trial: &Region, matters: &Live, region: &Region, plain: Rules) -> Live {
    if plain.callee.is_none() {
        return Live::new();
    }
    let mut live = live(trial, plain, Reads::Beyond);
    live.retain(|key, _| {
        let (tried, matters) = (&trial.blocks[key], matters[key].first());
        let pcs = |block: &Block| block.insts.iter().map(|inst| inst.pc).collect::<Vec<_>>();
        region.blocks.get(key).is_some_and(|block| {
            pcs(tried) == pcs(block)
                && tried.state.covers(&block.state, matters.copied().unwrap_or(Bits::ALL))
        })
    });
    live
}

/// The most instructions of a region, so that it compiles in time; in tests of what it leaves also fewer, so that regions
/// end anywhere.
fn room(rules: Rules, head: u64) -> Room {
    let room = (3600 / rules.shape.vectors()).clamp(200, 900);
    let room = if rules.follows_slots() { 2 * room } else { room };
    let inside = match rules.leaves {
        true => FEW + (head.wrapping_mul(SPREAD) >> 32) as usize % (room - FEW),
        false => room,
    };
    Room { inside, known: KNOWN * room }
}

/// What is known of a region's surroundings costs little beside its translation.
const KNOWN: usize = 4;

/// Room in which there is something to gain, as a rule.
const FEW: usize = 20;
/// The golden ratio as a fraction of 64 bits: products with it have bits of all kinds in their upper half.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::function;

    /// Where two ways meet, one of which has no room in the trial, the trial knows where control goes on: to what writes
    /// `%r9`. It may as well go where that is read.
    #[test]
    fn what_a_trial_has_no_room_for_may_need_more() {
        let (rules, _, mut fetch) = function(
            "       rtop @p0, %r0
                    rtop @p1, %r1
              @p0 ? jmpi short
                    add %r2, %r2, %r2
                    add %r3, %r3, %r3
                    add %r2, %r2, %r3
                    ldi %r4, reads
              @p1 ? jmpi meet
                    halt
             short: ldi %r4, writes
             meet:  jmpr %r4
             writes:
                    ori %r9, %r1, #0
                    jmpr %r15
             reads: st %r9, %r1, #0
                    jmpr %r15
            ",
        );
        let head = Key::new(0, true);
        let mut form = |room| {
            let unknown = State::unknown(rules.shape);
            let room = Room { inside: room, known: room };
            let bounds = Bounds { room, seen: None, needs: &Needs::new(), met: &Met::default() };
            region::form(rules, head, unknown, bounds, &mut fetch).unwrap()
        };
        let (trial, region) = (form(3 + 1 + 1 + 2), form(100));
        let meet = Key::new(4 * 10, true);
        let regs_at_meet = |trial: &Region, region: &Region| {
            let live = needed(trial, &live(trial, rules, Reads::Inside), region, rules);
            live.get(&meet).map(|bits| bits[0].regs)
        };
        let is_live = |regs: Option<u64>| regs.map(|regs| regs >> 9 & 1 != 0);
        assert_eq!(is_live(regs_at_meet(&trial, &trial)), Some(false));
        assert_eq!(is_live(regs_at_meet(&region, &region)), Some(true));
        assert_eq!(is_live(regs_at_meet(&trial, &region)), None, "the trial does not tell");
    }
}
