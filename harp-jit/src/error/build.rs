//! Errors while a kernel is built.

use cranelift_codegen::ir::{Block, BlockArg, MemFlagsData, Opcode, Type, Value};
use cranelift_frontend::Variable;
use harp_isa::ArchId;
use thiserror::Error;

use crate::abi::word_int;
use crate::source::SourcePlace;

/// The first misuse of a [`KernelBuilder`](crate::KernelBuilder), and the call that caused it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{kind}", PlacePrefix(.place))]
pub struct BuildError {
    /// What is wrong. The error's text contains it, so it is not a source of the error.
    pub kind: BuildErrorKind,
    /// The call of the builder, if a single one caused it.
    pub place: Option<SourcePlace>,
}

/// What is wrong with a kernel that is being built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// More parameters than kernels can have.
    #[error("parameter {index} is one too many: the limit is {limit} parameters")]
    TooManyParameters {
        /// The parameter's number, counted from 0.
        index: usize,
        /// The largest number of parameters.
        limit: usize,
    },
    /// A dimension other than 0 to 2.
    #[error("dimension {given} of the grid: it must be 0, 1 or 2")]
    Dimension {
        /// The dimension.
        given: u8,
    },
    /// A second parameter of the same name.
    #[error("there is a parameter `{name}` already")]
    DuplicateParameter {
        /// The name.
        name: String,
    },
    /// A store, or an atomic operation, on a buffer that the kernel promises not to change.
    #[error("the buffer is constant: it can only be loaded from")]
    ConstantBuffer,
    /// More memory than a work-group can have.
    #[error("{given} bytes of memory for a work-group{}: the limit is {limit}", name.as_ref().map_or(String::new(), |name| format!(" with `{name}`")))]
    GroupMemory {
        /// The array that is too large, if it has a name.
        name: Option<String>,
        /// Bytes of all arrays.
        given: u64,
        /// The most bytes.
        limit: u32,
    },
    /// A part of a ballot other than 0 and 1.
    #[error("part {given} of a ballot: it must be 0 or 1")]
    BallotPart {
        /// The part.
        given: u8,
    },
    /// A value that the kernel does not define.
    #[error("{value} is not a value of this kernel")]
    UnknownValue {
        /// The value.
        value: Value,
    },
    /// A block that the kernel does not have.
    #[error("{block} is not a block of this kernel")]
    UnknownBlock {
        /// The block.
        block: Block,
    },
    /// An instruction refers to something else that the kernel does not have.
    #[error("`{opcode}` refers to {entity}, which is not part of this kernel")]
    UnknownEntity {
        /// The instruction's opcode.
        opcode: Opcode,
        /// What it refers to.
        entity: String,
    },
    /// A type for which the instruction does not exist.
    #[error("`{opcode}` does not exist for type {given}")]
    ControllingType {
        /// The instruction's opcode.
        opcode: Opcode,
        /// The type.
        given: Type,
    },
    /// A block argument that is not a value: only calls that catch exceptions have others.
    #[error("{argument} is not a value: only values can be arguments of a block")]
    BlockArgument {
        /// The argument.
        argument: BlockArg,
    },
    /// More different sets of memory flags than a kernel can have.
    #[error("flags {given}: the kernel cannot have more different flags")]
    MemFlags {
        /// The set of flags that is one too many.
        given: MemFlagsData,
    },
    /// A variable that was not declared.
    #[error("{variable} was not declared")]
    UnknownVariable {
        /// The variable.
        variable: Variable,
    },
    /// A value of another type than expected.
    #[error("the {role} is of type {given}, expected {expected}")]
    ValueType {
        /// What the value is used for.
        role: &'static str,
        /// The expected type.
        expected: Type,
        /// The value's type.
        given: Type,
    },
    /// A condition or counter that is not an integer.
    #[error("the {role} is of type {given}, expected an integer")]
    NoInteger {
        /// What the value is used for.
        role: &'static str,
        /// The value's type.
        given: Type,
    },
    /// A type that is neither an integer nor a float of at most 64 bits.
    #[error("the {role} is of type {given}, expected an integer or float of at most 64 bits")]
    NoScalar {
        /// What the type is used for.
        role: &'static str,
        /// The type.
        given: Type,
    },
    /// A constant that its type cannot hold.
    #[error("the constant {given} does not fit type {ty}")]
    Constant {
        /// The constant.
        given: i64,
        /// The type.
        ty: Type,
    },
    /// Two cases of a switch for one value.
    #[error("case {given} of a switch is there twice")]
    DuplicateCase {
        /// The value.
        given: i64,
    },
    /// A way out of a loop where there is no loop.
    #[error("`{method}` outside of a loop")]
    NoLoop {
        /// The method that was called.
        method: &'static str,
    },
    /// Too few or too many values for a loop.
    #[error("{given} values for a loop that has {expected}")]
    LoopValues {
        /// How many the loop has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// A format that does not fit the values that are printed.
    #[error("the format {format:?}: {what}")]
    PrintFormat {
        /// The format.
        format: String,
        /// What is wrong with it.
        what: String,
    },
    /// A function or datum of another module.
    #[error("{id} is not declared in this module")]
    Undeclared {
        /// The id.
        id: String,
    },
    /// A call that does not have as many arguments or results as the function.
    #[error("`{function}` has {expected} {what}, not {given}")]
    FunctionCall {
        /// The function's name.
        function: String,
        /// Arguments or results.
        what: &'static str,
        /// How many the function has.
        expected: usize,
        /// How many the call has.
        given: usize,
    },
    /// Something was added to a block after its branch, return or trap.
    #[error("{block} has ended already")]
    BlockEnded {
        /// The block.
        block: Block,
    },
    /// A block was left, or the kernel was finalized, before the block had a branch, return or trap.
    #[error("{block} has no branch, return or trap at its end")]
    BlockOpen {
        /// The block.
        block: Block,
    },
    /// A block that is the target of a branch has no instructions.
    #[error("a branch goes to {block}, which has no instructions")]
    BlockEmpty {
        /// The block.
        block: Block,
    },
    /// A block was sealed twice.
    #[error("{block} is sealed already")]
    BlockSealed {
        /// The block.
        block: Block,
    },
    /// A parameter was added to a block that has instructions or is the kernel's entry.
    #[error("{block} cannot get a parameter once it has instructions")]
    LateBlockParam {
        /// The block.
        block: Block,
    },
    /// Cranelift's own builder left a block that is not a basic block.
    #[error("{block} is not a basic block: {message}")]
    Malformed {
        /// The block.
        block: Block,
        /// What cranelift says about it.
        message: &'static str,
    },
    /// The function's signature is not that of a kernel.
    #[error("a kernel for {arch} takes one {} and returns nothing, not `{given}`", word_type(arch.word()))]
    Signature {
        /// The machine.
        arch: ArchId,
        /// The signature.
        given: String,
    },
    /// The function does not take what the kernel is to take.
    #[error("a kernel of ({}) must be a function that takes these and returns nothing, not `{given}`", params.join(", "))]
    Called {
        /// The types of the kernel's parameters.
        params: Vec<String>,
        /// The function's signature.
        given: String,
    },
    /// The kernel was compiled before its builder was finalized.
    #[error("kernel `{name}` is not finalized")]
    NotFinalized {
        /// The kernel's name.
        name: String,
    },
}

struct PlacePrefix<'a>(&'a Option<SourcePlace>);

impl std::fmt::Display for PlacePrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |place| write!(f, "{place}: "))
    }
}

fn word_type(word: harp_isa::WordSize) -> Type {
    word_int(word)
}
