//! Checked launches of random cases, in which nothing may be found.

use harp_tests::generate::Kind;
use harp_tests::random::{Selection, run};

/// Cases of an ordinary run, of each kind.
const CASES: u64 = 100;

#[test]
fn nothing_is_found_in_cases_that_are_right() {
    for kind in [Kind::Kernels, Kind::Lowerings, Kind::Calls, Kind::Graphs] {
        let selection = Selection { kind, watched: true, ..Selection::default() };
        let reached = match run(0..CASES, selection, &|| {}) {
            Ok(reached) => reached,
            Err((seed, failure)) => panic!("{} {seed}: {failure}", kind.name()),
        };
        assert!(reached.runs > CASES, "{kind:?}");
    }
}
