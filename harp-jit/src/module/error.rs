//! Why a module cannot be.

use thiserror::Error;

use crate::error::CompileError;

/// Why something cannot be declared or defined in a module, or the module not finished.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// A name that an object file cannot have, or that belongs to the runtime library.
    #[error("`{name}` is no name for a function or datum: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A name that was declared as something else.
    #[error("`{name}` is declared otherwise already{}", signatures.as_ref().map_or(String::new(), |(first, second)| format!(": {first}, not {second}")))]
    Declaration {
        /// The name.
        name: String,
        /// The signatures that differ, the older first, if it is a function both times.
        signatures: Option<(String, String)>,
    },
    /// An id of another module.
    #[error("{id} is not declared in this module")]
    Undeclared {
        /// The id.
        id: String,
    },
    /// The definition of what others define.
    #[error("`{name}` is imported: it is not to be defined here")]
    Imported {
        /// The name.
        name: String,
    },
    /// A second definition.
    #[error("`{name}` is defined already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A definition with another signature than was declared.
    #[error("`{name}` is declared as {declared}, but defined as {given}")]
    Signature {
        /// The name.
        name: String,
        /// The signature of the declaration.
        declared: String,
        /// The function's.
        given: String,
    },
    /// Data that no object can hold.
    #[error("data `{name}`: {what}, {given}; the limit is {limit}")]
    Data {
        /// The name.
        name: String,
        /// What is wrong.
        what: &'static str,
        /// The offending number.
        given: i64,
        /// What it may be at most.
        limit: i64,
    },
    /// Declared, not imported, and not defined.
    #[error("not defined: {}", names.join(", "))]
    Undefined {
        /// The names.
        names: Vec<String>,
    },
    /// What was found out about a function by [`Module::analyze_calls`](crate::Module::analyze_calls) does
    /// not hold any more.
    #[error("`{name}` {what}: its calls were analysed without that")]
    Analyzed {
        /// The name of the function.
        name: String,
        /// What has changed.
        what: &'static str,
    },
    /// A function does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
}
