//! The arguments of a kernel as they are written on the command line.

use std::path::PathBuf;

use thiserror::Error;

use super::super::values::{Element, integer};

/// How arguments are written, for `--help` and messages.
pub(in super::super) const ARGUMENTS: &str = "\
Arguments, in the order of the kernel's parameters, or each as NAME=ARGUMENT:
  5  -0.5  0x1f  true     a number of the parameter's type
  i32:5                   the same, with the type
  1,0.5,2                 a number for each part of a vector or structure
  f32x1024                a buffer of 1024 elements, which nobody has written
  f32x1024:0.5            ... all of which are 0.5
  f32x1024:random:7       ... pseudo-random from 0 up to 1, by a seed
  i32x1024:random:7:0..10 ... pseudo-random from 0 to 9; without bounds integers may have any bits
  i32:0..1024             a buffer with the numbers from 0 to 1023
  f32:0..1..0.25          a buffer with the numbers from 0 by steps of 0.25, up to 1
  i32:3,1,2               a buffer with these elements
  f32@in.bin              a buffer with the contents of a file, little-endian; as @in.bin if the kernel says the type
  same:x                  the buffer of parameter x, once more
  null                    no buffer: the null pointer, which kernels can test for
  local:256               256 bytes of local memory for each work-group
  local:f32x64            local memory for 64 elements
The types are i8, u8, i16, u16, i32, u32, i64, u64, f16, f32 and f64.";

/// An argument as it was given.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Argument {
    /// The parameter's name or number, if it was said.
    pub(super) name: Option<String>,
    pub(super) spec: Spec,
    /// The text, name included.
    pub(super) text: String,
}

/// What an argument is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Spec {
    /// Numbers, which may be one argument, parts of one, or elements of a buffer.
    Numbers {
        element: Option<Element>,
        numbers: Vec<String>,
    },
    Buffer {
        element: Option<Element>,
        contents: Contents,
    },
    /// The buffer of the parameter with this name or number.
    Same(String),
    /// The null pointer.
    Null,
    /// Memory for work-groups: bytes, or elements of a type.
    Local {
        element: Option<Element>,
        len: usize,
    },
}

/// What is in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Contents {
    Uninitialized { len: usize },
    Fill { len: usize, value: String },
    Random { len: usize, seed: u64, bounds: Option<(String, String)> },
    Range { start: String, end: String, step: Option<String> },
    File(PathBuf),
}

/// Why a text is not an argument.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in super::super) enum SpecError {
    #[error("it is empty")]
    Empty,
    #[error(
        "`{given}` is not a type with or without a length, such as f32 or f32x1024; the types are {}",
        Element::NAMES
    )]
    Type { given: String },
    #[error("`{given}` is not a number of elements")]
    Length { given: String },
    #[error(
        "`{given}` is not a number of bytes, such as 256, or a type with a length, such as f32x64"
    )]
    Local { given: String },
    #[error("random contents need a type and a length, such as f32x1024:random:7")]
    RandomLength,
    #[error("`{given}` is not a seed, an integer of 64 bits")]
    Seed { given: String },
    #[error("`{given}` is not a range, such as 0..1024")]
    Range { given: String },
    #[error(
        "a buffer with a length takes one number, which all elements get, or random:SEED, not `{given}`"
    )]
    Fill { given: String },
    #[error("a file's length says how many elements there are: write {element}@FILE")]
    FileLength { element: Element },
    #[error("the name of a file is missing")]
    NoFile,
    #[error("the name of a parameter is missing")]
    NoName,
}

/// The parser for clap.
pub(in super::super) fn argument(text: &str) -> Result<Argument, SpecError> {
    let (name, own) = match text.split_once('=') {
        Some((name, spec)) if !name.is_empty() && !name.contains([':', '@']) => {
            (Some(name.to_owned()), spec)
        }
        _ => (None, text),
    };
    Ok(Argument { name, spec: spec(own)?, text: text.to_owned() })
}

fn spec(text: &str) -> Result<Spec, SpecError> {
    if text.is_empty() {
        return Err(SpecError::Empty);
    }
    if text == "null" {
        return Ok(Spec::Null);
    }
    if let Some(size) = text.strip_prefix("local:") {
        return local(size);
    }
    if let Some(name) = text.strip_prefix("same:") {
        return if name.is_empty() {
            Err(SpecError::NoName)
        } else {
            Ok(Spec::Same(name.to_owned()))
        };
    }
    let Some(at) = text.find([':', '@']) else {
        return match typed(text) {
            Ok((element, Some(len))) => {
                let contents = Contents::Uninitialized { len };
                Ok(Spec::Buffer { element: Some(element), contents })
            }
            Err(error @ SpecError::Length { .. }) => Err(error),
            _ => listed(None, text),
        };
    };
    let (head, rest) = (&text[..at], &text[at + 1..]);
    if text[at..].starts_with('@') {
        if rest.is_empty() {
            return Err(SpecError::NoFile);
        }
        let element = match head {
            "" => None,
            head => match typed(head)? {
                (element, None) => Some(element),
                (element, Some(_)) => return Err(SpecError::FileLength { element }),
            },
        };
        return Ok(Spec::Buffer { element, contents: Contents::File(rest.into()) });
    }
    match typed(head)? {
        (element, Some(len)) => {
            Ok(Spec::Buffer { element: Some(element), contents: repeated(len, rest)? })
        }
        (element, None) => listed(Some(element), rest),
    }
}

/// A type, and a length behind an `x`.
fn typed(text: &str) -> Result<(Element, Option<usize>), SpecError> {
    let (name, len) = match text.split_once('x') {
        Some((name, len)) => (name, Some(len)),
        None => (text, None),
    };
    let unknown = || SpecError::Type { given: text.to_owned() };
    let element = Element::named(name).ok_or_else(unknown)?;
    let length = |len: &str| {
        let wrong = || SpecError::Length { given: len.to_owned() };
        integer(len).and_then(|len| usize::try_from(len).ok()).ok_or_else(wrong)
    };
    Ok((element, len.map(length).transpose()?))
}

fn local(size: &str) -> Result<Spec, SpecError> {
    if let Ok((element, Some(len))) = typed(size) {
        return Ok(Spec::Local { element: Some(element), len });
    }
    let len = integer(size).and_then(|len| usize::try_from(len).ok());
    let len = len.ok_or_else(|| SpecError::Local { given: size.to_owned() })?;
    Ok(Spec::Local { element: None, len })
}

/// A range, or numbers with commas between.
fn listed(element: Option<Element>, text: &str) -> Result<Spec, SpecError> {
    if text.starts_with("random") {
        return Err(SpecError::RandomLength);
    }
    if text.contains("..") {
        let wrong = || SpecError::Range { given: text.to_owned() };
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let (end, step) = match end.split_once("..") {
            Some((end, step)) => (end, Some(step)),
            None => (end, None),
        };
        if [Some(start), Some(end), step].contains(&Some("")) {
            return Err(wrong());
        }
        let [start, end] = [start, end].map(str::to_owned);
        let contents = Contents::Range { start, end, step: step.map(str::to_owned) };
        return Ok(Spec::Buffer { element, contents });
    }
    let numbers = text.split(',').map(|number| number.trim().to_owned()).collect();
    Ok(Spec::Numbers { element, numbers })
}

/// What is behind the length of a buffer.
fn repeated(len: usize, text: &str) -> Result<Contents, SpecError> {
    let mut parts = text.split(':');
    if parts.next() != Some("random") {
        if text.is_empty() || text.contains([',', ':']) || text.contains("..") {
            return Err(SpecError::Fill { given: text.to_owned() });
        }
        return Ok(Contents::Fill { len, value: text.to_owned() });
    }
    let wrong = |seed: &str| SpecError::Seed { given: seed.to_owned() };
    let seed = match parts.next() {
        None => 0,
        Some(seed) => {
            integer(seed).and_then(|seed| u64::try_from(seed).ok()).ok_or_else(|| wrong(seed))?
        }
    };
    let range = |text: &str| {
        let bounds =
            text.split_once("..").filter(|(low, high)| !low.is_empty() && !high.is_empty());
        let (low, high) = bounds.ok_or_else(|| SpecError::Range { given: text.to_owned() })?;
        Ok((low.to_owned(), high.to_owned()))
    };
    let bounds = parts.next().map(range).transpose()?;
    match parts.next() {
        Some(more) => Err(SpecError::Range { given: more.to_owned() }),
        None => Ok(Contents::Random { len, seed, bounds }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_name_their_parameter() {
        let parsed = argument("x=f32x8:0.5").unwrap();
        assert_eq!((parsed.name.as_deref(), parsed.text.as_str()), (Some("x"), "x=f32x8:0.5"));
        let parsed = argument("f32@a=b.bin").unwrap();
        assert_eq!((parsed.name, parsed.text.as_str()), (None, "f32@a=b.bin"));
    }

    #[test]
    fn each_form_is_read() {
        let numbers = |element, numbers: &[&str]| Spec::Numbers {
            element,
            numbers: numbers.iter().map(|&number| number.to_owned()).collect(),
        };
        let buffer = |element, contents| Spec::Buffer { element, contents };
        let (f32, i32) = (Some(Element::F32), Some(Element::I32));
        let bounds = Some(("0".to_owned(), "10".to_owned()));
        let range = |start: &str, end: &str, step: Option<&str>| Contents::Range {
            start: start.to_owned(),
            end: end.to_owned(),
            step: step.map(str::to_owned),
        };
        for (text, wanted) in [
            ("5", numbers(None, &["5"])),
            ("-0.5", numbers(None, &["-0.5"])),
            ("0x1f", numbers(None, &["0x1f"])),
            ("i32:5", numbers(i32, &["5"])),
            ("1,0.5,2", numbers(None, &["1", "0.5", "2"])),
            ("f32x1024", buffer(f32, Contents::Uninitialized { len: 1024 })),
            ("f32x8:0.5", buffer(f32, Contents::Fill { len: 8, value: "0.5".to_owned() })),
            ("f32x8:random:7", buffer(f32, Contents::Random { len: 8, seed: 7, bounds: None })),
            ("i32x8:random:7:0..10", buffer(i32, Contents::Random { len: 8, seed: 7, bounds })),
            ("i32:-4..1024", buffer(i32, range("-4", "1024", None))),
            ("f32:0..1..0.25", buffer(f32, range("0", "1", Some("0.25")))),
            ("f32@in.bin", buffer(f32, Contents::File("in.bin".into()))),
            ("@in.bin", buffer(None, Contents::File("in.bin".into()))),
            ("same:x", Spec::Same("x".to_owned())),
            ("null", Spec::Null),
            ("local:256", Spec::Local { element: None, len: 256 }),
            ("local:f32x64", Spec::Local { element: f32, len: 64 }),
        ] {
            assert_eq!(spec(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "f31x8:0",
            "f32x8:1,2",
            "f32x8:",
            "f32x:1",
            "f32x-1",
            "i32:0..",
            "local:x",
            "local:f32",
            "i32:random:1",
            "f32x8:random:x",
            "f32x8:random:1:2",
            "f32x8:random:1:0..1:3",
            "f32x8@in.bin",
            "@",
            "float:3",
        ] {
            assert!(spec(text).is_err(), "{text}");
        }
    }
}
