//! Values and calls in text: `-1`, `0x1.8p0`, `%f(3, 4)`.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Signature, Type};
use cranelift_codegen::isa::CallConv;
use cranelift_reader::{RunCommand, parse_run_command};
use thiserror::Error;

/// Why a text is not a valid call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// It is not a call.
    #[error("`{text}` is not a call: expected `%name(value, ...)`")]
    Syntax {
        /// The text.
        text: String,
    },
    /// The function does not exist.
    #[error("there is no function `%{name}`")]
    NoFunction {
        /// The name.
        name: String,
    },
    /// Too many arguments or too few.
    #[error("`%{name}` takes {expected} arguments, {given} given")]
    Count {
        /// The function.
        name: String,
        /// The number of parameters.
        expected: usize,
        /// The number of arguments.
        given: usize,
    },
    /// Several values without a comma between them.
    #[error("argument {number} of `%{name}`, `{text}`: a comma is missing")]
    Comma {
        /// The function.
        name: String,
        /// The argument's number, counted from 1.
        number: usize,
        /// The argument.
        text: String,
    },
    /// An argument that is not a value of the parameter's type.
    #[error("argument {number} of `%{name}`, `{text}`: {error}")]
    Argument {
        /// The function.
        name: String,
        /// The argument's number, counted from 1.
        number: usize,
        /// The argument.
        text: String,
        /// Why it is not a value of that type.
        error: ValueError,
    },
}

/// Why a text is not a value of a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a value of type {ty}: {message}")]
pub struct ValueError {
    /// The type.
    pub ty: Type,
    /// The reason.
    pub message: String,
}

/// A call whose arguments have the parameters' types.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name, without `%`.
    pub name: String,
    /// The arguments.
    pub args: Vec<DataValue>,
}

impl Call {
    /// Parses `%name(value, ...)`. `signature_of` gives the signature of a function.
    ///
    /// # Errors
    ///
    /// If it is not a call, or if the function does not exist or does not take the arguments.
    pub fn parse<'a>(
        text: &str,
        signature_of: impl Fn(&str) -> Option<&'a Signature>,
    ) -> Result<Call, CallError> {
        let syntax = || CallError::Syntax { text: text.to_owned() };
        let inner = text.trim().strip_prefix('%').and_then(|text| text.strip_suffix(')'));
        let (name, args) = inner.and_then(|text| text.split_once('(')).ok_or_else(syntax)?;
        let name = name.trim();
        let signature =
            signature_of(name).ok_or_else(|| CallError::NoFunction { name: name.to_owned() })?;
        let args: Vec<&str> = match args.trim() {
            "" => Vec::new(),
            args => args.split(',').map(str::trim).collect(),
        };
        let (expected, given) = (signature.params.len(), args.len());
        if expected != given {
            let several = |arg: &&str| arg.contains(char::is_whitespace);
            if let Some(index) = args.iter().position(several) {
                let (name, text) = (name.to_owned(), args[index].to_owned());
                return Err(CallError::Comma { name, number: index + 1, text });
            }
            return Err(CallError::Count { name: name.to_owned(), expected, given });
        }
        let values =
            args.iter().zip(&signature.params).enumerate().map(|(index, (text, param))| {
                parse_value(text, param.value_type).map_err(|error| CallError::Argument {
                    name: name.to_owned(),
                    number: index + 1,
                    text: (*text).to_owned(),
                    error,
                })
            });
        Ok(Call { name: name.to_owned(), args: values.collect::<Result<_, _>>()? })
    }
}

/// Parses a value as in CLIF's run commands: integers decimal or hexadecimal, floats with a point or as
/// hexadecimal `0x1.8p0`, `Inf`, `NaN`.
///
/// # Errors
///
/// If the text is not a value of that type.
pub fn parse_value(text: &str, ty: Type) -> Result<DataValue, ValueError> {
    let fail = |message: String| Err(ValueError { ty, message });
    let of_a_value = |c: char| c.is_ascii_alphanumeric() || "_+-.:".contains(c);
    if text.is_empty() || !text.chars().all(of_a_value) {
        return fail("expected one number".to_owned());
    }
    if !ty.is_int() && !ty.is_float() {
        return fail("only values of scalar types are supported".to_owned());
    }
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(ty));
    match parse_run_command(&format!("print: %f({text})"), &signature) {
        Ok(Some(RunCommand::Print(call))) if call.args.len() == 1 => {
            Ok(call.args.into_iter().next().expect("there is one"))
        }
        Ok(_) => fail("expected one number".to_owned()),
        Err(error) => fail(error.message),
    }
}
