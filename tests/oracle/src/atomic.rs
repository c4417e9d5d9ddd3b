//! Atomic accesses. Work-items run one after the other, so these are a load, a computation, a store.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AtomicRmwOp, InstructionData, Opcode, Type};

use super::{Ended, FlatMemory, Item, int, signed};

impl Item<'_> {
    /// Executes an atomic access with these operands; none if it is something else.
    pub(super) fn atomic(
        &self,
        ty: Type,
        values: &[DataValue],
        memory: &mut FlatMemory,
    ) -> Option<Ended> {
        let at = match self.data() {
            InstructionData::StoreNoOffset { opcode: Opcode::AtomicStore, .. } => {
                return Some(self.store(memory, &values[0], self.address(&values[1], 0)));
            }
            InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => self.address(&values[0], 0),
            // Of the same format as an atomic load is `bitcast`.
            _ => return None,
        };
        Some(memory.load(at, ty).and_then(|old| {
            let old = self.ordered(old);
            let new = match self.data() {
                InstructionData::AtomicRmw { op, .. } => updated(op, ty, &old, &values[1]),
                InstructionData::AtomicCas { .. } if old == values[1] => values[2].clone(),
                _ => return Ok(vec![old]),
            };
            memory.store(at, &self.ordered(new))?;
            Ok(vec![old])
        }))
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
