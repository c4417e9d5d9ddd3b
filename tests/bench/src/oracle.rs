//! How many instructions of divergent lanes could be executed together at best: the oracle of Lee et al. (CGO 2013, section
//! 4.2), the longest common subsequence of the lanes' instruction streams.
//!
//! That of many streams is hard to find (Maier 1978), so this is a bound: no more than the longest common subsequence of
//! the shortest stream and any other. It is exact where the shortest stream is a subsequence of all, as in loops
//! that lanes leave one after the other.

use std::collections::HashMap;

/// The words of 64 bits that are computed for two streams at most; for longer ones the bound is the shortest stream.
const MOST_WORDS: usize = 1 << 26;

/// How many instructions all streams may have in common, at most. Streams are of addresses.
pub(super) fn most_common(streams: &[Vec<u32>]) -> u64 {
    let Some(shortest) = streams.iter().min_by_key(|stream| stream.len()) else { return 0 };
    let others = streams.iter().filter(|stream| !is_subsequence(shortest, stream));
    let lengths = others.map(|stream| common(shortest, stream));
    lengths.fold(shortest.len(), usize::min) as u64
}

/// Whether all of `part` occurs in `whole` in this order.
fn is_subsequence(part: &[u32], whole: &[u32]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|pc| rest.any(|other| other == pc))
}

/// The length of the longest common subsequence, or, of long streams, that of `a`. After Hyyrö (2004, Bit-parallel LCS-length
/// computation revisited): a word holds 64 places of `a`, and a zero bit is a place at which the length grows.
fn common(a: &[u32], b: &[u32]) -> usize {
    let words = a.len().div_ceil(64);
    if words.saturating_mul(b.len()) > MOST_WORDS {
        return a.len();
    }
    let mut places: HashMap<u32, Vec<u64>> = HashMap::new();
    for (i, &pc) in a.iter().enumerate() {
        places.entry(pc).or_insert_with(|| vec![0; words])[i / 64] |= 1 << (i % 64);
    }
    let mut row = vec![u64::MAX; words];
    for places in b.iter().filter_map(|pc| places.get(pc)) {
        let mut carry = false;
        for (word, place) in row.iter_mut().zip(places) {
            let hits = *word & place;
            let (sum, first) = word.overflowing_add(hits);
            let (sum, second) = sum.overflowing_add(carry.into());
            carry = first || second;
            *word = sum | (*word & !place);
        }
    }
    (0..a.len()).filter(|i| row[i / 64] >> (i % 64) & 1 == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams of few addresses, so that they have much in common, made of a simple generator's numbers.
    fn streams(seed: u64, count: usize, most: u64) -> Vec<Vec<u32>> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        (0..count).map(|_| (0..next(most)).map(|_| next(4) as u32).collect()).collect()
    }

    /// The length of the longest common subsequence by its definition: of all subsequences of the first.
    fn exact(streams: &[Vec<u32>]) -> u64 {
        let first = &streams[0];
        let part = |set: u32| {
            let kept = (0..first.len()).filter(|i| set >> i & 1 != 0);
            kept.map(|i| first[i]).collect::<Vec<_>>()
        };
        let sets = (0..1u32 << first.len()).filter(|&set| {
            let part = part(set);
            streams.iter().all(|stream| is_subsequence(&part, stream))
        });
        sets.map(u32::count_ones).max().unwrap_or(0).into()
    }

    #[test]
    fn two_streams() {
        for seed in 0..300 {
            let streams = streams(seed, 2, 11);
            assert_eq!(common(&streams[0], &streams[1]) as u64, exact(&streams), "{streams:?}");
        }
        // Across the ends of words.
        for length in [63, 64, 65, 200] {
            let a: Vec<u32> = (0..length).collect();
            let b: Vec<u32> = (0..2 * length).map(|i| if i % 3 == 0 { i / 2 } else { i }).collect();
            let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    table[i + 1][j + 1] = match x == y {
                        true => table[i][j] + 1,
                        false => usize::max(table[i][j + 1], table[i + 1][j]),
                    };
                }
            }
            assert_eq!(common(&a, &b), table[a.len()][b.len()], "{length}");
        }
    }

    #[test]
    fn never_less_than_all_have_in_common() {
        let mut exactly = 0;
        for seed in 0..300 {
            let streams = streams(seed, 3, 9);
            let (bound, exact) = (most_common(&streams), exact(&streams));
            assert!(bound >= exact, "{streams:?}");
            exactly += u32::from(bound == exact);
        }
        assert!(exactly > 200, "{exactly}");
        // A loop that lanes leave one after the other.
        let lanes: Vec<Vec<u32>> = (2..9).map(|rounds| [1, 2, 3].repeat(rounds)).collect();
        assert_eq!(most_common(&lanes), 6);
        assert_eq!(most_common(&[]), 0);
    }
}
