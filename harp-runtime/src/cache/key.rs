//! Keys: SHA-256 over all that a kernel is compiled from.

use std::fmt;
use std::hash::Hasher;

use harp_jit::{CompileOptions, KernelSource};
use sha2::{Digest, Sha256};

/// Identifies a kernel by its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) [u8; Key::BYTES]);

impl Key {
    pub(super) const BYTES: usize = 32;

    pub(super) fn new(source: &KernelSource, options: &CompileOptions) -> Key {
        let mut state = State(Sha256::new());
        source.hash_compilation(options, &mut state);
        Key(state.0.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// SHA-256 as a hasher of Rust's.
struct State(Sha256);

impl Hasher for State {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash: [u8; Key::BYTES] = self.0.clone().finalize().into();
        hash.iter().take(8).rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}
