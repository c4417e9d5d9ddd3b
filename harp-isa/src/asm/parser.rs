//! The parser of statements: labels and instructions, which it emits into chunks.
//!
//! A statement that fails is reported and skipped; errors that only follow from it are not reported.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::chunks::{Chunks, Content};
use super::error::{AsmError, AsmErrorKind, AsmErrors, Failure};
use super::lexer::{Kind, Token};
use crate::abi::RegisterRoles;
use crate::arch::Field;
use crate::encoding::{EncodeError, encode};
use crate::error_list::Gathered;
use crate::instruction::Instruction;
use crate::object::{MAX_OBJECT_BYTES, Object, Reference, placeholder};
use crate::opcode::OperandKind;
use crate::operand::Operand;
use crate::table::{Op, Opcode};
use crate::{ArchId, Encoding, Gpr, Pred};

pub(super) struct Parser<'a> {
    source: &'a str,
    /// Ends with [`Kind::EndOfText`].
    pub(super) tokens: Vec<Token<'a>>,
    /// The index of the next token.
    pub(super) position: usize,
    pub(super) arch: ArchId,
    /// The value of each constant; `None` if its definition failed.
    pub(super) constants: HashMap<String, Option<u64>>,
    pub(super) labels: HashSet<&'a str>,
    pub(super) chunks: Chunks,
    errors: Gathered<AsmError>,
    /// Whether it has been reported that the object becomes too large.
    is_too_large: bool,
}

/// An operand as it was written.
struct Written {
    operand: Operand,
    /// The name, if the operand is a reference.
    symbol: Option<String>,
    /// The indices of its tokens.
    tokens: RangeInclusive<usize>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(
        source: &'a str,
        tokens: Vec<Token<'a>>,
        arch: ArchId,
        definitions: &[(&str, i64)],
    ) -> Parser<'a> {
        let word = i64::from(arch.word().bytes());
        let constants = definitions
            .iter()
            .chain(&[("__WORD", word)])
            .map(|&(name, value)| (name.to_owned(), Some(value.cast_unsigned())))
            .collect();
        Parser {
            source,
            tokens,
            position: 0,
            arch,
            constants,
            labels: HashSet::new(),
            chunks: Chunks::new(arch),
            errors: Gathered::new(),
            is_too_large: false,
        }
    }

    pub(super) fn parse(mut self) -> Result<Object, AsmErrors> {
        while self.peek().kind != Kind::EndOfText {
            if let Err(failure) = self.statement() {
                if let Failure::At(tokens, kind) = failure {
                    self.report(tokens, kind);
                }
                self.skip_statement();
            }
        }
        self.errors.finish()?;
        Ok(self.chunks.finish())
    }

    fn report(&mut self, tokens: RangeInclusive<usize>, kind: AsmErrorKind) {
        let source = self.source;
        let (first, last) = (&self.tokens[*tokens.start()], &self.tokens[*tokens.end()]);
        self.errors.push_with(|| AsmError::new(source, first, last, kind));
    }

    /// Goes to the end of the statement, and reports places before it that are not tokens.
    fn skip_statement(&mut self) {
        while !self.at_end() {
            if let Kind::Bad(kind) = &self.peek().kind {
                let kind = kind.clone();
                self.report(self.position..=self.position, kind);
            }
            self.advance();
        }
    }

    /// Whether the statement ends here.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek().kind, Kind::End | Kind::EndOfText)
    }

    /// The next token.
    pub(super) fn peek(&self) -> &Token<'a> {
        &self.tokens[self.position]
    }

    /// Advances to the following token, but never past the end of the text.
    pub(super) fn advance(&mut self) {
        self.position = (self.position + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn take_sign(&mut self, sign: char) -> bool {
        let found = self.peek().kind == Kind::Sign(sign);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn error_at(&self, token: usize, kind: AsmErrorKind) -> Failure {
        self.error_in(token..=token, kind)
    }

    fn error_in(&self, tokens: RangeInclusive<usize>, kind: AsmErrorKind) -> Failure {
        match self.tokens[*tokens.start()].kind {
            // It is reported when the statement is skipped, which starts here or before.
            Kind::Bad(_) => Failure::Reported,
            _ => Failure::At(tokens, kind),
        }
    }

    /// The error `kind` at `token`, unless it may follow from an earlier error.
    pub(super) fn unless_failed(&self, token: usize, kind: AsmErrorKind) -> Failure {
        if self.errors.is_empty() { self.error_at(token, kind) } else { Failure::Reported }
    }

    /// The error `kind` at the next token.
    pub(super) fn error(&self, kind: AsmErrorKind) -> Failure {
        self.error_at(self.position, kind)
    }

    /// The error that `what` is expected at the next token.
    pub(super) fn expected(&self, what: &'static str) -> Failure {
        self.error(AsmErrorKind::Expected(what))
    }

    /// Emits an item; errors are reported at the token with index `token`.
    pub(super) fn emit(
        &mut self,
        token: usize,
        content: Content,
        bytes: &[u8],
        reference: impl FnOnce(u64) -> Option<Reference>,
    ) -> Result<(), Failure> {
        self.check_size(token, bytes.len() as u64)?;
        self.chunks.emit(content, bytes, reference);
        Ok(())
    }

    /// Checks that `more` bytes may be emitted. The error is reported only once.
    pub(super) fn check_size(&mut self, token: usize, more: u64) -> Result<(), Failure> {
        let size = self.chunks.size().saturating_add(more);
        if size <= MAX_OBJECT_BYTES {
            return Ok(());
        }
        if std::mem::replace(&mut self.is_too_large, true) {
            return Err(Failure::Reported);
        }
        Err(self.error_at(token, AsmErrorKind::TooLarge { size, limit: MAX_OBJECT_BYTES }))
    }

    /// Parses a label, an instruction or directive with its end, or just an end.
    fn statement(&mut self) -> Result<(), Failure> {
        match self.peek().kind {
            Kind::End => {
                self.advance();
                return Ok(());
            }
            Kind::Symbol(name) if self.tokens[self.position + 1].kind == Kind::Sign(':') => {
                self.label(name);
                return Ok(());
            }
            Kind::Symbol(name) if name.starts_with('.') => self.directive(name)?,
            Kind::Symbol(_) => self.instruction(None)?,
            Kind::Pred(_) => {
                let guard = self.predicate()?;
                if !self.take_sign('?') {
                    return Err(self.expected("`?` after the predicate that guards an instruction"));
                }
                self.instruction(Some(guard))?;
            }
            _ => return Err(self.expected("a label, an instruction or a directive")),
        }
        if self.at_end() { Ok(()) } else { Err(self.expected("the end of the line or `;`")) }
    }

    fn label(&mut self, name: &'a str) {
        if self.constants.contains_key(name) || !self.labels.insert(name) {
            self.report(self.position..=self.position, AsmErrorKind::AlreadyDefined);
        } else {
            self.chunks.label(name);
        }
        self.advance();
        self.advance();
    }

    fn instruction(&mut self, guard: Option<Pred>) -> Result<(), Failure> {
        let start = self.position;
        let Kind::Symbol(mnemonic) = self.peek().kind else {
            return Err(self.expected("an instruction"));
        };
        let opcode = Opcode::from_mnemonic(mnemonic)
            .ok_or_else(|| self.error(AsmErrorKind::UnknownInstruction))?;
        self.advance();
        let mut written = Vec::new();
        for (index, description) in opcode.operands().iter().enumerate() {
            if index > 0 {
                self.take_sign(',');
            }
            written.push(self.operand_of(opcode, description.kind)?);
        }
        let operands: Vec<Operand> = written.iter().map(|written| written.operand).collect();
        let op = Op::from_operands(opcode, &operands)
            .expect("operands were made to the table's description");
        let mut bytes = Vec::new();
        encode(&Instruction { guard, op }, self.arch, &mut bytes).map_err(|error| {
            self.error_in(place(&error, &written, start), AsmErrorKind::Encode(error))
        })?;
        let symbol = written.into_iter().find_map(|written| written.symbol);
        let arch = self.arch;
        self.emit(start, Content::Code, &bytes, |offset| {
            Reference::from_instruction(symbol?, opcode, offset, arch)
        })
    }

    fn operand_of(&mut self, opcode: Opcode, kind: OperandKind) -> Result<Written, Failure> {
        let first = self.position;
        let (operand, symbol) = match kind {
            OperandKind::Gpr(_) => (self.register()?.into(), None),
            OperandKind::Pred(_) => (self.predicate()?.into(), None),
            OperandKind::Imm | OperandKind::Rel => self.immediate(opcode)?,
        };
        Ok(Written { operand, symbol, tokens: first..=self.position - 1 })
    }

    fn register(&mut self) -> Result<Gpr, Failure> {
        let arch = self.arch;
        let roles = RegisterRoles::new(arch);
        let Kind::Gpr(name) = self.peek().kind else {
            return Err(self.expected_register());
        };
        let register = match name {
            "ra" => Some(roles.return_address()),
            "sp" => Some(roles.stack_pointer()),
            "fp" => Some(roles.frame_pointer()),
            name => {
                let own = self.numbered(name, 'r', Field::Gprs, arch.gprs())?.map(Gpr::new);
                let shared = self.numbered(name, 's', Field::SharedGprs, arch.shared_gprs())?;
                own.or(shared.and_then(|number| arch.shared_gpr(number)))
            }
        };
        let register = register.ok_or_else(|| self.expected_register())?;
        self.advance();
        Ok(register)
    }

    fn expected_register(&self) -> Failure {
        self.expected(match self.arch.has_shared() {
            true => "a register `%rN`, `%sN`, `%ra`, `%sp` or `%fp`",
            false => "a register `%rN`, `%ra`, `%sp` or `%fp`",
        })
    }

    fn predicate(&mut self) -> Result<Pred, Failure> {
        let arch = self.arch;
        let Kind::Pred(name) = self.peek().kind else {
            return Err(self.expected_predicate());
        };
        let own = self.numbered(name, 'p', Field::Preds, arch.preds())?.map(Pred::new);
        let shared = self.numbered(name, 's', Field::SharedPreds, arch.shared_preds())?;
        let predicate = own.or(shared.and_then(|number| arch.shared_pred(number)));
        let predicate = predicate.ok_or_else(|| self.expected_predicate())?;
        self.advance();
        Ok(predicate)
    }

    fn expected_predicate(&self) -> Failure {
        self.expected(match self.arch.shared_preds() {
            0 => "a predicate `@pN`",
            _ => "a predicate `@pN` or `@sN`",
        })
    }

    /// The number in `name`, if it is `prefix` and digits, of one of `limit` registers. On machines without shared
    /// registers the encoder checks the number.
    fn numbered(
        &self,
        name: &str,
        prefix: char,
        field: Field,
        limit: u8,
    ) -> Result<Option<u8>, Failure> {
        let arch = self.arch;
        match numbered(name, prefix) {
            Some(given) if arch.has_shared() && given >= limit => {
                Err(self.error(AsmErrorKind::NoRegister { field, given, limit, arch }))
            }
            number => Ok(number),
        }
    }

    /// Takes the next token, which should be `what`, a name in double quotes. It must not contain NUL, which ends
    /// names in object files.
    pub(super) fn quoted_name(&self, what: &'static str) -> Result<String, Failure> {
        match &self.peek().kind {
            Kind::Text(name) if name.contains('\0') => Err(self.error(AsmErrorKind::NulInName)),
            Kind::Text(name) => Ok(name.clone()),
            _ => Err(self.expected(what)),
        }
    }

    /// An immediate, with the name if it is a reference.
    fn immediate(&mut self, opcode: Opcode) -> Result<(Operand, Option<String>), Failure> {
        let name = match &self.peek().kind {
            Kind::Symbol(name) if !self.constants.contains_key(*name) => Some((*name).to_owned()),
            Kind::Text(_) => Some(self.quoted_name("a name in double quotes")?),
            _ => None,
        };
        if name.is_some() {
            self.advance();
            return Ok((Operand::Imm(placeholder(opcode, self.arch)), name));
        }
        let value = match self.peek().kind {
            Kind::Symbol(_) | Kind::Sign('(') => self.constant()?,
            Kind::Sign('#') => {
                self.advance();
                self.immediate_number()?
            }
            _ => return Err(self.expected("`#` and a number, a symbol or `(`")),
        };
        // The byte encoding holds a whole word, so unsigned numbers fit as well as signed ones.
        let word = self.arch.word();
        let value = match self.arch.encoding() {
            Encoding::Byte if value <= word.mask() => word.sign_extend(value),
            _ => value.cast_signed(),
        };
        Ok((Operand::Imm(value), None))
    }
}

/// The number in `name`, which is `prefix` and digits.
fn numbered(name: &str, prefix: char) -> Option<u8> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The tokens at which an encoding error is reported.
fn place(error: &EncodeError, written: &[Written], mnemonic: usize) -> RangeInclusive<usize> {
    let guilty = |written: &&Written| match (error, written.operand) {
        (EncodeError::Immediate { .. }, Operand::Imm(_)) => true,
        (EncodeError::Register { class, given, .. }, Operand::Gpr(reg)) => {
            *class == crate::RegClass::Gpr && *given == reg.index()
        }
        (EncodeError::Register { class, given, .. }, Operand::Pred(reg)) => {
            *class == crate::RegClass::Pred && *given == reg.index()
        }
        _ => false,
    };
    let found = written.iter().find(guilty);
    found.map_or(mnemonic..=mnemonic, |written| written.tokens.clone())
}
