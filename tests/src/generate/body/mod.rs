//! Random functions made of statements, for one lane or for many.
//!
//! Conditions are uniform, or come from the lanes' ids or memory, mixed at random.
//! Work-items do not communicate: each has its own memory, and memory that all of them read is never
//! written. Everything ends: a work-item's calls together, or all calls of one lane, have a fuel, which lies in memory,
//! and each call of a function has one for the loops that are not counted. When a work-item ends it writes what it
//! computed to its memory, and a trace of the blocks it went through.
//!
//! Addresses are of memory known to be there and initialized, except where a trap is wanted, and they reach neither
//! results nor memory; nor do the bits of NaNs that operations make (see `oracle/case.rs`).

use std::collections::BTreeSet;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_frontend::{FunctionBuilder as Builder, FunctionBuilderContext, Variable};
use harp_isa::abi::ArgumentBlock;

use super::choices::Choices;
use super::clif::{self, element, intrinsic};
use super::{Family, Generated, Mark};
use crate::oracle::{Argument, Case, Start};

mod calls;
mod config;
mod control;
mod flow;
mod irregular;
mod loops;
mod memory;
mod plan;
pub(super) mod rows;
mod values;

pub(super) use config::{Config, FUNCTIONS, KERNELS, LOWERINGS};
use loops::Loop;
use plan::{BLOCK, FUEL, OWN_BYTES, Param, Plan};
pub(super) use values::{between, typed};

/// The case that `bytes` stand for on machines of this family.
pub(super) fn case(config: &'static Config, bytes: &[u8], family: Family) -> Generated {
    let mut choices = Choices::new(bytes);
    let plan = Plan::new(config, &mut choices, family);
    let mut functions = Vec::new();
    let mut marks = Vec::new();
    let mut context = FunctionBuilderContext::new();
    for (index, planned) in plan.functions.iter().enumerate() {
        let (name, signature) = (&planned.name, &planned.signature);
        functions.push(clif::function(name, signature, family.word, &mut context, |b, params| {
            let mut body = Body::new(&plan, index, &mut choices, b, params);
            body.make(b);
            // Nothing runs in a block that nothing leads to.
            let blocks: BTreeSet<Block> = b.func.layout.blocks().collect();
            marks.extend(body.marks.into_iter().filter(|mark| blocks.contains(&mark.block)));
        }));
    }
    let (data, start) = (plan.data, plan.start);
    let case = Case { word: family.word, functions, data, start, waits: false };
    Generated { case, marks, asks_for_lane: plan.asks_for_lane }
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
    marks: Vec<Mark>,
    /// The address of the work-item's memory, and of numbers in a buffer that all work-items read.
    own: Option<Value>,
    table: Option<Value>,
    /// Addresses of blocks that it was given.
    blocks: Vec<Value>,
    slots: Vec<Slot>,
    /// Values that can be used here.
    pool: Vec<(Value, Type)>,
    /// Words that are equal in all work-items.
    uniforms: Vec<Value>,
    variables: Vec<(Variable, Type)>,
    /// The trace of the blocks that the work-item went through, in order.
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
    /// Whether the statement that was made ends the function.
    ended: bool,
}

impl<'p, 'u> Body<'p, 'u> {
    fn new(
        plan: &'p Plan,
        index: usize,
        choices: &'p mut Choices<'u>,
        b: &mut Builder<'_>,
        params: Vec<Value>,
    ) -> Body<'p, 'u> {
        let is_kernel = plan.config.lanes && index == 0;
        let (budget, controls) = match (plan.config.rich, is_kernel) {
            (true, _) => (6 + choices.below(5) * 50, if is_kernel { 16 } else { usize::MAX }),
            (false, true) => (20 + choices.below(5) * 40, 2 + choices.below(4) * 6),
            (false, false) => (5 + choices.below(3) * 15, choices.below(3) * 2),
        };
        let mut body = Body {
            plan,
            choices,
            index,
            marks: Vec::new(),
            own: None,
            table: None,
            blocks: Vec::new(),
            slots: Vec::new(),
            pool: Vec::new(),
            uniforms: Vec::new(),
            variables: Vec::new(),
            trace: b.declare_var(plan.word()),
            fuel: b.declare_var(I32),
            loops: Vec::new(),
            budget,
            controls,
            depth: 0,
            ended: false,
        };
        for (&param, value) in plan.functions[index].params.iter().zip(params) {
            match param {
                Param::Own if is_kernel => body.enter_kernel(b, value),
                Param::Own => body.own = Some(value),
                Param::Value(ty) => body.pool.push((value, ty)),
                Param::Block => body.blocks.push(value),
            }
        }
        body
    }

    /// Reads arguments and ids, and finds the work-item's memory.
    fn enter_kernel(&mut self, b: &mut Builder<'_>, block: Value) {
        let (word, size) = (self.plan.word(), self.plan.family.word);
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let load = |b: &mut Builder<'_>, ty: Type, offset: u32| {
            b.ins().load(ty, flags, block, offset.cast_signed())
        };
        let sizes = [0, 1, 2].map(|dim| load(b, word, ArgumentBlock::grid_extent(dim, size)));
        let Start::Launch { args, .. } = &self.plan.start else { return };
        let mut words = Vec::new();
        for (index, arg) in (0..).zip(args) {
            let offset = ArgumentBlock::argument(index, size);
            match (arg, arg.ty().clif_type(size)) {
                (Argument::Buffer(..), _) if index > 0 => self.table = Some(load(b, word, offset)),
                (_, ty) if ty.is_int() && ty != word => {
                    let number = load(b, word, offset);
                    self.pool.push((b.ins().ireduce(ty, number), ty));
                }
                (_, ty) if ty.is_float() => self.pool.push((load(b, ty, offset), ty)),
                _ => words.push(load(b, word, offset)),
            }
        }
        let ids = clif::ids(b, word);
        let lane = self.plan.asks_for_lane.then(|| intrinsic(b, "harp_lane_id", &[], word));
        let item = clif::item(b, ids, sizes[0], sizes[1]);
        self.own = Some(element(b, words[0], item, OWN_BYTES));
        self.uniforms = sizes.into_iter().chain(words[1..].iter().copied()).collect();
        let all = self.uniforms.iter().copied().chain(ids).chain(lane).chain([item, item]);
        let typed = std::mem::take(&mut self.pool);
        self.pool = all.map(|value| (value, word)).chain(typed).collect();
    }

    fn make(&mut self, b: &mut Builder<'_>) {
        let word = self.plan.word();
        let start = b.ins().iconst(word, 1);
        b.def_var(self.trace, start);
        if self.index > 0 || !self.plan.config.lanes {
            self.burn_fuel(b);
        }
        let fuel = b.ins().iconst(I32, 2 + self.choices.below(self.plan.config.fuel) as i64);
        b.def_var(self.fuel, fuel);
        self.make_slots(b);
        for &ty in self.plan.types() {
            for _ in 0..self.choices.below(3) {
                let variable = b.declare_var(ty);
                if self.choices.below(4) > 0 {
                    let value = self.value(b, ty, 1);
                    b.def_var(variable, value);
                }
                self.variables.push((variable, ty));
            }
        }
        let mut kept = self.early_values(b);
        for _ in 0..1 + self.choices.below(10) {
            if self.statement(b) {
                return;
            }
        }
        if self.plan.config.rich && self.choices.once_in(2) {
            kept.clone_from(&self.pool);
        }
        self.keep(b, &kept);
        self.leave(b);
    }

    /// Returns at once if all calls of the work-item, or of the one lane, together have used up their fuel.
    fn burn_fuel(&mut self, b: &mut Builder<'_>) {
        let (address, ty) = match self.own {
            Some(own) => (own, self.plan.word()),
            None => (self.symbol(b, FUEL, 0), I32),
        };
        let flags = MemFlagsData::trusted();
        let left = b.ins().load(ty, flags, address, 0);
        let [empty, go_on] = [(); 2].map(|()| b.create_block());
        let is_empty = b.ins().icmp_imm_s(IntCC::SignedLessThanOrEqual, left, 0);
        b.ins().brif(is_empty, empty, &[], go_on, &[]);
        b.switch_to_block(empty);
        let values: Vec<Value> = self.returns().into_iter().map(|ty| self.leaf(b, ty)).collect();
        b.ins().return_(&values);
        b.switch_to_block(go_on);
        let one = b.ins().iconst(ty, 1);
        let after = b.ins().isub(left, one);
        b.ins().store(flags, after, address, 0);
    }

    fn returns(&self) -> Vec<Type> {
        let returns = &self.plan.functions[self.index].signature.returns;
        returns.iter().map(|result| result.value_type).collect()
    }

    /// Many values that are wanted in the end, of numbers or of truth values, so that registers of one
    /// kind are scarce throughout.
    fn early_values(&mut self, b: &mut Builder<'_>) -> Vec<(Value, Type)> {
        let count = match self.choices.below(6) {
            4 => 4 + self.choices.below(10),
            5 => 8 + self.choices.below(50),
            _ => return Vec::new(),
        };
        let truths = self.choices.below(2) == 0;
        self.budget += count;
        let mut kept = Vec::new();
        for _ in 0..count {
            let value = if truths {
                (self.compare(b), I8)
            } else {
                let is_rich = self.plan.config.rich;
                let ty = if is_rich { self.any_type() } else { self.plan.word() };
                (self.value(b, ty, 1), ty)
            };
            self.pool.push(value);
            kept.push(value);
        }
        kept
    }

    fn any_type(&mut self) -> Type {
        self.choices.one(self.plan.types())
    }

    /// Puts all of the values to use: into the trace, or those of a type into one that is stored.
    fn keep(&mut self, b: &mut Builder<'_>, values: &[(Value, Type)]) {
        if self.plan.config.rich {
            return self.keep_each_type(b, values);
        }
        for &(mut value, ty) in values {
            if ty == I8 {
                // As a condition, not as a number.
                let (x, y) = (b.ins().iconst(ty, 3), b.ins().iconst(ty, 5));
                value = b.ins().select(value, x, y);
            }
            self.note(b, value);
        }
    }

    fn keep_each_type(&mut self, b: &mut Builder<'_>, values: &[(Value, Type)]) {
        for &ty in self.plan.types() {
            let folded = typed(values, ty).into_iter().reduce(|x, y| match ty {
                F32 | F64 => {
                    let less = b.ins().fcmp(FloatCC::LessThan, x, y);
                    b.ins().select(less, y, x)
                }
                _ => {
                    let sum = b.ins().bxor(x, y);
                    b.ins().rotl_imm_s(sum, 1)
                }
            });
            if let Some(folded) = folded {
                self.pool.push((folded, ty));
                self.store(b, folded);
            }
        }
    }

    /// Puts a value into the trace.
    fn note(&mut self, b: &mut Builder<'_>, value: Value) {
        let value = self.word_of(b, value);
        clif::note(b, self.trace, value);
    }

    /// The integer folded into a word.
    fn word_of(&mut self, b: &mut Builder<'_>, value: Value) -> Value {
        let (ty, word) = (b.func.dfg.value_type(value), self.plan.word());
        if ty.bits() <= word.bits() {
            return if ty == word { value } else { b.ins().uextend(word, value) };
        }
        let shift = b.ins().iconst(I64, 32);
        let (low, high) = (b.ins().ireduce(word, value), b.ins().ushr(value, shift));
        let high = b.ins().ireduce(word, high);
        b.ins().bxor(low, high)
    }

    /// Puts a number of this place's own into the trace, mostly.
    fn note_place(&mut self, b: &mut Builder<'_>) {
        if self.choices.below(4) > 0 {
            let number = 1 + self.choices.below(200);
            let number = b.ins().iconst(self.plan.word(), number as i64);
            self.note(b, number);
        }
    }

    /// Makes stack slots, and fills their blocks, which hold anything before.
    fn make_slots(&mut self, b: &mut Builder<'_>) {
        let (rich, word) = (self.plan.config.rich, self.plan.word());
        let count = if rich { self.choices.below(4) } else { self.choices.below(2) };
        for _ in 0..count {
            let (size, start) = match if rich { self.choices.below(4) } else { 4 } {
                0 | 1 => (BLOCK as u32, 0),
                2 => (BLOCK as u32 + 20, 16),
                3 => (3000, 3000 - BLOCK as i32 - 8),
                _ => (8 * word.bytes(), 0),
            };
            let align = if rich { self.choices.one(&[4, 3, 5, 4, 7]) } else { 4 };
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, align);
            let slot = b.create_sized_stack_slot(data);
            let base = b.ins().stack_addr(word, slot, start);
            let (ty, bytes) = if rich { (I64, BLOCK as u32) } else { (word, size) };
            for at in (0..bytes).step_by(ty.bytes() as usize) {
                let value = self.leaf(b, ty);
                b.ins().store(MemFlagsData::trusted(), value, base, at.cast_signed());
            }
            self.slots.push(Slot { slot, start });
        }
    }
}
