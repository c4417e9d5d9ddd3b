//! Trees that grow at their leaves, and queries about paths towards the root in logarithmic time.
//!
//! Besides its parent, each node has a link to an ancestor further up, chosen so that all nodes of one depth
//! skip equally many (Myers, "An applicative random-access stack", 1983). A [`Span`] summarizes the nodes of
//! a path; each node stores the span of the nodes that its link skips.

/// The summary of the nodes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The least depth, in another tree, of these nodes.
    pub(super) shallowest: usize,
    /// The greatest number of these nodes; none if there are none.
    pub(super) last: Option<usize>,
}

impl Span {
    /// The span of no nodes.
    pub(super) const NOTHING: Span = Span { shallowest: usize::MAX, last: None };

    pub(super) fn and(self, other: Span) -> Span {
        Span { shallowest: self.shallowest.min(other.shallowest), last: self.last.max(other.last) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    above: usize,
    /// An ancestor, or the root itself at the root.
    skip: usize,
    depth: usize,
    own: Span,
    /// The span of the nodes from this one up to `skip`, exclusive.
    skipped: Span,
}

/// A tree of nodes with numbers below a limit, and a root.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// A tree with only the root, whose number is `count`, above those of all other nodes.
    pub(super) fn new(count: usize) -> Tree {
        let (own, skipped) = (Span::NOTHING, Span::NOTHING);
        let root = Node { above: count, skip: count, depth: 0, own, skipped };
        Tree { nodes: vec![root; count + 1] }
    }

    pub(super) fn root(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Adds a node below `above`, which is in the tree.
    pub(super) fn add(&mut self, node: usize, above: usize, own: Span) {
        let up = self.nodes[above];
        let (one, two) = (up.depth - self.nodes[up.skip].depth, self.nodes[up.skip]);
        let equal = one > 0 && one == two.depth - self.nodes[two.skip].depth;
        let (skip, skipped) =
            if equal { (two.skip, own.and(up.skipped).and(two.skipped)) } else { (above, own) };
        self.nodes[node] = Node { above, skip, depth: up.depth + 1, own, skipped };
    }

    /// The number of proper ancestors of this node.
    pub(super) fn depth(&self, node: usize) -> usize {
        self.nodes[node].depth
    }

    /// The ancestor of `node`, or itself, at this depth.
    pub(super) fn at_depth(&self, mut node: usize, depth: usize) -> usize {
        while self.depth(node) > depth {
            let Node { above, skip, .. } = self.nodes[node];
            node = if self.depth(skip) >= depth { skip } else { above };
        }
        node
    }

    /// The lowest common ancestor of both, which may be one of them.
    pub(super) fn common(&self, a: usize, b: usize) -> usize {
        let depth = self.depth(a).min(self.depth(b));
        let (mut a, mut b) = (self.at_depth(a, depth), self.at_depth(b, depth));
        while a != b {
            let (x, y) = (self.nodes[a], self.nodes[b]);
            (a, b) = if x.skip == y.skip { (x.above, y.above) } else { (x.skip, y.skip) };
        }
        a
    }

    /// The span of the nodes from `node` up to `end`, an ancestor, exclusive.
    pub(super) fn span(&self, mut node: usize, end: usize) -> Span {
        let depth = self.depth(end);
        let mut span = Span::NOTHING;
        while self.depth(node) > depth {
            let Node { above, skip, own, skipped, .. } = self.nodes[node];
            (node, span) = if self.depth(skip) >= depth {
                (skip, span.and(skipped))
            } else {
                (above, span.and(own))
            };
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The links give the same results as walking node by node.
        #[test]
        fn skipping_is_walking(raw in prop::collection::vec((any::<usize>(), 0_usize..99), 1..80)) {
            let count = raw.len();
            let mut tree = Tree::new(count);
            let mut above = Vec::new();
            for (node, &(pick, shallowest)) in raw.iter().enumerate() {
                let up = if node == 0 || pick % 8 == 0 { count } else { node - 1 - pick % 3 % node };
                tree.add(node, up, Span { shallowest, last: Some(node) });
                above.push(up);
            }
            let way = |node: usize| {
                std::iter::successors(Some(node), |&node| above.get(node).copied()).collect::<Vec<_>>()
            };
            for a in 0..count {
                prop_assert_eq!(tree.depth(a), way(a).len() - 1);
                for b in 0..count {
                    let other = way(b);
                    let common = way(a).into_iter().find(|node| other.contains(node)).unwrap();
                    prop_assert_eq!(tree.common(a, b), common);
                    let between = way(a).into_iter().take_while(|&node| node != common);
                    let own = |node: usize| Span { shallowest: raw[node].1, last: Some(node) };
                    let span = between.map(own).fold(Span::NOTHING, Span::and);
                    prop_assert_eq!(tree.span(a, common), span);
                }
            }
        }
    }
}
