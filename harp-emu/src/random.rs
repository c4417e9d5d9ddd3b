//! Pseudo-random numbers that mean the same everywhere: a schedule can be replayed from its seed.

/// `SplitMix64` (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", figure 15).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of a seed and a stream; those of different streams have nothing in common.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let mut start = Random(stream);
        Random(seed ^ start.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The upper half of a product instead of a remainder (Lemire 2019); the bias is below 2^-32
        // for the small limits that schedules use.
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Mostly small, now and then large: 1 to 4096, each order of magnitude equally often.
    pub(crate) fn length(&mut self) -> u64 {
        let magnitude = 1 << self.below(13);
        1 + self.below(magnitude)
    }
}
