//! Decisions from bytes. No bytes left means the first possibility, everywhere and for ever.

use arbitrary::Unstructured;
use cranelift_codegen::ir::condcodes::IntCC;
use harp_isa::WordSize;

/// Decisions from bytes.
pub(super) struct Choices<'u>(Unstructured<'u>);

impl<'u> Choices<'u> {
    pub(super) fn new(bytes: &'u [u8]) -> Choices<'u> {
        Choices(Unstructured::new(bytes))
    }

    /// A number below `count`, which is not 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        self.0.int_in_range(0..=count - 1).unwrap_or(0)
    }

    /// One of `all`, which is not empty.
    pub(super) fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Puts them into any order.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }

    /// True once in `n`.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// One of these conditions, by their names in CLIF.
    pub(super) fn condition(&mut self, all: &[&str]) -> IntCC {
        self.one(all).parse().expect("all have the names of conditions")
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// An integer of `width` bits, zero-extended: small, an edge, a run of ones, or anything.
    pub(super) fn int(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let value = match self.below(6) {
            0 => self.below(9) as u64,
            1 => (self.below(8) as u64).wrapping_neg(),
            2 => 1 << self.below(width as usize),
            3 => (1 << self.below(width as usize)) - 1,
            4 => !(1 << self.below(width as usize)),
            _ => self.bits(),
        };
        value & mask
    }

    /// The bytes of so many words.
    pub(super) fn words(&mut self, count: usize, word: WordSize) -> Vec<u8> {
        let words = (0..count).map(|_| self.int(word.bits().into()).to_le_bytes());
        words.flat_map(|bytes| bytes.into_iter().take(word.bytes().into())).collect()
    }

    /// The bits of an `f32`: ordinary, an edge, or anything.
    pub(super) fn f32(&mut self) -> u32 {
        match self.below(4) {
            0 => (self.below(33) as f32 * 0.25 - 4.0).to_bits(),
            1 => f32::from(self.bits() as i16).to_bits(),
            2 => self.one(F32_EDGES),
            _ => self.bits() as u32,
        }
    }

    /// The bits of an `f64`.
    pub(super) fn f64(&mut self) -> u64 {
        match self.below(4) {
            0 => (self.below(33) as f64 * 0.25 - 4.0).to_bits(),
            1 => f64::from(self.bits() as i32).to_bits(),
            2 => self.one(F64_EDGES),
            _ => self.bits(),
        }
    }
}

/// Bits of `f32` where something ends: zeros, subnormals, the largest, infinities, NaN, and the
/// numbers around the ends of the integer types.
pub const F32_EDGES: &[u32] = [
    [0, 0x8000_0000, 1, 0x8000_0001, 0x007f_ffff, 0x0080_0000],
    [0x8080_0000, 0x3f80_0000, 0xbf80_0000, 0x3f7f_ffff, 0xbf00_0000, 0x42fe_0000],
    [0x4300_0000, 0xc301_0000, 0x437f_8000, 0x4780_0000, 0x4eff_ffff, 0x4f00_0000],
    [0xcf00_0000, 0x4f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000],
]
.as_flattened();

/// The same for `f64`.
pub const F64_EDGES: &[u64] = [
    [0, 0x8000_0000_0000_0000, 1, 0x8000_0000_0000_0001],
    [0x000f_ffff_ffff_ffff, 0x0010_0000_0000_0000, 0x8010_0000_0000_0000, 0x3ff0_0000_0000_0000],
    [0xbff0_0000_0000_0000, 0x3fef_ffff_ffff_ffff, 0xbfe0_0000_0000_0000, 0x405f_c000_0000_0000],
    [0x40e0_0000_0000_0000, 0xc060_2000_0000_0000, 0x41df_ffff_ffc0_0000, 0x41e0_0000_0000_0000],
    [0xc1e0_0000_0000_0000, 0x43df_ffff_ffff_ffff, 0x43e0_0000_0000_0000, 0xc3e0_0000_0000_0000],
    [0x43f0_0000_0000_0000, 0x7fef_ffff_ffff_ffff, 0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000],
]
.as_flattened();
