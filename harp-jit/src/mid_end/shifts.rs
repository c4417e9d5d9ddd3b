//! Compares what was shifted instead of what it was shifted from.
//!
//! `for (s = n / 2; s > 0; s >>= 1)` ends, as compilers turn it, where `s` is below 2 before the shift. So `s` and the
//! shifted number need a register each, and a copy in every round. Where nothing but the shift and the comparison reads `s`,
//! the comparison may as well read what was shifted, if the bits that are gone do not matter.
//!
//! This comes after the mid-end, for which both are the same.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use hashbrown::HashMap;

use crate::constant;

/// Rewrites such comparisons, apart from those that read aliases.
pub(crate) fn compare_shifted(func: &mut Function) {
    let shifted: HashMap<Value, Shifted> =
        insts(func).filter_map(|inst| shifted(func, inst)).collect();
    let all: Vec<Comparison> =
        insts(func).filter_map(|inst| comparison(func, inst, &shifted)).collect();
    if all.is_empty() {
        return;
    }
    let mut reads: HashMap<Value, usize> = HashMap::new();
    for inst in insts(func) {
        for value in func.dfg.inst_values(inst) {
            *reads.entry(value).or_default() += 1;
        }
    }
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    for one in all {
        let is_before = dominators.dominates(one.shifted.inst, one.inst, &func.layout);
        if is_before && reads[&one.original] == 2 {
            one.rewrite(func);
        }
    }
}

fn insts(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

/// A value shifted to the right, with zeros behind.
#[derive(Clone, Copy)]
struct Shifted {
    inst: Inst,
    bits: u64,
}

/// What is shifted by an instruction, by a known number of bits.
fn shifted(func: &Function, inst: Inst) -> Option<(Value, Shifted)> {
    let InstructionData::Binary { opcode: Opcode::Ushr, args: [value, by] } = func.dfg.insts[inst]
    else {
        return None;
    };
    let bits =
        constant::unsigned(&func.dfg, by)? & u64::from(func.dfg.value_type(value).bits() - 1);
    Some((value, Shifted { inst, bits }))
}

/// A comparison of what is also shifted with a number of which the shift loses nothing.
struct Comparison {
    inst: Inst,
    original: Value,
    shifted: Shifted,
    cond: IntCC,
    /// The number, shifted.
    bound: u64,
}

fn comparison(
    func: &Function,
    inst: Inst,
    shifted: &HashMap<Value, Shifted>,
) -> Option<Comparison> {
    let InstructionData::IntCompare { cond, args: [original, bound], .. } = func.dfg.insts[inst]
    else {
        return None;
    };
    let shifted = *shifted.get(&original)?;
    let bound = constant::unsigned(&func.dfg, bound)?;
    // Below a number, or not.
    let (cond, bound) = match cond {
        IntCC::UnsignedLessThan | IntCC::UnsignedGreaterThanOrEqual => (cond, bound),
        IntCC::UnsignedLessThanOrEqual => (IntCC::UnsignedLessThan, bound.checked_add(1)?),
        IntCC::UnsignedGreaterThan => (IntCC::UnsignedGreaterThanOrEqual, bound.checked_add(1)?),
        _ => return None,
    };
    let loses_nothing = shifted.bits > 0 && bound.trailing_zeros() >= shifted.bits as u32;
    let bound = bound >> shifted.bits;
    (loses_nothing && bound > 0).then_some(Comparison { inst, original, shifted, cond, bound })
}

impl Comparison {
    fn rewrite(self, func: &mut Function) {
        let Comparison { inst, shifted, cond, bound, .. } = self;
        let value = func.dfg.first_result(shifted.inst);
        let ty = func.dfg.value_type(value);
        let place = func.srcloc(inst);
        let mut at = FuncCursor::new(func).at_inst(inst).with_srcloc(place);
        let bound = at.ins().iconst(ty, bound.cast_signed());
        at.func.replace(inst).icmp(cond, value, bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comparison behind a shift by 3 of what it compares.
    fn compared(comparison: &str, more: &str) -> String {
        let text = format!(
            "function %f(i32) -> i32, i8 {{
            block0(v0: i32):
                v1 = iconst.i32 3
                v2 = ushr v0, v1
                v3 = iconst.i32 64
                v4 = iconst.i32 63
                v5 = {comparison}
                {more}
                return v2, v5
            }}"
        );
        let mut func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        compare_shifted(&mut func);
        let inst = func.dfg.value_def(Value::from_u32(5)).inst().unwrap();
        let InstructionData::IntCompare { cond, args: [value, bound], .. } = func.dfg.insts[inst]
        else {
            panic!("{}", func.display())
        };
        format!("{cond} {value}, {}", constant::unsigned(&func.dfg, bound).unwrap())
    }

    #[test]
    fn what_is_shifted_is_compared() {
        assert_eq!(compared("icmp ult v0, v3", ""), "ult v2, 8");
        assert_eq!(compared("icmp uge v0, v3", ""), "uge v2, 8");
        assert_eq!(compared("icmp ule v0, v4", ""), "ult v2, 8");
        assert_eq!(compared("icmp ugt v0, v4", ""), "uge v2, 8");
    }

    #[test]
    fn bits_that_are_gone_may_matter_and_others_may_read_the_value() {
        assert_eq!(compared("icmp ult v0, v4", ""), "ult v0, 63");
        assert_eq!(compared("icmp ugt v0, v3", ""), "ugt v0, 64");
        assert_eq!(compared("icmp ult v0, v1", ""), "ult v0, 3");
        assert_eq!(compared("icmp slt v0, v3", ""), "slt v0, 64");
        assert_eq!(compared("icmp eq v0, v3", ""), "eq v0, 64");
        assert_eq!(compared("icmp ult v0, v3", "v9 = iadd v0, v0"), "ult v0, 64");
    }
}
