//! Work-items that wait for others, in kernels that were made without.
//!
//! Each one waits somewhere until the one before it has returned, which is the order in which the oracle runs them. In a warp,
//! a lane that waits may hold up no other, wherever those are, and whatever loops are around.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, MemFlagsData};

use super::choices::Choices;
use super::meetings::MEETINGS;
use super::words::Words;
use super::{Generated, Mark};
use crate::oracle::Start;

/// The kernel, or the same with a place where work-items wait for their turn: few have one, as it adds branches on which
/// lanes agree.
///
/// Only in grids of one dimension, whose work-items begin in order. None waits where all meet, or with a lock that others
/// need, which would come to nothing. In calls they may meet, and who has trapped never returns.
pub(super) fn with_turns(mut kernel: Generated, bytes: &[u8]) -> Generated {
    let bytes: Vec<u8> = bytes.iter().rev().skip(bytes.len() / 3).copied().collect();
    let choices = &mut Choices::new(&bytes);
    let Start::Launch { extents: [items, 1, 1], .. } = kernel.case.start else { return kernel };
    let meets = kernel.marks.iter().any(|mark| MEETINGS.contains(&mark.construct));
    if meets || kernel.case.waits || !is_alone(&kernel.case.functions) {
        return kernel;
    }
    if choices.below(RARELY) != 1 {
        return kernel;
    }
    let Some(returned) = Words::given(&mut kernel.case, items as usize) else { return kernel };
    let func = &mut kernel.case.functions[0];
    tell(func, returned);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let block = choices.one(&blocks);
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    wait(func, returned, block, choices.one(&insts));
    kernel.case.waits = true;
    kernel.marks.push(Mark { function: 0, block, construct: "turn" });
    kernel
}

/// One of so many kernels has such a place.
const RARELY: usize = 20;

/// Whether there is one function only, which traps by nothing but accesses to memory.
fn is_alone(functions: &[Function]) -> bool {
    let [func] = functions else { return false };
    let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    !insts.any(|inst| {
        let opcode = func.dfg.insts[inst].opcode();
        opcode.can_trap() && !opcode.can_load() && !opcode.can_store()
    })
}

/// Each work-item tells that it returns.
fn tell(func: &mut Function, returned: Words) {
    let lasts = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
    let returns: Vec<Inst> =
        lasts.filter(|&inst| func.dfg.insts[inst].opcode().is_return()).collect();
    for inst in returns {
        let mut at = FuncCursor::new(func).at_inst(inst);
        let item = returned.item(&mut at);
        let address = returned.element(&mut at, item);
        let one = at.ins().iconst(returned.ty, 1);
        at.ins().atomic_store(MemFlagsData::trusted(), one, address);
    }
}

/// Before an instruction of a block, each work-item but the first waits until the one before it has told.
fn wait(func: &mut Function, returned: Words, block: Block, before: Inst) {
    let [wait, spin, rest] = std::array::from_fn(|_| func.dfg.make_block());
    func.layout.split_block(rest, before);
    for block in [wait, spin] {
        func.layout.insert_block(block, rest);
    }
    let mut at = FuncCursor::new(func).at_bottom(block);
    let item = returned.item(&mut at);
    at.ins().brif(item, wait, &[], rest, &[]);
    at = at.at_bottom(wait);
    let previous = at.ins().iadd_imm_s(item, -1);
    let address = returned.element(&mut at, previous);
    at.ins().jump(spin, &[]);
    at = at.at_bottom(spin);
    let has_returned = at.ins().atomic_load(returned.ty, MemFlagsData::trusted(), address);
    at.ins().brif(has_returned, rest, &[], spin, &[]);
}
