//! Addresses of a lane's own memory that no other lane can know.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, StackSlot, Value};

/// The addresses in stack slots of which nothing else is done with any address than to add to it, or to access the
/// memory there. What is added is taken to lead to the same slot.
pub(super) fn addresses(func: &Function) -> EntitySet<Value> {
    let mut private = EntitySet::new();
    if func.sized_stack_slots.is_empty() {
        return private;
    }
    let slots = Slots::of(func);
    let mut escaped = EntitySet::new();
    for inst in insts(func) {
        slots.escaping(func, inst, &mut escaped);
    }
    for (value, slot) in slots.0.iter() {
        if slot.is_some_and(|slot| !escaped.contains(slot)) {
            private.insert(value);
        }
    }
    private
}

/// The slot that a value is an address in, if it is one.
struct Slots(SecondaryMap<Value, Option<StackSlot>>);

impl Slots {
    fn of(func: &Function) -> Slots {
        let mut slots = Slots(SecondaryMap::new());
        // Blocks may come before those that dominate them.
        let mut changed = true;
        while changed {
            changed = false;
            for inst in insts(func) {
                let slot = match func.dfg.insts[inst] {
                    InstructionData::StackAddr { stack_slot, .. } => Some(stack_slot),
                    InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } => {
                        match (slots.get(func, a), slots.get(func, b)) {
                            (Some(slot), None) | (None, Some(slot)) => Some(slot),
                            _ => None,
                        }
                    }
                    _ => continue,
                };
                let known = &mut slots.0[func.dfg.first_result(inst)];
                // A sum of two addresses is none, and it may turn out to be one late.
                changed |= *known != slot;
                *known = slot;
            }
        }
        slots
    }

    fn get(&self, func: &Function, value: Value) -> Option<StackSlot> {
        self.0[func.dfg.resolve_aliases(value)]
    }

    /// Adds the slots of whose addresses an instruction makes something else.
    fn escaping(&self, func: &Function, inst: Inst, escaped: &mut EntitySet<StackSlot>) {
        let data = func.dfg.insts[inst];
        // Which operand may be an address.
        let address = match data {
            InstructionData::Load { .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => Some(0),
            InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, .. } => Some(0),
            InstructionData::Store { .. } | InstructionData::StoreNoOffset { .. } => Some(1),
            InstructionData::Binary { opcode: Opcode::Iadd, args: [_, b] } => {
                let is_sum = self.get(func, func.dfg.first_result(inst)).is_some();
                is_sum.then_some(usize::from(self.get(func, b).is_some()))
            }
            _ => None,
        };
        for (at, value) in func.dfg.inst_values(inst).enumerate() {
            if address != Some(at) {
                escaped.extend(self.get(func, value));
            }
        }
    }
}

fn insts(func: &Function) -> impl Iterator<Item = Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}
