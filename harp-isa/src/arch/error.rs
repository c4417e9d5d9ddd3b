//! The numeric fields of architecture ids and what can be wrong with an id.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

/// A numeric field of an [`ArchId`](crate::ArchId).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// General registers of a lane.
    Gprs,
    /// Predicate registers of a lane.
    Preds,
    /// Lanes of a warp.
    Lanes,
    /// Hardware warps of a core.
    Warps,
}

impl Field {
    /// The accepted values.
    pub const fn range(self) -> RangeInclusive<u8> {
        match self {
            Field::Gprs => 8..=64,
            Field::Preds => 2..=64,
            Field::Lanes | Field::Warps => 1..=64,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Gprs => "general registers",
            Field::Preds => "predicates",
            Field::Lanes => "lanes",
            Field::Warps => "warps",
        })
    }
}

/// Why an architecture id is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArchIdError {
    /// The word size is missing or unknown.
    #[error("`{id}`: the word size must be 4 or 8 bytes")]
    WordSize {
        /// The string.
        id: String,
    },
    /// The encoding letter is missing or unknown.
    #[error("`{id}`: the encoding must be `w` (word) or `b` (byte)")]
    Encoding {
        /// The string.
        id: String,
    },
    /// A count that is required is missing.
    #[error("`{id}`: the number of {field} is missing")]
    Missing {
        /// The string.
        id: String,
        /// Which count.
        field: Field,
    },
    /// A count that is not a number.
    #[error("`{id}`: the number of {field} is `{given}`, which is not a number")]
    NotANumber {
        /// The string.
        id: String,
        /// Which count.
        field: Field,
        /// The text in its place.
        given: String,
    },
    /// A count out of range.
    #[error("{given} {field}: the limits are {} and {}", field.range().start(), field.range().end())]
    OutOfRange {
        /// Which count.
        field: Field,
        /// The value given.
        given: u64,
    },
    /// Something after the last field.
    #[error("`{id}`: `{rest}` after the last field")]
    Trailing {
        /// The string.
        id: String,
        /// The superfluous text.
        rest: String,
    },
    /// The word encoding keeps predicate operands in fields as wide as a register's.
    #[error(
        "{preds} predicates need {pred_bits} bits, but the word encoding has {gpr_bits} bits a \
         register operand ({gprs} general registers)"
    )]
    PredicatesWiderThanRegisters {
        /// Predicates given.
        preds: u8,
        /// Bits that they need.
        pred_bits: u8,
        /// General registers given.
        gprs: u8,
        /// Bits of a register operand.
        gpr_bits: u8,
    },
    /// The fields of an instruction leave no bit for its immediate.
    #[error(
        "an instruction of {needed} bits before its immediate does not fit a word of {limit} bits"
    )]
    NoImmediateBits {
        /// Bits of the largest instruction without its immediate.
        needed: u8,
        /// Bits of a word.
        limit: u8,
    },
    /// The largest instruction of the extension does not fit a word.
    #[error("the extension needs instructions of {needed} bits, a word has {limit}")]
    ExtensionTooWide {
        /// Bits of the largest instruction of the extension.
        needed: u8,
        /// Bits of a word.
        limit: u8,
    },
}
