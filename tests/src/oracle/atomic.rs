//! Atomic accesses. Work-items run one after the other, so these are a load, a computation, a store.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AtomicRmwOp, Inst, InstructionData, Opcode, Type};

use super::{Done, FlatMemory, Item, Stop, int, signed};

impl Item<'_> {
    /// Executes an atomic access with these operands; none if it is something else.
    pub(super) fn atomic(
        &self,
        inst: Inst,
        ty: Type,
        values: &[DataValue],
        memory: &mut FlatMemory,
    ) -> Option<Done> {
        let data = self.func.dfg.insts[inst];
        let ordered = |value: DataValue| self.ordered(inst, value);
        match data {
            InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, .. } => {
                return Some(memory.load(self.address(&values[0], 0), ty).map(ordered).into());
            }
            InstructionData::StoreNoOffset { opcode: Opcode::AtomicStore, .. } => {
                let address = self.address(&values[1], 0);
                return Some(self.store(memory, inst, Opcode::Store, &values[0], address));
            }
            InstructionData::AtomicRmw { .. } | InstructionData::AtomicCas { .. } => {}
            // Of the same format as an atomic load is `bitcast`.
            _ => return None,
        }
        let address = self.address(&values[0], 0);
        let Some(old) = memory.load(address, ty).map(ordered) else {
            return Some(Done::Stop(Stop::BadAddress));
        };
        let new = match data {
            InstructionData::AtomicRmw { op, .. } => updated(op, ty, &old, &values[1]),
            InstructionData::AtomicCas { .. } if old == values[1] => values[2].clone(),
            InstructionData::AtomicCas { .. } => old.clone(),
            _ => return None,
        };
        Some(match memory.store(address, &ordered(new)) {
            Some(()) => Done::Results(vec![old]),
            None => Done::Stop(Stop::BadAddress),
        })
    }
}

fn updated(op: AtomicRmwOp, ty: Type, old: &DataValue, value: &DataValue) -> DataValue {
    let (x, y) = (signed(old), signed(value));
    let zero_extended = |bits: i128| bits & ((1 << ty.bits()) - 1);
    let new = match op {
        AtomicRmwOp::Add => x + y,
        AtomicRmwOp::Sub => x - y,
        AtomicRmwOp::And => x & y,
        AtomicRmwOp::Nand => !(x & y),
        AtomicRmwOp::Or => x | y,
        AtomicRmwOp::Xor => x ^ y,
        AtomicRmwOp::Xchg => y,
        AtomicRmwOp::Smin => x.min(y),
        AtomicRmwOp::Smax => x.max(y),
        AtomicRmwOp::Umin => zero_extended(x).min(zero_extended(y)),
        AtomicRmwOp::Umax => zero_extended(x).max(zero_extended(y)),
    };
    int(new, ty)
}
