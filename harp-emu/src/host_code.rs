//! The hook for host code: something outside of this crate that issues instructions of a warp in another way than
//! the interpreter, with the same outcome.
//!
//! A [`HostTier`] makes a [`HostCode`] for each core. Before the interpreter runs a warp the core lends it the warp's
//! state as a [`Frame`]. It may issue any number of instructions up to the budget, each wholly or not at all, and
//! leaves everything else to the interpreter: what it cannot do, and what traps. Then it says for how many instructions,
//! of this warp and others that run meanwhile, it does not want to be asked again, or that the warp is at a barrier. From
//! there it may go on without a frame, so that work-groups that wait often are not copied back and forth.

use std::any::Any;

use harp_isa::{ArchId, Opcode, WordSize};

use crate::barrier::BarrierRule;
use crate::inspect::StackEntry;
use crate::stats::WarpStats;
use crate::word::{MemoryWords, RegisterWords, Word};

/// Makes what runs warps in host code, for machines that share it.
pub trait HostTier: Send + Sync {
    /// For one core of a machine, which executes in the order of fetched instructions, at physical addresses, with IEEE
    /// floats; no instruction is observed. In the [registers](Frame::registers) of its warps there are `lane_words` words
    /// from a register to the next, at least 8. `barriers` says which lanes must come to barriers together.
    ///
    /// `before` is what a core of another machine ran, perhaps of another tier. The memory holds the same instructions
    /// where that has [code](HostCode::code), so it may run them again.
    fn for_core(
        &self,
        arch: ArchId,
        lane_words: usize,
        barriers: BarrierRule,
        before: Option<Box<dyn HostCode>>,
    ) -> Box<dyn HostCode>;
}

/// Runs the warps of a core in host code, where it can.
pub trait HostCode: Any + Send {
    /// Issues at most [`Frame::budget`] instructions of a warp that is settled. Afterwards the frame's state is as if the
    /// interpreter had issued them. At a [barrier](HostEnd::Barrier) only pc, budget and steps are; the rest may
    /// follow later, by [`settle`](Self::settle).
    fn run(&mut self, frame: &mut Frame<'_>) -> HostEnd;

    /// Goes on with a warp that is not settled since it came to a barrier, and that has issued the `bar` and nothing else.
    /// `None` if it cannot. The warp stays unsettled. After a pause of 0 it wants to be asked again at once.
    fn go_on(&mut self, warp: &mut Resume<'_>) -> Option<HostEnd>;

    /// Makes the state of a warp what it is behind the last instruction, apart from what it is already: see
    /// [`run`](Self::run). Without effect on one that is settled.
    fn settle(&mut self, frame: &mut Frame<'_>);

    /// The addresses of all instructions that it may run without looking at memory again lie in this range; the end
    /// is the first address behind. Stores to it are left to the interpreter, and followed by
    /// [`forget`](Self::forget).
    fn code(&self) -> std::ops::Range<u64>;

    /// The memory that held its instructions may have changed. All warps are settled.
    fn forget(&mut self);

    /// The core's machine is gone, and its warps with it. Another machine may follow.
    fn rest(&mut self);
}

/// What comes behind the instructions that a [`HostCode`] has issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// The interpreter should issue this many instructions, at least 1, before it asks again: of this warp, or of others
    /// if it stops or waits before.
    Pause(u64),
    /// A `bar` without a guard, which is not issued yet; at least 1 of the budget is left for it. All lanes have come that
    /// must.
    Barrier {
        /// The barrier's number in the first active lane.
        id: u64,
        /// What it adds to [`WarpStats::insts`]: the active lanes, or 1 if it is done once for all.
        insts: u64,
        /// The address behind.
        next: u64,
        /// How many warps it is for, in the first active lane.
        warps: u64,
    },
}

/// The state of a ready warp, lent to a [`HostCode`].
#[derive(Debug)]
pub struct Frame<'a> {
    /// The general registers: register r of lane i is word r * `lane_words` + i, as [told](HostTier::for_core). Lanes that the
    /// machine lacks have undefined values. One that lanes share has the same value in all lanes.
    pub registers: RegisterWords<'a>,
    /// The predicates, each with a bit for each lane; bits of lanes that the machine lacks stay as they are. All bits of a
    /// predicate that lanes share are the same.
    pub predicates: &'a mut [u64; 64],
    /// All of guest memory.
    pub memory: MemoryWords<'a>,
    /// The first address, a word's, from which on stores are plain: they concern neither read-only memory nor code. Whoever
    /// has host code for instructions behind it raises it.
    pub plain_stores_from: u64,
    /// The address of the next instruction.
    pub pc: &'a mut u64,
    /// The active lanes; never none.
    pub active: &'a mut u64,
    /// The lanes that were last activated together.
    pub active_count: u8,
    /// The divergence stack.
    pub stack: FrameStack<'a>,
    /// The counts, which include what is issued here.
    pub stats: &'a mut WarpStats,
    /// The most instructions to issue.
    pub budget: u64,
    /// The numbers of warp and core, and how many cores there are.
    pub place: [u16; 3],
    /// Whether the warp may pass barriers for one warp here: as long as it runs, nobody else comes to one.
    pub passes_alone: bool,
}

/// A warp that goes on behind a barrier. What is not here, host code still has.
#[derive(Debug)]
pub struct Resume<'a> {
    /// The warp's number.
    pub warp: u16,
    /// As in a [`Frame`].
    pub registers: RegisterWords<'a>,
    /// As in a [`Frame`].
    pub predicates: &'a mut [u64; 64],
    /// As in a [`Frame`].
    pub memory: MemoryWords<'a>,
    /// As in a [`Frame`], but never raised here.
    pub plain_stores_from: u64,
    /// As in a [`Frame`].
    pub pc: u64,
    /// As in a [`Frame`].
    pub budget: u64,
}

/// The divergence stack of a [`Frame`].
#[derive(Debug)]
pub struct FrameStack<'a> {
    pub(crate) entries: &'a mut Vec<crate::warp::Entry>,
    pub(crate) limit: usize,
}

impl FrameStack<'_> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries there may be before a `split` must be left to the interpreter.
    pub fn limit(&self) -> usize {
        self.limit.min(self.entries.capacity())
    }

    /// The entry number `index` from the bottom.
    pub fn get(&self, index: usize) -> Option<StackEntry> {
        self.entries.get(index).map(crate::warp::Entry::view)
    }

    /// Removes the entries from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    /// Adds an entry at the top, if there is room. Returns whether there was.
    pub fn push(&mut self, entry: StackEntry) -> bool {
        let has_room = self.entries.len() < self.limit();
        if has_room {
            let StackEntry { mask, resume, behind } = entry;
            self.entries.push(crate::warp::Entry { mask, resume, behind });
        }
        has_room
    }
}

/// What an instruction computes in one lane from the words of its sources, in the order of its operands; `ffma` and
/// `ffmas` have the accumulator as the last one. Divisors are not zero. `None` if the instruction's result is not a
/// word, or depends on more than words.
pub fn compute(opcode: Opcode, word: WordSize, sources: [u64; 3]) -> Option<u64> {
    match word {
        WordSize::Four => compute_word::<u32>(opcode, sources.map(Word::from_u64)),
        WordSize::Eight => match opcode {
            Opcode::Fadds
            | Opcode::Fsubs
            | Opcode::Fmuls
            | Opcode::Fdivs
            | Opcode::Fsqrts
            | Opcode::Ffmas => compute_word::<u32>(whole(opcode), sources.map(Word::from_u64)),
            Opcode::Fcvtsd => Some(f64::from(f32::from_bits(sources[0] as u32)).to_bits()),
            Opcode::Fcvtds => Some((f64::from_bits(sources[0]) as f32).to_bits().into()),
            _ => compute_word::<u64>(opcode, sources),
        },
    }
}

/// The instruction on whole words that does what one on their low halves does.
fn whole(opcode: Opcode) -> Opcode {
    match opcode {
        Opcode::Fadds => Opcode::Fadd,
        Opcode::Fsubs => Opcode::Fsub,
        Opcode::Fmuls => Opcode::Fmul,
        Opcode::Fdivs => Opcode::Fdiv,
        Opcode::Fsqrts => Opcode::Fsqrt,
        Opcode::Ffmas => Opcode::Ffma,
        other => other,
    }
}

fn compute_word<W: Word>(opcode: Opcode, [a, b, c]: [W; 3]) -> Option<u64> {
    let result = match opcode {
        Opcode::Neg => W::ZERO.sub(a),
        Opcode::Not => !a,
        Opcode::And | Opcode::Andi => a & b,
        Opcode::Or | Opcode::Ori => a | b,
        Opcode::Xor | Opcode::Xori => a ^ b,
        Opcode::Add | Opcode::Addi => a.add(b),
        Opcode::Sub | Opcode::Subi => a.sub(b),
        Opcode::Mul | Opcode::Muli => a.mul(b),
        Opcode::Div | Opcode::Divi => a.div(b),
        Opcode::Mod | Opcode::Modi => a.rem(b),
        Opcode::Shl | Opcode::Shli => a.shl(b),
        Opcode::Shr | Opcode::Shri => a.shr(b),
        Opcode::Sra => a.sra(b),
        Opcode::Srl => a.srl(b),
        Opcode::Divs => a.divs(b),
        Opcode::Mods => a.mods(b),
        Opcode::Mulh => a.mulh(b),
        Opcode::Mulhu => a.mulhu(b),
        Opcode::Itof => a.itof(),
        Opcode::Ftoi => a.ftoi(),
        Opcode::Utof => a.utof(),
        Opcode::Ftou => a.ftou(),
        Opcode::Fadd => a.fadd(b),
        Opcode::Fsub => a.fsub(b),
        Opcode::Fmul => a.fmul(b),
        Opcode::Fdiv => a.fdiv(b),
        Opcode::Fmin => a.fmin(b),
        Opcode::Fmax => a.fmax(b),
        Opcode::Fsqrt => a.fsqrt(),
        Opcode::Ftrunc => a.ftrunc(),
        Opcode::Ffma => c.ffma(a, b),
        _ => return None,
    };
    Some(result.to_u64())
}
