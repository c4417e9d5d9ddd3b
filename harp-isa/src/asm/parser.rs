//! Statements: labels, instructions, and the way from a line to a chunk.

use std::collections::{HashMap, HashSet};

use super::MAX_OBJECT_BYTES;
use super::chunks::{Chunks, Content};
use super::error::{AsmError, AsmErrorKind};
use super::lexer::{Kind, Token};
use crate::abi::RegisterRoles;
use crate::encoding::{EncodeError, encode};
use crate::instruction::{Instruction, Operand};
use crate::object::{Object, Reference, placeholder};
use crate::opcode::OperandKind;
use crate::table::{Op, Opcode};
use crate::{ArchId, Encoding, Gpr, Pred};

pub(super) struct Parser<'a> {
    source: &'a str,
    /// Ends with [`Kind::EndOfText`].
    pub(super) tokens: Vec<Token<'a>>,
    /// The index of the next token.
    pub(super) position: usize,
    pub(super) arch: ArchId,
    pub(super) constants: HashMap<String, u64>,
    pub(super) labels: HashSet<&'a str>,
    pub(super) chunks: Chunks,
}

/// An operand as it was written.
struct Written<'a> {
    operand: Operand,
    /// The name, if the operand is a reference.
    symbol: Option<&'a str>,
    /// The index of its token.
    token: usize,
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
            .map(|&(name, value)| (name.to_owned(), value.cast_unsigned()))
            .collect();
        let (labels, chunks) = (HashSet::new(), Chunks::new(arch));
        Parser { source, tokens, position: 0, arch, constants, labels, chunks }
    }

    pub(super) fn parse(mut self) -> Result<Object, AsmError> {
        while self.peek().kind != Kind::EndOfText {
            self.statement()?;
        }
        Ok(self.chunks.finish())
    }

    /// The next token.
    pub(super) fn peek(&self) -> &Token<'a> {
        &self.tokens[self.position]
    }

    /// Goes on to the token after it. The end of the text is never passed.
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

    pub(super) fn error_at(&self, token: usize, kind: AsmErrorKind) -> AsmError {
        let Token { offset, text, .. } = self.tokens[token];
        AsmError::new(self.source, offset, text, kind)
    }

    /// The error `kind` at the next token.
    pub(super) fn error(&self, kind: AsmErrorKind) -> AsmError {
        self.error_at(self.position, kind)
    }

    /// The next token should be `what`.
    pub(super) fn expected(&self, what: &'static str) -> AsmError {
        self.error(AsmErrorKind::Expected(what))
    }

    /// Emits an item, which the token at index `token` stands for.
    pub(super) fn emit(
        &mut self,
        token: usize,
        content: Content,
        bytes: &[u8],
        reference: impl FnOnce(u64) -> Option<Reference>,
    ) -> Result<(), AsmError> {
        self.check_size(token, bytes.len() as u64)?;
        self.chunks.emit(content, bytes, reference);
        Ok(())
    }

    /// Whether `more` bytes may be emitted.
    pub(super) fn check_size(&self, token: usize, more: u64) -> Result<(), AsmError> {
        let size = self.chunks.size().saturating_add(more);
        if size > MAX_OBJECT_BYTES {
            let kind = AsmErrorKind::TooLarge { size, limit: MAX_OBJECT_BYTES };
            return Err(self.error_at(token, kind));
        }
        Ok(())
    }

    /// A label, or an instruction or directive with its end, or just an end.
    fn statement(&mut self) -> Result<(), AsmError> {
        match self.peek().kind {
            Kind::End => {
                self.advance();
                return Ok(());
            }
            Kind::Symbol(name) if self.tokens[self.position + 1].kind == Kind::Sign(':') => {
                return self.label(name);
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
        match self.peek().kind {
            Kind::End | Kind::EndOfText => Ok(()),
            _ => Err(self.expected("the end of the line or `;`")),
        }
    }

    fn label(&mut self, name: &'a str) -> Result<(), AsmError> {
        if self.constants.contains_key(name) || !self.labels.insert(name) {
            return Err(self.error(AsmErrorKind::AlreadyDefined));
        }
        self.chunks.label(name);
        self.advance();
        self.advance();
        Ok(())
    }

    fn instruction(&mut self, guard: Option<Pred>) -> Result<(), AsmError> {
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
            self.error_at(place(&error, &written, start), AsmErrorKind::Encode(error))
        })?;
        let symbol = written.iter().find_map(|written| written.symbol);
        let arch = self.arch;
        self.emit(start, Content::Code, &bytes, |offset| {
            Reference::from_instruction(symbol?, opcode, offset, arch)
        })
    }

    fn operand_of(&mut self, opcode: Opcode, kind: OperandKind) -> Result<Written<'a>, AsmError> {
        let token = self.position;
        let (operand, symbol) = match kind {
            OperandKind::Gpr(_) => (self.register()?.into(), None),
            OperandKind::Pred(_) => (self.predicate()?.into(), None),
            OperandKind::Imm | OperandKind::Rel => self.immediate(opcode)?,
        };
        Ok(Written { operand, symbol, token })
    }

    fn register(&mut self) -> Result<Gpr, AsmError> {
        let roles = RegisterRoles::new(self.arch);
        let register = match self.peek().kind {
            Kind::Gpr("ra") => Some(roles.return_address()),
            Kind::Gpr("sp") => Some(roles.stack_pointer()),
            Kind::Gpr("fp") => Some(roles.frame_pointer()),
            Kind::Gpr(name) => numbered(name, 'r').map(Gpr::new),
            _ => None,
        };
        let register =
            register.ok_or_else(|| self.expected("a register `%rN`, `%ra`, `%sp` or `%fp`"))?;
        self.advance();
        Ok(register)
    }

    fn predicate(&mut self) -> Result<Pred, AsmError> {
        let predicate = match self.peek().kind {
            Kind::Pred(name) => numbered(name, 'p').map(Pred::new),
            _ => None,
        };
        let predicate = predicate.ok_or_else(|| self.expected("a predicate `@pN`"))?;
        self.advance();
        Ok(predicate)
    }

    /// An immediate; with the name if it is a reference.
    fn immediate(&mut self, opcode: Opcode) -> Result<(Operand, Option<&'a str>), AsmError> {
        let value = match self.peek().kind {
            Kind::Symbol(name) if !self.constants.contains_key(name) => {
                self.advance();
                return Ok((Operand::Imm(placeholder(opcode, self.arch)), Some(name)));
            }
            Kind::Symbol(_) | Kind::Sign('(') => self.constant()?,
            Kind::Sign('#') => {
                self.advance();
                self.immediate_number()?
            }
            _ => return Err(self.expected("`#` and a number, a symbol or `(`")),
        };
        // The byte encoding keeps a whole word, which unsigned numbers fill as well as signed ones.
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

/// The token that an encoding error is about.
fn place(error: &EncodeError, written: &[Written<'_>], mnemonic: usize) -> usize {
    let guilty = |written: &&Written<'_>| match (error, written.operand) {
        (EncodeError::Immediate { .. }, Operand::Imm(_)) => true,
        (EncodeError::Register { class, given, .. }, Operand::Gpr(reg)) => {
            *class == crate::RegClass::Gpr && *given == reg.index()
        }
        (EncodeError::Register { class, given, .. }, Operand::Pred(reg)) => {
            *class == crate::RegClass::Pred && *given == reg.index()
        }
        _ => false,
    };
    written.iter().find(guilty).map_or(mnemonic, |written| written.token)
}
