//! The lock of a machine, and what the host tells it.

use harp_isa::WordSize;

use crate::words::words;

/// The functions of the [lock](harp_isa::abi::Lock).
pub(crate) const LOCK: &str = include_str!("asm/lock.s");

/// The chunk of the lock that the host fills in, in libraries with the lock.
pub const LOCK_PLACE: &str = "runtime.lock_place";

words! {
    /// The words of [`LOCK_PLACE`].
    pub enum LockPlace {
        /// The address of the lock's words, which are zero before the first warp starts.
        Words = "K_WORDS",
        /// Warps of a core.
        Warps = "K_WARPS",
        /// Warps of all cores.
        Count = "K_COUNT",
    }
}

impl LockPlace {
    /// The words, for a lock at this address.
    pub fn words(address: u64, warps: u64, cores: u64) -> [u64; Self::COUNT] {
        [address, warps, warps * cores]
    }

    /// How many words the lock itself has.
    pub fn lock_words(warps: u64, cores: u64) -> u64 {
        3 + 2 * warps * cores
    }
}

/// The constants of the lock's text: offsets in bytes, and the number of words.
pub(crate) fn lock_definitions(word: WordSize) -> impl Iterator<Item = (&'static str, i64)> {
    LockPlace::definitions(word).chain([("K_SIZE", LockPlace::COUNT as i64)])
}
