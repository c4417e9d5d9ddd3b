//! Guest memory, shared by the cores of a machine and the host.
//!
//! Memory is an array of atomic words of the machine's size. Every access is a relaxed atomic
//! access to whole words, so a race between cores on different host threads, or with the host,
//! yields unspecified values and nothing worse. Stores to a part of a word preserve its other bytes by
//! compare-and-exchange.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_slice_box;
use harp_isa::WordSize;
use thiserror::Error;

use crate::word::{Cell, Word, Words};

/// Why memory was not made, read or written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// More than the machine can address, whose upper half of the addresses is reserved for devices.
    #[error("{given} bytes of memory, the limit is {limit}")]
    TooLarge {
        /// Bytes asked for.
        given: u64,
        /// The most that there can be.
        limit: u64,
    },
    /// A size that is not a multiple of the word.
    #[error("{given} bytes of memory are not a multiple of the word of {word} bytes")]
    NotWords {
        /// Bytes asked for.
        given: u64,
        /// Bytes of a word.
        word: u8,
    },
    /// The host has no memory left.
    #[error("the host cannot provide {given} bytes of memory")]
    OutOfHostMemory {
        /// Bytes asked for.
        given: u64,
    },
    /// A range that is not wholly inside the memory.
    #[error("{bytes} bytes at address {address:#x} are outside the memory of {size:#x} bytes")]
    OutOfRange {
        /// The first address.
        address: u64,
        /// Bytes of the range.
        bytes: u64,
        /// Bytes of the memory.
        size: u64,
    },
}

/// Guest memory, zero at first. The host allocates its pages when they are first touched.
pub struct Memory {
    words: Words,
}

/// Evaluates an expression over the words, for either word size.
macro_rules! each_size {
    ($memory:expr, $cells:ident => $result:expr) => {
        match &$memory.words {
            Words::Four($cells) => $result,
            Words::Eight($cells) => $result,
        }
    };
}

impl Memory {
    /// `bytes` bytes of zeros for machines with words of the size `word`.
    ///
    /// # Errors
    ///
    /// If `bytes` is not a multiple of the word, more than half of what a word can address, or more
    /// than the host can provide.
    pub fn new(word: WordSize, bytes: u64) -> Result<Memory, MemoryError> {
        let limit = 1 << (word.bits() - 1);
        if bytes > limit {
            return Err(MemoryError::TooLarge { given: bytes, limit });
        }
        if !bytes.is_multiple_of(word.bytes().into()) {
            return Err(MemoryError::NotWords { given: bytes, word: word.bytes() });
        }
        let words = match word {
            WordSize::Four => Words::Four(zeroed(bytes / 4, bytes)?),
            WordSize::Eight => Words::Eight(zeroed(bytes / 8, bytes)?),
        };
        Ok(Memory { words })
    }

    /// The word size of the machines that the memory is for.
    pub fn word(&self) -> WordSize {
        match &self.words {
            Words::Four(_) => WordSize::Four,
            Words::Eight(_) => WordSize::Eight,
        }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        each_size!(self, cells => size_of_val::<[_]>(cells) as u64)
    }

    /// Copies the bytes from `address` on to `out`.
    ///
    /// # Errors
    ///
    /// If the range is not wholly inside the memory.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        let start = self.range(address, out.len() as u64)?;
        each_size!(self, cells => read(cells, start, out));
        Ok(())
    }

    /// Copies `data` to the bytes from `address` on.
    ///
    /// # Errors
    ///
    /// If the range is not wholly inside the memory; nothing is written then.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), MemoryError> {
        let start = self.range(address, data.len() as u64)?;
        each_size!(self, cells => write(cells, start, data));
        Ok(())
    }

    /// The words, if they are of that size.
    pub(crate) fn cells<W: Word>(&self) -> Option<&[W::Cell]> {
        W::cells(&self.words)
    }

    fn range(&self, address: u64, bytes: u64) -> Result<usize, MemoryError> {
        let size = self.size();
        match address.checked_add(bytes) {
            Some(end) if end <= size => {
                Ok(usize::try_from(address).expect("the memory is in the host's address space"))
            }
            _ => Err(MemoryError::OutOfRange { address, bytes, size }),
        }
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("word", &self.word()).field("size", &self.size()).finish()
    }
}

fn zeroed<C: Zeroable>(words: u64, bytes: u64) -> Result<Box<[C]>, MemoryError> {
    let failed = MemoryError::OutOfHostMemory { given: bytes };
    // The host has no larger objects than `isize::MAX` bytes.
    if isize::try_from(bytes).is_err() {
        return Err(failed);
    }
    let words = usize::try_from(words).map_err(|_| failed.clone())?;
    try_zeroed_slice_box(words).map_err(|()| failed)
}

/// Splits `len` bytes at `start` into the bytes before the first whole word, the whole words and
/// the rest.
fn pieces<W: Word>(start: usize, len: usize) -> (usize, usize) {
    let head = (start.wrapping_neg() % W::BYTES).min(len);
    let body = (len - head) / W::BYTES * W::BYTES;
    (head, body)
}

fn read<C: Cell>(cells: &[C], start: usize, out: &mut [u8]) {
    let width = C::Word::BYTES;
    let (head, body) = pieces::<C::Word>(start, out.len());
    let (first, rest) = out.split_at_mut(head);
    let (whole, last) = rest.split_at_mut(body);
    let mut at = start / width;
    let partial = |at: usize, shift: usize, bytes: &mut [u8]| {
        let word = cells[at].load().to_u64() >> (8 * shift);
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    };
    if !first.is_empty() {
        partial(at, start % width, first);
        at += 1;
    }
    for (bytes, cell) in whole.chunks_exact_mut(width).zip(&cells[at..]) {
        C::Word::to_le(cell.load(), bytes);
    }
    if !last.is_empty() {
        partial(at + body / width, 0, last);
    }
}

fn write<C: Cell>(cells: &[C], start: usize, data: &[u8]) {
    let width = C::Word::BYTES;
    let (head, body) = pieces::<C::Word>(start, data.len());
    let (first, rest) = data.split_at(head);
    let (whole, last) = rest.split_at(body);
    let mut at = start / width;
    let partial = |at: usize, shift: usize, bytes: &[u8]| {
        let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let mask = (1 << (8 * bytes.len())) - 1;
        cells[at]
            .merge(C::Word::from_u64(word << (8 * shift)), C::Word::from_u64(mask << (8 * shift)));
    };
    if !first.is_empty() {
        partial(at, start % width, first);
        at += 1;
    }
    for (bytes, cell) in whole.chunks_exact(width).zip(&cells[at..]) {
        cell.store(C::Word::from_le(bytes));
    }
    if !last.is_empty() {
        partial(at + body / width, 0, last);
    }
}
