//! Random kernels under every way to manage divergence, against the oracle.
//!
//! `HARP_SEED=7` replays one kernel, `HARP_SEED=0..10000` runs many.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::env;
use std::ops::Range;

use harp_jit::{ArchId, CompileError, CompileOptions, DivergenceStrategy, OptLevel};
use harp_tests::fuzzing::kernels::ARCHS;
use harp_tests::fuzzing::random_bytes;
use harp_tests::generate;
use harp_tests::oracle::device;

/// The seeds of an ordinary run.
const SEEDS: Range<u64> = 0..60;

const STRATEGIES: [DivergenceStrategy; 2] =
    [DivergenceStrategy::SplitJoin, DivergenceStrategy::Predicate];

fn seeds() -> (Range<u64>, bool) {
    let Ok(text) = env::var("HARP_SEED") else { return (SEEDS, true) };
    let number = |text: &str| text.trim().parse::<u64>().expect("HARP_SEED is a number or a range");
    match text.split_once("..") {
        Some((start, end)) => (number(start)..number(end), false),
        None => (number(&text)..number(&text) + 1, false),
    }
}

/// What became of the branches on which lanes may disagree.
#[derive(Debug, Default)]
struct Shares {
    kernels: usize,
    divergent: usize,
    predicated: usize,
}

#[test]
fn strategies_agree_with_the_oracle() {
    let (seeds, whole) = seeds();
    let mut shares = [(); STRATEGIES.len()].map(|()| Shares::default());
    for seed in seeds {
        // Each seed on three of the machines, in turn.
        for turn in 0..3 {
            let arch = ARCHS[(seed as usize + 3 * turn) % ARCHS.len()].parse().unwrap();
            run(seed, arch, &mut shares);
        }
    }
    for (strategy, shares) in STRATEGIES.iter().zip(&shares) {
        println!("{strategy:?}: {shares:?}");
    }
    let [split_join, predicate, ..] = &shares;
    assert_eq!(split_join.predicated, 0);
    assert!(!whole || 2 * predicate.predicated > predicate.divergent, "{predicate:?}");
}

fn run(seed: u64, arch: ArchId, shares: &mut [Shares]) {
    let case = generate::kernel(&random_bytes(seed, 3000 >> (seed % 4)), arch).unwrap();
    let expected = case.expected().unwrap();
    let mut device = device(arch).unwrap();
    for (divergence, shares) in STRATEGIES.into_iter().zip(shares) {
        let opt_level = if seed % 3 == 0 { OptLevel::None } else { OptLevel::Speed };
        let options =
            CompileOptions { opt_level, divergence, verify: true, ..CompileOptions::default() };
        let kernel = match case.compile_with(arch, &options) {
            Ok(kernel) => kernel,
            Err(error) if matches!(*error, CompileError::Unsupported { .. }) => continue,
            Err(error) => panic!("seed {seed} on {arch}, {divergence:?}: {error}\n{case}"),
        };
        let observed = case.observed(&kernel, &mut device).unwrap();
        let difference = case.difference(&expected, &observed, arch.lanes().into());
        if let Some(difference) = difference {
            let code = kernel.disassembly();
            panic!("seed {seed} on {arch}, {divergence:?}: {difference}\n{case}\n{code}");
        }
        shares.kernels += 1;
        shares.divergent += kernel.stats().divergent_branches;
        shares.predicated += kernel.stats().predicated_divergent_branches;
    }
}
