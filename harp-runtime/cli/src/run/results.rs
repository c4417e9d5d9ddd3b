//! What is done with the buffers of a launch after it.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use harp_runtime::{Device, LaunchError};
use serde_json::{Value, json};
use thiserror::Error;

use super::super::error::CliError;
use super::super::files::{Input, Output};
use super::super::source::Parameter;
use super::super::values::Element;
use super::arguments::{ArgumentError, Array, find};

/// How many differences of a buffer are shown.
const SHOWN: usize = 5;

/// What is done with the buffers of a launch.
#[derive(Args)]
pub(super) struct Results {
    /// Print a buffer's elements, or the first N of them; NAME is the parameter's name or its number, from 0
    #[arg(long, value_name = "NAME[:N]", value_parser = printing)]
    print: Vec<Printing>,
    /// Write a buffer to a file, little-endian
    #[arg(long, value_name = "NAME=FILE", value_parser = saving)]
    save: Vec<Saving>,
    /// Compare a buffer with a file, as `--save` writes it. With a tolerance, floats may differ by so much times the larger
    /// of 1 and the expected number; without one they must be equal. Differences are printed, and the exit code is 1
    #[arg(long, value_name = "NAME=FILE[:TOLERANCE]", value_parser = comparing)]
    compare: Vec<Comparing>,
}

#[derive(Clone, Debug, PartialEq)]
struct Printing {
    name: String,
    count: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
struct Saving {
    name: String,
    file: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
struct Comparing {
    name: String,
    file: PathBuf,
    tolerance: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum ResultsError {
    #[error(
        "expected the name of a parameter, and a number of elements behind a colon, such as y or y:8"
    )]
    Print,
    #[error("expected the name of a parameter and a file, such as y=y.bin")]
    File,
}

fn printing(text: &str) -> Result<Printing, ResultsError> {
    let (name, count) = match text.split_once(':') {
        Some((name, count)) => (name, Some(count.parse().map_err(|_| ResultsError::Print)?)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(ResultsError::Print);
    }
    Ok(Printing { name: name.to_owned(), count })
}

fn saving(text: &str) -> Result<Saving, ResultsError> {
    let parts = text.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty());
    let (name, file) = parts.ok_or(ResultsError::File)?;
    Ok(Saving { name: name.to_owned(), file: file.into() })
}

fn comparing(text: &str) -> Result<Comparing, ResultsError> {
    let tolerance = |text: &str| text.parse().ok().filter(|tolerance: &f64| *tolerance >= 0.0);
    let split = text.rsplit_once(':').and_then(|(file, last)| Some((file, tolerance(last)?)));
    let (text, tolerance) = split.unwrap_or((text, 0.0));
    let Saving { name, file } = saving(text)?;
    Ok(Comparing { name, file, tolerance })
}

/// A buffer that is printed.
struct Printed<'a> {
    name: &'a str,
    element: Element,
    bits: Vec<u64>,
    len: usize,
}

/// A buffer that was compared with a file.
struct Compared<'a> {
    name: &'a str,
    file: String,
    element: Element,
    len: usize,
    differing: usize,
    /// The first differences: index, given and expected bits.
    first: Vec<(usize, u64, u64)>,
}

/// What is to be said about the buffers.
pub(super) struct Said<'a> {
    printed: Vec<Printed<'a>>,
    compared: Vec<Compared<'a>>,
}

/// The buffers of a launch, by the index of their parameter.
pub(super) struct Buffers<'a> {
    pub(super) device: &'a Device,
    pub(super) parameters: &'a [Parameter],
    pub(super) arrays: &'a [Option<Array>],
}

impl Buffers<'_> {
    fn find(&self, name: &str) -> Result<&Array, ArgumentError> {
        let array = find(self.parameters, name).and_then(|index| self.arrays[index].as_ref());
        array.ok_or_else(|| {
            let names: Vec<_> =
                self.arrays.iter().flatten().map(|array| format!("`{}`", array.name)).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            ArgumentError::NoBuffer { name: name.to_owned(), known }
        })
    }

    fn read(&self, array: &Array) -> Result<Vec<u8>, CliError> {
        array.read(self.device).map_err(|source| CliError::Buffer { source })
    }
}

impl Results {
    /// Fails if a name is not that of a buffer, before anything has run.
    pub(super) fn check(&self, buffers: &Buffers<'_>) -> Result<(), ArgumentError> {
        let printed = self.print.iter().map(|print| &print.name);
        let saved = self.save.iter().map(|save| &save.name);
        let compared = self.compare.iter().map(|compare| &compare.name);
        let mut names = printed.chain(saved).chain(compared);
        names.try_for_each(|name| buffers.find(name).map(drop))
    }

    /// Fails if a result would be written over an input.
    pub(super) fn spares(&self, inputs: &[Input]) -> Result<(), CliError> {
        let mut files = self.save.iter().map(|save| Output::File(save.file.clone()));
        files.try_for_each(|file| file.spares(inputs))
    }

    /// Saves buffers, and finds what there is to say.
    pub(super) fn take<'a>(&self, buffers: &'a Buffers<'_>) -> Result<Said<'a>, CliError> {
        let mut said = Said { printed: Vec::new(), compared: Vec::new() };
        for Printing { name, count } in &self.print {
            let array = buffers.find(name)?;
            let element = array.element;
            let bytes = buffers.read(array)?;
            let all = bytes.chunks_exact(element.bytes()).map(|bytes| element.load(bytes));
            let len = all.len();
            let bits = all.take(count.unwrap_or(usize::MAX)).collect();
            said.printed.push(Printed { name: &array.name, element, bits, len });
        }
        for Saving { name, file } in &self.save {
            Output::File(file.clone()).write(&buffers.read(buffers.find(name)?)?)?;
        }
        for comparing in &self.compare {
            said.compared.push(comparing.compare(buffers)?);
        }
        Ok(said)
    }
}

impl Comparing {
    fn compare<'a>(&self, buffers: &'a Buffers<'_>) -> Result<Compared<'a>, CliError> {
        let array = buffers.find(&self.name)?;
        let (given, element) = (buffers.read(array)?, array.element);
        let expected = Input::File(self.file.clone()).read()?;
        if given.len() != expected.len() {
            return Err(CliError::ComparedLength {
                buffer: array.name.clone(),
                given: given.len(),
                file: Input::File(self.file.clone()),
                expected: expected.len(),
            });
        }
        let mut compared = Compared {
            name: &array.name,
            file: self.file.display().to_string(),
            element,
            len: given.len() / element.bytes(),
            differing: 0,
            first: Vec::new(),
        };
        let pairs = given.chunks_exact(element.bytes()).zip(expected.chunks_exact(element.bytes()));
        for (index, (given, expected)) in pairs.enumerate() {
            let (given, expected) = (element.load(given), element.load(expected));
            if !self.agree(element, given, expected) {
                compared.differing += 1;
                if compared.first.len() < SHOWN {
                    compared.first.push((index, given, expected));
                }
            }
        }
        Ok(compared)
    }

    fn agree(&self, element: Element, given: u64, expected: u64) -> bool {
        if given == expected {
            return true;
        }
        let (given, expected) = (element.as_float(given), element.as_float(expected));
        let both_nan = given.is_nan() && expected.is_nan();
        let equal = element.is_float() && given == expected;
        let near = self.tolerance > 0.0
            && (given - expected).abs() <= self.tolerance * expected.abs().max(1.0);
        both_nan || equal || near
    }
}

impl Said<'_> {
    /// Whether all comparisons agree.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        match self.compared.iter().all(|compared| compared.differing == 0) {
            true => Ok(()),
            false => Err(CliError::Differences),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for Printed { name, element, bits, len } in &self.printed {
            let numbers: Vec<String> = bits.iter().map(|&bits| element.text(bits)).collect();
            write!(text, "{name}: {}", numbers.join(" ")).expect(STRINGS);
            let more = if bits.len() < *len {
                format!(" ... ({len} elements)\n")
            } else {
                "\n".to_owned()
            };
            text += &more;
        }
        for Compared { name, file, element, len, differing, first } in &self.compared {
            if *differing == 0 {
                writeln!(text, "{name}: all {len} elements agree with {file}").expect(STRINGS);
                continue;
            }
            writeln!(text, "{name}: {differing} of {len} elements differ from {file}")
                .expect(STRINGS);
            for &(index, given, expected) in first {
                let (given, expected) = (element.text(given), element.text(expected));
                writeln!(text, "  {name}[{index}] is {given}, expected {expected}").expect(STRINGS);
            }
            if *differing > first.len() {
                writeln!(text, "  and {} more", differing - first.len()).expect(STRINGS);
            }
        }
        text
    }

    /// The fields `buffers` and `compared`.
    pub(super) fn json(&self) -> (Value, Value) {
        let buffers = self.printed.iter().map(|printed| {
            let numbers: Vec<Value> =
                printed.bits.iter().map(|&bits| printed.element.json(bits)).collect();
            let Printed { name, element, len, .. } = printed;
            json!({ "name": name, "type": element.name(), "elements": len, "values": numbers })
        });
        let compared = self.compared.iter().map(|compared| {
            let Compared { name, file, element, len, differing, first } = compared;
            let first = first.iter().map(|&(index, given, expected)| {
                json!({ "index": index, "given": element.json(given), "expected": element.json(expected) })
            });
            let first: Vec<Value> = first.collect();
            json!({ "name": name, "file": file, "elements": len, "differing": differing, "first": first })
        });
        (buffers.collect(), compared.collect())
    }
}

const STRINGS: &str = "strings take all text";

/// What checks have found, for JSON.
pub(super) fn findings(error: &LaunchError) -> Vec<Value> {
    let findings = match error {
        LaunchError::Findings(findings) => &findings.list,
        LaunchError::Trap(trap) => match &trap.findings {
            Some(findings) => &findings.list,
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let finding = |finding: &harp_runtime::Finding| {
        use harp_runtime::FindingKind;
        let kind = match &finding.kind {
            FindingKind::OutOfBounds => "out of bounds",
            FindingKind::Uninitialized => "uninitialized",
            FindingKind::Misaligned { .. } => "misaligned",
            FindingKind::Race { .. } => "race",
            FindingKind::ElementType { .. } => "element type",
            FindingKind::Constant { .. } => "constant",
            FindingKind::Barriers { .. } => "barriers",
            _ => "other",
        };
        json!({
            "kind": kind,
            "address": finding.access.address,
            "type": finding.access.ty.to_string(),
            "work_item": finding.access.work_item,
            "group": finding.access.group,
            "place": finding.access.place.as_ref().map(ToString::to_string),
            "count": finding.count,
            "text": finding.to_string(),
        })
    };
    findings.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_behind_the_last_colon() {
        let parsed = |text: &str| {
            let Comparing { name, file, tolerance } = comparing(text).unwrap();
            (name, file.display().to_string(), tolerance)
        };
        let wanted = |file: &str, tolerance| ("y".to_owned(), file.to_owned(), tolerance);
        assert_eq!(parsed("y=a.bin"), wanted("a.bin", 0.0));
        assert_eq!(parsed("y=a.bin:1e-6"), wanted("a.bin", 1e-6));
        assert_eq!(parsed("y=a:b.bin"), wanted("a:b.bin", 0.0));
        assert!(comparing("a.bin").is_err());
        assert!(printing("y:x").is_err() && printing(":3").is_err() && saving("y=").is_err());
    }
}
