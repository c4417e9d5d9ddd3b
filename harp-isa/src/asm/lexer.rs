//! The lexer. Text that is not a token becomes a token with an error, so that the text is read to its end.

use super::error::AsmErrorKind;
use super::number::{self, Number};
use crate::symbol::{continues_symbol, starts_symbol};

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
    /// The end of the text, which is always the last token.
    EndOfText,
    /// Text that is not a token, and why. No rule of the grammar accepts it.
    Bad(AsmErrorKind),
}

/// The tokens of `source`.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { source, offset: 0, depth: 0 };
    let mut tokens = Vec::new();
    loop {
        let is_comment_open = lexer.skip_blanks();
        let offset = lexer.offset;
        let kind = if is_comment_open {
            lexer.offset = source.len();
            Kind::Bad(AsmErrorKind::UnterminatedComment)
        } else {
            lexer.next()
        };
        let end = kind == Kind::EndOfText;
        tokens.push(Token { kind, offset, text: &source[offset..lexer.offset] });
        if end {
            return tokens;
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

    /// Skips blanks and comments. Returns whether it stopped at a comment without an end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let code = rest.trim_start_matches([' ', '\t', '\r']);
            self.offset += rest.len() - code.len();
            let Some(comment) = code.strip_prefix("/*") else {
                return false;
            };
            let Some(length) = comment.find("*/") else {
                return true;
            };
            self.offset += length + "/**/".len();
        }
    }

    fn next(&mut self) -> Kind<'a> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Kind::EndOfText;
        };
        match first {
            '\n' | ';' => {
                self.offset += 1;
                self.depth = 0;
                return Kind::End;
            }
            '0'..='9' => return self.number(),
            '"' => return self.text(),
            '%' if self.depth == 0 => return Kind::Gpr(self.word(1)),
            '@' => return Kind::Pred(self.word(1)),
            c if starts_symbol(c) => return Kind::Symbol(self.word(0)),
            _ => {}
        }
        if rest.starts_with("<<") || rest.starts_with(">>") {
            self.offset += 2;
            return if first == '<' { Kind::ShiftLeft } else { Kind::ShiftRight };
        }
        self.offset += first.len_utf8();
        match first {
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            '#' | ':' | '?' | ',' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '`' => {}
            _ => return Kind::Bad(AsmErrorKind::UnknownCharacter),
        }
        Kind::Sign(first)
    }

    /// The letters and digits after the first `skip` bytes.
    fn word(&mut self, skip: usize) -> &'a str {
        let rest = &self.rest()[skip..];
        let word = &rest[..rest.find(|c| !continues_symbol(c)).unwrap_or(rest.len())];
        self.offset += skip + word.len();
        word
    }

    fn number(&mut self) -> Kind<'a> {
        let number = number::parse(self.word(0));
        number.map_or(Kind::Bad(AsmErrorKind::Number), Kind::Number)
    }

    fn text(&mut self) -> Kind<'a> {
        let rest = self.rest();
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.offset += at + 1;
                    return Kind::Text(text);
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
        self.offset += rest.find('\n').unwrap_or(rest.len());
        Kind::Bad(AsmErrorKind::UnterminatedString)
    }
}
