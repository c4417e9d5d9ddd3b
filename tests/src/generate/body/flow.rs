//! Control flow between blocks with parameters.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{Block, BlockArg, FuncRef, InstBuilder, TrapCode, Type};
use cranelift_frontend::FunctionBuilder as Builder;

use super::super::{Mark, clif};
use super::Body;

/// A block that is branched to, its parameters, and how many values there were when it was made: what is made later is
/// out of reach in it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) block: Block,
    pub(super) params: Vec<Type>,
    pub(super) values: usize,
}

impl Body<'_, '_> {
    /// Counts the current block as something.
    pub(super) fn mark(&mut self, b: &Builder<'_>, construct: &'static str) {
        let block = b.current_block().expect("there always is one");
        self.marks.push(Mark { function: self.index, block, construct });
    }

    /// A few statements, after which the values made in them are out of reach. Whether the function
    /// ends there.
    pub(super) fn nested(&mut self, b: &mut Builder<'_>) -> bool {
        let values = self.pool.len();
        self.depth += 1;
        let config = self.plan.config;
        let count = config.nested.0 + self.choices.below(config.nested.1);
        let mut ended = (0..count).any(|_| self.statement(b));
        if !ended && self.choices.once_in(config.ends) {
            self.end(b);
            ended = true;
        }
        self.depth -= 1;
        self.pool.truncate(values);
        ended
    }

    /// A target without parameters.
    pub(super) fn plain_target(&self, b: &mut Builder<'_>) -> Target {
        Target { block: b.create_block(), params: Vec::new(), values: self.pool.len() }
    }

    /// A new block with some parameters.
    pub(super) fn target(&mut self, b: &mut Builder<'_>) -> Target {
        let block = b.create_block();
        let none = !self.plan.config.rich && self.choices.below(2) == 0;
        let count = if none { 0 } else { self.choices.below(3) };
        let params: Vec<Type> = (0..count).map(|_| self.any_type()).collect();
        for &ty in &params {
            b.append_block_param(block, ty);
        }
        Target { block, params, values: self.pool.len() }
    }

    /// Goes on in the block, with its parameters at hand.
    pub(super) fn begin(&mut self, b: &mut Builder<'_>, target: &Target) {
        b.switch_to_block(target.block);
        self.pool.truncate(target.values);
        let params = b.block_params(target.block)[..target.params.len()].to_vec();
        self.pool.extend(params.into_iter().zip(target.params.iter().copied()));
        if !self.plan.config.rich {
            self.note_place(b);
        }
    }

    /// Arguments for a branch.
    pub(super) fn args_of(&mut self, b: &mut Builder<'_>, target: &Target) -> Vec<BlockArg> {
        target.params.iter().map(|&ty| self.leaf(b, ty).into()).collect()
    }

    pub(super) fn jump(&mut self, b: &mut Builder<'_>, target: &Target) {
        let args = self.args_of(b, target);
        b.ins().jump(target.block, &args);
    }

    pub(super) fn branch(&mut self, b: &mut Builder<'_>, on_true: &Target, on_false: &Target) {
        let condition = self.condition(b);
        let (x, y) = (self.args_of(b, on_true), self.args_of(b, on_false));
        b.ins().brif(condition, on_true.block, &x, on_false.block, &y);
    }

    /// A branch on a number, with the last target for all that are too large.
    pub(super) fn table(&mut self, b: &mut Builder<'_>, targets: &[&Target]) {
        let mut index = self.case_number(b);
        if self.choices.below(4) > 0 {
            index = b.ins().band_imm_s(index, 7);
        }
        let targets: Vec<_> =
            targets.iter().map(|&target| (target.block, self.args_of(b, target))).collect();
        clif::table(b, index, targets);
    }

    /// Goes to `out` if there is no fuel.
    pub(super) fn need_fuel(&mut self, b: &mut Builder<'_>, out: &Target) {
        let (fuel, one) = (b.use_var(self.fuel), b.ins().iconst(I32, 1));
        let left = b.ins().isub(fuel, one);
        b.def_var(self.fuel, left);
        let enough = b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left, 0);
        let go_on = b.create_block();
        let args = self.args_of(b, out);
        b.ins().brif(enough, go_on, &[], out.block, &args);
        b.switch_to_block(go_on);
    }

    /// Statements that go on after them. Whether the function ends in them.
    pub(super) fn side(&mut self, b: &mut Builder<'_>, start: &Target, after: &Target) -> bool {
        self.begin(b, start);
        self.mark(b, "if");
        let ended = self.nested(b);
        if !ended {
            self.jump(b, after);
        }
        ended
    }

    pub(super) fn if_else(&mut self, b: &mut Builder<'_>) {
        let [on_true, on_false, after] = [(); 3].map(|()| self.target(b));
        let one_sided = self.choices.below(2) == 0;
        self.choose(b, &on_true, if one_sided { &after } else { &on_false });
        let mut ended = self.side(b, &on_true, &after);
        if !one_sided {
            ended &= self.side(b, &on_false, &after);
        }
        if ended && !one_sided {
            // Nothing leads to the block after it, which is one nevertheless.
            b.switch_to_block(after.block);
            b.ins().trap(TrapCode::unwrap_user(99));
            self.ended = true;
        } else {
            self.begin(b, &after);
        }
    }

    /// A branch with both edges to one block, with different arguments.
    pub(super) fn merge(&mut self, b: &mut Builder<'_>) {
        let ty = self.any_type();
        let condition = self.condition(b);
        let (x, y) = (self.value(b, ty, 2), self.value(b, ty, 2));
        let after = b.create_block();
        let merged = b.append_block_param(after, ty);
        b.ins().brif(condition, after, &[x.into()], after, &[y.into()]);
        b.switch_to_block(after);
        self.pool.push((merged, ty));
    }

    /// A `br_table` with a block for each case, or some shared.
    pub(super) fn switch(&mut self, b: &mut Builder<'_>) {
        let count = 1 + self.choices.below(4);
        let mut cases: Vec<Target> = (0..count).map(|_| self.target(b)).collect();
        let mut after = self.target(b);
        let mut targets: Vec<&Target> = cases.iter().collect();
        for _ in 0..self.choices.below(3) {
            targets.push(&cases[self.choices.below(count)]);
        }
        if self.choices.below(2) == 0 {
            targets.push(&after);
        }
        self.mark(b, "switch");
        self.table(b, &targets);
        // The operands of the index can be used in all of them.
        cases.iter_mut().chain([&mut after]).for_each(|case| case.values = self.pool.len());
        for (at, case) in cases.iter().enumerate() {
            self.begin(b, case);
            if self.nested(b) {
                continue;
            }
            match cases.get(at + 1) {
                Some(next) if self.choices.once_in(3) => {
                    self.mark(b, "case that falls through");
                    self.jump(b, next);
                }
                _ => self.jump(b, &after),
            }
        }
        self.begin(b, &after);
    }

    /// Blocks that branch to any of them, also into loops, until there is no fuel left.
    pub(super) fn graph(&mut self, b: &mut Builder<'_>) {
        let count = 2 + self.choices.below(self.plan.config.graphs);
        let targets: Vec<Target> = (0..=count).map(|_| self.target(b)).collect();
        // Through any two of them.
        let [x, y] = [0; 2].map(|_: usize| self.choices.below(count));
        self.branch(b, &targets[x], &targets[y]);
        self.depth += 1;
        for at in 0..count {
            self.begin(b, &targets[at]);
            self.mark(b, "block of any graph");
            let statements = self.choices.below(3);
            if !(0..statements).any(|_| self.statement(b)) {
                self.anywhere(b, &targets, at);
            }
        }
        self.depth -= 1;
        self.begin(b, &targets[count]);
    }

    /// Ends block `at` of a graph.
    pub(super) fn anywhere(&mut self, b: &mut Builder<'_>, targets: &[Target], at: usize) {
        let ways = match self.choices.below(16) {
            0..=3 => 1,
            kind if kind < 4 + self.plan.config.branches => 2,
            15 => return self.end(b),
            _ => 2 + self.choices.below(4),
        };
        let next = (0..ways).map(|_| match self.choices.below(3) {
            0 => at + 1,
            _ => self.choices.below(targets.len()),
        });
        let next: Vec<usize> = next.collect();
        let last = targets.len() - 1;
        if next.iter().any(|&target| target <= at) {
            self.need_fuel(b, &targets[last]);
        }
        let next: Vec<&Target> = next.into_iter().map(|to| &targets[to]).collect();
        match next[..] {
            [only] => self.jump(b, only),
            [x, y] if self.choices.below(4) > 0 => self.branch(b, x, y),
            _ => self.table(b, &next),
        }
    }

    pub(super) fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.choices.below(5) as u8)
    }

    /// A reference to a function of the module.
    pub(super) fn import(&mut self, b: &mut Builder<'_>, index: usize) -> FuncRef {
        let planned = &self.plan.functions[index];
        clif::import(b.func, &planned.name, planned.signature.clone(), self.choices.below(2) == 0)
    }
}
