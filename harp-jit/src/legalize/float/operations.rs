//! Chooses the replacement of each operation.

use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{
    Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, TrapCode, Type, Value,
};
use harp_isa::WordSize;
use smallvec::SmallVec;

use super::convert::Signedness;
use super::format::Format;
use super::round::Direction;
use super::soft::Soft;
use super::{Floats, LargeCode, Way};
use crate::abi::word_int;
use crate::routine::Routine;

impl<'f> Floats<'f> {
    /// The value that replaces the instruction's result; none if the instruction stays. For `f64` on 4-byte
    /// words it is an integer.
    pub(super) fn replacement(&mut self, inst: Inst) -> Option<Value> {
        let func = &*self.at.func;
        let data = func.dfg.insts[inst];
        let args: SmallVec<[Value; 4]> = SmallVec::from_slice(func.dfg.inst_args(inst));
        let result = func.dfg.inst_results(inst).first().map(|&value| func.dfg.value_type(value));
        match data {
            InstructionData::UnaryIeee64 { imm, .. } if self.machine.word == WordSize::Four => {
                Some(self.soft(Format::DOUBLE).bits(imm.bits()))
            }
            InstructionData::FloatCompare { cond, .. } => self.compare(cond, args[0], args[1]),
            _ => match data.opcode() {
                Opcode::Bitcast if self.machine.word == WordSize::Four => {
                    self.bitcast(args[0], result?)
                }
                Opcode::Fpromote => self.promotion(args[0], result?),
                Opcode::Fdemote => self.demotion(args[0], result?),
                Opcode::FcvtFromSint => self.int_to_float(Signedness::Signed, args[0], result?),
                Opcode::FcvtFromUint => self.int_to_float(Signedness::Unsigned, args[0], result?),
                Opcode::FcvtToSint => self.float_to_int(Signedness::Signed, args[0], result?, true),
                Opcode::FcvtToUint => {
                    self.float_to_int(Signedness::Unsigned, args[0], result?, true)
                }
                Opcode::FcvtToSintSat => {
                    self.float_to_int(Signedness::Signed, args[0], result?, false)
                }
                Opcode::FcvtToUintSat => {
                    self.float_to_int(Signedness::Unsigned, args[0], result?, false)
                }
                opcode => self.arithmetic(opcode, &args, Format::of(result?)?),
            },
        }
    }

    /// Operations from floats to floats of one format.
    fn arithmetic(&mut self, opcode: Opcode, args: &[Value], format: Format) -> Option<Value> {
        use Opcode::{
            Ceil, Fabs, Fadd, Fcopysign, Fdiv, Floor, Fma, Fmax, Fmin, Fmul, Fneg, Fsub, Nearest,
            Sqrt, Trunc,
        };
        let way = self.machine.way(format);
        match (way, opcode) {
            (_, Ceil | Floor | Nearest) if self.machine.extension && way == Way::Native => {
                Some(self.round(opcode, args[0], format))
            }
            (Way::Native, Fadd | Fsub | Fmul | Fdiv)
            | (Way::Native | Way::Widened, Fneg | Fabs | Fcopysign) => None,
            (Way::Native, Sqrt | Fma | Fmin | Fmax | Trunc) if self.machine.extension => None,
            (Way::Soft, Fsub) => {
                let negated = self.on_integers(Fneg, &args[1..], format);
                self.arithmetic(Fadd, &[args[0], negated], format)
            }
            (Way::Soft, Fadd | Fmul | Fdiv) | (_, Sqrt | Fma)
                if self.code == LargeCode::Library =>
            {
                Some(self.routine(opcode, args, format))
            }
            (Way::Widened, Fadd | Fsub | Fmul | Fdiv) if self.calls_singles() => {
                Some(self.routine(opcode, args, format))
            }
            (Way::Widened, Fadd | Fsub | Fmul | Fdiv | Fma) => Some(self.widened(opcode, args)),
            (
                _,
                Fadd | Fmul | Fdiv | Fneg | Fabs | Fcopysign | Sqrt | Fma | Fmin | Fmax | Trunc
                | Ceil | Floor | Nearest,
            ) => Some(self.on_integers(opcode, args, format)),
            _ => None,
        }
    }

    fn on_integers(&mut self, opcode: Opcode, args: &[Value], format: Format) -> Value {
        let args: Vec<Value> = args.iter().map(|&arg| self.bits(arg, format)).collect();
        let mut soft = self.soft(format);
        let result = match (opcode, args.as_slice()) {
            (Opcode::Fadd, &[x, y]) => soft.float_add(x, y),
            (Opcode::Fmul, &[x, y]) => soft.float_mul(x, y),
            (Opcode::Fdiv, &[x, y]) => soft.float_div(x, y),
            (Opcode::Fma, &[x, y, z]) => soft.float_fma(x, y, z),
            (Opcode::Fmin, &[x, y]) => soft.float_min(x, y),
            (Opcode::Fmax, &[x, y]) => soft.float_max(x, y),
            (Opcode::Fcopysign, &[x, y]) => soft.copy_sign(x, y),
            (Opcode::Sqrt, &[x]) => soft.float_sqrt(x),
            (Opcode::Fneg, &[x]) => soft.xor(x, format.sign()),
            (Opcode::Fabs, &[x]) => soft.magnitude(x),
            (Opcode::Trunc, &[x]) => soft.float_round(Direction::Zero, x),
            (Opcode::Ceil, &[x]) => soft.float_round(Direction::Up, x),
            (Opcode::Floor, &[x]) => soft.float_round(Direction::Down, x),
            (Opcode::Nearest, &[x]) => soft.float_round(Direction::Nearest, x),
            _ => unreachable!("the caller has selected these operations"),
        };
        self.float(result, format)
    }

    /// Whether routines compute on `f32` through `f64` where the cursor is.
    fn calls_singles(&self) -> bool {
        self.at.current_block().is_some_and(|block| self.singles.contains(block))
    }

    /// A call of the library routine.
    fn routine(&mut self, opcode: Opcode, args: &[Value], format: Format) -> Value {
        let soft = self.machine.way(format) == Way::Soft;
        let args: Vec<Value> = match soft {
            true => args.iter().map(|&arg| self.bits(arg, format)).collect(),
            false => args.to_vec(),
        };
        let routine = Routine::new(opcode, format.float).expect("the library has these routines");
        let held = if soft { format.int } else { format.float };
        let func = &mut self.at.func;
        let callee =
            *self.routines.entry(routine).or_insert_with(|| routine.declare(func, &[held]));
        let call = self.at.ins().call(callee, &args);
        self.at.func.dfg.first_result(call)
    }

    /// Computes on `f32` through the machine's `f64`.
    fn widened(&mut self, opcode: Opcode, args: &[Value]) -> Value {
        let args: Vec<Value> = args.iter().map(|&arg| self.widen(arg)).collect();
        let result = match (opcode, args.as_slice()) {
            (Opcode::Fadd, &[x, y]) => self.at.ins().fadd(x, y),
            (Opcode::Fsub, &[x, y]) => self.at.ins().fsub(x, y),
            (Opcode::Fmul, &[x, y]) => self.at.ins().fmul(x, y),
            (Opcode::Fdiv, &[x, y]) => self.at.ins().fdiv(x, y),
            (Opcode::Fma, &[x, y, z]) => {
                let product = self.at.ins().fmul(x, y);
                self.soft(Format::DOUBLE).odd_sum(product, z)
            }
            _ => unreachable!("the caller has selected these operations"),
        };
        self.shorten(result)
    }

    /// `f32` to `f64` on 8-byte words.
    fn widen(&mut self, x: Value) -> Value {
        if self.machine.extension {
            return self.at.ins().fpromote(F64, x);
        }
        let bits = self.bits(x, Format::SINGLE);
        let wide = self.soft(Format::SINGLE).promote_by_double(bits);
        self.float(wide, Format::DOUBLE)
    }

    /// `f64` to `f32` on 8-byte words.
    fn shorten(&mut self, x: Value) -> Value {
        if self.machine.extension {
            return self.at.ins().fdemote(F32, x);
        }
        let bits = self.bits(x, Format::DOUBLE);
        let short = self.soft(Format::DOUBLE).demote_by_double(bits);
        self.float(short, Format::SINGLE)
    }

    /// Rounds to an integer with the machine's own operations.
    fn round(&mut self, opcode: Opcode, x: Value, format: Format) -> Value {
        if opcode == Opcode::Nearest {
            // In this range the last place of the sum is 1, so it is an integer; all numbers above are
            // integers already.
            let limit =
                self.float_const(format.power_of_two(format.fraction_bits.cast_signed()), format);
            let magnitude = self.at.ins().fabs(x);
            let fraction = self.at.ins().fcmp(FloatCC::LessThan, magnitude, limit);
            let moved = self.at.ins().fadd(magnitude, limit);
            let rounded = self.at.ins().fsub(moved, limit);
            let rounded = self.at.ins().fcopysign(rounded, x);
            return self.at.ins().select(fraction, rounded, x);
        }
        let one = self.float_const(format.power_of_two(0), format);
        let truncated = self.at.ins().trunc(x);
        let (wrong, moved) = if opcode == Opcode::Ceil {
            let below = self.at.ins().fcmp(FloatCC::LessThan, truncated, x);
            (below, self.at.ins().fadd(truncated, one))
        } else {
            let above = self.at.ins().fcmp(FloatCC::GreaterThan, truncated, x);
            (above, self.at.ins().fsub(truncated, one))
        };
        self.at.ins().select(wrong, moved, truncated)
    }

    fn compare(&mut self, condition: FloatCC, x: Value, y: Value) -> Option<Value> {
        let format = Format::of(self.type_of(x))?;
        (self.machine.way(format) == Way::Soft).then(|| self.holds(condition, x, y, format))
    }

    /// The truth value of a comparison.
    fn holds(&mut self, condition: FloatCC, x: Value, y: Value, format: Format) -> Value {
        if self.machine.way(format) != Way::Soft {
            return self.at.ins().fcmp(condition, x, y);
        }
        let (x, y) = (self.bits(x, format), self.bits(y, format));
        self.soft(format).float_compare(condition, x, y)
    }

    fn bitcast(&mut self, x: Value, to: Type) -> Option<Value> {
        match (self.type_of(x), to) {
            (F64, I64) => Some(self.bits(x, Format::DOUBLE)),
            (I64, F64) => Some(x),
            _ => None,
        }
    }

    fn promotion(&mut self, x: Value, to: Type) -> Option<Value> {
        match (self.type_of(x), to, self.machine.way(Format::DOUBLE)) {
            (F32, F64, Way::Soft) => {
                let bits = self.bits(x, Format::SINGLE);
                Some(self.soft(Format::SINGLE).promote(bits))
            }
            (F32, F64, _) if !self.machine.extension => Some(self.widen(x)),
            _ => None,
        }
    }

    fn demotion(&mut self, x: Value, to: Type) -> Option<Value> {
        match (self.type_of(x), to, self.machine.way(Format::DOUBLE)) {
            (F64, F32, Way::Soft) => {
                let bits = self.bits(x, Format::DOUBLE);
                let short = self.soft(Format::DOUBLE).demote(bits);
                Some(self.float(short, Format::SINGLE))
            }
            (F64, F32, _) if !self.machine.extension => Some(self.shorten(x)),
            _ => None,
        }
    }

    fn int_to_float(&mut self, signedness: Signedness, x: Value, to: Type) -> Option<Value> {
        let format = Format::of(to)?;
        let bits = self.type_of(x).bits();
        if bits > u32::from(self.machine.word.bits()) || self.machine.way(format) == Way::Soft {
            let result = self.soft(format).int_to_float(signedness, x);
            return Some(self.float(result, format));
        }
        if self.machine.word == WordSize::Four || format == Format::DOUBLE {
            return None;
        }
        // `f32` on 8-byte words, through `f64`: that is exact, or lost bits are sticky.
        if bits < 64 && self.machine.extension {
            return None;
        }
        let x = if bits == 64 { self.soft(format).sticky_int(signedness, x) } else { x };
        let double = match signedness {
            Signedness::Signed => self.at.ins().fcvt_from_sint(F64, x),
            Signedness::Unsigned => self.at.ins().fcvt_from_uint(F64, x),
        };
        Some(self.shorten(double))
    }

    fn float_to_int(
        &mut self,
        signedness: Signedness,
        x: Value,
        to: Type,
        trapping: bool,
    ) -> Option<Value> {
        let format = Format::of(self.type_of(x))?;
        if trapping {
            self.check_range(signedness, x, to, format);
        }
        let fits_word = to.bits() <= u32::from(self.machine.word.bits());
        if !fits_word || self.machine.way(format) == Way::Soft {
            let bits = self.bits(x, format);
            return Some(self.soft(format).float_to_int(to, signedness, bits));
        }
        if self.machine.extension {
            return trapping.then(|| self.saturating(signedness, x, to));
        }
        let (x, format) = match self.machine.way(format) {
            Way::Widened => (self.widen(x), Format::DOUBLE),
            _ => (x, format),
        };
        Some(self.by_word(signedness, x, to, format, trapping))
    }

    fn saturating(&mut self, signedness: Signedness, x: Value, to: Type) -> Value {
        match signedness {
            Signedness::Signed => self.at.ins().fcvt_to_sint_sat(to, x),
            Signedness::Unsigned => self.at.ins().fcvt_to_uint_sat(to, x),
        }
    }

    /// A conversion on a base machine, whose own conversion accepts only numbers that fit a signed word. It
    /// saturates, unless the number is known to fit.
    fn by_word(
        &mut self,
        signedness: Signedness,
        x: Value,
        to: Type,
        format: Format,
        fits: bool,
    ) -> Value {
        let word = word_int(self.machine.word);
        let bits = self.bits(x, format);
        let mut soft = self.soft(format);
        let magnitude = soft.magnitude(bits);
        // Unsigned words have twice the range: numbers in the upper half are moved down before the conversion
        // and up after it.
        let half = format.power_of_two(i64::from(word.bits()) - 1);
        let upper = (signedness == Signedness::Unsigned && to == word)
            .then(|| soft.is_above(magnitude, half - 1));
        let operand = upper.map_or(x, |upper| {
            let half = self.float_const(half, format);
            let excess = self.at.ins().fsub(x, half);
            self.at.ins().select(upper, excess, x)
        });
        let mut soft = self.soft(format);
        let large = soft.is_above(magnitude, soft.limit(to, signedness) - 1);
        let operand = if fits {
            operand
        } else {
            let zero = self.float_const(0, format);
            self.at.ins().select(large, zero, operand)
        };
        let integer = self.at.ins().fcvt_to_sint_sat(word, operand);
        let mut soft = self.soft(format);
        let integer = upper.map_or(integer, |upper| {
            let moved = soft.xor(integer, format.sign());
            soft.select(upper, moved, integer)
        });
        let result = if fits {
            integer
        } else {
            let negative = soft.sign_mask(bits);
            soft.saturate(to, signedness, magnitude, negative, integer)
        };
        soft.reduce(to, result)
    }

    /// Traps if `x` is a NaN or its integral part does not fit `to`.
    fn check_range(&mut self, signedness: Signedness, x: Value, to: Type, format: Format) {
        let unordered = self.holds(FloatCC::Unordered, x, x, format);
        self.at.ins().trapnz(unordered, TrapCode::BAD_CONVERSION_TO_INTEGER);
        let limit = self.soft(format).limit(to, signedness);
        // The largest number below those that fit, if the format has room for its fraction.
        let (low, low_condition) = match signedness {
            Signedness::Unsigned => (format.power_of_two(0) | format.sign(), FloatCC::GreaterThan),
            Signedness::Signed if u64::from(to.bits()) <= format.fraction_bits + 1 => {
                let one = format.hidden() >> (to.bits() - 1);
                ((limit | format.sign()) + one, FloatCC::GreaterThan)
            }
            Signedness::Signed => (limit | format.sign(), FloatCC::GreaterThanOrEqual),
        };
        let high = self.float_const(limit, format);
        let low = self.float_const(low, format);
        let below = self.holds(FloatCC::LessThan, x, high, format);
        let above = self.holds(low_condition, x, low, format);
        let fits = self.at.ins().band(below, above);
        self.at.ins().trapz(fits, TrapCode::INTEGER_OVERFLOW);
    }

    fn soft(&mut self, format: Format) -> Soft<'_, 'f> {
        Soft { at: &mut self.at, format, machine: self.machine }
    }

    /// The bits of a float.
    fn bits(&mut self, x: Value, format: Format) -> Value {
        let resolved = self.at.func.dfg.resolve_aliases(x);
        match self.integers[resolved] {
            Some(integer) => integer,
            None if self.type_of(resolved) == format.int => resolved,
            None => self.at.ins().bitcast(format.int, MemFlagsData::new(), resolved),
        }
    }

    /// The float with these bits, or the bits themselves where `f64` is an integer.
    fn float(&mut self, bits: Value, format: Format) -> Value {
        if self.machine.way(format) == Way::Soft {
            return bits;
        }
        self.at.ins().bitcast(format.float, MemFlagsData::new(), bits)
    }

    fn float_const(&mut self, bits: u64, format: Format) -> Value {
        match (self.machine.way(format), format) {
            (Way::Soft, _) => self.soft(format).bits(bits),
            (_, Format::SINGLE) => self.at.ins().f32const(f32::from_bits(bits as u32)),
            _ => self.at.ins().f64const(f64::from_bits(bits)),
        }
    }
}
