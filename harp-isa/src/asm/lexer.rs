//! From text to tokens.

use super::error::{AsmError, AsmErrorKind};
use super::number::{self, Number};

/// A token and its place.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    /// The byte offset in the source.
    pub(super) offset: usize,
    pub(super) text: &'a str,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    Symbol(&'a str),
    /// `%name`, without the percent sign.
    Gpr(&'a str),
    /// `@name`, without the sign.
    Pred(&'a str),
    Number(Number),
    Text(String),
    /// One of `# : ? , ( ) + - * / % & | ^` and the backtick.
    Sign(char),
    ShiftLeft,
    ShiftRight,
    /// A newline or semicolon.
    End,
    /// The end of the text; the last token, and only that.
    EndOfText,
}

fn starts_symbol(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '.'
}

fn continues_symbol(c: char) -> bool {
    starts_symbol(c) || c.is_ascii_digit()
}

/// The tokens of `source`.
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, AsmError> {
    let mut lexer = Lexer { source, offset: 0, depth: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let offset = lexer.offset;
        let kind = lexer.next()?;
        let end = kind == Kind::EndOfText;
        tokens.push(Token { kind, offset, text: &source[offset..lexer.offset] });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    offset: usize,
    /// Open parentheses. Within them a percent sign is an operator, outside it starts a register.
    depth: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.offset..]
    }

    fn error(&self, kind: AsmErrorKind) -> AsmError {
        AsmError::new(self.source, self.offset, self.rest(), kind)
    }

    fn skip_blanks(&mut self) -> Result<(), AsmError> {
        loop {
            let rest = self.rest();
            let code = rest.trim_start_matches([' ', '\t', '\r']);
            self.offset += rest.len() - code.len();
            let Some(comment) = code.strip_prefix("/*") else {
                return Ok(());
            };
            let Some(length) = comment.find("*/") else {
                return Err(self.error(AsmErrorKind::UnterminatedComment));
            };
            self.offset += length + "/**/".len();
        }
    }

    fn next(&mut self) -> Result<Kind<'a>, AsmError> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Kind::EndOfText);
        };
        match first {
            '\n' | ';' => {
                self.offset += 1;
                self.depth = 0;
                return Ok(Kind::End);
            }
            '0'..='9' => return self.number(),
            '"' => return self.text(),
            '%' if self.depth == 0 => return Ok(Kind::Gpr(self.word(1))),
            '@' => return Ok(Kind::Pred(self.word(1))),
            c if starts_symbol(c) => return Ok(Kind::Symbol(self.word(0))),
            _ => {}
        }
        if rest.starts_with("<<") || rest.starts_with(">>") {
            self.offset += 2;
            return Ok(if first == '<' { Kind::ShiftLeft } else { Kind::ShiftRight });
        }
        match first {
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            '#' | ':' | '?' | ',' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '`' => {}
            _ => return Err(self.error(AsmErrorKind::UnknownCharacter)),
        }
        self.offset += 1;
        Ok(Kind::Sign(first))
    }

    /// The letters and digits after the first `skip` bytes.
    fn word(&mut self, skip: usize) -> &'a str {
        let rest = &self.rest()[skip..];
        let word = &rest[..rest.find(|c| !continues_symbol(c)).unwrap_or(rest.len())];
        self.offset += skip + word.len();
        word
    }

    fn number(&mut self) -> Result<Kind<'a>, AsmError> {
        let start = self.offset;
        let word = self.word(0);
        number::parse(word)
            .map(Kind::Number)
            .ok_or_else(|| AsmError::new(self.source, start, word, AsmErrorKind::Number))
    }

    fn text(&mut self) -> Result<Kind<'a>, AsmError> {
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.offset += at + 1;
                    return Ok(Kind::Text(text));
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, '\n')) | None => break,
                    Some((_, c)) => text.push(c),
                },
                c => text.push(c),
            }
        }
        Err(self.error(AsmErrorKind::UnterminatedString))
    }
}
