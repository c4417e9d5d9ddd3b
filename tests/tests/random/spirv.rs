//! Random kernels that were written as SPIR-V and read back.

use harp_tests::generate::Kind;
use harp_tests::random::Selection;

use super::run_some;

/// Kernels of an ordinary run, of each kind.
const KERNELS: u64 = 60;

#[test]
fn kernels_do_the_same_when_they_come_from_spirv() {
    for kind in [Kind::Lowerings, Kind::Kernels, Kind::Calls, Kind::Graphs] {
        let selection = Selection { kind, spirv: true, ..Selection::default() };
        let reached = run_some(0..KERNELS, selection);
        if reached.cases == KERNELS {
            assert!(reached.runs > 2 * KERNELS, "only {} runs", reached.runs);
        }
    }
}
