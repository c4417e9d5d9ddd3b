//! What host code and the rest of this crate share while it runs.

use std::mem::offset_of;

use harp_emu::{BarrierRule, Frame, StackEntry, compute};
use harp_isa::{Opcode, WordSize};

/// Entries of the divergence stack that a frame holds.
pub(crate) const ENTRIES: usize = 48;
/// Of these, the most that are copied when a warp enters.
const COPIED: usize = 24;
/// Scratch vectors.
pub(crate) const SCRATCH: usize = 4;
/// In a [`RawEntry`], that control continues at the next instruction; no address.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// An entry of the divergence stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawEntry {
    pub(crate) mask: u64,
    /// Where control continues, or [`NOWHERE`].
    pub(crate) resume: u64,
    pub(crate) behind: u64,
}

impl RawEntry {
    fn view(&self) -> StackEntry {
        let &RawEntry { mask, resume, behind } = self;
        StackEntry { mask, resume: (resume != NOWHERE).then_some(resume), behind }
    }
}

/// Why host code was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub(crate) enum Leave {
    /// The budget does not suffice for the next block.
    Budget,
    /// The interpreter must do the next instruction.
    Foreign,
    /// The core must do the next instruction, a `bar`.
    Barrier,
    /// An access may trap, or concerns code, or is misaligned.
    Access,
    /// A division by zero, a branch on which lanes disagree, a full stack.
    Trap,
    /// What is assumed does not hold.
    Guard,
    /// Control leaves the region.
    End,
    /// The registers are not as the entry expects.
    Entry,
}

impl Leave {
    pub(crate) const ALL: [Leave; 8] = [
        Leave::Budget,
        Leave::Foreign,
        Leave::Barrier,
        Leave::Access,
        Leave::Trap,
        Leave::Guard,
        Leave::End,
        Leave::Entry,
    ];
}

/// The state that host code reads and writes. Addresses are those of the host.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct RawFrame {
    pub(crate) registers: u64,
    pub(crate) predicates: u64,
    pub(crate) memory: u64,
    /// Bytes of memory.
    pub(crate) size: u64,
    pub(crate) plain_from: u64,
    pub(crate) active: u64,
    pub(crate) budget: u64,
    /// Counted since the warp's state was given back.
    pub(crate) insts: u64,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    pub(crate) pc: u64,
    /// The address behind the instruction at which it was left, if the interpreter does that and goes on there.
    pub(crate) next: u64,
    /// A [`Leave`].
    pub(crate) leave: u64,
    /// The number of the place at which it is left in any case, if [`Rules::leaves`](crate::rules::Rules) says so.
    pub(crate) leaving: u64,
    /// Of the `bar` at which it was left: its number, how many warps it is for, and for how many lanes it counts.
    pub(crate) barrier: [u64; 3],
    /// The number of the entry.
    pub(crate) entry: u64,
    /// The number of the list of registers that are no vectors where it was left.
    pub(crate) exit: u64,
    /// The lanes that were last activated.
    pub(crate) activated: u64,
    pub(crate) place: [u64; 3],
    pub(crate) stack_len: u64,
    /// How many entries there may be.
    pub(crate) stack_limit: u64,
    /// The most entries that there were after a `split`, since the warp's state was given back.
    pub(crate) high_water: u64,
    pub(crate) word: u64,
    pub(crate) lanes: u64,
    pub(crate) stack: [RawEntry; ENTRIES],
    /// Words of a vector for [`slow`](RawFrame::slow): three sources, and the result.
    pub(crate) scratch: [[u64; 64]; SCRATCH],
    /// Lane 0 of registers that are no vectors where it is entered and where it was left.
    pub(crate) scalars: [u64; 64],
    /// The lanes that execute, for [`slow`](RawFrame::slow) and accesses of any addresses.
    pub(crate) executing: u64,
    /// Whether such an access found an address that is not usable.
    pub(crate) outside: u64,
    /// Entries of the real stack below those here.
    below: usize,
    /// Which lanes must come to a barrier together, and whether the warp may pass those for one warp.
    barriers: BarrierRule,
    passes_alone: bool,
}

/// The offset of a field, as host code needs it.
macro_rules! at {
    ($($field:tt)+) => {
        i32::try_from(std::mem::offset_of!(crate::frame::RawFrame, $($field)+)).unwrap_or(i32::MAX)
    };
}
pub(crate) use at;

/// The offset of a scratch vector.
pub(crate) fn scratch(number: usize) -> i32 {
    let bytes = offset_of!(RawFrame, scratch) + number * size_of::<[u64; 64]>();
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

impl RawFrame {
    pub(crate) fn new(barriers: BarrierRule) -> RawFrame {
        RawFrame {
            registers: 0,
            predicates: 0,
            memory: 0,
            size: 0,
            plain_from: 0,
            active: 0,
            budget: 0,
            insts: 0,
            loads: 0,
            stores: 0,
            pc: 0,
            next: NOWHERE,
            leave: 0,
            leaving: NOWHERE,
            barrier: [0; 3],
            entry: 0,
            exit: 0,
            activated: 0,
            place: [0; 3],
            stack_len: 0,
            stack_limit: 0,
            high_water: 0,
            word: 0,
            lanes: 0,
            stack: [RawEntry::default(); ENTRIES],
            scratch: [[0; 64]; SCRATCH],
            scalars: [0; 64],
            executing: 0,
            outside: 0,
            below: 0,
            barriers,
            passes_alone: false,
        }
    }

    /// Begins a visit, at an entry of a region.
    #[inline]
    pub(crate) fn begin(&mut self, entry: usize, pc: u64, plain_from: u64, budget: u64) {
        self.entry = entry as u64;
        (self.pc, self.next) = (pc, NOWHERE);
        (self.plain_from, self.budget) = (plain_from, budget);
        self.passes_alone = false;
    }

    /// Takes the warp's state, apart from what is behind pointers, and what each visit begins with.
    pub(crate) fn take(&mut self, frame: &Frame<'_>) {
        (self.insts, self.loads, self.stores, self.high_water) = (0, 0, 0, 0);
        self.active = *frame.active;
        self.activated = frame.active_count.into();
        self.place = frame.place.map(u64::from);
        self.passes_alone = frame.passes_alone;
        self.below = frame.stack.len().saturating_sub(COPIED);
        let here = frame.stack.len() - self.below;
        self.stack_len = here as u64;
        let room = frame.stack.limit().saturating_sub(self.below);
        self.stack_limit = room.min(ENTRIES) as u64;
        for (index, raw) in self.stack[..here].iter_mut().enumerate() {
            if let Some(StackEntry { mask, resume, behind }) = frame.stack.get(self.below + index) {
                *raw = RawEntry { mask, resume: resume.unwrap_or(NOWHERE), behind };
            }
        }
    }

    /// Gives it back, apart from pc, budget and steps.
    pub(crate) fn give(&self, frame: &mut Frame<'_>) {
        *frame.active = self.active;
        frame.stats.insts += self.insts;
        frame.stats.loads += self.loads;
        frame.stats.stores += self.stores;
        if self.high_water == 0 {
            // Entries may have been popped only.
            return frame.stack.truncate(self.below + self.stack_len as usize);
        }
        let most = self.below + self.high_water as usize;
        frame.stats.divergence_high_water = frame.stats.divergence_high_water.max(most);
        let entries = self.top().iter().map(RawEntry::view);
        // Most visits leave the lower ones as they are.
        let is_kept =
            |(index, entry): &(usize, StackEntry)| frame.stack.get(*index).as_ref() == Some(entry);
        let kept = self.below + (self.below..).zip(entries.clone()).take_while(is_kept).count();
        frame.stack.truncate(kept);
        for entry in entries.skip(kept - self.below) {
            let fits = frame.stack.push(entry);
            debug_assert!(fits, "splits look for room");
        }
    }

    /// Whether the warp passes the barrier for one warp at which it is.
    pub(crate) fn passes(&self) -> bool {
        self.passes_alone && self.may_wait()
    }

    /// Whether all lanes have come to the barrier that must.
    #[inline(always)]
    pub(crate) fn may_wait(&self) -> bool {
        // Who has so many entries asks the interpreter.
        let knows_lowest = self.below == 0;
        let lowest = |index: usize| self.top().get(index).map(RawEntry::view);
        let lowest = [lowest(0), lowest(1)];
        let expected = self.barriers.expected(self.activated as u8, lowest);
        knows_lowest && expected.is_none_or(|expected| self.active == expected)
    }

    /// What the topmost entries of the stack are, as known before a block.
    pub(crate) fn top(&self) -> &[RawEntry] {
        &self.stack[..self.stack_len as usize]
    }

    /// Does an instruction lane by lane: the operation on the scratch vectors, or, for [`Opcode::Shfl`], the choice of
    /// values among the executing lanes.
    pub(crate) fn slow(&mut self, opcode: Opcode) {
        let word = if self.word == 4 { WordSize::Four } else { WordSize::Eight };
        for lane in 0..self.lanes as usize {
            let [a, b, c] = [0, 1, 2].map(|k| self.scratch_word(k, lane));
            let result = if opcode == Opcode::Shfl {
                let executes = b < 64 && self.executing >> b & 1 != 0;
                if executes { self.scratch_word(0, b as usize) } else { a }
            } else {
                compute(opcode, word, [a, b, c]).unwrap_or(0)
            };
            self.set_result(lane, result);
        }
    }

    fn scratch_word(&self, number: usize, lane: usize) -> u64 {
        match self.word {
            4 => self.scratch[number][lane / 2] >> (32 * (lane % 2)) & 0xffff_ffff,
            _ => self.scratch[number][lane],
        }
    }

    fn set_result(&mut self, lane: usize, value: u64) {
        match self.word {
            4 => {
                let (pair, shift) = (&mut self.scratch[3][lane / 2], 32 * (lane % 2));
                *pair = *pair & !(0xffff_ffff << shift) | (value & 0xffff_ffff) << shift;
            }
            _ => self.scratch[3][lane] = value,
        }
    }
}
