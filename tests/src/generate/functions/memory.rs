//! Memory: blocks in stack slots and data, accessed in all widths, in and out of alignment.

use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, ExternalName, GlobalValue, GlobalValueData, InstBuilder, MemFlagsData,
    TrapCode, Type, Value,
};
use cranelift_frontend::FunctionBuilder;

use super::super::flow::Numbers;
use super::Body;
use super::plan::{BLOCK, CONSTANTS, FAR, FAR_START, NUMBERS, POINTER};
use super::rows::INTS;
use super::values::number;

/// The code of accesses that are said to trap by it.
const ACCESS: TrapCode = TrapCode::HEAP_OUT_OF_BOUNDS;

/// The largest index that is added to an address.
const MAX_INDEX: u32 = 15;

const ATOMIC_OPS: [AtomicRmwOp; 11] = [
    AtomicRmwOp::Add,
    AtomicRmwOp::Sub,
    AtomicRmwOp::And,
    AtomicRmwOp::Nand,
    AtomicRmwOp::Or,
    AtomicRmwOp::Xor,
    AtomicRmwOp::Xchg,
    AtomicRmwOp::Umin,
    AtomicRmwOp::Umax,
    AtomicRmwOp::Smin,
    AtomicRmwOp::Smax,
];

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

/// A place in a block.
struct Place {
    base: Value,
    offset: i32,
    flags: MemFlagsData,
}

impl Body<'_, '_> {
    /// The address of a datum or function.
    pub(super) fn symbol(&mut self, b: &mut FunctionBuilder<'_>, name: &str) -> Value {
        let global = self.symbol_global(b, name, 0);
        b.ins().symbol_value(self.plan.word_int(), global)
    }

    fn symbol_global(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        name: &str,
        offset: i64,
    ) -> GlobalValue {
        let colocated = self.choices.below(2) == 0;
        b.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(name),
            offset: offset.into(),
            colocated,
            tls: false,
        })
    }

    /// The address of a block, and whether it may be written.
    pub(super) fn block(&mut self, b: &mut FunctionBuilder<'_>, how: Use) -> (Value, bool) {
        let word = self.plan.word_int();
        let slots = if how == Use::Outlives { 0 } else { self.slots.len() };
        let kinds = if how == Use::Read { 6 } else { 5 };
        match self.choices.below(kinds) {
            0 if slots > 0 => {
                let slot = self.choices.below(slots);
                let slot = self.slots[slot];
                (b.ins().stack_addr(word, slot.slot, slot.start), true)
            }
            1 if !self.blocks.is_empty() => (self.choices.one(&self.blocks), true),
            2 => {
                let global = self.symbol_global(b, FAR, FAR_START as i64);
                (b.ins().symbol_value(word, global), true)
            }
            3 => {
                let start = self.symbol(b, FAR);
                let offset = b.ins().iconst(word, FAR_START as i64);
                (b.ins().iadd(start, offset), true)
            }
            4 => {
                let pointer = self.symbol_global(b, POINTER, 0);
                let flags = MemFlagsData::trusted().with_readonly();
                let flags = b.func.dfg.mem_flags.insert(flags).expect("there is room for them");
                let mut global = b.create_global_value(GlobalValueData::Load {
                    base: pointer,
                    offset: 0.into(),
                    global_type: word,
                    flags,
                });
                if self.choices.below(2) == 0 {
                    let [there, back] = [1000, -1000];
                    for offset in [there, back] {
                        global = b.create_global_value(GlobalValueData::IAddImm {
                            base: global,
                            offset: i64::from(offset).into(),
                            global_type: word,
                        });
                    }
                }
                (b.ins().symbol_value(word, global), true)
            }
            5 => (self.symbol(b, CONSTANTS), false),
            _ => (self.symbol(b, NUMBERS), true),
        }
    }

    /// A place for `bytes` bytes in a block.
    fn place(&mut self, b: &mut FunctionBuilder<'_>, bytes: u32, how: Use) -> Place {
        let word = self.plan.word_int();
        let (mut base, writable) = self.block(b, how);
        let aligned = self.choices.below(2) == 0;
        let unit = if aligned { bytes } else { 1 };
        let mut room = BLOCK as u32 - bytes;
        if self.choices.once_in(3) {
            room -= MAX_INDEX;
            let ty = self.choices.one(&INTS);
            let index = self.value(b, ty, 1);
            let mask = b.ins().iconst(ty, i64::from(MAX_INDEX & !(unit - 1)));
            let index = b.ins().band(index, mask);
            let index = match ty.bits().cmp(&word.bits()) {
                std::cmp::Ordering::Less => b.ins().uextend(word, index),
                std::cmp::Ordering::Equal => index,
                std::cmp::Ordering::Greater => b.ins().ireduce(word, index),
            };
            base = b.ins().iadd(base, index);
        }
        let mut offset = (self.choices.below((room / unit) as usize + 1) as u32 * unit) as i32;
        if self.choices.once_in(4) {
            let detour = self.choices.one(&[8, -8, 64, -160, 4096, -70_000]);
            let by = b.ins().iconst(word, i64::from(detour) & word_mask(word));
            base = b.ins().iadd(base, by);
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
        Place { base, offset, flags }
    }

    /// The same, or with the bytes in the other order.
    fn any_order(&mut self, place: Place) -> Place {
        let flags = match self.choices.once_in(8) {
            true => place.flags.with_endianness(Endianness::Big),
            false => place.flags,
        };
        Place { flags, ..place }
    }

    /// A number from memory.
    pub(super) fn load(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
        let narrower = narrower(ty);
        if narrower.is_empty() || self.choices.below(2) == 0 {
            let place = self.place(b, ty.bytes(), Use::Read);
            let Place { base, offset, flags } = self.any_order(place);
            return b.ins().load(ty, flags, base, offset);
        }
        let part = self.choices.one(&narrower);
        let place = self.place(b, part.bytes(), Use::Read);
        let Place { base, offset, flags } = self.any_order(place);
        match (part, self.choices.below(2) == 0) {
            (I8, false) => b.ins().uload8(ty, flags, base, offset),
            (I8, true) => b.ins().sload8(ty, flags, base, offset),
            (I16, false) => b.ins().uload16(ty, flags, base, offset),
            (I16, true) => b.ins().sload16(ty, flags, base, offset),
            (_, false) => b.ins().uload32(flags, base, offset),
            (_, true) => b.ins().sload32(flags, base, offset),
        }
    }

    /// Stores a number, whose bits are not those of a NaN that an operation made.
    pub(super) fn store(&mut self, b: &mut FunctionBuilder<'_>, value: Value) {
        let ty = b.func.dfg.value_type(value);
        let value = if ty.is_float() { number(b, value) } else { value };
        let narrower = narrower(ty);
        if narrower.is_empty() || self.choices.below(2) == 0 {
            let place = self.place(b, ty.bytes(), Use::Write);
            let Place { base, offset, flags } = self.any_order(place);
            b.ins().store(flags, value, base, offset);
            return;
        }
        let part = self.choices.one(&narrower);
        let place = self.place(b, part.bytes(), Use::Write);
        let Place { base, offset, flags } = self.any_order(place);
        match part {
            I8 => b.ins().istore8(flags, value, base, offset),
            I16 => b.ins().istore16(flags, value, base, offset),
            _ => b.ins().istore32(flags, value, base, offset),
        };
    }

    /// An atomic access to at most a word.
    pub(super) fn atomic(&mut self, b: &mut FunctionBuilder<'_>) {
        let word = self.plan.word_int();
        let types: Vec<Type> = INTS.into_iter().filter(|ty| ty.bits() <= word.bits()).collect();
        let ty = self.choices.one(&types);
        let size = ty.bytes();
        let (base, _) = self.block(b, Use::Write);
        let offset = self.choices.below(BLOCK / size as usize) as i64 * i64::from(size);
        let offset = b.ins().iconst(word, offset);
        let address = b.ins().iadd(base, offset);
        let flags = MemFlagsData::new().with_aligned();
        let flags = match self.choices.below(4) {
            0 => flags.with_endianness(Endianness::Big),
            _ => flags,
        };
        let kind = self.choices.below(12);
        let old = match kind {
            0 => b.ins().atomic_load(ty, flags, address),
            1 => {
                let value = self.value(b, ty, 2);
                b.ins().atomic_store(flags, value, address);
                return;
            }
            2 => {
                b.ins().fence();
                return;
            }
            3 => {
                let value = self.value(b, ty, 2);
                let expected = match self.choices.below(2) {
                    0 => self.leaf(b, ty),
                    _ => b.ins().load(ty, flags, address, 0),
                };
                b.ins().atomic_cas(flags, address, expected, value)
            }
            _ => {
                let value = self.value(b, ty, 2);
                let op = self.choices.one(&ATOMIC_OPS);
                b.ins().atomic_rmw(ty, flags, op, address, value)
            }
        };
        self.pool.push((old, ty));
    }

    /// Fills the function's own blocks, which hold anything before.
    pub(super) fn fill_slots(&mut self, b: &mut FunctionBuilder<'_>) {
        let word = self.plan.word_int();
        for slot in self.slots.clone() {
            let base = b.ins().stack_addr(word, slot.slot, slot.start);
            for at in (0..BLOCK).step_by(8) {
                let value = self.leaf(b, I64);
                b.ins().store(MemFlagsData::trusted(), value, base, at as i32);
            }
        }
    }

    /// An access to where nothing is, if `wrong` is not 0.
    pub(super) fn access_nowhere(&mut self, b: &mut FunctionBuilder<'_>, wrong: Value) {
        let word = self.plan.word_int();
        let (base, _) = self.block(b, Use::Write);
        let nowhere = b.ins().iconst(word, 0x7000_0000);
        let address = b.ins().select(wrong, nowhere, base);
        let ty = self.choices.one(&[I32, I8, I16, I64]);
        let flags = MemFlagsData::new();
        if self.choices.below(2) == 0 {
            let loaded = b.ins().load(ty, flags, address, 0);
            self.pool.push((loaded, ty));
        } else {
            let value = self.leaf(b, ty);
            b.ins().store(flags, value, address, 0);
        }
    }
}

/// The types of parts of an integer that memory accesses know.
fn narrower(ty: Type) -> Vec<Type> {
    let all = [I8, I16, I32].into_iter();
    let fitting = all.filter(|part| ty.is_int() && part.bits() < ty.bits());
    fitting.filter(|&part| part != I32 || ty == I64).collect()
}

fn word_mask(word: Type) -> i64 {
    (u64::MAX >> (64 - word.bits())).cast_signed()
}
