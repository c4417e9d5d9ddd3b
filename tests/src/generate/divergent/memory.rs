//! Memory: the work-item's own, its stack, and what all of them read; and traps.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{
    ExternalName, GlobalValueData, InstBuilder, MemFlagsData, Type, Value,
};
use cranelift_frontend::FunctionBuilder;

use super::super::flow::{Flow, Numbers};
use super::Body;
use super::plan::{RESULTS, SCRATCH, SCRATCH_WORDS, SHARED, SHARED_WORDS};

/// Where nothing is, on all machines.
const NOWHERE: i64 = 0x7000_0000;

impl Body<'_, '_> {
    /// The address of a datum.
    pub(super) fn symbol(&mut self, b: &mut FunctionBuilder<'_>, name: &str) -> Value {
        let colocated = self.choices.below(2) == 0;
        let global = b.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(name),
            offset: 0.into(),
            colocated,
            tls: false,
        });
        b.ins().symbol_value(self.plan.word(), global)
    }

    /// An aligned access, which may be said not to trap.
    fn flags(&mut self) -> MemFlagsData {
        let flags = MemFlagsData::new().with_aligned();
        if self.choices.below(2) == 0 { flags.with_notrap() } else { flags }
    }

    /// A word of what all work-items read, the one with this number.
    pub(super) fn load_shared(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        index: Option<Value>,
    ) -> Value {
        let word = self.plan.word();
        let base = self.symbol(b, SHARED);
        let flags = self.flags().with_readonly();
        match index {
            Some(index) => {
                let place = self.indexed(b, base, index, SHARED_WORDS);
                b.ins().load(word, flags, place, 0)
            }
            None => {
                let at = self.choices.below(SHARED_WORDS) as u32 * word.bytes();
                b.ins().load(word, flags, base, at.cast_signed())
            }
        }
    }

    /// The address of the word with the number `index`, modulo their count, from `base` on.
    pub(super) fn indexed(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        base: Value,
        index: Value,
        count: usize,
    ) -> Value {
        let word = self.plan.word();
        let mask = b.ins().iconst(word, count as i64 - 1);
        let index = b.ins().band(index, mask);
        let shift = b.ins().iconst(word, i64::from(word.bytes().ilog2()));
        let offset = b.ins().ishl(index, shift);
        b.ins().iadd(base, offset)
    }

    /// A place among the words that a work-item reads and writes, and an offset from it.
    fn place(&mut self, b: &mut FunctionBuilder<'_>) -> (Value, u32) {
        let word = self.plan.word();
        let (base, start) = match self.slot {
            Some(slot) if self.choices.once_in(3) => {
                self.mark(b, "stack slot");
                (b.ins().stack_addr(word, slot, 0), 0)
            }
            _ => (self.own, SCRATCH * word.bytes()),
        };
        // The last word is left for accesses of two.
        let words = SCRATCH_WORDS as usize - 1;
        if self.choices.once_in(4) && self.budget > 0 {
            self.budget -= 1;
            let index = self.pool.iter().rev().find(|(_, ty)| *ty == word).map(|(value, _)| *value);
            if let Some(index) = index {
                return (self.indexed(b, base, index, words.next_power_of_two() / 2), start);
            }
        }
        (base, start + self.choices.below(words) as u32 * word.bytes())
    }

    /// A number from memory.
    pub(super) fn load(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) -> Value {
        let word = self.plan.word();
        if ty == word && self.choices.once_in(4) {
            let index = self.pool.iter().rev().find(|(_, ty)| *ty == word).map(|(value, _)| *value);
            self.mark(b, "load of what all read");
            return self.load_shared(b, index);
        }
        let (base, offset) = self.place(b);
        let flags = self.flags();
        b.ins().load(ty, flags, base, offset.cast_signed())
    }

    /// Writes a number.
    pub(super) fn store_statement(&mut self, b: &mut FunctionBuilder<'_>) {
        let ty = self.choices.one(&self.plan.types());
        let value = self.value(b, ty, 2);
        // Only machines with the extension store parts of words.
        let fits = self.plan.family.extension || ty.bits() >= self.plan.word().bits();
        let value = if fits { value } else { self.word_of(b, value) };
        if fits && ty.bits() < self.plan.word().bits() {
            self.mark(b, "store of a part of a word");
        }
        let (base, offset) = self.place(b);
        let flags = self.flags();
        b.ins().store(flags, value, base, offset.cast_signed());
    }

    /// Writes down what the kernel computed.
    pub(super) fn store_results(&mut self, b: &mut FunctionBuilder<'_>) {
        let bytes = self.plan.word().bytes();
        let variables: Vec<_> = self.variables.iter().map(|(variable, _)| *variable).collect();
        for (at, variable) in variables.into_iter().chain([self.trace]).enumerate() {
            let value = b.use_var(variable);
            let value = self.word_of(b, value);
            let offset = (RESULTS + at as u32) * bytes;
            b.ins().store(MemFlagsData::trusted(), value, self.own, offset.cast_signed());
        }
    }

    /// A division or an access that would trap in the lanes that a branch keeps from it.
    pub(super) fn guarded(&mut self, b: &mut FunctionBuilder<'_>) {
        let word = self.plan.word();
        let y = self.varied(b);
        let mask = b.ins().iconst(word, 3);
        let small = b.ins().band(y, mask);
        let [inside, after] = [b.create_block(), b.create_block()];
        let merged = b.append_block_param(after, word);
        let other = self.leaf(b, word);
        let divides = self.choices.below(2) == 0;
        let address = (!divides).then(|| {
            let nowhere = b.ins().iconst(word, NOWHERE);
            b.ins().select(small, self.own, nowhere)
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
    pub(super) fn trap_statement(&mut self, b: &mut FunctionBuilder<'_>) {
        let code = self.trap_code();
        let word = self.plan.word();
        let (x, number) = (self.varied(b), self.choices.below(40) as i64);
        let number = b.ins().iconst(word, number);
        let wrong = b.ins().icmp(IntCC::Equal, x, number);
        match self.choices.below(4) {
            0 => {
                self.mark(b, "conditional trap");
                b.ins().trapnz(wrong, code);
            }
            1 => {
                self.mark(b, "conditional trap");
                let right = b.ins().icmp(IntCC::NotEqual, x, number);
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
            _ => {
                self.mark(b, "access that may trap");
                let nowhere = b.ins().iconst(word, NOWHERE);
                let address = b.ins().select(wrong, nowhere, self.own);
                let ty = self.choices.one(&[I32, I8]);
                let loaded = b.ins().load(ty, MemFlagsData::new().with_aligned(), address, 0);
                self.note(b, loaded);
            }
        }
    }
}
