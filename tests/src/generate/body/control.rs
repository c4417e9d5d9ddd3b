//! Statements, and control flow that goes forward: conditions of several parts, sides, early ends,
//! switches.

use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::FunctionBuilder as Builder;

use super::Body;
use super::flow::Target;

impl Body<'_, '_> {
    /// Makes a statement. Whether the function ends there.
    pub(super) fn statement(&mut self, b: &mut Builder<'_>) -> bool {
        let config = self.plan.config;
        let structured = self.depth < config.depth && self.controls > 0;
        let kinds = if structured { config.all().count() } else { config.flat };
        let kind = self.choices.below(kinds);
        if kind >= config.flat {
            self.controls -= 1;
        }
        config.all().nth(kind).expect("it is below their number")(self, b);
        std::mem::take(&mut self.ended)
    }

    pub(super) fn value_statement(&mut self, b: &mut Builder<'_>) {
        let ty = self.any_type();
        self.value(b, ty, 4);
    }

    /// Unless traps are wanted, a merge.
    pub(super) fn trap_or_merge(&mut self, b: &mut Builder<'_>) {
        if self.plan.may_trap { self.trap_statement(b) } else { self.merge(b) }
    }

    /// Ends the function before its end, by a trap perhaps.
    pub(super) fn end(&mut self, b: &mut Builder<'_>) {
        if self.plan.may_trap && self.choices.once_in(4) {
            self.mark(b, "trap");
            let code = self.trap_code();
            b.ins().trap(code);
            return;
        }
        self.mark(b, if self.loops.is_empty() { "early return" } else { "return from a loop" });
        self.leave(b);
    }

    /// The number of a case, too large perhaps.
    pub(super) fn case_number(&mut self, b: &mut Builder<'_>) -> Value {
        if self.plan.config.rich && (!self.plan.config.lanes || self.choices.below(2) == 0) {
            return self.value(b, I32, 2);
        }
        let number = if self.choices.once_in(4) { self.uniform(b) } else { self.varied(b) };
        if self.plan.word() == I32 { number } else { b.ins().ireduce(I32, number) }
    }

    /// A branch on a short-circuit condition, mostly of several parts.
    pub(super) fn choose(&mut self, b: &mut Builder<'_>, on_true: &Target, on_false: &Target) {
        let depth = self.choices.below(3);
        self.choose_by(b, depth, [on_true, on_false]);
    }

    pub(super) fn assign(&mut self, b: &mut Builder<'_>) {
        if self.variables.is_empty() {
            return self.note_place(b);
        }
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 2);
        b.def_var(variable, value);
    }

    fn choose_by(&mut self, b: &mut Builder<'_>, depth: usize, sides: [&Target; 2]) {
        let [on_true, on_false] = sides;
        let kind = if depth == 0 { 0 } else { 1 + self.choices.below(3) };
        if kind == 0 {
            return self.branch(b, on_true, on_false);
        }
        if kind == 3 {
            return self.choose_by(b, depth - 1, [on_false, on_true]);
        }
        let second = self.plain_target(b);
        match kind {
            1 => self.choose_by(b, depth - 1, [&second, on_false]),
            _ => self.choose_by(b, depth - 1, [on_true, &second]),
        }
        self.begin(b, &second);
        self.mark(b, if kind == 1 { "short-circuit and" } else { "short-circuit or" });
        if self.choices.once_in(3) {
            // A condition with an effect.
            self.assign(b);
        }
        self.choose_by(b, depth - 1, sides);
    }

    /// Leaves the function on a condition.
    pub(super) fn leave_if(&mut self, b: &mut Builder<'_>) {
        let [out, after] = [(); 2].map(|()| self.plain_target(b));
        let (x, y) = if self.choices.below(2) == 0 { (&out, &after) } else { (&after, &out) };
        self.choose(b, x, y);
        self.begin(b, &out);
        self.end(b);
        self.begin(b, &after);
    }
}
