//! Control flow, assignments and what may trap.

use std::cell::RefCell;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockCall, JumpTableData, MemFlagsData, TrapCode, types};
use harp_jit::KernelBuilder;

use super::Generator;

/// Control flow nests this deep, loops among it that deep.
const DEPTH: usize = 4;
const LOOP_DEPTH: usize = 2;

/// An address where nothing answers, on machines of all words.
const NOWHERE: i64 = 0x7000_0000;

impl Generator<'_> {
    pub(super) fn body(&mut self, b: &mut KernelBuilder<'_>) {
        let count = 1 + self.choices.below(6);
        for _ in 0..count {
            self.statement(b);
        }
        self.store_results(b);
        b.return_();
    }

    /// The inside of a branch or loop: what it makes is not seen outside.
    fn nested(&mut self, b: &mut KernelBuilder<'_>) {
        let (values, uniforms) = (self.pool.len(), self.uniforms.len());
        self.depth += 1;
        let count = 1 + self.choices.below(4);
        for _ in 0..count {
            self.statement(b);
        }
        if self.choices.once_in(60) {
            b.return_();
        } else if self.may_trap && self.choices.once_in(4) {
            let code = self.trap_code();
            b.ins().trap(code);
        }
        self.depth -= 1;
        self.pool.truncate(values);
        self.uniforms.truncate(uniforms);
    }

    fn statement(&mut self, b: &mut KernelBuilder<'_>) {
        let kinds = if self.depth < DEPTH && self.budget > 0 { 15 } else { 6 };
        match self.choices.below(kinds) {
            0 | 1 => self.store_int(b),
            2 => self.store_float(b),
            4 | 5 if self.may_trap => self.trap_statement(b),
            3 | 4 => self.assign(b),
            5 => self.merge(b),
            6..=8 => self.if_else(b),
            9 => self.if_then(b),
            10 | 11 if self.loops < LOOP_DEPTH => self.counted_loop(b),
            12 if self.loops < LOOP_DEPTH => self.while_loop(b),
            13 if self.loops < LOOP_DEPTH => self.loop_with_break(b),
            14 => self.switch(b),
            _ => self.if_then(b),
        }
    }

    fn assign(&mut self, b: &mut KernelBuilder<'_>) {
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 3);
        b.def_var(variable, value);
    }

    fn if_then(&mut self, b: &mut KernelBuilder<'_>) {
        let condition = self.condition(b, 2);
        b.if_then(condition, |b| self.nested(b));
    }

    fn if_else(&mut self, b: &mut KernelBuilder<'_>) {
        let condition = self.condition(b, 2);
        let this = RefCell::new(self);
        b.if_else(condition, |b| this.borrow_mut().nested(b), |b| this.borrow_mut().nested(b));
    }

    /// A branch with both ways to one block, which takes other arguments on each.
    fn merge(&mut self, b: &mut KernelBuilder<'_>) {
        let types = [self.family.ints(), self.family.floats()].concat();
        let ty = self.choices.one(&types);
        let condition = self.condition(b, 2);
        let (x, y) = (self.value(b, ty, 2), self.value(b, ty, 2));
        let after = b.create_block();
        let merged = b.append_block_param(after, ty);
        b.ins().brif(condition, after, &[x.into()], after, &[y.into()]);
        b.switch_to_block(after);
        b.seal_block(after);
        self.pool.push((merged, ty));
    }

    fn counted_loop(&mut self, b: &mut KernelBuilder<'_>) {
        let word = self.family.word_int();
        let (zero, one) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
        let count = match self.choices.below(2) {
            0 => b.ins().iconst(word, 1 + self.choices.below(3) as i64),
            _ => {
                let count = self.uniform(b);
                let three = b.ins().iconst(word, 3);
                b.ins().band(count, three)
            }
        };
        self.loops += 1;
        b.for_range(zero, count, one, |b, counter| {
            let values = self.pool.len();
            self.uniforms.push(counter);
            self.pool.push((counter, word));
            self.nested(b);
            self.uniforms.pop();
            self.pool.truncate(values);
        });
        self.loops -= 1;
    }

    /// Counts a variable of its own down to 0, or leaves before that.
    fn loop_with_break(&mut self, b: &mut KernelBuilder<'_>) {
        let counter = b.declare_var(types::I8);
        let start = b.ins().iconst(types::I8, 1 + self.choices.below(3) as i64);
        b.def_var(counter, start);
        let [body, latch, after] = std::array::from_fn(|_| b.create_block());
        b.ins().jump(body, &[]);
        b.switch_to_block(body);
        self.loops += 1;
        self.depth += 1;
        let (values, uniforms) = (self.pool.len(), self.uniforms.len());
        self.statement(b);
        let leave = self.uniform_condition(b);
        b.ins().brif(leave, after, &[], latch, &[]);
        self.pool.truncate(values);
        self.uniforms.truncate(uniforms);
        self.depth -= 1;
        self.loops -= 1;
        b.switch_to_block(latch);
        b.seal_block(latch);
        let (now, one) = (b.use_var(counter), b.ins().iconst(types::I8, 1));
        let next = b.ins().isub(now, one);
        b.def_var(counter, next);
        b.ins().brif(next, body, &[], after, &[]);
        b.seal_block(body);
        b.switch_to_block(after);
        b.seal_block(after);
    }

    /// Counts a variable of its own down to 0.
    fn while_loop(&mut self, b: &mut KernelBuilder<'_>) {
        let ty = self.choices.one(self.family.ints());
        let counter = b.declare_var(ty);
        let start = b.ins().iconst(ty, 1 + self.choices.below(3) as i64);
        b.def_var(counter, start);
        self.loops += 1;
        b.while_loop(
            |b| b.use_var(counter),
            |b| {
                let now = b.use_var(counter);
                let one = b.ins().iconst(ty, 1);
                let next = b.ins().isub(now, one);
                b.def_var(counter, next);
                self.nested(b);
            },
        );
        self.loops -= 1;
    }

    /// A `br_table` with a block for each case, or some shared.
    fn switch(&mut self, b: &mut KernelBuilder<'_>) {
        let index = match self.choices.below(3) {
            0 => self.value(b, self.family.word_int(), 2),
            _ => self.uniform(b),
        };
        let three = b.ins().iconst(self.family.word_int(), 3);
        let index = b.ins().band(index, three);
        let index = if self.family.word_int() == types::I32 {
            index
        } else {
            b.ins().ireduce(types::I32, index)
        };
        let cases: Vec<_> = (0..=self.choices.below(4)).map(|_| b.create_block()).collect();
        let after = b.create_block();
        let mut targets = cases.clone();
        if self.choices.once_in(3) {
            targets.push(cases[0]);
        }
        let pool = &mut b.inner().func.dfg.value_lists;
        let calls: Vec<_> = targets.iter().map(|&case| BlockCall::new(case, [], pool)).collect();
        let table = JumpTableData::new(BlockCall::new(after, [], pool), &calls);
        let table = b.inner().create_jump_table(table);
        b.ins().br_table(index, table);
        for case in cases {
            b.switch_to_block(case);
            b.seal_block(case);
            let (values, uniforms) = (self.pool.len(), self.uniforms.len());
            self.depth += 1;
            self.statement(b);
            self.depth -= 1;
            self.pool.truncate(values);
            self.uniforms.truncate(uniforms);
            b.ins().jump(after, &[]);
        }
        b.switch_to_block(after);
        b.seal_block(after);
    }

    /// Something that traps in some work-items.
    fn trap_statement(&mut self, b: &mut KernelBuilder<'_>) {
        let code = self.trap_code();
        let word = self.family.word_int();
        match self.choices.below(4) {
            0 => {
                let condition = self.condition(b, 2);
                b.ins().trapnz(condition, code);
            }
            1 => {
                let condition = self.condition(b, 2);
                b.ins().trapz(condition, code);
            }
            2 => {
                let ty = self.choices.one(&[types::I32, types::I64]);
                let (x, y) = (self.value(b, ty, 2), self.value(b, ty, 2));
                let sum = b.ins().uadd_overflow_trap(x, y, code);
                self.pool.push((sum, ty));
            }
            _ => {
                let (x, y) = (self.value(b, word, 2), self.leaf(b, word));
                let wrong = b.ins().icmp(IntCC::Equal, x, y);
                let nowhere = b.ins().iconst(word, NOWHERE);
                let address = b.ins().select(wrong, nowhere, self.slice);
                let flags = MemFlagsData::new().with_aligned();
                if self.choices.below(2) == 0 {
                    let loaded = b.ins().load(word, flags, address, 0);
                    self.pool.push((loaded, word));
                } else {
                    b.ins().store(flags, x, address, 0);
                }
            }
        }
    }

    fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.choices.below(5) as u8)
    }
}
