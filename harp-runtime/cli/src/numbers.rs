//! Numbers on the command line: decimal, `0x` hexadecimal or `0` octal as in assembly text, sizes
//! with a unit, and definitions `NAME=VALUE`.

use std::time::Duration;

use thiserror::Error;

/// Why an argument is not a number, size or definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NumberError {
    #[error("not a decimal, `0x` hexadecimal or `0` octal number of at most 64 bits")]
    Number,
    #[error(
        "not a number of bytes of at most 64 bits, which may end in K, M or G (1024, 1024^2, 1024^3)"
    )]
    Size,
    #[error("not a number of seconds")]
    Seconds,
    #[error("not of the form NAME=VALUE")]
    NoEquals,
    #[error("`{0}` is not a symbol: letters, digits, `_` and `.`, and no digit at the beginning")]
    Name(String),
    #[error("`__WORD` is the size of the machine's word")]
    Reserved,
}

/// An unsigned number.
pub(super) fn number(text: &str) -> Result<u64, NumberError> {
    let (radix, digits) = match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hexadecimal), _) => (16, hexadecimal),
        (None, Some(octal)) if !octal.is_empty() => (8, octal),
        _ => (10, text),
    };
    // `from_str_radix` would also accept a sign.
    let proper = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| proper).ok_or(NumberError::Number)
}

/// A number of bytes.
pub(super) fn size(text: &str) -> Result<u64, NumberError> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.into_iter().find(|&(letter, _)| text.ends_with(letter));
    let (digits, shift) = unit.map_or((text, 0), |(_, shift)| (&text[..text.len() - 1], shift));
    number(digits).ok().and_then(|n| n.checked_mul(1 << shift)).ok_or(NumberError::Size)
}

/// A time in seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, NumberError> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or(NumberError::Seconds)
}

/// A constant for the assembler, `NAME=VALUE`; the value may have a minus sign.
pub(super) fn definition(text: &str) -> Result<(String, i64), NumberError> {
    let (name, value) = text.split_once('=').ok_or(NumberError::NoEquals)?;
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let proper = name.chars().all(inner) && !name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || !proper {
        return Err(NumberError::Name(name.to_owned()));
    }
    if name == "__WORD" {
        return Err(NumberError::Reserved);
    }
    let value = match value.strip_prefix('-') {
        // Constants are words: numbers beyond `i64` are taken as two's complement.
        None => number(value)?.cast_signed(),
        Some(magnitude) => {
            0_i64.checked_sub_unsigned(number(magnitude)?).ok_or(NumberError::Number)?
        }
    };
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_three_radixes() {
        for (text, value) in [("0", 0), ("19", 19), ("0x1F", 31), ("010", 8)] {
            assert_eq!(number(text), Ok(value), "{text}");
        }
        for text in ["", "-1", "+1", "08", "0x", "1_0", "18446744073709551616", "0x-1"] {
            assert_eq!(number(text), Err(NumberError::Number), "{text}");
        }
    }

    #[test]
    fn sizes_with_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("0x10K"), Ok(16 << 10));
        assert_eq!(size("16M"), Ok(16 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        for text in ["", "M", "1T", "17179869184G", "ä", "1.5M"] {
            assert_eq!(size(text), Err(NumberError::Size), "{text}");
        }
    }

    #[test]
    fn seconds_and_parts_of_them() {
        assert_eq!(seconds("90"), Ok(Duration::from_secs(90)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "-1", "inf", "nan", "1e30", "1s"] {
            assert_eq!(seconds(text), Err(NumberError::Seconds), "{text}");
        }
    }

    #[test]
    fn definitions_are_symbols_with_words() {
        let define = |text| definition(text).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(define("N=5").as_deref(), Ok("N 5"));
        assert_eq!(define(".a_1=-0x10").as_deref(), Ok(".a_1 -16"));
        assert_eq!(define("N=0xffffffffffffffff").as_deref(), Ok("N -1"));
        assert_eq!(define("N=-0x8000000000000000").as_deref(), Ok("N -9223372036854775808"));
        assert_eq!(define("N=-0x8000000000000001"), Err(NumberError::Number));
        assert_eq!(define("N"), Err(NumberError::NoEquals));
        assert_eq!(define("N="), Err(NumberError::Number));
        assert_eq!(define("1N=1"), Err(NumberError::Name("1N".to_owned())));
        assert_eq!(define("=1"), Err(NumberError::Name(String::new())));
        assert_eq!(define("__WORD=4"), Err(NumberError::Reserved));
    }
}
