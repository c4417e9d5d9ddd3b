//! Two tables of ratios, each of times measured in turn, so that they hold on a host that is not idle:
//! the interpreter next to straight-line Rust, and one host thread next to two.
//!
//! `cargo bench -p harp-emu --bench ratios -- [START]`: only rows that begin so.
#![expect(clippy::print_stdout, reason = "the tables are what this is for")]

mod kernels;

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

use harp_emu::Simd;
use kernels::{Case, Host, Kernel, Mask, check, run_bound};

/// Iterations of a kernel in a run, and runs. Runs are short, so that many are not interrupted.
const ITERATIONS: u32 = 6_000;
const RUNS: usize = 101;

/// Runs of the bound for each of the interpreter, which takes longer.
const REPEATS: u32 = 6;

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a row of the first table.
fn compare(name: &str, case: &Case) {
    check(&Case { iterations: 500, ..*case });
    let guest = case.guest();
    let mut host = Host::new(case);
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut issued = 0;
        let bound =
            seconds(|| (0..REPEATS).for_each(|_| run_bound(&mut host))) / f64::from(REPEATS);
        let interpreter = seconds(|| issued = guest.run());
        rates.push(issued as f64 / interpreter / 1e6);
        shares.push(bound / interpreter);
    }
    println!("{name:32} {:8.0} {:8.3}", median(rates), median(shares));
}

/// Prints how much faster two cores run on two host threads than on one.
///
/// # Panics
///
/// If memory or statistics differ.
fn two_threads(name: &str) {
    let case = Case {
        kernel: Kernel::UnitStride,
        mask: Mask::Full,
        lanes: 32,
        simd: Simd::Detect,
        iterations: 200_000,
    };
    let guest = case.guest_with(2);
    let (one, two) = (NonZeroUsize::MIN, NonZeroUsize::MIN.saturating_add(1));
    assert!(guest.run_on(one) == guest.run_on(two), "host threads change the result");
    let ratio = |_| {
        let on_one = seconds(|| _ = black_box(guest.run_on(one)));
        on_one / seconds(|| _ = black_box(guest.run_on(two)))
    };
    println!("{name:32} {:8.2}", median((0..9).map(ratio).collect()));
}

fn main() {
    // Cargo passes flags too.
    let start = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{:32} {:>8} {:>8}", "host instructions, kernel, lanes", "M insn/s", "of bound");
    for simd in [Simd::Detect, Simd::Baseline] {
        for kernel in [Kernel::Alu, Kernel::UnitStride, Kernel::Scattered] {
            for mask in [Mask::Full, Mask::Partial] {
                for lanes in [8, 16, 32, 64] {
                    let name = format!("{simd:?} {kernel:?} {mask:?} {lanes}");
                    if name.starts_with(&start) {
                        let case = Case { kernel, mask, lanes, simd, iterations: ITERATIONS };
                        compare(&name, &case);
                    }
                }
            }
        }
    }
    let name = "Two host threads";
    if name.starts_with(&start) {
        two_threads(name);
    }
}
