//! Functions of any number of blocks whose control flow has one shape: what compile times grow with.
//!
//! Generated code has such graphs: an interpreter's dispatch, checks that all lead to one exit, loops in a row.
//! Every block reads a word of memory of its own, adds it to a sum that all edges pass on, and goes on by it, so
//! lanes disagree at every branch.

use cranelift_codegen::ir::{
    Block, BlockArg, Function, InstBuilder, MemFlagsData, Value, types::I32,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilderContext;
use harp_isa::WordSize;

use crate::functions::word_type;
use crate::generate::clif;

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
        ["table", "two-targets", "one-exit", "loops", "nest", "side-entrances", "complete"]
            [self as usize]
    }

    /// Where each block leads. The first is the entry; whoever leads nowhere returns.
    fn successors(self, size: usize) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = match self {
            Shape::Table => {
                let targets = (1..=size + 1).collect();
                [targets].into_iter().chain((0..size).map(|_| vec![size + 1])).collect()
            }
            Shape::TwoTargets => {
                let targets = (0..size).map(|index| 1 + index % 2).chain([3]).collect();
                vec![targets, vec![3], vec![3]]
            }
            Shape::OneExit => (0..size).map(|at| vec![at + 1, size]).collect(),
            Shape::Loops => {
                (0..size).map(|at| if at == 0 { vec![1] } else { vec![at, at + 1] }).collect()
            }
            Shape::Nest => {
                // Heads down to the innermost, and ends back out.
                let heads = (0..size).map(|at| vec![at + 1, 2 * size - at]);
                heads.chain((size..2 * size).map(|at| vec![at + 1])).collect()
            }
            Shape::SideEntrances => {
                let beyond = |block: usize| block.min(2 * size);
                let blocks = |at: usize| [vec![beyond(at + 2), at + 1], vec![beyond(at + 3)]];
                (0..size).flat_map(|at| blocks(2 * at)).collect()
            }
            Shape::Complete => {
                let others = |at| (1..size).filter(move |&to| to != at);
                (0..size).map(|at| others(at).chain([size]).collect()).collect()
            }
        };
        all.push(Vec::new());
        all
    }

    /// `%graph(address) -> word`: the function of this shape and size.
    pub fn function(self, size: usize, word: WordSize) -> Function {
        function(&self.successors(size), word)
    }
}

fn function(successors: &[Vec<usize>], word: WordSize) -> Function {
    let ty = word_type(word);
    let signature = clif::signature(CallConv::Fast, [ty], [ty]);
    clif::function("graph", &signature, word, &mut FunctionBuilderContext::new(), |b, params| {
        let blocks: Vec<Block> = successors.iter().map(|_| b.create_block()).collect();
        let sums: Vec<Value> = blocks.iter().map(|&it| b.append_block_param(it, ty)).collect();
        let zero = b.ins().iconst(ty, 0);
        b.ins().jump(blocks[0], &[zero.into()]);
        for (index, successors) in successors.iter().enumerate() {
            b.switch_to_block(blocks[index]);
            let offset = i32::try_from(index * 8).expect("functions are not as large");
            let number = b.ins().load(ty, MemFlagsData::trusted(), params[0], offset);
            let sum = b.ins().iadd(sums[index], number);
            let args: [BlockArg; 1] = [sum.into()];
            match successors[..] {
                [] => {
                    b.ins().return_(&[sum]);
                }
                [to] => {
                    b.ins().jump(blocks[to], &args);
                }
                [on_true, on_false] => {
                    b.ins().brif(number, blocks[on_true], &args, blocks[on_false], &args);
                }
                _ => {
                    let index = clif::resized(b, number, I32);
                    clif::table(b, index, successors.iter().map(|&to| (blocks[to], args.to_vec())));
                }
            }
        }
    })
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
