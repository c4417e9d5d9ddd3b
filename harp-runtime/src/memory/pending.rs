//! Which commands of queues the host has not waited for, so that it can be told that it does not leave their buffers
//! alone.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::lock;

/// What the host knows of the commands of a queue.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Commands that were queued.
    queued: u64,
    /// How many of them the host knows to have ended.
    seen: u64,
    /// Commands of other queues that have ended if so many of this one have.
    others: Vec<(u64, Ticket)>,
}

impl Clock {
    /// The number of the next command.
    pub(crate) fn queue(self: &Arc<Clock>) -> Ticket {
        let mut inner = lock(&self.inner);
        inner.queued += 1;
        Ticket { clock: Arc::clone(self), number: inner.queued }
    }
}

/// A command of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    clock: Arc<Clock>,
    /// From 1.
    number: u64,
}

impl Ticket {
    /// The command waits for one of another queue.
    pub(crate) fn waits_for(&self, other: &Ticket) {
        lock(&self.clock.inner).others.push((self.number, other.clone()));
    }

    /// The host knows that the command has ended, and so all before it.
    pub(crate) fn see(&self) {
        let mut inner = lock(&self.clock.inner);
        inner.seen = inner.seen.max(self.number);
        let others: Vec<_> =
            inner.others.extract_if(.., |(number, _)| *number <= self.number).collect();
        drop(inner);
        others.iter().for_each(|(_, other)| other.see());
    }

    fn is_seen(&self) -> bool {
        self.number <= lock(&self.clock.inner).seen
    }
}

/// What a command does with a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) ticket: Ticket,
    /// What it is, for messages.
    pub(crate) command: String,
    /// Bytes from the start of the buffer's memory.
    pub(crate) bytes: Range<u64>,
    pub(crate) writes: bool,
}

/// What commands that the host has not waited for do with a buffer.
#[derive(Debug, Default)]
pub(crate) struct Uses(Mutex<Vec<Use>>);

impl Uses {
    pub(crate) fn add(&self, one: Use) {
        let mut uses = lock(&self.0);
        uses.retain(|one| !one.ticket.is_seen());
        uses.push(one);
    }

    /// The command that uses some of these bytes, if the host must not read or write them before it knows of its end.
    pub(crate) fn conflict(&self, bytes: &Range<u64>, writes: bool) -> Option<String> {
        let uses = lock(&self.0);
        let conflict = uses.iter().find(|one| {
            let overlaps = one.bytes.start < bytes.end && bytes.start < one.bytes.end;
            overlaps && (writes || one.writes) && !one.ticket.is_seen()
        });
        conflict.map(|one| one.command.clone())
    }
}
