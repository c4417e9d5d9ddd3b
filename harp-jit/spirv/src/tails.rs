//! Blocks from which work-items leave a structured loop, and that still belong to it.
//!
//! All blocks that a loop's header dominates and its merge block does not belong to the round in which they are run, also
//! where no way leads back from them: `for (;;) { if (key == first(key)) { sum = add(value); break; } }` adds the values of
//! those that have this key. In a control-flow graph such a block is outside of the loop, and those that leave it in
//! different rounds wait there for each other. Where they look at what others in their subgroup have, this makes a difference.
//! So these blocks get a way back to the header, which nobody takes. (Where they wait for what others write, as for a lock, the
//! code generator sees to it.)
//!
//! Loops with barriers are left as they are: all work-items run their rounds together. So are those of OpenCL's modules, which
//! need not be structured: what they call a merge block is any of a loop's exits.

use hashbrown::{HashMap, HashSet};
use rspirv::spirv::Op;
use smallvec::SmallVec;

use crate::module::{self, Addressing, Function, SpirvModule};
use crate::reader::{Id, short_name};

/// The most calls inside of each other whose code is put into the callers. Modules with more are refused.
pub(crate) const MAX_NESTED: usize = 128;

/// Headers of loops, by the labels of blocks that leave them and need a way back.
pub(crate) type Tails = HashMap<Id, SmallVec<[Id; 1]>>;

/// What happens in a block, the functions that it calls included.
#[derive(Clone, Copy, Debug, Default)]
struct Does {
    /// Looks at what others in the subgroup have.
    looks: bool,
    /// Waits for the work-group.
    waits: bool,
}

impl Does {
    fn and(self, other: Does) -> Does {
        Does { looks: self.looks || other.looks, waits: self.waits || other.waits }
    }
}

/// The blocks of a function that need ways back.
pub(crate) fn tails(module: &SpirvModule, function: &Function) -> Tails {
    let mut tails = Tails::new();
    let is_structured = module.addressing == Addressing::Logical;
    if !is_structured || !function.blocks.iter().any(|block| merge_of(module, block).is_some()) {
        return tails;
    }
    let mut calls = Calls { module, known: HashMap::new(), depth: 0 };
    let does: Vec<Does> = function.blocks.iter().map(|block| calls.block_does(block)).collect();
    if !does.iter().any(|block| block.looks) {
        return tails;
    }
    let graph = Graph::new(module, function);
    for (header, block) in function.blocks.iter().enumerate() {
        let Some(merge) = merge_of(module, block).and_then(|merge| graph.numbers.get(&merge))
        else {
            continue;
        };
        for tail in graph.tails(header, *merge, &does) {
            tails.entry(function.blocks[tail].label).or_default().push(block.label);
        }
    }
    tails
}

/// The merge block of a loop's header.
fn merge_of(module: &SpirvModule, block: &module::Block) -> Option<Id> {
    let insts = (block.start..block.end).map(|at| module.code.get(at));
    let mut merges = insts.filter(|inst| inst.op == Op::LoopMerge);
    merges.next()?.operands.first().copied()
}

/// What functions do.
struct Calls<'m> {
    module: &'m SpirvModule,
    known: HashMap<Id, Does>,
    /// How many calls are looked into at the moment.
    depth: usize,
}

impl Calls<'_> {
    fn block_does(&mut self, block: &module::Block) -> Does {
        let insts = (block.start..block.end).map(|at| self.module.code.get(at));
        insts.fold(Does::default(), |all, inst| match inst.op {
            Op::FunctionCall => {
                all.and(inst.operands.first().map(|&id| self.does(id)).unwrap_or_default())
            }
            op => all.and(instruction_does(op)),
        })
    }

    fn does(&mut self, function: Id) -> Does {
        if let Some(&known) = self.known.get(&function) {
            return known;
        }
        // What a recursive call does is found in the first one.
        self.known.insert(function, Does::default());
        let module = self.module;
        let Some(function) = module.functions.get(&function).filter(|_| self.depth < MAX_NESTED)
        else {
            return Does::default();
        };
        self.depth += 1;
        let blocks = function.blocks.iter();
        let all = blocks.fold(Does::default(), |all, block| all.and(self.block_does(block)));
        self.depth -= 1;
        self.known.insert(function.id, all);
        all
    }
}

fn instruction_does(op: Op) -> Does {
    let name = short_name(op);
    let is_of_subgroup = name.starts_with("GroupNonUniform") || name.starts_with("Subgroup");
    Does {
        looks: is_of_subgroup,
        // Group operations may be about work-groups.
        waits: op == Op::ControlBarrier || name.starts_with("Group") && !is_of_subgroup,
    }
}

/// The blocks of a function by their numbers.
struct Graph {
    numbers: HashMap<Id, usize>,
    succs: Vec<SmallVec<[usize; 2]>>,
    preds: Vec<SmallVec<[usize; 2]>>,
    /// Whether each block ends where nobody comes.
    is_unreachable: Vec<bool>,
}

impl Graph {
    fn new(module: &SpirvModule, function: &Function) -> Graph {
        let (numbers, succs) = module.numbered(function);
        let mut preds = vec![SmallVec::new(); succs.len()];
        for (from, succs) in succs.iter().enumerate() {
            succs.iter().for_each(|&to| preds[to].push(from));
        }
        let last = |block: &module::Block| module.code.get(block.end - 1).op;
        let is_unreachable =
            function.blocks.iter().map(|block| last(block) == Op::Unreachable).collect();
        Graph { numbers, succs, preds, is_unreachable }
    }

    /// The blocks that leave the loop behind something that is to be done in a round.
    fn tails(&self, header: usize, merge: usize, does: &[Does]) -> Vec<usize> {
        let mut inside = reached(header, &self.succs, |block| block != merge);
        if !inside.iter().any(|&block| does[block].looks) {
            return Vec::new();
        }
        let before = reached(0, &self.succs, |block| block != header);
        inside.retain(|block| *block == header || !before.contains(block));
        let latches = self.preds[header].iter().filter(|latch| inside.contains(*latch));
        let mut rounds: HashSet<usize> = HashSet::from([header]);
        for &latch in latches {
            rounds.extend(reached(latch, &self.preds, |block| {
                block != header && inside.contains(&block)
            }));
        }
        if inside.iter().any(|&block| does[block].waits) {
            return Vec::new();
        }
        let is_tail = |block: &usize| inside.contains(block) && !rounds.contains(block);
        let mut behind = HashSet::new();
        for &block in inside.iter().filter(|block| is_tail(block) && does[**block].looks) {
            behind.extend(reached(block, &self.succs, |block| is_tail(&block)));
        }
        let leaves = |block: &usize| {
            let succs = &self.succs[*block];
            succs.is_empty() && !self.is_unreachable[*block]
                || succs.iter().any(|to| !inside.contains(to))
        };
        behind.into_iter().filter(leaves).collect()
    }
}

/// The blocks that are reached from one, itself included, through those that are `open`.
fn reached(
    from: usize,
    edges: &[SmallVec<[usize; 2]>],
    open: impl Fn(usize) -> bool,
) -> HashSet<usize> {
    let mut found = HashSet::from([from]);
    let mut todo = vec![from];
    while let Some(block) = todo.pop() {
        for &next in &edges[block] {
            if open(next) && found.insert(next) {
                todo.push(next);
            }
        }
    }
    found
}
