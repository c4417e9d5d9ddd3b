//! Compiled kernels against cranelift-interpreter.
//!
//! `HARP_SEED=7` replays one random kernel, `HARP_SEED=0..10000` runs many.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::collections::BTreeMap;
use std::ops::Range;

use harp_jit::{ArchId, BuildError};
use harp_tests::fuzzing::kernels::{ARCHS, Machines, OPT_LEVELS, Reached, check, compare, shrink};
use harp_tests::fuzzing::random_bytes;
use harp_tests::generate::{Family, conversions, directed, divisions};
use harp_tests::oracle::{Case, Expected, device};
use harp_tests::seeds;

/// The seeds of an ordinary run.
const SEEDS: Range<u64> = 0..160;

/// Bytes that a seed gives: enough for the largest kernel.
const BYTES: usize = 3000;

#[test]
fn random_kernels_do_what_the_oracle_says() {
    let given = seeds::from_environment();
    let whole = given.is_none();
    let mut machines = Machines::new();
    let mut reached = Reached::default();
    for seed in given.unwrap_or(SEEDS) {
        // Short ones too: their kernels are small, and what fails is easy to read.
        let bytes = random_bytes(seed, BYTES >> (seed % 4));
        match check(&bytes, &mut machines) {
            Ok(more) => reached += more,
            Err(failure) => {
                let smaller = shrink(&bytes, &failure, 1500);
                let failure = smaller.unwrap_or(failure);
                panic!("seed {seed} (HARP_SEED={seed} replays it), made smaller:\n{failure}");
            }
        }
    }
    if whole {
        assert_not_vacuous(&reached);
    }
}

/// What the generator can make, all of it must have been made, compiled and run.
fn assert_not_vacuous(reached: &Reached) {
    let counts = [
        ("kernels", reached.kernels),
        ("splits", reached.split),
        ("nested splits", reached.split_twice),
        ("spills", reached.spilled),
        ("spilled predicates", reached.spilled_predicates),
        ("loops", reached.loops),
        ("uniform branches", reached.uniform_branches),
        ("bad addresses", reached.bad_addresses),
        ("divisions by zero", reached.divisions_by_zero),
        ("other traps", reached.trap_codes),
    ];
    for (what, count) in counts {
        assert!(count > 0, "the run reached no {what}: {reached:#?}");
    }
    let unsupported: usize = reached.unsupported.values().sum();
    assert!(reached.launches > 4 * unsupported, "hardly anything is supported: {reached:#?}");
    let missing: Vec<_> = OPCODES.iter().filter(|name| !reached.opcodes.contains(**name)).collect();
    assert!(missing.is_empty(), "no kernel with {missing:?} ran");
}

/// The operations that the generator makes.
#[rustfmt::skip]
const OPCODES: [&str; 105] = [
    // Integers.
    "iadd", "isub", "imul", "ineg", "iabs", "umulhi", "smulhi", "udiv", "urem", "sdiv", "srem",
    "smin", "smax", "umin", "umax", "uadd_overflow_trap",
    "uadd_overflow", "sadd_overflow", "usub_overflow", "ssub_overflow", "umul_overflow",
    "smul_overflow", "uadd_overflow_cin", "sadd_overflow_cin", "usub_overflow_bin",
    "ssub_overflow_bin", "isplit", "iconcat", "cls", "select_spectre_guard",
    "blendv", "sequence_point",
    "band", "bor", "bxor", "bnot", "bitselect", "bmask", "bitrev", "bswap", "popcnt", "clz", "ctz",
    "ishl", "ushr", "sshr", "rotl", "rotr", "uextend", "sextend", "ireduce", "icmp", "iconst",
    // Floats.
    "fadd", "fsub", "fmul", "fdiv", "fneg", "fabs", "fcopysign", "fcmp", "f32const", "f64const",
    "sqrt", "fma", "fmin", "fmax", "trunc", "ceil", "floor", "nearest", "fpromote", "fdemote",
    "fcvt_from_sint", "fcvt_from_uint", "fcvt_to_sint_sat", "fcvt_to_uint_sat",
    "fcvt_to_sint", "fcvt_to_uint", "bitcast",
    // Memory.
    "load", "uload8", "sload8", "uload16", "sload16", "uload32", "sload32",
    "store", "istore8", "istore16", "istore32",
    "atomic_rmw", "atomic_cas", "atomic_load", "atomic_store", "fence",
    // Control.
    "select", "brif", "jump", "br_table", "return", "call", "trap", "trapz", "trapnz",
];

/// Runs the same cases on all machines and collects what failed.
fn check_cases(make: fn(ArchId) -> Result<Vec<Case>, BuildError>) -> Reached {
    let mut reached = Reached::default();
    let mut failures = Vec::new();
    let mut known: Vec<(Family, Vec<(Case, Expected)>)> = Vec::new();
    for arch in ARCHS {
        let arch: ArchId = arch.parse().unwrap();
        let family = Family::of(arch);
        if !known.iter().any(|(have, _)| *have == family) {
            let cases = make(arch).unwrap().into_iter();
            known.push((
                family,
                cases
                    .map(|case| {
                        let expected = case.expected().unwrap();
                        (case, expected)
                    })
                    .collect(),
            ));
        }
        let (_, cases) = known.iter().find(|(have, _)| *have == family).unwrap();
        let mut device = device(arch).unwrap();
        for (case, expected) in cases {
            for opt_level in OPT_LEVELS {
                match compare(case, expected, arch, &mut device, opt_level) {
                    Ok(more) => reached += more,
                    Err(failure) => failures.push(failure),
                }
            }
        }
    }
    if let Some(first) = failures.first() {
        panic!("{} failures, the first: {first}", failures.len());
    }
    reached
}

#[test]
fn operations_agree_at_the_edges() {
    let reached = check_cases(directed);
    assert_eq!(reached.unsupported, BTreeMap::new());
    assert!(reached.launches > 100);
}

#[test]
fn divisions_trap_where_they_should() {
    let reached = check_cases(divisions);
    assert_eq!(reached.unsupported, BTreeMap::new());
    assert!(
        reached.divisions_by_zero > 0 && reached.trap_codes > 0 && reached.loops == 0,
        "{reached:?}"
    );
}

#[test]
fn conversions_trap_where_they_should() {
    let reached = check_cases(conversions);
    assert_eq!(reached.unsupported, BTreeMap::new());
    assert!(reached.trap_codes > 0 && reached.trap_codes < reached.launches, "{reached:?}");
}
