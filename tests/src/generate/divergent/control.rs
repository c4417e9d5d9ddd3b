//! Statements, and control flow that goes forward: conditions of several parts, sides, early ends,
//! switches.

use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{ExternalName, InstBuilder, Signature, Type, Value};
use cranelift_frontend::{FunctionBuilder, Variable};

use super::super::choices::Choices;
use super::super::flow::{Amounts, Flow, Numbers, Target};
use super::{Body, Mark};

/// Statements nest this deep.
const MAX_DEPTH: usize = 4;

impl<'u> Flow<'u> for Body<'_, 'u> {
    const AMOUNTS: Amounts =
        Amounts { nested: 0, nested_kinds: 4, ends: 12, graphs: 7, branches: 9 };

    fn choices(&mut self) -> &mut Choices<'u> {
        self.choices
    }

    fn pool(&mut self) -> &mut Vec<(Value, Type)> {
        &mut self.pool
    }

    fn depth(&mut self) -> &mut usize {
        &mut self.depth
    }

    fn fuel(&self) -> Variable {
        self.fuel
    }

    fn statement(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let structured = self.depth < MAX_DEPTH && self.controls > 0;
        let kind = self.choices.below(if structured { 24 } else { 7 });
        if kind >= 7 {
            self.controls -= 1;
        }
        match kind {
            0 | 1 => self.assign(b),
            2 | 3 => self.store_statement(b),
            4 => self.call(b),
            5 if self.plan.may_trap => self.trap_statement(b),
            5 => {
                let ty = self.choices.one(&self.plan.types());
                self.merge(b, ty);
            }
            6 => self.note_place(b),
            7..=9 => return self.if_else(b),
            10 => self.leave_if(b),
            11 => self.guarded(b),
            12 => self.counted_loop(b, true),
            13 => self.counted_loop(b, false),
            14 => self.while_loop(b),
            15 => self.do_loop(b),
            16 => self.endless_loop(b),
            17 | 18 => self.escape_if(b),
            19 | 20 => self.switch(b),
            21 => self.shared_block(b),
            22 => self.irreducible(b),
            _ => self.graph(b),
        }
        false
    }

    fn end(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.plan.may_trap && self.choices.once_in(4) {
            self.mark(b, "trap");
            let code = self.trap_code();
            b.ins().trap(code);
            return;
        }
        self.mark(b, if self.loops.is_empty() { "early return" } else { "return from a loop" });
        self.leave(b);
    }

    fn param_types(&mut self) -> Vec<Type> {
        let count = if self.choices.below(2) == 0 { 0 } else { self.choices.below(3) };
        (0..count).map(|_| self.choices.one(&self.plan.types())).collect()
    }

    fn declared(&self, index: usize) -> (ExternalName, Signature) {
        let planned = &self.plan.functions[index];
        (ExternalName::testcase(&planned.name), planned.signature.clone())
    }

    fn case_number(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        let number = if self.choices.once_in(4) { self.uniform(b) } else { self.varied(b) };
        if self.plan.word() == I32 { number } else { b.ins().ireduce(I32, number) }
    }

    fn begun(&mut self, b: &mut FunctionBuilder<'_>) {
        self.note_place(b);
    }

    fn mark(&mut self, b: &FunctionBuilder<'_>, construct: &'static str) {
        let block = b.current_block().expect("there always is one");
        self.marks.push(Mark { function: self.index, block, construct });
    }

    /// A branch on a condition of several parts, mostly, each of which is looked at only if it matters.
    fn choose(&mut self, b: &mut FunctionBuilder<'_>, on_true: &Target, on_false: &Target) {
        let values = self.pool.len();
        let depth = self.choices.below(3);
        self.choose_by(b, depth, on_true, on_false);
        self.pool.truncate(values);
    }

    /// Cases go on behind the switch or in the next one.
    fn case(&mut self, b: &mut FunctionBuilder<'_>, cases: &[Target], at: usize, after: &Target) {
        let values = self.pool.len();
        self.begin(b, &cases[at]);
        if !self.nested(b) {
            match cases.get(at + 1) {
                Some(next) if self.choices.once_in(3) => {
                    self.mark(b, "case that falls through");
                    self.jump(b, next);
                }
                _ => self.jump(b, after),
            }
        }
        self.pool.truncate(values);
    }
}

impl Body<'_, '_> {
    fn assign(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.variables.is_empty() {
            return self.note_place(b);
        }
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 2);
        b.def_var(variable, value);
    }

    fn choose_by(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        depth: usize,
        on_true: &Target,
        on_false: &Target,
    ) {
        let kind = if depth == 0 { 0 } else { 1 + self.choices.below(3) };
        if kind == 0 {
            return self.branch(b, on_true, on_false);
        }
        if kind == 3 {
            return self.choose_by(b, depth - 1, on_false, on_true);
        }
        let second = Self::plain_target(b);
        let values = self.pool.len();
        match kind {
            1 => self.choose_by(b, depth - 1, &second, on_false),
            _ => self.choose_by(b, depth - 1, on_true, &second),
        }
        self.pool.truncate(values);
        self.begin(b, &second);
        self.mark(b, if kind == 1 { "short-circuit and" } else { "short-circuit or" });
        if self.choices.once_in(3) {
            // A condition with an effect.
            self.assign(b);
        }
        self.choose_by(b, depth - 1, on_true, on_false);
    }

    /// Leaves the function on a condition.
    fn leave_if(&mut self, b: &mut FunctionBuilder<'_>) {
        let [out, after] = [(); 2].map(|()| Self::plain_target(b));
        if self.choices.below(2) == 0 {
            self.choose(b, &out, &after);
        } else {
            self.choose(b, &after, &out);
        }
        let values = self.pool.len();
        self.begin(b, &out);
        self.end(b);
        self.pool.truncate(values);
        self.begin(b, &after);
    }
}
