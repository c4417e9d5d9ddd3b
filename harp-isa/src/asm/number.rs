//! Number literals.

use crate::arch::WordSize;

/// A literal without its sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(u64),
    Float(f64),
}

/// The number that `text` denotes.
pub(super) fn parse(text: &str) -> Option<Number> {
    let digits = |radix, digits: &str| {
        // `from_str_radix` would accept a leading plus sign, which a literal cannot have.
        let proper = digits.bytes().all(|b| b.is_ascii_alphanumeric());
        u64::from_str_radix(digits, radix).ok().filter(|_| proper).map(Number::Integer)
    };
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return digits(16, hexadecimal);
    }
    let unmarked = text.strip_suffix('f').unwrap_or(text);
    if unmarked.len() < text.len() || text.contains('.') {
        let plain = unmarked.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        return unmarked.parse().ok().filter(|_| plain).map(Number::Float);
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => digits(8, octal),
        _ => digits(10, text),
    }
}

/// The bits of `value` in the float format of a word, its mantissa truncated; `None` beyond the
/// largest finite number.
pub(super) fn float_bits(value: f64, word: WordSize) -> Option<u64> {
    if !value.is_finite() {
        return None;
    }
    match word {
        WordSize::Eight => Some(value.to_bits()),
        WordSize::Four => {
            let nearest = value as f32;
            // Numbers of one sign are ordered like their bits: the previous bits are nearer to zero.
            let away = u32::from(f64::from(nearest).abs() > value.abs());
            let truncated = nearest.to_bits() - away;
            (value.abs() < 2.0_f64.powi(128)).then_some(truncated.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_three_radixes() {
        for (text, value) in [
            ("0", 0),
            ("19", 19),
            ("0x1F", 31),
            ("0xff", 255),
            ("010", 8),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Some(Number::Integer(value)), "{text}");
        }
        for text in
            ["18446744073709551616", "08", "0x", "0xg", "1a", "0x1.5", "1_0", "1.2.3", "1.5e3"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn floats_are_truncated() {
        assert_eq!(parse("3f"), Some(Number::Float(3.0)));
        assert_eq!(parse("1.5"), Some(Number::Float(1.5)));
        // 0.1 lies between 0x3dcccccc and 0x3dcccccd and nearer to the latter.
        assert_eq!(float_bits(0.1, WordSize::Four), Some(0x3dcc_cccc));
        assert_eq!(float_bits(-0.1, WordSize::Four), Some(0xbdcc_cccc));
        assert_eq!(float_bits(0.1, WordSize::Eight), Some(0.1_f64.to_bits()));
        let largest = f64::from(f32::MAX);
        assert_eq!(
            float_bits(largest * 1.000_000_01, WordSize::Four),
            Some(f32::MAX.to_bits().into())
        );
        assert_eq!(float_bits(largest * 2.0, WordSize::Four), None);
        assert_eq!(float_bits(f64::INFINITY, WordSize::Eight), None);
    }
}
