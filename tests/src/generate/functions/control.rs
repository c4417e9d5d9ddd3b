//! Control flow, structured and not.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, InstBuilder, JumpTableData, TrapCode, Type, Value,
};
use cranelift_frontend::FunctionBuilder;

use super::Body;
use super::rows::{INTS, TYPES};

/// Statements nest this deep.
const MAX_DEPTH: usize = 3;

/// A block that is branched to, and its parameters.
#[derive(Clone, Debug)]
struct Target {
    block: Block,
    params: Vec<Type>,
}

impl Body<'_, '_> {
    /// Makes a statement. Whether the function ends there.
    pub(super) fn statement(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let flat = 11;
        let kinds = if self.depth < MAX_DEPTH { flat + 9 } else { flat };
        match self.choices.below(kinds) {
            0 => self.assign(b),
            1 | 2 => {
                let ty = self.choices.one(&TYPES);
                let value = self.value(b, ty, 3);
                self.store(b, value);
            }
            3 => {
                let ty = self.choices.one(&TYPES);
                self.value(b, ty, 4);
            }
            4 | 5 => self.call(b),
            6 | 7 => self.atomic(b),
            8 if self.plan.may_trap => self.trap_statement(b),
            8..=10 => {
                let ty = self.choices.one(&TYPES);
                self.merge(b, ty);
            }
            11 => return self.if_else(b),
            12 => self.leave_if(b),
            13 => self.counted_loop(b),
            14 => self.fueled_loop(b),
            15 => self.switch(b),
            _ => self.graph(b),
        }
        false
    }

    fn assign(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.variables.is_empty() {
            return;
        }
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 3);
        b.def_var(variable, value);
    }

    /// A few statements, after which the values made in them are out of reach. Whether the function
    /// ends there.
    fn nested(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let values = self.pool.len();
        self.depth += 1;
        let mut ended = false;
        for _ in 0..1 + self.choices.below(3) {
            ended = self.statement(b);
            if ended {
                break;
            }
        }
        if !ended && self.choices.once_in(16) {
            self.end(b);
            ended = true;
        }
        self.depth -= 1;
        self.pool.truncate(values);
        ended
    }

    /// A new block with some parameters.
    fn target(&mut self, b: &mut FunctionBuilder<'_>) -> Target {
        let block = b.create_block();
        let params: Vec<Type> =
            (0..self.choices.below(3)).map(|_| self.choices.one(&TYPES)).collect();
        for &ty in &params {
            b.append_block_param(block, ty);
        }
        Target { block, params }
    }

    /// Goes on in the block, with its parameters at hand.
    fn begin(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        b.switch_to_block(target.block);
        let params = b.block_params(target.block)[..target.params.len()].to_vec();
        self.pool.extend(params.into_iter().zip(target.params.iter().copied()));
    }

    /// Arguments for a branch.
    fn args_of(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) -> Vec<BlockArg> {
        target.params.iter().map(|&ty| self.leaf(b, ty).into()).collect()
    }

    fn jump(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        let args = self.args_of(b, target);
        b.ins().jump(target.block, &args);
    }

    fn branch(&mut self, b: &mut FunctionBuilder<'_>, on_true: &Target, on_false: &Target) {
        let condition = self.condition(b);
        let (x, y) = (self.args_of(b, on_true), self.args_of(b, on_false));
        b.ins().brif(condition, on_true.block, &x, on_false.block, &y);
    }

    /// A branch on a number, with the last target for all that are too large.
    fn table(&mut self, b: &mut FunctionBuilder<'_>, targets: &[Target]) {
        let mut index = self.value(b, I32, 2);
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

    fn if_else(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let [on_true, on_false, after] = [(); 3].map(|()| self.target(b));
        let one_sided = self.choices.below(2) == 0;
        self.branch(b, &on_true, if one_sided { &after } else { &on_false });
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
    fn side(&mut self, b: &mut FunctionBuilder<'_>, start: &Target, after: &Target) -> bool {
        let values = self.pool.len();
        self.begin(b, start);
        let ended = self.nested(b);
        if !ended {
            self.jump(b, after);
        }
        self.pool.truncate(values);
        ended
    }

    /// A branch with both ways to one block, which takes other arguments on each.
    fn merge(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) {
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
        let [out, after] = [b.create_block(), b.create_block()];
        let condition = self.condition(b);
        if self.choices.below(2) == 0 {
            b.ins().brif(condition, out, &[], after, &[]);
        } else {
            b.ins().brif(condition, after, &[], out, &[]);
        }
        b.switch_to_block(out);
        let values = self.pool.len();
        self.end(b);
        self.pool.truncate(values);
        b.switch_to_block(after);
    }

    /// Ends the function, by a trap perhaps.
    fn end(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.plan.may_trap && self.choices.once_in(4) {
            let code = self.trap_code();
            b.ins().trap(code);
        } else {
            self.leave(b);
        }
    }

    /// Counts a block's parameter of any type down to 0, with other parameters beside it.
    fn counted_loop(&mut self, b: &mut FunctionBuilder<'_>) {
        let ty = self.choices.one(&INTS);
        let (header, after) = (b.create_block(), b.create_block());
        let counter = b.append_block_param(header, ty);
        let carried: Vec<Type> =
            (0..self.choices.below(4)).map(|_| self.choices.one(&TYPES)).collect();
        let params: Vec<Value> =
            carried.iter().map(|&ty| b.append_block_param(header, ty)).collect();
        let start = b.ins().iconst(ty, 1 + self.choices.below(3) as i64);
        let mut args: Vec<BlockArg> = vec![start.into()];
        for &ty in &carried {
            args.push(self.leaf(b, ty).into());
        }
        b.ins().jump(header, &args);
        b.switch_to_block(header);
        let values = self.pool.len();
        self.pool.push((counter, ty));
        self.pool.extend(params.into_iter().zip(carried.iter().copied()));
        if !self.nested(b) {
            let one = b.ins().iconst(ty, 1);
            let next = b.ins().isub(counter, one);
            let mut args: Vec<BlockArg> = vec![next.into()];
            for &ty in &carried {
                args.push(self.value(b, ty, 2).into());
            }
            b.ins().brif(next, header, &args, after, &[]);
        }
        self.pool.truncate(values);
        b.switch_to_block(after);
    }

    /// Goes round while a condition holds and there is fuel.
    fn fueled_loop(&mut self, b: &mut FunctionBuilder<'_>) {
        let [header, body, after] = [(); 3].map(|()| self.target(b));
        self.jump(b, &header);
        let values = self.pool.len();
        self.begin(b, &header);
        self.need_fuel(b, &after);
        self.branch(b, &body, &after);
        self.side(b, &body, &header);
        self.pool.truncate(values);
        self.begin(b, &after);
    }

    /// Goes to `out` if there is no fuel.
    fn need_fuel(&mut self, b: &mut FunctionBuilder<'_>, out: &Target) {
        let (fuel, one) = (b.use_var(self.fuel), b.ins().iconst(I32, 1));
        let left = b.ins().isub(fuel, one);
        b.def_var(self.fuel, left);
        let zero = b.ins().iconst(I32, 0);
        let enough = b.ins().icmp(IntCC::SignedGreaterThanOrEqual, left, zero);
        let go_on = b.create_block();
        let args = self.args_of(b, out);
        b.ins().brif(enough, go_on, &[], out.block, &args);
        b.switch_to_block(go_on);
    }

    /// A `br_table` with a block for each case, or some shared.
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
        self.table(b, &targets);
        for case in &cases {
            self.side(b, case, &after);
        }
        self.begin(b, &after);
    }

    /// Blocks that branch to any of them, also into loops, until there is no fuel left.
    fn graph(&mut self, b: &mut FunctionBuilder<'_>) {
        let count = 2 + self.choices.below(6);
        let mut targets = Vec::new();
        for _ in 0..=count {
            targets.push(self.target(b));
        }
        let values = self.pool.len();
        // Through any two of them.
        let [x, y] = [0; 2].map(|_: usize| self.choices.below(count));
        self.branch(b, &targets[x], &targets[y]);
        self.depth += 1;
        for at in 0..count {
            self.pool.truncate(values);
            self.begin(b, &targets[at]);
            let mut ended = false;
            for _ in 0..self.choices.below(3) {
                ended = self.statement(b);
                if ended {
                    break;
                }
            }
            if !ended {
                self.anywhere(b, &targets, at);
            }
        }
        self.depth -= 1;
        self.pool.truncate(values);
        self.begin(b, &targets[count]);
    }

    /// Ends block `at` of a graph.
    fn anywhere(&mut self, b: &mut FunctionBuilder<'_>, targets: &[Target], at: usize) {
        let ways = match self.choices.below(16) {
            0..=3 => 1,
            4..=11 => 2,
            12..=14 => 2 + self.choices.below(4),
            _ => return self.end(b),
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
        match next.as_slice() {
            &[only] => self.jump(b, &targets[only]),
            &[x, y] if self.choices.below(4) > 0 => self.branch(b, &targets[x], &targets[y]),
            several => {
                let several: Vec<Target> =
                    several.iter().map(|&target| targets[target].clone()).collect();
                self.table(b, &several);
            }
        }
    }

    /// Something that may trap.
    fn trap_statement(&mut self, b: &mut FunctionBuilder<'_>) {
        let code = self.trap_code();
        let condition = match self.choices.below(3) {
            // Two numbers of many values are hardly ever equal.
            0 => {
                let ty = self.choices.one(&INTS);
                let (x, y) = (self.value(b, ty, 2), self.leaf(b, ty));
                b.ins().icmp(IntCC::Equal, x, y)
            }
            1 => {
                let ty = self.choices.one(&INTS);
                self.leaf(b, ty)
            }
            _ => self.condition(b),
        };
        match self.choices.below(4) {
            0 | 1 => {
                b.ins().trapnz(condition, code);
            }
            2 => {
                b.ins().trapz(condition, code);
            }
            _ => self.access_nowhere(b, condition),
        }
    }

    fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.choices.below(5) as u8)
    }
}
