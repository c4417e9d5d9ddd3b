//! The lock of a machine, and what the host tells it.

use harp_isa::WordSize;

/// The functions of the [lock](harp_isa::abi::Lock).
pub(crate) const LOCK: &str = include_str!("asm/lock.s");

/// The chunk of the lock that the host fills in, in libraries with the lock.
pub const LOCK_PLACE: &str = "runtime.lock_place";

/// The words of [`LOCK_PLACE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockPlace {
    /// The address of the lock's words, which are zero before the first warp starts.
    Words,
    /// Warps of a core.
    Warps,
    /// Warps of all cores.
    Count,
}

impl LockPlace {
    /// Every word in order, with its name in the assembly text.
    const ALL: [(LockPlace, &'static str); 3] = [
        (LockPlace::Words, "K_WORDS"),
        (LockPlace::Warps, "K_WARPS"),
        (LockPlace::Count, "K_COUNT"),
    ];

    /// The words, for a lock at this address.
    pub fn words(address: u64, warps: u64, cores: u64) -> [u64; Self::ALL.len()] {
        [address, warps, warps * cores]
    }

    /// How many words the lock itself has.
    pub fn lock_words(warps: u64, cores: u64) -> u64 {
        3 + 2 * warps * cores
    }

    /// The constants of the lock's text: offsets in bytes, and the number of words.
    pub fn definitions(word: WordSize) -> impl Iterator<Item = (&'static str, i64)> {
        let offset = move |(place, name)| (name, place as i64 * i64::from(word.bytes()));
        Self::ALL.into_iter().map(offset).chain([("K_SIZE", Self::ALL.len() as i64)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_in_their_order() {
        for (index, (place, _)) in LockPlace::ALL.iter().enumerate() {
            assert_eq!(*place as usize, index);
        }
    }
}
