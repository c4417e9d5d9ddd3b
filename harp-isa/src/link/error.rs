//! Why objects cannot be linked.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::arch::ArchId;

/// The place of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The index of the object.
    pub object: usize,
    /// The name of the chunk.
    pub chunk: String,
    /// The offset in the chunk of the word that holds the field.
    pub offset: u64,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { object, chunk, offset } = self;
        write!(f, "object {object}, `{chunk}` + {offset:#x}")
    }
}

/// Why objects do not make an image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is nothing to link.
    #[error("no objects to link")]
    NoObjects,
    /// An object for another machine.
    #[error("object {object} is for {given}, object 0 for {expected}")]
    Incompatible {
        /// The index of the object.
        object: usize,
        /// Its machine.
        given: ArchId,
        /// The machine of the first object.
        expected: ArchId,
    },
    /// Two objects define the same global name, or one object the same name at two places.
    #[error("`{name}` is defined in object {first} and once more in object {second}")]
    Duplicate {
        /// The name.
        name: String,
        /// The index of the first object that has it.
        first: usize,
        /// The index of the second.
        second: usize,
    },
    /// A reference to a name that nobody defines.
    #[error("{site}: `{name}` is not defined")]
    Unresolved {
        /// The name.
        name: String,
        /// The reference.
        site: Box<Site>,
    },
    /// The address or distance does not fit the field.
    #[error(
        "{site}: the {} `{name}` is {value}, the limits are {} and {}",
        if *relative { "distance to" } else { "address of" }, limits.start(), limits.end()
    )]
    OutOfRange {
        /// The name.
        name: String,
        /// The reference.
        site: Box<Site>,
        /// Whether the value is a distance.
        relative: bool,
        /// The value.
        value: i128,
        /// The values that fit.
        limits: RangeInclusive<i128>,
    },
    /// A reference whose field does not lie in its chunk or is no part of a word.
    #[error(
        "{site}: a reference to {bits} bits above bit {shift} is \
         not within a word of the chunk"
    )]
    BadReference {
        /// The reference.
        site: Box<Site>,
        /// The width of the field.
        bits: u8,
        /// The bits below the field.
        shift: u8,
    },
    /// A chunk that is bound to another address than its turn gives it.
    #[error("object {object}: `{chunk}` is bound to {given:#x} but comes to lie at {actual:#x}")]
    Bound {
        /// The index of the object.
        object: usize,
        /// The chunk.
        chunk: String,
        /// The address that it must have.
        given: u64,
        /// The address that it would get.
        actual: u64,
    },
    /// The image is too large.
    #[error("object {object}: `{chunk}` would end at {end:#x}, the limit is {limit:#x}")]
    TooLarge {
        /// The index of the object.
        object: usize,
        /// The chunk.
        chunk: String,
        /// The address where the chunk would end.
        end: u128,
        /// The last address where one may end.
        limit: u128,
    },
}
