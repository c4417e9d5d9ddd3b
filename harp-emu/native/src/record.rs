//! What warps do where they are for long: which blocks they run, and where loops begin.

use std::collections::{BTreeMap, HashMap, HashSet};

use harp_emu::Frame;

use crate::begin::{Beginnings, Ways};
use crate::body::Body;
use crate::class::Class;
use crate::observe::{Fetcher, class_of};
use crate::region::Key;
use crate::shape::Shape;

/// How a tier records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The instructions that the interpreter issues at a place before a recording starts there, as a rule.
    pub(crate) after: u64,
    /// The instructions that it issues at most before it asks again, where there is no host code.
    pub(crate) longest_pause: u64,
    /// Blocks that are looked at in one recording: a multiple of so many, and at most [`MOST`] times as many.
    pub(crate) blocks: u32,
    /// Blocks that pass at most until a warp comes to the head of the loop that was found.
    pub(crate) tries: u32,
    /// Host code that issues fewer instructions in a visit than this costs more than it gains.
    pub(crate) least_issued: u64,
}

impl Pace {
    /// The usual one. Visits of 25 instructions took 1.8 times the interpreter's time.
    pub(crate) const fn usual(after: u64) -> Pace {
        Pace { after, longest_pause: 2048, blocks: 2048, tries: 4096, least_issued: 16 }
    }

    /// One by which short programs are recorded, and all that comes of it is kept.
    pub(crate) const SHORT: Pace =
        Pace { after: 32, longest_pause: 32, blocks: 8, tries: 64, least_issued: 0 };
}

/// See [`Pace::blocks`].
const MOST: u32 = 8;
/// How often warps come to the hottest loop from outside in a recording, unless that takes too long: else what is around
/// the loop is not seen, and the region is known in part.
const LEAST_ENTERED: usize = 2;
/// How often a block is looked at instruction by instruction, to see what its loads yield.
const LOOKS: u32 = 4;
/// Instructions of a block that are looked at together.
const LONGEST: u64 = 64;
/// Blocks that are remembered at most.
const MOST_SEEN: usize = 4096;

/// What was seen of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Blocks that were run, by the address where a warp was seen.
    pub(crate) blocks: HashSet<Key>,
    /// What loads have yielded in all lanes.
    pub(crate) loaded: HashMap<u64, Class>,
    /// Whether a warp came to a barrier while others waited.
    pub(crate) waited: bool,
}

/// A load that the interpreter is about to execute: the warp, what it loads to, and what follows.
#[derive(Clone, Copy, Debug)]
struct Loading {
    warp: u16,
    pc: u64,
    next: u64,
    dst: u8,
}

/// A recording of blocks, which the interpreter runs one at a time meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    seen: Seen,
    /// Blocks that a warp ran one after the other.
    steps: Vec<(Key, Key)>,
    /// The warp that was last seen, and its block.
    last: Option<(u16, Key)>,
    beginnings: Beginnings,
    /// How many instructions there are from an address to the end of its block, and how it ends.
    spans: HashMap<u64, (u64, Last)>,
    /// Instructions that were looked at, and how many of them host code leaves to the interpreter.
    issued: u64,
    foreign: u64,
    phase: Phase,
    /// How often blocks were looked at instruction by instruction.
    looks: HashMap<u64, u32>,
    loading: Option<Loading>,
    /// Blocks at which no region can be formed.
    useless: HashSet<Key>,
    /// The rest of a block that is looked at so: the warp, where it is, and how many instructions there are.
    rest: Option<(u16, u64, u64)>,
}

/// The last instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    Plain,
    Barrier,
    /// One that host code leaves to the interpreter.
    Foreign,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// Looks at blocks, and has looked at so many.
    Records(u32),
    /// Waits for a warp at this block, for so many blocks more.
    Seeks(Key, u32),
}

/// What becomes of a recording.
pub(crate) enum Step {
    /// It is to be asked again after so many instructions.
    Wait(u64),
    /// The warp is at the head of the hottest loop, or where most warps begin.
    Found,
    /// There is no such place, or no warp comes there.
    Nothing,
}

impl Recorder {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    pub(crate) fn start(&mut self) {
        self.phase = Phase::Records(0);
        self.last = None;
        self.beginnings.start();
        (self.issued, self.foreign) = (0, 0);
        if self.seen.blocks.len() > MOST_SEEN {
            self.seen.blocks.clear();
        }
    }

    /// Goes on in another launch of the same program, with other warps.
    pub(crate) fn go_on(&mut self) {
        (self.last, self.loading, self.rest) = (None, None, None);
    }

    /// Forgets what was seen: the instructions may have changed.
    pub(crate) fn forget(&mut self) {
        *self = Recorder::default();
    }

    /// No region can be formed there: the next hottest loop is wanted instead. Returns whether that was not known yet.
    pub(crate) fn give_up(&mut self, head: Key) -> bool {
        self.useless.insert(head)
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// How warps come to a block, if they begin there.
    pub(crate) fn ways(&self, key: Key) -> Option<&Ways> {
        self.beginnings.ways(key)
    }

    /// Looks at the warp.
    pub(crate) fn step(&mut self, pace: Pace, key: Key, shape: Shape, frame: &Frame<'_>) -> Step {
        let warp = frame.place[0];
        self.look_at_loaded(warp, key, shape, frame);
        if let Some((_, _, left)) =
            self.rest.filter(|&(other, pc, _)| (other, pc) == (warp, key.pc))
        {
            return Step::Wait(self.look(key, left, shape, frame));
        }
        self.seen.blocks.insert(key);
        match &mut self.phase {
            Phase::Idle => return Step::Nothing,
            Phase::Records(looked) => {
                let looked = *looked + 1;
                let last = self.last.replace((warp, key)).filter(|(other, _)| *other == warp);
                self.steps.extend(last.map(|(_, from)| (from, key)));
                self.beginnings.look_at(warp, key, frame.stats.steps);
                self.phase = match looked.is_multiple_of(pace.blocks) {
                    true => self.decide(pace, looked),
                    false => Phase::Records(looked),
                };
                if !matches!(self.phase, Phase::Records(_)) {
                    // Half a megabyte that a device would keep for as long as it lives.
                    self.steps = Vec::new();
                }
                if self.is_idle() {
                    return Step::Nothing;
                }
            }
            Phase::Seeks(head, _) if *head == key => {
                self.phase = Phase::Idle;
                return Step::Found;
            }
            Phase::Seeks(_, 0) => {
                self.phase = Phase::Idle;
                return Step::Nothing;
            }
            Phase::Seeks(_, tries) => *tries -= 1,
        }
        let (count, last) = self.span(key.pc, shape, frame);
        self.issued += count;
        // Where warps share barriers, most come to one at which others wait.
        let is_passed = last == Last::Barrier && frame.passes_alone;
        self.seen.waited |= last == Last::Barrier && !is_passed;
        self.foreign += u64::from(last != Last::Plain && !is_passed);
        let looks = self.looks.entry(key.pc).or_default();
        if *looks >= LOOKS || !key.full {
            return Step::Wait(count);
        }
        *looks += 1;
        Step::Wait(self.look(key, count, shape, frame))
    }

    /// What comes after so many blocks: a region is wanted where most warps begin or at the head of the hottest loop, or
    /// what is around that was not seen yet, or no region is wanted.
    fn decide(&mut self, pace: Pace, looked: u32) -> Phase {
        if let Some(beginning) = self.beginnings.hottest(self.issued) {
            return Phase::Seeks(beginning, pace.tries);
        }
        let is_worth_it = self.issued >= pace.least_issued * self.foreign;
        let found = hottest(&self.steps, &self.useless).filter(|_| is_worth_it);
        let Some((head, latch)) = found else {
            return Phase::Idle;
        };
        let is_inside = |block: &Key| (head.pc..=latch).contains(&block.pc);
        let entered = self.steps.iter().filter(|(from, to)| !is_inside(from) && is_inside(to));
        match looked < MOST * pace.blocks && entered.count() < LEAST_ENTERED {
            true => Phase::Records(looked),
            false => Phase::Seeks(head, pace.tries),
        }
    }

    /// Looks at one of `left` instructions. Returns how many pass until it wants to be asked again.
    fn look(&mut self, key: Key, left: u64, shape: Shape, frame: &Frame<'_>) -> u64 {
        self.rest = None;
        let warp = frame.place[0];
        let Some(inst) = Fetcher::new(shape, frame.memory).fetch(key.pc) else { return left };
        if let (Body::Load { dst, .. }, None) = (inst.body, inst.guard) {
            self.loading = Some(Loading { warp, pc: inst.pc, next: inst.next, dst });
        }
        if left > 1 {
            self.rest = Some((warp, inst.next, left - 1));
        }
        1
    }

    /// Remembers what was loaded, if the warp is behind a load.
    fn look_at_loaded(&mut self, warp: u16, key: Key, shape: Shape, frame: &Frame<'_>) {
        let Some(loading) = self.loading.take() else { return };
        if (loading.warp, loading.next) != (warp, key.pc) || !key.full {
            return;
        }
        let class = class_of(frame, shape, loading.dst, shape.full());
        let known = self.seen.loaded.entry(loading.pc).or_insert(class);
        *known = known.join(class);
    }

    /// How many instructions there are from `pc` to the end of its block, and how it ends.
    pub(crate) fn span(&mut self, pc: u64, shape: Shape, frame: &Frame<'_>) -> (u64, Last) {
        *self.spans.entry(pc).or_insert_with(|| {
            let mut fetcher = Fetcher::new(shape, frame.memory);
            let (mut at, mut count, mut last) = (pc, 0, Last::Plain);
            while let Some(inst) = fetcher.fetch(at).filter(|_| count < LONGEST) {
                count += 1;
                at = inst.next;
                last = match inst.body {
                    Body::Barrier { .. } => Last::Barrier,
                    Body::Foreign { .. } => Last::Foreign,
                    _ => Last::Plain,
                };
                if inst.ends_block() {
                    break;
                }
            }
            (count.max(1), last)
        })
    }
}

/// The head of the loop that went round most often in these steps from block to block, and the address of its last block.
/// Of loops that go round about as often it is the outermost: a jump back may also lead to where lanes meet.
fn hottest(steps: &[(Key, Key)], useless: &HashSet<Key>) -> Option<(Key, u64)> {
    let back = steps.iter().filter(|(from, to)| to.pc <= from.pc && !useless.contains(to));
    let mut rounds: BTreeMap<Key, u32> = BTreeMap::new();
    back.for_each(|(_, head)| *rounds.entry(*head).or_default() += 1);
    let most = *rounds.values().max()?;
    let (&head, _) = rounds.iter().find(|&(_, &count)| 2 * count > most)?;
    let mut latch = head.pc;
    // What jumps back into the loop is a part of it.
    loop {
        let into = steps.iter().filter(|(_, to)| (head.pc..=latch).contains(&to.pc));
        let last = into.map(|(from, _)| from.pc).max()?;
        if last <= latch {
            return Some((head, latch));
        }
        latch = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps between the blocks at these addresses.
    fn steps(blocks: &[u64]) -> Vec<(Key, Key)> {
        let keys: Vec<_> = blocks.iter().map(|&pc| Key::new(pc, true)).collect();
        keys.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    #[test]
    fn the_hottest_loop_is_the_one_that_goes_round_most() {
        let none = HashSet::new();
        assert_eq!(hottest(&steps(&[1, 2, 3, 4]), &none), None);
        let inner = [2, 3, 3, 3, 3, 5];
        let outer = [[1].as_slice(), &inner, &inner, &inner].concat();
        assert_eq!(hottest(&steps(&outer), &none), Some((Key::new(3, true), 3)));
        // 4 is where lanes meet that left the loop of 2 to 6.
        let meets = [1, 2, 4, 6, 4, 6, 2, 4, 6, 4, 6, 2, 4, 6, 7];
        assert_eq!(hottest(&steps(&meets), &none), Some((Key::new(2, true), 6)));
        // A function behind the loop is called in each round.
        assert_eq!(
            hottest(&steps(&[2, 3, 9, 4, 2, 3, 9, 4, 2, 3, 5]), &none),
            Some((Key::new(2, true), 9))
        );
        // At the hottest there is nothing to gain.
        let useless = HashSet::from([Key::new(3, true)]);
        assert_eq!(hottest(&steps(&outer), &useless), Some((Key::new(2, true), 5)));
    }
}
