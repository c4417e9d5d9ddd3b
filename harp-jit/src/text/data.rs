//! Data in comments.
//!
//! CLIF text can only contain functions, which refer to data by name: `gv0 = symbol %table`. The data that a
//! file needs is defined in comments, which other readers ignore:
//!
//! ```text
//! ; data: %table i16 1 2 0x30 -4
//! ; data: %buffer i8 0*64
//! ; data: %greeting i8 "hello" 0
//! ```

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Type, types};
use cranelift_module::DataDescription;

use super::value::parse_value;

/// The largest size of a datum in a text, in bytes.
const MAX_BYTES: usize = 1 << 24;

/// A datum that code may load and store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextData {
    /// The linker's name.
    pub name: String,
    /// The contents, little-endian.
    pub bytes: Vec<u8>,
}

impl TextData {
    /// Parses a comment from its `;` on; none if it does not define data.
    ///
    /// # Errors
    ///
    /// The error in the definition.
    pub(super) fn parse(comment: &str) -> Option<Result<TextData, String>> {
        let text = comment.trim_start_matches([';', ' ']).strip_prefix("data:")?;
        Some(Self::parse_datum(text))
    }

    fn parse_datum(text: &str) -> Result<TextData, String> {
        let text = text.trim();
        let named = text.strip_prefix('%').and_then(|text| text.split_once(char::is_whitespace));
        let (name, text) = named.ok_or("the name is missing")?;
        let (ty, mut values) = text.trim().split_once(' ').ok_or("the values are missing")?;
        let ty = data_type(ty).ok_or_else(|| format!("`{ty}` is not a type of data"))?;
        let mut bytes = Vec::new();
        while !values.trim_start().is_empty() {
            let (value, rest) = next_value(values.trim_start())?;
            values = rest;
            append(&mut bytes, value, ty)?;
            if bytes.len() > MAX_BYTES {
                return Err(format!("more than {MAX_BYTES} bytes"));
            }
        }
        Ok(TextData { name: name.to_owned(), bytes })
    }

    /// The datum for a module, aligned for any of CLIF's types.
    pub(super) fn description(&self) -> DataDescription {
        let mut description = DataDescription::new();
        description.define(self.bytes.clone().into_boxed_slice());
        description.set_align(8);
        description
    }
}

fn data_type(name: &str) -> Option<Type> {
    let all = [types::I8, types::I16, types::I32, types::I64, types::F32, types::F64];
    all.into_iter().find(|ty| ty.to_string() == name)
}

/// The first value and the rest; a string includes its quotes.
fn next_value(text: &str) -> Result<(&str, &str), String> {
    if let Some(string) = text.strip_prefix('"') {
        let end = string.find('"').ok_or("a string without a closing quote")?;
        return Ok(text.split_at(end + 2));
    }
    Ok(text.split_once(char::is_whitespace).unwrap_or((text, "")))
}

/// Appends a string, a value, or a repeated value: `0*64`.
fn append(bytes: &mut Vec<u8>, value: &str, ty: Type) -> Result<(), String> {
    if let Some(string) = value.strip_prefix('"') {
        if ty != types::I8 {
            return Err(format!("a string among values of type {ty}"));
        }
        bytes.extend(string.trim_end_matches('"').bytes());
        return Ok(());
    }
    let (value, times) = value.split_once('*').unwrap_or((value, "1"));
    let times: usize = times.parse().map_err(|_| format!("`{times}` is not a repeat count"))?;
    let value: DataValue = parse_value(value, ty).map_err(|error| format!("`{value}`: {error}"))?;
    let mut one = [0; 8];
    let one = &mut one[..ty.bytes() as usize];
    value.write_to_slice_le(one);
    if times.saturating_mul(one.len()) > MAX_BYTES {
        return Err(format!("more than {MAX_BYTES} bytes"));
    }
    bytes.extend(one.repeat(times));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_values_of_a_type() {
        let bytes = |text| TextData::parse(text).map(|data| data.map(|data| data.bytes));
        assert_eq!(bytes("; run: %f() == 1"), None);
        assert_eq!(bytes(";; data: %a i16 1 -2 0x30"), Some(Ok(vec![1, 0, 0xfe, 0xff, 0x30, 0])));
        assert_eq!(bytes("; data: %a i8 \"a b\" 0*2 7"), Some(Ok(b"a b\0\0\x07".to_vec())));
        assert_eq!(bytes("; data: %a f32 0x1.0"), Some(Ok(1_f32.to_le_bytes().to_vec())));
        for wrong in [
            "; data:",
            "; data: a i8 1",
            "; data: %a i8",
            "; data: %a i9 1",
            "; data: %a i8 1*x",
            "; data: %a i8 x",
            "; data: %a i32 \"a\"",
            "; data: %a i8 \"a",
            "; data: %a i8 0*99999999",
        ] {
            assert!(matches!(bytes(wrong), Some(Err(_))), "{wrong}");
        }
    }
}
