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
    /// General registers that the lanes of a warp share.
    SharedGprs,
    /// Predicates that the lanes of a warp share.
    SharedPreds,
}

impl Field {
    /// The accepted values. Those of shared registers depend on the others, too.
    pub const fn range(self) -> RangeInclusive<u8> {
        match self {
            Field::Gprs => 8..=64,
            Field::Preds => 2..=64,
            Field::Lanes | Field::Warps => 1..=64,
            Field::SharedGprs => 1..=56,
            Field::SharedPreds => 0..=62,
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
            Field::SharedGprs => "shared general registers",
            Field::SharedPreds => "shared predicates",
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
    /// More registers, a lane's own and shared ones, than instructions can name.
    #[error("{own} {field} and {shared} that lanes share: the limit is {limit} together")]
    TooManyRegisters {
        /// Which registers, those of a lane.
        field: Field,
        /// How many a lane has.
        own: u8,
        /// How many lanes share.
        shared: u8,
        /// The most of both together.
        limit: u8,
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
        /// Predicates given, with those that lanes share.
        preds: u8,
        /// Bits that they need.
        pred_bits: u8,
        /// General registers given, with those that lanes share.
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
