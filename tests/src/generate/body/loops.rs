//! Loops and their exits.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Type, Value};
use cranelift_frontend::FunctionBuilder as Builder;

use super::Body;
use super::flow::Target;
use super::rows::INTS;

/// A loop around a place.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Where the next round begins.
    next: Target,
    /// Where it goes on when the loop is left.
    out: Target,
}

impl Body<'_, '_> {
    /// Statements inside of a loop, up to the next round.
    fn round(&mut self, b: &mut Builder<'_>, next: &Target, out: &Target) {
        if !self.loops.is_empty() {
            self.mark(b, "nested loop");
        }
        self.loops.push(Loop { next: next.clone(), out: out.clone() });
        if !self.nested(b) {
            self.jump(b, next);
        }
        self.loops.pop();
    }

    /// Counts down from a small number that all lanes agree on.
    pub(super) fn uniform_loop(&mut self, b: &mut Builder<'_>) {
        let count = self.uniform(b);
        self.counted_loop(b, count, "loop with a uniform count");
    }

    /// The same with a number of each lane's own.
    pub(super) fn own_loop(&mut self, b: &mut Builder<'_>) {
        let count = self.varied(b);
        self.counted_loop(b, count, "loop with a count of each lane's own");
    }

    fn counted_loop(&mut self, b: &mut Builder<'_>, count: Value, construct: &'static str) {
        let word = self.plan.word();
        let mut count = b.ins().band_imm_s(count, 3);
        let tested_first = self.choices.below(2) == 0;
        if !tested_first {
            count = b.ins().bor_imm_s(count, 1);
        }
        let counter = b.declare_var(word);
        b.def_var(counter, count);
        let [body, next, out] = [(); 3].map(|()| self.plain_target(b));
        let header = if tested_first {
            let header = self.plain_target(b);
            self.jump(b, &header);
            b.switch_to_block(header.block);
            let left = b.use_var(counter);
            b.ins().brif(left, body.block, &[], out.block, &[]);
            header
        } else {
            self.jump(b, &body);
            body.clone()
        };
        self.begin(b, &body);
        self.mark(b, construct);
        self.round(b, &next, &out);
        b.switch_to_block(next.block);
        let (left, one) = (b.use_var(counter), b.ins().iconst(word, 1));
        let left = b.ins().isub(left, one);
        b.def_var(counter, left);
        if tested_first {
            b.ins().jump(header.block, &[]);
        } else {
            b.ins().brif(left, header.block, &[], out.block, &[]);
        }
        self.begin(b, &out);
    }

    /// Counts a block's parameter of any type down to 0, or up to a limit, with other parameters beside it.
    pub(super) fn carried_loop(&mut self, b: &mut Builder<'_>) {
        let ty = self.choices.one(&INTS);
        let [header, after] = [(); 2].map(|()| b.create_block());
        let counter = b.append_block_param(header, ty);
        let carried: Vec<Type> = (0..self.choices.below(4)).map(|_| self.any_type()).collect();
        let params: Vec<Value> =
            carried.iter().map(|&ty| b.append_block_param(header, ty)).collect();
        let (rounds, up) = (1 + self.choices.below(3) as i64, self.choices.below(2) == 0);
        let start = b.ins().iconst(ty, if up { 0 } else { rounds });
        let mut args: Vec<BlockArg> = vec![start.into()];
        args.extend(carried.iter().map(|&ty| BlockArg::from(self.leaf(b, ty))));
        b.ins().jump(header, &args);
        b.switch_to_block(header);
        let values = self.pool.len();
        self.pool.push((counter, ty));
        self.pool.extend(params.into_iter().zip(carried.iter().copied()));
        if !self.nested(b) {
            let (one, limit) = (b.ins().iconst(ty, 1), b.ins().iconst(ty, rounds));
            let next = if up { b.ins().iadd(counter, one) } else { b.ins().isub(counter, one) };
            let again = if up { b.ins().icmp(IntCC::SignedLessThan, next, limit) } else { next };
            let mut args: Vec<BlockArg> = vec![next.into()];
            args.extend(carried.iter().map(|&ty| BlockArg::from(self.value(b, ty, 2))));
            b.ins().brif(again, header, &args, after, &[]);
        }
        self.pool.truncate(values);
        b.switch_to_block(after);
    }

    /// Goes round while a condition holds and there is fuel. Each `continue` is a back edge.
    pub(super) fn while_loop(&mut self, b: &mut Builder<'_>) {
        let [header, mut body, out] = [(); 3].map(|()| self.target(b));
        self.jump(b, &header);
        self.begin(b, &header);
        body.values = self.pool.len();
        self.need_fuel(b, &out);
        self.choose(b, &body, &out);
        self.begin(b, &body);
        self.mark(b, "loop tested at the top");
        self.round(b, &header, &out);
        self.begin(b, &out);
    }

    /// Goes round as long as a condition holds afterwards and there is fuel.
    pub(super) fn do_loop(&mut self, b: &mut Builder<'_>) {
        let [body, next, out] = [(); 3].map(|()| self.target(b));
        self.jump(b, &body);
        self.begin(b, &body);
        self.mark(b, "loop tested at the bottom");
        self.round(b, &next, &out);
        self.begin(b, &next);
        self.need_fuel(b, &out);
        self.choose(b, &body, &out);
        self.begin(b, &out);
    }

    /// Goes round until something inside leaves it, or there is no fuel.
    pub(super) fn endless_loop(&mut self, b: &mut Builder<'_>) {
        let [header, out] = [(); 2].map(|()| self.target(b));
        self.jump(b, &header);
        if self.choices.once_in(4) {
            // Without fuel the function ends.
            let dry = self.plain_target(b);
            self.begin(b, &header);
            self.need_fuel(b, &dry);
            let go_on = b.current_block().expect("there always is one");
            b.switch_to_block(dry.block);
            let values = self.pool.len();
            self.end(b);
            self.pool.truncate(values);
            b.switch_to_block(go_on);
        } else {
            self.begin(b, &header);
            self.need_fuel(b, &out);
        }
        self.mark(b, "loop that only breaks leave");
        self.loops.push(Loop { next: header.clone(), out: out.clone() });
        self.escape_if(b);
        self.loops.pop();
        self.round(b, &header, &out);
        self.begin(b, &out);
    }

    /// Leaves a loop, or begins its next round, on a condition; if there is none, the function.
    pub(super) fn escape_if(&mut self, b: &mut Builder<'_>) {
        let [inside, after] = [(); 2].map(|()| self.plain_target(b));
        self.choose(b, &inside, &after);
        self.begin(b, &inside);
        if self.choices.once_in(3) {
            // Statements that only the leaving lanes execute.
            let controls = std::mem::take(&mut self.controls);
            self.statement(b);
            self.controls = controls;
        }
        let level = self.choices.below(self.loops.len().max(1));
        let around = self.loops.iter().rev().nth(level).cloned();
        match (around, self.choices.below(7)) {
            (Some(around), 0..=3) => {
                self.mark(b, if level == 0 { "break" } else { "break of an outer loop" });
                self.jump(b, &around.out);
            }
            (Some(around), 4..=5) => {
                self.mark(b, if level == 0 { "continue" } else { "continue of an outer loop" });
                self.jump(b, &around.next);
            }
            _ => self.end(b),
        }
        self.begin(b, &after);
    }
}
