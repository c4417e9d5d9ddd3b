//! The choice between the host's vector instructions, and the crate's only `unsafe`.
//!
//! [`Level::run`] compiles the interpreter's fast loop twice: for every host of the target, and for x86
//! hosts with AVX2, FMA and the bit instructions of their generation. Fused multiply-add does not
//! change results: the compiler never contracts `a * b + c`, and `mul_add` rounds once either way.
#![allow(unsafe_code, reason = "a function with target features is called after detection")]

use crate::code::Code;
use crate::config::Simd;
use crate::exec::{self, End, Exec};
use crate::word::Word;

/// What the host can do. Values other than the baseline come from [`Level::detect`] only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is one choice"))]
    avx2: bool,
}

impl Level {
    /// The best that the host has and `simd` permits.
    pub(crate) fn detect(simd: Simd) -> Level {
        let avx2 = match simd {
            Simd::Baseline => false,
            Simd::Detect => has_avx2(),
        };
        Level { avx2 }
    }

    /// Issues at most `budget` instructions of a warp.
    pub(crate) fn run<W: Word, const C: usize>(
        self,
        exec: &mut Exec<'_, W, C, false>,
        code: &Code,
        budget: u64,
    ) -> End<W> {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: the function's only requirement is that the host has its target features.
            // The field is true only where `has_avx2` has found all of them.
            return unsafe { run_avx2(exec, code, budget) };
        }
        run_baseline(exec, code, budget)
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<W: Word, const C: usize>(
    exec: &mut Exec<'_, W, C, false>,
    code: &Code,
    budget: u64,
) -> End<W> {
    exec::run(exec, code, budget)
}

fn run_baseline<W: Word, const C: usize>(
    exec: &mut Exec<'_, W, C, false>,
    code: &Code,
    budget: u64,
) -> End<W> {
    exec::run(exec, code, budget)
}
