//! Integers twice as wide as a type that the machine has, in pairs of values of that type.
//!
//! On 4-byte words these are `i64`s as two `i32`s. The same code also splits the `i128` comparisons that
//! Cranelift's mid-end makes out of comparisons of `i64`s (its file `icmp.isle`).
//!
//! Assumes a verified function whose operations have one result each (see [`single_results`](super::before)).
//! Afterwards no value and no signature has the wide type. A pair is its low half followed by its high half:
//! as block arguments, parameters and results, and in memory, unless the access is big-endian. All code is
//! straight-line; traps are `trapz` and `trapnz`, which become branches [later](super::after). What is not
//! supported, such as an atomic access to a pair, is refused by name.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, FuncRef, Function, Inst, InstBuilder, InstructionData, Opcode,
    Type, Value,
};
use hashbrown::HashMap;

use super::{LargeCode, resized};
use crate::analysis::edges;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;
use crate::options::Execution;
use crate::routine::Routine;

mod arithmetic;
mod bits;
mod calls;
mod divide;
mod half;
mod memory;
#[cfg(test)]
mod tests;

use divide::{Division, DivisionCode};

/// The low half and the high half of a value.
type Pair = [Value; 2];

/// Replaces all values of type `full`, an integer of two halves. Returns whether there were any. `code` says
/// where to put the code of divisions, if there are many.
///
/// # Errors
///
/// The first instruction with such an operand or result that is not supported.
pub(super) fn expand(
    func: &mut Function,
    full: Type,
    code: LargeCode,
    execution: Execution,
) -> Result<bool, Unsupported> {
    let half = full.half_width().expect("the caller asks for wide integers");
    calls::check_exceptions(func, full)?;
    let intrinsics = calls::intrinsics(func, full);
    let signatures = calls::split_signatures(func, full, half);
    if !signatures && !has_values(func, full) {
        return Ok(false);
    }
    let order = reachable(func);
    let division_code = divide::division_code(func, full, code, execution);
    let mut wide = Wide {
        at: FuncCursor::new(func),
        full,
        half,
        parts: SecondaryMap::new(),
        intrinsics,
        divisions: HashMap::new(),
        division_code,
        routines: HashMap::new(),
    };
    for &block in &order {
        wide.block_params(block);
    }
    // Definitions come before uses in reverse post-order.
    for block in order {
        wide.block(block)?;
    }
    func.dfg.resolve_all_aliases();
    Ok(true)
}

/// Whether any value in the function has type `ty`.
fn has_values(func: &Function, ty: Type) -> bool {
    let dfg = &func.dfg;
    func.layout.blocks().any(|block| {
        let results = func.layout.block_insts(block).flat_map(|inst| dfg.inst_results(inst));
        dfg.block_params(block).iter().chain(results).any(|&value| dfg.value_type(value) == ty)
    })
}

/// Removes unreachable blocks; returns the others in reverse post-order.
pub(crate) fn reachable(func: &mut Function) -> Vec<Block> {
    let cfg = ControlFlowGraph::with_function(func);
    let tree = DominatorTree::with_function(func, &cfg);
    let unreachable: Vec<Block> =
        func.layout.blocks().filter(|&block| !tree.is_reachable(block)).collect();
    for block in unreachable {
        while let Some(inst) = func.layout.first_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
    tree.cfg_postorder().iter().rev().copied().collect()
}

struct Wide<'f> {
    /// A cursor at the instruction that is replaced: new code goes before it.
    at: FuncCursor<'f>,
    full: Type,
    half: Type,
    parts: SecondaryMap<Value, Option<Pair>>,
    intrinsics: HashMap<Inst, Intrinsic>,
    /// The divisions in each block, by signedness and operands.
    divisions: HashMap<(Option<Block>, bool, Pair, Pair), Division>,
    division_code: DivisionCode,
    /// The routines declared so far.
    routines: HashMap<Routine, FuncRef>,
}

impl Wide<'_> {
    fn is_wide(&self, value: Value) -> bool {
        self.at.func.dfg.value_type(value) == self.full
    }

    /// The halves of a value whose definition precedes.
    fn parts(&self, value: Value) -> Pair {
        let value = self.at.func.dfg.resolve_aliases(value);
        self.parts[value].expect("definitions come before uses")
    }

    /// The value for use as a condition: a half that is zero exactly if the value is.
    fn condition(&mut self, value: Value) -> Value {
        if !self.is_wide(value) {
            return value;
        }
        let [low, high] = self.parts(value);
        self.or(low, high)
    }

    fn block_params(&mut self, block: Block) {
        let dfg = &mut self.at.func.dfg;
        let params = dfg.block_params(block).to_vec();
        if params.iter().all(|&param| dfg.value_type(param) != self.full) {
            return;
        }
        dfg.detach_block_params(block);
        for param in params {
            if dfg.value_type(param) == self.full {
                let halves = [0; 2].map(|_| dfg.append_block_param(block, self.half));
                self.parts[param] = Some(halves);
            } else {
                dfg.attach_block_param(block, param);
            }
        }
    }

    fn block(&mut self, block: Block) -> Result<(), Unsupported> {
        let mut next = self.at.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = self.at.func.layout.next_inst(inst);
            if !self.is_concerned(inst) {
                continue;
            }
            self.at.goto_inst(inst);
            self.at.use_srcloc(inst);
            if self.replace(inst).is_none() {
                let opcode = self.at.func.dfg.insts[inst].opcode();
                let what = format!("`{opcode}` of {} in two {}s", self.full, self.half);
                return Err(Unsupported { inst, block, what });
            }
        }
        Ok(())
    }

    /// Whether an instruction has a wide operand or result.
    fn is_concerned(&self, inst: Inst) -> bool {
        let dfg = &self.at.func.dfg;
        let mut values = dfg.inst_values(inst).chain(dfg.inst_results(inst).iter().copied());
        values.any(|value| self.is_wide(value))
    }

    /// Replaces one instruction. Returns none, without a change, if it is not supported.
    fn replace(&mut self, inst: Inst) -> Option<()> {
        let data = self.at.func.dfg.insts[inst];
        let opcode = data.opcode();
        if data.opcode().is_call() {
            return self.call(inst, data);
        }
        if opcode.is_terminator() {
            return self.terminator(inst, data);
        }
        let result = self.at.func.dfg.inst_results(inst).first().copied();
        match result {
            Some(result) if self.is_wide(result) => {
                let pair = self.pair(data)?;
                self.define(inst, pair);
            }
            Some(result) => self.single(inst, data, result)?,
            None => self.effect(inst, data)?,
        }
        Some(())
    }

    /// The result of an operation that gives a pair.
    fn pair(&mut self, data: InstructionData) -> Option<Pair> {
        match data {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } if self.bits() <= 32 => {
                let bits = imm.bits().cast_unsigned();
                Some([self.konst(bits), self.konst(bits >> self.bits())])
            }
            InstructionData::Unary { opcode, arg } => self.unary(opcode, arg),
            InstructionData::Binary { opcode, args } => self.binary(opcode, args),
            InstructionData::Ternary { opcode, args: [c, x, y] } => {
                let [x, y] = [x, y].map(|value| self.parts(value));
                match opcode {
                    Opcode::Select | Opcode::SelectSpectreGuard => {
                        let condition = self.condition(c);
                        Some(self.select_pairs(condition, x, y))
                    }
                    Opcode::Bitselect => {
                        let mask = self.parts(c);
                        let chosen = self.each(Self::and, x, mask);
                        let rest = mask.map(|half| self.not(half));
                        let others = self.each(Self::and, y, rest);
                        Some(self.each(Self::or, chosen, others))
                    }
                    _ => None,
                }
            }
            InstructionData::IntAddTrap { args, code, .. } => {
                let [x, y] = args.map(|value| self.parts(value));
                Some(self.add_or_trap(x, y, code))
            }
            InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, arg, .. }
                if self.is_wide(arg) =>
            {
                Some(self.parts(arg))
            }
            InstructionData::Load { .. } => self.load(data),
            _ => self.address_of(data),
        }
    }

    fn unary(&mut self, opcode: Opcode, arg: Value) -> Option<Pair> {
        let narrow = !self.is_wide(arg);
        Some(match opcode {
            Opcode::Uextend | Opcode::Sextend if narrow => {
                let signed = opcode == Opcode::Sextend;
                let low = match signed {
                    _ if self.at.func.dfg.value_type(arg) == self.half => arg,
                    false => self.at.ins().uextend(self.half, arg),
                    true => self.at.ins().sextend(self.half, arg),
                };
                [low, if signed { self.signs(low) } else { self.konst(0) }]
            }
            Opcode::Bmask => {
                let condition = self.condition(arg);
                [self.at.ins().bmask(self.half, condition); 2]
            }
            _ if narrow => return None,
            Opcode::Ineg => {
                let (zero, x) = (self.zero(), self.parts(arg));
                self.sub_pairs(zero, x)
            }
            Opcode::Iabs => {
                let x = self.parts(arg);
                let mask = self.signs(x[1]);
                self.negate_if(mask, x)
            }
            Opcode::Bnot => self.parts(arg).map(|half| self.not(half)),
            Opcode::Bswap => {
                let [low, high] = self.parts(arg);
                [high, low].map(|half| self.at.ins().bswap(half))
            }
            Opcode::Bitrev => {
                let [low, high] = self.parts(arg);
                [high, low].map(|half| self.at.ins().bitrev(half))
            }
            Opcode::Clz | Opcode::Ctz => self.count_zeros(opcode, self.parts(arg)),
            Opcode::Popcnt => self.count_ones(self.parts(arg)),
            _ => return None,
        })
    }

    fn binary(&mut self, opcode: Opcode, args: [Value; 2]) -> Option<Pair> {
        if opcode == Opcode::Iconcat {
            return Some(args);
        }
        let x = self.parts(args[0]);
        if matches!(
            opcode,
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr
        ) {
            let amount = self.amount(args[1]);
            return Some(self.shift(opcode, x, amount));
        }
        if !self.is_wide(args[1]) {
            return None;
        }
        let y = self.parts(args[1]);
        Some(match opcode {
            Opcode::Iadd => self.add_pairs(x, y),
            Opcode::Isub => self.sub_pairs(x, y),
            Opcode::Imul => self.mul_pairs(x, y),
            Opcode::Umulhi => self.unsigned_high(x, y),
            Opcode::Smulhi => self.signed_high(x, y),
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => self.divide(opcode, x, y),
            Opcode::Band => self.each(Self::and, x, y),
            Opcode::Bor => self.each(Self::or, x, y),
            Opcode::Bxor => self.each(Self::xor, x, y),
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => self.extreme(opcode, x, y),
            _ => return None,
        })
    }

    /// The amount of a shift as a half: only its low bits matter.
    fn amount(&mut self, amount: Value) -> Value {
        if self.is_wide(amount) {
            return self.parts(amount)[0];
        }
        resized(&mut self.at, amount, self.half)
    }

    /// An operation on a pair whose only result is not a pair.
    fn single(&mut self, inst: Inst, data: InstructionData, result: Value) -> Option<()> {
        let ty = self.at.func.dfg.value_type(result);
        let value = match data {
            InstructionData::IntCompare { args, cond, .. } => {
                let [x, y] = args.map(|value| self.parts(value));
                self.compare(cond, x, y)
            }
            InstructionData::Unary { opcode: Opcode::Ireduce, arg } => {
                let low = self.parts(arg)[0];
                if ty == self.half { low } else { self.at.ins().ireduce(ty, low) }
            }
            InstructionData::Unary { opcode: Opcode::Bmask, arg } => {
                let condition = self.condition(arg);
                self.at.ins().bmask(ty, condition)
            }
            InstructionData::Ternary {
                opcode: Opcode::Select | Opcode::SelectSpectreGuard,
                args: [c, x, y],
            } => {
                let condition = self.condition(c);
                self.at.ins().select(condition, x, y)
            }
            InstructionData::Binary {
                opcode: Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr,
                args: [_, amount],
            } => {
                let amount = self.amount(amount);
                self.at.func.dfg.inst_args_mut(inst)[1] = amount;
                return Some(());
            }
            InstructionData::Load { .. }
            | InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => {
                self.cut_address(inst, 0);
                return (!self.is_concerned(inst)).then_some(());
            }
            _ => return None,
        };
        self.at.func.dfg.clear_results(inst);
        self.at.func.dfg.change_to_alias(result, value);
        self.remove(inst);
        Some(())
    }

    /// An operation without results.
    fn effect(&mut self, inst: Inst, mut data: InstructionData) -> Option<()> {
        match &mut data {
            InstructionData::CondTrap { arg, .. } => {
                *arg = self.condition(*arg);
                self.at.func.dfg.insts[inst] = data;
            }
            InstructionData::Store { args, .. } if self.is_wide(args[0]) => {
                self.store(data)?;
                self.remove(inst);
            }
            InstructionData::Store { .. } | InstructionData::StoreNoOffset { .. } => {
                self.cut_address(inst, 1);
                return (!self.is_concerned(inst)).then_some(());
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns and branches, with their arguments.
    fn terminator(&mut self, inst: Inst, mut data: InstructionData) -> Option<()> {
        match &mut data {
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => {
                let results = self.flatten(self.at.func.dfg.inst_args(inst));
                self.at.func.replace(inst).return_(&results);
                return Some(());
            }
            InstructionData::Brif { arg, .. } => {
                *arg = self.condition(*arg);
                self.at.func.dfg.insts[inst] = data;
            }
            InstructionData::Jump { .. } | InstructionData::BranchTable { .. } => {}
            _ => return None,
        }
        let dfg = &self.at.func.dfg;
        let new: Vec<(Block, Vec<BlockArg>)> = edges(dfg, inst)
            .iter()
            .map(|call| {
                let args = call.args(&dfg.value_lists).flat_map(|arg| match arg {
                    BlockArg::Value(value) => {
                        self.flatten(&[value]).into_iter().map(BlockArg::Value).collect()
                    }
                    other => vec![other],
                });
                (call.block(&dfg.value_lists), args.collect())
            })
            .collect();
        let dfg = &mut self.at.func.dfg;
        let new: Vec<BlockCall> = new
            .into_iter()
            .map(|(block, args)| BlockCall::new(block, args, &mut dfg.value_lists))
            .collect();
        dfg.insts[inst]
            .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)
            .copy_from_slice(&new);
        Some(())
    }

    /// Records the halves of the wide result of an instruction.
    fn define(&mut self, inst: Inst, pair: Pair) {
        let result = self.at.func.dfg.first_result(inst);
        self.parts[result] = Some(pair);
        self.remove(inst);
    }

    fn remove(&mut self, inst: Inst) {
        self.at.goto_inst(inst);
        self.at.remove_inst();
    }
}
