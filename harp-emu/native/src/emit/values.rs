//! Values of registers and predicates while a block is emitted, each in the forms that were needed so far.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, InstructionData, MemFlagsData, Type, Value, types};

use super::Emitter;
use super::parts::{expand, vector_constant};
use crate::class::Class;
use crate::shape::VECTOR_BYTES;

/// Vectors that hold all lanes.
pub(super) type Vectors = Rc<[Value]>;

/// The value of a register. What is missing is in its variables, or follows from the class.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub(super) class: Class,
    /// The value in lane 0.
    pub(super) scalar: Option<Value>,
    pub(super) vectors: Option<Vectors>,
}

impl Val {
    pub(super) fn of(class: Class) -> Val {
        Val { class, scalar: None, vectors: None }
    }

    pub(super) fn uniform(scalar: Value) -> Val {
        Val { class: Class::Uniform, scalar: Some(scalar), vectors: None }
    }

    pub(super) fn vector(vectors: impl Into<Vectors>) -> Val {
        Val { class: Class::Vector, scalar: None, vectors: Some(vectors.into()) }
    }
}

/// The value of a predicate, in one form at least, or in its variable.
#[derive(Clone, Debug, Default)]
pub(super) struct PredVal {
    /// A bit for each lane.
    pub(super) bits: Option<Value>,
    /// All ones or zero for each lane.
    pub(super) vectors: Option<Vectors>,
    /// Whether it is true, if it is the same in all lanes.
    pub(super) flag: Option<Value>,
}

impl Emitter<'_, '_> {
    pub(super) fn constant(&mut self, value: u64) -> Value {
        let ty = self.shape.int();
        self.b.ins().iconst(ty, self.shape.word.sign_extend(value))
    }

    /// The value, if it is a constant.
    pub(super) fn known(&self, value: Value) -> Option<u64> {
        let dfg = &self.b.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            InstructionData::UnaryImm { opcode: ir::Opcode::Iconst, imm } => {
                Some(imm.bits().cast_unsigned())
            }
            _ => None,
        }
    }

    /// The truth values of which one at least must hold, if the value says so.
    pub(super) fn disjuncts(&self, value: Value) -> Option<[Value; 2]> {
        let dfg = &self.b.func.dfg;
        match dfg.insts[dfg.value_def(value).inst()?] {
            InstructionData::Binary { opcode: ir::Opcode::Bor, args } => Some(args),
            _ => None,
        }
    }

    /// A word as a value of 8 bytes.
    pub(super) fn lengthen(&mut self, word: Value) -> Value {
        match self.shape.bytes() {
            4 => self.b.ins().uextend(types::I64, word),
            _ => word,
        }
    }

    pub(super) fn long(&mut self, value: u64) -> Value {
        self.b.ins().iconst(types::I64, value.cast_signed())
    }

    /// A vector constant whose words are `word(i)`.
    pub(super) fn vector_constant(&mut self, ty: Type, word: impl Fn(usize) -> u64) -> Value {
        vector_constant(&mut self.b, ty, word)
    }

    /// Vectors whose lane i is `word(i)`.
    pub(super) fn lane_constants(&mut self, word: impl Fn(usize) -> u64) -> Vec<Value> {
        let (ty, per) = (self.shape.int_vector(), self.shape.per_vector());
        (0..self.shape.vectors()).map(|k| self.vector_constant(ty, |i| word(k * per + i))).collect()
    }

    pub(super) fn each(
        &mut self,
        vectors: &[Value],
        mut f: impl FnMut(&mut Self, Value) -> Value,
    ) -> Vec<Value> {
        vectors.iter().map(|&v| f(self, v)).collect()
    }

    pub(super) fn zip(
        &mut self,
        a: &[Value],
        b: &[Value],
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Vec<Value> {
        a.iter().zip(b).map(|(&a, &b)| f(self, a, b)).collect()
    }

    pub(super) fn splat(&mut self, scalar: Value) -> Value {
        let ty = self.shape.int_vector();
        self.b.ins().splat(ty, scalar)
    }

    /// The value in lane 0, of a value that is not a vector.
    pub(super) fn scalar(&mut self, val: &mut Val) -> Value {
        let scalar = match (val.scalar, val.class) {
            (Some(scalar), _) => scalar,
            (None, Class::Const(value)) => self.constant(value),
            (None, _) => match &val.vectors {
                Some(vectors) => {
                    let first = vectors[0];
                    self.b.ins().extractlane(first, 0)
                }
                None => unreachable!("values that are no constants have a form"),
            },
        };
        val.scalar = Some(scalar);
        scalar
    }

    /// All lanes.
    pub(super) fn vectors(&mut self, val: &mut Val) -> Vectors {
        if let Some(vectors) = &val.vectors {
            return vectors.clone();
        }
        let count = self.shape.vectors();
        let vectors: Vec<Value> = match val.class {
            Class::Const(value) => {
                let ty = self.shape.int_vector();
                let one = self.vector_constant(ty, |_| value);
                vec![one; count]
            }
            Class::Affine(stride) => {
                let scalar = self.scalar(val);
                let first = self.splat(scalar);
                let steps = self.lane_constants(|lane| stride.wrapping_mul(lane as u64));
                self.each(&steps, |e, step| e.b.ins().iadd(first, step))
            }
            _ => {
                let scalar = self.scalar(val);
                let one = self.splat(scalar);
                vec![one; count]
            }
        };
        let vectors: Vectors = vectors.into();
        val.vectors = Some(vectors.clone());
        vectors
    }

    /// A register's value, in the form that its class has.
    pub(super) fn reg(&mut self, r: u8) -> Val {
        let r = usize::from(r);
        let mut val = self.at.local.regs[r].clone();
        if val.scalar.is_none() && val.vectors.is_none() {
            match val.class {
                Class::Const(_) => {}
                Class::Uniform | Class::Affine(_) => {
                    val.scalar = Some(self.b.use_var(self.variables.scalars[r]));
                }
                Class::Vector => val.vectors = Some(self.vector_variables(r)),
            }
            self.at.local.regs[r] = val.clone();
        }
        val
    }

    fn vector_variables(&mut self, r: usize) -> Vectors {
        if self.is_at_home(r) {
            return (0..self.shape.vectors()).map(|k| self.load_register(r, k)).collect();
        }
        let variables = self.variables.vectors[r].clone();
        variables.iter().map(|&variable| self.b.use_var(variable)).collect()
    }

    /// Whether the machine's registers hold the vectors of this one.
    pub(super) fn is_at_home(&self, r: usize) -> bool {
        let is_written = self.at.local.written_regs >> r & 1 != 0;
        let was_vector = || self.region.blocks[&self.at.key].state.regs[r] == Class::Vector;
        let is_homed = self.at.local.homed >> r & 1 != 0;
        self.has_home(r) && (is_homed || !is_written && was_vector())
    }

    /// Whether its vectors are in the machine's registers between blocks.
    pub(super) fn has_home(&self, r: usize) -> bool {
        self.homes >> r & 1 != 0
    }

    /// Vector number `k` of a register of the machine.
    pub(super) fn load_register(&mut self, r: usize, k: usize) -> Value {
        let (ty, flags, offset) =
            (self.shape.int_vector(), self.register_flags, self.register_offset(r, k));
        self.b.ins().load(ty, flags, self.registers, offset)
    }

    pub(super) fn store_register(&mut self, r: usize, k: usize, v: Value) {
        let (flags, offset) = (self.register_flags, self.register_offset(r, k));
        self.b.ins().store(flags, v, self.registers, offset);
    }

    pub(super) fn register_offset(&self, r: usize, k: usize) -> i32 {
        let bytes = r * self.shape.lane_words * self.shape.bytes() + VECTOR_BYTES * k;
        i32::try_from(bytes).unwrap_or(i32::MAX)
    }

    pub(super) fn reg_scalar(&mut self, r: u8) -> Value {
        let mut val = self.reg(r);
        let scalar = self.scalar(&mut val);
        self.at.local.regs[usize::from(r)] = val;
        scalar
    }

    pub(super) fn reg_vectors(&mut self, r: u8) -> Vectors {
        let mut val = self.reg(r);
        let vectors = self.vectors(&mut val);
        self.at.local.regs[usize::from(r)] = val;
        vectors
    }

    /// The value as one of that class, which holds for it.
    pub(super) fn coerce(&mut self, mut val: Val, class: Class) -> Val {
        match class {
            Class::Const(_) => val.class = class,
            Class::Uniform | Class::Affine(_) => {
                self.scalar(&mut val);
                val.class = class;
            }
            Class::Vector => {
                let vectors = self.vectors(&mut val);
                val = Val::vector(vectors);
            }
        }
        val
    }

    // Predicates

    fn pred(&mut self, p: u8) -> PredVal {
        let p = usize::from(p);
        let mut val = self.at.local.preds[p].clone();
        if val.bits.is_none() && val.vectors.is_none() && val.flag.is_none() {
            val.bits = Some(self.b.use_var(self.variables.preds[p]));
            self.at.local.preds[p] = val.clone();
        }
        val
    }

    /// A bit for each lane.
    pub(super) fn pred_bits(&mut self, p: u8) -> Value {
        let val = self.pred(p);
        let bits = match (val.bits, val.flag, &val.vectors) {
            (Some(bits), _, _) => bits,
            (None, Some(flag), _) => {
                let (full, none) = (self.long(self.shape.full()), self.long(0));
                self.b.ins().select(flag, full, none)
            }
            (None, None, Some(vectors)) => self.compress(&vectors.clone()),
            (None, None, None) => unreachable!("predicates have a form"),
        };
        self.at.local.preds[usize::from(p)].bits = Some(bits);
        bits
    }

    /// Whether a predicate is true that is the same in all lanes.
    pub(super) fn pred_flag(&mut self, p: u8) -> Value {
        let val = self.pred(p);
        let flag = match val.flag {
            Some(flag) => flag,
            None => {
                let bits = self.pred_bits(p);
                self.b.ins().icmp_imm_s(IntCC::NotEqual, bits, 0)
            }
        };
        self.at.local.preds[usize::from(p)].flag = Some(flag);
        flag
    }

    /// All ones or zero for each lane.
    pub(super) fn pred_vectors(&mut self, p: u8) -> Vectors {
        let val = self.pred(p);
        let vectors = match (val.vectors, val.flag) {
            (Some(vectors), _) => vectors,
            (None, Some(flag)) => self.spread(flag),
            (None, None) => {
                let bits = self.pred_bits(p);
                self.expand(bits)
            }
        };
        self.at.local.preds[usize::from(p)].vectors = Some(vectors.clone());
        vectors
    }

    /// All ones in all lanes if the flag is set, else zero.
    pub(super) fn spread(&mut self, flag: Value) -> Vectors {
        let (ones, none) = (self.constant(u64::MAX), self.constant(0));
        let word = self.b.ins().select(flag, ones, none);
        let one = self.splat(word);
        vec![one; self.shape.vectors()].into()
    }

    /// All ones in the lanes whose bit is set, else zero.
    pub(super) fn expand(&mut self, bits: Value) -> Vectors {
        expand(&mut self.b, self.shape, bits).into()
    }

    /// A bit for each lane that is all ones, of lanes that are that or zero.
    pub(super) fn compress(&mut self, vectors: &[Value]) -> Value {
        let mut all: Option<Value> = None;
        let per = match self.shape.bytes() {
            4 => 4,
            _ => 1,
        };
        for (group, parts) in vectors.chunks(per).enumerate() {
            let high = match self.shape.bytes() {
                4 => {
                    let part = |k: usize| parts.get(k).copied().unwrap_or(parts[0]);
                    let low = self.b.ins().snarrow(part(0), part(1));
                    if parts.len() > 1 {
                        let upper = self.b.ins().snarrow(part(2), part(3));
                        let bytes = self.b.ins().snarrow(low, upper);
                        self.b.ins().vhigh_bits(types::I32, bytes)
                    } else {
                        self.b.ins().vhigh_bits(types::I32, part(0))
                    }
                }
                _ => self.b.ins().vhigh_bits(types::I32, parts[0]),
            };
            let high = self.b.ins().uextend(types::I64, high);
            let shift = group * per * self.shape.per_vector();
            let bits = self.b.ins().ishl_imm_u(high, shift as i64);
            all = Some(match all {
                Some(all) => self.b.ins().bor(all, bits),
                None => bits,
            });
        }
        let bits = all.unwrap_or_else(|| self.long(0));
        let has_surplus = !vectors.len().is_multiple_of(per) || !self.shape.is_whole();
        if has_surplus {
            let full = self.long(self.shape.full());
            self.b.ins().band(bits, full)
        } else {
            bits
        }
    }

    pub(super) fn as_floats(&mut self, v: Value) -> Value {
        let ty = match self.b.func.dfg.value_type(v) {
            types::I32 => types::F32,
            types::I64 => types::F64,
            types::I32X4 => types::F32X4,
            _ => types::F64X2,
        };
        self.b.ins().bitcast(ty, little(), v)
    }

    /// The low half of a word of 8 bytes as a float, or vectors of such, with others between.
    pub(super) fn as_short_floats(&mut self, v: Value) -> Value {
        if self.b.func.dfg.value_type(v).is_vector() {
            return self.b.ins().bitcast(types::F32X4, little(), v);
        }
        let low = self.b.ins().ireduce(types::I32, v);
        self.as_floats(low)
    }

    /// Such floats as words whose upper halves are zero.
    pub(super) fn short_as_ints(&mut self, v: Value) -> Value {
        if self.b.func.dfg.value_type(v).is_vector() {
            let words = self.b.ins().bitcast(types::I64X2, little(), v);
            let low = self.vector_constant(types::I64X2, |_| 0xffff_ffff);
            return self.b.ins().band(words, low);
        }
        let low = self.as_ints(v);
        self.b.ins().uextend(types::I64, low)
    }

    pub(super) fn as_ints(&mut self, v: Value) -> Value {
        let ty = match self.b.func.dfg.value_type(v) {
            types::F32 => types::I32,
            types::F64 => types::I64,
            types::F32X4 => types::I32X4,
            _ => types::I64X2,
        };
        self.b.ins().bitcast(ty, little(), v)
    }
}

/// The order of bytes when vectors are read as others.
pub(super) fn little() -> MemFlagsData {
    MemFlagsData::new().with_endianness(ir::Endianness::Little)
}
