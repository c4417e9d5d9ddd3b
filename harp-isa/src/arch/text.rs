//! Architecture ids as text.

use std::fmt;
use std::str::FromStr;

use super::error::{ArchIdError, Field};
use super::{ArchId, Encoding, PRESETS, WordSize};

impl fmt::Display for ArchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArchId {
            word,
            encoding,
            gprs,
            preds,
            lanes,
            warps,
            extension,
            shared_gprs,
            shared_preds,
        } = *self;
        let (bytes, letter) = (word.bytes(), encoding.letter());
        write!(f, "{bytes}{letter}{gprs}/{preds}/{lanes}/{warps}")?;
        f.write_str(if extension { "+x" } else { "" })?;
        match (shared_gprs, shared_preds) {
            (0, _) => Ok(()),
            (gprs, 0) => write!(f, "+s{gprs}"),
            (gprs, preds) => write!(f, "+s{gprs}/{preds}"),
        }
    }
}

impl FromStr for ArchId {
    type Err = ArchIdError;

    fn from_str(id: &str) -> Result<ArchId, ArchIdError> {
        let Options { machine, extension, shared } = Options::of(id)?;
        let (shared_gprs, shared_preds) = shared.unwrap_or_default();
        if let Some((_, preset)) = PRESETS.iter().find(|(name, _)| *name == machine) {
            return ArchId { extension, shared_gprs, shared_preds, ..*preset }.validated();
        }
        let owned = || id.to_owned();
        let mut chars = machine.chars();
        let word = match chars.next() {
            Some('4') => WordSize::Four,
            Some('8') => WordSize::Eight,
            _ => return Err(ArchIdError::WordSize { id: owned() }),
        };
        let encoding = match chars.next() {
            Some('w') => Encoding::Word,
            Some('b') => Encoding::Byte,
            _ => return Err(ArchIdError::Encoding { id: owned() }),
        };
        let mut parts = chars.as_str().split('/');
        let mut count = |field: Field| match parts.next() {
            None => Ok(None),
            Some("") => Err(ArchIdError::Missing { id: owned(), field }),
            Some(text) => parse_count(id, field, text).map(Some),
        };
        let gprs = count(Field::Gprs)?;
        let gprs = gprs.ok_or_else(|| ArchIdError::Missing { id: owned(), field: Field::Gprs })?;
        let preds = count(Field::Preds)?;
        let preds =
            preds.ok_or_else(|| ArchIdError::Missing { id: owned(), field: Field::Preds })?;
        let lanes = count(Field::Lanes)?.unwrap_or(1);
        let warps = count(Field::Warps)?.unwrap_or(1);
        if let Some(rest) = parts.next() {
            return Err(ArchIdError::Trailing { id: owned(), rest: rest.to_owned() });
        }
        ArchId { word, encoding, gprs, preds, lanes, warps, extension, shared_gprs, shared_preds }
            .validated()
    }
}

/// An id without its options, and the options.
struct Options<'a> {
    machine: &'a str,
    extension: bool,
    /// The numbers of general registers and predicates that lanes share.
    shared: Option<(u8, u8)>,
}

impl Options<'_> {
    /// Takes the options off the end of `id`, in any order. What is not an option, or is one again, is left to the
    /// fields before.
    fn of(id: &str) -> Result<Options<'_>, ArchIdError> {
        let mut options = Options { machine: id, extension: false, shared: None };
        while let Some((machine, option)) = options.machine.rsplit_once('+') {
            if option == "x" && !options.extension {
                options.extension = true;
            } else if let Some(counts) =
                option.strip_prefix('s').filter(|_| options.shared.is_none())
            {
                options.shared = Some(parse_shared(id, counts)?);
            } else {
                break;
            }
            options.machine = machine;
        }
        Ok(options)
    }
}

/// The counts of the option `+s`. There is no option for no shared registers.
fn parse_shared(id: &str, counts: &str) -> Result<(u8, u8), ArchIdError> {
    let (gprs, preds) = match counts.split_once('/') {
        Some((gprs, preds)) => (gprs, Some(preds)),
        None => (counts, None),
    };
    let count = |field: Field, text: &str| match text {
        "" => Err(ArchIdError::Missing { id: id.to_owned(), field }),
        text => parse_count(id, field, text),
    };
    let shared_gprs = count(Field::SharedGprs, gprs)?;
    if shared_gprs == 0 {
        return Err(ArchIdError::OutOfRange { field: Field::SharedGprs, given: 0 });
    }
    let shared_preds = preds.map_or(Ok(0), |preds| count(Field::SharedPreds, preds))?;
    Ok((shared_gprs, shared_preds))
}

fn parse_count(id: &str, field: Field, text: &str) -> Result<u8, ArchIdError> {
    // `u64::from_str` takes a leading plus sign; an architecture id has none.
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        let given = text.to_owned();
        return Err(ArchIdError::NotANumber { id: id.to_owned(), field, given });
    }
    let given = text.parse::<u64>().unwrap_or(u64::MAX);
    u8::try_from(given).map_err(|_| ArchIdError::OutOfRange { field, given })
}
