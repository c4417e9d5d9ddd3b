//! What is seen of a machine when a region is formed: instructions in memory, registers, the divergence stack.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use harp_emu::{Frame, MemoryWords, RegisterWords};
use harp_isa::MAX_ENCODED_BYTES;

use crate::body::Inst;
use crate::class::Class;
use crate::rows::first_lane;
use crate::rules::{Level, State};
use crate::shape::Shape;

/// Instructions in memory.
pub(crate) struct Fetcher<'a> {
    shape: Shape,
    memory: MemoryWords<'a>,
    /// The bytes of those that were fetched, by their addresses.
    pub(crate) code: BTreeMap<u64, Vec<u8>>,
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
pub(crate) fn observed(frame: &Frame<'_>, shape: Shape, live: u64) -> State {
    let mut state = State::unknown(shape);
    state.stack = levels(frame, shape);
    if shape.lanes == 1 {
        return state;
    }
    let link = shape.arch.gprs().saturating_sub(1);
    for r in (0..shape.arch.all_gprs()).filter(|r| live >> r & 1 != 0) {
        state.regs[usize::from(r)] = match class_of(frame, shape, r) {
            Class::Uniform if r == link => Class::Const(first_lane(&frame.registers, r, &shape)),
            class => class,
        };
    }
    state
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
