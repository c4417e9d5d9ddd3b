//! Random functions on one lane of many machines against cranelift-interpreter.
//!
//! `HARP_SEED=7` replays one random module, `HARP_SEED=0..10000` runs many; the example `functions` runs
//! more of them, with progress.

use std::collections::BTreeSet;
use std::thread::available_parallelism;

use cranelift_codegen::ir::{InstructionData, Opcode};
use harp_isa::WordSize;
use harp_tests::fuzzing::functions::{
    ARCHS, CONSTRUCTS, Reached, all_operations, bytes_of, run, shrink,
};
use harp_tests::generate::functions::module;
use harp_tests::seeds;

/// Functions of an ordinary run.
const FUNCTIONS: u64 = 1000;

/// How many smaller modules are tried when one fails.
const ATTEMPTS: usize = 1500;

#[test]
fn random_functions_do_what_the_oracle_says() {
    let given = seeds::from_environment();
    let ordinary = given.is_none();
    let functions = if ordinary { FUNCTIONS } else { u64::MAX };
    let seeds = given.unwrap_or(0..u64::MAX);
    let threads = available_parallelism().map_or(1, usize::from);
    let reached = match run(seeds, functions, None, threads, &|_| {}) {
        Ok(reached) => reached,
        Err((seed, failure)) => {
            let failure = shrink(&bytes_of(seed), failure, ATTEMPTS);
            panic!("seed {seed} (HARP_SEED={seed} replays it), made smaller:\n{failure}");
        }
    };
    println!("{reached:#?}");
    if ordinary {
        assert_not_vacuous(&reached);
    }
}

/// Changes to single instructions are seen in what the oracle says, or else the generator would make
/// much that has no effect.
#[test]
fn what_is_computed_has_effects() {
    let (mut seen, mut all) = (0, 0);
    for seed in 0..60 {
        let case = module(&bytes_of(seed), WordSize::Eight);
        let (effect, executed) = case.expected().expect("the oracle knows what is generated");
        for &(function, inst) in executed.iter().step_by(7) {
            let mut other = case.clone();
            let InstructionData::Binary { opcode, .. } =
                &mut other.functions[function].dfg.insts[inst]
            else {
                continue;
            };
            *opcode = match opcode {
                Opcode::Iadd => Opcode::Isub,
                Opcode::Isub | Opcode::Band | Opcode::Smax => Opcode::Iadd,
                Opcode::Ishl | Opcode::Ushr => Opcode::Sshr,
                Opcode::Bor | Opcode::Bxor | Opcode::Imul => Opcode::Band,
                Opcode::Fadd | Opcode::Fmul => Opcode::Fsub,
                _ => continue,
            };
            all += 1;
            // A change of control flow may take it to where the oracle gives up.
            seen += usize::from(!other.expected().is_ok_and(|(other, _)| other == effect));
        }
    }
    println!("{seen} of {all} changes have effects");
    assert!(all > 100 && seen * 5 > all * 2, "{seen} of {all}");
}

/// What the generator can make, all of it must have been made, compiled and run.
fn assert_not_vacuous(reached: &Reached) {
    assert!(reached.functions >= FUNCTIONS, "{reached:?}");
    let missing = |names: BTreeSet<String>, there: &dyn Fn(&str) -> bool| -> Vec<String> {
        names.into_iter().filter(|name| !there(name)).collect()
    };
    let compiled = |name: &str| reached.compiled_operations.contains_key(name);
    assert_eq!(missing(all_operations(), &compiled), [""; 0], "operations that were never made");
    let known = all_operations();
    let unknown: Vec<_> =
        reached.compiled_operations.keys().filter(|name| !known.contains(*name)).collect();
    assert_eq!(unknown, [""; 0], "operations that the list lacks");
    let constructs = CONSTRUCTS.map(str::to_owned).into();
    let there = |name: &str| reached.constructs.contains_key(name);
    assert_eq!(missing(constructs, &there), [""; 0], "constructs that never ran");
    for arch in ARCHS {
        let arch = arch.parse::<harp_isa::ArchId>().expect("the list holds machines").to_string();
        let runs = |(name, _): &(&String, &u64)| name.split(' ').next() == Some(&arch);
        assert_eq!(reached.machines.iter().filter(runs).count(), 2, "levels of {arch} that ran");
    }
    for ending in ["results", "bad address", "division by zero", "trap user1", "trap int_ovf"] {
        assert!(reached.endings.contains_key(ending), "no run ended by {ending}: {reached:#?}");
    }
    // Most of what is made must run too.
    let executed = reached.operations.len();
    assert!(executed * 10 > known.len() * 9, "{executed} of {} operations ran", known.len());
}
