//! Loads that only move what they read.

use std::collections::HashMap;

use cranelift_codegen::ir::{Function, Inst, Opcode, Value};

use super::Access;
use super::roots::Roots;

/// Loads of which nothing depends on what they read, so that it need not have been written: their results are not used, are
/// stored where they come from, or in stack slots if they come from one. Compilers that do not optimize change a component
/// of a vector by loading and storing all of them, and move vectors from slot to slot of which only some have a value.
pub(super) struct Moves {
    /// By the result of the load: whether all of its uses are such stores.
    loads: HashMap<Value, bool>,
}

impl Moves {
    pub(super) fn of(func: &Function, roots: &Roots) -> Moves {
        let mut accesses = HashMap::new();
        let insts = || func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        for inst in insts().filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Load) {
            let access = Access::by(func, inst).expect("loads access memory");
            accesses.insert(func.dfg.first_result(inst), access);
        }
        let mut loads: HashMap<Value, bool> = accesses.keys().map(|&load| (load, true)).collect();
        let is_in_slot =
            |address: Value| roots.of_address(address).is_some_and(|found| found.slot.is_some());
        let is_move = |from: &Access, inst: Inst| {
            let Some(to) = Access::by(func, inst).filter(|to| to.stored.is_some()) else {
                return false;
            };
            let is_back = (from.address, from.offset) == (to.address, to.offset);
            is_back || (is_in_slot(from.address) && is_in_slot(to.address))
        };
        for inst in insts() {
            let is_store = func.dfg.insts[inst].opcode() == Opcode::Store;
            for (index, value) in func.dfg.inst_values(inst).enumerate() {
                let value = func.dfg.resolve_aliases(value);
                let Some(is_moved) = loads.get_mut(&value) else { continue };
                *is_moved &= is_store && index == 0 && is_move(&accesses[&value], inst);
            }
        }
        Moves { loads }
    }

    /// Whether nothing depends on the result of a load.
    pub(super) fn is_moved(&self, result: Value) -> bool {
        self.loads.get(&result).copied().unwrap_or(false)
    }
}
