//! The inputs of the simulated lanes: all are functions of a seed and of what reads them.

use crate::width::Width;

/// The inputs of one comparison.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) seed: u64,
    /// The numbers of the lanes.
    pub(crate) lanes: Vec<u64>,
    /// The number of the warp among those of the grid.
    pub(crate) warp: u64,
    /// Whether sums and products are computed exactly, or are opaque functions.
    pub(crate) computes: bool,
    /// Whether undefined values differ from lane to lane and from time to time.
    pub(crate) undefined_differs: bool,
}

impl Inputs {
    /// The inputs of round `round` for warps of at most `most` lanes.
    pub(super) fn of_round(fingerprint: u64, round: usize, most: usize) -> Inputs {
        // Few lanes run fast, more lanes diverge in more ways.
        let lanes = [5, 1, 4][round % 3].min(most);
        let seed = mix(fingerprint, round as u64);
        Inputs {
            seed,
            lanes: (0..lanes as u64).collect(),
            warp: mix(seed, 1) % 4,
            computes: round % 2 == 1,
            undefined_differs: true,
        }
    }

    /// The input of a given kind for `lane`; it is the same for all lanes within `width`.
    pub(super) fn input(&self, key: u64, width: Width, lane: usize) -> u64 {
        let whose = match width {
            Width::Thread => mix(self.warp + 1, self.lanes[lane] + 1),
            Width::Warp | Width::Group => self.warp + 1,
            Width::Grid => 0,
        };
        mostly_small(mix(mix(self.seed, key), whose))
    }

    /// Result `index` of effect number `count` of `lane`.
    pub(super) fn result(&self, index: usize, lane: usize, count: usize) -> u64 {
        let place = mix(lane as u64, (count as u64) << 8 | index as u64);
        mostly_small(mix(mix(self.seed, place), 2))
    }

    /// A result that depends on `operands` only.
    pub(super) fn result_of(&self, index: usize, operands: u64) -> u64 {
        mostly_small(mix(mix(self.seed, operands), index as u64))
    }

    /// An undefined value.
    pub(super) fn junk(&self, register: u32, lane: usize, time: u64) -> u64 {
        match self.undefined_differs {
            true => mix(mix(self.seed, register.into()), mix(lane as u64, time)),
            false => 1000,
        }
    }
}

/// Combines two numbers into one.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    // The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    let mut x = a.rotate_left(25) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Numbers with which most loops end.
fn mostly_small(hash: u64) -> u64 {
    if hash & 3 == 0 { hash >> 2 } else { (hash >> 2) & 7 }
}

/// Numbers that are small half of the time.
pub(super) fn often_small(hash: u64) -> u64 {
    if hash & 1 == 0 { hash >> 1 } else { (hash >> 1) & 15 }
}
