//! Division of pairs, as straight-line code, or by calls of a routine that contains this code once.
//!
//! The machine divides halves, so a quotient of pairs takes three divisions of halves and two of their
//! digits, with corrections by selection. Straight-line code has three advantages over a loop or a call: no
//! branch that could diverge, no registers that a call would clobber, and an object that needs no library.
//! Its price is size: on machines with 32 registers an unsigned division of `i64` takes about 230 base
//! instructions, or 130 with extension X; signed ones take 80 or 50 more. Quotient and remainder of the same
//! operands in one block share nearly all of it. Divisions by a constant are rare here: the mid-end turns
//! them into multiplications. A function for one lane with more than [`MAX_IN_PLACE`] divisions calls
//! routines of the [library](crate::library) instead: otherwise divisions would be most of its code, and most
//! of its compile time.
//!
//! The method is Warren's (Hacker's Delight, section 9-5, "Unsigned doubleword division from long
//! division"), with the estimate and the two corrections of a digit after Knuth (The Art of Computer
//! Programming, volume 2, section 4.3.1, algorithm D).

use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, InstBuilder, Opcode, TrapCode, Type, Value};

use super::{LargeCode, Pair, Wide};
use crate::options::Execution;
use crate::routine::Routine;

/// The largest number of divisions of a function that are expanded in place.
pub(super) const MAX_IN_PLACE: usize = 4;

/// How the divisions of a function are implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DivisionCode {
    /// In place.
    InPlace,
    /// In place, inside a routine: its callers have checked for traps.
    InRoutine,
    /// By calls of routines.
    Calls,
}

/// Chooses how divisions of type `full` in `func` are implemented.
pub(super) fn division_code(
    func: &Function,
    full: Type,
    code: LargeCode,
    execution: Execution,
) -> DivisionCode {
    if code == LargeCode::InPlace {
        return DivisionCode::InRoutine;
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let divisions = insts.filter(|&inst| {
        let opcode = func.dfg.insts[inst].opcode();
        matches!(opcode, Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem)
            && func.dfg.inst_results(inst).iter().any(|&value| func.dfg.value_type(value) == full)
    });
    let many = execution == Execution::SingleLane
        && divisions.count() > MAX_IN_PLACE
        && Routine::new(Opcode::Udiv, full).is_some();
    if many { DivisionCode::Calls } else { DivisionCode::InPlace }
}

/// Quotient and remainder.
#[derive(Clone, Copy)]
pub(super) struct Division {
    quotient: Pair,
    remainder: Pair,
}

impl Wide<'_> {
    /// Division or remainder with CLIF's traps: for the divisor 0, and for the overflow of `sdiv`.
    pub(super) fn divide(&mut self, opcode: Opcode, x: Pair, y: Pair) -> Pair {
        let signed = matches!(opcode, Opcode::Sdiv | Opcode::Srem);
        if self.division_code != DivisionCode::InRoutine {
            self.trap_on_zero(y);
            if opcode == Opcode::Sdiv {
                self.trap_on_overflow(x, y);
            }
        }
        let block = self.at.func.layout.inst_block(self.at.current_inst().expect("it is at one"));
        let key = (block, signed, x, y);
        let division = match self.divisions.get(&key) {
            Some(&known) => known,
            None => {
                let narrow = !signed && self.is_known(x[1], 0) && self.is_known(y[1], 0);
                let division = match self.division_code {
                    DivisionCode::Calls if !narrow => self.call_division(signed, x, y),
                    _ if signed => self.divide_signed(x, y),
                    _ => self.divide_unsigned(x, y),
                };
                self.divisions.insert(key, division);
                division
            }
        };
        match opcode {
            Opcode::Udiv | Opcode::Sdiv => division.quotient,
            _ => division.remainder,
        }
    }

    fn call_division(&mut self, signed: bool, x: Pair, y: Pair) -> Division {
        let opcode = if signed { Opcode::Sdiv } else { Opcode::Udiv };
        let routine = Routine::new(opcode, self.full).expect("the library has these routines");
        let (func, held) = (&mut self.at.func, [self.half; 2]);
        let callee = *self.routines.entry(routine).or_insert_with(|| routine.declare(func, &held));
        let call = self.at.ins().call(callee, &[x[0], x[1], y[0], y[1]]);
        match *self.at.func.dfg.inst_results(call) {
            [low, high, rest_low, rest_high] => {
                Division { quotient: [low, high], remainder: [rest_low, rest_high] }
            }
            _ => unreachable!("a division has two results"),
        }
    }

    fn trap_on_zero(&mut self, y: Pair) {
        let bits = self.or(y[0], y[1]);
        if self.known(bits).is_none_or(|bits| bits == 0) {
            self.at.ins().trapz(bits, TrapCode::INTEGER_DIVISION_BY_ZERO);
        }
    }

    /// Traps if the smallest number is divided by -1.
    fn trap_on_overflow(&mut self, x: Pair, y: Pair) {
        let top = self.konst(1 << (self.bits() - 1));
        let (zero, ones) = (self.konst(0), self.konst(u64::MAX));
        let smallest = self.compare(IntCC::Equal, x, [zero, top]);
        let minus_one = self.compare(IntCC::Equal, y, [ones, ones]);
        let overflow = self.both(smallest, minus_one);
        if !self.is_known(overflow, 0) {
            self.at.ins().trapnz(overflow, TrapCode::INTEGER_OVERFLOW);
        }
    }

    fn divide_signed(&mut self, x: Pair, y: Pair) -> Division {
        let (x_signs, y_signs) = (self.signs(x[1]), self.signs(y[1]));
        let (x, y) = (self.negate_if(x_signs, x), self.negate_if(y_signs, y));
        let Division { quotient, remainder } = self.divide_unsigned(x, y);
        let signs = self.xor(x_signs, y_signs);
        Division {
            quotient: self.negate_if(signs, quotient),
            remainder: self.negate_if(x_signs, remainder),
        }
    }

    /// Unsigned division; the divisor is not 0.
    fn divide_unsigned(&mut self, x: Pair, y: Pair) -> Division {
        let zero = self.konst(0);
        if self.is_known(x[1], 0) && self.is_known(y[1], 0) {
            let (quotient, remainder) =
                (self.at.ins().udiv(x[0], y[0]), self.at.ins().urem(x[0], y[0]));
            return Division { quotient: [quotient, zero], remainder: [remainder, zero] };
        }
        // Both cases, a divisor of one half and one of two, reduce to one long division of a pair by a half
        // whose top bit is set.
        let two = self.is_nonzero(y[1]);
        let top = self.select(two, y[1], y[0]);
        let shift = self.at.ins().clz(top);

        // One half: its first digit is a plain division; the remainder is used next, shifted as far as the
        // divisor. Two halves: half of the dividend is divided by the upper part of the divisor.
        let first = self.at.ins().udiv(x[1], top);
        let rest = self.at.ins().urem(x[1], top);
        let normal = [x[0], rest];
        let normal = self.shift_left_below(normal, shift);
        let halved = [self.shr(x[0], 1), self.shr(x[1], 1)];
        let carried = self.shl(x[1], self.bits() - 1);
        let halved = [self.or(halved[0], carried), halved[1]];
        let dividend = self.select_pairs(two, halved, normal);
        let lower = self.select(two, y[0], zero);
        let [_, divisor] = self.shift_left_below([lower, top], shift);
        let (quotient, remainder) = self.long_division(dividend, divisor);

        let small = Division {
            quotient: [quotient, first],
            remainder: [self.at.ins().ushr(remainder, shift), zero],
        };
        let large = self.refine(x, y, quotient, shift);
        Division {
            quotient: self.select_pairs(two, large.quotient, small.quotient),
            remainder: self.select_pairs(two, large.remainder, small.remainder),
        }
    }

    /// Shifts left by an amount below the width of a half.
    fn shift_left_below(&mut self, [low, high]: Pair, amount: Value) -> Pair {
        let top = self.at.ins().ishl(high, amount);
        let rest = self.not(amount);
        let once = self.shr(low, 1);
        let bottom = self.at.ins().ushr(once, rest);
        [self.at.ins().ishl(low, amount), self.or(top, bottom)]
    }

    /// Computes the quotient from that of half of the dividend by the upper part of a divisor of two halves:
    /// with the shifts undone it is at most one too large, so one less is at most one too small.
    fn refine(&mut self, x: Pair, y: Pair, estimate: Value, shift: Value) -> Division {
        let zero = self.konst(0);
        let rest = self.not(shift);
        let estimate = self.at.ins().ushr(estimate, rest);
        let some = self.is_nonzero(estimate);
        let some = self.bit(some);
        let quotient = self.sub(estimate, some);
        let multiple = self.mul_pairs([quotient, zero], y);
        let remainder = self.sub_pairs(x, multiple);
        let less = self.compare(IntCC::UnsignedLessThan, remainder, y);
        let corrected = self.sub_pairs(remainder, y);
        let one = self.konst(1);
        let next = self.add(quotient, one);
        Division {
            quotient: [self.select(less, quotient, next), zero],
            remainder: self.select_pairs(less, remainder, corrected),
        }
    }

    /// Divides a pair by a half with its top bit set that is greater than the pair's upper half. Computes
    /// quotient and remainder in digits of half a half.
    fn long_division(&mut self, dividend: Pair, divisor: Value) -> (Value, Value) {
        let digit = self.bits() / 2;
        let low_mask = self.konst(self.mask() >> digit);
        let upper = self.shr(divisor, digit);
        let lower = self.and(divisor, low_mask);
        let [second, first] = [self.and(dividend[0], low_mask), self.shr(dividend[0], digit)];
        let mut rest = dividend[1];
        let mut digits = [rest; 2];
        for (at, next) in [first, second].into_iter().enumerate() {
            let estimate = self.at.ins().udiv(rest, upper);
            let left = self.at.ins().urem(rest, upper);
            let product = self.mul(estimate, lower);
            let left = self.shl(left, digit);
            let left = self.or(left, next);
            // The estimate is at most two too large; if the sum wraps around, it is certainly large enough.
            let high = self.test(IntCC::UnsignedLessThan, left, product);
            let once = self.add(left, divisor);
            let wrapped = self.test(IntCC::UnsignedLessThan, once, left);
            let still = self.test(IntCC::UnsignedLessThan, once, product);
            let wrapped = self.opposite(wrapped);
            let still = self.both(wrapped, still);
            let twice = self.add(once, divisor);
            let corrected = self.select(still, twice, once);
            let left = self.select(high, corrected, left);
            let still = self.both(high, still);
            let (high, still) = (self.bit(high), self.bit(still));
            let estimate = self.sub(estimate, high);
            digits[at] = self.sub(estimate, still);
            rest = self.sub(left, product);
        }
        let quotient = self.shl(digits[0], digit);
        (self.or(quotient, digits[1]), rest)
    }
}
