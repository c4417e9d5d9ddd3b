//! Pseudo-random numbers that are the same on every host, so that a schedule can be replayed from its seed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(SplitMix64);

impl Random {
    /// The sequence of a seed and a stream; sequences of different streams are unrelated.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let start = SplitMix64::seed_from_u64(stream).next_u64();
        Random(SplitMix64::seed_from_u64(seed ^ start))
    }

    /// A number below `limit`, which is not zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // Takes the upper half of a product instead of a remainder (Lemire 2019); the bias is below 2^-32
        // for the small limits that schedules use.
        ((u128::from(self.0.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    /// A length from 1 to 4096, mostly small: below a random power of two, each equally often.
    pub(crate) fn length(&mut self) -> u64 {
        let magnitude = 1 << self.below(13);
        1 + self.below(magnitude)
    }
}
