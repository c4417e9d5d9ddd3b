//! Chooses which side of a branch is the taken one.
//!
//! The mid-end hoists code out of a loop only while it is inside the loop: it walks the dominator tree, a
//! branch's fall-through side first, and a block outside the loop ends the loop. So before the mid-end,
//! branches that leave a loop are turned so that the taken side leaves ([`leave_loops_by_jumping`]). After
//! it, they are turned to the condition that costs least on HARP ([`simplify_conditions`]).
//!
//! Both assume a verified function and change neither what it computes nor its blocks and edges.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef,
};
use cranelift_codegen::loop_analysis::LoopAnalysis;

use crate::constant;

/// Turns branches whose taken side stays in their loop and whose fall-through side leaves it. Returns whether
/// there were any.
pub(crate) fn leave_loops_by_jumping(func: &mut Function, loops: &LoopAnalysis) -> bool {
    let mut turned = false;
    for (block, branch) in branches(func) {
        let Some(inner) = loops.innermost_loop(block) else { continue };
        let InstructionData::Brif { arg, blocks, .. } = func.dfg.insts[branch] else { continue };
        let stays = blocks.map(|call| {
            let target = call.block(&func.dfg.value_lists);
            loops.is_in_loop(target, inner)
        });
        if stays == [true, false] {
            let condition = opposite(func, branch, arg);
            turn(func, branch, condition);
            turned = true;
        }
    }
    turned
}

/// Replaces conditions by cheaper ones, exchanging the sides if needed: a comparison with 0 by the value
/// itself, and a comparison that the machine computes by negating another one by that one.
pub(crate) fn simplify_conditions(func: &mut Function) {
    for (_, branch) in branches(func) {
        while let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] {
            match simpler(func, arg) {
                Simpler::Same(value) => condition(func, branch, value),
                Simpler::Opposite(value) => turn(func, branch, value),
                Simpler::OppositeComparison => {
                    let value = opposite(func, branch, arg);
                    turn(func, branch, value);
                }
                Simpler::Not => break,
            }
        }
    }
}

/// A cheaper form of a condition.
enum Simpler {
    /// The value, which is not 0 where the condition holds.
    Same(Value),
    /// The value, which is 0 where the condition holds.
    Opposite(Value),
    /// The opposite comparison.
    OppositeComparison,
    Not,
}

fn simpler(func: &Function, value: Value) -> Simpler {
    let dfg = &func.dfg;
    let ValueDef::Result(inst, _) = dfg.value_def(dfg.resolve_aliases(value)) else {
        return Simpler::Not;
    };
    match dfg.insts[inst] {
        InstructionData::IntCompare { cond, args: [x, y], .. } => match cond {
            IntCC::Equal if is_zero(func, y) => Simpler::Opposite(x),
            IntCC::NotEqual if is_zero(func, y) => Simpler::Same(x),
            IntCC::Equal if [x, y].iter().all(|&value| is_comparison(func, value)) => {
                Simpler::OppositeComparison
            }
            IntCC::SignedLessThanOrEqual
            | IntCC::SignedGreaterThanOrEqual
            | IntCC::UnsignedLessThanOrEqual
            | IntCC::UnsignedGreaterThanOrEqual => Simpler::OppositeComparison,
            _ => Simpler::Not,
        },
        InstructionData::FloatCompare {
            cond:
                FloatCC::NotEqual
                | FloatCC::UnorderedOrEqual
                | FloatCC::UnorderedOrLessThan
                | FloatCC::UnorderedOrLessThanOrEqual
                | FloatCC::UnorderedOrGreaterThan
                | FloatCC::UnorderedOrGreaterThanOrEqual,
            ..
        } => Simpler::OppositeComparison,
        _ => Simpler::Not,
    }
}

fn is_zero(func: &Function, value: Value) -> bool {
    constant::unsigned(&func.dfg, value) == Some(0)
}

fn is_comparison(func: &Function, value: Value) -> bool {
    let dfg = &func.dfg;
    match dfg.value_def(dfg.resolve_aliases(value)) {
        ValueDef::Result(inst, _) => {
            matches!(dfg.insts[inst].opcode(), Opcode::Icmp | Opcode::Fcmp)
        }
        _ => false,
    }
}

/// A new value in front of `branch` that is 0 where `value` is not.
fn opposite(func: &mut Function, branch: Inst, value: Value) -> Value {
    let compare = match func.dfg.value_def(func.dfg.resolve_aliases(value)) {
        ValueDef::Result(inst, _) => Some(func.dfg.insts[inst]),
        _ => None,
    };
    let place = func.srcloc(branch);
    let mut at = FuncCursor::new(func).at_inst(branch).with_srcloc(place);
    match compare {
        Some(InstructionData::IntCompare { cond, args: [x, y], .. }) => {
            at.ins().icmp(cond.complement(), x, y)
        }
        Some(InstructionData::FloatCompare { cond, args: [x, y], .. }) => {
            at.ins().fcmp(cond.complement(), x, y)
        }
        _ => at.ins().icmp_imm_s(IntCC::Equal, value, 0),
    }
}

/// Makes a branch depend on `value` and exchanges its sides.
fn turn(func: &mut Function, branch: Inst, value: Value) {
    if let InstructionData::Brif { blocks, .. } = &mut func.dfg.insts[branch] {
        blocks.swap(0, 1);
    }
    condition(func, branch, value);
}

/// Makes a branch depend on `value`.
fn condition(func: &mut Function, branch: Inst, value: Value) {
    if let InstructionData::Brif { arg, .. } = &mut func.dfg.insts[branch] {
        *arg = value;
    }
}

/// The blocks that end in a `brif`.
fn branches(func: &Function) -> Vec<(Block, Inst)> {
    let last =
        func.layout.blocks().filter_map(|block| Some((block, func.layout.last_inst(block)?)));
    last.filter(|&(_, inst)| func.dfg.insts[inst].opcode() == Opcode::Brif).collect()
}
