//! Values that constants of a program are given when it is read: specialization constants of SPIR-V, `override`s of WGSL.

use super::super::files::Input;
use super::super::numbers::number;
use super::super::values::{Element, ValueError};
use super::SourceError;

/// A constant and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Specialization {
    /// Its number, or in WGSL and GLSL its name where it has no number.
    constant: String,
    /// The bits of the value; none if it needs a type.
    bits: Option<u64>,
    value: f64,
}

/// Why a text gives no value to a constant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SpecializationError {
    #[error(
        "expected a constant and its value, such as 0=64, 3=true, 1=f32:0.5 or size=64 (types are {})",
        Element::NAMES
    )]
    Form,
    #[error(transparent)]
    Value(#[from] ValueError),
}

impl Specialization {
    pub(super) fn parse(text: &str) -> Result<Specialization, SpecializationError> {
        let wrong = || SpecializationError::Form;
        let (constant, value) = text.split_once('=').ok_or_else(wrong)?;
        let is_word = constant.chars().all(|c| c.is_alphanumeric() || c == '_');
        let constant = match number(constant) {
            Ok(id) => id.to_string(),
            Err(_) if is_word && !constant.is_empty() => constant.to_owned(),
            Err(_) => return Err(wrong()),
        };
        let (element, text) = match value.split_once(':') {
            Some((name, text)) => (Some(Element::named(name).ok_or_else(wrong)?), text),
            None => (None, value),
        };
        let (bits, value) = match (text, element) {
            ("true", _) => (Some(1), 1.0),
            ("false", _) => (Some(0), 0.0),
            (text, Some(element)) => {
                let bits = element.parse(text)?;
                (Some(bits), element.as_float(bits))
            }
            (text, None) => match (Element::I64.parse(text), text.parse()) {
                (Ok(bits), _) => (Some(bits), Element::I64.as_float(bits)),
                (Err(_), Ok(value)) => (None, value),
                (Err(error), Err(_)) => return Err(error.into()),
            },
        };
        Ok(Specialization { constant, bits, value })
    }

    /// The number of a constant of a SPIR-V module, and the bits of its value.
    pub(super) fn of_spirv(&self, file: &Input) -> Result<(u32, u64), SourceError> {
        let (file, constant) = (file.clone(), self.constant.clone());
        let Ok(id) = self.constant.parse() else {
            return Err(SourceError::NamedConstant { file, constant });
        };
        let bits = self.bits;
        let bits =
            bits.ok_or(SourceError::UntypedConstant { file, constant, value: self.value })?;
        Ok((id, bits))
    }

    /// The constant of a shader, and its value.
    pub(super) fn of_shader(&self) -> (String, f64) {
        (self.constant.clone(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn constants_have_numbers_or_names_and_values() {
        let parsed = |text| Specialization::parse(text).unwrap();
        let file = Input::from(OsString::from("m.spv"));
        let spirv = |text| parsed(text).of_spirv(&file).map_err(|error| error.to_string());
        assert_eq!(spirv("0=64"), Ok((0, 64)));
        assert_eq!(spirv("0x7=-1"), Ok((7, u64::MAX)));
        assert_eq!(spirv("3=true"), Ok((3, 1)));
        assert_eq!(spirv("1=f32:0.5"), Ok((1, 0.5_f32.to_bits().into())));
        assert!(spirv("1=0.5").unwrap_err().contains("1=f32:0.5"));
        assert!(spirv("size=5").unwrap_err().contains("`size`"));
        let shader = |text| parsed(text).of_shader();
        assert_eq!(shader("size=-64"), ("size".to_owned(), -64.0));
        assert_eq!(shader("0x7=u8:255"), ("7".to_owned(), 255.0));
        assert_eq!(shader("x_1=0.5").1, 0.5);
        assert_eq!(shader("x=f64:0.25").1, 0.25);
        assert_eq!(shader("on=true").1, 1.0);
        for text in ["", "5", "=5", "5=x", "5=f31:1", "-1=0", "1=i8:300", "a b=1"] {
            assert!(Specialization::parse(text).is_err(), "{text}");
        }
    }
}
