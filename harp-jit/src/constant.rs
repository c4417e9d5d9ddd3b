//! Integers that CLIF's constants stand for.

use cranelift_codegen::ir::{DataFlowGraph, InstructionData, Opcode, Value};

/// The integer that `value` always is, sign-extended from its type.
pub(crate) fn signed(dfg: &DataFlowGraph, value: Value) -> Option<i64> {
    let unused = unused_bits(dfg, value);
    integer(dfg, value).map(|bits| bits << unused >> unused)
}

/// The integer that `value` always is, zero-extended from its type.
pub(crate) fn unsigned(dfg: &DataFlowGraph, value: Value) -> Option<u64> {
    let unused = unused_bits(dfg, value);
    integer(dfg, value).map(|bits| bits.cast_unsigned() << unused >> unused)
}

/// What the instruction says; above the type's bits may be anything.
fn integer(dfg: &DataFlowGraph, value: Value) -> Option<i64> {
    let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
    match dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits()),
        _ => None,
    }
}

fn unused_bits(dfg: &DataFlowGraph, value: Value) -> u32 {
    64 - dfg.value_type(value).bits().min(64)
}
