//! Work-items that wait for what others write, also others of their warp.

use harp_runtime::{Arg, Checks, LaunchConfig};

use crate::support::everywhere;

/// What the second of two buffers holds after a kernel for so many work-items, both with that many words at first zero.
fn leaves(kernel: &str, items: usize, words: usize, wanted: &[u32]) {
    everywhere("locks", |case| {
        let (locks, sums) = (case.zeros::<u32>(words), case.zeros::<u32>(words));
        // Relaxed atomic accesses do not order what is done under the lock: by OpenCL's model these are races.
        let mut checks = Checks::all();
        (checks.races, checks.types) = (false, false);
        let config = LaunchConfig::grid_1d(items).with_fuel(50_000_000).with_checks(checks);
        case.launch(kernel, config, &[Arg::from(&locks), Arg::from(&sums)]);
        assert_eq!(case.read(&sums), wanted, "{kernel} on {case}");
    });
}

#[test]
fn lanes_take_a_lock_one_after_the_other() {
    for kernel in ["held", "until_done"] {
        leaves(kernel, 70, 1, &[(0..70).sum()]);
    }
    leaves("left_by_break", 70, 1, &[(0..70).filter(|id| id % 3 != 0).sum()]);
}

#[test]
fn lanes_take_their_turns_by_tickets() {
    leaves("tickets", 70, 2, &[(0..70).sum(), 0]);
}

#[test]
fn lanes_take_two_locks() {
    let mut sums = [0; 4];
    for id in 0..70 {
        for i in 0..3 {
            let (a, b) = ((id + i) % 4, (id + 2 * i + 1) % 4);
            if i == 1 {
                sums[a as usize] += id;
            } else {
                sums[b as usize] += 1;
            }
        }
    }
    leaves("pairs", 70, 4, &sums);
}

#[test]
fn lanes_wait_for_the_one_before() {
    let sums: Vec<u32> = (0..40).map(|id| (0..=id).sum()).collect();
    leaves("chain", 40, 40, &sums);
}

#[test]
fn lanes_wait_for_one_that_takes_another_way() {
    let sums: Vec<u32> =
        (0..40).map(|id| id - id % 5 + 7 + if id % 5 > 0 { id } else { 0 }).collect();
    leaves("beside", 40, 40, &sums);
}
