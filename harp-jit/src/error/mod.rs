//! Errors of compilation: the cause, the place, and for limits the numbers.

use cranelift_codegen::ir::{Block, Function, Inst};
use harp_isa::ArchId;
use thiserror::Error;

use crate::profile::ProfileError;
use crate::source::{SourceMap, SourcePlace};

mod build;

pub use build::{BuildError, BuildErrorKind};

/// Why a kernel or function was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The builder was misused.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The kernel or function is not valid CLIF.
    #[error("invalid CLIF in `{kernel}`:\n{message}")]
    Invalid {
        /// The kernel's or function's name.
        kernel: String,
        /// The verifier's messages, one line each: the instruction, what is wrong, and the place of its builder
        /// call.
        message: String,
    },
    /// Something that this version does not compile.
    #[error("not supported: {what}: `{inst}` in {block}{}", place.as_ref().map_or(String::new(), |p| format!(" ({p})")))]
    Unsupported {
        /// What it is.
        what: String,
        /// The CLIF instruction.
        inst: String,
        /// Its block.
        block: String,
        /// Where the instruction was built.
        place: Option<SourcePlace>,
    },
    /// A declaration that this version does not compile, whether it is used or not.
    #[error("`{kernel}`: not supported: {what}: `{declaration}`")]
    UnsupportedDeclaration {
        /// The kernel's or function's name.
        kernel: String,
        /// What it is.
        what: String,
        /// The declaration: a signature, a global value, a dynamic type.
        declaration: String,
    },
    /// A size that exceeds what the machine can have.
    #[error("`{kernel}`: {what} of {given} bytes, the limit is {limit}")]
    Limit {
        /// The kernel's or function's name.
        kernel: String,
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        given: u64,
        /// The largest size in bytes.
        limit: u64,
    },
    /// A function whose variables and spilled values do not fit its stack:
    /// [`CompileOptions::stack_bytes`](crate::CompileOptions::stack_bytes).
    #[error("`{function}`: a stack frame of {given} bytes, the limit is {limit}")]
    StackFrame {
        /// The kernel's or function's name.
        function: String,
        /// Bytes of the frame.
        given: u64,
        /// The most bytes.
        limit: u64,
    },
    /// A count that exceeds what can be compiled in acceptable time and memory.
    #[error("`{kernel}`: more than {limit} {what}, {given} so far")]
    TooMany {
        /// The kernel's or function's name.
        kernel: String,
        /// What there are too many of.
        what: &'static str,
        /// The count when compilation was given up.
        given: usize,
        /// The largest count that is accepted.
        limit: usize,
    },
    /// A kernel that was built for another machine than the compiler's.
    #[error("`{kernel}` was built for {given}, and is to be compiled for {wanted}")]
    Machine {
        /// The kernel's name.
        kernel: String,
        /// The machine that it was built for.
        given: ArchId,
        /// The compiler's machine.
        wanted: ArchId,
    },
    /// An invalid stack size.
    #[error("stacks of {given} bytes: the size must be a power of two of at most {limit}")]
    StackBytes {
        /// [`CompileOptions::stack_bytes`](crate::CompileOptions::stack_bytes).
        given: u32,
        /// The largest size.
        limit: u32,
    },
    /// A profile that is missing or does not fit this function.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A defect of this crate, found by one of its checks.
    #[error("internal error in {stage}: {message}")]
    Internal {
        /// The stage that went wrong.
        stage: &'static str,
        /// What was found.
        message: String,
    },
}

/// Something that the pipeline does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub(crate) inst: Inst,
    pub(crate) block: Block,
    pub(crate) what: String,
}

impl Unsupported {
    /// The error with the names and places that the user sees.
    pub(crate) fn explain(self, func: &Function, sources: &SourceMap) -> CompileError {
        CompileError::Unsupported {
            what: self.what,
            inst: func.dfg.display_inst(self.inst).to_string(),
            block: self.block.to_string(),
            place: sources.place(func.srcloc(self.inst)).cloned(),
        }
    }
}
