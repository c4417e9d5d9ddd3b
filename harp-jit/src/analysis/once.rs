//! Loads that decide branches.
//!
//! Lanes that load from the same address together load the same, unless somebody stores there in between. So the analysis
//! takes what they load for divergent, and a branch that depends on it, too. Where a machine can load once for all of them,
//! it is enough to know for which loads that makes a branch uniform. They are found by a second analysis, in which every
//! load from a uniform address is such a load, from the branches that are uniform in that one only.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};

use super::calls::Known;
use super::solver::Solver;
use super::uniformity::Uniformity;
use crate::width::Width;

/// How lanes load from memory that may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// Each lane loads for itself.
    Each,
    /// Lanes that load from the same address together can have what one of them loads, where a return is reachable.
    Once,
}

/// Whether it is a load that other lanes may be spared, and may load something else each time.
pub(super) fn is_plain_load(func: &Function, inst: Inst) -> bool {
    matches!(
        func.dfg.insts[inst].opcode(),
        Opcode::Load
            | Opcode::Uload8
            | Opcode::Sload8
            | Opcode::Uload16
            | Opcode::Sload16
            | Opcode::Uload32
            | Opcode::Sload32
    )
}

/// The loads that make divergent branches uniform if lanes which execute one of them together all get what one of them
/// loads. Their addresses are uniform then, too. `facts` and `known` are what is known of the function.
pub(crate) fn deciding_loads(func: &Function, facts: &Uniformity, known: Known<'_>) -> Vec<Inst> {
    let flow = facts.flow();
    let mut divergent = flow.blocks().filter(|&block| facts.branch_divergence(block).is_some());
    let is_candidate = |inst: Inst| is_plain_load(func, inst);
    let mut insts = flow.blocks().flat_map(|block| func.layout.block_insts(block));
    if divergent.next().is_none() || !insts.any(is_candidate) {
        return Vec::new();
    }
    let hoped = Solver::solve(func, flow, known, Loads::Once);
    let mut search = Search { func, facts, seen: EntitySet::new(), todo: Vec::new() };
    for block in flow.blocks() {
        let becomes_uniform = facts.branch_divergence(block).is_some()
            && hoped.branches[block].divergence().is_none();
        if let Some(branch) = func.layout.last_inst(block).filter(|_| becomes_uniform)
            && let InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } =
                func.dfg.insts[branch]
        {
            search.todo.push(arg);
        }
    }
    search.run()
}

/// A search, backwards, for the loads that divergent values are computed from. Values that lanes differ in because of the
/// way that they took need no search: the branches that they parted at are uniform as well then.
struct Search<'a> {
    func: &'a Function,
    facts: &'a Uniformity,
    seen: EntitySet<Value>,
    todo: Vec<Value>,
}

impl Search<'_> {
    fn run(mut self) -> Vec<Inst> {
        let func = self.func;
        let mut loads = Vec::new();
        while let Some(value) = self.todo.pop() {
            let value = func.dfg.resolve_aliases(value);
            let is_divergent = self.facts.width(func, value) == Width::Thread;
            if !is_divergent || !self.seen.insert(value) {
                continue;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _) => {
                    loads.extend(Some(inst).filter(|&inst| is_plain_load(func, inst)));
                    self.todo.extend(func.dfg.inst_values(inst));
                }
                ValueDef::Param(block, index) => {
                    self.todo.extend(self.facts.flow().passed(func, block, index));
                }
                ValueDef::Union(..) => {}
            }
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [i32; 0] = [];

    /// The offsets of the loads that decide branches of a kernel with the lane's number `v1`.
    fn deciding(body: &str) -> Vec<i32> {
        let text = format!(
            "function %f(i32) {{
                fn0 = %harp_lane_id() -> i32
                ss0 = explicit_slot 4
            block0(v0: i32):
                v1 = call fn0()
                {body}
            }}"
        );
        let func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        let facts = Uniformity::compute(&func, Known::KERNEL);
        let loads = deciding_loads(&func, &facts, Known::KERNEL).into_iter();
        let offset = |load: Inst| func.dfg.insts[load].load_store_offset().unwrap();
        let mut offsets: Vec<i32> = loads.map(offset).collect();
        offsets.sort_unstable();
        offsets
    }

    /// A branch on a value that `compute` gives.
    fn branch_on(compute: &str) -> Vec<i32> {
        deciding(&format!(
            "   {compute}
                brif v9, block1, block2
            block1: jump block2
            block2: return"
        ))
    }

    #[test]
    fn of_all_kinds_and_through_computations() {
        assert_eq!(branch_on("v9 = load.i32 aligned v0+4"), [4]);
        assert_eq!(branch_on("v9 = sload8.i32 v0+4"), [4]);
        let compute =
            "v2 = load.i8 v0+4\n v3 = uextend.i32 v2\n v4 = uload16.i32 v0+8\n v9 = iadd v3, v4";
        assert_eq!(branch_on(compute), [4, 8]);
        // An address that was loaded.
        assert_eq!(branch_on("v2 = load.i32 v0+4\n v9 = load.i32 v2+8"), [4, 8]);
    }

    #[test]
    fn not_where_lanes_differ_anyway() {
        assert_eq!(branch_on("v9 = load.i32 v1+4"), NONE);
        assert_eq!(branch_on("v2 = load.i32 v0+4\n v9 = iadd v1, v2"), NONE);
        assert_eq!(branch_on("v9 = atomic_load.i32 v0"), NONE);
        assert_eq!(branch_on("v2 = stack_addr.i32 ss0\n v9 = load.i32 v2"), NONE);
    }

    #[test]
    fn not_where_nothing_is_decided() {
        assert_eq!(branch_on("v2 = load.i32 v0+4\n store v2, v1\n v9 = iconst.i32 1"), NONE);
        assert_eq!(branch_on("v9 = load.i32 notrap aligned readonly v0+4"), NONE);
        // Where no return is reachable.
        let doomed = "brif v1, block1, block3
            block1: v2 = load.i32 v0+4
                brif v2, block2, block2
            block2: trap user1
            block3: return";
        assert_eq!(deciding(doomed), NONE);
    }

    /// Its address is uniform only if lanes leave the loop together, which it decides itself.
    #[test]
    fn in_a_loop_that_it_ends() {
        let found = deciding(
            "   jump block1(v0)
            block1(v2: i32):
                v3 = load.i32 v2+4
                v4 = iadd v2, v3
                brif v3, block1(v4), block2
            block2:
                v5 = load.i32 v4+8
                brif v5, block3, block4
            block3: jump block4
            block4: return",
        );
        assert_eq!(found, [4, 8]);
    }

    /// What is chosen by a branch that is uniform then.
    #[test]
    fn of_other_branches_that_choose_values() {
        let found = deciding(
            "   v2 = load.i32 v0+4
                v3 = load.i32 v0+8
                brif v2, block1, block2(v0)
            block1: jump block2(v3)
            block2(v4: i32):
                brif v4, block3, block4
            block3: jump block4
            block4: return",
        );
        assert_eq!(found, [4, 8]);
    }
}
