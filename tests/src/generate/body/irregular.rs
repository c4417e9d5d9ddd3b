//! Control flow that no structured statements make.

use cranelift_codegen::ir::InstBuilder;
use cranelift_frontend::FunctionBuilder as Builder;

use super::Body;

impl Body<'_, '_> {
    /// Both sides of a branch, one of them on a condition, go through a block that does not come behind
    /// both of them.
    pub(super) fn shared_block(&mut self, b: &mut Builder<'_>) {
        let [left, right, shared, after] = [(); 4].map(|()| self.target(b));
        let mut rest = self.plain_target(b);
        self.choose(b, &left, &right);
        self.side(b, &left, &shared);
        self.begin(b, &right);
        if !self.nested(b) {
            rest.values = self.pool.len();
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
        self.begin(b, &shared);
        self.mark(b, "shared block");
        if !self.nested(b) {
            self.jump(b, &after);
        }
        self.begin(b, &after);
    }

    /// A loop of two blocks that is entered at either, until there is no fuel or a condition fails.
    pub(super) fn irreducible(&mut self, b: &mut Builder<'_>) {
        let [first, second, out] = [(); 3].map(|()| self.target(b));
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
        }
        self.begin(b, &out);
    }
}
