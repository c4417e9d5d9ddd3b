//! Chooses where routines compute on `f32` on machines that do so through `f64`.
//!
//! In place, an operation takes some 60 instructions, but the conversion of an operand serves all operations on it, and
//! there is no call. So loops with few operations, which may be hot, have them in place, and so has what is not worth a
//! frame. Everything else calls: the code is much shorter, and so is the time that it takes to compile it.

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::types::F32;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};

use crate::analysis::Graph;

/// The most operations in the loops of a function that are expanded in place.
const MAX_IN_LOOPS: usize = 16;

/// The most operations outside of loops that are.
const MAX_OUTSIDE: usize = 2;

/// The blocks in which routines compute, of these reachable ones.
pub(super) fn called(func: &Function, blocks: &[Block]) -> EntitySet<Block> {
    let Graph { loops, .. } = Graph::compute(func);
    let (inside, outside): (Vec<Block>, Vec<Block>) =
        blocks.iter().partition(|&&block| loops.innermost_loop(block).is_some());
    let count =
        |blocks: &[Block]| -> usize { blocks.iter().map(|&block| operations(func, block)).sum() };
    let mut called = EntitySet::new();
    if count(&inside) > MAX_IN_LOOPS {
        called.extend(blocks.iter().copied());
    } else if count(&outside) > MAX_OUTSIDE {
        called.extend(outside);
    }
    called
}

/// The number of operations in a block that routines can do.
fn operations(func: &Function, block: Block) -> usize {
    let is_operation = |&inst: &Inst| {
        let opcode = func.dfg.insts[inst].opcode();
        matches!(opcode, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv)
            && func.dfg.value_type(func.dfg.first_result(inst)) == F32
    };
    func.layout.block_insts(block).filter(is_operation).count()
}
