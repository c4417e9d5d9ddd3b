//! Random modules: bytes to functions that call each other, data, and a call of the first function.
//!
//! All bytes give a module, and fewer bytes give a smaller one. Everything ends: all calls together
//! have a fuel, which lies in memory, and each function has one for the loops of its control-flow graphs.
//! Functions are for a single lane: branches go anywhere. Addresses are of blocks of memory known to be
//! there and initialized, except where a trap is wanted, and they reach neither results nor memory; nor
//! do the bits of NaNs that operations make (see [`ModuleCase`]).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F64, I32};
use cranelift_codegen::ir::{
    Function, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use harp_isa::WordSize;

use super::choices::Choices;
use super::flow::{self, Flow, Numbers};
use crate::oracle::ModuleCase;

mod calls;
mod control;
mod memory;
mod plan;
mod rows;
mod values;

use plan::{BLOCK, FUEL, Param, Plan};
use rows::TYPES;

/// The module that `bytes` stand for on machines with this word.
pub fn module(bytes: &[u8], word: WordSize) -> ModuleCase {
    let mut choices = Choices::new(bytes);
    let plan = Plan::new(&mut choices, word);
    let args = plan.args(&mut choices);
    let mut functions = Vec::new();
    let mut context = FunctionBuilderContext::new();
    for index in 0..plan.functions.len() {
        functions.push(function(&plan, index, &mut choices, &mut context));
    }
    ModuleCase { word, functions, data: plan.data, args }
}

fn function(
    plan: &Plan,
    index: usize,
    choices: &mut Choices<'_>,
    context: &mut FunctionBuilderContext,
) -> Function {
    let planned = &plan.functions[index];
    flow::function(&planned.name, &planned.signature, plan.word, context, |b| {
        let entry = b.current_block().expect("the entry");
        let params = b.block_params(entry).to_vec();
        let mut body = Body::new(plan, index, choices, b);
        for (&param, &value) in planned.params.iter().zip(&params) {
            match param {
                Param::Value(ty) => body.pool.push((value, ty)),
                Param::Block => body.blocks.push(value),
            }
        }
        body.make(b);
    })
}

/// A stack slot with a block in it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    slot: StackSlot,
    /// Where the block begins.
    start: i32,
}

/// A function in the making.
struct Body<'p, 'u> {
    plan: &'p Plan,
    choices: &'p mut Choices<'u>,
    index: usize,
    /// Values that can be used here.
    pool: Vec<(Value, Type)>,
    /// Addresses of blocks that it was given.
    blocks: Vec<Value>,
    slots: Vec<Slot>,
    variables: Vec<(Variable, Type)>,
    /// Loops that may still go round.
    fuel: Variable,
    /// Operations that may still be made.
    budget: usize,
    depth: usize,
}

impl<'p, 'u> Body<'p, 'u> {
    fn new(
        plan: &'p Plan,
        index: usize,
        choices: &'p mut Choices<'u>,
        b: &mut FunctionBuilder<'_>,
    ) -> Body<'p, 'u> {
        let budget = 6 + choices.below(5) * 50;
        let fuel = b.declare_var(I32);
        let mut slots = Vec::new();
        for _ in 0..choices.below(4) {
            let (size, start) = match choices.below(4) {
                0 | 1 => (BLOCK, 0),
                2 => (BLOCK + 20, 16),
                _ => (3000, 3000 - BLOCK - 8),
            };
            let align_shift = choices.one(&[4, 3, 5, 4, 7]);
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size as u32, align_shift);
            slots.push(Slot { slot: b.create_sized_stack_slot(data), start: start as i32 });
        }
        Body {
            plan,
            choices,
            index,
            pool: Vec::new(),
            blocks: Vec::new(),
            slots,
            variables: Vec::new(),
            fuel,
            budget,
            depth: 0,
        }
    }

    fn make(&mut self, b: &mut FunctionBuilder<'_>) {
        self.burn_fuel(b);
        let fuel = b.ins().iconst(I32, 2 + self.choices.below(12) as i64);
        b.def_var(self.fuel, fuel);
        self.fill_slots(b);
        for ty in TYPES {
            for _ in 0..self.choices.below(3) {
                let variable = b.declare_var(ty);
                if self.choices.below(4) > 0 {
                    let value = self.leaf(b, ty);
                    b.def_var(variable, value);
                }
                self.variables.push((variable, ty));
            }
        }
        let early = if self.choices.once_in(4) { 10 + self.choices.below(60) } else { 0 };
        self.budget += early;
        let first = self.pool.len();
        for _ in 0..early {
            let ty = self.choices.one(&TYPES);
            self.value(b, ty, 1);
        }
        let early: Vec<_> = self.pool[first..].to_vec();
        for _ in 0..1 + self.choices.below(10) {
            if self.statement(b) {
                return;
            }
        }
        let kept = if self.choices.once_in(2) { self.pool.clone() } else { early };
        self.keep(b, &kept);
        self.leave(b);
    }

    /// Returns at once if all calls together have used up their fuel.
    fn burn_fuel(&mut self, b: &mut FunctionBuilder<'_>) {
        let address = self.symbol(b, FUEL);
        let flags = MemFlagsData::trusted();
        let left = b.ins().load(I32, flags, address, 0);
        let one = b.ins().iconst(I32, 1);
        let after = b.ins().isub(left, one);
        let [empty, go_on] = [b.create_block(), b.create_block()];
        let zero = b.ins().iconst(I32, 0);
        let is_empty = b.ins().icmp(IntCC::SignedLessThan, after, zero);
        b.ins().brif(is_empty, empty, &[], go_on, &[]);
        b.switch_to_block(empty);
        let values: Vec<Value> = self.returns().iter().map(|&ty| self.leaf(b, ty)).collect();
        b.ins().return_(&values);
        b.switch_to_block(go_on);
        b.ins().store(flags, after, address, 0);
    }

    fn returns(&self) -> Vec<Type> {
        let returns = &self.plan.functions[self.index].signature.returns;
        returns.iter().map(|result| result.value_type).collect()
    }

    /// Makes one value out of all of these for each type: up to here they need registers.
    fn keep(&mut self, b: &mut FunctionBuilder<'_>, values: &[(Value, Type)]) {
        for ty in TYPES {
            let all = values.iter().filter(|(_, have)| *have == ty).map(|(value, _)| *value);
            let folded = all.reduce(|x, y| match ty {
                F32 | F64 => {
                    let less =
                        b.ins().fcmp(cranelift_codegen::ir::condcodes::FloatCC::LessThan, x, y);
                    b.ins().select(less, y, x)
                }
                _ => {
                    let sum = b.ins().bxor(x, y);
                    let one = b.ins().iconst(ty, 1);
                    b.ins().rotl(sum, one)
                }
            });
            if let Some(folded) = folded {
                self.pool.push((folded, ty));
                self.store(b, folded);
            }
        }
    }
}
