//! Errors with their places in the text.

use std::ops::{Range, RangeInclusive};

use thiserror::Error;

use super::lexer::Token;
use crate::arch::{ArchId, Field as ArchIdField};
use crate::encoding::EncodeError;
use crate::error_list::ErrorList;

/// All errors in a text, in its order: at most one per statement, and every place that is not a token.
/// Errors that merely follow from another one are left out.
pub type AsmErrors = ErrorList<AsmError>;

/// Why a text does not assemble, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}:{column}: `{text}`: {kind}")]
pub struct AsmError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text at that place, shortened if it is long.
    pub text: String,
    /// The place in bytes of the text. It lies within one line; it is empty at the end of a line.
    pub span: Range<usize>,
    /// What is wrong with it.
    pub kind: AsmErrorKind,
}

/// What is wrong with a place in assembly text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AsmErrorKind {
    /// Something else is expected at this place.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A character with which no token starts.
    #[error("no token starts with this character")]
    UnknownCharacter,
    /// A comment without an end.
    #[error("the comment has no `*/`")]
    UnterminatedComment,
    /// A string without an end on its line.
    #[error("the string has no closing `\"` on its line")]
    UnterminatedString,
    /// A number with wrong digits, or beyond 64 bits.
    #[error(
        "not a number: expected decimal, `0x` hexadecimal or `0` octal digits of at most 64 bits, `1.5` or `3f`"
    )]
    Number,
    /// A float beyond the machine's format.
    #[error("the float does not fit a word of {bits} bits")]
    Float {
        /// Bits of a word.
        bits: u8,
    },
    /// No directive of that name.
    #[error("no such directive")]
    UnknownDirective,
    /// No instruction of that name.
    #[error("no such instruction")]
    UnknownInstruction,
    /// A constant is needed, but the name is not a constant.
    #[error("not defined by a `.def` before this place")]
    UndefinedConstant,
    /// A label or constant that exists already.
    #[error("already a label or a constant")]
    AlreadyDefined,
    /// A number outside of the limits.
    #[error("the number is {given}, the limits are {} and {}", limits.start(), limits.end())]
    OutOfRange {
        /// The number.
        given: i128,
        /// The smallest and the largest number that fit.
        limits: RangeInclusive<i128>,
    },
    /// A division by zero in an expression.
    #[error("the divisor is 0")]
    DivisionByZero,
    /// The logarithm of zero in an expression.
    #[error("0 has no logarithm")]
    LogarithmOfZero,
    /// A name in double quotes that an object file cannot hold.
    #[error("a name cannot hold the character NUL")]
    NulInName,
    /// A `.ref` where no chunk has begun.
    #[error("no chunk to refer from: begin one with `.chunk` or an item")]
    NoChunk,
    /// Parentheses are nested too deeply.
    #[error("parentheses are nested more than {limit} deep")]
    TooDeep {
        /// The deepest nesting allowed.
        limit: usize,
    },
    /// Too much code and data.
    #[error("the object would have {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The size with this item.
        size: u64,
        /// The largest size.
        limit: u64,
    },
    /// A register that a machine with shared registers lacks.
    #[error("register {given} of the {field}: {arch} has {limit}")]
    NoRegister {
        /// Which registers: those of a lane, or those that lanes share.
        field: ArchIdField,
        /// The register's number in its name.
        given: u8,
        /// How many there are.
        limit: u8,
        /// The machine.
        arch: ArchId,
    },
    /// The machine cannot encode the instruction.
    #[error(transparent)]
    Encode(EncodeError),
}

/// The longest `text` of an error, in characters.
const MAX_TEXT: usize = 40;

impl AsmError {
    /// The error `kind` at the tokens of `source` from `first` to `last`.
    pub(super) fn new(
        source: &str,
        first: &Token<'_>,
        last: &Token<'_>,
        kind: AsmErrorKind,
    ) -> AsmError {
        let start = first.offset;
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (text, size) = match first.text {
            "" => ("end of text", 0),
            "\n" => ("end of line", 0),
            _ => {
                let all = &source[start..last.offset + last.text.len()];
                let line = all.lines().next().unwrap_or_default();
                (line, line.len())
            }
        };
        AsmError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            text: text.chars().take(MAX_TEXT).collect(),
            span: start..start + size,
            kind,
        }
    }
}

/// Why a statement failed. It becomes an error only when it is reported, because finding the line takes a
/// walk over the text.
#[derive(Debug)]
pub(super) enum Failure {
    /// The error at the tokens of these indices.
    At(RangeInclusive<usize>, AsmErrorKind),
    /// The error has been reported, or will be, at its cause.
    Reported,
}
