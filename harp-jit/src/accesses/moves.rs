//! Loads that only move what they read.

use std::collections::HashMap;

use cranelift_codegen::ir::{Function, Inst, Opcode, Value};

use super::Access;
use super::roots::Roots;

/// Loads of which nothing depends on what they read, so that it need not have been written: their results are not used, are
/// stored where they come from, or in stack slots if they come from one. Compilers that do not optimize change a component
/// of a vector by loading and storing all of them, and move vectors from slot to slot of which only some have a value.
pub(super) struct Moves {
    /// By their results.
    loads: HashMap<Value, Access>,
}

impl Moves {
    pub(super) fn of(func: &Function, roots: &Roots) -> Moves {
        let insts = || func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        let is_load = |inst: &Inst| func.dfg.insts[*inst].opcode() == Opcode::Load;
        let load = |inst| Some((func.dfg.first_result(inst), Access::by(func, inst)?));
        let mut loads: HashMap<Value, Access> = insts().filter(is_load).filter_map(load).collect();
        let is_in_slot =
            |address: Value| roots.of_address(address).is_some_and(|found| found.slot.is_some());
        let is_move = |from: &Access, inst: Inst| {
            let to = Access::by(func, inst).filter(|to| to.stored.is_some());
            to.is_some_and(|to| {
                let is_back = (from.address, from.offset) == (to.address, to.offset);
                is_back || (is_in_slot(from.address) && is_in_slot(to.address))
            })
        };
        for inst in insts() {
            let is_store = func.dfg.insts[inst].opcode() == Opcode::Store;
            for (index, value) in func.dfg.inst_values(inst).enumerate() {
                let value = func.dfg.resolve_aliases(value);
                let is_stored = is_store && index == 0;
                if loads.get(&value).is_some_and(|from| !(is_stored && is_move(from, inst))) {
                    loads.remove(&value);
                }
            }
        }
        Moves { loads }
    }

    /// Whether nothing depends on the result of a load.
    pub(super) fn is_moved(&self, result: Value) -> bool {
        self.loads.contains_key(&result)
    }
}
