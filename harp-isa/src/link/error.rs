//! Why objects cannot be linked.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::arch::ArchId;
use crate::error_list::ErrorList;

/// All errors of a link: names that are defined twice, names that are missing, then references that do not
/// fit, each in the order of the objects.
pub type LinkErrors = ErrorList<LinkError>;

/// One of the objects that were to be linked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// Its index, from 0.
    pub index: usize,
    /// The caller's name for it, such as the path of its file; empty if it has none.
    pub name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "object {}", self.index),
            name => f.write_str(name),
        }
    }
}

/// The place of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The object.
    pub object: ObjectId,
    /// The name of the chunk.
    pub chunk: String,
    /// The offset in the chunk of the word that holds the field.
    pub offset: u64,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { object, chunk, offset } = self;
        write!(f, "{object}: `{chunk}` + {offset:#x}")
    }
}

/// Why objects cannot be linked to an image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// There is nothing to link.
    #[error("no objects to link")]
    NoObjects,
    /// An object for another machine.
    #[error("{object} is for {given}, the objects before it are for {expected}")]
    Incompatible {
        /// The object.
        object: ObjectId,
        /// Its machine.
        given: ArchId,
        /// The machine of the first object.
        expected: ArchId,
    },
    /// Two objects define the same global name, or one object the same name at two places.
    #[error("`{name}` is defined in {first} and once more in {second}")]
    Duplicate {
        /// The name, which is that of the chunks.
        name: String,
        /// The first object that has it.
        first: ObjectId,
        /// The object that has it again, maybe the same.
        second: ObjectId,
    },
    /// A name that no object defines. It is reported once for each object that refers to it.
    #[error("{site}: `{name}` is not defined{}", more(*others))]
    Unresolved {
        /// The name.
        name: String,
        /// The first reference to it.
        site: Box<Site>,
        /// How many more references the object has to the name.
        others: usize,
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
    /// A reference whose field does not lie within a word of its chunk.
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
    /// A chunk that is bound to another address than the one where it would be placed.
    #[error("{object}: `{chunk}` is bound to {given:#x} but would be placed at {actual:#x}")]
    Bound {
        /// The object.
        object: ObjectId,
        /// The chunk.
        chunk: String,
        /// The address that it must have.
        given: u64,
        /// The address that it would get.
        actual: u64,
    },
    /// The image is too large.
    #[error("{object}: `{chunk}` would end at {end:#x}, the limit is {limit:#x}")]
    TooLarge {
        /// The object.
        object: ObjectId,
        /// The chunk.
        chunk: String,
        /// The address where the chunk would end.
        end: u128,
        /// The highest address at which a chunk may end.
        limit: u128,
    },
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => ", needed by 1 more reference".to_owned(),
        others => format!(", needed by {others} more references"),
    }
}
