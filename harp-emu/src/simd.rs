//! The choice between the host's vector instructions, and the crate's only `unsafe`.
//!
//! [`Level::run`] compiles the interpreter's fast ways twice: for every host of the target, and for x86
//! hosts with AVX2, FMA and the bit instructions of their generation. Fused multiply-add does not
//! change results: the compiler never contracts `a * b + c`, and `mul_add` rounds once either way.
#![allow(unsafe_code, reason = "a function with target features is called after detection")]

use crate::code::Code;
use crate::config::Simd;
use crate::exec::Way;
use crate::exec::fast::{self, Host, Stop};
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

    /// Issues at most `left` instructions of a warp in one of the fast ways, and counts `left` down.
    pub(crate) fn run<W: Word, const C: usize, P: Way>(
        self,
        host: &mut Host<'_, '_, W, C>,
        code: &Code,
        left: &mut u64,
    ) -> Stop {
        #[cfg(target_arch = "x86_64")]
        if self.avx2 {
            // SAFETY: the function's only requirement is that the host has its target features.
            // The field is true only where `has_avx2` has found all of them.
            return unsafe { run_avx2::<W, C, P>(host, code, left) };
        }
        run_baseline::<W, C, P>(host, code, left)
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
fn run_avx2<W: Word, const C: usize, P: Way>(
    host: &mut Host<'_, '_, W, C>,
    code: &Code,
    left: &mut u64,
) -> Stop {
    fast::run_way::<W, C, P>(host, code, left)
}

fn run_baseline<W: Word, const C: usize, P: Way>(
    host: &mut Host<'_, '_, W, C>,
    code: &Code,
    left: &mut u64,
) -> Stop {
    fast::run_way::<W, C, P>(host, code, left)
}
