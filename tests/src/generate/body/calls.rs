//! Calls: direct, through addresses on which lanes may disagree, and at a function's end.

use cranelift_codegen::ir::{InstBuilder, MemFlagsData, SigRef, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder as Builder;

use super::Body;
use super::memory::{Use, indexed};
use super::plan::{Param, TABLE, like, table_name};

impl Body<'_, '_> {
    pub(super) fn call(&mut self, b: &mut Builder<'_>) {
        // A kernel is never called.
        let first = usize::from(self.plan.config.lanes);
        let callees = self.plan.functions.len() - first;
        if callees == 0 {
            return;
        }
        let callee = first + self.choices.below(callees);
        if callee <= self.index {
            self.mark(b, "call that may be recursive");
        }
        let args = self.args(b, callee, Use::Write);
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
    pub(super) fn leave(&mut self, b: &mut Builder<'_>) {
        if self.plan.config.lanes && self.index == 0 {
            self.store_results(b);
            b.ins().return_(&[]);
            return;
        }
        let fitting = self.tail_callees();
        if !fitting.is_empty() && self.choices.below(2) == 0 {
            let callee = self.choices.one(&fitting);
            let args = self.args(b, callee, Use::Outlives);
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
            // So that callers see the path that was taken.
            let traced = !self.plan.config.rich && ty == self.plan.word();
            values.push(if traced { trace } else { self.value(b, ty, 2) });
        }
        b.ins().return_(&values);
    }

    /// The functions that may be called at the end.
    fn tail_callees(&self) -> Vec<usize> {
        let own = &self.plan.functions[self.index];
        let fits = |index: &usize| {
            let other = &self.plan.functions[*index];
            let is_like = other.table == own.table
                || self.plan.config.rich && other.signature.returns == own.signature.returns;
            is_like && [own, other].iter().all(|one| one.signature.call_conv == CallConv::Tail)
        };
        (0..self.plan.functions.len()).filter(fits).collect()
    }

    fn args(&mut self, b: &mut Builder<'_>, callee: usize, how: Use) -> Vec<Value> {
        let plan = self.plan;
        let params = plan.functions[callee].params.iter();
        let args = params.map(|param| match *param {
            Param::Own => self.own.expect("who calls a work-item's function is one"),
            Param::Value(ty) => self.value(b, ty, 1),
            Param::Block => self.block(b, how).0,
        });
        args.collect()
    }

    /// The address of a function like this one.
    fn address(&mut self, b: &mut Builder<'_>, callee: usize) -> (SigRef, Value) {
        let word = self.plan.word();
        let planned = &self.plan.functions[callee];
        let signature = b.import_signature(planned.signature.clone());
        let alike = like(&self.plan.functions, planned.table);
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
                let table = self.symbol(b, &table_name(planned.table), 0);
                let index = if kind == 3 { self.uniform(b) } else { self.varied(b) };
                let place = indexed(b, table, index, TABLE);
                b.ins().load(word, MemFlagsData::trusted().with_readonly(), place, 0)
            }
        };
        (signature, address)
    }
}
