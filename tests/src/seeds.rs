//! Which seeds a test is asked for, and the random bytes of a seed.

use std::env;
use std::ops::Range;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The seeds that the environment's `HARP_SEED` asks for: one, `7`, or a range, `0..10000`. None without it.
/// Panics if it is something else.
pub fn from_environment() -> Option<Range<u64>> {
    let text = env::var("HARP_SEED").ok()?;
    Some(parse(&text).unwrap_or_else(|| panic!("HARP_SEED is a number or a range, not `{text}`")))
}

fn parse(text: &str) -> Option<Range<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match text.split_once("..") {
        Some((start, end)) => Some(number(start)?..number(end)?),
        None => {
            let seed = number(text)?;
            Some(seed..seed.checked_add(1)?)
        }
    }
}

/// Random bytes, the same for the same seed everywhere.
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count.next_multiple_of(8)];
    SplitMix64::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.truncate(count);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_range() {
        assert_eq!(parse("7"), Some(7..8));
        assert_eq!(parse(" 3 .. 10"), Some(3..10));
        for wrong in ["", "x", "1..", "..", "-1", "18446744073709551615"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
