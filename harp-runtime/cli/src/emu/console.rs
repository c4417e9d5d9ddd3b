//! The console on the process's own streams, byte by byte.

use std::io::{self, IsTerminal, Read, Write};
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use harp_emu::Console;

/// A console that writes to standard output while the program runs. Clones are the same console.
#[derive(Clone)]
pub(super) struct Terminal(Arc<Mutex<State>>);

struct State {
    /// Whether standard output is a terminal, where a user may wait for a prompt that is not a whole line.
    is_watched: bool,
    /// The bytes that are typed. `None`: no keyboard.
    typed: Option<Receiver<u8>>,
    last: Option<u8>,
    error: Option<io::Error>,
}

impl Terminal {
    /// A console without input of its own.
    pub(super) fn without_keyboard() -> Terminal {
        Terminal::new(None)
    }

    /// A console that takes what is typed on standard input from now on.
    pub(super) fn with_keyboard() -> Terminal {
        let (sender, typed) = mpsc::channel();
        // The thread waits for input until the process ends; it is never joined.
        thread::spawn(move || {
            for byte in io::stdin().lock().bytes().map_while(Result::ok) {
                if sender.send(byte).is_err() {
                    break;
                }
            }
        });
        Terminal::new(Some(typed))
    }

    fn new(typed: Option<Receiver<u8>>) -> Terminal {
        let is_watched = io::stdout().is_terminal();
        Terminal(Arc::new(Mutex::new(State { is_watched, typed, last: None, error: None })))
    }

    /// The last byte written, or the first error.
    pub(super) fn finish(self) -> io::Result<Option<u8>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.error.take() {
            Some(error) => Err(error),
            None => io::stdout().flush().map(|()| state.last),
        }
    }
}

impl State {
    fn print(&mut self, byte: u8) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&[byte])?;
        self.last = Some(byte);
        if self.is_watched { stdout.flush() } else { Ok(()) }
    }
}

impl Console for Terminal {
    fn write(&mut self, byte: u8) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.error.is_some() {
            return;
        }
        match state.print(byte) {
            Ok(()) => {}
            // The reader has gone. The program may go on forever; the command must not.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => process::exit(0),
            Err(error) => state.error = Some(error),
        }
    }

    fn poll(&mut self) -> Option<u8> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.typed.as_ref()?.try_recv().ok()
    }
}
