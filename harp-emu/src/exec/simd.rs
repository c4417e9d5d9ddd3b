//! The choice between the host's vector instructions, operations that need intrinsics, and the crate's only
//! `unsafe`.
//!
//! On x86, kernels (see `kernels`) exist for hosts with AVX2, FMA and the bit instructions of their generation
//! (since 2013), and for any host. Fused multiply-add does not change results: the compiler never contracts
//! `a * b + c`, and `mul_add` rounds once either way.
#![allow(unsafe_code, reason = "functions with target features are called where the host has them")]

use super::kernels::{self, Group, Operation};
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
    /// What every host has.
    pub(crate) const BASELINE: Level = Level { avx2: false };

    /// The best that the host has and `simd` permits.
    pub(crate) fn detect(simd: Simd) -> Level {
        match simd {
            Simd::Baseline => Level::BASELINE,
            Simd::Detect => Level { avx2: has_avx2() },
        }
    }
}

/// Defines a function of the name of a kernel, which calls it, compiled for the level. The kernel takes registers,
/// `select` and other arguments.
macro_rules! kernel {
    ($name:ident<$($generic:ident: $bound:path),*>[$($row:ident),*]($($arg:ident: $ty:ty),*) -> $out:ty) => {
        #[doc = concat!("[`kernels::", stringify!($name), "`], compiled for the level.")]
        #[inline(always)]
        pub(super) fn $name<W: Word, const N: usize, $($generic: $bound),*>(
            level: Level,
            [$($row),*]: [&[Group<W>; N]; [$(stringify!($row)),*].len()],
            select: Option<&[Group<W>; N]>,
            $($arg: $ty),*
        ) -> $out {
            // Registers are arguments of their own, so that they are passed in the host's registers.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
            #[inline(never)]
            fn on_avx2<W: Word, const N: usize, $($generic: $bound),*>(
                $($row: &[Group<W>; N],)*
                select: Option<&[Group<W>; N]>,
                $($arg: $ty),*
            ) -> $out {
                kernels::$name([$($row),*], select, $($arg),*)
            }

            #[inline(never)]
            fn on_any<W: Word, const N: usize, $($generic: $bound),*>(
                $($row: &[Group<W>; N],)*
                select: Option<&[Group<W>; N]>,
                $($arg: $ty),*
            ) -> $out {
                kernels::$name([$($row),*], select, $($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            if level.avx2 {
                // SAFETY: the function's only requirement is that the host has its target features. The field is
                // true only where `has_avx2` has found all of them.
                return unsafe { on_avx2($($row,)* select, $($arg),*) };
            }
            on_any($($row,)* select, $($arg),*)
        }
    };
}

kernel!(map<O: Operation<W, W>>[dst, a, b](operation: O) -> ());
kernel!(mix<O: Operation<W, W>, F: Fn(W, W) -> W>[t, x, y, dst, a](first: O, second: F) -> ());
kernel!(test<O: Operation<W, bool>>[a, b](operation: O) -> u64);
kernel!(map_and_test<O: Operation<W, W>, F: Fn(W) -> bool>[t, x, y](first: O, second: F) -> u64);
kernel!(spread<>[dst](bits: u64, one: W) -> ());
kernel!(load<>[dst, base](offset: W, cells: &[W::Cell], mask: u64) -> bool);
kernel!(store<>[value, base](offset: W, cells: &[W::Cell], mask: u64, from: u64) -> bool);

/// The sign bits of a group of words, that of the first word lowest.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
pub(super) fn sign_bits(&[a, b, c, d, e, f, g, h]: &[i32; GROUP]) -> u8 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set_epi32};
    // SAFETY: the functions' only requirement is SSE2, without which this is not compiled. Packing
    // saturates, which keeps signs.
    unsafe {
        let signs = _mm_packs_epi32(_mm_set_epi32(d, c, b, a), _mm_set_epi32(h, g, f, e));
        _mm_movemask_epi8(_mm_packs_epi16(signs, signs)) as u8
    }
}

/// The sign bits of a group of words, that of the first word lowest.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(super) fn sign_bits(words: &[i32; GROUP]) -> u8 {
    words.iter().enumerate().fold(0, |bits, (i, &word)| bits | u8::from(word < 0) << i)
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
