//! Random kernels in host code.

use std::ops::Range;

use harp_tests::generate::Kind;
use harp_tests::random::Selection;

use super::run_some;

/// Kernels of an ordinary run, of each kind: short ones, as all that is reached is translated at once.
const KERNELS: Range<u64> = 12..14;

#[test]
fn kernels_do_the_same_in_host_code() {
    for kind in [Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs] {
        let selection = Selection { kind, native: true, ..Selection::default() };
        let reached = run_some(KERNELS, selection);
        if cfg!(target_arch = "x86_64") && reached.cases == KERNELS.end - KERNELS.start {
            let (again, there) = (reached.issued_again, reached.issued_in_host_code);
            assert!(there * 4 > again, "{there} of {again} instructions");
        }
    }
}
