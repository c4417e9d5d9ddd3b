//! Lowers `br_table` to a chain of comparisons.
//!
//! Each distinct target is tested once, with one condition for all its table entries. So a target that occurs
//! often in the table still has one edge from the chain, and the regions of the branches nest. A search tree
//! would enter it from several leaves, which split and join cannot manage if the index diverges.

use std::ops::RangeInclusive;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstBuilder, InstructionData, JumpTable, Opcode, Type, Value,
};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::control::terminators;

/// A target with its block arguments.
type Target = (Block, Vec<BlockArg>);

/// A target and the ranges of table indices that lead to it.
type Case = (Target, Vec<RangeInclusive<u32>>);

/// Replaces every `br_table`.
pub(super) fn lower_br_tables(func: &mut Function) {
    for inst in terminators(func, Opcode::BrTable) {
        let InstructionData::BranchTable { arg, table, .. } = func.dfg.insts[inst] else {
            continue;
        };
        lower(func, inst, arg, table);
    }
}

fn lower(func: &mut Function, inst: Inst, index: Value, table: JumpTable) {
    let (default, cases) = cases(func, table);
    let ty = func.dfg.value_type(index);
    let mut at = FuncCursor::new(func);
    at.use_srcloc(inst);
    for ((target, args), runs) in cases {
        at.goto_inst(inst);
        let condition = is_in(&mut at, index, ty, &runs);
        let here = at.func.layout.inst_block(inst).expect("it is in the layout");
        let next = at.func.dfg.make_block();
        at.func.layout.split_block(next, inst);
        at.goto_bottom(here);
        at.ins().brif(condition, target, &args, next, &[]);
    }
    func.replace(inst).jump(default.0, &default.1);
}

/// The targets of a table: the default one, and the others in the order of the table.
fn cases(func: &Function, table: JumpTable) -> (Target, Vec<Case>) {
    let pool = &func.dfg.value_lists;
    let table = &func.dfg.jump_tables[table];
    let default = table.default_block();
    let default: Target = (default.block(pool), default.args(pool).collect());
    let mut cases: Vec<Case> = Vec::new();
    let mut known: HashMap<Target, usize> = HashMap::new();
    for (index, call) in (0..).zip(table.as_slice()) {
        let target: Target = (call.block(pool), call.args(pool).collect());
        if target == default {
            continue;
        }
        let runs = match known.entry(target) {
            Entry::Occupied(case) => &mut cases[*case.get()].1,
            Entry::Vacant(case) => {
                cases.push((case.key().clone(), Vec::new()));
                case.insert(cases.len() - 1);
                &mut cases.last_mut().expect("it was pushed").1
            }
        };
        match runs.last_mut() {
            Some(run) if *run.end() + 1 == index => *run = *run.start()..=index,
            _ => runs.push(index..=index),
        }
    }
    (default, cases)
}

/// Whether `index` lies in one of the ranges, of which there is at least one.
fn is_in(at: &mut FuncCursor<'_>, index: Value, ty: Type, runs: &[RangeInclusive<u32>]) -> Value {
    let mut any: Option<Value> = None;
    for run in runs {
        let (start, length) = (i64::from(*run.start()), i64::from(run.end() - run.start()));
        let start_value = at.ins().iconst(ty, start);
        let test = if length == 0 {
            at.ins().icmp(IntCC::Equal, index, start_value)
        } else {
            let distance = if start == 0 { index } else { at.ins().isub(index, start_value) };
            let length = at.ins().iconst(ty, length);
            at.ins().icmp(IntCC::UnsignedLessThanOrEqual, distance, length)
        };
        // Combined at once, so that only one of them is live at a time.
        any = Some(any.map_or(test, |any| at.ins().bor(any, test)));
    }
    any.expect("a case has at least one index")
}
