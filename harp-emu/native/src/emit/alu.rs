//! Operations on words.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{AbiParam, Inst, InstBuilder, Signature, Type, Value, types};
use harp_isa::Opcode;

use super::values::{Val, Vectors};
use super::{Emitter, aligned};
use crate::body::{Src, divides};
use crate::class::Class;
use crate::code;
use crate::frame::{Leave, at, scratch};
use crate::rules::Lanes;

/// Whether the host does the operation on words, though not on vectors.
fn is_scalar(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Div
            | Opcode::Mod
            | Opcode::Divs
            | Opcode::Mods
            | Opcode::Mulh
            | Opcode::Mulhu
            | Opcode::Shl
            | Opcode::Srl
            | Opcode::Sra
            | Opcode::Ftoi
            | Opcode::Ftou
            | Opcode::Itof
            | Opcode::Utof
            | Opcode::Fcvtsd
            | Opcode::Fcvtds
    )
}

/// Whether some hosts take a hundred times as long if a source or the result is subnormal, as small integers are if they are
/// taken as floats.
fn is_slow_on_subnormals(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Fsqrt
            | Opcode::Ffma
            | Opcode::Fmuls
            | Opcode::Fdivs
            | Opcode::Fsqrts
            | Opcode::Ffmas
    )
}

impl Emitter<'_, '_> {
    pub(super) fn source(&mut self, src: Src) -> Val {
        match src {
            Src::Reg(r) => self.reg(r),
            Src::Imm(value) => Val::of(Class::Const(value)),
        }
    }

    /// Remembers forms of a register's value that were made meanwhile.
    pub(super) fn keep(&mut self, reg: Option<u8>, val: &Val) {
        if let Some(r) = reg {
            self.at.local.regs[usize::from(r)] = val.clone();
        }
    }

    /// `opcode` of the sources, in the lanes that execute at least.
    pub(super) fn map(&mut self, opcode: Opcode, sources: &[Src], lanes: Lanes) -> Val {
        let (mut vals, mut regs): (Vec<Val>, Vec<Option<u8>>) =
            sources.iter().map(|&src| self.executed_source(src)).unzip();
        let classes: Vec<Class> = vals.iter().map(|val| val.class).collect();
        let class = self.rules.mapped(opcode, &classes);
        if divides(opcode) {
            self.leave_if_zero(sources[1]);
        }
        if let Class::Const(_) = class {
            return Val::of(class);
        }
        if let Some(source) = self.rules.copied(opcode, &classes) {
            return vals[source].clone();
        }
        let val = match class {
            Class::Uniform if classes.iter().all(|class| class.is_uniform()) => {
                let words: Vec<Value> = vals.iter_mut().map(|val| self.scalar(val)).collect();
                Val::uniform(self.scalar_operation(opcode, &words))
            }
            Class::Uniform | Class::Affine(_) => self.affine(opcode, &mut vals, class),
            _ => {
                if lanes == Lanes::Some && is_slow_on_subnormals(opcode) {
                    self.leave_out_others(&mut vals, &mut regs);
                }
                match self.vector_operation(opcode, &mut vals) {
                    Some(vectors) => Val::vector(vectors),
                    None if is_scalar(opcode) => self.lane_by_lane(opcode, &mut vals),
                    None => self.slow(opcode, &mut vals),
                }
            }
        };
        for (reg, val) in regs.into_iter().zip(&vals) {
            self.keep(reg, val);
        }
        val
    }

    /// Puts zero into one source in the lanes that do not execute, unless all sources were made for the lanes that do. Others'
    /// registers may hold anything, and zero times anything takes no longer than usual.
    fn leave_out_others(&mut self, vals: &mut [Val], regs: &mut [Option<u8>]) {
        let mut sources = vals.iter_mut().zip(regs);
        let other = sources.find(|(val, reg)| val.class == Class::Vector && reg.is_some());
        let Some((val, reg)) = other else { return };
        let (vectors, mask) = (self.vectors(val), self.executing_vectors());
        *val = Val::vector(self.zip(&vectors, &mask, |e, v, mask| e.b.ins().band(v, mask)));
        *reg = None;
    }

    /// Leaves if the divisor is zero in a lane that executes.
    fn leave_if_zero(&mut self, divisor: Src) {
        let (mut val, reg) = self.executed_source(divisor);
        if let Class::Const(value) = val.class {
            if value == 0 {
                self.leave_always(Leave::Trap);
            }
            return;
        }
        self.begin_leaving();
        if val.class.is_uniform() {
            let word = self.scalar(&mut val);
            let bad = self.b.ins().icmp_imm_s(IntCC::Equal, word, 0);
            self.leave_if_executing(bad, Leave::Trap);
        } else {
            let vectors = self.vectors(&mut val);
            let zero = self.vector_constant(self.shape.int_vector(), |_| 0);
            let zeros = self.each(&vectors, |e, v| e.b.ins().icmp(IntCC::Equal, v, zero));
            let bits = self.compress(&zeros);
            let bits = self.only_executing(bits);
            let bad = self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0);
            self.leave_if(bad, Leave::Trap);
        }
        self.keep(reg, &val);
    }

    /// An operation whose result has a stride, of sources that have.
    fn affine(&mut self, opcode: Opcode, vals: &mut [Val], class: Class) -> Val {
        if matches!(opcode, Opcode::Div | Opcode::Mod) {
            return self.divide_once(opcode, vals, class);
        }
        let classes: Vec<Class> = vals.iter().map(|val| val.class).collect();
        if let Some((kept, _)) = self.rules.kept(opcode, &classes) {
            self.guard_kept(kept, &mut vals[0]);
        }
        let words: Vec<Value> = vals.iter_mut().map(|val| self.scalar(val)).collect();
        let scalar = self.scalar_operation(opcode, &words);
        Val { class, scalar: Some(scalar), vectors: None }
    }

    /// The operation on words. Divisors may be zero in lanes that do not execute.
    pub(super) fn scalar_operation(&mut self, opcode: Opcode, words: &[Value]) -> Value {
        let a = words[0];
        let b = words.get(1).copied().unwrap_or(a);
        let width = i64::from(self.shape.word.bits());
        match opcode {
            _ if divides(opcode) => self.divide_words(opcode, a, b),
            Opcode::Mulhu if self.shape.bytes() == 8 => self.b.ins().umulhi(a, b),
            Opcode::Mulh if self.shape.bytes() == 8 => self.b.ins().smulhi(a, b),
            Opcode::Mulhu | Opcode::Mulh => {
                let wide = |e: &mut Self, word| match opcode {
                    Opcode::Mulhu => e.b.ins().uextend(types::I64, word),
                    _ => e.b.ins().sextend(types::I64, word),
                };
                let (a, b) = (wide(self, a), wide(self, b));
                let product = self.b.ins().imul(a, b);
                let high = self.b.ins().ushr_imm_u(product, 32);
                self.b.ins().ireduce(types::I32, high)
            }
            Opcode::Shl | Opcode::Srl | Opcode::Sra
                if self.known(b).is_some_and(|count| self.shape.cut(count) < width as u64) =>
            {
                match opcode {
                    Opcode::Shl => self.b.ins().ishl(a, b),
                    Opcode::Srl => self.b.ins().ushr(a, b),
                    _ => self.b.ins().sshr(a, b),
                }
            }
            Opcode::Shl | Opcode::Srl | Opcode::Sra => {
                let beyond = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, b, width);
                let last = self.constant(width as u64 - 1);
                let count = self.b.ins().select(beyond, last, b);
                let none = self.constant(0);
                match opcode {
                    Opcode::Sra => self.b.ins().sshr(a, count),
                    Opcode::Shl => {
                        let shifted = self.b.ins().ishl(a, count);
                        self.b.ins().select(beyond, none, shifted)
                    }
                    _ => {
                        let shifted = self.b.ins().ushr(a, count);
                        self.b.ins().select(beyond, none, shifted)
                    }
                }
            }
            Opcode::Ftoi | Opcode::Ftou | Opcode::Itof | Opcode::Utof => {
                let (int, float) = (self.shape.int(), self.shape.float());
                match opcode {
                    Opcode::Itof => {
                        let x = self.b.ins().fcvt_from_sint(float, a);
                        self.as_ints(x)
                    }
                    Opcode::Utof => {
                        let x = self.b.ins().fcvt_from_uint(float, a);
                        self.as_ints(x)
                    }
                    _ => {
                        let x = self.as_floats(a);
                        match opcode {
                            Opcode::Ftoi => self.b.ins().fcvt_to_sint_sat(int, x),
                            _ => self.b.ins().fcvt_to_uint_sat(int, x),
                        }
                    }
                }
            }
            Opcode::Fmin | Opcode::Fmax => self.extreme(opcode, a, b),
            Opcode::Fcvtsd => {
                let low = self.b.ins().ireduce(types::I32, a);
                let x = self.as_floats(low);
                let x = self.b.ins().fpromote(types::F64, x);
                self.as_ints(x)
            }
            Opcode::Fcvtds => {
                let x = self.as_floats(a);
                let x = self.b.ins().fdemote(types::F32, x);
                let low = self.as_ints(x);
                self.b.ins().uextend(types::I64, low)
            }
            _ => match self.plain(opcode, words) {
                Some(value) => value,
                None => self.slow_scalar(opcode, words),
            },
        }
    }

    /// Operations that the host has for words and for vectors alike.
    fn plain(&mut self, opcode: Opcode, words: &[Value]) -> Option<Value> {
        let a = words[0];
        let b = words.get(1).copied().unwrap_or(a);
        let ins = self.b.ins();
        Some(match opcode {
            Opcode::Neg => ins.ineg(a),
            Opcode::Not => ins.bnot(a),
            Opcode::And => ins.band(a, b),
            Opcode::Or => ins.bor(a, b),
            Opcode::Xor => ins.bxor(a, b),
            Opcode::Add => ins.iadd(a, b),
            Opcode::Sub => ins.isub(a, b),
            Opcode::Mul => ins.imul(a, b),
            Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Fsqrt
            | Opcode::Ftrunc => {
                let (x, y) = (self.as_floats(a), self.as_floats(b));
                let ins = self.b.ins();
                let value = match opcode {
                    Opcode::Fadd => ins.fadd(x, y),
                    Opcode::Fsub => ins.fsub(x, y),
                    Opcode::Fmul => ins.fmul(x, y),
                    Opcode::Fdiv => ins.fdiv(x, y),
                    Opcode::Fsqrt => ins.sqrt(x),
                    _ => ins.trunc(x),
                };
                self.as_ints(value)
            }
            _ if self.does_short_floats(opcode) => {
                let floats: Vec<Value> =
                    words.iter().map(|&word| self.as_short_floats(word)).collect();
                let (x, y) = (floats[0], floats.get(1).copied().unwrap_or(floats[0]));
                let ins = self.b.ins();
                let value = match opcode {
                    Opcode::Fadds => ins.fadd(x, y),
                    Opcode::Fsubs => ins.fsub(x, y),
                    Opcode::Fmuls => ins.fmul(x, y),
                    Opcode::Fdivs => ins.fdiv(x, y),
                    Opcode::Fsqrts => ins.sqrt(x),
                    _ => ins.fma(x, y, floats[2]),
                };
                self.short_as_ints(value)
            }
            Opcode::Ffma if self.has_fma => {
                let [x, y, z] = [a, b, words[2]].map(|word| self.as_floats(word));
                let value = self.b.ins().fma(x, y, z);
                self.as_ints(value)
            }
            _ => return None,
        })
    }

    /// Whether it is an operation on floats in the low halves of words that the host has.
    fn does_short_floats(&self, opcode: Opcode) -> bool {
        self.shape.bytes() == 8
            && match opcode {
                Opcode::Fadds | Opcode::Fsubs | Opcode::Fmuls | Opcode::Fdivs | Opcode::Fsqrts => {
                    true
                }
                Opcode::Ffmas => self.has_fma,
                _ => false,
            }
    }

    /// The operation on all lanes, if the host has it for vectors.
    fn vector_operation(&mut self, opcode: Opcode, vals: &mut [Val]) -> Option<Vec<Value>> {
        let narrow = self.shape.bytes() == 4;
        match opcode {
            Opcode::Shl | Opcode::Srl | Opcode::Sra => {
                if !vals[1].class.is_uniform() {
                    return None;
                }
                return Some(self.shift_vectors(opcode, vals));
            }
            Opcode::Ftoi | Opcode::Ftou | Opcode::Itof | Opcode::Utof if !narrow => return None,
            _ => {}
        }
        let known = matches!(
            opcode,
            Opcode::Neg
                | Opcode::Not
                | Opcode::And
                | Opcode::Or
                | Opcode::Xor
                | Opcode::Add
                | Opcode::Sub
                | Opcode::Mul
                | Opcode::Fadd
                | Opcode::Fsub
                | Opcode::Fmul
                | Opcode::Fdiv
                | Opcode::Fsqrt
                | Opcode::Ftrunc
                | Opcode::Fmin
                | Opcode::Fmax
                | Opcode::Ftoi
                | Opcode::Ftou
                | Opcode::Itof
                | Opcode::Utof
        ) || opcode == Opcode::Ffma && self.has_fma
            || self.does_short_floats(opcode)
            || narrow && divides(opcode);
        if !known {
            return None;
        }
        let sources: Vec<Vectors> = vals.iter_mut().map(|val| self.vectors(val)).collect();
        let mut result = Vec::new();
        for k in 0..self.shape.vectors() {
            let words: Vec<Value> = sources.iter().map(|vectors| vectors[k]).collect();
            result.push(match opcode {
                _ if divides(opcode) => self.divide_vectors(opcode, words[0], words[1]),
                Opcode::Fmin | Opcode::Fmax => self.extreme(opcode, words[0], words[1]),
                Opcode::Ftoi => {
                    let x = self.as_floats(words[0]);
                    self.b.ins().fcvt_to_sint_sat(types::I32X4, x)
                }
                Opcode::Ftou => {
                    let x = self.as_floats(words[0]);
                    self.b.ins().fcvt_to_uint_sat(types::I32X4, x)
                }
                Opcode::Itof => {
                    let x = self.b.ins().fcvt_from_sint(types::F32X4, words[0]);
                    self.as_ints(x)
                }
                Opcode::Utof => {
                    let x = self.b.ins().fcvt_from_uint(types::F32X4, words[0]);
                    self.as_ints(x)
                }
                _ => self.plain(opcode, &words)?,
            });
        }
        Some(result)
    }

    /// The lesser or the greater of words, or of vectors' lanes.
    fn extreme(&mut self, opcode: Opcode, a: Value, b: Value) -> Value {
        let (x, y) = (self.as_floats(a), self.as_floats(b));
        let less = self.b.ins().fcmp(FloatCC::LessThan, x, y);
        let greater = self.b.ins().fcmp(FloatCC::GreaterThan, x, y);
        let equal = self.b.ins().fcmp(FloatCC::Equal, x, y);
        let sum = self.b.ins().fadd(x, y);
        let sum = self.as_ints(sum);
        let (first, second, zero) = match opcode {
            Opcode::Fmin => (less, greater, self.b.ins().bor(a, b)),
            _ => (greater, less, self.b.ins().band(a, b)),
        };
        let value = self.either_of(equal, zero, sum);
        let value = self.either_of(second, b, value);
        self.either_of(first, a, value)
    }

    /// `a` where the condition holds, else `b`.
    fn either_of(&mut self, condition: Value, a: Value, b: Value) -> Value {
        if self.b.func.dfg.value_type(a).is_vector() {
            self.b.ins().bitselect(condition, a, b)
        } else {
            self.b.ins().select(condition, a, b)
        }
    }

    /// Shifts all lanes by the same count.
    fn shift_vectors(&mut self, opcode: Opcode, vals: &mut [Val]) -> Vec<Value> {
        let vectors = self.vectors(&mut vals[0]);
        let width = u64::from(self.shape.word.bits());
        let (count, keeps) = match vals[1].class {
            Class::Const(count) => {
                let capped = self.long(count.min(width - 1));
                (capped, (count < width).then_some(None))
            }
            _ => {
                let word = self.scalar(&mut vals[1]);
                let beyond =
                    self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, word, width as i64);
                let last = self.constant(width - 1);
                let count = self.b.ins().select(beyond, last, word);
                let within = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, word, width as i64);
                (count, Some(Some(within)))
            }
        };
        if opcode == Opcode::Sra {
            return self.each(&vectors, |e, v| e.b.ins().sshr(v, count));
        }
        let Some(within) = keeps else {
            let zero = self.vector_constant(self.shape.int_vector(), |_| 0);
            return vec![zero; vectors.len()];
        };
        let shifted = self.each(&vectors, |e, v| match opcode {
            Opcode::Shl => e.b.ins().ishl(v, count),
            _ => e.b.ins().ushr(v, count),
        });
        match within {
            None => shifted,
            Some(within) => {
                let mask = self.spread(within);
                self.zip(&shifted, &mask, |e, v, mask| e.b.ins().band(v, mask))
            }
        }
    }

    /// Does the operation on the words of each lane.
    fn lane_by_lane(&mut self, opcode: Opcode, vals: &mut [Val]) -> Val {
        let sources: Vec<Vectors> = vals.iter_mut().map(|val| self.vectors(val)).collect();
        let vectors = self.assemble(|e, lane| {
            let words: Vec<Value> =
                sources.iter().map(|vectors| e.lane_of(vectors, lane)).collect();
            e.scalar_operation(opcode, &words)
        });
        Val::vector(vectors)
    }

    /// Has the operation done outside, lane by lane.
    pub(super) fn slow(&mut self, opcode: Opcode, vals: &mut [Val]) -> Val {
        for (number, val) in vals.iter_mut().enumerate() {
            let vectors = self.vectors(val);
            self.put_scratch(number, &vectors);
        }
        self.call_slow(opcode);
        let result = self.scratch_vectors(3);
        Val::vector(result)
    }

    fn slow_scalar(&mut self, opcode: Opcode, words: &[Value]) -> Value {
        for (number, &word) in words.iter().enumerate() {
            self.b.ins().store(aligned(), word, self.frame, scratch(number));
        }
        self.call_slow(opcode);
        let ty = self.shape.int();
        self.b.ins().load(ty, aligned(), self.frame, scratch(3))
    }

    pub(super) fn put_scratch(&mut self, number: usize, vectors: &[Value]) {
        for (k, &v) in vectors.iter().enumerate() {
            self.b.ins().store(aligned(), v, self.frame, scratch(number) + 16 * k as i32);
        }
    }

    pub(super) fn scratch_vectors(&mut self, number: usize) -> Vec<Value> {
        let ty = self.shape.int_vector();
        let place = |k: usize| scratch(number) + 16 * k as i32;
        (0..self.shape.vectors())
            .map(|k| self.b.ins().load(ty, aligned(), self.frame, place(k)))
            .collect()
    }

    fn call_slow(&mut self, opcode: Opcode) {
        let number = Opcode::ALL.iter().position(|&other| other == opcode).unwrap_or(usize::MAX);
        let number = self.b.ins().iconst(types::I32, number as i64);
        self.call_host(code::slow_address(), &[number], None);
    }

    /// Calls a function of Rust's with the frame and more arguments.
    pub(super) fn call_host(
        &mut self,
        function: usize,
        arguments: &[Value],
        result: Option<Type>,
    ) -> Inst {
        let arguments = [&[self.frame], arguments].concat();
        let mut signature = Signature::new(self.call_conv);
        let types = arguments.iter().map(|&value| self.b.func.dfg.value_type(value));
        signature.params.extend(types.map(AbiParam::new));
        signature.returns.extend(result.map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let function = self.long(function as u64);
        self.b.ins().call_indirect(signature, function, &arguments)
    }

    /// `value` of the lane that `from` names among those that execute, else the lane's own.
    pub(super) fn shuffle(&mut self, value: u8, from: u8) -> Val {
        let executing = self.executing_bits();
        self.b.ins().store(aligned(), executing, self.frame, at!(executing));
        let mut vals = [self.reg(value), self.reg(from)];
        self.slow(Opcode::Shfl, &mut vals)
    }
}
