//! Control-flow graphs without the contents of blocks.

/// Nodes that a shape has at most: sets of nodes are the bits of a number.
pub(super) const MAX_NODES: usize = 64;

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Where it may go on, in order, some perhaps several times; nowhere if it ends the function.
    pub(super) next: Vec<usize>,
    /// Whether it ends in a trap.
    pub(super) trap: bool,
}

/// A directed graph of at least one and at most 64 nodes, of which the first is the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) nodes: Vec<Node>,
}

impl Shape {
    /// The graph that a text like `a: b c; b: a; c: !d` describes: blocks with where they go on. A block that
    /// goes on nowhere returns, or traps if `!` stands before its name. None if a name stands before two
    /// colons, if a trap goes on, or if there are too many blocks.
    pub(super) fn parse(text: &str) -> Option<Shape> {
        let mut names: Vec<&str> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut number = |name, nodes: &mut Vec<Node>| {
            names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                nodes.push(Node { next: Vec::new(), trap: name.starts_with('!') });
                names.len() - 1
            })
        };
        for block in text.split(';') {
            let (name, next) = block.split_once(':').unwrap_or((block, ""));
            let at = number(name.trim(), &mut nodes);
            if name.trim().is_empty() || !nodes[at].next.is_empty() {
                return None;
            }
            for name in next.split_whitespace() {
                let target = number(name, &mut nodes);
                nodes[at].next.push(target);
            }
        }
        let valid = |node: &Node| node.next.is_empty() || !node.trap;
        (nodes.len() <= MAX_NODES && nodes.iter().all(valid)).then_some(Shape { nodes })
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All edges, as often as they are there.
    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(from, node)| node.next.iter().map(move |&to| (from, to)))
    }

    /// The nodes that are reachable from `from`, itself included.
    pub(super) fn reached(&self, from: usize) -> u64 {
        reached(1 << from, |node| self.nodes[node].next.iter().fold(0, |set, to| set | 1 << to))
    }

    /// The nodes that lie on cycles.
    pub(super) fn on_cycles(&self) -> u64 {
        let again = |&node: &usize| {
            self.nodes[node].next.iter().any(|&next| self.reached(next) >> node & 1 == 1)
        };
        (0..self.len()).filter(again).fold(0, |set, node| set | 1 << node)
    }

    /// The dominators of each node, itself included. All nodes, for an unreachable node.
    pub(super) fn dominators(&self) -> Vec<u64> {
        let mut sets = vec![u64::MAX; self.len()];
        sets[0] = 1;
        let reached = self.reached(0);
        loop {
            let before = sets.clone();
            for node in (1..self.len()).filter(|node| reached >> node & 1 == 1) {
                let ways =
                    self.edges().filter(|&(from, to)| to == node && reached >> from & 1 == 1);
                let common = ways.fold(u64::MAX, |common, (from, _)| common & sets[from]);
                sets[node] = common | 1 << node;
            }
            if sets == before {
                return sets;
            }
        }
    }

    /// For each node the length of the shortest path to an end; a trap counts only if `traps` are ends. None
    /// where no path leads to one.
    pub(super) fn distances(&self, traps: bool) -> Vec<Option<usize>> {
        let ends = |node: &Node| node.next.is_empty() && (traps || !node.trap);
        let mut found: Vec<_> = self.nodes.iter().map(|node| ends(node).then_some(0)).collect();
        loop {
            let before = found.clone();
            for (from, to) in self.edges() {
                if let Some(way) = before[to]
                    && found[from].is_none_or(|known: usize| way + 1 < known)
                {
                    found[from] = Some(way + 1);
                }
            }
            if found == before {
                return found;
            }
        }
    }

    /// All nodes: first the reachable ones, each after its dominators (in reverse post-order), then the
    /// dead ones.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut seen = 1_u64;
        let mut open = vec![(0, 0)];
        let mut order = Vec::new();
        while let Some((node, at)) = open.pop() {
            let Some(&next) = self.nodes[node].next.get(at) else {
                order.push(node);
                continue;
            };
            open.push((node, at + 1));
            if seen >> next & 1 == 0 {
                seen |= 1 << next;
                open.push((next, 0));
            }
        }
        order.reverse();
        order.extend((0..self.len()).filter(|node| seen >> node & 1 == 0));
        order
    }
}

/// The nodes that are reachable from these, themselves included.
pub(super) fn reached(from: u64, next: impl Fn(usize) -> u64) -> u64 {
    let (mut seen, mut open) = (from, from);
    while open != 0 {
        let node = open.trailing_zeros() as usize;
        open &= open - 1;
        let new = next(node) & !seen;
        seen |= new;
        open |= new;
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_with_two_entries_and_a_trap() {
        let shape = Shape::parse("e: a b; a: b; b: a x !t; dead: a").unwrap();
        assert_eq!(shape.len(), 6);
        assert_eq!(shape.on_cycles(), 0b110);
        assert_eq!(shape.reached(0), 0b1_1111);
        assert_eq!(shape.dominators()[..5], [1, 0b11, 0b101, 0b1101, 0b1_0101]);
        assert_eq!(shape.distances(false)[..5], [Some(2), Some(2), Some(1), Some(0), None]);
        assert_eq!(shape.distances(true)[4], Some(0));
        assert_eq!(shape.order()[0], 0);
        assert_eq!(shape.order()[5], 5);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for wrong in ["", "a: b;", "a: b; a: c", "!a: b"] {
            assert_eq!(Shape::parse(wrong), None, "{wrong}");
        }
    }
}
