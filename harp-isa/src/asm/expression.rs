//! Literals and expressions, which have a value at assembly time.

use super::error::{AsmErrorKind, Failure};
use super::lexer::Kind;
use super::number::{Number, float_bits};
use super::parser::Parser;

/// How many parentheses may be open at once, because nesting takes stack in the assembler.
const MAX_DEPTH: usize = 64;

/// How tightly an operator binds.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Shift,
    Sum,
    Product,
}

impl Level {
    fn of(operator: &Kind<'_>) -> Option<Level> {
        match operator {
            Kind::ShiftLeft | Kind::ShiftRight => Some(Level::Shift),
            Kind::Sign('+' | '-' | '|' | '^') => Some(Level::Sum),
            Kind::Sign('*' | '/' | '%' | '&') => Some(Level::Product),
            _ => None,
        }
    }

    fn tighter(self) -> Option<Level> {
        match self {
            Level::Shift => Some(Level::Sum),
            Level::Sum => Some(Level::Product),
            Level::Product => None,
        }
    }
}

impl<'a> Parser<'a> {
    /// A literal, an expression in parentheses or a constant, as 64 bits.
    pub(super) fn constant(&mut self) -> Result<u64, Failure> {
        let token = self.peek();
        match token.kind {
            Kind::Sign('(') => self.parenthesized(0),
            Kind::Symbol(name) => {
                let value = self.constants.get(name);
                let value = value.ok_or_else(|| self.error(AsmErrorKind::UndefinedConstant))?;
                let value = value.ok_or(Failure::Reported)?;
                self.advance();
                Ok(value)
            }
            Kind::Number(_) | Kind::Sign('-') => self.literal(),
            _ => Err(self.expected("a number, a constant or `(`")),
        }
    }

    /// What follows a `#`: a literal, or an expression in parentheses.
    pub(super) fn immediate_number(&mut self) -> Result<u64, Failure> {
        match self.peek().kind {
            Kind::Sign('(') => self.parenthesized(0),
            _ => self.literal(),
        }
    }

    /// A number with an optional minus sign.
    pub(super) fn literal(&mut self) -> Result<u64, Failure> {
        let negative = self.take_sign('-');
        let Kind::Number(number) = self.peek().kind else {
            return Err(self.expected("a number"));
        };
        let word = self.arch.word();
        let value = match (number, negative) {
            (Number::Integer(value), false) => Ok(value),
            (Number::Integer(value), true) if value <= 1 << 63 => Ok(value.wrapping_neg()),
            (Number::Integer(value), true) => Err(AsmErrorKind::OutOfRange {
                given: -i128::from(value),
                limits: i64::MIN.into()..=u64::MAX.into(),
            }),
            (Number::Float(value), _) => {
                let value = if negative { -value } else { value };
                float_bits(value, word).ok_or(AsmErrorKind::Float { bits: word.bits() })
            }
        };
        let value = value.map_err(|kind| self.error(kind))?;
        self.advance();
        Ok(value)
    }

    /// `( expression )`, within `depth` others.
    fn parenthesized(&mut self, depth: usize) -> Result<u64, Failure> {
        if depth == MAX_DEPTH {
            return Err(self.error(AsmErrorKind::TooDeep { limit: MAX_DEPTH }));
        }
        self.advance();
        let value = self.binary(Some(Level::Shift), depth)?;
        if !self.take_sign(')') {
            return Err(self.expected("an operator or `)`"));
        }
        Ok(value)
    }

    /// Operands joined by operators of `level`. They are collected and then applied from the right,
    /// so that a long chain takes no stack.
    fn binary(&mut self, level: Option<Level>, depth: usize) -> Result<u64, Failure> {
        let Some(level) = level else {
            return self.unary(depth);
        };
        let first = self.binary(level.tighter(), depth)?;
        let mut chain = Vec::new();
        let mut last = first;
        while Level::of(&self.peek().kind) == Some(level) {
            let operator = self.position;
            self.advance();
            let operand = self.binary(level.tighter(), depth)?;
            chain.push((last, operator));
            last = operand;
        }
        chain.into_iter().rev().try_fold(last, |right, (left, operator)| {
            apply(&self.tokens[operator].kind, left, right)
                .map_err(|kind| self.error_at(operator, kind))
        })
    }

    fn unary(&mut self, depth: usize) -> Result<u64, Failure> {
        let first = self.position;
        while matches!(self.peek().kind, Kind::Sign('-' | '`')) {
            self.advance();
        }
        let operators = first..self.position;
        let operand = self.operand(depth)?;
        operators.rev().try_fold(operand, |value, operator| match self.tokens[operator].kind {
            Kind::Sign('-') => Ok(value.wrapping_neg()),
            _ => value
                .checked_ilog2()
                .map(u64::from)
                .ok_or_else(|| self.error_at(operator, AsmErrorKind::LogarithmOfZero)),
        })
    }

    fn operand(&mut self, depth: usize) -> Result<u64, Failure> {
        match self.peek().kind {
            Kind::Sign('(') => self.parenthesized(depth + 1),
            Kind::Number(Number::Integer(_)) | Kind::Symbol(_) => self.constant(),
            _ => Err(self.expected("an integer, a constant, `(`, `-` or a backtick")),
        }
    }
}

/// `left operator right` modulo 2^64; shifts by 64 or more give 0.
fn apply(operator: &Kind<'_>, left: u64, right: u64) -> Result<u64, AsmErrorKind> {
    let count = u32::try_from(right).unwrap_or(u32::MAX);
    Ok(match operator {
        Kind::ShiftLeft => left.checked_shl(count).unwrap_or(0),
        Kind::ShiftRight => left.checked_shr(count).unwrap_or(0),
        Kind::Sign('+') => left.wrapping_add(right),
        Kind::Sign('-') => left.wrapping_sub(right),
        Kind::Sign('|') => left | right,
        Kind::Sign('^') => left ^ right,
        Kind::Sign('*') => left.wrapping_mul(right),
        Kind::Sign('/') => left.checked_div(right).ok_or(AsmErrorKind::DivisionByZero)?,
        Kind::Sign('%') => left.checked_rem(right).ok_or(AsmErrorKind::DivisionByZero)?,
        Kind::Sign('&') => left & right,
        _ => return Err(AsmErrorKind::Expected("an operator")),
    })
}
