//! Random shapes: plain random graphs, and shapes of the catalogue, changed or put together.

use super::super::choices::Choices;
use super::catalogue::catalogue;
use super::shape::{MAX_NODES, Node, Shape};

/// Nodes that mutations grow shapes to. Dead ones may be added to them.
const GROWN: usize = MAX_NODES - 4;

/// The name of the construct that is an unchanged shape of the catalogue.
pub(super) const KNOWN: &str = "graph of the catalogue";

/// The chosen shape, and its origin.
pub(super) fn shape(choices: &mut Choices<'_>) -> (Shape, &'static str) {
    let (mut shape, origin) = match choices.below(8) {
        0 => (known(choices), KNOWN),
        1 | 2 => (changed(choices), "graph of the catalogue, changed"),
        3 => (together(choices), "graphs put together"),
        _ => (plain(choices), "graph without a plan"),
    };
    if choices.once_in(3) {
        dead(&mut shape, choices);
    }
    (shape, origin)
}

fn changed(choices: &mut Choices<'_>) -> Shape {
    let mut shape = known(choices);
    for _ in 0..1 + choices.below(4) {
        mutate(&mut shape, choices);
    }
    shape
}

fn together(choices: &mut Choices<'_>) -> Shape {
    let mut shape = known(choices);
    for _ in 0..1 + choices.below(2) {
        let other = known(choices);
        match choices.below(3) {
            0 => behind(&mut shape, &other),
            1 => around(&mut shape),
            _ => replace(&mut shape, &other, choices),
        }
    }
    shape
}

fn known(choices: &mut Choices<'_>) -> Shape {
    let all = catalogue();
    all[choices.below(all.len())].shape.clone()
}

/// A graph of random edges, some of them to the next node.
fn plain(choices: &mut Choices<'_>) -> Shape {
    let count = match choices.below(8) {
        0..=4 => 2 + choices.below(7),
        5 | 6 => 6 + choices.below(12),
        _ => 10 + choices.below(30),
    };
    // From none to most edges go on to one of the next nodes, else few nodes are reached.
    let (ahead, near) = (choices.below(4), 1 + choices.below(4));
    let mut nodes = Vec::new();
    for at in 0..count {
        let degree = match choices.below(16) {
            0..=4 => 1,
            5..=13 => 2,
            14 => 3 + choices.below(4),
            _ => 0,
        };
        let next = (0..degree).map(|_| match choices.below(4) < ahead {
            true => (at + 1 + choices.below(near)).min(count),
            false => choices.below(count + 1),
        });
        nodes.push(Node { next: next.collect(), trap: choices.once_in(4) && degree == 0 });
    }
    nodes.push(Node::default());
    Shape { nodes }
}

/// Changes something small.
fn mutate(shape: &mut Shape, choices: &mut Choices<'_>) {
    let count = shape.len();
    let (from, to) = (choices.below(count), choices.below(count));
    let kind = choices.below(6);
    let next = &mut shape.nodes[from].next;
    match (kind, next.len()) {
        (0, _) => {
            next.push(to);
            shape.nodes[from].trap = false;
        }
        (1, ways @ 2..) => drop(next.remove(choices.below(ways))),
        (2 | 3, ways @ 1..) => next[choices.below(ways)] = to,
        (4, ways @ 1..) if count < GROWN => {
            // A block of its own on an edge.
            let behind = std::mem::replace(&mut next[choices.below(ways)], count);
            shape.nodes.push(Node { next: vec![behind], trap: false });
        }
        (5, _) if count < GROWN => {
            // A block in two, the second of which others may lead to later.
            let rest = std::mem::take(&mut shape.nodes[from]);
            shape.nodes[from].next.push(count);
            shape.nodes.push(rest);
        }
        _ => {}
    }
}

/// Adds the nodes of another shape, if there is room. Gives the first one's number.
fn add(shape: &mut Shape, other: &Shape) -> Option<usize> {
    let first = shape.len();
    if first + other.len() > GROWN {
        return None;
    }
    shape.nodes.extend(other.nodes.iter().map(|node| {
        let next = node.next.iter().map(|to| to + first).collect();
        Node { next, trap: node.trap }
    }));
    Some(first)
}

/// Lets nodes that return go on.
fn go_on(nodes: &mut [Node], to: &[usize]) {
    let ends = nodes.iter_mut().filter(|node| node.next.is_empty() && !node.trap);
    ends.for_each(|node| node.next = to.to_vec());
}

/// Another shape where this one ends.
fn behind(shape: &mut Shape, other: &Shape) {
    let count = shape.len();
    if let Some(first) = add(shape, other) {
        go_on(&mut shape.nodes[..count], &[first]);
    }
}

/// A loop around all.
fn around(shape: &mut Shape) {
    let count = shape.len();
    if count + 2 < GROWN {
        go_on(&mut shape.nodes, &[count]);
        shape.nodes.push(Node { next: vec![0, count + 1], trap: false });
        shape.nodes.push(Node::default());
    }
}

/// Another shape in the place of a node.
fn replace(shape: &mut Shape, other: &Shape, choices: &mut Choices<'_>) {
    let count = shape.len();
    let at = choices.below(count);
    if let Some(first) = add(shape, other) {
        let rest = std::mem::take(&mut shape.nodes[at]);
        shape.nodes[at].next.push(first);
        let behind = shape.len();
        go_on(&mut shape.nodes[first..], &[behind]);
        shape.nodes.push(rest);
    }
}

/// Adds one to three unreachable nodes with edges into the others.
fn dead(shape: &mut Shape, choices: &mut Choices<'_>) {
    let live = shape.len();
    let count = (1 + choices.below(3)).min(MAX_NODES - live);
    for _ in 0..count {
        let next = (0..choices.below(4)).map(|_| choices.below(live + count)).collect();
        shape.nodes.push(Node { next, trap: false });
    }
}

/// Whether a shape is valid: mutations rely on this.
#[cfg(test)]
fn is_valid(shape: &Shape) -> bool {
    let ends = |node: &Node| !node.trap || node.next.is_empty();
    (1..=MAX_NODES).contains(&shape.len())
        && shape.edges().all(|(_, to)| to < shape.len())
        && shape.nodes.iter().all(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::random_bytes;

    #[test]
    fn all_bytes_give_a_shape() {
        let mut sizes = [0; MAX_NODES + 1];
        for seed in 0..3000 {
            let bytes = random_bytes(seed, 400);
            let (shape, _) = shape(&mut Choices::new(&bytes));
            assert!(is_valid(&shape), "seed {seed}: {shape:?}");
            sizes[shape.len()] += 1;
        }
        assert!(sizes[3..40].iter().all(|&count| count > 0), "{sizes:?}");
        assert!(is_valid(&shape(&mut Choices::new(&[])).0));
    }
}
