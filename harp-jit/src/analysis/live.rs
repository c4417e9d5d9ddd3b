//! Liveness of single values, computed on demand by walking from the uses back to the definition (Boissinot
//! et al., "Computing liveness sets for SSA-form programs", 2011, section 4.2).

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Value};
use hashbrown::HashMap;

use super::Flow;
use super::uses::Uses;

/// The live ranges of a function's values, in reachable blocks.
pub(crate) struct LiveRanges<'a> {
    func: &'a Function,
    flow: &'a Flow,
    uses: Option<Uses>,
    ranges: HashMap<Value, LiveRange>,
}

/// The live range of one value.
#[derive(Default)]
pub(crate) struct LiveRange {
    live_in: EntitySet<Block>,
    read: EntitySet<Block>,
}

impl LiveRange {
    /// Whether the value is live at the begin of `block`.
    pub(crate) fn is_live_in(&self, block: Block) -> bool {
        self.live_in.contains(block)
    }

    /// Whether an instruction of `block` reads the value.
    pub(crate) fn is_read_in(&self, block: Block) -> bool {
        self.read.contains(block)
    }
}

impl<'a> LiveRanges<'a> {
    pub(crate) fn new(func: &'a Function, flow: &'a Flow) -> LiveRanges<'a> {
        LiveRanges { func, flow, uses: None, ranges: HashMap::new() }
    }

    /// The live range of `value`, which must not be an alias and is defined in the block `home`.
    pub(crate) fn of(&mut self, value: Value, home: Block) -> &LiveRange {
        let LiveRanges { func, flow, uses, ranges } = self;
        ranges.entry(value).or_insert_with(|| {
            let uses = uses.get_or_insert_with(|| Uses::new(func, flow));
            let blocks = uses.of(value).iter().filter_map(|&inst| func.layout.inst_block(inst));
            let mut range = LiveRange::default();
            range.read.extend(blocks);
            let mut todo: Vec<Block> = range.read.iter().collect();
            while let Some(block) = todo.pop() {
                if block != home && range.live_in.insert(block) {
                    todo.extend(flow.predecessors(block));
                }
            }
            range
        })
    }
}
