//! Random kernels with all control flow there is: bytes to a kernel, the functions that it calls, a grid
//! and arguments.
//!
//! What lanes branch on is equal in all of them, or comes from their ids or their memory, mixed at random.
//! Work-items communicate through nothing: each has its own memory, and what all of them read, nobody
//! writes. Everything ends: a work-item's calls together have a fuel, which lies in its memory, and each
//! call of a function has one for the loops that are not counted. When a work-item ends it writes what it
//! computed to its memory, and a trace of the blocks it went through.
//!
//! Operations on numbers are few: those that do harm in lanes that should not execute them (divisions,
//! accesses, calls, traps), and some others. All bytes give a kernel, and fewer bytes give a smaller one.

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, ExtFuncData, ExternalName, Function, InstBuilder, MemFlagsData, Signature,
    StackSlot, StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use harp_isa::abi::ArgumentBlock;

use super::Family;
use super::choices::Choices;
use super::flow::{self, Flow, Numbers, Target};
use crate::oracle::{KernelCase, ModuleCase};

mod calls;
mod control;
mod graphs;
mod loops;
mod memory;
mod plan;
mod values;

use loops::Loop;
use plan::{OWN_BYTES, Plan};

/// Something worth counting, which a block that was generated is, or holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The index of the function, 0 for the kernel.
    pub function: usize,
    /// The block.
    pub block: Block,
    /// What it is.
    pub construct: &'static str,
}

/// A kernel, and where it holds what.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The kernel with all that a launch needs.
    pub case: KernelCase,
    /// What is in it.
    pub marks: Vec<Mark>,
    /// Whether what it does depends on the number of lanes.
    pub asks_for_lane: bool,
}

/// The kernel that `bytes` stand for on machines of this family.
pub fn kernel(bytes: &[u8], family: Family) -> Generated {
    let mut choices = Choices::new(bytes);
    let plan = Plan::new(&mut choices, family);
    let mut functions = Vec::new();
    let mut marks = Vec::new();
    let mut context = FunctionBuilderContext::new();
    for index in 0..plan.functions.len() {
        functions.push(function(&plan, index, &mut choices, &mut context, &mut marks));
    }
    let module = ModuleCase { word: family.word, functions, data: plan.data, args: Vec::new() };
    let case = KernelCase { module, extents: plan.extents, args: plan.args };
    Generated { case, marks, asks_for_lane: plan.asks_for_lane }
}

fn function(
    plan: &Plan,
    index: usize,
    choices: &mut Choices<'_>,
    context: &mut FunctionBuilderContext,
    marks: &mut Vec<Mark>,
) -> Function {
    let planned = &plan.functions[index];
    flow::function(&planned.name, &planned.signature, plan.family.word, context, |b| {
        let mut body = Body::new(plan, index, choices, b);
        body.make(b);
        // Nothing runs in a block that nothing leads to.
        let blocks: BTreeSet<Block> = b.func.layout.blocks().collect();
        marks.extend(body.marks.into_iter().filter(|mark| blocks.contains(&mark.block)));
    })
}

/// Calls an intrinsic with words.
pub(super) fn intrinsic(
    b: &mut FunctionBuilder<'_>,
    name: &str,
    args: &[Value],
    word: Type,
) -> Value {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params = vec![AbiParam::new(word); args.len()];
    signature.returns.push(AbiParam::new(word));
    let signature = b.import_signature(signature);
    let callee = b.import_function(ExtFuncData {
        name: ExternalName::testcase(name),
        signature,
        colocated: true,
        patchable: false,
    });
    let call = b.ins().call(callee, args);
    b.inst_results(call)[0]
}

/// A function in the making.
struct Body<'p, 'u> {
    plan: &'p Plan,
    choices: &'p mut Choices<'u>,
    index: usize,
    marks: Vec<Mark>,
    /// The address of the work-item's memory.
    own: Value,
    /// A stack slot as large as a block of scratch words.
    slot: Option<StackSlot>,
    /// Values that can be used here.
    pool: Vec<(Value, Type)>,
    /// Words that are equal in all work-items.
    uniforms: Vec<Value>,
    variables: Vec<(Variable, Type)>,
    /// What blocks the work-item went through, in order.
    trace: Variable,
    /// How many times loops may still go round.
    fuel: Variable,
    /// The loops around this place.
    loops: Vec<Loop>,
    /// Operations that may still be made.
    budget: usize,
    /// Statements with control flow that may still be made.
    controls: usize,
    depth: usize,
}

impl<'p, 'u> Body<'p, 'u> {
    fn new(
        plan: &'p Plan,
        index: usize,
        choices: &'p mut Choices<'u>,
        b: &mut FunctionBuilder<'_>,
    ) -> Body<'p, 'u> {
        let entry = b.current_block().expect("the entry");
        let first = b.block_params(entry)[0];
        let is_kernel = index == 0;
        let (budget, controls) = match is_kernel {
            true => (20 + choices.below(5) * 40, 2 + choices.below(4) * 6),
            false => (5 + choices.below(3) * 15, choices.below(3) * 2),
        };
        let mut body = Body {
            plan,
            choices,
            index,
            marks: Vec::new(),
            own: first,
            slot: None,
            pool: Vec::new(),
            uniforms: Vec::new(),
            variables: Vec::new(),
            trace: b.declare_var(plan.word()),
            fuel: b.declare_var(I32),
            loops: Vec::new(),
            budget,
            controls,
            depth: 0,
        };
        if is_kernel {
            body.enter_kernel(b, first);
        } else {
            let params = b.block_params(entry)[1..].to_vec();
            body.pool = params.iter().map(|&value| (value, b.func.dfg.value_type(value))).collect();
        }
        body
    }

    /// Reads arguments and ids, and finds the work-item's memory.
    fn enter_kernel(&mut self, b: &mut FunctionBuilder<'_>, block: Value) {
        let (word, size) = (self.plan.word(), self.plan.family.word);
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let load = |b: &mut FunctionBuilder<'_>, offset: u32| {
            b.ins().load(word, flags, block, offset.cast_signed())
        };
        let sizes = [0, 1, 2].map(|dim| load(b, ArgumentBlock::grid_extent(dim, size)));
        let count = self.plan.args.len() as u32;
        let args: Vec<Value> =
            (0..count).map(|index| load(b, ArgumentBlock::argument(index, size))).collect();
        let ids =
            ["x", "y", "z"].map(|dim| intrinsic(b, &format!("harp_global_id_{dim}"), &[], word));
        let lane = self.plan.asks_for_lane.then(|| intrinsic(b, "harp_lane_id", &[], word));
        let rows = b.ins().imul(ids[2], sizes[1]);
        let row = b.ins().iadd(rows, ids[1]);
        let items = b.ins().imul(row, sizes[0]);
        let item = b.ins().iadd(items, ids[0]);
        let bytes = b.ins().iconst(word, i64::from(OWN_BYTES));
        let offset = b.ins().imul(item, bytes);
        self.own = b.ins().iadd(args[0], offset);
        self.uniforms = sizes.into_iter().chain(args[1..].iter().copied()).collect();
        let all = self.uniforms.iter().copied().chain(ids).chain(lane).chain([item, item]);
        self.pool = all.map(|value| (value, word)).collect();
    }

    fn make(&mut self, b: &mut FunctionBuilder<'_>) {
        let word = self.plan.word();
        let start = b.ins().iconst(word, 1);
        b.def_var(self.trace, start);
        if self.index > 0 {
            self.burn_fuel(b);
        }
        let fuel = b.ins().iconst(I32, 2 + self.choices.below(10) as i64);
        b.def_var(self.fuel, fuel);
        if self.choices.once_in(2) {
            self.fill_slot(b);
        }
        for ty in self.plan.types() {
            for _ in 0..self.choices.below(3) {
                let variable = b.declare_var(ty);
                if self.choices.below(4) > 0 {
                    let value = self.value(b, ty, 1);
                    b.def_var(variable, value);
                }
                self.variables.push((variable, ty));
            }
        }
        let kept = self.early_values(b);
        for _ in 0..1 + self.choices.below(10) {
            if self.statement(b) {
                return;
            }
        }
        self.keep(b, &kept);
        self.leave(b);
    }

    /// Returns at once if all calls of the work-item together have used up their fuel.
    fn burn_fuel(&mut self, b: &mut FunctionBuilder<'_>) {
        let word = self.plan.word();
        let flags = MemFlagsData::trusted();
        let left = b.ins().load(word, flags, self.own, 0);
        let [empty, go_on] = [b.create_block(), b.create_block()];
        let zero = b.ins().iconst(word, 0);
        let is_empty = b.ins().icmp(IntCC::SignedLessThanOrEqual, left, zero);
        b.ins().brif(is_empty, empty, &[], go_on, &[]);
        b.switch_to_block(empty);
        let types: Vec<Type> = self.returns();
        let values: Vec<Value> = types.into_iter().map(|ty| self.leaf(b, ty)).collect();
        b.ins().return_(&values);
        b.switch_to_block(go_on);
        let one = b.ins().iconst(word, 1);
        let after = b.ins().isub(left, one);
        b.ins().store(flags, after, self.own, 0);
    }

    fn returns(&self) -> Vec<Type> {
        let returns = &self.plan.functions[self.index].signature.returns;
        returns.iter().map(|result| result.value_type).collect()
    }

    /// Many values that are wanted in the end, of numbers or of truth values, so that registers of one
    /// kind are scarce all the way.
    fn early_values(&mut self, b: &mut FunctionBuilder<'_>) -> Vec<(Value, Type)> {
        let count = match self.choices.below(6) {
            4 => 4 + self.choices.below(10),
            5 => 8 + self.choices.below(50),
            _ => return Vec::new(),
        };
        let truths = self.choices.below(2) == 0;
        self.budget += count;
        let mut kept = Vec::new();
        for _ in 0..count {
            let value = match truths {
                true => (self.compare(b), I8),
                false => (self.value(b, self.plan.word(), 1), self.plan.word()),
            };
            self.pool.push(value);
            kept.push(value);
        }
        kept
    }

    /// Puts all of the values into the trace.
    fn keep(&mut self, b: &mut FunctionBuilder<'_>, values: &[(Value, Type)]) {
        for &(value, ty) in values {
            if ty == I8 {
                // As a condition, not as a number.
                let (x, y) = (b.ins().iconst(ty, 3), b.ins().iconst(ty, 5));
                let value = b.ins().select(value, x, y);
                self.note(b, value);
            } else {
                self.note(b, value);
            }
        }
    }

    /// Puts a value into the trace.
    fn note(&mut self, b: &mut FunctionBuilder<'_>, value: Value) {
        let value = self.word_of(b, value);
        let old = b.use_var(self.trace);
        let five = b.ins().iconst(self.plan.word(), 5);
        let turned = b.ins().rotl(old, five);
        let new = b.ins().bxor(turned, value);
        b.def_var(self.trace, new);
    }

    /// A word that differs if the integer does, up to what a word can hold.
    fn word_of(&mut self, b: &mut FunctionBuilder<'_>, value: Value) -> Value {
        let (ty, word) = (b.func.dfg.value_type(value), self.plan.word());
        match ty.bits().cmp(&word.bits()) {
            std::cmp::Ordering::Less => b.ins().uextend(word, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => {
                let shift = b.ins().iconst(I64, 32);
                let (low, high) = (b.ins().ireduce(word, value), b.ins().ushr(value, shift));
                let high = b.ins().ireduce(word, high);
                b.ins().bxor(low, high)
            }
        }
    }

    /// Puts a number of this place's own into the trace, mostly.
    fn note_place(&mut self, b: &mut FunctionBuilder<'_>) {
        if self.choices.below(4) > 0 {
            let number = 1 + self.choices.below(200);
            let number = b.ins().iconst(self.plan.word(), number as i64);
            self.note(b, number);
        }
    }

    /// A target without parameters.
    fn plain_target(b: &mut FunctionBuilder<'_>) -> Target {
        Target { block: b.create_block(), params: Vec::new() }
    }

    fn fill_slot(&mut self, b: &mut FunctionBuilder<'_>) {
        let (word, bytes) = (self.plan.word(), self.plan.word().bytes());
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 8 * bytes, 4);
        let slot = b.create_sized_stack_slot(data);
        let base = b.ins().stack_addr(word, slot, 0);
        for at in 0..8 {
            let value = self.leaf(b, word);
            let offset = (at * bytes).cast_signed();
            b.ins().store(MemFlagsData::trusted(), value, base, offset);
        }
        self.slot = Some(slot);
    }
}
