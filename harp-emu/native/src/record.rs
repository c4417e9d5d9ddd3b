//! What warps do where they are for long: which blocks they run, and where loops begin.

use std::collections::{HashMap, HashSet};

use harp_emu::Frame;

use crate::body::Body;
use crate::region::Key;
use crate::shape::Shape;
use crate::translated::Fetcher;

/// Blocks that are looked at in one recording.
const STEPS: u32 = 2048;
/// Blocks that pass at most until a warp comes to the head of the loop that was found.
const TRIES: u32 = 4096;
/// Host code that issues fewer instructions in a visit than this costs more than it gains: visits of 25 took 1.8 times the
/// interpreter's time.
pub(crate) const LEAST_ISSUED: u64 = 48;
/// Instructions of a block that are looked at together.
const LONGEST: u64 = 64;
/// Blocks that are remembered at most.
const MOST_SEEN: usize = 4096;

/// A recording of blocks, which the interpreter runs one at a time meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Blocks that were run.
    seen: HashSet<Key>,
    /// Blocks to which control came back, and how often.
    heads: HashMap<Key, u32>,
    /// How many instructions there are from an address to the end of its block, and whether the last one is one that
    /// host code leaves to the interpreter.
    spans: HashMap<u64, (u64, bool)>,
    /// Instructions that were looked at, and how many of them host code leaves to the interpreter.
    issued: u64,
    foreign: u64,
    /// The warp that was last seen, and where its block began.
    last: Option<(u16, u64)>,
    phase: Phase,
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
    /// The warp is at the head of the hottest loop.
    Found,
    /// There is no loop, or no warp comes there.
    Nothing,
}

impl Recorder {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    pub(crate) fn start(&mut self) {
        self.phase = Phase::Records(STEPS);
        self.heads.clear();
        (self.issued, self.foreign) = (0, 0);
        self.last = None;
        if self.seen.len() > MOST_SEEN {
            self.seen.clear();
        }
    }

    /// Forgets what was seen: the instructions may have changed.
    pub(crate) fn forget(&mut self) {
        *self = Recorder::default();
    }

    /// The blocks that were run.
    pub(crate) fn seen(&self) -> &HashSet<Key> {
        &self.seen
    }

    /// Looks at the warp.
    pub(crate) fn step(&mut self, key: Key, shape: Shape, frame: &Frame<'_>) -> Step {
        self.seen.insert(key);
        match &mut self.phase {
            Phase::Idle => return Step::Nothing,
            Phase::Records(left) if *left > 0 => {
                *left -= 1;
                let warp = frame.place[0];
                if self.last.is_some_and(|(other, pc)| other == warp && key.pc <= pc) {
                    *self.heads.entry(key).or_default() += 1;
                }
                self.last = Some((warp, key.pc));
            }
            Phase::Records(_) => {
                if self.issued < LEAST_ISSUED * self.foreign {
                    self.phase = Phase::Idle;
                    return Step::Nothing;
                }
                let hottest = self.heads.iter().max_by_key(|&(&key, &count)| (count, key));
                let Some((&head, _)) = hottest else {
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
        Step::Wait(count)
    }

    /// How many instructions there are from `pc` to the end of its block, and whether the last one is foreign.
    fn span(&mut self, pc: u64, shape: Shape, frame: &Frame<'_>) -> (u64, bool) {
        *self.spans.entry(pc).or_insert_with(|| {
            let mut fetcher = Fetcher::new(shape, frame.memory);
            let (mut at, mut count, mut is_foreign) = (pc, 0, false);
            while let Some(inst) = fetcher.fetch(at).filter(|_| count < LONGEST) {
                count += 1;
                at = inst.next;
                is_foreign = matches!(inst.body, Body::Foreign { .. });
                if inst.ends_block() {
                    break;
                }
            }
            (count.max(1), is_foreign)
        })
    }
}
