//! What warps do where they are for long: which blocks they run, and where loops begin.

use std::collections::{HashMap, HashSet};

use harp_emu::Frame;

use crate::begin::{Beginnings, Ways};
use crate::body::Body;
use crate::class::Class;
use crate::observe::{Fetcher, class_of};
use crate::region::Key;
use crate::shape::Shape;

/// Blocks that are looked at in one recording.
const STEPS: u32 = 2048;
/// Blocks that pass at most until a warp comes to the head of the loop that was found.
const TRIES: u32 = 4096;
/// Host code that issues fewer instructions in a visit than this costs more than it gains: visits of 25 took 1.8 times the
/// interpreter's time.
pub(crate) const LEAST_ISSUED: u64 = 16;
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
    /// Blocks to which control came back, and how often.
    heads: HashMap<Key, u32>,
    beginnings: Beginnings,
    /// How many instructions there are from an address to the end of its block, and whether the last one is one that
    /// host code leaves to the interpreter.
    spans: HashMap<u64, (u64, bool)>,
    /// Instructions that were looked at, and how many of them host code leaves to the interpreter.
    issued: u64,
    foreign: u64,
    /// The warp that was last seen, and where its block began.
    last: Option<(u16, u64)>,
    phase: Phase,
    /// How often blocks were looked at instruction by instruction.
    looks: HashMap<u64, u32>,
    loading: Option<Loading>,
    /// The rest of a block that is looked at so: the warp, where it is, and how many instructions there are.
    rest: Option<(u16, u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// Looks at so many blocks more.
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
        self.phase = Phase::Records(STEPS);
        self.heads.clear();
        self.beginnings.start();
        (self.issued, self.foreign) = (0, 0);
        self.last = None;
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

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// How warps come to a block, if they begin there.
    pub(crate) fn ways(&self, key: Key) -> Option<&Ways> {
        self.beginnings.ways(key)
    }

    /// Looks at the warp.
    pub(crate) fn step(&mut self, key: Key, shape: Shape, frame: &Frame<'_>) -> Step {
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
            Phase::Records(left) if *left > 0 => {
                *left -= 1;
                if self.last.is_some_and(|(other, pc)| other == warp && key.pc <= pc) {
                    *self.heads.entry(key).or_default() += 1;
                }
                self.last = Some((warp, key.pc));
                self.beginnings.look_at(warp, key, frame.stats.steps);
            }
            Phase::Records(_) => {
                let Some(head) = self.hottest() else {
                    self.phase = Phase::Idle;
                    return Step::Nothing;
                };
                self.phase = Phase::Seeks(head, TRIES);
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
        let (count, is_foreign) = self.span(key.pc, shape, frame);
        self.issued += count;
        self.foreign += u64::from(is_foreign);
        let looks = self.looks.entry(key.pc).or_default();
        if *looks >= LOOKS || !key.full {
            return Step::Wait(count);
        }
        *looks += 1;
        Step::Wait(self.look(key, count, shape, frame))
    }

    /// The head of the region that is wanted most.
    fn hottest(&mut self) -> Option<Key> {
        let beginning = self.beginnings.hottest(self.issued);
        beginning.or_else(|| {
            let is_worth_it = self.issued >= LEAST_ISSUED * self.foreign;
            let heads = self.heads.iter().filter(|_| is_worth_it);
            let (&head, _) = heads.max_by_key(|&(&key, &count)| (count, key))?;
            Some(head)
        })
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

    /// How many instructions there are from `pc` to the end of its block, and whether the last one is foreign.
    pub(crate) fn span(&mut self, pc: u64, shape: Shape, frame: &Frame<'_>) -> (u64, bool) {
        *self.spans.entry(pc).or_insert_with(|| {
            let mut fetcher = Fetcher::new(shape, frame.memory);
            let (mut at, mut count, mut is_foreign) = (pc, 0, false);
            while let Some(inst) = fetcher.fetch(at).filter(|_| count < LONGEST) {
                count += 1;
                at = inst.next;
                is_foreign = inst.is_foreign();
                if inst.ends_block() {
                    break;
                }
            }
            (count.max(1), is_foreign)
        })
    }
}
