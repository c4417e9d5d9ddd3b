//! Errors of modules.

use thiserror::Error;

use crate::error::CompileError;

/// Why a function or datum cannot be declared or defined in a module, or why the module cannot be finished.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// An invalid name, or one that belongs to the runtime library.
    #[error("`{name}` is not a valid name for a function or datum: {reason}")]
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
        /// The signatures that differ, the older first, if both declarations are functions.
        signatures: Option<(String, String)>,
    },
    /// An id of another module.
    #[error("{id} is not declared in this module")]
    Undeclared {
        /// The id.
        id: String,
    },
    /// A definition of an imported name.
    #[error("`{name}` is imported: it cannot be defined here")]
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
    /// A definition whose signature is not the declared one.
    #[error("`{name}` is declared as {declared}, but defined as {given}")]
    Signature {
        /// The name.
        name: String,
        /// The signature of the declaration.
        declared: String,
        /// The signature of the function.
        given: String,
    },
    /// A function that modules cannot share, because it refers to something of one.
    #[error("`{name}` cannot be shared by modules: it refers to `{refers_to}`")]
    NotShared {
        /// The name.
        name: String,
        /// What it refers to.
        refers_to: String,
    },
    /// A datum whose contents are not given.
    #[error("data `{name}`: its contents are not given")]
    NoContents {
        /// The name.
        name: String,
    },
    /// A datum that does not fit an object.
    #[error("data `{name}`: {what}: {given}{}", limit.map_or(String::new(), |limit| format!(", the limit is {limit}")))]
    Data {
        /// The name.
        name: String,
        /// What is wrong.
        what: &'static str,
        /// The offending number.
        given: i64,
        /// The limit that it exceeds, if it is not wrong in any case.
        limit: Option<i64>,
    },
    /// Names that are declared, not imported, and not defined.
    #[error("not defined: {}", names.join(", "))]
    Undefined {
        /// The names.
        names: Vec<String>,
    },
    /// The result of [`Module::analyze_calls`](crate::Module::analyze_calls) does not hold for a function any
    /// more.
    #[error("`{name}` {what}: its calls were analysed without that")]
    Analyzed {
        /// The name of the function.
        name: String,
        /// What has changed.
        what: &'static str,
    },
    /// A function or kernel does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
}
