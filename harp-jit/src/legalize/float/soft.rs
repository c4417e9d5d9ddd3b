//! The operations on integers that software floats are built of, inserted before an instruction.
//!
//! All code is straight-line, so it never diverges; long repetitions are loops with a constant count, which
//! is uniform. Shift amounts are modulo the width, as in CLIF.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Type, Value};
use harp_isa::WordSize;

use super::Machine;
use super::format::Format;

/// Builds code for floats of one format, as integers. The cursor is at the instruction before which the code
/// goes.
pub(super) struct Soft<'c, 'f> {
    pub(super) at: &'c mut FuncCursor<'f>,
    pub(super) format: Format,
    pub(super) machine: Machine,
}

/// A second operand: a value, or a constant of the first operand's type.
pub(super) trait Operand {
    fn value(self, soft: &mut Soft<'_, '_>, like: Value) -> Value;
}

impl Operand for Value {
    fn value(self, _: &mut Soft<'_, '_>, _: Value) -> Value {
        self
    }
}

impl Operand for u64 {
    fn value(self, soft: &mut Soft<'_, '_>, like: Value) -> Value {
        let ty = soft.type_of(like);
        soft.constant(ty, self)
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $clif:ident;)*) => {
        $($(#[$doc])*
        pub(super) fn $name(&mut self, x: Value, y: impl Operand) -> Value {
            let y = y.value(self, x);
            self.at.ins().$clif(x, y)
        })*
    };
}

impl Soft<'_, '_> {
    binary! {
        add iadd;
        sub isub;
        mul imul;
        /// The upper half of the unsigned product.
        mul_high umulhi;
        and band;
        or bor;
        xor bxor;
        shl ishl;
        /// Logical.
        shr ushr;
        /// Arithmetic, which is the machine's own shift where words have 8 bytes.
        shr_signed sshr;
        smax smax;
    }

    pub(super) fn type_of(&self, x: Value) -> Type {
        self.at.func.dfg.value_type(x)
    }

    /// The width of the format in bits.
    pub(super) fn width(&self) -> u64 {
        self.format.width()
    }

    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        let bits = bits & (u64::MAX >> (64 - ty.bits()));
        self.at.ins().iconst(ty, bits.cast_signed())
    }

    /// A constant of the format's integer type.
    pub(super) fn bits(&mut self, bits: u64) -> Value {
        self.constant(self.format.int, bits)
    }

    pub(super) fn not(&mut self, x: Value) -> Value {
        self.at.ins().bnot(x)
    }

    pub(super) fn clz(&mut self, x: Value) -> Value {
        self.at.ins().clz(x)
    }

    /// All ones where `x` is negative, else 0.
    pub(super) fn sign_mask(&mut self, x: Value) -> Value {
        let top = u64::from(self.type_of(x).bits()) - 1;
        // The signed right shift of base machines with 4-byte words is logical.
        if self.machine.word == WordSize::Four && self.type_of(x) == I32 {
            let sign = self.shr(x, top);
            self.at.ins().ineg(sign)
        } else {
            let top = self.constant(I32, top);
            self.at.ins().sshr(x, top)
        }
    }

    /// Negates where `mask`, all ones or 0, is set.
    pub(super) fn negate_if(&mut self, mask: Value, x: Value) -> Value {
        let flipped = self.xor(x, mask);
        self.sub(flipped, mask)
    }

    /// A truth value: 0 or 1 of type `i8`.
    pub(super) fn is(&mut self, x: Value, condition: IntCC, y: impl Operand) -> Value {
        let y = y.value(self, x);
        self.at.ins().icmp(condition, x, y)
    }

    /// Whether `x` is less than `y`, both less than half of their type's unsigned range.
    pub(super) fn is_below(&mut self, x: Value, y: impl Operand) -> Value {
        let y = y.value(self, x);
        if self.machine.extension || self.type_of(x).bits() != u32::from(self.machine.word.bits()) {
            return self.is(x, IntCC::SignedLessThan, y);
        }
        // Base machines compare with zero only.
        let difference = self.sub(x, y);
        self.is(difference, IntCC::SignedLessThan, 0)
    }

    /// Whether `x` is greater than `y`, both less than half of their type's unsigned range.
    pub(super) fn is_above(&mut self, x: Value, y: impl Operand) -> Value {
        let y = y.value(self, x);
        self.is_below(y, x)
    }

    /// The lesser and the greater of two numbers, both less than half of their type's unsigned range.
    pub(super) fn order(&mut self, x: Value, y: Value) -> [Value; 2] {
        let below = self.is_below(x, y);
        [self.select(below, x, y), self.select(below, y, x)]
    }

    /// The minimum of `x`, which is less than half of its type's unsigned range, and `most`.
    pub(super) fn at_most(&mut self, most: u64, x: Value) -> Value {
        let above = self.is_above(x, most);
        self.select(above, most, x)
    }

    /// A truth value as 0 or 1 of type `ty`.
    pub(super) fn number(&mut self, truth: Value, ty: Type) -> Value {
        self.at.ins().uextend(ty, truth)
    }

    pub(super) fn select(&mut self, truth: Value, x: impl Operand, y: Value) -> Value {
        let x = x.value(self, y);
        self.at.ins().select(truth, x, y)
    }

    pub(super) fn extend(&mut self, to: Type, x: Value) -> Value {
        if self.type_of(x) == to { x } else { self.at.ins().uextend(to, x) }
    }

    pub(super) fn reduce(&mut self, to: Type, x: Value) -> Value {
        if self.type_of(x) == to { x } else { self.at.ins().ireduce(to, x) }
    }

    /// The same bits in another type.
    pub(super) fn cast(&mut self, to: Type, x: Value) -> Value {
        self.at.ins().bitcast(to, MemFlagsData::new(), x)
    }

    /// `x` shifted right; the lowest bit of the result is set, too, if a one was shifted out.
    pub(super) fn shift_right_jam(&mut self, x: Value, amount: Value) -> Value {
        let ty = self.type_of(x);
        let amount = self.at_most(u64::from(ty.bits()) - 1, amount);
        let shifted = self.shr(x, amount);
        let back = self.shl(shifted, amount);
        let lost = self.is(back, IntCC::NotEqual, x);
        let lost = self.number(lost, ty);
        self.or(shifted, lost)
    }

    /// Applies `body` to `state` this many `times`, at least once, in a loop. The instruction at the cursor
    /// and everything after it move to a new block.
    pub(super) fn repeat<const N: usize>(
        &mut self,
        times: u64,
        state: [Value; N],
        body: impl FnOnce(&mut Self, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let inst = self.at.current_inst().expect("the cursor stands at an instruction");
        let counter = self.constant(I32, times);
        let func = &mut *self.at.func;
        let before = func.layout.inst_block(inst).expect("it is in the layout");
        let types = state.map(|value| func.dfg.value_type(value));
        let [again, after] = std::array::from_fn(|_| func.dfg.make_block());
        func.layout.split_block(after, inst);
        func.layout.insert_block_after(again, before);
        let current = types.map(|ty| func.dfg.append_block_param(again, ty));
        let left = func.dfg.append_block_param(again, I32);
        let results = types.map(|ty| func.dfg.append_block_param(after, ty));
        let args = |values: &[Value]| -> Vec<BlockArg> {
            values.iter().map(|&value| value.into()).collect()
        };

        self.at.goto_bottom(before);
        let start = [args(&state), args(&[counter])].concat();
        self.at.ins().jump(again, &start);
        self.at.goto_bottom(again);
        let next = body(self, current);
        let one = self.constant(I32, 1);
        let left = self.at.ins().isub(left, one);
        let once_more = [args(&next), args(&[left])].concat();
        self.at.ins().brif(left, again, &once_more, after, &args(&next));
        self.at.goto_inst(inst);
        results
    }
}
