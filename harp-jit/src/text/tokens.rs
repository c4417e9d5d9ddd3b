//! CLIF text with one token per line.
//!
//! Cranelift's reader reports places by line only. So it gets each token on a line of its own, which is the
//! same text to it, and a line there is a line and column here. Comments and the lines before the first
//! function are removed: the reader would look up the targets named there.
//!
//! Text that makes the reader panic or take all of the host's memory is refused here.

use std::ops::Range;

use super::error::TextErrorKind;

/// The largest number of a value, block, slot and so on. The reader allocates a table of that size.
const MAX_ENTITY: u32 = 1 << 20;

/// Words that begin a line before the first function.
const HEADERS: [&str; 4] = ["test", "set", "target", "feature"];

/// The prefixes of entity numbers.
const ENTITIES: [&str; 15] = [
    "v",
    "block",
    "ss",
    "gv",
    "mt",
    "const",
    "fn",
    "sig",
    "u",
    "userextname",
    "extable",
    "tag",
    "region",
    "ret",
    "exn",
];

/// A text as tokens.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The text with one token per line.
    pub(super) text: String,
    /// The byte range of each line's token in the original text.
    pub(super) spans: Vec<Range<usize>>,
    /// The comments from their `;` to the line's end.
    pub(super) comments: Vec<Range<usize>>,
    /// The lines before the first function.
    pub(super) header: Vec<Range<usize>>,
}

impl Tokens {
    /// Splits `text` into tokens.
    ///
    /// # Errors
    ///
    /// The byte range of the first error, and the error.
    pub(super) fn new(text: &str) -> Result<Tokens, (Range<usize>, TextErrorKind)> {
        let mut tokens = Tokens::default();
        let mut at = tokens.take_header(text);
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let length = match c {
                c if is_blank(c) => {
                    at += 1;
                    continue;
                }
                ';' => {
                    let length = rest.find('\n').unwrap_or(rest.len());
                    tokens.comments.push(at..at + length);
                    at += length;
                    continue;
                }
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                c if is_punctuation(c) => 1,
                c if is_of_a_word(c) => word_length(rest),
                c => return Err((at..at + c.len_utf8(), TextErrorKind::UnknownCharacter)),
            };
            let token = &rest[..length];
            check_entities(token).map_err(|(part, kind)| (at + part.start..at + part.end, kind))?;
            tokens.text.push_str(&token.replace('\n', " "));
            tokens.text.push('\n');
            tokens.spans.push(at..at + length);
            at += length;
        }
        Ok(tokens)
    }

    /// Takes the lines before the functions; returns the offset where these begin.
    fn take_header(&mut self, text: &str) -> usize {
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let trimmed = line.trim();
            let start = at + (line.len() - line.trim_start().len());
            let span = start..start + trimmed.len();
            if trimmed.starts_with(';') {
                self.comments.push(span);
            } else if trimmed.split_whitespace().next().is_some_and(|word| HEADERS.contains(&word))
            {
                self.header.push(span);
            } else if !trimmed.is_empty() {
                break;
            }
            at += line.len();
        }
        at
    }

    /// The range of a line that the reader reports, counted from 1; the end of the text for lines beyond it.
    pub(super) fn span(&self, line: usize, text: &str) -> Range<usize> {
        let span = line.checked_sub(1).and_then(|index| self.spans.get(index));
        span.cloned().unwrap_or(text.trim_end().len()..text.trim_end().len())
    }

    /// The range of the token `name`, if it is on the original line of that line's token or after it; else
    /// the range of that token.
    pub(super) fn named_on_line(&self, line: usize, name: &str, text: &str) -> Range<usize> {
        let span = self.span(line, text);
        let end = text[span.start..].find('\n').map_or(text.len(), |length| span.start + length);
        let after = self.spans.iter().skip(line.saturating_sub(1));
        let mut on_line = after.take_while(|span| span.start < end);
        on_line.find(|span| &text[(*span).clone()] == name).cloned().unwrap_or(span)
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\x09'..='\x0d')
}

/// Whether the character is always a token of its own (but see [`word_length`]).
fn is_punctuation(c: char) -> bool {
    matches!(c, '(' | ')' | '{' | '}' | '[' | ']' | ',' | ':' | '=')
}

fn is_of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '%' | '.' | '+' | '-' | '*' | '<' | '>' | '!' | '#' | '@')
}

/// The length of the word at the beginning of `text`: up to a blank or punctuation. The colon of a NaN's
/// payload, `NaN:0x1`, is part of the word.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    for c in text.chars() {
        let payload = c == ':' && text[..length].ends_with("NaN");
        if !is_of_a_word(c) && !payload {
            break;
        }
        length += c.len_utf8();
    }
    length
}

/// Refuses tokens with entities that the reader cannot handle.
fn check_entities(token: &str) -> Result<(), (Range<usize>, TextErrorKind)> {
    if token.starts_with(['%', '"', '#']) {
        return Ok(());
    }
    let mut start = 0;
    for part in token.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let span = start..start + part.len();
        start = span.end + 1;
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &part[name.len()..];
        if part == "dyn_scale_target_const" || !number.is_empty() && ["dt", "dss"].contains(&name) {
            return Err((span, TextErrorKind::DynamicVectors));
        }
        // A number beyond `u32` does not make an entity to the reader.
        let number: u32 = number.parse().unwrap_or(0);
        if ENTITIES.contains(&name) && number > MAX_ENTITY {
            return Err((span, TextErrorKind::EntityNumber { given: number, limit: MAX_ENTITY }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        Tokens::new(text).expect("a text").text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn punctuation_separates_and_words_stay_whole() {
        assert_eq!(
            tokens("block0(v1: i32):;c\n v2=iadd_imm.i32 v1,-0x1_0 ; c"),
            [
                "block0",
                "(",
                "v1",
                ":",
                "i32",
                ")",
                ":",
                "v2",
                "=",
                "iadd_imm.i32",
                "v1",
                ",",
                "-0x1_0"
            ]
        );
        assert_eq!(tokens("f32const -sNaN:0x1"), ["f32const", "-sNaN:0x1"]);
        assert_eq!(tokens("-> u0:1 v0+8"), ["->", "u0", ":", "1", "v0+8"]);
    }

    #[test]
    fn places_are_those_of_the_original_text() {
        let text = "; a\n test run\n\nfunction %f()";
        let tokens = Tokens::new(text).expect("a text");
        assert_eq!(tokens.comments.iter().map(|s| &text[s.clone()]).collect::<Vec<_>>(), ["; a"]);
        assert_eq!(
            tokens.header.iter().map(|s| &text[s.clone()]).collect::<Vec<_>>(),
            ["test run"]
        );
        assert_eq!(tokens.spans[1], 24..26);
        assert_eq!(&text[24..26], "%f");
        assert_eq!(tokens.span(99, text), text.len()..text.len());
    }

    #[test]
    fn entities_beyond_reason_are_refused() {
        let kind = |text| Tokens::new(text).map(|_| ()).expect_err("it is wrong");
        assert_eq!(
            kind("x v4294967294"),
            (2..13, TextErrorKind::EntityNumber { given: 4_294_967_294, limit: MAX_ENTITY })
        );
        assert_eq!(kind("splat.dt0 v1"), (6..9, TextErrorKind::DynamicVectors));
        assert_eq!(kind("a ä"), (2..4, TextErrorKind::UnknownCharacter));
        assert_eq!(tokens("%v4294967294 v99999999999"), ["%v4294967294", "v99999999999"]);
    }
}
