//! The two binary formats: numbers of bits and bit patterns.

use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::{F32, F64, I32, I64};

/// A binary interchange format of IEEE 754: sign, exponent, fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// CLIF's type of such floats.
    pub(super) float: Type,
    /// The integer type that holds their bits.
    pub(super) int: Type,
    /// Bits of the fraction.
    pub(super) fraction_bits: u64,
}

impl Format {
    /// binary32.
    pub(super) const SINGLE: Format = Format { float: F32, int: I32, fraction_bits: 23 };
    /// binary64.
    pub(super) const DOUBLE: Format = Format { float: F64, int: I64, fraction_bits: 52 };

    /// The format of a scalar type; none for other widths, for vectors and integers.
    pub(super) fn of(ty: Type) -> Option<Format> {
        [Format::SINGLE, Format::DOUBLE].into_iter().find(|format| format.float == ty)
    }

    /// The width in bits.
    pub(super) fn width(self) -> u64 {
        self.int.bits().into()
    }

    /// The exponent bias.
    pub(super) fn bias(self) -> u64 {
        self.largest_exponent() >> 1
    }

    /// The exponent field of infinities and NaNs.
    pub(super) fn largest_exponent(self) -> u64 {
        self.infinity() >> self.fraction_bits
    }

    /// The bits with only the sign set.
    pub(super) fn sign(self) -> u64 {
        1 << (self.width() - 1)
    }

    /// The bits of the fraction.
    pub(super) fn fraction(self) -> u64 {
        self.hidden() - 1
    }

    /// The hidden bit above the fraction of a normal number, which is also the lowest bit of the exponent
    /// field.
    pub(super) fn hidden(self) -> u64 {
        1 << self.fraction_bits
    }

    /// The bits of infinity.
    pub(super) fn infinity(self) -> u64 {
        self.sign() - self.hidden()
    }

    /// The bits of a quiet NaN.
    pub(super) fn nan(self) -> u64 {
        self.infinity() | self.hidden() >> 1
    }

    /// The bits of a power of two that is a normal number.
    pub(super) fn power_of_two(self, exponent: i64) -> u64 {
        self.bias().wrapping_add_signed(exponent) << self.fraction_bits
    }
}
