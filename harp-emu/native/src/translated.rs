//! A translated region: its host code, and the instructions that it was made of.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use cranelift_codegen::isa::OwnedTargetIsa;
use harp_emu::{Frame, MemoryWords, RegisterWords};
use harp_isa::MAX_ENCODED_BYTES;

use crate::body::Inst;
use crate::class::Class;
use crate::code::HostFunction;
use crate::emit::{Emitted, emit};
use crate::live::{Live, live, live_at_head};
use crate::record::Seen;
use crate::region::{self, Key, Region};
use crate::rows::Rows;
use crate::rules::{Assumed, Callee, Level, Rules, State};
use crate::shape::Shape;

/// A region with host code.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) region: Region,
    pub(crate) function: HostFunction,
    pub(crate) rows: Rows,
    pub(crate) rules: Rules,
    /// The bytes of its instructions by address, in runs without gaps.
    code: BTreeMap<u64, Vec<u8>>,
    /// The time that it took to make, in nanoseconds.
    pub(crate) nanoseconds: u64,
    tally: Mutex<Tally>,
}

/// What was seen of a region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) visits: u64,
    /// Instructions issued in them.
    pub(crate) issued: u64,
    /// Visits that ended because an assumption or the entry's expectation did not hold.
    pub(crate) failed: u64,
}

/// Instructions in memory.
pub(crate) struct Fetcher<'a> {
    shape: Shape,
    memory: MemoryWords<'a>,
    code: BTreeMap<u64, Vec<u8>>,
    known: BTreeMap<u64, Option<Inst>>,
    loaded: Option<&'a HashMap<u64, Class>>,
}

impl<'a> Fetcher<'a> {
    /// `loaded` is what loads have yielded so far, by their addresses.
    pub(crate) fn new(
        shape: Shape,
        memory: MemoryWords<'a>,
        loaded: Option<&'a HashMap<u64, Class>>,
    ) -> Fetcher<'a> {
        Fetcher { shape, memory, code: BTreeMap::new(), known: BTreeMap::new(), loaded }
    }

    /// The instruction at `pc`.
    pub(crate) fn fetch(&mut self, pc: u64) -> Option<Inst> {
        if let Some(known) = self.known.get(&pc) {
            return *known;
        }
        let bytes = read(self.memory, pc, MAX_ENCODED_BYTES);
        let inst = harp_isa::decode(&bytes, self.shape.arch).ok().map(|(instruction, size)| {
            self.code.insert(pc, bytes[..size].to_vec());
            let loaded = self.loaded.and_then(|loaded| loaded.get(&pc).copied());
            Inst { loaded, ..Inst::new(pc, size, instruction, self.shape) }
        });
        self.known.insert(pc, inst);
        inst
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

/// At most `count` bytes of memory from `address` on.
fn read(memory: MemoryWords<'_>, address: u64, count: usize) -> Vec<u8> {
    use std::sync::atomic::Ordering::Relaxed;
    let (width, size) = match memory {
        MemoryWords::Four(words) => (4, size_of_val(words)),
        MemoryWords::Eight(words) => (8, size_of_val(words)),
    };
    let Ok(start) = usize::try_from(address) else { return Vec::new() };
    let byte = |at: usize| {
        let word = match memory {
            MemoryWords::Four(words) => words[at / width].load(Relaxed).into(),
            MemoryWords::Eight(words) => words[at / width].load(Relaxed),
        };
        (word >> (8 * (at % width))) as u8
    };
    (start..start.saturating_add(count).min(size)).map(byte).collect()
}

/// Bytes of memory.
pub(crate) fn memory_bytes(memory: MemoryWords<'_>) -> u64 {
    match memory {
        MemoryWords::Four(words) => size_of_val(words) as u64,
        MemoryWords::Eight(words) => size_of_val(words) as u64,
    }
}

impl Translated {
    /// Translates the region of the warp at its pc, of the blocks that were `seen` if only those are wanted. `None` if that is not possible or not worth it.
    pub(crate) fn new(
        frame: &Frame<'_>,
        shape: Shape,
        rules: Rules,
        seen: Option<&Seen>,
        isa: &OwnedTargetIsa,
    ) -> Option<Translated> {
        let start = Instant::now();
        let head = Key { pc: *frame.pc, full: *frame.active == shape.full() };
        let mut fetcher = Fetcher::new(shape, frame.memory, seen.map(|seen| &seen.loaded));
        let seen = seen.map(|seen| &seen.blocks);
        let room = room(shape);
        // A known link shows where the function returns to, and what matters there.
        let mut unknown = State::unknown(shape);
        let link = usize::from(shape.arch.gprs().saturating_sub(1)) % 64;
        unknown.regs[link] = observed(frame, shape, 1 << link).regs[link];
        unknown.stack = levels(frame, shape);
        let plain = Rules { assumed: Assumed::Nothing, ..rules };
        let trial = region::form(plain, head, unknown, room, seen, &mut |pc| fetcher.fetch(pc))?;
        let state = observed(frame, shape, live_at_head(&trial, plain));
        let region = region::form(rules, head, state, room, seen, &mut |pc| fetcher.fetch(pc))?;
        let live = needed(&trial, &region, plain);
        let bytes = memory_bytes(frame.memory);
        let emitted = emit(&region, &live, rules, bytes, &**isa);
        let Emitted { helpers, region: context, rows } = emitted;
        let function = HostFunction::compile(isa.clone(), helpers, context, shape, bytes)?;
        let used = region.blocks.values().flat_map(|block| &block.insts).map(|inst| inst.pc);
        let code = runs(used.filter_map(|pc| Some((pc, fetcher.code.get(&pc)?.clone()))).collect());
        Some(Translated {
            region,
            function,
            rows,
            rules,
            code,
            nanoseconds: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            tally: Mutex::default(),
        })
    }

    /// Adds what was seen of it, and returns what was seen in all.
    pub(crate) fn add(&self, more: Tally) -> Tally {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.visits += more.visits;
        tally.issued += more.issued;
        tally.failed += more.failed;
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
            && self.code.iter().all(|(&pc, bytes)| read(memory, pc, bytes.len()) == *bytes)
    }

    /// The addresses of its instructions: the first, and that behind the last.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        let start = self.code.keys().next().copied().unwrap_or(0);
        let end = self.code.iter().next_back().map_or(0, |(&pc, bytes)| pc + bytes.len() as u64);
        start..end
    }
}

/// What must be exact before the instructions of a region when it is left there: what is live in the `trial`, in which
/// nothing is assumed that may turn out wrong later, or all, where the two differ or nothing says what may be dead.
fn needed(trial: &Region, region: &Region, plain: Rules) -> Live {
    if plain.callee.is_none() {
        return Live::new();
    }
    let mut live = live(trial, plain, true);
    live.retain(|key, _| {
        let insts = |region: &Region| {
            let block = region.blocks.get(key)?;
            Some(block.insts.iter().map(|inst| inst.pc).collect::<Vec<_>>())
        };
        insts(trial) == insts(region)
    });
    live
}

/// The most instructions of a region, so that it compiles in time.
fn room(shape: Shape) -> usize {
    (2400 / shape.vectors()).clamp(200, 600)
}

/// What is seen in a warp's registers, of those that are live, and on its divergence stack.
fn observed(frame: &Frame<'_>, shape: Shape, live: u64) -> State {
    let mut state = State::unknown(shape);
    state.stack = levels(frame, shape);
    if shape.lanes == 1 {
        return state;
    }
    let link = shape.arch.gprs().saturating_sub(1);
    for r in (0..shape.arch.gprs().min(64)).filter(|r| live >> r & 1 != 0) {
        state.regs[usize::from(r)] = match class_of(frame, shape, r) {
            Class::Uniform if r == link => Class::Const(first_lane(frame, shape, r)),
            class => class,
        };
    }
    state
}

fn first_lane(frame: &Frame<'_>, shape: Shape, r: u8) -> u64 {
    let first = usize::from(r) * shape.lane_words;
    match &frame.registers {
        RegisterWords::Four(words) => words[first].into(),
        RegisterWords::Eight(words) => words[first],
    }
}

/// What the lanes of a register have in common now.
pub(crate) fn class_of(frame: &Frame<'_>, shape: Shape, r: u8) -> Class {
    let first = usize::from(r) * shape.lane_words;
    let lanes: Vec<u64> = match &frame.registers {
        RegisterWords::Four(words) => {
            words[first..first + shape.lanes].iter().map(|&word| word.into()).collect()
        }
        RegisterWords::Eight(words) => words[first..first + shape.lanes].to_vec(),
    };
    let mut strides = lanes.windows(2).map(|pair| shape.cut(pair[1].wrapping_sub(pair[0])));
    match strides.next() {
        Some(stride) if strides.any(|other| other != stride) => Class::Vector,
        None | Some(0) => Class::Uniform,
        Some(stride) => Class::Affine(stride),
    }
}

/// The most levels of the divergence stack that are looked at.
const LEVELS: usize = 4;

/// The splits whose entries are the topmost ones of the warp's divergence stack, the last one topmost.
fn levels(frame: &Frame<'_>, shape: Shape) -> Vec<Level> {
    let entries = (0..frame.stack.len()).rev().filter_map(|index| frame.stack.get(index));
    let mut entries = entries.peekable();
    let mut levels = Vec::new();
    while let Some(top) = entries.next().filter(|_| levels.len() < LEVELS) {
        let lowest = match top.resume {
            None => Some(top),
            Some(_) => {
                entries.next_if(|entry| entry.behind == top.behind && entry.resume.is_none())
            }
        };
        let Some(lowest) = lowest else { break };
        levels.push(Level { behind: top.behind, was_full: Some(lowest.mask == shape.full()) });
    }
    levels.reverse();
    levels
}
