//! Memory: the work-item's own, stack slots and data, accessed in words or in all widths, in and out of alignment; and
//! traps.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, GlobalValueData, InstBuilder, MemFlagsData, TrapCode, Type, Value,
};
use cranelift_frontend::FunctionBuilder as Builder;

use super::super::clif;
use super::Body;
use super::plan::{
    BLOCK, CONSTANTS, FAR, FAR_START, NUMBERS, POINTER, RESULTS, RICH_RESULTS, SCRATCH,
    SCRATCH_WORDS, SHARED, SHARED_WORDS,
};
use super::rows::INTS;
use super::values::number;

/// Where nothing is, on all machines.
const NOWHERE: i64 = 0x7000_0000;

/// The code of accesses that are said to trap by it.
const ACCESS: TrapCode = TrapCode::HEAP_OUT_OF_BOUNDS;

/// The largest index that is added to an address.
const MAX_INDEX: u32 = 15;

const ATOMIC_OPS: [AtomicRmwOp; 11] = {
    use AtomicRmwOp::*;
    [Nand, Add, Sub, And, Or, Xor, Xchg, Umin, Umax, Smin, Smax]
};

/// Whether a block is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// No.
    Read,
    /// Yes.
    Write,
    /// Yes, by a function for which this one makes place.
    Outlives,
}

/// A number as memory holds it: no NaN that an operation made.
fn clean(b: &mut Builder<'_>, value: Value) -> Value {
    if b.func.dfg.value_type(value).is_float() { number(b, value) } else { value }
}

/// The address of the word with the number `index`, modulo their count, from `base` on.
pub(super) fn indexed(b: &mut Builder<'_>, base: Value, index: Value, count: usize) -> Value {
    let word = b.func.dfg.value_type(base);
    let index = b.ins().band_imm_s(index, count as i64 - 1);
    let offset = b.ins().ishl_imm_s(index, i64::from(word.bytes().ilog2()));
    b.ins().iadd(base, offset)
}

/// A place in a block.
struct Place {
    base: Value,
    offset: i32,
    flags: MemFlagsData,
}

impl Body<'_, '_> {
    /// The address of a byte of a datum.
    pub(super) fn symbol(&mut self, b: &mut Builder<'_>, name: &str, at: i64) -> Value {
        let global = clif::symbol(b, name, at, self.choices.below(2) == 0);
        b.ins().symbol_value(self.plan.word(), global)
    }

    /// An aligned access, which may be said not to trap.
    fn flags(&mut self) -> MemFlagsData {
        let flags = MemFlagsData::new().with_aligned();
        if self.choices.below(2) == 0 { flags.with_notrap() } else { flags }
    }

    /// A word of the memory that all work-items read, at this index.
    pub(super) fn load_shared(&mut self, b: &mut Builder<'_>, index: Option<Value>) -> Value {
        let word = self.plan.word();
        let (name, words) = match self.plan.config.rich {
            true => (CONSTANTS, BLOCK / 8),
            false => (SHARED, SHARED_WORDS),
        };
        let base = self.symbol(b, name, 0);
        let flags = self.flags().with_readonly();
        let (place, at) = match index {
            Some(index) => (indexed(b, base, index, words), 0),
            None => (base, self.choices.below(words) as u32 * word.bytes()),
        };
        b.ins().load(word, flags, place, at.cast_signed())
    }

    /// The last word that was computed.
    fn last_word(&self) -> Option<Value> {
        let word = self.plan.word();
        self.pool.iter().rev().find(|(_, ty)| *ty == word).map(|(value, _)| *value)
    }

    /// A place among the words that a work-item reads and writes, and an offset from it.
    fn word_place(&mut self, b: &mut Builder<'_>) -> (Value, u32) {
        let word = self.plan.word();
        let own = self.own.expect("work-items have memory where numbers are words");
        let (base, start) = match self.slots.first() {
            Some(&slot) if self.choices.once_in(3) => {
                self.mark(b, "stack slot");
                (b.ins().stack_addr(word, slot.slot, slot.start), 0)
            }
            _ => (own, SCRATCH * word.bytes()),
        };
        // The last word is left for accesses of two.
        let words = SCRATCH_WORDS as usize - 1;
        if self.choices.once_in(4) && self.budget > 0 {
            self.budget -= 1;
            if let Some(index) = self.last_word() {
                return (indexed(b, base, index, words.next_power_of_two() / 2), start);
            }
        }
        (base, start + self.choices.below(words) as u32 * word.bytes())
    }

    /// The address of a block, and whether it may be written.
    pub(super) fn block(&mut self, b: &mut Builder<'_>, how: Use) -> (Value, bool) {
        let word = self.plan.word();
        let written = how != Use::Read;
        let slots = if how == Use::Outlives { 0 } else { self.slots.len() };
        let is_item = self.own.is_some();
        let kind = self.choices.below(if written { 5 } else { 6 });
        match (kind, self.own) {
            (0, _) if slots > 0 => {
                self.mark(b, "stack slot");
                let slot = self.choices.one(&self.slots);
                (b.ins().stack_addr(word, slot.slot, slot.start), true)
            }
            (1, _) if !self.blocks.is_empty() => (self.choices.one(&self.blocks), true),
            // Work-items write nothing but their own.
            (_, Some(own)) if written || kind == 1 => {
                (b.ins().iadd_imm_s(own, self.choices.below(2) as i64 * BLOCK as i64), true)
            }
            (2, _) => (self.symbol(b, FAR, FAR_START as i64), !is_item),
            (3, _) => {
                let start = self.symbol(b, FAR, 0);
                (b.ins().iadd_imm_s(start, FAR_START as i64), !is_item)
            }
            (4, _) => (self.block_behind_pointer(b), !is_item),
            (5, _) => {
                let table = self.table.filter(|_| self.choices.below(2) == 0);
                (table.unwrap_or_else(|| self.symbol(b, CONSTANTS, 0)), false)
            }
            _ => (self.symbol(b, NUMBERS, 0), !is_item),
        }
    }

    /// The address of a block that stands in a datum, perhaps after a detour.
    fn block_behind_pointer(&mut self, b: &mut Builder<'_>) -> Value {
        let word = self.plan.word();
        let base = clif::symbol(b, POINTER, 0, self.choices.below(2) == 0);
        let flags = MemFlagsData::trusted().with_readonly();
        let flags = b.func.dfg.mem_flags.insert(flags).expect("there is room for them");
        let (offset, global_type) = (0.into(), word);
        let mut global =
            b.create_global_value(GlobalValueData::Load { base, offset, global_type, flags });
        if self.choices.below(2) == 0 {
            for offset in [1000_i64, -1000] {
                let (base, offset) = (global, offset.into());
                let there = GlobalValueData::IAddImm { base, offset, global_type };
                global = b.create_global_value(there);
            }
        }
        b.ins().symbol_value(word, global)
    }

    /// A place for `bytes` bytes in a block.
    fn place(&mut self, b: &mut Builder<'_>, bytes: u32, how: Use) -> Place {
        let word = self.plan.word();
        let (mut base, writable) = self.block(b, how);
        let aligned = self.choices.below(2) == 0;
        let unit = if aligned { bytes } else { 1 };
        let mut room = BLOCK as u32 - bytes;
        if self.choices.once_in(3) {
            room -= MAX_INDEX;
            let ty = self.choices.one(&INTS);
            let index = self.value(b, ty, 1);
            let index = b.ins().band_imm_s(index, i64::from(MAX_INDEX & !(unit - 1)));
            let index = clif::resized(b, index, word);
            base = b.ins().iadd(base, index);
        }
        let mut offset = (self.choices.below((room / unit) as usize + 1) as u32 * unit) as i32;
        if self.choices.once_in(4) {
            let detour = self.choices.one(&[8, -8, 64, -160, 4096, -70_000]);
            base = b.ins().iadd_imm_s(base, i64::from(detour));
            offset -= detour;
        }
        let mut flags = match self.choices.below(3) {
            0 => MemFlagsData::new().with_trap_code(None),
            1 => MemFlagsData::new(),
            _ => MemFlagsData::new().with_trap_code(Some(ACCESS)),
        };
        if aligned {
            flags = flags.with_aligned();
        }
        if !writable {
            flags = flags.with_readonly();
            if flags.trap_code().is_none() {
                flags = flags.with_can_move();
            }
        }
        if self.choices.once_in(8) {
            flags = flags.with_endianness(Endianness::Big);
        }
        Place { base, offset, flags }
    }

    /// The type that an access moves: the whole number, or a narrower type with an access instruction of its own.
    fn part(&mut self, ty: Type) -> Type {
        let narrower = match ty {
            I16 => &[I8][..],
            I32 => &[I8, I16],
            I64 => &[I8, I16, I32],
            _ => &[],
        };
        if narrower.is_empty() || self.choices.below(2) == 0 {
            return ty;
        }
        self.choices.one(narrower)
    }

    /// A number from memory.
    pub(super) fn load(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let word = self.plan.word();
        if !self.plan.config.rich {
            if ty == word && self.choices.once_in(4) {
                let index = self.last_word();
                self.mark(b, "load of what all read");
                return self.load_shared(b, index);
            }
            let (base, offset) = self.word_place(b);
            let flags = self.flags();
            return b.ins().load(ty, flags, base, offset.cast_signed());
        }
        let part = self.part(ty);
        let Place { base, offset, flags } = self.place(b, part.bytes(), Use::Read);
        if part == ty {
            return b.ins().load(ty, flags, base, offset);
        }
        match (part, self.choices.below(2) == 0) {
            (I8, false) => b.ins().uload8(ty, flags, base, offset),
            (I8, true) => b.ins().sload8(ty, flags, base, offset),
            (I16, false) => b.ins().uload16(ty, flags, base, offset),
            (I16, true) => b.ins().sload16(ty, flags, base, offset),
            (_, false) => b.ins().uload32(flags, base, offset),
            (_, true) => b.ins().sload32(flags, base, offset),
        }
    }

    /// Computes and writes a number.
    pub(super) fn store_statement(&mut self, b: &mut Builder<'_>) {
        let ty = self.any_type();
        let rich = self.plan.config.rich;
        let value = self.value(b, ty, if rich { 3 } else { 2 });
        if rich {
            return self.store(b, value);
        }
        if ty.bits() < self.plan.word().bits() {
            self.mark(b, "store of a part of a word");
        }
        let (base, offset) = self.word_place(b);
        let flags = self.flags();
        b.ins().store(flags, value, base, offset.cast_signed());
    }

    /// Stores a number, whose bits are not those of a NaN that an operation made.
    pub(super) fn store(&mut self, b: &mut Builder<'_>, value: Value) {
        let value = clean(b, value);
        let ty = b.func.dfg.value_type(value);
        let part = self.part(ty);
        let Place { base, offset, flags } = self.place(b, part.bytes(), Use::Write);
        match part {
            _ if part == ty => b.ins().store(flags, value, base, offset),
            I8 => b.ins().istore8(flags, value, base, offset),
            I16 => b.ins().istore16(flags, value, base, offset),
            _ => b.ins().istore32(flags, value, base, offset),
        };
    }

    /// Stores the kernel's results.
    pub(super) fn store_results(&mut self, b: &mut Builder<'_>) {
        let own = self.own.expect("a kernel's work-items have memory");
        let rich = self.plan.config.rich;
        let bytes = self.plan.word().bytes();
        let variables: Vec<_> = self.variables.iter().map(|(variable, _)| *variable).collect();
        for (at, variable) in (0..).zip(variables.into_iter().chain([self.trace])) {
            let value = b.use_var(variable);
            let (value, offset) = match rich {
                true => (clean(b, value), RICH_RESULTS + at * 8),
                false => (self.word_of(b, value), (RESULTS + at) * bytes),
            };
            b.ins().store(MemFlagsData::trusted(), value, own, offset.cast_signed());
        }
    }

    /// An atomic access. With the extension, work-items have none that take a loop which lanes would leave at different
    /// times.
    pub(super) fn atomic(&mut self, b: &mut Builder<'_>) {
        let in_lockstep = self.own.is_some() && self.plan.family.extension;
        let ty = self.choices.one(&INTS);
        let size = ty.bytes();
        let (base, _) = self.block(b, Use::Write);
        let offset = self.choices.below(BLOCK / size as usize) as i64 * i64::from(size);
        let address = b.ins().iadd_imm_s(base, offset);
        let flags = MemFlagsData::new().with_aligned();
        let big = !in_lockstep && self.choices.below(4) == 0;
        let flags = if big { flags.with_endianness(Endianness::Big) } else { flags };
        let ops: &[AtomicRmwOp] = match (in_lockstep, ty) {
            (true, I8 | I16) => &ATOMIC_OPS[4..6],
            (true, _) => &ATOMIC_OPS[1..],
            (false, _) => &ATOMIC_OPS,
        };
        let kind = self.choices.below(12);
        if kind == 2 {
            b.ins().fence();
            return;
        }
        let value = if kind > 0 { Some(self.value(b, ty, 2)) } else { None };
        let old = match (kind, value) {
            (1, Some(value)) if ops.len() > 2 => {
                b.ins().atomic_store(flags, value, address);
                return;
            }
            (3, Some(value)) if ops.len() > 2 => {
                let expected = match self.choices.below(2) {
                    0 => self.leaf(b, ty),
                    _ => b.ins().load(ty, flags, address, 0),
                };
                b.ins().atomic_cas(flags, address, expected, value)
            }
            (_, Some(value)) => {
                b.ins().atomic_rmw(ty, flags, self.choices.one(ops), address, value)
            }
            (_, None) => b.ins().atomic_load(ty, flags, address),
        };
        self.pool.push((old, ty));
    }

    /// A division or an access that would trap in the lanes that a branch keeps from it.
    pub(super) fn guarded(&mut self, b: &mut Builder<'_>) {
        let word = self.plan.word();
        let own = self.own.expect("only work-items do it");
        let y = self.varied(b);
        let small = b.ins().band_imm_s(y, 3);
        let [inside, after] = [b.create_block(), b.create_block()];
        let merged = b.append_block_param(after, word);
        let other = self.leaf(b, word);
        let divides = self.choices.below(2) == 0;
        let address = (!divides).then(|| {
            let nowhere = b.ins().iconst(word, NOWHERE);
            b.ins().select(small, own, nowhere)
        });
        b.ins().brif(small, inside, &[], after, &[other.into()]);
        b.switch_to_block(inside);
        let value = match address {
            None => {
                self.mark(b, "guarded division");
                let x = self.leaf(b, word);
                b.ins().udiv(x, small)
            }
            Some(address) => {
                self.mark(b, "guarded access");
                let offset = (SCRATCH * word.bytes()).cast_signed();
                let flags = MemFlagsData::new().with_aligned();
                if self.choices.below(2) == 0 {
                    b.ins().store(flags, other, address, offset);
                }
                b.ins().load(word, flags, address, offset)
            }
        };
        b.ins().jump(after, &[value.into()]);
        b.switch_to_block(after);
        self.pool.push((merged, word));
    }

    /// Something that may trap, seldom.
    pub(super) fn trap_statement(&mut self, b: &mut Builder<'_>) {
        let code = self.trap_code();
        let word = self.plan.word();
        let (x, number) = (self.varied(b), self.choices.below(40) as i64);
        let number = b.ins().iconst(word, number);
        let mut wrong = b.ins().icmp(IntCC::Equal, x, number);
        let rich = self.plan.config.rich;
        if rich && self.choices.below(2) == 0 {
            wrong = self.any_truth(b);
        }
        match self.choices.below(4) {
            0 => {
                self.mark(b, "conditional trap");
                b.ins().trapnz(wrong, code);
            }
            1 => {
                self.mark(b, "conditional trap");
                let right = match rich && self.choices.below(2) == 0 {
                    true => self.any_truth(b),
                    false => b.ins().icmp(IntCC::NotEqual, x, number),
                };
                b.ins().trapz(right, code);
            }
            2 => {
                let [out, after] = [b.create_block(), b.create_block()];
                b.ins().brif(wrong, out, &[], after, &[]);
                b.switch_to_block(out);
                self.mark(b, "trap");
                b.ins().trap(code);
                b.switch_to_block(after);
            }
            _ => self.access_nowhere(b, wrong),
        }
    }

    /// A condition, or any number.
    fn any_truth(&mut self, b: &mut Builder<'_>) -> Value {
        let ty = self.choices.one(&INTS);
        if self.choices.below(2) == 0 { self.condition(b) } else { self.leaf(b, ty) }
    }

    /// An access to where nothing is, if `wrong` is not 0.
    fn access_nowhere(&mut self, b: &mut Builder<'_>, wrong: Value) {
        self.mark(b, "access that may trap");
        let nowhere = b.ins().iconst(self.plan.word(), NOWHERE);
        let (rich, flags) = (self.plan.config.rich, MemFlagsData::new().with_aligned());
        let base = match self.own {
            Some(own) if !rich => own,
            _ => self.block(b, Use::Write).0,
        };
        let address = b.ins().select(wrong, nowhere, base);
        let ty = self.choices.one(&[I32, I8, I16, I64][..if rich { 4 } else { 2 }]);
        if !rich {
            let loaded = b.ins().load(ty, flags, address, 0);
            self.note(b, loaded);
        } else if self.choices.below(2) == 0 {
            let loaded = b.ins().load(ty, flags, address, 0);
            self.pool.push((loaded, ty));
        } else {
            let value = self.leaf(b, ty);
            b.ins().store(flags, value, address, 0);
        }
    }
}
