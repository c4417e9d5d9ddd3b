//! Directives.

use super::MAX_OBJECT_BYTES;
use super::chunks::Content;
use super::error::{AsmError, AsmErrorKind};
use super::lexer::Kind;
use super::parser::Parser;
use crate::object::{Permissions, Reference};

impl<'a> Parser<'a> {
    /// The directive `name`, which is the next token.
    pub(super) fn directive(&mut self, name: &str) -> Result<(), AsmError> {
        let run: fn(&mut Self) -> Result<(), AsmError> = match name {
            ".align" => Self::align,
            ".perm" => Self::permissions,
            ".word" => Self::words,
            ".byte" => Self::byte,
            ".space" => Self::space,
            ".string" => Self::string,
            ".def" => Self::define,
            ".entry" => |parser| {
                parser.chunks.mark_entry();
                Ok(())
            },
            ".global" => |parser| {
                parser.chunks.mark_global();
                Ok(())
            },
            _ => return Err(self.error(AsmErrorKind::UnknownDirective)),
        };
        self.advance();
        run(self)
    }

    fn align(&mut self) -> Result<(), AsmError> {
        let alignment = self.number(0..=self.arch.word().mask().into())?;
        self.chunks.align(alignment);
        Ok(())
    }

    fn permissions(&mut self) -> Result<(), AsmError> {
        const WHAT: &str = "permissions out of `r`, `w` and `x`";
        let Kind::Symbol(letters) = self.peek().kind else {
            return Err(self.expected(WHAT));
        };
        let permissions = letters
            .chars()
            .map(|letter| match letter {
                'r' => Some(Permissions::READ),
                'w' => Some(Permissions::WRITE),
                'x' => Some(Permissions::EXECUTE),
                _ => None,
            })
            .collect::<Option<Permissions>>()
            .ok_or_else(|| self.expected(WHAT))?;
        self.chunks.permissions(permissions);
        self.advance();
        Ok(())
    }

    fn words(&mut self) -> Result<(), AsmError> {
        let mut first = true;
        loop {
            match self.peek().kind {
                Kind::End | Kind::EndOfText if !first => return Ok(()),
                Kind::Symbol(name) if !self.constants.contains_key(name) => {
                    self.word_reference(name)?;
                }
                _ => self.word()?,
            }
            first = false;
            if self.take_sign(',') && matches!(self.peek().kind, Kind::End | Kind::EndOfText) {
                return Err(self.expected("a number or a symbol after the comma"));
            }
        }
    }

    fn word_reference(&mut self, name: &str) -> Result<(), AsmError> {
        let (arch, token) = (self.arch, self.position);
        let bytes = [0; 8];
        let size = usize::from(arch.word().bytes());
        self.emit(token, Content::Data, &bytes[..size], |offset| {
            Some(Reference::from_word(name, offset, arch))
        })?;
        self.advance();
        Ok(())
    }

    fn word(&mut self) -> Result<(), AsmError> {
        let (word, token) = (self.arch.word(), self.position);
        let value = self.number(-(1 << (word.bits() - 1))..=word.mask().into())?;
        let bytes = &value.to_le_bytes()[..word.bytes().into()];
        self.emit(token, Content::Data, bytes, |_| None)
    }

    fn byte(&mut self) -> Result<(), AsmError> {
        let token = self.position;
        let value = self.number(i8::MIN.into()..=u8::MAX.into())?;
        self.emit(token, Content::Data, &value.to_le_bytes()[..1], |_| None)
    }

    fn space(&mut self) -> Result<(), AsmError> {
        let token = self.position;
        let words = self.number(0..=MAX_OBJECT_BYTES.into())?;
        let bytes = words * u64::from(self.arch.word().bytes());
        self.check_size(token, bytes)?;
        self.emit(token, Content::Data, &vec![0; bytes as usize], |_| None)
    }

    fn string(&mut self) -> Result<(), AsmError> {
        let token = self.position;
        let Kind::Text(text) = &self.peek().kind else {
            return Err(self.expected("a string in double quotes"));
        };
        let bytes = [text.as_bytes(), &[0]].concat();
        self.emit(token, Content::Data, &bytes, |_| None)?;
        self.advance();
        Ok(())
    }

    fn define(&mut self) -> Result<(), AsmError> {
        let Kind::Symbol(name) = self.peek().kind else {
            return Err(self.expected("the name of a constant"));
        };
        if self.constants.contains_key(name) || self.labels.contains(name) {
            return Err(self.error(AsmErrorKind::AlreadyDefined));
        }
        self.advance();
        let value = self.constant()?;
        self.constants.insert(name.to_owned(), value);
        Ok(())
    }

    /// A number within `limits`; it is taken as unsigned if that fits, else as signed.
    fn number(&mut self, limits: std::ops::RangeInclusive<i128>) -> Result<u64, AsmError> {
        let token = self.position;
        let value = self.constant()?;
        let (unsigned, signed) = (i128::from(value), i128::from(value.cast_signed()));
        if limits.contains(&unsigned) || limits.contains(&signed) {
            return Ok(value);
        }
        let is_negative = self.tokens[token].kind == Kind::Sign('-');
        let given = if is_negative { signed } else { unsigned };
        Err(self.error_at(token, AsmErrorKind::OutOfRange { given, limits }))
    }
}
