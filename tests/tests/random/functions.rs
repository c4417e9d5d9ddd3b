//! Random functions on one lane.

use cranelift_codegen::ir::{InstructionData, Opcode};
use harp_isa::WordSize;
use harp_tests::generate::{Family, Kind};
use harp_tests::random::{Selection, bytes_of};

use super::run_all;

/// Modules of an ordinary run.
const MODULES: u64 = 400;

const FAMILY: Family = Family { word: WordSize::Eight, extension: false };

#[test]
fn random_functions_do_what_the_oracle_says() {
    let selection = Selection { kind: Kind::Functions, ..Selection::default() };
    let reached = run_all(0..MODULES, selection);
    if reached.cases == MODULES {
        for ending in ["results", "bad address", "division by zero", "trap user1", "trap int_ovf"] {
            assert!(reached.endings.contains_key(ending), "no run ended by {ending}: {reached:#?}");
        }
    }
}

/// Changes to single instructions are seen in what the oracle says, or else the generator would make
/// much that has no effect.
#[test]
fn what_is_computed_has_effects() {
    let (mut seen, mut all) = (0, 0);
    for seed in 0..60 {
        let case = Kind::Functions.generate(&bytes_of(Kind::Functions, seed), FAMILY).case;
        let (effect, trace) = case.expected(1).expect("the oracle knows what is generated");
        for &(function, inst) in trace.executed.keys().step_by(7) {
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
            seen += usize::from(!other.expected(1).is_ok_and(|(other, _)| other == effect));
        }
    }
    println!("{seen} of {all} changes have effects");
    assert!(all > 100 && seen * 5 > all * 2, "{seen} of {all}");
}
