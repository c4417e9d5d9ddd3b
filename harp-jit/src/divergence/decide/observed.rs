//! Predicts by a profile which branches are unanimous (Gupta 2016, section 4.3.2, algorithm 8).

use crate::profile::{BranchCounts, WarpCounts};
use crate::strategy::ProfileParams;

const WHOLE: u128 = 1000;

/// Whether the branch with these counts is predicted to be unanimous.
///
/// Outside of loops the counts say exactly how often a warp was unanimous. In loops it is estimated from what
/// each lane did most of the time, as in the thesis, which has only these counts.
pub(super) fn is_unanimous(counts: &BranchCounts, in_loop: bool, params: ProfileParams) -> bool {
    let (unanimous, all) = if in_loop {
        let agree = counts.warps.iter().filter(|warp| lanes_agree(warp, params)).count();
        (agree as u64, counts.warps.len() as u64)
    } else {
        (counts.unanimous_true.saturating_add(counts.unanimous_false), counts.executed)
    };
    more(unanimous, params.unanimous, all)
}

/// Whether all lanes of a warp that executed the branch are predicted to take the same side.
fn lanes_agree(warp: &WarpCounts, params: ProfileParams) -> bool {
    let lanes = || warp.executed.iter().zip(&warp.taken).filter(|(executed, _)| **executed > 0);
    let less = |taken: u64, executed: u64| {
        u128::from(taken) * WHOLE < u128::from(params.loop_low) * u128::from(executed)
    };
    lanes().all(|(&executed, &taken)| more(taken, params.loop_high, executed))
        || lanes().all(|(&executed, &taken)| less(taken, executed))
}

/// Whether `part` is more than this many thousandths of `all`.
fn more(part: u64, thousandths: u16, all: u64) -> bool {
    u128::from(part) * WHOLE > u128::from(thousandths) * u128::from(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BranchId;

    fn counts(ways: [u64; 3], lanes: &[&[(u64, u64)]]) -> BranchCounts {
        let [unanimous_true, unanimous_false, divergent] = ways;
        let warp = |lanes: &&[(u64, u64)]| WarpCounts {
            core: 0,
            warp: 0,
            executed: lanes.iter().map(|lane| lane.0).collect(),
            taken: lanes.iter().map(|lane| lane.1).collect(),
        };
        BranchCounts {
            id: BranchId { place: 0, ordinal: 0 },
            executed: ways.iter().sum(),
            unanimous_true,
            unanimous_false,
            divergent,
            warps: lanes.iter().map(warp).collect(),
        }
    }

    #[test]
    fn outside_of_loops_executions_count() {
        let params = ProfileParams::default();
        let unanimous = |ways| is_unanimous(&counts(ways, &[]), false, params);
        assert!(unanimous([50, 41, 9]));
        assert!(!unanimous([50, 40, 10]));
        assert!(!unanimous([0, 0, 1]));
    }

    #[test]
    fn in_loops_lanes_are_predicted_one_by_one() {
        let params = ProfileParams::default();
        let unanimous =
            |lanes: &[&[(u64, u64)]]| is_unanimous(&counts([0, 0, 9], lanes), true, params);
        assert!(unanimous(&[&[(100, 91), (100, 99), (0, 0)]]));
        assert!(unanimous(&[&[(100, 9), (100, 0)]]));
        assert!(!unanimous(&[&[(100, 90), (100, 99)]]));
        assert!(!unanimous(&[&[(100, 91), (100, 9)]]));
        let agree: &[(u64, u64)] = &[(10, 10)];
        let differ: &[(u64, u64)] = &[(10, 5)];
        assert!(!unanimous(&[agree, differ]));
        let mut warps = vec![agree; 19];
        warps.push(differ);
        assert!(unanimous(&warps));
    }
}
