//! All functions at the edges of the formats and at random numbers over all exponents, against references: exactly, or
//! within OpenCL's limits.

use harp_libm::{Accuracy, Float, Fma, Math, Operand};

use crate::support::expected;
use crate::support::machine::{Machine, usual_arch};
use crate::support::samples::samples;
use crate::support::ulps::ulps;
use crate::support::wide::Reference;

/// The limit for the logarithm of the gamma function of positive numbers, for which OpenCL has none.
const LGAMMA_LIMIT: f64 = 8.0;

fn is_same(x: f64, y: f64) -> bool {
    (x == y && x.is_sign_negative() == y.is_sign_negative()) || (x.is_nan() && y.is_nan())
}

fn check(math: Math, float: Float, arch: &str, fma: Fma, count: usize) {
    let args = samples(math, float, count, 0);
    let (results, _) = Machine::new(arch, math, float, fma).run(&args);
    let mut reference = Reference::default();
    for (&args, results) in args.iter().zip(results) {
        let exact = expected(math, float, args, &mut reference);
        for (index, operand) in math.results().iter().enumerate() {
            let (result, exact) = (results[index], exact[index]);
            let is_right = match (operand, math.accuracy(float)) {
                (Operand::Float, Accuracy::Ulps(limit)) => ulps(result, exact, float) <= limit,
                (Operand::Float, Accuracy::Unspecified) if args[0] < 0.0 => {
                    result.is_nan() == exact.high.is_nan()
                }
                (Operand::Float, Accuracy::Unspecified) => {
                    ulps(result, exact, float) <= LGAMMA_LIMIT
                }
                _ => is_same(result, exact.to_f64()),
            };
            let (name, exact) = (math.name(), exact.to_f64());
            assert!(is_right, "{name}, {float:?}, {arch}: {args:?}: {result:e}, not {exact:e}");
        }
    }
}

fn has_reference(math: &Math) -> bool {
    !matches!(math, Math::Mad | Math::Nan)
}

#[test]
fn results_of_f32_are_within_the_limits() {
    for &math in Math::ALL.iter().filter(|math| has_reference(math)) {
        check(math, Float::F32, usual_arch(Float::F32), Fma::Fast, 10_000);
    }
}

#[test]
fn results_of_f64_are_within_the_limits() {
    for &math in Math::ALL.iter().filter(|math| has_reference(math)) {
        check(math, Float::F64, usual_arch(Float::F64), Fma::Fast, 1000);
    }
}

#[test]
fn results_are_within_the_limits_without_a_fast_fma() {
    for (float, arch) in [(Float::F32, "4w16/16/16/4"), (Float::F64, "8w32/16/16/4")] {
        for &math in Math::ALL.iter().filter(|math| has_reference(math)) {
            check(math, float, arch, Fma::Slow, 400);
        }
    }
}

#[test]
fn f32_functions_run_on_machines_with_words_of_8_bytes() {
    for &math in Math::ALL.iter().filter(|math| has_reference(math)) {
        check(math, Float::F32, usual_arch(Float::F64), Fma::Fast, 400);
    }
}

/// The compiler computes `f64` on integers there.
#[test]
fn f64_functions_run_on_machines_with_words_of_4_bytes() {
    for math in [Math::Atan2, Math::Exp, Math::Fmod, Math::Ldexp, Math::Sin, Math::Tgamma] {
        check(math, Float::F64, "4w32/16/16/4+x", Fma::Slow, 100);
    }
}

#[test]
fn mad_rounds_once_or_twice() {
    for (float, arch) in [Float::F32, Float::F64].map(|float| (float, usual_arch(float))) {
        for fma in [Fma::Fast, Fma::Slow] {
            let args = samples(Math::Mad, float, 4000, 0);
            let (results, _) = Machine::new(arch, Math::Mad, float, fma).run(&args);
            for (&[x, y, z], [result, _]) in args.iter().zip(results) {
                let (twice, once) = match float {
                    Float::F32 => {
                        let [x, y, z] = [x, y, z].map(|number| number as f32);
                        (f64::from(x * y + z), f64::from(x.mul_add(y, z)))
                    }
                    Float::F64 => (x * y + z, x.mul_add(y, z)),
                };
                let exact = if fma == Fma::Fast { once } else { twice };
                assert!(is_same(result, exact), "{x:e} {y:e} {z:e}: {result:e}, not {exact:e}");
            }
        }
    }
}

#[test]
fn nans_are_quiet_and_carry_their_payload() {
    let machine = Machine::new(usual_arch(Float::F64), Math::Nan, Float::F64, Fma::Fast);
    let payloads = [0_u64, 1, 12345, 1 << 51, u64::from(u32::MAX)];
    let args: Vec<_> = payloads.iter().map(|&payload| [payload as f64, 0.0, 0.0]).collect();
    let (results, _) = machine.run(&args);
    for (payload, [result, _]) in payloads.into_iter().zip(results) {
        assert_eq!(result.to_bits(), 0x7ff8 << 48 | payload);
    }
}

/// A grid of which one lane of a warp needs the reduction of large angles gives the others the same as without.
#[test]
fn a_lane_with_a_large_angle_leaves_the_others_alone() {
    let machine = Machine::new(usual_arch(Float::F32), Math::Sin, Float::F32, Fma::Fast);
    let small: Vec<_> = (0..64).map(|i| [f64::from(i) * 0.25, 0.0, 0.0]).collect();
    let mut mixed = small.clone();
    let large = f64::from(1e30_f32);
    mixed[7][0] = large;
    let (alone, _) = machine.run(&small);
    let (together, _) = machine.run(&mixed);
    let differing: Vec<usize> = (0..64).filter(|&i| alone[i] != together[i]).collect();
    assert_eq!(differing, [7]);
    assert!((together[7][0] - large.sin()).abs() < 1e-7);
}
