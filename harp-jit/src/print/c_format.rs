//! Formats of C's `printf`, and how it shows values (C99, section 7.19.6.1).

use cranelift_codegen::ir::{Type, types};

use super::format::{Format, Shown, Style};

/// The largest width and precision: lines stay readable, and memory for them bounded.
const MAX_WIDTH: usize = 1000;

/// A conversion specification of `printf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// The bits of an integer that count, by a length such as `hh`.
    bits: Option<u32>,
    letter: char,
}

/// Parses the format of a `printf` for values of these types; see
/// [`PrintSite::from_printf`](super::PrintSite::from_printf).
pub(super) fn parse(text: &str, types: &[Type]) -> Result<Format, String> {
    let mut types = types.iter();
    let mut format = Format::default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        format.push_text(&rest[..at]);
        let end = rest[at + 1..].find(|c: char| c.is_ascii_alphabetic() && !"hlv".contains(c));
        if rest[at + 1..].starts_with('%') {
            format.push_text("%");
            rest = &rest[at + 2..];
            continue;
        }
        let end = at + 2 + end.ok_or_else(|| format!("`{}` has no conversion", &rest[at..]))?;
        let (conversion, count) = specification(&rest[at + 1..end])?;
        rest = &rest[end..];
        for component in 0..count {
            if component > 0 {
                format.push_text(",");
            }
            let missing = || format!("no value for `%{}`", conversion.letter);
            let &ty = types.next().ok_or_else(missing)?;
            let style = Style::C(conversion.fitting(ty)?);
            format.push_value(Shown { ty, style });
        }
    }
    format.push_text(rest);
    format.checked()
}

/// Parses what is behind a `%`, and the number of values that it shows.
fn specification(text: &str) -> Result<(Conversion, usize), String> {
    let wrong = || format!("`%{text}` is no conversion of `printf`");
    let letter = text.chars().last().filter(|c| "diouxXcfFeEgGaAps".contains(*c));
    let letter = letter.ok_or_else(wrong)?;
    let body = &text[..text.len() - 1];
    let flags = body.find(|c| !"-+ #0".contains(c)).unwrap_or(body.len());
    let (flags, body) = body.split_at(flags);
    let has = |flag| flags.contains(flag);
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = |text: &str| match text {
        "" => Ok(0),
        _ => text.parse().ok().filter(|&number| number <= MAX_WIDTH).ok_or_else(wrong),
    };
    let (width, body) = body.split_at(digits(body));
    let (precision, body) = match body.strip_prefix('.') {
        Some(body) => {
            let (precision, body) = body.split_at(digits(body));
            (Some(number(precision)?), body)
        }
        None => (None, body),
    };
    let (count, body) = match body.strip_prefix('v') {
        Some(body) => {
            let (count, body) = body.split_at(digits(body));
            (number(count)?, body)
        }
        None => (1, body),
    };
    let bits = match body {
        "" => None,
        "hh" => Some(8),
        "h" => Some(16),
        // Both are no shorter than what is passed.
        "hl" | "l" | "ll" => None,
        _ => return Err(wrong()),
    };
    let conversion = Conversion {
        left: has('-'),
        plus: has('+'),
        space: has(' '),
        alternative: has('#'),
        zeros: has('0'),
        width: number(width)?,
        precision,
        bits,
        letter,
    };
    Ok((conversion, count))
}

impl Conversion {
    /// The conversion in the text of a format, behind its `%`.
    pub(super) fn restore(text: &str, ty: Type) -> Result<Conversion, String> {
        let (conversion, _) = specification(text)?;
        conversion.check(ty)?;
        Ok(conversion)
    }

    /// The text from which it is parsed again.
    pub(super) fn specification(self) -> String {
        let flags = [
            (self.left, '-'),
            (self.plus, '+'),
            (self.space, ' '),
            (self.alternative, '#'),
            (self.zeros, '0'),
        ];
        let mut text: String = flags.iter().filter(|(has, _)| *has).map(|(_, flag)| flag).collect();
        if self.width > 0 {
            text.push_str(&self.width.to_string());
        }
        if let Some(precision) = self.precision {
            text.push_str(&format!(".{precision}"));
        }
        text.push_str(match self.bits {
            Some(8) => "hh",
            Some(_) => "h",
            None => "",
        });
        text.push(self.letter);
        text
    }

    fn check(self, ty: Type) -> Result<(), String> {
        if ty.is_float() == "fFeEgGaA".contains(self.letter) {
            return Ok(());
        }
        Err(format!("`%{}` for a value of type {ty}", self.letter))
    }

    /// The conversion for a value of this type. Where C does not say what one shows, as the value is of the other kind, it
    /// is that kind's usual one.
    fn fitting(self, ty: Type) -> Result<Conversion, String> {
        let letter = match ty.is_float() {
            _ if self.check(ty).is_ok() || self.letter == 's' => self.letter,
            true => 'f',
            false => 'd',
        };
        let fitting = Conversion { letter, ..self };
        fitting.check(ty)?;
        Ok(fitting)
    }

    /// Whether it shows the text at an address, which is the value.
    pub(super) fn is_text(self) -> bool {
        self.letter == 's'
    }

    /// Shows a text.
    pub(super) fn text(self, string: &str) -> String {
        let length = self.precision.unwrap_or(usize::MAX);
        self.padded(String::new(), string.chars().take(length).collect(), false)
    }

    /// Shows a value of type `ty` with these bits.
    pub(super) fn show(self, bits: u64, ty: Type) -> String {
        let unused = 64 - self.bits.unwrap_or(64).min(ty.bits());
        let signed = (bits << unused).cast_signed() >> unused;
        let unsigned = bits << unused >> unused;
        match self.letter {
            'd' | 'i' => self.integer(sign(signed < 0, self), signed.unsigned_abs().to_string()),
            'u' => self.integer("", unsigned.to_string()),
            'o' => {
                let prefix = if self.alternative && unsigned != 0 { "0" } else { "" };
                // The alternative form begins with a zero, also where no digits are asked for.
                let least = usize::from(self.alternative);
                let precision = self.precision.map(|digits| digits.max(least));
                Conversion { precision, ..self }.integer("", format!("{prefix}{unsigned:o}"))
            }
            'x' | 'p' => {
                let prefix = self.letter == 'p' || (self.alternative && unsigned != 0);
                self.integer(if prefix { "0x" } else { "" }, format!("{unsigned:x}"))
            }
            'X' => {
                let prefix = if self.alternative && unsigned != 0 { "0X" } else { "" };
                self.integer(prefix, format!("{unsigned:X}"))
            }
            'c' => self.padded(String::new(), char::from(bits as u8).to_string(), false),
            _ if ty == types::F32 => self.float(f32::from_bits(bits as u32).into()),
            _ => self.float(f64::from_bits(bits)),
        }
    }

    fn integer(self, prefix: &str, digits: String) -> String {
        let digits = match self.precision {
            Some(0) if digits == "0" => String::new(),
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        self.padded(prefix.to_owned(), digits, self.precision.is_none())
    }

    fn float(self, value: f64) -> String {
        let sign = sign(value.is_sign_negative(), self).to_owned();
        let magnitude = value.abs();
        let upper = self.letter.is_ascii_uppercase();
        let fit = |text: String| if upper { text.to_uppercase() } else { text };
        if !magnitude.is_finite() {
            let text = if magnitude.is_nan() { "nan" } else { "inf" };
            return self.padded(sign, fit(text.to_owned()), false);
        }
        let precision = self.precision.unwrap_or(6);
        let (prefix, digits) = match self.letter.to_ascii_lowercase() {
            'f' => ("", self.with_point(format!("{magnitude:.precision$}"))),
            'e' => ("", self.exponential(magnitude, precision)),
            'a' => ("0x", self.hexadecimal(magnitude)),
            _ => ("", self.shortest(magnitude, precision.max(1))),
        };
        self.padded(sign + &fit(prefix.to_owned()), fit(digits), true)
    }

    /// A point even if there is no digit behind it, where that is asked for.
    fn with_point(self, digits: String) -> String {
        if self.alternative && !digits.contains('.') { digits + "." } else { digits }
    }

    fn exponential(self, value: f64, precision: usize) -> String {
        let text = format!("{value:.precision$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        format!("{}e{sign}{exponent:0>2}", self.with_point(digits.to_owned()))
    }

    /// `%g`: as `%e` shows it if the exponent is small or large, else as `%f` does, without zeros at the end.
    fn shortest(self, value: f64, precision: usize) -> String {
        let exponential = self.exponential(value, precision - 1);
        let (digits, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
        let power: i32 = exponent.parse().unwrap_or(0);
        let trimmed = |digits: &str| match digits.contains('.') && !self.alternative {
            true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => digits.to_owned(),
        };
        match usize::try_from(precision as i64 - 1 - i64::from(power)) {
            Ok(places) if power >= -4 => trimmed(&self.with_point(format!("{value:.places$}"))),
            _ => format!("{}e{exponent}", trimmed(digits)),
        }
    }

    /// `%a` without its prefix.
    fn hexadecimal(self, value: f64) -> String {
        let bits = value.to_bits();
        let (mut fraction, biased) = (bits & ((1 << 52) - 1), bits >> 52 & 0x7ff);
        let mut lead = u64::from(biased != 0);
        let exponent = match (biased, fraction) {
            (0, 0) => 0,
            (0, _) => -1022,
            _ => biased as i64 - 1023,
        };
        let places = self.precision.unwrap_or(13).min(13);
        if places < 13 {
            let shift = 52 - 4 * places as u32;
            let whole = lead << 52 | fraction;
            let (kept, rest, half) = (whole >> shift, whole & ((1 << shift) - 1), 1 << (shift - 1));
            let up = rest > half || (rest == half && kept & 1 == 1);
            let rounded = (kept + u64::from(up)) << shift;
            (lead, fraction) = (rounded >> 52, rounded & ((1 << 52) - 1));
        }
        let mut digits = format!("{fraction:013x}");
        digits.truncate(places);
        if self.precision.is_none() {
            digits.truncate(digits.trim_end_matches('0').len());
        }
        let padding = "0".repeat(self.precision.unwrap_or(0).saturating_sub(13));
        let point = if digits.is_empty() { "" } else { "." };
        self.with_point(format!("{lead}{point}{digits}{padding}")) + &format!("p{exponent:+}")
    }

    /// Fills the text up to the width: with zeros behind the prefix, or with blanks.
    fn padded(self, prefix: String, text: String, may_have_zeros: bool) -> String {
        let missing = self.width.saturating_sub(prefix.chars().count() + text.chars().count());
        match (self.left, self.zeros && may_have_zeros) {
            (true, _) => prefix + &text + &" ".repeat(missing),
            (false, true) => prefix + &"0".repeat(missing) + &text,
            (false, false) => " ".repeat(missing) + &prefix + &text,
        }
    }
}

fn sign(negative: bool, conversion: Conversion) -> &'static str {
    match (negative, conversion.plus, conversion.space) {
        (true, _, _) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};

    fn line(format: &str, values: &[(Type, u64)]) -> String {
        let types: Vec<Type> = values.iter().map(|&(ty, _)| ty).collect();
        let parsed = parse(format, &types).unwrap();
        let again = Format::parse(&parsed.text(), &types).unwrap();
        assert_eq!(again, parsed);
        let mut bits = values.iter().map(|&(_, bits)| bits);
        parsed.line(|_| bits.next(), |address| format!("text{address}")).unwrap()
    }

    /// The expectations are those of the C standard's descriptions.
    #[test]
    fn integers_are_shown_as_in_c() {
        let minus = (I32, u64::from((-42_i32).cast_unsigned()));
        assert_eq!(line("%d|%5d|%-5d|%05d|\n", &[minus; 4]), "-42|  -42|-42  |-0042|");
        assert_eq!(line("%+d % d %.3d", &[(I32, 7); 3]), "+7  7 007");
        assert_eq!(line("%u %x %#X %o", &[(I32, 255); 4]), "255 ff 0XFF 377");
        assert_eq!(line("%#o %#.0o %#.5o", &[(I32, 8); 3]), "010 010 00010");
        assert_eq!(line("%#o %#.0o [%.0o]", &[(I32, 0); 3]), "0 0 []");
        assert_eq!(line("%hhd %hd", &[(I32, 0x1ff80); 2]), "-128 -128");
        assert_eq!(line("%ld %c%%", &[(I64, 1 << 40), (I8, 65)]), "1099511627776 A%");
        assert_eq!(line("%v2d", &[(I32, 1), (I32, 2)]), "1,2");
    }

    #[test]
    fn texts_are_shown_as_in_c() {
        let addresses = [(I32, 1), (I64, 2), (I32, 3), (I32, 4)];
        assert_eq!(line("%s|%7s|%-7s|%.2s", &addresses), "text1|  text2|text3  |te");
    }

    #[test]
    fn values_that_do_not_fit_are_shown_as_what_they_are() {
        let half = (F64, 0.5_f64.to_bits());
        assert_eq!(line("%d|%8x|%.2c", &[half; 3]), "0.500000|0.500000|0.50");
        assert_eq!(line("%f|%4e", &[(I32, 7); 2]), "7|   7");
        let parsed = parse("%d", &[I32, F32]).unwrap();
        assert_eq!(parsed.types().collect::<Vec<_>>(), [I32], "values behind the last conversion");
    }

    #[test]
    fn floats_are_shown_as_in_c() {
        let f = |value: f64| (F64, value.to_bits());
        let single = (F32, u64::from(0.1_f32.to_bits()));
        assert_eq!(line("%f %.2f %8.3f %-8.1f|", &[f(1.5); 4]), "1.500000 1.50    1.500 1.5     |");
        assert_eq!(
            line("%e %.0e %E", &[f(12345.678), f(5.0), f(0.0)]),
            "1.234568e+04 5e+00 0.000000E+00"
        );
        let values = [f(100_000.0), f(1_000_000.0), f(0.0001), f(0.00001), f(2.5)];
        assert_eq!(line("%g %g %g %g %g", &values), "100000 1e+06 0.0001 1e-05 2.5");
        assert_eq!(line("%a %a %.1a", &[f(1.0), f(-0.75), f(1.97)]), "0x1p+0 -0x1.8p-1 0x2.0p+0");
        assert_eq!(
            line("%f %F %010.2f", &[f(f64::INFINITY), f(f64::NAN), f(-3.25)]),
            "inf NAN -000003.25"
        );
        assert_eq!(line("%.9g", &[single]), "0.100000001");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let why = |format, types: &[Type]| parse(format, types).unwrap_err();
        assert_eq!(why("%d", &[]), "no value for `%d`");
        assert_eq!(why("%s", &[F32]), "`%s` for a value of type f32");
        assert_eq!(why("%", &[I32]), "`%` has no conversion");
        assert_eq!(why("%5k", &[I32]), "`%5k` is no conversion of `printf`");
        assert_eq!(why("%2000d", &[I32]), "`%2000d` is no conversion of `printf`");
        assert_eq!(why("%s", &[]), "no value for `%s`");
    }
}
