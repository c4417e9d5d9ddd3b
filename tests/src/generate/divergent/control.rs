//! Statements, and control flow that goes forward: conditions of several parts, sides, early ends,
//! switches.

use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, InstBuilder, JumpTableData, TrapCode, Type,
};
use cranelift_frontend::FunctionBuilder;

use super::Body;

/// Statements nest this deep.
const MAX_DEPTH: usize = 4;

/// A block that is branched to, and its parameters.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) block: Block,
    pub(super) params: Vec<Type>,
}

impl Body<'_, '_> {
    /// Makes a statement. Whether the function ends there.
    pub(super) fn statement(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
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
            5 => self.merge(b),
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

    fn assign(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.variables.is_empty() {
            return self.note_place(b);
        }
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 2);
        b.def_var(variable, value);
    }

    /// A few statements, after which the values made in them are out of reach. Whether the function
    /// ends there.
    pub(super) fn nested(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let values = self.pool.len();
        self.depth += 1;
        let mut ended = false;
        for _ in 0..self.choices.below(4) {
            ended = self.statement(b);
            if ended {
                break;
            }
        }
        if !ended && self.choices.once_in(12) {
            self.end(b);
            ended = true;
        }
        self.depth -= 1;
        self.pool.truncate(values);
        ended
    }

    /// A new block with some parameters.
    pub(super) fn target(&mut self, b: &mut FunctionBuilder<'_>) -> Target {
        let block = b.create_block();
        let count = if self.choices.below(2) == 0 { 0 } else { self.choices.below(3) };
        let params: Vec<Type> = (0..count).map(|_| self.choices.one(&self.plan.types())).collect();
        for &ty in &params {
            b.append_block_param(block, ty);
        }
        Target { block, params }
    }

    /// Goes on in the block, with its parameters at hand.
    pub(super) fn begin(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        b.switch_to_block(target.block);
        let params = b.block_params(target.block)[..target.params.len()].to_vec();
        self.pool.extend(params.into_iter().zip(target.params.iter().copied()));
        self.note_place(b);
    }

    /// Arguments for a branch.
    pub(super) fn args_of(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        target: &Target,
    ) -> Vec<BlockArg> {
        target.params.iter().map(|&ty| self.leaf(b, ty).into()).collect()
    }

    pub(super) fn jump(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        let args = self.args_of(b, target);
        b.ins().jump(target.block, &args);
    }

    pub(super) fn branch(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        on_true: &Target,
        on_false: &Target,
    ) {
        let condition = self.condition(b);
        let (x, y) = (self.args_of(b, on_true), self.args_of(b, on_false));
        b.ins().brif(condition, on_true.block, &x, on_false.block, &y);
    }

    /// A branch on a condition of several parts, mostly, each of which is looked at only if it matters.
    pub(super) fn choose(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        on_true: &Target,
        on_false: &Target,
    ) {
        let values = self.pool.len();
        let depth = self.choices.below(3);
        self.choose_by(b, depth, on_true, on_false);
        self.pool.truncate(values);
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

    fn if_else(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let [on_true, on_false, after] = [(); 3].map(|()| self.target(b));
        let one_sided = self.choices.below(2) == 0;
        self.choose(b, &on_true, if one_sided { &after } else { &on_false });
        let mut ended = true;
        let sides = if one_sided { vec![on_true] } else { vec![on_true, on_false] };
        for side in sides {
            ended &= self.side(b, &side, &after);
        }
        if ended && !one_sided {
            // Nothing leads to the block after it, which is one nevertheless.
            b.switch_to_block(after.block);
            b.ins().trap(TrapCode::unwrap_user(99));
            return true;
        }
        self.begin(b, &after);
        false
    }

    /// Statements that go on after them. Whether the function ends in them.
    pub(super) fn side(
        &mut self,
        b: &mut FunctionBuilder<'_>,
        start: &Target,
        after: &Target,
    ) -> bool {
        let values = self.pool.len();
        self.begin(b, start);
        self.mark(b, "if");
        let ended = self.nested(b);
        if !ended {
            self.jump(b, after);
        }
        self.pool.truncate(values);
        ended
    }

    /// A branch with both ways to one block, which takes other arguments on each.
    fn merge(&mut self, b: &mut FunctionBuilder<'_>) {
        let ty = self.choices.one(&self.plan.types());
        let condition = self.condition(b);
        let (x, y) = (self.value(b, ty, 2), self.value(b, ty, 2));
        let after = b.create_block();
        let merged = b.append_block_param(after, ty);
        b.ins().brif(condition, after, &[x.into()], after, &[y.into()]);
        b.switch_to_block(after);
        self.pool.push((merged, ty));
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

    /// Ends the function before its end, by a trap perhaps.
    pub(super) fn end(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.plan.may_trap && self.choices.once_in(4) {
            self.mark(b, "trap");
            let code = self.trap_code();
            b.ins().trap(code);
            return;
        }
        self.mark(b, if self.loops.is_empty() { "early return" } else { "return from a loop" });
        self.leave(b);
    }

    /// A branch on a number, with the last target for all that are too large.
    pub(super) fn table(&mut self, b: &mut FunctionBuilder<'_>, targets: &[Target]) {
        let word = self.plan.word();
        let number = if self.choices.once_in(4) { self.uniform(b) } else { self.varied(b) };
        let mut index = if word == I32 { number } else { b.ins().ireduce(I32, number) };
        if self.choices.below(4) > 0 {
            let mask = b.ins().iconst(I32, 7);
            index = b.ins().band(index, mask);
        }
        let mut calls = Vec::new();
        for target in targets {
            let args = self.args_of(b, target);
            calls.push(BlockCall::new(target.block, args, &mut b.func.dfg.value_lists));
        }
        let Some(default) = calls.pop() else { return };
        let table = b.create_jump_table(JumpTableData::new(default, &calls));
        b.ins().br_table(index, table);
    }

    /// A `br_table` with a block for each case, or some shared; cases go on behind it or in the next one.
    fn switch(&mut self, b: &mut FunctionBuilder<'_>) {
        let mut cases = Vec::new();
        for _ in 0..1 + self.choices.below(4) {
            cases.push(self.target(b));
        }
        let after = self.target(b);
        let mut targets = cases.clone();
        for _ in 0..self.choices.below(3) {
            let again = self.choices.below(cases.len());
            targets.push(cases[again].clone());
        }
        if self.choices.below(2) == 0 {
            targets.push(after.clone());
        }
        self.mark(b, "switch");
        self.table(b, &targets);
        for (at, case) in cases.iter().enumerate() {
            let values = self.pool.len();
            self.begin(b, case);
            if !self.nested(b) {
                match cases.get(at + 1) {
                    Some(next) if self.choices.once_in(3) => {
                        self.mark(b, "case that falls through");
                        self.jump(b, next);
                    }
                    _ => self.jump(b, &after),
                }
            }
            self.pool.truncate(values);
        }
        self.begin(b, &after);
    }
}
