//! Functions of any number of blocks whose control flow has one shape: what compile times grow with.
//!
//! Generated code has such graphs: an interpreter's dispatch, checks that all lead to one exit, loops in a row.
//! Every block reads a word of memory of its own, adds it to a sum that all edges pass on, and goes on by it, so
//! lanes disagree at every branch.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, Function, InstBuilder, JumpTableData, MemFlagsData,
    Signature, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use harp_isa::WordSize;

use crate::functions::word_type;

/// A family of control-flow graphs, of which there is one of each size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A `br_table` with a target of its own for each index.
    Table,
    /// A `br_table` with two targets in turn.
    TwoTargets,
    /// Branches one after the other that all may lead to one exit.
    OneExit,
    /// Loops of one block one after the other.
    Loops,
    /// A conditional statement in the other, each with something behind it.
    Nest,
    /// A chain that each of another chain's blocks may lead into.
    SideEntrances,
    /// Every block leads to every other one.
    Complete,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 7] = [
        Shape::Table,
        Shape::TwoTargets,
        Shape::OneExit,
        Shape::Loops,
        Shape::Nest,
        Shape::SideEntrances,
        Shape::Complete,
    ];

    /// The name, as in `one-exit`.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Table => "table",
            Shape::TwoTargets => "two-targets",
            Shape::OneExit => "one-exit",
            Shape::Loops => "loops",
            Shape::Nest => "nest",
            Shape::SideEntrances => "side-entrances",
            Shape::Complete => "complete",
        }
    }

    /// Where each block leads. The first is the entry; whoever leads nowhere returns.
    fn successors(self, size: usize) -> Vec<Vec<usize>> {
        match self {
            Shape::Table => {
                let targets = (1..=size + 1).collect();
                let exit = size + 1;
                std::iter::once(targets)
                    .chain((0..size).map(|_| vec![exit]))
                    .chain([Vec::new()])
                    .collect()
            }
            Shape::TwoTargets => {
                let targets = (0..size).map(|index| 1 + index % 2).chain([3]).collect();
                vec![targets, vec![3], vec![3], Vec::new()]
            }
            Shape::OneExit => (0..size).map(|at| vec![at + 1, size]).chain([Vec::new()]).collect(),
            Shape::Loops => (0..size)
                .map(|at| if at == 0 { vec![1] } else { vec![at, at + 1] })
                .chain([Vec::new()])
                .collect(),
            Shape::Nest => {
                // Heads down to the innermost, and ends back out.
                let heads = (0..size).map(|at| vec![at + 1, 2 * size - at]);
                let ends = (size..2 * size).map(|at| vec![at + 1]);
                heads.chain(ends).chain([Vec::new()]).collect()
            }
            Shape::SideEntrances => {
                let exit = 2 * size;
                (0..size)
                    .flat_map(|at| {
                        let beyond = |block: usize| block.min(exit);
                        [vec![beyond(2 * at + 2), 2 * at + 1], vec![beyond(2 * at + 3)]]
                    })
                    .chain([Vec::new()])
                    .collect()
            }
            Shape::Complete => (0..size)
                .map(|at| (1..size).filter(|&to| to != at).chain([size]).collect())
                .chain([Vec::new()])
                .collect(),
        }
    }

    /// `%graph(address) -> word`: the function of this shape and size.
    pub fn function(self, size: usize, word: WordSize) -> Function {
        function(&self.successors(size), word_type(word))
    }
}

fn function(successors: &[Vec<usize>], word: Type) -> Function {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params = vec![AbiParam::new(word)];
    signature.returns = vec![AbiParam::new(word)];
    let mut func = Function::with_name_signature(UserFuncName::testcase("graph"), signature);
    let entry = func.dfg.make_block();
    let address = func.dfg.append_block_param(entry, word);
    let blocks: Vec<Block> = successors.iter().map(|_| func.dfg.make_block()).collect();
    let sums: Vec<Value> =
        blocks.iter().map(|&block| func.dfg.append_block_param(block, word)).collect();
    let mut at = FuncCursor::new(&mut func);
    at.insert_block(entry);
    let zero = at.ins().iconst(word, 0);
    at.ins().jump(blocks[0], &[zero.into()]);
    for (index, successors) in successors.iter().enumerate() {
        at.insert_block(blocks[index]);
        let offset = i32::try_from(index * 8).expect("functions are not as large");
        let number = at.ins().load(word, MemFlagsData::trusted(), address, offset);
        let sum = at.ins().iadd(sums[index], number);
        let args: [BlockArg; 1] = [sum.into()];
        match successors[..] {
            [] => {
                at.ins().return_(&[sum]);
            }
            [to] => {
                at.ins().jump(blocks[to], &args);
            }
            [on_true, on_false] => {
                at.ins().brif(number, blocks[on_true], &args, blocks[on_false], &args);
            }
            [ref targets @ .., default] => {
                let pool = &mut at.func.dfg.value_lists;
                let call = |&to: &usize| BlockCall::new(blocks[to], args, pool);
                let mut calls: Vec<BlockCall> = [default].iter().chain(targets).map(call).collect();
                let default = calls.remove(0);
                let table = at.func.create_jump_table(JumpTableData::new(default, &calls));
                let index =
                    if word == types::I32 { number } else { at.ins().ireduce(types::I32, number) };
                at.ins().br_table(index, table);
            }
        }
    }
    func
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_have_as_many_blocks_as_their_shape_says() {
        let blocks = |shape: Shape| shape.function(10, WordSize::Four).layout.blocks().count();
        let counted = Shape::ALL.map(|shape| (shape.name(), blocks(shape)));
        assert_eq!(
            counted,
            [
                ("table", 13),
                ("two-targets", 5),
                ("one-exit", 12),
                ("loops", 12),
                ("nest", 22),
                ("side-entrances", 22),
                ("complete", 12),
            ]
        );
    }
}
