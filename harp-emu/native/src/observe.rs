//! What is seen of a machine when a region is formed: instructions in memory, registers, the divergence stack.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use harp_emu::{Frame, MemoryWords};
use harp_isa::MAX_ENCODED_BYTES;

use crate::body::{Inst, Waiting};
use crate::class::Class;
use crate::rows::{Entry, Row, bits_of, lane_of};
use crate::rules::Rules;
use crate::shape::Shape;
use crate::state::{Level, State};

/// Instructions in memory.
pub(crate) struct Fetcher<'a> {
    shape: Shape,
    memory: MemoryWords<'a>,
    /// The bytes of those that were fetched, by their addresses.
    pub(crate) code: BTreeMap<u64, Vec<u8>>,
    known: BTreeMap<u64, Option<Inst>>,
    loaded: Option<&'a HashMap<u64, Class>>,
    /// What is known of waiting lanes, by the addresses of instructions.
    waiting: BTreeMap<u64, Waiting>,
}

impl<'a> Fetcher<'a> {
    pub(crate) fn new(shape: Shape, memory: MemoryWords<'a>) -> Fetcher<'a> {
        let (code, known, waiting) = Default::default();
        Fetcher { shape, memory, code, known, loaded: None, waiting }
    }

    /// The same with what loads have yielded so far, by their addresses, and what lanes that wait may read.
    pub(crate) fn knowing(
        self,
        loaded: Option<&'a HashMap<u64, Class>>,
        waiting: BTreeMap<u64, Waiting>,
    ) -> Fetcher<'a> {
        Fetcher { loaded, waiting, ..self }
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
            let waiting = self.waiting.get(&pc).copied();
            Inst { loaded, waiting, ..Inst::new(pc, size, instruction, self.shape) }
        });
        self.known.insert(pc, inst);
        inst
    }
}

/// At most `count` bytes of memory from `address` on.
pub(crate) fn read(memory: MemoryWords<'_>, address: u64, count: usize) -> Vec<u8> {
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

/// Whether memory holds these bytes from `address` on. Each launch asks this of all regions, so it compares whole words.
pub(crate) fn holds(memory: MemoryWords<'_>, address: u64, bytes: &[u8]) -> bool {
    use std::sync::atomic::Ordering::Relaxed;
    fn same<const N: usize>(
        word: impl Fn(usize) -> Option<[u8; N]>,
        mut at: usize,
        mut bytes: &[u8],
    ) -> bool {
        while !bytes.is_empty() {
            let Some(word) = word(at / N) else { return false };
            let count = match bytes.first_chunk() {
                Some(whole) if at.is_multiple_of(N) => {
                    if word != *whole {
                        return false;
                    }
                    N
                }
                _ => {
                    let part = &word[at % N..];
                    let count = part.len().min(bytes.len());
                    if part[..count] != bytes[..count] {
                        return false;
                    }
                    count
                }
            };
            (at, bytes) = (at + count, &bytes[count..]);
        }
        true
    }
    let Ok(start) = usize::try_from(address) else { return false };
    match memory {
        MemoryWords::Four(words) => {
            same(|at| Some(words.get(at)?.load(Relaxed).to_le_bytes()), start, bytes)
        }
        MemoryWords::Eight(words) => {
            same(|at| Some(words.get(at)?.load(Relaxed).to_le_bytes()), start, bytes)
        }
    }
}

/// A number for the words of memory in a range of addresses.
pub(crate) fn digest(memory: MemoryWords<'_>, range: Range<u64>) -> u64 {
    use std::sync::atomic::Ordering::Relaxed;
    fn part<'a, T>(words: &'a [T], range: &Range<u64>) -> impl Iterator<Item = &'a T> {
        let index = |address: u64| usize::try_from(address).unwrap_or(usize::MAX) / size_of::<T>();
        words.iter().take(index(range.end)).skip(index(range.start))
    }
    let mut hasher = DefaultHasher::new();
    match memory {
        MemoryWords::Four(words) => {
            part(words, &range).for_each(|word| hasher.write_u32(word.load(Relaxed)));
        }
        MemoryWords::Eight(words) => {
            part(words, &range).for_each(|word| hasher.write_u64(word.load(Relaxed)));
        }
    }
    hasher.finish()
}

/// Bytes of memory.
pub(crate) fn memory_bytes(memory: MemoryWords<'_>) -> u64 {
    match memory {
        MemoryWords::Four(words) => size_of_val(words) as u64,
        MemoryWords::Eight(words) => size_of_val(words) as u64,
    }
}

/// What is seen in a warp's registers, of those that are live, and on its divergence stack.
pub(crate) fn observed(frame: &Frame<'_>, rules: Rules, live: u64, head: &Inst) -> State {
    let shape = rules.shape;
    let mut state = State::unknown(shape);
    state.stack = levels(frame, shape);
    if shape.lanes == 1 {
        return state;
    }
    let waiting_read = rules.waiting_read(&state, head, *frame.active == shape.full());
    for r in (0..shape.arch.all_gprs()).filter(|r| live >> r & 1 != 0) {
        let lanes = if waiting_read >> r & 1 == 0 { *frame.active } else { shape.full() };
        state.regs[usize::from(r)] = class_of(frame, shape, r, lanes);
    }
    state
}

/// What an entry of a region that expects `expected` may expect if also a warp like this comes there.
pub(crate) fn met(frame: &Frame<'_>, shape: Shape, entry: &Entry, expected: &State) -> State {
    let mut seen = expected.clone();
    seen.stack = levels(frame, shape);
    for &Row { reg, .. } in &entry.rows {
        let class = &mut seen.regs[usize::from(reg)];
        let words = row(frame, shape, reg, entry.lanes(reg, *frame.active, &shape));
        *class = match (*class, words) {
            (Class::Const(value), Some((first, 0))) if value == first => *class,
            (_, words) => Class::of_stride(words.map(|(_, stride)| stride)),
        };
    }
    for p in bits_of(seen.uniform_preds) {
        let bits = frame.predicates[usize::from(p)] & shape.full();
        let is_uniform = bits == 0 || bits == shape.full();
        seen.set_pred(p, is_uniform || shape.lanes == 1);
    }
    expected.join(&seen)
}

/// What these lanes of a register have in common now. Of an address to return to, which is mostly the same, also the value.
pub(crate) fn class_of(frame: &Frame<'_>, shape: Shape, r: u8, lanes: u64) -> Class {
    match row(frame, shape, r, lanes) {
        Some((first, 0)) if usize::from(r) == shape.link() => Class::Const(first),
        row => Class::of_stride(row.map(|(_, stride)| stride)),
    }
}

/// The value that lane 0 of a register would hold, and the distance from lane to lane, if these lanes of it are a row.
fn row(frame: &Frame<'_>, shape: Shape, r: u8, lanes: u64) -> Option<(u64, u64)> {
    let words = bits_of(lanes)
        .map(|lane| (u64::from(lane), lane_of(&frame.registers, r, usize::from(lane), &shape)));
    let mut pairs = words.clone().zip(words.clone().skip(1));
    let neighbours = pairs.find(|((one, _), (other, _))| one + 1 == *other);
    let stride = neighbours.map_or(0, |((_, one), (_, other))| other.wrapping_sub(one));
    let mut firsts =
        words.map(|(lane, word)| shape.cut(word.wrapping_sub(stride.wrapping_mul(lane))));
    let first = firsts.next().unwrap_or(0);
    firsts.all(|other| other == first).then_some((first, shape.cut(stride)))
}

/// The most levels of the divergence stack that are looked at.
const LEVELS: usize = 4;

/// The splits whose entries are the topmost ones of the warp's divergence stack, the last one topmost.
pub(crate) fn levels(frame: &Frame<'_>, shape: Shape) -> Vec<Level> {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64};

    use super::*;

    #[test]
    fn memory_holds_just_the_bytes_that_are_read_from_it() {
        let bytes: Vec<u8> = (1..=32).collect();
        let four: Vec<AtomicU32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&word| AtomicU32::new(u32::from_le_bytes(word)))
            .collect();
        let eight: Vec<AtomicU64> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&word| AtomicU64::new(u64::from_le_bytes(word)))
            .collect();
        for memory in [MemoryWords::Four(&four), MemoryWords::Eight(&eight)] {
            for start in 0..32 {
                for count in 0..=32 - start {
                    let mut part = read(memory, start as u64, count);
                    assert_eq!(part, bytes[start..start + count]);
                    assert!(holds(memory, start as u64, &part));
                    for at in 0..count {
                        part[at] ^= 1;
                        assert!(!holds(memory, start as u64, &part), "{start} {count} {at}");
                        part[at] ^= 1;
                    }
                    part.resize(33 - start, 0);
                    assert!(!holds(memory, start as u64, &part), "it ends at 32");
                }
            }
        }
    }
}
