//! The order of instructions in each of Cranelift's blocks: what has no effect, and loads of the machine's registers, come
//! as late as they may.
//!
//! Emission goes instruction by instruction, each in all vectors of its registers. In that order all vectors of a
//! block's registers are alive at the same time, more than the host has registers for. But what a block leaves in the machine's
//! registers is stored vector by vector. If each value is computed where the first such effect needs it, the block does
//! one vector after the other, as if strip-mined, and little has to be spilled.

use std::collections::HashMap;

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{AliasRegion, Block, Function, Inst, InstructionData, ValueDef};

/// Orders the instructions of all blocks.
pub(super) fn order(func: &mut Function) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let mut index_of = SecondaryMap::new();
    for block in blocks {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for (index, &inst) in insts.iter().enumerate() {
            index_of[inst] = index;
        }
        let places = places(func, block, &insts, &index_of);
        let mut order: Vec<usize> = (0..insts.len()).collect();
        // What goes before an instruction does so in the order that it was in.
        order.sort_by_key(|&index| (places[index], index == places[index]));
        for &inst in &insts {
            func.layout.remove_inst(inst);
        }
        for index in order {
            func.layout.append_inst(insts[index], block);
        }
    }
}

/// For each of a block's instructions, whose indices are given, the index of the one before which it goes, or its own if it
/// stays.
fn places(
    func: &Function,
    block: Block,
    insts: &[Inst],
    index_of: &SecondaryMap<Inst, usize>,
) -> Vec<usize> {
    let dfg = &func.dfg;
    // What only other blocks use goes to the end.
    let mut places = vec![insts.len().saturating_sub(1); insts.len()];
    // By place, the next store to a register.
    let mut stores: HashMap<Register, usize> = HashMap::new();
    for (index, &inst) in insts.iter().enumerate().rev() {
        let register = register(func, inst);
        let opcode = dfg.insts[inst].opcode();
        match register {
            Some(register) if opcode.can_load() => {
                let store = stores.get(&register).copied().unwrap_or(usize::MAX);
                places[index] = places[index].min(store);
            }
            Some(register) => {
                stores.insert(register, index);
                places[index] = index;
            }
            None if !is_free(func, inst) => places[index] = index,
            None => {}
        }
        for value in dfg.inst_values(inst) {
            if let ValueDef::Result(source, _) = dfg.value_def(value)
                && func.layout.inst_block(source) == Some(block)
            {
                let source = index_of[source];
                places[source] = places[source].min(places[index]);
            }
        }
    }
    places
}

/// A vector of the machine's registers: where these are, and its offset. Accesses of them have an alias region, and no
/// others have.
type Register = (AliasRegion, i32);

/// What an instruction loads or stores, if that is in the machine's registers.
fn register(func: &Function, inst: Inst) -> Option<Register> {
    let (InstructionData::Load { flags, offset, .. }
    | InstructionData::Store { flags, offset, .. }) = func.dfg.insts[inst]
    else {
        return None;
    };
    Some((func.dfg.mem_flags[flags].alias_region()?, offset.into()))
}

/// Whether an instruction computes a value and does nothing else.
fn is_free(func: &Function, inst: Inst) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    let acts = opcode.can_load()
        || opcode.can_store()
        || opcode.can_trap()
        || opcode.is_call()
        || opcode.is_terminator()
        || opcode.other_side_effects();
    !acts && func.dfg.inst_results(inst).len() == 1
}
