//! The allocator of guest memory. It knows addresses only; the memory itself belongs to the device.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use range_alloc::RangeAllocator;
use thiserror::Error;

/// Every allocation starts at a multiple of this number of bytes: a cache line of the host, and
/// more than the largest machine word.
pub(crate) const ALIGNMENT: u64 = 64;

/// The guest's memory is exhausted, or too fragmented.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{given} bytes of guest memory asked for, {free} of {limit} are free{}", if given <= free { ", but fragmented" } else { "" })]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub given: u64,
    /// Bytes that are free, in one range or many.
    pub free: u64,
    /// Bytes that the device has for buffers and stacks.
    pub limit: u64,
}

/// The free and the taken ranges of guest memory, shared by the device and its buffers.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    ranges: Arc<Mutex<RangeAllocator<u64>>>,
}

impl Heap {
    /// A heap over `range`, whose ends are multiples of [`ALIGNMENT`].
    pub(crate) fn new(range: Range<u64>) -> Heap {
        Heap { ranges: Arc::new(Mutex::new(RangeAllocator::new(range))) }
    }

    /// Takes `bytes` bytes that start at a multiple of `alignment`, a power of two.
    pub(crate) fn allocate(&self, bytes: u64, alignment: u64) -> Result<Allocation, OutOfMemory> {
        let mut ranges = self.lock();
        let free = ranges.total_available();
        let limit = ranges.initial_range().end - ranges.initial_range().start;
        // Sizes beyond the heap never reach the allocator, whose sums could overflow.
        let fitting = bytes.max(1).checked_next_multiple_of(ALIGNMENT).filter(|&size| size <= free);
        let range = fitting
            .and_then(|size| ranges.allocate_range_aligned(size, alignment.max(ALIGNMENT)).ok())
            .ok_or(OutOfMemory { given: bytes, free, limit })?;
        Ok(Allocation { range, heap: self.clone() })
    }

    /// Whether both are the same heap.
    pub(crate) fn is(&self, other: &Heap) -> bool {
        Arc::ptr_eq(&self.ranges, &other.ranges)
    }

    fn lock(&self) -> MutexGuard<'_, RangeAllocator<u64>> {
        // A poisoned lock is fine: the allocator panics, if at all, before it changes anything.
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A range of guest memory, freed when dropped.
#[derive(Debug)]
pub(crate) struct Allocation {
    range: Range<u64>,
    heap: Heap,
}

impl Allocation {
    /// The first byte, a multiple of the alignment asked for.
    pub(crate) fn address(&self) -> u64 {
        self.range.start
    }

    /// The heap that it was allocated from.
    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.heap.lock().free_range(self.range.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_apart_and_given_back() {
        let heap = Heap::new(1024..1024 + 4096);
        let a = heap.allocate(1, ALIGNMENT).unwrap();
        let b = heap.allocate(1000, 1024).unwrap();
        let c = heap.allocate(0, ALIGNMENT).unwrap();
        for (i, x) in [&a, &b, &c].into_iter().enumerate() {
            for y in [&a, &b, &c].into_iter().skip(i + 1) {
                assert!(x.range.end <= y.range.start || y.range.end <= x.range.start);
            }
        }
        assert_eq!(
            (a.address() % ALIGNMENT, b.address() % 1024, c.address() % ALIGNMENT),
            (0, 0, 0)
        );
        assert!(b.address() + 1000 <= b.range.end);
        drop((a, b, c));
        assert_eq!(heap.allocate(4096, ALIGNMENT).unwrap().address(), 1024);
    }

    #[test]
    fn exhaustion_names_the_bytes_asked_for_and_those_there() {
        let heap = Heap::new(0..4096);
        let _taken = heap.allocate(100, ALIGNMENT).unwrap();
        let error = heap.allocate(4000, ALIGNMENT).unwrap_err();
        assert_eq!(error, OutOfMemory { given: 4000, free: 4096 - 128, limit: 4096 });
        assert_eq!(
            error.to_string(),
            "4000 bytes of guest memory asked for, 3968 of 4096 are free"
        );
        assert!(heap.allocate(u64::MAX, 1 << 40).is_err());
    }
}
