//! Control flow that no structured statements make.

use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::FunctionBuilder;

use super::Body;
use super::control::Target;

impl Body<'_, '_> {
    /// Both sides of a branch, one of them on a condition, go through a block that does not come behind
    /// both of them.
    pub(super) fn shared_block(&mut self, b: &mut FunctionBuilder<'_>) {
        let [left, right, shared, after] = [(); 4].map(|()| self.target(b));
        let rest = Self::plain_target(b);
        let values = self.pool.len();
        self.choose(b, &left, &right);
        self.side(b, &left, &shared);
        self.begin(b, &right);
        if !self.nested(b) {
            self.choose(b, &shared, &rest);
            self.begin(b, &rest);
            if !self.nested(b) {
                self.jump(b, &after);
            }
        } else {
            b.switch_to_block(rest.block);
            let code = self.trap_code();
            b.ins().trap(code);
        }
        self.pool.truncate(values);
        self.begin(b, &shared);
        self.mark(b, "shared block");
        if !self.nested(b) {
            self.jump(b, &after);
        }
        self.pool.truncate(values);
        self.begin(b, &after);
    }

    /// A loop of two blocks that is entered at either, until there is no fuel or a condition fails.
    pub(super) fn irreducible(&mut self, b: &mut FunctionBuilder<'_>) {
        let [first, second, out] = [(); 3].map(|()| self.target(b));
        let values = self.pool.len();
        self.choose(b, &first, &second);
        for (here, there) in [(&first, &second), (&second, &first)] {
            self.begin(b, here);
            self.mark(b, "loop with two entries");
            if !self.nested(b) {
                self.need_fuel(b, &out);
                match self.choices.below(3) {
                    0 => self.jump(b, there),
                    _ => self.choose(b, there, &out),
                }
            }
            self.pool.truncate(values);
        }
        self.begin(b, &out);
    }

    /// Blocks that branch to any of them, also into loops, until there is no fuel left.
    pub(super) fn graph(&mut self, b: &mut FunctionBuilder<'_>) {
        let count = 2 + self.choices.below(7);
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
            self.mark(b, "block of any graph");
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
            4..=12 => 2,
            13..=14 => 2 + self.choices.below(4),
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
}
