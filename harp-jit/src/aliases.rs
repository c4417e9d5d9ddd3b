//! Aliases of values.

use cranelift_codegen::ir::DataFlowGraph;

/// Replaces all aliases by what they stand for. Where there are none, the instructions are not looked at.
pub(crate) fn resolve_all(dfg: &mut DataFlowGraph) {
    if dfg.values().any(|value| dfg.value_is_alias(value)) {
        dfg.resolve_all_aliases();
    }
}
