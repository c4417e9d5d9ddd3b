//! The choice between the host's vector instructions, operations that need intrinsics, and the crate's only
//! `unsafe`.
//!
//! On x86, kernels (see `kernels`) exist for hosts with AVX2, FMA and the bit instructions of their generation
//! (since 2013), and for any host. Fused multiply-add does not change results: the compiler never contracts
//! `a * b + c`, and `mul_add` rounds once either way.
#![allow(unsafe_code, reason = "functions with target features are called where the host has them")]

use std::slice;

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
///
/// A register is passed as a pointer to its first group, and the number of groups once for all of them: with
/// slices the functions, of a few instructions a group, would spend more time on their arguments.
macro_rules! kernel {
    ($name:ident<$($generic:ident: $bound:path),*>[$($row:ident),*]($($arg:ident: $ty:ty),*) -> $out:ty) => {
        #[doc = concat!("[`kernels::", stringify!($name), "`], compiled for the level.")]
        #[inline(always)]
        pub(super) fn $name<W: Word, const C: usize, $($generic: $bound),*>(
            level: Level,
            [$($row),*]: [&[Group<W>; C]; [$(stringify!($row)),*].len()],
            select: Option<&[Group<W>; C]>,
            $($arg: $ty),*
        ) -> $out {
            /// The registers have `groups` groups. The pointers are those of references that live longer than the
            /// call.
            #[inline(always)]
            unsafe fn run<W: Word, $($generic: $bound),*>(
                groups: usize,
                $($row: *const Group<W>,)*
                select: *const Group<W>,
                $($arg: $ty),*
            ) -> $out {
                // SAFETY: the caller's pointers come from arrays of that many groups, or, for `select`, may be null.
                let (rows, select) = unsafe {
                    let rows = [$(slice::from_raw_parts($row, groups)),*];
                    (rows, (!select.is_null()).then(|| slice::from_raw_parts(select, groups)))
                };
                kernels::$name(rows, select, $($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
            #[inline(never)]
            unsafe fn on_avx2<W: Word, $($generic: $bound),*>(
                groups: usize,
                $($row: *const Group<W>,)*
                select: *const Group<W>,
                $($arg: $ty),*
            ) -> $out {
                // SAFETY: as its own.
                unsafe { run(groups, $($row,)* select, $($arg),*) }
            }

            #[inline(never)]
            unsafe fn on_any<W: Word, $($generic: $bound),*>(
                groups: usize,
                $($row: *const Group<W>,)*
                select: *const Group<W>,
                $($arg: $ty),*
            ) -> $out {
                // SAFETY: as its own.
                unsafe { run(groups, $($row,)* select, $($arg),*) }
            }

            $(let $row = $row.as_ptr();)*
            let select = select.map_or(std::ptr::null(), |select| select.as_ptr());
            #[cfg(target_arch = "x86_64")]
            if level.avx2 {
                // SAFETY: the host has the target features: the field is true only where `has_avx2` has found all
                // of them. The pointers are those of arrays of `C` groups.
                return unsafe { on_avx2(C, $($row,)* select, $($arg),*) };
            }
            // SAFETY: the pointers are those of arrays of `C` groups.
            unsafe { on_any(C, $($row,)* select, $($arg),*) }
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
