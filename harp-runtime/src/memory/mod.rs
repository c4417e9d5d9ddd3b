//! The memory of buffers.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use harp_monitor::{BufferName, Unwritten};

use crate::heap::{Allocation, Heap};

mod pending;

pub(crate) use pending::{Clock, Ticket, Use, Uses};

/// The memory of a buffer and its views.
#[derive(Debug)]
pub(crate) struct BufferMemory {
    allocation: Allocation,
    /// Bytes that belong to elements.
    bytes: u64,
    name: Mutex<Option<String>>,
    /// What nobody has written, as far as that is known.
    unwritten: Mutex<Unwritten>,
    uses: Uses,
}

impl BufferMemory {
    /// Memory of `bytes` bytes, which somebody writes at once.
    pub(crate) fn new(allocation: Allocation, bytes: u64) -> BufferMemory {
        BufferMemory {
            allocation,
            bytes,
            name: Mutex::default(),
            unwritten: Mutex::default(),
            uses: Uses::default(),
        }
    }

    /// The addresses of its elements.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = self.allocation.address();
        start..start + self.bytes
    }

    pub(crate) fn set_name(&self, name: String) {
        *lock(&self.name) = Some(name);
    }

    pub(crate) fn name(&self) -> BufferName {
        BufferName(lock(&self.name).clone())
    }

    /// The addresses that are taken for it.
    pub(crate) fn taken(&self) -> Range<u64> {
        self.allocation.range()
    }

    /// The heap that it was allocated from.
    pub(crate) fn heap(&self) -> &Heap {
        self.allocation.heap()
    }

    /// Notes that a launch may have written all of it.
    pub(crate) fn may_be_written(&self) {
        self.unwritten().write(0..self.bytes);
    }

    /// What nobody has written, by distance from the start.
    pub(crate) fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        lock(&self.unwritten)
    }

    /// What queued commands do with it, as far as that is checked.
    pub(crate) fn uses(&self) -> &Uses {
        &self.uses
    }
}

/// The buffers of a device.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    all: Mutex<Vec<Weak<BufferMemory>>>,
}

impl Buffers {
    /// Adds a buffer. Those that are gone make room first.
    pub(crate) fn add(&self, buffer: &Arc<BufferMemory>) {
        let mut all = lock(&self.all);
        if all.len() == all.capacity() {
            all.retain(|buffer| buffer.strong_count() > 0);
        }
        all.push(Arc::downgrade(buffer));
    }

    /// Those that are there, by address.
    pub(crate) fn live(&self) -> Vec<Arc<BufferMemory>> {
        let mut live: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        live.sort_by_key(|buffer| buffer.range().start);
        live
    }
}

/// Locks what nobody leaves half changed: nothing panics while it holds one of these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
