//! Calls: direct, through addresses on which lanes may disagree, and at a function's end.

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, SigRef, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;

use super::super::flow::{Flow, Numbers};
use super::Body;
use super::plan::{TABLE, table_name};

impl Body<'_, '_> {
    pub(super) fn call(&mut self, b: &mut FunctionBuilder<'_>) {
        let callees = self.plan.functions.len() - 1;
        if callees == 0 {
            return;
        }
        let callee = 1 + self.choices.below(callees);
        if callee <= self.index {
            self.mark(b, "call that may be recursive");
        }
        let args = self.args(b, callee);
        let call = if self.choices.below(2) == 0 {
            self.mark(b, "call");
            let callee = self.import(b, callee);
            b.ins().call(callee, &args)
        } else {
            self.mark(b, "indirect call");
            let (signature, address) = self.address(b, callee);
            b.ins().call_indirect(signature, address, &args)
        };
        for result in b.inst_results(call).to_vec() {
            let ty = b.func.dfg.value_type(result);
            self.pool.push((result, ty));
        }
    }

    /// Ends the function: the kernel with its results in memory, others with values or a call.
    pub(super) fn leave(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.index == 0 {
            self.store_results(b);
            b.ins().return_(&[]);
            return;
        }
        let own = &self.plan.functions[self.index];
        if own.signature.call_conv == CallConv::Tail && self.choices.below(2) == 0 {
            let callee = self.choices.one(&self.plan.like(own.table));
            let args = self.args(b, callee);
            if self.choices.below(2) == 0 {
                self.mark(b, "tail call");
                let callee = self.import(b, callee);
                b.ins().return_call(callee, &args);
            } else {
                self.mark(b, "indirect tail call");
                let (signature, address) = self.address(b, callee);
                b.ins().return_call_indirect(signature, address, &args);
            }
            return;
        }
        let trace = b.use_var(self.trace);
        let mut values = Vec::new();
        for ty in self.returns() {
            // So that callers see the way that was taken.
            let value = if ty == self.plan.word() { trace } else { self.value(b, ty, 2) };
            values.push(value);
        }
        b.ins().return_(&values);
    }

    fn args(&mut self, b: &mut FunctionBuilder<'_>, callee: usize) -> Vec<Value> {
        let params = &self.plan.functions[callee].signature.params;
        let types: Vec<_> = params[1..].iter().map(|param| param.value_type).collect();
        let rest: Vec<Value> = types.into_iter().map(|ty| self.value(b, ty, 1)).collect();
        [vec![self.own], rest].concat()
    }

    /// The address of a function like this one.
    fn address(&mut self, b: &mut FunctionBuilder<'_>, callee: usize) -> (SigRef, Value) {
        let word = self.plan.word();
        let planned = &self.plan.functions[callee];
        let signature = b.import_signature(planned.signature.clone());
        let alike = self.plan.like(planned.table);
        let address = match self.choices.below(5) {
            0 => {
                let callee = self.import(b, callee);
                b.ins().func_addr(word, callee)
            }
            1 | 2 => {
                let condition = self.condition(b);
                let addresses = [callee, self.choices.one(&alike)].map(|index| {
                    let callee = self.import(b, index);
                    b.ins().func_addr(word, callee)
                });
                b.ins().select(condition, addresses[0], addresses[1])
            }
            kind => {
                let table = self.symbol(b, &table_name(planned.table));
                let index = if kind == 3 { self.uniform(b) } else { self.varied(b) };
                let place = self.indexed(b, table, index, TABLE);
                b.ins().load(word, MemFlagsData::trusted().with_readonly(), place, 0)
            }
        };
        (signature, address)
    }
}
