//! Loads and stores.
//!
//! A work-item's slice of the integers holds scratch bytes, accessed in all sizes at all offsets,
//! and results, some of which are written at the end. Its slices of floats are the same in elements.

use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{AtomicRmwOp, MemFlagsData, Type, Value, types};
use harp_isa::WordSize;
use harp_jit::KernelBuilder;

use super::{Family, Generator, inside};

/// Bytes of a work-item's slice of the integers.
pub(super) const INT_SLICE: usize = 128;
/// Its scratch bytes, from the start.
const SCRATCH: usize = 64;
/// Elements of a work-item's slice of floats, and its scratch elements from the start.
pub(super) const FLOAT_SLICE: usize = 8;
const FLOAT_SCRATCH: usize = 4;
/// Words of the table that everybody reads and nobody writes, a power of two.
pub(super) const TABLE_WORDS: usize = 16;

/// All but `nand`, which takes a loop.
const ATOMIC_OPS: [AtomicRmwOp; 10] = [
    AtomicRmwOp::Add,
    AtomicRmwOp::Sub,
    AtomicRmwOp::And,
    AtomicRmwOp::Or,
    AtomicRmwOp::Xor,
    AtomicRmwOp::Xchg,
    AtomicRmwOp::Umin,
    AtomicRmwOp::Umax,
    AtomicRmwOp::Smin,
    AtomicRmwOp::Smax,
];

impl Generator<'_> {
    pub(super) fn load_int(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        match self.choices.below(4) {
            0 => self.load_table(b, ty, depth),
            1 => self.load_extending(b, ty, depth),
            _ => {
                let (base, offset, aligned) = self.scratch(b, ty, depth);
                let flags = inside(&mut self.choices, aligned);
                b.ins().load(ty, flags, base, offset)
            }
        }
    }

    fn load_extending(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let narrower: Vec<Type> = [types::I8, types::I16, types::I32]
            .into_iter()
            .filter(|part| part.bits() < ty.bits())
            .filter(|&part| part != types::I32 || ty == types::I64)
            .collect();
        if narrower.is_empty() {
            return self.load_table(b, ty, depth);
        }
        let part = self.choices.one(&narrower);
        let (base, offset, aligned) = self.scratch(b, part, depth);
        let flags = inside(&mut self.choices, aligned);
        match (part, self.choices.below(2) == 0) {
            (types::I8, false) => b.ins().uload8(ty, flags, base, offset),
            (types::I8, true) => b.ins().sload8(ty, flags, base, offset),
            (types::I16, false) => b.ins().uload16(ty, flags, base, offset),
            (types::I16, true) => b.ins().sload16(ty, flags, base, offset),
            (_, false) => b.ins().uload32(flags, base, offset),
            (_, true) => b.ins().sload32(flags, base, offset),
        }
    }

    /// An element that anybody may read, at an index that may differ.
    fn load_table(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> Value {
        let word = self.family.word_int();
        let index = match self.choices.below(3) {
            0 => self.uniform(b),
            _ => self.value(b, word, depth.saturating_sub(1)),
        };
        let mask = b.ins().iconst(word, TABLE_WORDS as i64 - 1);
        let index = b.ins().band(index, mask);
        let shift = b.ins().iconst(word, i64::from(word.bytes().ilog2()));
        let offset = b.ins().ishl(index, shift);
        let mut address = b.ins().iadd(self.table, offset);
        if word == types::I32 && self.choices.once_in(4) {
            address = b.ins().uextend(types::I64, address);
        }
        let mut flags = inside(&mut self.choices, true);
        if flags.trap_code().is_none() && self.choices.below(2) == 0 {
            flags = flags.with_readonly().with_can_move();
        }
        let loaded = b.ins().load(word, flags, address, 0);
        self.resize(b, ty, loaded)
    }

    pub(super) fn load_float(&mut self, b: &mut KernelBuilder<'_>, ty: Type) -> Value {
        let (base, offset) = self.float_scratch(ty);
        let flags = inside(&mut self.choices, true);
        b.ins().load(ty, flags, base, offset)
    }

    pub(super) fn store_int(&mut self, b: &mut KernelBuilder<'_>) {
        let word = self.family.word_int();
        if !self.family.extension {
            // Only whole, aligned words, and pairs of them.
            let ty = self.choices.one(self.family.ints());
            let mut value = self.value(b, ty, 3);
            let cell = if self.family.in_register(ty) { word } else { ty };
            value = self.resize(b, cell, value);
            let (base, offset) = self.aligned_scratch(b, cell);
            let flags = inside(&mut self.choices, true);
            b.ins().store(flags, value, base, offset);
            return;
        }
        if self.choices.once_in(8) {
            self.atomic(b);
            return;
        }
        let ty = self.choices.one(self.family.ints());
        let value = self.value(b, ty, 3);
        let narrower: Vec<Type> =
            self.family.ints().iter().copied().filter(|part| part.bits() < ty.bits()).collect();
        if narrower.is_empty() || self.choices.below(3) > 0 {
            let (base, offset, aligned) = self.scratch(b, ty, 2);
            let flags = inside(&mut self.choices, aligned);
            b.ins().store(flags, value, base, offset);
            return;
        }
        let part = self.choices.one(&narrower);
        let (base, offset, aligned) = self.scratch(b, part, 2);
        let flags = inside(&mut self.choices, aligned);
        match part {
            types::I8 => b.ins().istore8(flags, value, base, offset),
            types::I16 => b.ins().istore16(flags, value, base, offset),
            _ => b.ins().istore32(flags, value, base, offset),
        };
    }

    /// An atomic access to a register's worth of scratch bytes. Those to parts of 4 bytes are such as
    /// need no loop, which lanes would leave at different times.
    fn atomic(&mut self, b: &mut KernelBuilder<'_>) {
        let types = self.family.ints().iter().copied().filter(|&ty| self.family.in_register(ty));
        let types: Vec<Type> = types.collect();
        let ty = self.choices.one(&types);
        let whole = ty.bits() >= 32;
        let (base, offset) = self.aligned_scratch(b, ty);
        let offset = b.ins().iconst(self.family.word_int(), i64::from(offset));
        let address = b.ins().iadd(base, offset);
        let value = self.value(b, ty, 2);
        let flags = inside(&mut self.choices, true);
        let old = match self.choices.below(if whole { 6 } else { 3 }) {
            0 => b.ins().atomic_load(ty, flags, address),
            1 => {
                b.ins().fence();
                b.ins().atomic_rmw(ty, flags, AtomicRmwOp::Or, address, value)
            }
            2 if whole => {
                b.ins().atomic_store(flags, value, address);
                return;
            }
            2 => b.ins().atomic_rmw(ty, flags, AtomicRmwOp::Xor, address, value),
            3 => {
                let expected = b.ins().atomic_load(ty, flags, address);
                let expected = if self.choices.below(2) == 0 { value } else { expected };
                let new = self.leaf(b, ty);
                b.ins().atomic_cas(flags, address, expected, new)
            }
            _ => {
                let op = self.choices.one(&ATOMIC_OPS);
                b.ins().atomic_rmw(ty, flags, op, address, value)
            }
        };
        self.pool.push((old, ty));
    }

    pub(super) fn store_float(&mut self, b: &mut KernelBuilder<'_>) {
        let ty = self.choices.one(self.family.floats());
        let value = self.value(b, ty, 3);
        let (base, offset) = self.float_scratch(ty);
        let flags = inside(&mut self.choices, true);
        let cell = float_to_cell(b, self.family, value);
        b.ins().store(flags, cell, base, offset);
    }

    /// Stores variables and values that are left, so that what made them counts.
    pub(super) fn store_results(&mut self, b: &mut KernelBuilder<'_>) {
        let (word, word_bytes) = (self.family.word_int(), i32::from(self.family.word.bytes()));
        if self.choices.once_in(3) {
            self.keep_all_alive(b);
        }
        let flags = inside(&mut self.choices, true);
        let most = (INT_SLICE - SCRATCH) / word_bytes as usize;
        let count = if self.choices.once_in(2) { most } else { self.choices.below(most + 1) };
        for index in 0..count as i32 {
            let ty = self.family.ints()[index as usize % self.family.ints().len()];
            let mut value = self.result(b, ty);
            if !self.family.in_register(ty) {
                let (low, high) = b.ins().isplit(value);
                value = b.ins().bxor(low, high);
            }
            let value = self.resize(b, word, value);
            b.ins().store(flags, value, self.slice, SCRATCH as i32 + index * word_bytes);
        }
        for (ty, base) in self.float_slices.clone() {
            for index in FLOAT_SCRATCH..FLOAT_SCRATCH + self.choices.below(5) {
                let value = self.result(b, ty);
                let cell = float_to_cell(b, self.family, value);
                let bytes = self.family.float_cell(ty).bytes() as i32;
                b.ins().store(flags, cell, base, index as i32 * bytes);
            }
        }
    }

    /// Makes one value of each type of integers out of all values: up to here they need registers.
    fn keep_all_alive(&mut self, b: &mut KernelBuilder<'_>) {
        for &ty in self.family.ints() {
            let all: Vec<Value> =
                self.pool.iter().filter(|(_, have)| *have == ty).map(|(value, _)| *value).collect();
            let folded = all.into_iter().reduce(|x, y| {
                let sum = b.ins().bxor(x, y);
                let one = b.ins().iconst(ty, 1);
                b.ins().rotl(sum, one)
            });
            self.pool.extend(folded.map(|value| (value, ty)));
            self.variables.extend(folded.map(|value| {
                let variable = b.declare_var(ty);
                b.def_var(variable, value);
                (variable, ty)
            }));
        }
    }

    fn result(&mut self, b: &mut KernelBuilder<'_>, ty: Type) -> Value {
        let of_type = self.variables.iter().rposition(|(_, have)| *have == ty);
        if let (Some(index), true) = (of_type, self.choices.below(3) == 0) {
            let (variable, _) = self.variables.swap_remove(index);
            return b.use_var(variable);
        }
        self.leaf(b, ty)
    }

    /// A place for `ty` among the scratch bytes, and whether it is aligned.
    fn scratch(&mut self, b: &mut KernelBuilder<'_>, ty: Type, depth: usize) -> (Value, i32, bool) {
        let size = ty.bytes() as usize;
        match self.choices.below(4) {
            0 => {
                let (base, offset) = self.aligned_scratch(b, ty);
                (base, offset, true)
            }
            // Any offset; what is aligned by chance may say so.
            1 => {
                let offset = self.choices.below(SCRATCH - size + 1);
                (
                    self.slice,
                    offset as i32,
                    offset.is_multiple_of(size) && self.choices.below(2) == 0,
                )
            }
            // A constant added to the base, which the offset makes good.
            2 => {
                let at = self.choices.below(SCRATCH - size + 1) as i64;
                let offset = match (self.family.word, self.choices.below(3)) {
                    (WordSize::Four, 0) => -(self.choices.below(1 << 12) as i64),
                    (_, 0) => -(self.choices.below(1 << 30) as i64),
                    (_, 1) => self.choices.below(1 << 20) as i64,
                    _ => self.choices.below(SCRATCH) as i64,
                };
                let added = b.ins().iconst(self.family.word_int(), self.word_bits(at - offset));
                (b.ins().iadd(self.slice, added), offset as i32, false)
            }
            _ => {
                let half = SCRATCH / 2;
                let index = self.value(b, self.family.word_int(), depth.saturating_sub(1));
                let mask = b.ins().iconst(self.family.word_int(), half as i64 - 1);
                let index = b.ins().band(index, mask);
                let base = b.ins().iadd(self.slice, index);
                (base, self.choices.below(half - size + 1) as i32, false)
            }
        }
    }

    fn aligned_scratch(&mut self, b: &mut KernelBuilder<'_>, ty: Type) -> (Value, i32) {
        let size = ty.bytes() as usize;
        if self.choices.below(3) > 0 {
            return (self.slice, (self.choices.below(SCRATCH / size) * size) as i32);
        }
        let word = self.family.word_int();
        let index = self.leaf(b, word);
        let mask = b.ins().iconst(word, ((SCRATCH - 1) & !(size - 1)) as i64);
        let index = b.ins().band(index, mask);
        (b.ins().iadd(self.slice, index), 0)
    }

    fn float_scratch(&mut self, ty: Type) -> (Value, i32) {
        let found = self.float_slices.iter().find(|(have, _)| *have == ty);
        let base = found.map_or(self.slice, |(_, base)| *base);
        let bytes = self.family.float_cell(ty).bytes();
        (base, (self.choices.below(FLOAT_SCRATCH) as u32 * bytes) as i32)
    }

    /// A word as `iconst` wants it.
    fn word_bits(&self, value: i64) -> i64 {
        (value.cast_unsigned() & self.family.word.mask()).cast_signed()
    }
}

/// A float as memory holds it. As an integer, it has one pattern for all NaNs.
pub(super) fn float_to_cell(b: &mut KernelBuilder<'_>, family: Family, value: Value) -> Value {
    let ty = b.inner().func.dfg.value_type(value);
    let cell = family.float_cell(ty);
    if cell == ty {
        return value;
    }
    let nan = b.ins().f32const(f32::NAN);
    let ordered = b.ins().fcmp(FloatCC::Ordered, value, value);
    let value = b.ins().select(ordered, value, nan);
    let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), value);
    b.ins().uextend(cell, bits)
}
