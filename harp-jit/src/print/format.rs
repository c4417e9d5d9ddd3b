//! Formats of lines: text with places for values.

use std::fmt::Write as _;

use cranelift_codegen::ir::{Type, types};

use super::c_format::Conversion;

/// The most values of a line: a record of them must be within reach of a store's offset.
const MAX_VALUES: usize = 64;

/// A line's format, which fits the types of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Format {
    /// The text before each value, and how the value is shown.
    values: Vec<(String, Shown)>,
    /// The text behind the last value.
    rest: String,
}

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    pub(super) ty: Type,
    pub(super) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Style {
    /// A signed integer, or a float.
    Plain,
    Unsigned,
    Hexadecimal,
    /// As C's `printf` does.
    C(Conversion),
}

impl Format {
    /// Parses a format for values of these types: integers and floats of at most 64 bits.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn parse(text: &str, types: &[Type]) -> Result<Format, String> {
        let mut format = Format::default();
        let mut chars = text.chars().peekable();
        while let Some(first) = chars.next() {
            match first {
                '{' | '}' if chars.next_if_eq(&first).is_some() => format.rest.push(first),
                '}' => return Err("a `}` without a `{`: write `}}` for the character".to_owned()),
                '{' => {
                    let spec: String = chars.by_ref().take_while(|&next| next != '}').collect();
                    let Some(&ty) = types.get(format.values.len()) else {
                        let given = types.len();
                        return Err(format!("more places than values, of which there are {given}"));
                    };
                    let style = style(&spec, ty)?;
                    format.push_value(Shown { ty, style });
                }
                other => format.rest.push(other),
            }
        }
        let (places, given) = (format.values.len(), types.len());
        if places < given && given <= MAX_VALUES {
            return Err(format!("{given} values for {places} places"));
        }
        format.checked_for(given)
    }

    /// Appends text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.rest.push_str(text);
    }

    /// Appends a place for a value.
    pub(super) fn push_value(&mut self, shown: Shown) {
        self.values.push((std::mem::take(&mut self.rest), shown));
    }

    /// The format, if it does not have too many values.
    pub(super) fn checked(self) -> Result<Format, String> {
        let given = self.values.len();
        self.checked_for(given)
    }

    fn checked_for(self, given: usize) -> Result<Format, String> {
        if given > MAX_VALUES {
            return Err(format!("{given} values, the limit is {MAX_VALUES}"));
        }
        Ok(self)
    }

    /// The text from which, with the types of its values, it is parsed again.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (before, shown) in &self.values {
            escape(before, &mut text);
            text.push_str(&match shown.style {
                Style::Plain => "{}".to_owned(),
                Style::Unsigned => "{:u}".to_owned(),
                Style::Hexadecimal => "{:x}".to_owned(),
                Style::C(conversion) => format!("{{:%{}}}", conversion.specification()),
            });
        }
        escape(&self.rest, &mut text);
        text
    }

    /// The types of its values.
    pub(super) fn types(&self) -> impl Iterator<Item = Type> {
        self.values.iter().map(|(_, shown)| shown.ty)
    }

    /// The line with these values, of which some are addresses of texts; None if there are too few.
    pub(super) fn line(
        &self,
        mut bits: impl FnMut(Type) -> Option<u64>,
        mut text_at: impl FnMut(u64) -> String,
    ) -> Option<String> {
        let mut line = String::new();
        for (before, shown) in &self.values {
            line.push_str(before);
            let bits = bits(shown.ty)?;
            match shown.style {
                Style::C(conversion) if conversion.is_text() => {
                    line.push_str(&conversion.text(&text_at(bits)));
                }
                _ => shown.show(bits, &mut line),
            }
        }
        line.push_str(&self.rest);
        Some(line)
    }
}

fn escape(text: &str, escaped: &mut String) {
    for c in text.chars() {
        if matches!(c, '{' | '}') {
            escaped.push(c);
        }
        escaped.push(c);
    }
}

fn style(spec: &str, ty: Type) -> Result<Style, String> {
    match spec {
        "" => Ok(Style::Plain),
        ":u" | ":x" if ty.is_float() => {
            Err(format!("`{{{spec}}}` is for integers, the value is of type {ty}"))
        }
        ":u" => Ok(Style::Unsigned),
        ":x" => Ok(Style::Hexadecimal),
        spec if spec.starts_with(":%") => Ok(Style::C(Conversion::restore(&spec[2..], ty)?)),
        _ => Err(format!("`{{{spec}}}` is neither `{{}}` nor `{{:u}}` nor `{{:x}}`")),
    }
}

impl Shown {
    fn show(self, bits: u64, line: &mut String) {
        let unused = 64 - self.ty.bits().min(64);
        let value = bits << unused >> unused;
        // Writing to a string does not fail.
        let _ = match (self.style, self.ty) {
            (Style::C(conversion), ty) => write!(line, "{}", conversion.show(value, ty)),
            (_, types::F32) => write!(line, "{:?}", f32::from_bits(value as u32)),
            (_, types::F64) => write!(line, "{:?}", f64::from_bits(value)),
            (Style::Plain, _) => write!(line, "{}", (bits << unused).cast_signed() >> unused),
            (Style::Unsigned, _) => write!(line, "{value}"),
            (Style::Hexadecimal, _) => write!(line, "{value:x}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};

    fn line(format: &str, values: &[(Type, u64)]) -> Result<String, String> {
        let types: Vec<Type> = values.iter().map(|&(ty, _)| ty).collect();
        let mut bits = values.iter().map(|&(_, bits)| bits);
        let parsed = Format::parse(format, &types)?;
        assert_eq!(parsed.text(), format);
        Ok(parsed.line(|_| bits.next(), |_| unreachable!("no text is shown")).unwrap())
    }

    #[test]
    fn values_are_shown_by_type_and_place() {
        let shown = |format, values| line(format, values).unwrap();
        assert_eq!(shown("nothing", &[]), "nothing");
        assert_eq!(shown("{{{}}} {:u}|{:x}", &[(I8, 0xff); 3]), "{-1} 255|ff");
        assert_eq!(shown("{}{}", &[(I32, 1 << 31), (I64, u64::MAX)]), "-2147483648-1");
        // Only the bits of the type count.
        assert_eq!(shown("{:u}", &[(I8, 0x1234)]), "52");
        let floats = [(F32, u64::from(1.5_f32.to_bits())), (F64, (-0.0_f64).to_bits())];
        assert_eq!(shown("{} {}", &floats), "1.5 -0.0");
    }

    #[test]
    fn formats_that_do_not_fit_say_why() {
        let why = |format, types: &[Type]| Format::parse(format, types).unwrap_err();
        assert_eq!(why("{}", &[]), "more places than values, of which there are 0");
        assert_eq!(why("x", &[I8]), "1 values for 0 places");
        assert!(why("}", &[]).starts_with("a `}` without a `{`"));
        assert_eq!(why("{:x}", &[F32]), "`{:x}` is for integers, the value is of type f32");
        assert_eq!(why("{:?}", &[I32]), "`{:?}` is neither `{}` nor `{:u}` nor `{:x}`");
        assert!(why("{", &[I32, I32]).contains("2 values for 1 places"));
        assert_eq!(why("", &[I8; 65]), "65 values, the limit is 64");
    }
}
