//! Calls: direct, through addresses, and at a function's end.

use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, SigRef, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;

use super::super::flow::{Flow, Numbers};
use super::Body;
use super::memory::Use;
use super::plan::{Param, TABLE, table_name};

impl Body<'_, '_> {
    pub(super) fn call(&mut self, b: &mut FunctionBuilder<'_>) {
        let callee = self.choices.below(self.plan.functions.len());
        let args = self.args(b, callee, Use::Write);
        let call = match self.choices.below(2) {
            0 => {
                let callee = self.import(b, callee);
                b.ins().call(callee, &args)
            }
            _ => {
                let (signature, address) = self.address(b, callee);
                b.ins().call_indirect(signature, address, &args)
            }
        };
        for result in b.inst_results(call).to_vec() {
            let ty = b.func.dfg.value_type(result);
            self.pool.push((result, ty));
        }
    }

    /// Ends the function: with values, or with a call if that is possible.
    pub(super) fn leave(&mut self, b: &mut FunctionBuilder<'_>) {
        let own = &self.plan.functions[self.index].signature;
        let all = self.plan.functions.iter().enumerate();
        let fitting = all.filter(|(_, planned)| {
            own.call_conv == CallConv::Tail
                && planned.signature.call_conv == CallConv::Tail
                && planned.signature.returns == own.returns
        });
        let fitting: Vec<usize> = fitting.map(|(index, _)| index).collect();
        if !fitting.is_empty() && self.choices.once_in(2) {
            let callee = self.choices.one(&fitting);
            let args = self.args(b, callee, Use::Outlives);
            if self.choices.below(2) == 0 {
                let callee = self.import(b, callee);
                b.ins().return_call(callee, &args);
            } else {
                let (signature, address) = self.address(b, callee);
                b.ins().return_call_indirect(signature, address, &args);
            }
            return;
        }
        let mut values = Vec::new();
        for ty in self.returns() {
            values.push(self.value(b, ty, 2));
        }
        b.ins().return_(&values);
    }

    fn args(&mut self, b: &mut FunctionBuilder<'_>, callee: usize, how: Use) -> Vec<Value> {
        let plan = self.plan;
        let params = plan.functions[callee].params.iter();
        let args = params.map(|param| match param {
            Param::Value(ty) => self.value(b, *ty, 2),
            Param::Block => self.block(b, how).0,
        });
        args.collect()
    }

    /// The address of a function like this one.
    fn address(&mut self, b: &mut FunctionBuilder<'_>, callee: usize) -> (SigRef, Value) {
        let word = self.plan.word_int();
        let planned = &self.plan.functions[callee];
        let signature = b.import_signature(planned.signature.clone());
        let alike = self.plan.like(planned.table);
        let address = match self.choices.below(3) {
            0 => {
                let callee = self.import(b, callee);
                b.ins().func_addr(word, callee)
            }
            1 => {
                let condition = self.condition(b);
                let addresses = [callee, self.choices.one(&alike)].map(|index| {
                    let callee = self.import(b, index);
                    b.ins().func_addr(word, callee)
                });
                b.ins().select(condition, addresses[0], addresses[1])
            }
            _ => {
                let table = self.symbol(b, &table_name(planned.table));
                let index = self.value(b, word, 1);
                let mask = b.ins().iconst(word, TABLE as i64 - 1);
                let index = b.ins().band(index, mask);
                let shift = b.ins().iconst(word, if word == I64 { 3 } else { 2 });
                let offset = b.ins().ishl(index, shift);
                let place = b.ins().iadd(table, offset);
                b.ins().load(word, MemFlagsData::trusted().with_readonly(), place, 0)
            }
        };
        (signature, address)
    }
}
