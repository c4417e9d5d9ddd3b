//! The choice between the host's vector instructions, operations that need intrinsics, and the crate's only
//! `unsafe`.
//!
//! On x86, [`Level::run`] has the fast paths for hosts with AVX2, FMA and the bit instructions of their
//! generation (since 2013), and for older hosts one that serves for both: each costs much time to build. Fused
//! multiply-add does not change results: the compiler never contracts `a * b + c`, and `mul_add` rounds once
//! either way.
#![allow(unsafe_code, reason = "functions with target features are called where the host has them")]

#[cfg(target_arch = "x86_64")]
use super::Any;
use super::Way;
use super::code::Code;
use super::fast::{self, Host, Stop};
use crate::config::Simd;
use crate::warp::GROUP;
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

    /// Issues at most `left` instructions of a warp in one of the fast paths, and counts `left` down.
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
        #[cfg(target_arch = "x86_64")]
        return run_any(host, code, left);
        #[cfg(not(target_arch = "x86_64"))]
        fast::run_way::<W, C, P>(host, code, left)
    }
}

/// The sign bits of two groups of words, that of the first word lowest.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
pub(crate) fn sign_bits(groups: &[[i32; GROUP]; 2]) -> u16 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32};
    // SAFETY: the functions' only requirement is SSE2, without which this is not compiled. Packing
    // saturates, which keeps signs.
    unsafe {
        let [low, high] = groups.map(|[a, b, c, d, e, f, g, h]| {
            _mm_packs_epi32(_mm_set_epi32(d, c, b, a), _mm_set_epi32(h, g, f, e))
        });
        _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u16
    }
}

/// The sign bits of two groups of words, that of the first word lowest.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn sign_bits(groups: &[[i32; GROUP]; 2]) -> u16 {
    let words = groups.as_flattened().iter().enumerate();
    words.fold(0, |bits, (i, &word)| bits | u16::from(word < 0) << i)
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

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn run_any<W: Word, const C: usize>(
    host: &mut Host<'_, '_, W, C>,
    code: &Code,
    left: &mut u64,
) -> Stop {
    fast::run_way::<W, C, Any>(host, code, left)
}
