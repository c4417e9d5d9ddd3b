//! The choice between the host's vector instructions, operations that need intrinsics, and the crate's only
//! `unsafe`.
//!
//! On x86, the handlers of steps (see `step`) exist for hosts with AVX2, FMA and the bit instructions of their generation
//! (since 2013), and for any host. Fused multiply-add does not change results: the compiler never contracts
//! `a * b + c`, and `mul_add` rounds once either way.
#![allow(unsafe_code, reason = "functions with target features are called where the host has them")]

use super::step::{HANDLERS, Handle, HandlerNumber, Handlers, Step};
use super::{Exec, Fast, Flow};
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

/// A function that carries out a step. If it is one for AVX2, the host must have that.
pub(super) type Handler<W, const C: usize> = unsafe fn(&mut Exec<'_, W, C, Fast>, &Step) -> Flow;

/// Functions that the host can execute.
pub(super) struct Table<W: Word, const C: usize> {
    /// The handlers, by their numbers.
    handlers: &'static [Handler<W, C>; HANDLERS],
    /// [`Exec::spread_mask`].
    spread_mask: unsafe fn(&mut Exec<'_, W, C, Fast>),
}

impl<W: Word, const C: usize> Table<W, C> {
    pub(super) fn new(level: Level) -> Table<W, C> {
        #[cfg(target_arch = "x86_64")]
        if level.avx2 {
            let spread_mask = spread_on_avx2;
            return Table { handlers: &Handlers::<W, C>::AVX2, spread_mask };
        }
        Table { handlers: &Handlers::<W, C>::ANY, spread_mask: spread_on_any }
    }

    /// Carries out a step, whose handler has that number.
    #[inline(always)]
    pub(super) fn handle(
        &self,
        exec: &mut Exec<'_, W, C, Fast>,
        HandlerNumber(number): HandlerNumber,
        step: &Step,
    ) -> Flow {
        // SAFETY: the functions' only requirement is that the host has their target features. Functions for AVX2 are
        // in the table only if `Level::avx2` is true, which it is only where `has_avx2` has found all of them.
        unsafe { self.handlers[usize::from(number)](exec, step) }
    }

    /// Makes `mask` the lanes that execute.
    #[inline(always)]
    pub(super) fn set_mask(&self, exec: &mut Exec<'_, W, C, Fast>, mask: u64) {
        if exec.set_mask(mask) {
            // SAFETY: as in `handle`.
            unsafe { (self.spread_mask)(exec) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn spread_on_avx2<W: Word, const C: usize>(exec: &mut Exec<'_, W, C, Fast>) {
    exec.spread_mask();
}

fn spread_on_any<W: Word, const C: usize>(exec: &mut Exec<'_, W, C, Fast>) {
    exec.spread_mask();
}

/// A handler for hosts with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn on_avx2<W: Word, const C: usize, H: Handle>(
    exec: &mut Exec<'_, W, C, Fast>,
    step: &Step,
) -> Flow {
    H::handle(exec, step)
}

/// A handler for any host.
pub(super) fn on_any<W: Word, const C: usize, H: Handle>(
    exec: &mut Exec<'_, W, C, Fast>,
    step: &Step,
) -> Flow {
    H::handle(exec, step)
}

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
