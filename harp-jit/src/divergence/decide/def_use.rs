//! Classifies a branch by what its condition is computed from, following definitions (Gupta 2016, section
//! 4.3.1, algorithms 5 and 6).
//!
//! In Gupta's thesis the lane's number is an argument of the kernel. Here work-item positions count as lane
//! numbers, too: they differ from lane to lane in the same way. This implementation follows definitions in
//! the order in which it meets them, which the thesis leaves open, and follows each only once, which the
//! thesis omits.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};

use crate::analysis::Flow;
use crate::intrinsic::Intrinsic;
use crate::width::{Rule, Width};

/// What the definitions tell about a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanimity {
    /// Lanes agree: the condition depends on warp numbers and constants only (algorithm 6).
    Unanimous,
    /// Lanes disagree: the condition depends on the lane's number (algorithm 5).
    Nonunanimous,
    /// Neither: for example, the condition depends on a load from an address that differs between lanes.
    Indeterminate,
}

/// Classifies the branch `inst`.
pub(crate) fn classify(func: &Function, flow: &Flow, inst: Inst) -> Unanimity {
    let InstructionData::Brif { arg, .. } = func.dfg.insts[inst] else {
        return Unanimity::Indeterminate;
    };
    if is_nonunanimous(func, flow, arg) {
        Unanimity::Nonunanimous
    } else if is_unanimous(func, arg) {
        Unanimity::Unanimous
    } else {
        Unanimity::Indeterminate
    }
}

/// Algorithm 5.
fn is_nonunanimous(func: &Function, flow: &Flow, condition: Value) -> bool {
    let mut seen = EntitySet::new();
    let mut worklist = std::collections::VecDeque::from([condition]);
    while let Some(value) = worklist.pop_front() {
        let value = func.dfg.resolve_aliases(value);
        if !seen.insert(value) {
            continue;
        }
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) if is_lane_number(func, inst) => return true,
            ValueDef::Result(inst, _) => {
                if func.dfg.insts[inst].opcode().can_load() {
                    let address = func.dfg.inst_args(inst)[0];
                    if depends_on_lane(func, address) {
                        return false;
                    }
                }
                worklist.extend(func.dfg.inst_args(inst));
            }
            ValueDef::Param(block, index) => worklist.extend(flow.passed(func, block, index)),
            ValueDef::Union(a, b) => worklist.extend([a, b]),
        }
    }
    false
}

/// Algorithm 6.
fn is_unanimous(func: &Function, condition: Value) -> bool {
    let mut seen = EntitySet::new();
    let mut worklist = vec![condition];
    while let Some(value) = worklist.pop() {
        let value = func.dfg.resolve_aliases(value);
        if !seen.insert(value) {
            continue;
        }
        let ValueDef::Result(inst, _) = func.dfg.value_def(value) else { return false };
        let opcode = func.dfg.insts[inst].opcode();
        let uniform_call = Intrinsic::of_call(func, inst).is_some_and(is_uniform_in_warp);
        if opcode.can_load() || (opcode.is_call() && !uniform_call) {
            return false;
        }
        worklist.extend(func.dfg.inst_args(inst));
    }
    true
}

/// Whether the result is the same in all lanes of the warp, whichever of them execute it.
fn is_uniform_in_warp(intrinsic: Intrinsic) -> bool {
    let is_wide = matches!(intrinsic.rule(), Rule::Fixed(width) if width > Width::Thread);
    intrinsic.is_private() && is_wide
}

/// Whether `inst` gives a lane's number or a work-item's position.
fn is_lane_number(func: &Function, inst: Inst) -> bool {
    Intrinsic::of_call(func, inst).is_some_and(Intrinsic::is_number_of_lane)
}

/// Whether `value` is computed from the lane's number, with no load or block parameter in between.
pub(super) fn depends_on_lane(func: &Function, value: Value) -> bool {
    let mut seen = EntitySet::new();
    let mut worklist = vec![value];
    while let Some(value) = worklist.pop() {
        let value = func.dfg.resolve_aliases(value);
        if let ValueDef::Result(inst, _) = func.dfg.value_def(value)
            && seen.insert(value)
        {
            if is_lane_number(func, inst) {
                return true;
            }
            if !func.dfg.insts[inst].opcode().can_load() {
                worklist.extend(func.dfg.inst_args(inst));
            }
        }
    }
    false
}

/// The comparison that defines a condition, if there is one.
pub(super) fn comparison(func: &Function, condition: Value) -> Option<(Opcode, Inst)> {
    let ValueDef::Result(inst, _) = func.dfg.value_def(func.dfg.resolve_aliases(condition)) else {
        return None;
    };
    let opcode = func.dfg.insts[inst].opcode();
    matches!(opcode, Opcode::Icmp | Opcode::Fcmp).then_some((opcode, inst))
}
