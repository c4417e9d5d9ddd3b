//! Control flow, structured and not.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{BlockArg, ExternalName, InstBuilder, Signature, Type, Value};
use cranelift_frontend::{FunctionBuilder, Variable};

use super::super::choices::Choices;
use super::super::flow::{Amounts, Flow, Numbers};
use super::Body;
use super::rows::{INTS, TYPES};

/// Statements nest this deep.
const MAX_DEPTH: usize = 3;

impl<'u> Flow<'u> for Body<'_, 'u> {
    const AMOUNTS: Amounts =
        Amounts { nested: 1, nested_kinds: 3, ends: 16, graphs: 6, branches: 8 };

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

    fn end(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.plan.may_trap && self.choices.once_in(4) {
            let code = self.trap_code();
            b.ins().trap(code);
        } else {
            self.leave(b);
        }
    }

    fn param_types(&mut self) -> Vec<Type> {
        (0..self.choices.below(3)).map(|_| self.choices.one(&TYPES)).collect()
    }

    fn declared(&self, index: usize) -> (ExternalName, Signature) {
        let planned = &self.plan.functions[index];
        (ExternalName::testcase(&planned.name), planned.signature.clone())
    }

    fn case_number(&mut self, b: &mut FunctionBuilder<'_>) -> Value {
        self.value(b, I32, 2)
    }
}

impl Body<'_, '_> {
    fn assign(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.variables.is_empty() {
            return;
        }
        let (variable, ty) = self.choices.one(&self.variables);
        let value = self.value(b, ty, 3);
        b.def_var(variable, value);
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
}
