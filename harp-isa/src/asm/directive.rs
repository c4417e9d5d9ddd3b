//! Directives.

use super::chunks::{Content, Header};
use super::error::{AsmErrorKind, Failure};
use super::lexer::Kind;
use super::parser::Parser;
use crate::object::{MAX_OBJECT_BYTES, Permissions, Reference};

const MARKS: &str = "letters out of `rwx`, `g` (global) and `e` (entry) in double quotes";

fn permission(letter: char) -> Option<Permissions> {
    match letter {
        'r' => Some(Permissions::READ),
        'w' => Some(Permissions::WRITE),
        'x' => Some(Permissions::EXECUTE),
        _ => None,
    }
}

impl<'a> Parser<'a> {
    /// Parses the directive `name`, which is the next token.
    pub(super) fn directive(&mut self, name: &str) -> Result<(), Failure> {
        let run: fn(&mut Self) -> Result<(), Failure> = match name {
            ".align" => Self::align,
            ".perm" => Self::permissions,
            ".word" => Self::words,
            ".byte" => Self::byte,
            ".space" => Self::space,
            ".string" => Self::string,
            ".def" => Self::define,
            ".chunk" => Self::chunk,
            ".ref" => Self::reference,
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

    fn align(&mut self) -> Result<(), Failure> {
        let alignment = self.number(0..=self.arch.word().mask().into())?;
        self.chunks.align(alignment);
        Ok(())
    }

    fn permissions(&mut self) -> Result<(), Failure> {
        const WHAT: &str = "permissions out of `r`, `w` and `x`";
        let Kind::Symbol(letters) = self.peek().kind else {
            return Err(self.expected(WHAT));
        };
        let permissions = letters
            .chars()
            .map(permission)
            .collect::<Option<Permissions>>()
            .ok_or_else(|| self.expected(WHAT))?;
        self.chunks.permissions(permissions);
        self.advance();
        Ok(())
    }

    fn words(&mut self) -> Result<(), Failure> {
        let mut first = true;
        loop {
            match self.peek().kind {
                _ if !first && self.at_end() => return Ok(()),
                Kind::Symbol(name) if !self.constants.contains_key(name) => {
                    self.word_reference(name.to_owned())?;
                }
                Kind::Text(_) => {
                    let name = self.quoted_name("a name in double quotes")?;
                    self.word_reference(name)?;
                }
                _ => self.word()?,
            }
            first = false;
            if self.take_sign(',') && self.at_end() {
                return Err(self.expected("a number or a symbol after the comma"));
            }
        }
    }

    fn word_reference(&mut self, name: String) -> Result<(), Failure> {
        let (arch, token) = (self.arch, self.position);
        let bytes = [0; 8];
        let size = usize::from(arch.word().bytes());
        self.emit(token, Content::Data, &bytes[..size], |offset| {
            Some(Reference::from_word(name, offset, arch))
        })?;
        self.advance();
        Ok(())
    }

    fn word(&mut self) -> Result<(), Failure> {
        let (word, token) = (self.arch.word(), self.position);
        let value = self.number(-(1 << (word.bits() - 1))..=word.mask().into())?;
        let bytes = &value.to_le_bytes()[..word.bytes().into()];
        self.emit(token, Content::Data, bytes, |_| None)
    }

    fn byte(&mut self) -> Result<(), Failure> {
        let token = self.position;
        let value = self.number(i8::MIN.into()..=u8::MAX.into())?;
        self.emit(token, Content::Data, &value.to_le_bytes()[..1], |_| None)
    }

    fn space(&mut self) -> Result<(), Failure> {
        let token = self.position;
        let words = self.number(0..=MAX_OBJECT_BYTES.into())?;
        let bytes = words * u64::from(self.arch.word().bytes());
        self.check_size(token, bytes)?;
        self.emit(token, Content::Data, &vec![0; bytes as usize], |_| None)
    }

    fn string(&mut self) -> Result<(), Failure> {
        let token = self.position;
        let Kind::Text(text) = &self.peek().kind else {
            return Err(self.expected("a string in double quotes"));
        };
        let bytes = [text.as_bytes(), &[0]].concat();
        self.emit(token, Content::Data, &bytes, |_| None)?;
        self.advance();
        Ok(())
    }

    fn define(&mut self) -> Result<(), Failure> {
        let Kind::Symbol(name) = self.peek().kind else {
            return Err(self.expected("the name of a constant"));
        };
        if self.constants.contains_key(name) || self.labels.contains(name) {
            return Err(self.error(AsmErrorKind::AlreadyDefined));
        }
        self.advance();
        let value = self.constant();
        let known = value.as_ref().ok().copied();
        self.constants.insert(name.to_owned(), known);
        value.map(|_| ())
    }

    /// `.chunk "name" "rwxge" alignment [address]`
    fn chunk(&mut self) -> Result<(), Failure> {
        let limit = i128::from(self.arch.word().mask());
        let name = self.quoted_name("the name of the chunk in double quotes")?;
        self.advance();
        let mut header =
            Header { name, entry: false, global: false, permissions: Permissions::empty() };
        self.take_sign(',');
        let marks = self.position;
        for letter in self.quoted(MARKS)?.chars() {
            match permission(letter) {
                Some(permission) => header.permissions |= permission,
                None if letter == 'g' => header.global = true,
                None if letter == 'e' => header.entry = true,
                None => return Err(self.error_at(marks, AsmErrorKind::Expected(MARKS))),
            }
        }
        self.take_sign(',');
        let alignment = self.number(0..=limit)?;
        let ends = !self.take_sign(',') && self.at_end();
        // In object files 0 marks a chunk that is not bound to an address.
        let address = if ends { None } else { Some(self.number(1..=limit)?) };
        self.chunks.begin(header, alignment, address);
        Ok(())
    }

    /// `.ref "name" "r" base_offset byte_offset size_bits shift`
    fn reference(&mut self) -> Result<(), Failure> {
        const KIND: &str = "`\"r\"` for a distance or `\"\"` for an address";
        let directive = self.position - 1;
        let limit = i128::from(self.arch.word().mask());
        let name = self.quoted_name("the name that is referred to in double quotes")?;
        self.advance();
        self.take_sign(',');
        let kind = self.position;
        let relative = match self.quoted(KIND)?.as_str() {
            "r" => true,
            "" => false,
            _ => return Err(self.error_at(kind, AsmErrorKind::Expected(KIND))),
        };
        let mut numbers = [0; 4];
        let limits = [limit, limit, self.arch.word().bits().into(), u8::MAX.into()];
        for (number, limit) in numbers.iter_mut().zip(limits) {
            self.take_sign(',');
            *number = self.number(0..=limit)?;
        }
        let [base_offset, byte_offset, size_bits, shift] = numbers;
        let (size_bits, shift) = (size_bits as u8, shift as u8);
        let reference = Reference { name, relative, base_offset, byte_offset, size_bits, shift };
        if self.chunks.refer(reference) {
            return Ok(());
        }
        Err(self.unless_failed(directive, AsmErrorKind::NoChunk))
    }

    fn quoted(&mut self, what: &'static str) -> Result<String, Failure> {
        let Kind::Text(text) = &self.peek().kind else {
            return Err(self.expected(what));
        };
        let text = text.clone();
        self.advance();
        Ok(text)
    }

    /// A number within `limits`, taken as unsigned if that fits, else as signed.
    fn number(&mut self, limits: std::ops::RangeInclusive<i128>) -> Result<u64, Failure> {
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
