//! The constructs of a graph, for counting.

use cranelift_codegen::ir::Block;

use super::super::Mark;
use super::shape::Shape;

/// Constructs of blocks, and of the kernel as a whole at its start.
pub(super) fn marks(
    shape: &Shape,
    blocks: &[Block],
    start: Block,
    features: &[&'static str],
) -> Vec<Mark> {
    let mark = |block, construct| Mark { function: 0, block, construct };
    let mut marks: Vec<Mark> = features.iter().map(|feature| mark(start, *feature)).collect();
    let mut add = |block, there: &[(bool, &'static str)]| {
        let there = there.iter().filter(|(there, _)| *there);
        marks.extend(there.map(|(_, construct)| mark(block, *construct)));
    };
    let loops = loops(shape);
    for (node, block) in blocks.iter().enumerate() {
        let next = &shape.nodes[node].next;
        let several = next.len() > 1;
        let joins = |to: &usize| shape.edges().filter(|(_, other)| to == other).count() > 1;
        let latches = loops.iter().filter(|it| it.latches.contains(&node)).count();
        let there = [
            (next.len() == 2, "branch"),
            (next.len() > 2, "switch"),
            (next.contains(&node), "loop of one block"),
            (several && next.iter().all(|to| *to == next[0]), "both ways to one block"),
            (next.is_empty() && shape.reached(0) >> node & 1 == 1, "end"),
            (latches > 1, "latch of two loops"),
            (several && next.iter().any(joins), "critical edge"),
        ];
        add(*block, &there);
    }
    for one in &loops {
        let is_in = |nodes: u64, node: usize| nodes >> node & 1 == 1;
        let leaves = |&(from, to): &(usize, usize)| is_in(one.nodes, from) && !is_in(one.nodes, to);
        let around = |it: &Loop| it.header != one.header && is_in(it.nodes, one.header);
        let there = [
            (true, "loop"),
            (shape.edges().filter(leaves).count() > 1, "loop with several exits"),
            (one.latches.len() > 1, "loop with several latches"),
            (loops.iter().any(around), "loop in a loop"),
        ];
        add(blocks[one.header], &there);
    }
    marks
}

/// A natural loop.
struct Loop {
    header: usize,
    latches: Vec<usize>,
    nodes: u64,
}

/// All natural loops, one a header.
fn loops(shape: &Shape) -> Vec<Loop> {
    let dominators = shape.dominators();
    let reached = shape.reached(0);
    let mut loops = Vec::new();
    for header in (0..shape.len()).filter(|node| reached >> node & 1 == 1) {
        let back = |&(from, to): &(usize, usize)| {
            to == header && reached >> from & 1 == 1 && dominators[from] >> header & 1 == 1
        };
        let mut latches: Vec<usize> = shape.edges().filter(back).map(|(from, _)| from).collect();
        latches.dedup();
        let mut nodes = 1_u64 << header;
        let mut open = latches.clone();
        while let Some(node) = open.pop() {
            if nodes >> node & 1 == 0 {
                nodes |= 1 << node;
                open.extend(shape.edges().filter(|&(_, to)| to == node).map(|(from, _)| from));
            }
        }
        if !latches.is_empty() {
            loops.push(Loop { header, latches, nodes });
        }
    }
    loops
}
