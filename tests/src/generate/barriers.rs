//! Barriers in kernels that were made without.
//!
//! Work-items do not communicate, so barriers change nothing, where all come to them: the oracle finds out which do. They
//! are put anywhere first, also behind branches on which lanes disagree at other times, and behind ways out that nobody
//! takes.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, ExtFuncData, ExternalName, Function, Inst, InstBuilder};
use cranelift_codegen::isa::CallConv;

use super::choices::Choices;
use super::clif::signature;
use super::{Generated, Mark};

/// The kernel, or the same with barriers, if it does not depend on the number of lanes. They are made of the bytes from the
/// end on, so that what the kernel is made of stays as it is.
pub(super) fn with_barriers(mut kernel: Generated, bytes: &[u8]) -> Generated {
    let bytes: Vec<u8> = bytes.iter().rev().copied().collect();
    let choices = &mut Choices::new(&bytes);
    if kernel.asks_for_lane || choices.below(3) != 1 {
        return kernel;
    }
    let most = 1 + choices.below(4);
    let func = &mut kernel.case.functions[0];
    let name = ExternalName::testcase("harp_barrier");
    let signature = func.import_signature(signature(CallConv::Fast, [], []));
    let data = ExtFuncData { name, signature, colocated: true, patchable: false };
    let barrier = func.import_function(data);
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        if choices.once_in(most) {
            let at = any_place(func, block, choices);
            FuncCursor::new(func).at_inst(at).ins().call(barrier, &[]);
        }
    }
    kernel.case = kernel.case.with_common_barriers();
    let left = kernel.case.barriers().into_iter();
    kernel.marks.extend(left.map(|(_, block)| Mark { function: 0, block, construct: "barrier" }));
    kernel
}

/// An instruction of a block.
fn any_place(func: &Function, block: Block, choices: &mut Choices<'_>) -> Inst {
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    choices.one(&insts)
}
