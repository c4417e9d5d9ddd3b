//! Numbers of the types that buffers and arguments have, as text and as bytes.

use half::f16;
use harp_jit::ParamType;
use harp_jit::ir::{Type, types};
use thiserror::Error;

/// The type of a number, which says how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

use Element::{F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

/// Why a text is not a number of a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a number of type {ty}: expected {}", .ty.expected())]
pub(super) struct ValueError {
    pub(super) text: String,
    pub(super) ty: Element,
}

impl std::fmt::Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Element {
    const ALL: [Element; 11] = [I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64];

    /// The names of all, for messages.
    pub(super) const NAMES: &str = "i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64";

    pub(super) fn name(self) -> &'static str {
        match self {
            I8 => "i8",
            U8 => "u8",
            I16 => "i16",
            U16 => "u16",
            I32 => "i32",
            U32 => "u32",
            I64 => "i64",
            U64 => "u64",
            F16 => "f16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    pub(super) fn named(name: &str) -> Option<Element> {
        Element::ALL.into_iter().find(|element| element.name() == name)
    }

    /// The element for a type of CLIF; integers are signed.
    pub(super) fn of(ty: Type) -> Option<Element> {
        Some(match ty {
            types::I8 => I8,
            types::I16 => I16,
            types::I32 => I32,
            types::I64 => I64,
            types::F16 => F16,
            types::F32 => F32,
            types::F64 => F64,
            _ => return None,
        })
    }

    /// The element for a number that is an argument; none for truth values and what is no number.
    pub(super) fn of_param(ty: ParamType) -> Option<Element> {
        Some(match ty {
            ParamType::I8 => I8,
            ParamType::I16 => I16,
            ParamType::I32 => I32,
            ParamType::I64 | ParamType::Word => I64,
            ParamType::F16 => F16,
            ParamType::F32 => F32,
            ParamType::F64 => F64,
            _ => return None,
        })
    }

    /// The type that launches know it by; they take halves as integers.
    pub(super) fn clif_type(self) -> Type {
        match self {
            I8 | U8 => types::I8,
            I16 | U16 | F16 => types::I16,
            I32 | U32 => types::I32,
            I64 | U64 => types::I64,
            F32 => types::F32,
            F64 => types::F64,
        }
    }

    pub(super) fn bytes(self) -> usize {
        self.clif_type().bytes() as usize
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, F16 | F32 | F64)
    }

    fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    fn expected(self) -> String {
        match self {
            F16 | F32 | F64 => "such as 0.5, -3, 1e-6, inf or nan".to_owned(),
            integer => {
                let bits = 8 * integer.bytes();
                format!("an integer of {bits} bits, such as 5, -3 or 0x1f")
            }
        }
    }

    /// The bits of a number; of integers those that fit the bits, whatever the sign.
    pub(super) fn parse(self, text: &str) -> Result<u64, ValueError> {
        let wrong = || ValueError { text: text.to_owned(), ty: self };
        match self {
            F16 => text.parse::<f64>().map(|value| self.of_float(value)).map_err(|_| wrong()),
            F32 => text.parse::<f32>().map(|value| value.to_bits().into()).map_err(|_| wrong()),
            F64 => text.parse::<f64>().map(f64::to_bits).map_err(|_| wrong()),
            _ => {
                let value = integer(text).ok_or_else(wrong)?;
                let bits = 8 * self.bytes() as u32;
                let limits = -(1_i128 << (bits - 1))..1_i128 << bits;
                if !limits.contains(&value) {
                    return Err(wrong());
                }
                Ok(self.truncated(value as u64))
            }
        }
    }

    fn truncated(self, bits: u64) -> u64 {
        bits & (u64::MAX >> (64 - 8 * self.bytes()))
    }

    /// The bits of the number that is nearest to an integer.
    pub(super) fn of_integer(self, value: i128) -> u64 {
        match self {
            F16 => self.of_float(value as f64),
            F32 => (value as f32).to_bits().into(),
            F64 => (value as f64).to_bits(),
            _ => self.truncated(value as u64),
        }
    }

    /// The bits of the number that is nearest to a float.
    pub(super) fn of_float(self, value: f64) -> u64 {
        match self {
            F16 => f16::from_f64(value).to_bits().into(),
            F32 => (value as f32).to_bits().into(),
            F64 => value.to_bits(),
            _ => self.truncated(value as i64 as u64),
        }
    }

    /// The bits of an element in the bytes of a buffer.
    pub(super) fn load(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        word[..self.bytes()].copy_from_slice(&bytes[..self.bytes()]);
        u64::from_le_bytes(word)
    }

    /// The number with these bits as a float, for comparisons: exact but for integers of 64 bits.
    pub(super) fn as_float(self, bits: u64) -> f64 {
        match self {
            F16 => f16::from_bits(bits as u16).into(),
            F32 => f32::from_bits(bits as u32).into(),
            F64 => f64::from_bits(bits),
            _ => self.as_integer(bits) as f64,
        }
    }

    fn as_integer(self, bits: u64) -> i128 {
        let width = 8 * self.bytes() as u32;
        let value = i128::from(bits);
        if self.is_signed() && bits >> (width - 1) & 1 == 1 { value - (1 << width) } else { value }
    }

    /// The number with these bits as text.
    pub(super) fn text(self, bits: u64) -> String {
        match self {
            F16 => f16::from_bits(bits as u16).to_string(),
            F32 => f32::from_bits(bits as u32).to_string(),
            F64 => f64::from_bits(bits).to_string(),
            _ => self.as_integer(bits).to_string(),
        }
    }

    /// The number with these bits in JSON, where infinities and NaN are texts.
    pub(super) fn json(self, bits: u64) -> serde_json::Value {
        let text = self.text(bits);
        match serde_json::from_str::<serde_json::Number>(&text) {
            Ok(number) => number.into(),
            Err(_) => text.into(),
        }
    }
}

/// A number with or without a sign, decimal or hexadecimal.
pub(super) fn integer(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    // `from_str_radix` would also accept a sign.
    let proper = digits.starts_with(|c: char| c.is_ascii_alphanumeric());
    let value = u64::from_str_radix(digits, radix).ok().filter(|_| proper).map(i128::from)?;
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_through_text_and_bytes() {
        for (element, text) in [
            (I8, "-5"),
            (U8, "250"),
            (I16, "-300"),
            (U64, "18446744073709551615"),
            (I64, "-1"),
            (F16, "0.5"),
            (F16, "-65504"),
            (F16, "inf"),
            (F32, "0.1"),
            (F64, "-2.5"),
        ] {
            let bits = element.parse(text).unwrap();
            assert_eq!(element.text(bits), text);
            assert_eq!(element.load(&bits.to_le_bytes()), bits);
        }
        assert_eq!(I8.parse("0xff").map(|bits| I8.text(bits)).as_deref(), Ok("-1"));
        for (element, text) in [
            (I8, "256"),
            (U8, "-129"),
            (I32, "1.5"),
            (I32, ""),
            (I32, "--1"),
            (I32, "0x-1"),
            (F32, "x"),
        ] {
            assert!(element.parse(text).is_err(), "{text}");
        }
    }
}
