//! The two word sizes as types, in registers and in memory.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytemuck::Zeroable;

/// A machine word: `u32` or `u64`.
///
/// Integer operations wrap; float operations reinterpret the bits as binary32 or binary64. Each operation
/// is that of the instruction of the same name.
pub(crate) trait Word:
    Copy
    + Debug
    + Default
    + Eq
    + Ord
    + Send
    + Sync
    + Zeroable
    + 'static
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The word in memory.
    type Cell: Cell<Word = Self>;
    /// The word's size in bytes.
    const BYTES: usize;
    /// The word's size in bits.
    const BITS: u32;
    /// No bit set.
    const ZERO: Self;
    /// All bits set.
    const ONES: Self;

    /// The low bits of `value`.
    fn from_u64(value: u64) -> Self;
    /// The word, zero-extended.
    fn to_u64(self) -> u64;
    /// The word, sign-extended.
    fn to_i64(self) -> i64;
    /// The word in `bytes`, of which there must be as many as a word has.
    fn from_le(bytes: &[u8]) -> Self;
    /// Writes the word to `bytes`, of which there must be as many as a word has.
    fn to_le(self, bytes: &mut [u8]);
    /// The words of memory, if they are of this size.
    fn cells(words: &Words) -> Option<&[Self::Cell]>;
    /// These words of registers.
    fn registers(words: &mut [Self]) -> RegisterWords<'_>;
    /// These words of memory.
    fn memory(cells: &[Self::Cell]) -> MemoryWords<'_>;

    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    /// Unsigned. Here and below the result of a division by zero is 0: lanes that do not execute may do it.
    fn div(self, b: Self) -> Self;
    /// Unsigned.
    fn rem(self, b: Self) -> Self;
    /// Signed.
    fn divs(self, b: Self) -> Self;
    /// Signed.
    fn mods(self, b: Self) -> Self;
    fn mulh(self, b: Self) -> Self;
    fn mulhu(self, b: Self) -> Self;
    fn shl(self, b: Self) -> Self;
    fn srl(self, b: Self) -> Self;
    fn sra(self, b: Self) -> Self;
    /// Logical on 4-byte words, arithmetic on 8-byte words.
    #[inline(always)]
    fn shr(self, b: Self) -> Self {
        if Self::BYTES == 4 { self.srl(b) } else { self.sra(b) }
    }
    fn lt_signed(self, b: Self) -> bool;

    fn itof(self) -> Self;
    fn utof(self) -> Self;
    fn ftoi(self) -> Self;
    fn ftou(self) -> Self;
    fn fadd(self, b: Self) -> Self;
    fn fsub(self, b: Self) -> Self;
    fn fmul(self, b: Self) -> Self;
    fn fdiv(self, b: Self) -> Self;
    fn fmin(self, b: Self) -> Self;
    fn fmax(self, b: Self) -> Self;
    fn fsqrt(self) -> Self;
    fn ftrunc(self) -> Self;
    /// `a * b + self`, rounded once.
    fn ffma(self, a: Self, b: Self) -> Self;
    fn feq(self, b: Self) -> bool;
    fn flt(self, b: Self) -> bool;
    fn fle(self, b: Self) -> bool;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO.sub(self)
    }
    /// `shl` by less than the word's width.
    #[inline(always)]
    fn shl_less(self, b: Self) -> Self {
        self.shl(b & Self::from_u64(u64::from(Self::BITS - 1)))
    }
    /// `shr` by less than the word's width.
    #[inline(always)]
    fn shr_less(self, b: Self) -> Self {
        self.shr(b & Self::from_u64(u64::from(Self::BITS - 1)))
    }
    #[inline(always)]
    fn fneg(self) -> Self {
        self ^ Self::sign_bit()
    }
    #[inline(always)]
    fn fabs(self) -> Self {
        self & !Self::sign_bit()
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }
    #[inline(always)]
    fn is_not_zero(self) -> bool {
        self != Self::ZERO
    }
    #[inline(always)]
    fn equals(self, b: Self) -> bool {
        self == b
    }
    #[inline(always)]
    fn differs(self, b: Self) -> bool {
        self != b
    }
    #[inline(always)]
    fn lt_unsigned(self, b: Self) -> bool {
        self < b
    }

    /// The top bit.
    #[inline(always)]
    fn is_negative(self) -> bool {
        self.lt_signed(Self::ZERO)
    }

    /// Only the top bit set.
    #[inline(always)]
    fn sign_bit() -> Self {
        Self::from_u64(1 << (Self::BITS - 1))
    }
}

/// Words of registers, of either size.
#[derive(Debug)]
pub enum RegisterWords<'a> {
    /// Words of 4 bytes.
    Four(&'a mut [u32]),
    /// Words of 8 bytes.
    Eight(&'a mut [u64]),
}

/// Words of guest memory, of either size. Other cores access them too, so every access is a relaxed atomic one.
#[derive(Clone, Copy, Debug)]
pub enum MemoryWords<'a> {
    /// Words of 4 bytes.
    Four(&'a [AtomicU32]),
    /// Words of 8 bytes.
    Eight(&'a [AtomicU64]),
}

/// The words of a memory.
pub(crate) enum Words {
    Four(Box<[AtomicU32]>),
    Eight(Box<[AtomicU64]>),
}

/// A word in memory. Plain accesses are relaxed.
pub(crate) trait Cell: Send + Sync + Sized + 'static {
    /// The type of its value.
    type Word: Word<Cell = Self>;
    fn load(&self) -> Self::Word;
    fn store(&self, value: Self::Word);
    /// Replaces the bits of `mask` by those of `value`, as one access.
    fn merge(&self, value: Self::Word, mask: Self::Word);
    /// Replaces the word by `f` of it, sequentially consistent, and returns the old word.
    fn update(&self, f: impl FnMut(Self::Word) -> Self::Word) -> Self::Word;
}

/// The quotient by floats: hosts have vector instructions for these, and none for integers.
///
/// It is exact. A quotient that is not an integer is farther below the next one than binary64 rounds: by at least
/// 1 / b, which is more than 2^-53 of a / b. So both have the same floor.
#[inline(always)]
fn div_4(a: u32, b: u32) -> u32 {
    // The binary64 numbers from here on are the integers, and end with the bits of the sum's other part.
    const INTEGERS: f64 = (1_u64 << 52) as f64;
    let quotient = f64::from(a) / f64::from(b);
    let sum = quotient + INTEGERS;
    let rounded = sum.to_bits() as u32;
    let floor = if sum - INTEGERS > quotient { rounded.wrapping_sub(1) } else { rounded };
    if b == 0 { 0 } else { floor }
}

#[inline(always)]
fn div_8(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(0)
}

macro_rules! word {
    ($word:ty, $signed:ty, $wide:ty, $wide_signed:ty, $float:ty, $atomic:ty, $variant:ident, $div:ident) => {
        impl Word for $word {
            type Cell = $atomic;
            const BYTES: usize = size_of::<$word>();
            const BITS: u32 = <$word>::BITS;
            const ZERO: Self = 0;
            const ONES: Self = <$word>::MAX;

            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as $word
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                i64::from(self.cast_signed())
            }
            #[inline(always)]
            fn from_le(bytes: &[u8]) -> Self {
                <$word>::from_le_bytes(bytes.try_into().expect("as many bytes as the word has"))
            }
            #[inline(always)]
            fn to_le(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn cells(words: &Words) -> Option<&[$atomic]> {
                match words {
                    Words::$variant(cells) => Some(cells),
                    _ => None,
                }
            }
            fn registers(words: &mut [Self]) -> RegisterWords<'_> {
                RegisterWords::$variant(words)
            }
            fn memory(cells: &[$atomic]) -> MemoryWords<'_> {
                MemoryWords::$variant(cells)
            }

            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                $div(self, b)
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_sub($div(self, b).wrapping_mul(b)) }
            }
            #[inline(always)]
            fn divs(self, b: Self) -> Self {
                let (a, b) = (self.cast_signed(), b.cast_signed());
                if b == 0 { 0 } else { a.wrapping_div(b).cast_unsigned() }
            }
            #[inline(always)]
            fn mods(self, b: Self) -> Self {
                let (a, b) = (self.cast_signed(), b.cast_signed());
                if b == 0 { 0 } else { a.wrapping_rem(b).cast_unsigned() }
            }
            #[inline(always)]
            fn mulh(self, b: Self) -> Self {
                let (a, b) = (self.cast_signed() as $wide_signed, b.cast_signed() as $wide_signed);
                ((a * b) >> <$word>::BITS) as $word
            }
            #[inline(always)]
            fn mulhu(self, b: Self) -> Self {
                ((self as $wide * b as $wide) >> <$word>::BITS) as $word
            }
            #[inline(always)]
            fn shl(self, b: Self) -> Self {
                // The count is masked before the shift so that the loop over lanes vectorizes.
                let shifted = self << (b & (<$word>::BITS as $word - 1));
                if b < <$word>::BITS as $word { shifted } else { 0 }
            }
            #[inline(always)]
            fn srl(self, b: Self) -> Self {
                let shifted = self >> (b & (<$word>::BITS as $word - 1));
                if b < <$word>::BITS as $word { shifted } else { 0 }
            }
            #[inline(always)]
            fn sra(self, b: Self) -> Self {
                let count = b.min(<$word>::BITS as $word - 1);
                (self.cast_signed() >> count).cast_unsigned()
            }
            #[inline(always)]
            fn lt_signed(self, b: Self) -> bool {
                self.cast_signed() < b.cast_signed()
            }

            #[inline(always)]
            fn itof(self) -> Self {
                (self.cast_signed() as $float).to_bits()
            }
            #[inline(always)]
            fn utof(self) -> Self {
                (self as $float).to_bits()
            }
            #[inline(always)]
            fn ftoi(self) -> Self {
                (<$float>::from_bits(self) as $signed).cast_unsigned()
            }
            #[inline(always)]
            fn ftou(self) -> Self {
                <$float>::from_bits(self) as $word
            }
            #[inline(always)]
            fn fadd(self, b: Self) -> Self {
                (<$float>::from_bits(self) + <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fsub(self, b: Self) -> Self {
                (<$float>::from_bits(self) - <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fmul(self, b: Self) -> Self {
                (<$float>::from_bits(self) * <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fdiv(self, b: Self) -> Self {
                (<$float>::from_bits(self) / <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fmin(self, b: Self) -> Self {
                let (x, y) = (<$float>::from_bits(self), <$float>::from_bits(b));
                if x < y {
                    self
                } else if y < x {
                    b
                } else if x == y {
                    // Equal values differ at most in the sign of a zero, and -0 is the smaller.
                    self | b
                } else {
                    (x + y).to_bits()
                }
            }
            #[inline(always)]
            fn fmax(self, b: Self) -> Self {
                let (x, y) = (<$float>::from_bits(self), <$float>::from_bits(b));
                if x > y {
                    self
                } else if y > x {
                    b
                } else if x == y {
                    self & b
                } else {
                    (x + y).to_bits()
                }
            }
            #[inline(always)]
            fn fsqrt(self) -> Self {
                <$float>::from_bits(self).sqrt().to_bits()
            }
            #[inline(always)]
            fn ftrunc(self) -> Self {
                <$float>::from_bits(self).trunc().to_bits()
            }
            #[inline(always)]
            fn ffma(self, a: Self, b: Self) -> Self {
                let (a, b) = (<$float>::from_bits(a), <$float>::from_bits(b));
                a.mul_add(b, <$float>::from_bits(self)).to_bits()
            }
            #[inline(always)]
            fn feq(self, b: Self) -> bool {
                <$float>::from_bits(self) == <$float>::from_bits(b)
            }
            #[inline(always)]
            fn flt(self, b: Self) -> bool {
                <$float>::from_bits(self) < <$float>::from_bits(b)
            }
            #[inline(always)]
            fn fle(self, b: Self) -> bool {
                <$float>::from_bits(self) <= <$float>::from_bits(b)
            }
        }

        impl Cell for $atomic {
            type Word = $word;

            #[inline(always)]
            fn load(&self) -> $word {
                self.load(Ordering::Relaxed)
            }
            #[inline(always)]
            fn store(&self, value: $word) {
                self.store(value, Ordering::Relaxed);
            }
            #[inline]
            fn merge(&self, value: $word, mask: $word) {
                let merged = |old| Some((old & !mask) | (value & mask));
                self.fetch_update(Ordering::Relaxed, Ordering::Relaxed, merged)
                    .expect("the update is never refused");
            }
            #[inline]
            fn update(&self, mut f: impl FnMut($word) -> $word) -> $word {
                self.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old)))
                    .expect("the update is never refused")
            }
        }
    };
}

word!(u32, i32, u64, i64, f32, AtomicU32, Four, div_4);
word!(u64, i64, u128, i128, f64, AtomicU64, Eight, div_8);

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotients are most often wrong next to multiples of the divisor.
    #[test]
    fn quotients_by_floats_are_exact() {
        let edges = |x: u32| [x.wrapping_sub(1), x, x.wrapping_add(1)];
        let spread = |i: u32| i.wrapping_mul(0x9e37_79b9) >> (i % 32);
        let divisors = (0..32).flat_map(|bit| edges(1 << bit)).chain((0..2000).map(spread));
        for b in divisors {
            let multiples = (0..50).map(|i| spread(i).wrapping_mul(b));
            for a in multiples.chain([0, u32::MAX, b]).flat_map(edges) {
                assert_eq!(a.div(b), a.checked_div(b).unwrap_or(0), "{a} / {b}");
                assert_eq!(a.rem(b), a.checked_rem(b).unwrap_or(0), "{a} % {b}");
            }
        }
    }
}
