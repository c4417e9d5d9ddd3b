//! Random cases on many machines, by all strategies, against cranelift-interpreter, and mutations of their code.
//!
//! `HARP_SEED=7` replays one seed, `HARP_SEED=0..10000` runs many. The example `random` runs more of them, with
//! progress.

use std::ops::Range;

use harp_tests::generate::Kind;
use harp_tests::random::{
    Counts, Proof, Reached, Selection, Unproved, WAYS, bytes_of, needed, run, shrink,
};
use harp_tests::seeds;

mod functions;
mod fuzzing;
mod graphs;
mod kernels;
mod lowerings;
mod mutations;
mod native;
mod oracle;
mod shared;
mod shrink;
mod spirv;
mod strategies;
mod watched;

/// How many smaller cases are tried when one fails.
const ATTEMPTS: usize = 1500;

/// Runs the cases of all seeds that are asked for, or of `ordinary` ones. They must agree with the oracle, none may be
/// refused, and finished code must be proved if that is selected. Many cases must reach what the generator is to make.
fn run_all(ordinary: Range<u64>, selection: Selection) -> Reached {
    let reached = run_some(ordinary, selection);
    if seeds::from_environment().is_none() {
        assert_not_vacuous(selection.kind, &reached);
    }
    reached
}

/// The same of a few cases, which reach what they do.
#[expect(clippy::print_stdout, reason = "the output of tests is captured, and shown if they fail")]
fn run_some(ordinary: Range<u64>, selection: Selection) -> Reached {
    let kind = selection.kind;
    let reached = match run(seeds::from_environment().unwrap_or(ordinary), selection, &|| {}) {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            let failure = shrink(kind, &bytes_of(kind, seed), failure, ATTEMPTS);
            panic!("seed {seed} (HARP_SEED={seed} replays it), made smaller:\n{failure}");
        }
    };
    println!("{reached:#?}");
    assert_eq!(reached.refused, Counts::new(), "nothing that is generated may be refused");
    assert_eq!(unproved(&reached), [""; 0], "all finished code is proved to keep lanes together");
    reached
}

fn unproved(reached: &Reached) -> Vec<String> {
    reached.unproved.iter().map(Unproved::to_string).collect()
}

/// What the generator can make, all of it must have been made, compiled and run, on all machines at both levels and by
/// all strategies.
fn assert_not_vacuous(kind: Kind, reached: &Reached) {
    let needed = needed(kind);
    assert_eq!(needed.unknown(reached), [""; 0], "operations that the list lacks");
    // Of what lanes run, every operation in some type; functions on one lane, which take less time, have all types.
    let opcode = |name: &String| name.split('.').next().map(str::to_owned);
    let compiled = &reached.compiled_operations;
    let alike = |name: &String| compiled.keys().any(|other| opcode(other) == opcode(name));
    let made = |name: &&String| match kind {
        Kind::Functions => compiled.contains_key(*name),
        _ => alike(name),
    };
    let never: Vec<&String> = needed.operations.iter().filter(|name| !made(name)).collect();
    assert_eq!(never, [""; 0], "operations that were never made");
    let missing = needed.missing(reached);
    // Most of what is made must run too; a long run executes all.
    let ran = |name: &String| needed.operations.contains(name);
    let (operations, constructs): (Vec<_>, Vec<_>) = missing.into_iter().partition(ran);
    assert_eq!(constructs, [""; 0], "constructs that never ran");
    assert!(operations.len() * 10 <= needed.operations.len(), "{operations:?} never ran");
    for arch in kind.machines().map(|arch| arch.to_string()) {
        let runs = |(name, _): &(&String, &u64)| name.split(' ').next() == Some(&arch);
        assert_eq!(reached.machines.iter().filter(runs).count(), 2, "levels of {arch} that ran");
    }
    if kind == Kind::Functions {
        return;
    }
    for way in WAYS {
        assert!(reached.strategies.contains_key(way.name), "{way:?} never ran");
    }
    if kind == Kind::Calls {
        return;
    }
    for name in ["predicate", "adaptive"] {
        assert!(reached.predicated_branches[name] > 0, "{name} predicates nothing: {reached:#?}");
    }
    let least = if kind == Kind::Lowerings { 10 } else { 3 };
    assert!(reached.divergent_branches * least > reached.branches, "hardly anything diverges");
}

/// Kernels of this kind, whose finished code is proved.
fn proved(kind: Kind) -> Selection {
    Selection { kind, prove: Proof::Counted, ..Selection::default() }
}

/// Whether all that seeds of a kind compile to is proved; else it is said what their proofs need.
fn are_proved(kind: Kind, seeds: &[(u64, &str)]) {
    for &(seed, why) in seeds {
        let reached = run(seed..seed + 1, proved(kind), &|| {});
        let reached = reached.expect("the kernel does what it should");
        assert_eq!(unproved(&reached), [""; 0], "{why}");
        assert!(reached.proved > 0, "{seed}");
    }
}
