//! What is read and written that other work-items may write and read.

use cranelift_codegen::ir::Opcode::{Iadd, Isub, Select};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{AtomicRmwOp, Function, Inst, InstructionData, Opcode, Value};
use hashbrown::HashSet;

/// Whether a loop with this instruction may wait.
pub(super) fn may_wait(func: &Function, inst: Inst) -> bool {
    use Opcode::{AtomicCas, AtomicLoad, AtomicRmw};
    let is_atomic = matches!(func.dfg.insts[inst].opcode(), AtomicCas | AtomicLoad | AtomicRmw);
    is_atomic || is_fence(func, inst)
}

/// Whether an instruction orders the accesses around it.
pub(super) fn is_fence(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Fence | Opcode::SequencePoint)
}

/// A term of an address that is a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Value(Value),
    /// A constant in memory: what is at a distance from an address. It may be loaded more than once.
    Constant(Value, Offset32),
}

/// The terms of an address, apart from numbers. Addresses in one array have the array in common.
pub(super) fn parts(func: &Function, address: Value) -> impl Iterator<Item = Part> {
    let (mut todo, mut found) = (vec![address], HashSet::new());
    while let Some(value) = todo.pop() {
        let inst = func.dfg.value_def(value).inst();
        match inst.map(|inst| (inst, func.dfg.insts[inst])) {
            Some((_, InstructionData::UnaryImm { .. })) => {}
            Some((inst, data)) if matches!(data.opcode(), Iadd | Isub | Select) => {
                todo.extend(func.dfg.inst_args(inst));
            }
            Some((_, InstructionData::Load { arg, offset, flags, .. }))
                if func.dfg.mem_flags[flags].readonly() =>
            {
                found.insert(Part::Constant(arg, offset));
            }
            _ => drop(found.insert(Part::Value(value))),
        }
    }
    found.into_iter()
}

/// The address that an instruction reads, if what is read there may be another lane's; where accesses are `ordered`, of any
/// of them. An exchange for a value that varies in the loop is repeated, not waited for.
pub(super) fn read_by(
    func: &Function,
    inst: Inst,
    ordered: bool,
    varies: impl Fn(Value) -> bool,
) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::AtomicRmw { args: [address, _], .. } => Some(address),
        InstructionData::AtomicCas { args: [address, expected, _], .. } => {
            (!varies(expected)).then_some(address)
        }
        InstructionData::LoadNoOffset { arg, .. } => Some(arg),
        InstructionData::Load { arg, .. } => ordered.then_some(arg),
        _ => None,
    }
}

/// Whether an atomic access writes what does not depend on what was there, as one does that takes a lock.
pub(super) fn is_exchange(func: &Function, inst: Inst) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::AtomicRmw { op, .. } => op == AtomicRmwOp::Xchg,
        InstructionData::AtomicCas { .. } => true,
        _ => false,
    }
}

/// The address to which an instruction writes what other lanes may wait for.
pub(super) fn written_by(func: &Function, inst: Inst) -> Option<Value> {
    let ordered = || func.layout.next_inst(inst).is_some_and(|next| is_fence(func, next));
    match func.dfg.insts[inst] {
        InstructionData::AtomicRmw { args: [address, _], .. }
        | InstructionData::AtomicCas { args: [address, ..], .. }
        | InstructionData::StoreNoOffset { args: [_, address], .. } => Some(address),
        InstructionData::Store { args: [_, address], .. } => ordered().then_some(address),
        _ => None,
    }
}
