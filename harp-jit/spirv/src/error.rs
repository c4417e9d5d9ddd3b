//! What is wrong with a module, and where.

use std::fmt;

use harp_isa::ArchId;
use harp_jit::{BuildError, ModuleError, SourcePlace};
use thiserror::Error;

/// The first thing that is wrong with a module, or not supported, and the instruction that says it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{kind}", Prefix(.at))]
pub struct SpirvError {
    /// What is wrong. The error's text contains it, so it is not a source of the error.
    pub kind: SpirvErrorKind,
    /// The instruction, if it is one.
    pub at: Option<Box<InstructionPlace>>,
}

/// An instruction of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionPlace {
    /// The instruction's name in the specification, such as `OpIAdd`.
    pub instruction: String,
    /// The id of its result, if it has one.
    pub id: Option<u32>,
    /// What `OpName` calls the result, if it does.
    pub name: Option<String>,
    /// The offset of its first word from the module's start, in words.
    pub word: usize,
    /// The place in the source, if the module has it (`OpLine`).
    pub source: Option<SourcePlace>,
}

impl fmt::Display for InstructionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        f.write_str(&self.instruction)?;
        if let Some(id) = self.id {
            write!(f, " %{id}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        write!(f, " at word {}", self.word)
    }
}

struct Prefix<'a>(&'a Option<Box<InstructionPlace>>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |place| write!(f, "{place}: "))
    }
}

/// What is wrong with a module.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpirvErrorKind {
    /// The bytes do not begin as a little-endian module does.
    #[error("this is no SPIR-V module: {what}")]
    NotSpirv {
        /// What is missing.
        what: &'static str,
    },
    /// The module's words do not make sense.
    #[error("{what}")]
    Malformed {
        /// What is wrong.
        what: String,
    },
    /// An id that is not defined, or not yet.
    #[error("%{id} is used as {role}, but not defined before")]
    Undefined {
        /// The id.
        id: u32,
        /// What it is used for.
        role: &'static str,
    },
    /// An id of something else than the instruction needs.
    #[error("%{id} is {given}, expected {expected}")]
    Mismatch {
        /// The id.
        id: u32,
        /// What it is.
        given: String,
        /// What the instruction needs.
        expected: String,
    },
    /// Something that valid modules may have, but that is not supported.
    #[error("{what} is not supported")]
    Unsupported {
        /// What it is.
        what: String,
    },
    /// More of something than there may be.
    #[error("{what}: {given}, the limit is {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        given: u64,
        /// The limit.
        limit: u64,
    },
    /// A kernel that the module does not have.
    #[error("there is no kernel `{name}`; the module has {}", List(.known))]
    NoKernel {
        /// The name asked for.
        name: String,
        /// The names of the module's kernels.
        known: Vec<String>,
    },
    /// A specialization constant that the module does not have.
    #[error("there is no specialization constant {id}")]
    NoSpecConstant {
        /// Its `SpecId`.
        id: u32,
    },
    /// A machine with words of another size than the module's addresses.
    #[error(
        "the module has {addresses}-byte addresses, but {arch} has {}-byte words",
        arch.word().bytes()
    )]
    AddressSize {
        /// Bytes of an address in the module.
        addresses: u8,
        /// The machine.
        arch: ArchId,
    },
    /// A kernel for subgroups of another size than the machine's warps.
    #[error("the kernel is for subgroups of {required} work-items, the machine's have {lanes}")]
    SubgroupSize {
        /// The work-items that its subgroups must have.
        required: u32,
        /// The lanes of a warp.
        lanes: u32,
    },
    /// The code generator refuses what the module was turned into.
    #[error("{0}")]
    Module(ModuleError),
    /// The kernel's function was refused.
    #[error("{0}")]
    Build(BuildError),
}

impl SpirvErrorKind {
    pub(crate) fn malformed(what: impl Into<String>) -> SpirvErrorKind {
        SpirvErrorKind::Malformed { what: what.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> SpirvErrorKind {
        SpirvErrorKind::Unsupported { what: what.into() }
    }
}

impl From<ModuleError> for SpirvErrorKind {
    fn from(error: ModuleError) -> SpirvErrorKind {
        SpirvErrorKind::Module(error)
    }
}

struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (index, name) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        Ok(())
    }
}

/// The result of something at an instruction that is known further up.
pub(crate) type Result<T> = std::result::Result<T, SpirvErrorKind>;
