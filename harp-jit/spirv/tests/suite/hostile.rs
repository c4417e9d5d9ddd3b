//! Modules that were changed at random become kernels or errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::{bytes, numbers};
use harp_isa::ArchId;
use harp_jit::{CompileError, CompileOptions, ModuleError};
use harp_spirv::SpirvModule;

/// Modules of both flavours and address sizes.
const MODULES: [&str; 15] = [
    "vectors.32.O2",
    "control.32.O0",
    "structures.64.O0",
    "groups.32.O0",
    "generic.64.O0",
    "collective.32.O2",
    "printing.64.O2",
    "particles",
    "functions",
    "specialized",
    "bindings",
    "initial",
    "rare",
    "uniform",
    "variables",
];

/// How many modules are tried: a few, or those that the environment asks for.
fn mutants() -> u64 {
    let asked = std::env::var("HARP_MUTANTS").ok();
    asked.map_or(3000, |count| count.parse().expect("HARP_MUTANTS is a number"))
}

/// Changes words, cuts and doubles pieces.
fn mutated(original: &[u32], random: &mut impl Iterator<Item = u64>) -> Vec<u32> {
    let mut words = original.to_vec();
    let mut next = |limit: usize| (random.next().unwrap() % limit.max(1) as u64) as usize;
    for _ in 0..1 + next(4) {
        // The header stays, else most modules would end there.
        let at = 5 + next(words.len().saturating_sub(5));
        let Some(&word) = words.get(at) else { break };
        match next(9) {
            0 => words[at] = next(64) as u32,
            1 => words[at] = word ^ 1 << next(32),
            2 => words[at] = word.wrapping_add(1),
            3 => words[at] = word.wrapping_sub(1),
            // Another word of the module, often an id.
            4 | 5 => words[at] = words[next(words.len())],
            // Another opcode with as many words.
            6 => words[at] = word & 0xffff_0000 | next(400) as u32,
            7 => {
                let end = (at + next(12)).min(words.len());
                words.drain(at..end);
            }
            _ => {
                let end = (at + next(12)).min(words.len());
                let piece = words[at..end].to_vec();
                words.splice(at..at, piece);
            }
        }
    }
    words
}

/// What became of a module.
#[derive(Debug, Default)]
struct Outcomes {
    refused: u64,
    built: u64,
    compiled: u64,
    not_compiled: u64,
}

/// Reads a module, and builds and compiles its kernels.
fn attempt(words: &[u32], arch: ArchId, compiles: bool, outcomes: &mut Outcomes) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let Ok(module) = SpirvModule::parse(&bytes) else {
        outcomes.refused += 1;
        return;
    };
    for entry in module.entry_points().iter().take(10) {
        let kernel = match module.kernel(entry.name(), arch) {
            Ok(kernel) => kernel,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                outcomes.refused += 1;
                continue;
            }
        };
        outcomes.built += 1;
        if !compiles {
            continue;
        }
        match kernel.compile(&CompileOptions::default()) {
            Ok(_) => outcomes.compiled += 1,
            Err(ModuleError::Compile(error @ CompileError::Internal { .. })) => {
                panic!("{}: {error}", entry.name());
            }
            Err(_) => outcomes.not_compiled += 1,
        }
    }
}

#[test]
fn changed_modules_are_kernels_or_errors() {
    let mut outcomes = Outcomes::default();
    let originals: Vec<(&str, Vec<u32>)> = MODULES
        .into_iter()
        .map(|name| {
            let bytes = bytes(&format!("{name}.spv"));
            let words =
                bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            (name, words.collect())
        })
        .collect();
    for seed in 0..mutants() {
        let (name, original) = &originals[(seed % MODULES.len() as u64) as usize];
        let arch = if name.contains("64") { "8w32/32/16/16+x" } else { "4w32/16/32/16+x" };
        let words = mutated(original, &mut numbers(seed * 2 + 1));
        let mut attempt = || attempt(&words, arch.parse().unwrap(), seed % 10 == 0, &mut outcomes);
        if catch_unwind(AssertUnwindSafe(&mut attempt)).is_err() {
            panic!("the module `{name}` changed by seed {seed} panics");
        }
    }
    // Else they test nothing.
    let Outcomes { refused, built, compiled, .. } = outcomes;
    let few = mutants() / 100;
    assert!(refused > few && built > few && compiled > few, "{outcomes:?}");
}

#[test]
fn modules_that_are_cut_off_are_errors() {
    for name in MODULES {
        let bytes = bytes(&format!("{name}.spv"));
        for len in (0..bytes.len()).step_by(bytes.len() / 60) {
            // A module that ends between two instructions may be one.
            if let Ok(module) = SpirvModule::parse(&bytes[..len]) {
                assert!(module.entry_points().is_empty(), "{name} of {len} bytes");
            }
        }
    }
}
