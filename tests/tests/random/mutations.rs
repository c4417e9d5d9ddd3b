//! Mutations of finished code are caught: dropped joins and splits, missing and wrong guards, swapped
//! targets, edits in splits, wrong mask predicates, divergent branches taken as uniform, lanes' own registers taken as shared.

use harp_tests::generate::Kind as Cases;
use harp_tests::machines::Machines;
use harp_tests::mutate::{Kind, Outcome, handwritten, random};
use harp_tests::random::together;
use harp_tests::seeds;

/// Random kernels of an ordinary run: with all control flow there is, and with calls, which are smaller.
const KERNELS: [(Cases, u64); 2] = [(Cases::Kernels, 16), (Cases::Calls, 64)];

/// Mutants of a kernel and kind, of random kernels and of handwritten ones.
const EACH: (usize, usize) = (3, 8);

#[test]
fn mutants_that_change_results_are_caught() {
    let given = seeds::from_environment();
    let ordinary = given.is_none();
    let mut outcome = Outcome::default();
    for (cases, count) in KERNELS {
        let seeds = given.clone().unwrap_or(0..count);
        match together(seeds, &|| {}, |seed, machines| random(cases, seed, EACH.0, machines)) {
            Ok(more) => outcome += more,
            Err((seed, error)) => panic!("seed {seed} (HARP_SEED={seed} replays it): {error}"),
        }
    }
    if ordinary {
        let own = handwritten(EACH.1, &mut Machines::default());
        outcome += own.expect("the handwritten kernels run");
    }
    println!("{outcome}");
    // What is not proved is not broken either.
    assert!(outcome.unproved.is_empty(), "{outcome}");
    let (changing, caught) = outcome.totals(|_| true);
    assert!(caught * 100 >= changing * 99, "{outcome}");
    if ordinary {
        for kind in Kind::all() {
            let (changing, _) = outcome.totals(|it| it == kind);
            assert!(changing >= 20, "only {changing} mutants with {kind} changed anything");
        }
    }
}
