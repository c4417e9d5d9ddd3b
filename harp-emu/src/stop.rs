//! How a run is stopped from outside: by a token that another thread sets, or when its time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::trap::TrapKind;

/// Cancels runs, from any thread.
///
/// All clones are one token. A run that has it (see [`Machine::set_cancel_token`](crate::Machine::set_cancel_token))
/// ends soon with [`TrapKind::Cancelled`]: each core asks after 65536 instructions, or after one round of quanta if that
/// is more. The token stays cancelled until it is [`reset`](Self::reset).
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Cancels all runs that have the token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes back what [`cancel`](Self::cancel) did, for later runs.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What may stop a run that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    token: Option<&'a CancelToken>,
    /// The limit of time, and when the run began.
    time: Option<(Duration, Instant)>,
}

impl<'a> Stop<'a> {
    /// Of a run that begins now.
    pub(crate) fn new(token: Option<&'a CancelToken>, limit: Option<Duration>) -> Stop<'a> {
        Stop { token, time: limit.map(|limit| (limit, Instant::now())) }
    }

    /// Why the run must stop, if it must.
    pub(crate) fn reason(self) -> Option<TrapKind> {
        if self.token.is_some_and(CancelToken::is_cancelled) {
            return Some(TrapKind::Cancelled);
        }
        let (limit, begin) = self.time?;
        (begin.elapsed() >= limit).then_some(TrapKind::TimeLimit { limit })
    }
}
