//! Values that no longer dominate what uses them when further edges lead to a block between: they become its parameters.

use cranelift_codegen::ir::{Block, BlockArg, Function, Value};
use hashbrown::{HashMap, HashSet};

use super::edges::Edge;

/// What a block hands on to the blocks that it dominates.
pub(super) struct HandedOn {
    header: Block,
    values: Vec<Value>,
    users: Vec<Block>,
}

impl HandedOn {
    /// The values that the blocks `before` define and others of `blocks` use. None if `header` does not dominate all of these.
    pub(super) fn find(
        func: &Function,
        before: &HashSet<Block>,
        header: Block,
        blocks: impl Iterator<Item = Block>,
        dominates: impl Fn(Block, Block) -> bool,
    ) -> Option<HandedOn> {
        let defined: HashSet<Value> = before
            .iter()
            .flat_map(|&block| {
                let insts = func.layout.block_insts(block);
                let results = insts.flat_map(|inst| func.dfg.inst_results(inst));
                func.dfg.block_params(block).iter().chain(results).copied()
            })
            .collect();
        let (mut values, mut users) = (Vec::new(), Vec::new());
        for block in blocks.filter(|block| !before.contains(block)) {
            let insts = func.layout.block_insts(block);
            let used = insts.flat_map(|inst| func.dfg.inst_values(inst));
            let used = used.map(|value| func.dfg.resolve_aliases(value));
            let used: Vec<Value> = used.filter(|value| defined.contains(value)).collect();
            if used.is_empty() {
                continue;
            }
            if !dominates(header, block) {
                return None;
            }
            users.push(block);
            values.extend(used);
        }
        values.sort_unstable();
        values.dedup();
        Some(HandedOn { header, values, users })
    }

    /// Makes what is handed on parameters of the header: the edges `entering` pass it, and the edges `back` what was passed to
    /// them. Assumes that no value has an alias.
    pub(super) fn hand_on(&self, func: &mut Function, back: &[Edge], entering: &[Edge]) {
        let param = |&value: &Value| {
            let ty = func.dfg.value_type(value);
            (value, func.dfg.append_block_param(self.header, ty))
        };
        let params: Vec<(Value, Value)> = self.values.iter().map(param).collect();
        let param_of: HashMap<Value, Value> = params.iter().copied().collect();
        for &block in &self.users {
            let insts: Vec<_> = func.layout.block_insts(block).collect();
            for inst in insts {
                func.dfg.map_inst_values(inst, |value| *param_of.get(&value).unwrap_or(&value));
            }
        }
        let add = |func: &mut Function, edge: &Edge, more: &mut dyn Iterator<Item = Value>| {
            let args: Vec<BlockArg> =
                edge.arguments(func).into_iter().chain(more.map(BlockArg::Value)).collect();
            edge.redirect(func, self.header, &args);
        };
        for edge in entering {
            add(func, edge, &mut self.values.iter().copied());
        }
        for edge in back {
            add(func, edge, &mut params.iter().map(|&(_, param)| param));
        }
    }
}
