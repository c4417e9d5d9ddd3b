//! Places where work-items meet, in kernels that were made without.
//!
//! Work-items do not communicate, so a barrier to which all come changes nothing; the oracle finds out which are such. They
//! are put anywhere first, also behind branches on which lanes disagree at other times, and behind ways out that nobody
//! takes. Then some become counts of the lanes that are there, which must be all with which the kernel began: few, as
//! each adds branches on which lanes agree. Where several ways lead back to the head of a loop with a barrier, it may be two
//! loops, and nothing tells which: who counts depends on that, so nobody does.

use std::collections::HashSet;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, FuncRef, Function, Inst, InstBuilder, TrapCode, Value};
use cranelift_codegen::isa::CallConv;

use super::choices::Choices;
use super::clif::{import, signature};
use super::{Generated, Mark};

/// What there is at such places.
pub(super) const MEETINGS: [&str; 2] = ["barrier", "count of lanes"];

/// The kernel, or the same with places where all meet, if it does not depend on the number of lanes. They are made of the
/// bytes from the end on, so that what the kernel is made of stays as it is.
pub(super) fn with_meetings(mut kernel: Generated, bytes: &[u8]) -> Generated {
    let bytes: Vec<u8> = bytes.iter().rev().copied().collect();
    let choices = &mut Choices::new(&bytes);
    if kernel.asks_for_lane || choices.below(3) != 1 {
        return kernel;
    }
    let most = 1 + choices.below(4);
    let func = &mut kernel.case.functions[0];
    let barrier = import(func, "harp_barrier", signature(CallConv::Fast, [], []), true);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        if choices.once_in(most) {
            let at = any_place(func, block, choices);
            FuncCursor::new(func).at_inst(at).ins().call(barrier, &[]);
        }
    }
    kernel.case = kernel.case.with_common_meetings();
    let places = kernel.case.meetings();
    let func = &mut kernel.case.functions[0];
    let ambiguous = in_two_loops(func, &places);
    let mut counting = None;
    for (inst, block) in places {
        let is_count = choices.once_in(6) && !ambiguous.contains(&block);
        if is_count {
            let counting = counting.get_or_insert_with(|| Counting::new(func));
            counting.instead_of(func, inst);
        }
        let construct = MEETINGS[usize::from(is_count)];
        kernel.marks.push(Mark { function: 0, block, construct });
    }
    kernel
}

/// An instruction of a block.
fn any_place(func: &Function, block: Block, choices: &mut Choices<'_>) -> Inst {
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    choices.one(&insts)
}

/// The blocks of loops with a barrier to whose head several ways lead back.
fn in_two_loops(func: &Function, barriers: &[(Inst, Block)]) -> HashSet<Block> {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let before = |block| cfg.pred_iter(block).map(|pred| pred.block);
    let mut found = HashSet::new();
    for &head in dominators.cfg_postorder() {
        let is_back = |&block: &Block| {
            dominators.is_reachable(block) && dominators.block_dominates(head, block)
        };
        let mut todo: Vec<Block> = before(head).filter(is_back).collect();
        if todo.len() < 2 {
            continue;
        }
        let mut inside = HashSet::from([head]);
        while let Some(block) = todo.pop() {
            if inside.insert(block) {
                todo.extend(before(block).filter(is_back));
            }
        }
        if barriers.iter().any(|(_, block)| inside.contains(block)) {
            found.extend(inside);
        }
    }
    found
}

/// How lanes are counted.
struct Counting {
    sum: FuncRef,
    one: Value,
    /// The lanes of the warp with which the kernel began.
    all: Value,
}

impl Counting {
    /// Counts the lanes at the entry.
    fn new(func: &mut Function) -> Counting {
        let word = func.signature.params[0].value_type;
        let sum = import(func, "harp_reduce_iadd", signature(CallConv::Fast, [word], [word]), true);
        let entry = func.layout.entry_block().expect("a kernel has one");
        let mut cursor = FuncCursor::new(func).at_first_insertion_point(entry);
        let one = cursor.ins().iconst(word, 1);
        let call = cursor.ins().call(sum, &[one]);
        Counting { sum, one, all: func.dfg.first_result(call) }
    }

    /// Traps, in place of an instruction without results, if not all lanes are there.
    fn instead_of(&self, func: &mut Function, inst: Inst) {
        let mut cursor = FuncCursor::new(func).at_inst(inst);
        let call = cursor.ins().call(self.sum, &[self.one]);
        let count = cursor.func.dfg.first_result(call);
        let missing = cursor.ins().bxor(count, self.all);
        cursor.ins().trapnz(missing, TrapCode::unwrap_user(7));
        cursor.remove_inst();
    }
}
