//! Files of the command line, where `-` stands for standard input and output.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use harp_isa::Object;
use harp_isa::object::hof;

use super::error::CliError;

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stdin,
    File(PathBuf),
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Stdout,
    File(PathBuf),
}

impl From<OsString> for Input {
    fn from(argument: OsString) -> Input {
        if argument == "-" { Input::Stdin } else { Input::File(argument.into()) }
    }
}

impl From<OsString> for Output {
    fn from(argument: OsString) -> Output {
        if argument == "-" { Output::Stdout } else { Output::File(argument.into()) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str("standard input"),
            Input::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("standard output"),
            Output::File(path) => write!(f, "`{}`", path.display()),
        }
    }
}

impl Input {
    /// The name without quotes, as diagnostics show it in source places.
    pub(super) fn name(&self) -> String {
        match self {
            Input::Stdin => "<stdin>".to_owned(),
            Input::File(path) => path.display().to_string(),
        }
    }

    /// Everything in it.
    pub(super) fn read(&self) -> Result<Vec<u8>, CliError> {
        let bytes = match self {
            Input::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
            Input::File(path) => fs::read(path),
        };
        bytes.map_err(|source| CliError::Read { file: self.clone(), source })
    }

    /// Everything in it, as text.
    pub(super) fn read_text(&self) -> Result<String, CliError> {
        self.text(self.read()?)
    }

    /// The text in `bytes`, which were read from it.
    pub(super) fn text(&self, bytes: Vec<u8>) -> Result<String, CliError> {
        String::from_utf8(bytes)
            .map_err(|error| CliError::NotText { file: self.clone(), source: error.utf8_error() })
    }

    /// The object in it.
    pub(super) fn read_object(&self) -> Result<Object, CliError> {
        self.parse_object(&self.read()?)
    }

    /// The object in `bytes`, which were read from it.
    pub(super) fn parse_object(&self, bytes: &[u8]) -> Result<Object, CliError> {
        hof::read(bytes).map_err(|source| CliError::ReadObject { file: self.clone(), source })
    }
}

impl Output {
    /// The default output for `input`: a file beside it with another extension, or standard output if the
    /// input is standard input.
    pub(super) fn beside(input: &Input, extension: &str) -> Output {
        match input {
            Input::Stdin => Output::Stdout,
            Input::File(path) => Output::File(path.with_extension(extension)),
        }
    }

    /// Fails if this output is one of the `inputs`, under whatever name: writing would destroy the input. Must
    /// be called before anything is written.
    pub(super) fn spares<'a>(
        &self,
        inputs: impl IntoIterator<Item = &'a Input>,
    ) -> Result<(), CliError> {
        let Output::File(output) = self else { return Ok(()) };
        for input in inputs {
            let Input::File(path) = input else { continue };
            // Nothing can be lost of missing files, or of non-files such as terminals.
            let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
            if is_file && same_file::is_same_file(path, output).unwrap_or(false) {
                return Err(CliError::SameFile { file: self.clone() });
            }
        }
        Ok(())
    }

    /// Writes bytes, replacing the file's contents.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), CliError> {
        self.with(|out| out.write_all(bytes))
    }

    /// Writes a text, replacing the file's contents, piece by piece as it is formatted.
    pub(super) fn print(&self, text: impl fmt::Display) -> Result<(), CliError> {
        self.with(|out| write!(out, "{text}"))
    }

    fn with(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
        let flushed = |out: &mut dyn Write| {
            let mut out = BufWriter::new(out);
            write(&mut out).and_then(|()| out.flush())
        };
        let written = match self {
            Output::Stdout => flushed(&mut io::stdout().lock()),
            Output::File(path) => File::create(path).and_then(|mut file| flushed(&mut file)),
        };
        written.map_err(|source| CliError::Write { file: self.clone(), source })
    }
}
