//! The console, which takes a core's output and provides its input.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A console outside of the machine, which gets every byte as soon as it is written.
///
/// Cores on several host threads share it: each byte is one call, and the bytes of different cores
/// come in the order in which they are written.
pub trait Console: Send {
    /// Takes a byte that a core has written. The console itself must keep track of errors.
    fn write(&mut self, byte: u8);

    /// The next byte of input, if there is one by now. Must not block: the machine calls this at each load
    /// from the console and, where input may interrupt warp 0, each time before it runs that warp.
    fn poll(&mut self) -> Option<u8>;
}

/// A console that cores share.
pub(crate) type SharedConsole = Arc<Mutex<dyn Console>>;

/// The console as a core sees it.
#[derive(Default)]
pub(crate) struct CoreConsole {
    /// What was written while there was no console outside.
    pub(crate) output: Vec<u8>,
    /// What is left of the input that was given in advance, the next byte last.
    input: Vec<u8>,
    outside: Option<SharedConsole>,
    /// Whether it takes input from outside.
    takes_input: bool,
}

impl CoreConsole {
    /// A console with all of `input` still to be taken. Only core 0 takes input.
    pub(crate) fn new(core: u16, input: &[u8], outside: Option<SharedConsole>) -> CoreConsole {
        let takes_input = core == 0;
        let input = if takes_input { input.iter().rev().copied().collect() } else { Vec::new() };
        CoreConsole { output: Vec::new(), input, outside, takes_input }
    }

    /// From now on bytes go to and come from `outside`.
    pub(crate) fn connect(&mut self, outside: &SharedConsole) {
        self.outside = Some(outside.clone());
    }

    pub(crate) fn write(&mut self, byte: u8) {
        match &self.outside {
            Some(outside) => outside.lock().unwrap_or_else(PoisonError::into_inner).write(byte),
            None => self.output.push(byte),
        }
    }

    /// The next byte of input.
    pub(crate) fn take(&mut self) -> Option<u8> {
        self.has_input().then(|| self.input.pop()).flatten()
    }

    /// Whether a byte of input is there.
    pub(crate) fn has_input(&mut self) -> bool {
        if let ([], true, Some(outside)) = (&self.input[..], self.takes_input, &self.outside) {
            self.input.extend(outside.lock().unwrap_or_else(PoisonError::into_inner).poll());
        }
        !self.input.is_empty()
    }
}

impl fmt::Debug for CoreConsole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreConsole").field("input", &self.input).finish_non_exhaustive()
    }
}
