//! Control flow between blocks with parameters: what random functions and random kernels share.
//!
//! Which statements there are, and what they compute, is each generator's own.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder,
    JumpTableData, Signature, TrapCode, Type, UserFuncName, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use harp_isa::{ArchId, WordSize};
use harp_jit::frontend_config;

use super::choices::Choices;

/// A block that is branched to, and its parameters.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) block: Block,
    pub(super) params: Vec<Type>,
}

/// How much of something a generator makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amounts {
    /// The fewest statements within another one.
    pub(super) nested: usize,
    /// How many numbers of them there are, from the fewest on.
    pub(super) nested_kinds: usize,
    /// Of so many rows of such statements one ends the function.
    pub(super) ends: usize,
    /// Graphs have two blocks or more: how many numbers of them there are.
    pub(super) graphs: usize,
    /// So many of sixteen blocks of a graph have two ways to go on.
    pub(super) branches: usize,
}

/// The function of this name and signature to whose entry block `make` adds the rest.
pub(super) fn function(
    name: &str,
    signature: &Signature,
    word: WordSize,
    context: &mut FunctionBuilderContext,
    make: impl FnOnce(&mut FunctionBuilder<'_>),
) -> Function {
    let name = UserFuncName::testcase(name);
    let mut func = Function::with_name_signature(name, signature.clone());
    let mut b = FunctionBuilder::new(&mut func, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    make(&mut b);
    b.seal_all_blocks();
    let machine = match word {
        WordSize::Four => ArchId::HARP32,
        WordSize::Eight => ArchId::HARP64,
    };
    b.finalize(frontend_config(&machine.into()).expect("its triple names a machine"));
    func
}

/// A function in the making, as far as its numbers go.
pub(super) trait Numbers {
    /// A value of type `ty`, made by as many as `depth` operations in a row.
    fn value(&mut self, b: &mut FunctionBuilder<'_>, ty: Type, depth: usize) -> Value;

    /// A value that is there already, or a constant.
    fn leaf(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) -> Value;

    /// Something to branch on: 0 or not 0.
    fn condition(&mut self, b: &mut FunctionBuilder<'_>) -> Value;
}

/// A function in the making.
pub(super) trait Flow<'u>: Numbers {
    const AMOUNTS: Amounts;

    fn choices(&mut self) -> &mut Choices<'u>;

    /// Values that can be used here.
    fn pool(&mut self) -> &mut Vec<(Value, Type)>;

    /// How deep statements are nested.
    fn depth(&mut self) -> &mut usize;

    /// How many times loops may still go round.
    fn fuel(&self) -> Variable;

    /// Makes a statement. Whether the function ends there.
    fn statement(&mut self, b: &mut FunctionBuilder<'_>) -> bool;

    /// Ends the function before its end, by a trap perhaps.
    fn end(&mut self, b: &mut FunctionBuilder<'_>);

    /// Types for the parameters of a block.
    fn param_types(&mut self) -> Vec<Type>;

    /// The number of a case, too large perhaps.
    fn case_number(&mut self, b: &mut FunctionBuilder<'_>) -> Value;

    /// The name and the signature of a function of the module.
    fn declared(&self, index: usize) -> (ExternalName, Signature);

    /// What every block begins with.
    fn begun(&mut self, _b: &mut FunctionBuilder<'_>) {}

    /// Counts the current block as something.
    fn mark(&mut self, _b: &FunctionBuilder<'_>, _construct: &'static str) {}

    /// A branch on a condition of any kind.
    fn choose(&mut self, b: &mut FunctionBuilder<'_>, on_true: &Target, on_false: &Target) {
        self.branch(b, on_true, on_false);
    }

    /// What case `at` of a switch does, and where it goes on: `after` it, or elsewhere.
    fn case(&mut self, b: &mut FunctionBuilder<'_>, cases: &[Target], at: usize, after: &Target) {
        self.side(b, &cases[at], after);
    }

    /// A few statements, after which the values made in them are out of reach. Whether the function
    /// ends there.
    fn nested(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let values = self.pool().len();
        *self.depth() += 1;
        let Amounts { nested, nested_kinds, ends, .. } = Self::AMOUNTS;
        let count = nested + self.choices().below(nested_kinds);
        let mut ended = (0..count).any(|_| self.statement(b));
        if !ended && self.choices().once_in(ends) {
            self.end(b);
            ended = true;
        }
        *self.depth() -= 1;
        self.pool().truncate(values);
        ended
    }

    /// A new block with some parameters.
    fn target(&mut self, b: &mut FunctionBuilder<'_>) -> Target {
        let block = b.create_block();
        let params = self.param_types();
        for &ty in &params {
            b.append_block_param(block, ty);
        }
        Target { block, params }
    }

    /// Goes on in the block, with its parameters at hand.
    fn begin(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        b.switch_to_block(target.block);
        let params = b.block_params(target.block)[..target.params.len()].to_vec();
        self.pool().extend(params.into_iter().zip(target.params.iter().copied()));
        self.begun(b);
    }

    /// Arguments for a branch.
    fn args_of(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) -> Vec<BlockArg> {
        target.params.iter().map(|&ty| self.leaf(b, ty).into()).collect()
    }

    fn jump(&mut self, b: &mut FunctionBuilder<'_>, target: &Target) {
        let args = self.args_of(b, target);
        b.ins().jump(target.block, &args);
    }

    fn branch(&mut self, b: &mut FunctionBuilder<'_>, on_true: &Target, on_false: &Target) {
        let condition = self.condition(b);
        let (x, y) = (self.args_of(b, on_true), self.args_of(b, on_false));
        b.ins().brif(condition, on_true.block, &x, on_false.block, &y);
    }

    /// A branch on a number, with the last target for all that are too large.
    fn table(&mut self, b: &mut FunctionBuilder<'_>, targets: &[Target]) {
        let mut index = self.case_number(b);
        if self.choices().below(4) > 0 {
            let mask = b.ins().iconst(I32, 7);
            index = b.ins().band(index, mask);
        }
        let mut calls = Vec::new();
        for target in targets {
            let args = self.args_of(b, target);
            calls.push(BlockCall::new(target.block, args, &mut b.func.dfg.value_lists));
        }
        let Some(default) = calls.pop() else { return };
        let table = b.create_jump_table(JumpTableData::new(default, &calls));
        b.ins().br_table(index, table);
    }

    /// Goes to `out` if there is no fuel.
    fn need_fuel(&mut self, b: &mut FunctionBuilder<'_>, out: &Target) {
        let variable = self.fuel();
        let (fuel, one) = (b.use_var(variable), b.ins().iconst(I32, 1));
        let left = b.ins().isub(fuel, one);
        b.def_var(variable, left);
        let zero = b.ins().iconst(I32, 0);
        let enough = b.ins().icmp(IntCC::SignedGreaterThanOrEqual, left, zero);
        let go_on = b.create_block();
        let args = self.args_of(b, out);
        b.ins().brif(enough, go_on, &[], out.block, &args);
        b.switch_to_block(go_on);
    }

    /// Statements that go on after them. Whether the function ends in them.
    fn side(&mut self, b: &mut FunctionBuilder<'_>, start: &Target, after: &Target) -> bool {
        let values = self.pool().len();
        self.begin(b, start);
        self.mark(b, "if");
        let ended = self.nested(b);
        if !ended {
            self.jump(b, after);
        }
        self.pool().truncate(values);
        ended
    }

    fn if_else(&mut self, b: &mut FunctionBuilder<'_>) -> bool {
        let [on_true, on_false, after] = [(); 3].map(|()| self.target(b));
        let one_sided = self.choices().below(2) == 0;
        self.choose(b, &on_true, if one_sided { &after } else { &on_false });
        let mut ended = true;
        let sides = if one_sided { vec![on_true] } else { vec![on_true, on_false] };
        for side in sides {
            ended &= self.side(b, &side, &after);
        }
        if ended && !one_sided {
            // Nothing leads to the block after it, which is one nevertheless.
            b.switch_to_block(after.block);
            b.ins().trap(TrapCode::unwrap_user(99));
            return true;
        }
        self.begin(b, &after);
        false
    }

    /// A branch with both ways to one block, which takes other arguments on each.
    fn merge(&mut self, b: &mut FunctionBuilder<'_>, ty: Type) {
        let condition = self.condition(b);
        let (x, y) = (self.value(b, ty, 2), self.value(b, ty, 2));
        let after = b.create_block();
        let merged = b.append_block_param(after, ty);
        b.ins().brif(condition, after, &[x.into()], after, &[y.into()]);
        b.switch_to_block(after);
        self.pool().push((merged, ty));
    }

    /// A `br_table` with a block for each case, or some shared.
    fn switch(&mut self, b: &mut FunctionBuilder<'_>) {
        let mut cases = Vec::new();
        for _ in 0..1 + self.choices().below(4) {
            cases.push(self.target(b));
        }
        let after = self.target(b);
        let mut targets = cases.clone();
        for _ in 0..self.choices().below(3) {
            let again = self.choices().below(cases.len());
            targets.push(cases[again].clone());
        }
        if self.choices().below(2) == 0 {
            targets.push(after.clone());
        }
        self.mark(b, "switch");
        self.table(b, &targets);
        for at in 0..cases.len() {
            self.case(b, &cases, at, &after);
        }
        self.begin(b, &after);
    }

    /// Blocks that branch to any of them, also into loops, until there is no fuel left.
    fn graph(&mut self, b: &mut FunctionBuilder<'_>) {
        let count = 2 + self.choices().below(Self::AMOUNTS.graphs);
        let targets: Vec<Target> = (0..=count).map(|_| self.target(b)).collect();
        let values = self.pool().len();
        // Through any two of them.
        let [x, y] = [0; 2].map(|_: usize| self.choices().below(count));
        self.branch(b, &targets[x], &targets[y]);
        *self.depth() += 1;
        for at in 0..count {
            self.pool().truncate(values);
            self.begin(b, &targets[at]);
            self.mark(b, "block of any graph");
            let statements = self.choices().below(3);
            if !(0..statements).any(|_| self.statement(b)) {
                self.anywhere(b, &targets, at);
            }
        }
        *self.depth() -= 1;
        self.pool().truncate(values);
        self.begin(b, &targets[count]);
    }

    /// Ends block `at` of a graph.
    fn anywhere(&mut self, b: &mut FunctionBuilder<'_>, targets: &[Target], at: usize) {
        let ways = match self.choices().below(16) {
            0..=3 => 1,
            kind if kind < 4 + Self::AMOUNTS.branches => 2,
            15 => return self.end(b),
            _ => 2 + self.choices().below(4),
        };
        let next = (0..ways).map(|_| match self.choices().below(3) {
            0 => at + 1,
            _ => self.choices().below(targets.len()),
        });
        let next: Vec<usize> = next.collect();
        let last = targets.len() - 1;
        if next.iter().any(|&target| target <= at) {
            self.need_fuel(b, &targets[last]);
        }
        match next.as_slice() {
            &[only] => self.jump(b, &targets[only]),
            &[x, y] if self.choices().below(4) > 0 => self.branch(b, &targets[x], &targets[y]),
            several => {
                let several: Vec<Target> =
                    several.iter().map(|&target| targets[target].clone()).collect();
                self.table(b, &several);
            }
        }
    }

    fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.choices().below(5) as u8)
    }

    /// A reference to a function of the module.
    fn import(&mut self, b: &mut FunctionBuilder<'_>, index: usize) -> FuncRef {
        let (name, signature) = self.declared(index);
        let signature = b.import_signature(signature);
        let colocated = self.choices().below(2) == 0;
        b.import_function(ExtFuncData { name, signature, colocated, patchable: false })
    }
}
