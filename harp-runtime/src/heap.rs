//! The allocator of guest memory. It knows addresses only; the memory itself belongs to the device.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use range_alloc::RangeAllocator;
use thiserror::Error;

/// Every allocation starts at a multiple of this number of bytes: the largest size of a type of OpenCL C, which programs
/// expect memory to be aligned to, and no less than a cache line of the host.
pub(crate) const ALIGNMENT: u64 = 128;

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
    ranges: Arc<Mutex<Ranges>>,
}

#[derive(Debug)]
struct Ranges {
    allocator: RangeAllocator<u64>,
    /// The highest end of what was ever taken.
    top: u64,
}

impl Heap {
    /// A heap over `range`, whose ends are multiples of [`ALIGNMENT`].
    pub(crate) fn new(range: Range<u64>) -> Heap {
        let (top, allocator) = (range.start, RangeAllocator::new(range));
        Heap { ranges: Arc::new(Mutex::new(Ranges { allocator, top })) }
    }

    /// Takes `bytes` bytes that start at a multiple of `alignment`, a power of two.
    pub(crate) fn allocate(&self, bytes: u64, alignment: u64) -> Result<Allocation, OutOfMemory> {
        let mut ranges = self.lock();
        let Ranges { allocator, top } = &mut *ranges;
        let free = allocator.total_available();
        let limit = allocator.initial_range().end - allocator.initial_range().start;
        // Sizes beyond the heap never reach the allocator, whose sums could overflow.
        let fitting = bytes.max(1).checked_next_multiple_of(ALIGNMENT).filter(|&size| size <= free);
        let range = fitting
            .and_then(|size| allocator.allocate_range_aligned(size, alignment.max(ALIGNMENT)).ok())
            .ok_or(OutOfMemory { given: bytes, free, limit })?;
        *top = range.end.max(*top);
        Ok(Allocation { range, heap: self.clone() })
    }

    /// Takes these ranges of an empty heap; `None` if they overlap, are not in order, or not all in the heap.
    pub(crate) fn take(&self, ranges: &[Range<u64>]) -> Option<Vec<Allocation>> {
        let mut at = self.lock().allocator.initial_range().start;
        let (mut taken, mut between) = (Vec::new(), Vec::new());
        for range in ranges {
            if range.start < at || range.end <= range.start {
                return None;
            }
            if range.start > at {
                between.push(self.allocate(range.start - at, ALIGNMENT).ok()?);
            }
            taken.push(self.allocate(range.end - range.start, ALIGNMENT).ok()?);
            at = range.end;
        }
        taken.iter().map(|taken| &taken.range).eq(ranges).then_some(taken)
    }

    /// The ranges that are taken, by address. Neighbours are one.
    pub(crate) fn taken(&self) -> Vec<Range<u64>> {
        self.lock().allocator.allocated_ranges().collect()
    }

    /// The address from which on nothing was ever taken.
    pub(crate) fn top(&self) -> u64 {
        self.lock().top
    }

    /// Whether both are the same heap.
    pub(crate) fn is(&self, other: &Heap) -> bool {
        Arc::ptr_eq(&self.ranges, &other.ranges)
    }

    fn lock(&self) -> MutexGuard<'_, Ranges> {
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
    /// What was taken: at least what was asked for.
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

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
        self.heap.lock().allocator.free_range(self.range.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

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
    fn what_is_taken_can_be_taken_in_another_heap() {
        let heap = Heap::new(1024..1024 + 4096);
        let mut all: Vec<_> = (1..10).map(|i| heap.allocate(40 * i, ALIGNMENT).unwrap()).collect();
        drop((all.remove(6), all.remove(5), all.remove(1)));
        let taken = heap.taken();
        assert_eq!((taken.len(), heap.top()), (3, all.last().unwrap().range().end));

        let other = Heap::new(1024..1024 + 4096);
        let ranges: Vec<_> = all.iter().map(Allocation::range).collect();
        let _same = other.take(&ranges).unwrap();
        assert_eq!(other.taken(), taken);
        for bytes in [64, 100, 1000] {
            let [x, y] = [&heap, &other].map(|heap| heap.allocate(bytes, ALIGNMENT).unwrap());
            assert_eq!(x.range(), y.range());
        }
        for wrong in [
            from_ref(&(1024..1024)),
            from_ref(&(960..1024)),
            &[1088..1152, 1024..1088],
            from_ref(&(5120..5184)),
        ] {
            assert!(Heap::new(1024..1024 + 4096).take(wrong).is_none(), "{wrong:?}");
        }
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
