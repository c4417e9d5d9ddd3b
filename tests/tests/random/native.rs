//! Random kernels in host code.

use std::iter;
use std::ops::Range;

use harp_tests::generate::Kind;
use harp_tests::machines::{SHARED, parsed};
use harp_tests::random::{Reached, Selection};

use super::run_some;

/// Kernels of an ordinary run, of each kind: short ones, as all that is reached is translated at once.
const KERNELS: Range<u64> = 12..14;

const KINDS: [Kind; 4] = [Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs];

#[test]
fn kernels_do_the_same_in_host_code() {
    for kind in KINDS {
        run_in_host_code(KERNELS, iter::once(Selection { kind, ..Selection::default() }));
    }
}

#[test]
fn kernels_do_the_same_in_host_code_with_shared_registers() {
    let machines = parsed(SHARED).zip(KINDS.into_iter().cycle());
    let select = |(arch, kind)| Selection { kind, arch: Some(arch), ..Selection::default() };
    run_in_host_code(KERNELS.start..KERNELS.start + 1, machines.map(select));
}

/// Runs kernels of each selection, which together must issue much in host code.
fn run_in_host_code(kernels: Range<u64>, selections: impl Iterator<Item = Selection>) {
    let (mut reached, mut are_all) = (Reached::default(), true);
    for selection in selections {
        let some = run_some(kernels.clone(), Selection { native: true, ..selection });
        are_all &= some.cases == kernels.end - kernels.start;
        reached += some;
    }
    if !cfg!(target_arch = "x86_64") || !are_all {
        return;
    }
    for (tiers, least) in [(["Native", "Leaving"].as_slice(), 4), (&["Recorded"], 8)] {
        let [again, there] = [&reached.issued_again, &reached.issued_in_host_code]
            .map(|counts| tiers.iter().map(|tier| counts[*tier]).sum::<u64>());
        assert!(there * least > again, "{tiers:?}: {there} of {again} instructions");
    }
}
