//! Which blocks count their visits, so that every run ends.
//!
//! A block whose count is used up takes the shortest path to an end. If all blocks on cycles with several successors
//! counted, every run would end, but hardly any branch in a loop would be uniform: lanes that reach a count along
//! different paths have different counts. So some blocks, chosen at random, do not count, or test how often the head of
//! a cycle around them was visited, since the start or since the last visit of an outer cycle's head, as the loops of
//! programs do. A choice is kept only if every run still ends.

use super::super::choices::Choices;
use super::shape::{Shape, reached};

/// The visits that a block counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Nothing,
    /// Its own visits.
    Visits,
    /// Those of this node, which dominates it and heads a cycle.
    Rounds(usize),
}

/// The visits that all blocks count.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) nodes: Vec<Counting>,
    /// The node whose visits begin a node's rounds anew.
    pub(super) anew: Vec<Option<usize>>,
}

/// The edges of a graph that lanes may take.
pub(super) struct Ways {
    /// By node, those that it may go on to.
    next: Vec<u64>,
    /// Those of them that are on a shortest path to an end.
    shortest: Vec<u64>,
    order: Vec<usize>,
    dominators: Vec<u64>,
}

impl Ways {
    /// Without the edges into nodes from which, as `distances` says, no path leads to an end.
    pub(super) fn new(shape: &Shape, distances: &[Option<usize>]) -> Ways {
        let live = |&&node: &&usize| distances[node].is_some();
        let ways = |node: usize| shape.nodes[node].next.iter().filter(live);
        let set = |node: usize| ways(node).fold(0, |set, to| set | 1 << to);
        let nearest = |node: usize| ways(node).min_by_key(|&&to| distances[to]);
        let nodes = || (0..shape.len()).filter(|node| distances[*node].is_some());
        let mut result = Ways {
            next: vec![0; shape.len()],
            shortest: vec![0; shape.len()],
            order: shape.order(),
            dominators: shape.dominators(),
        };
        for node in nodes() {
            result.next[node] = set(node);
            result.shortest[node] = nearest(node).map_or(0, |&to| 1 << to);
        }
        result
    }

    /// Random counts. At first every node on a cycle with several successors counts its own visits.
    pub(super) fn counted(&self, shape: &Shape, choices: &mut Choices<'_>) -> Counted {
        let cycles = shape.on_cycles();
        let must = |node: &usize| cycles >> node & 1 == 1 && shape.nodes[*node].next.len() > 1;
        let mut nodes: Vec<usize> = (0..shape.len()).filter(must).collect();
        let mut all = vec![Counting::Nothing; shape.len()];
        nodes.iter().for_each(|&node| all[node] = Counting::Visits);
        choices.shuffle(&mut nodes);
        let mut counted = Counted { nodes: all, anew: vec![None; shape.len()] };
        let less = choices.below(5);
        for node in nodes {
            if choices.below(4) >= less {
                continue;
            }
            let before = counted.clone();
            let heads = self.heads(node);
            counted.nodes[node] = if heads.is_empty() || choices.below(2) == 0 {
                Counting::Nothing
            } else {
                let at = choices.below(heads.len());
                if at > 0 && choices.below(2) == 0 {
                    counted.anew[heads[at]] = Some(heads[choices.below(at)]);
                }
                Counting::Rounds(heads[at])
            };
            if !self.end(&counted, u64::MAX) {
                counted = before;
            }
        }
        counted
    }

    /// Whether every run among these nodes ends.
    ///
    /// A run that does not stays in one strongly connected part. If it comes to the part's first node again and again,
    /// all visits are used up at last, and so are rounds that nothing in the part begins anew and whose head is in it, if
    /// all ways from the first node lead through the head. So it is enough that no cycle through the first node is
    /// left then, and that every run ends among the part's other nodes.
    fn end(&self, counted: &Counted, nodes: u64) -> bool {
        self.parts(nodes).all(|(first, part)| {
            let lies = |node: usize| part >> node & 1 == 1;
            let between = |head: usize| lies(head) && self.dominators[head] >> first & 1 == 1;
            let used_up = |node: usize| match counted.nodes[node] {
                Counting::Nothing => false,
                Counting::Visits => true,
                Counting::Rounds(head) => between(head) && !counted.anew[head].is_some_and(lies),
            };
            let next = |node: usize| match used_up(node) {
                true => self.shortest[node] & part,
                false => self.next[node] & part,
            };
            let again = reached(next(first), next) >> first & 1 == 1;
            !again && self.end(counted, part & !(1 << first))
        })
    }

    /// The heads of cycles through a node that dominate it, from the outermost on.
    fn heads(&self, node: usize) -> Vec<usize> {
        let mut heads = Vec::new();
        let mut nodes = u64::MAX;
        while let Some((head, part)) = self.parts(nodes).find(|(_, part)| part >> node & 1 == 1) {
            heads.push(head);
            nodes = part & !(1 << head);
        }
        heads.retain(|head| self.dominators[node] >> head & 1 == 1);
        heads
    }

    /// The strongly connected parts among these nodes that have cycles, with that node of each that comes first.
    fn parts(&self, nodes: u64) -> impl Iterator<Item = (usize, u64)> {
        let mut left = nodes;
        self.order.iter().filter_map(move |&node| {
            if left >> node & 1 == 0 {
                return None;
            }
            let behind =
                |node: usize| reached(self.next[node] & nodes, |node| self.next[node] & nodes);
            let ahead = behind(node);
            let members = (0..self.next.len()).filter(|&other| ahead >> other & 1 == 1);
            let part = members
                .filter(|&other| behind(other) >> node & 1 == 1)
                .fold(0, |set, other| set | 1 << other);
            left &= !part;
            (part >> node & 1 == 1).then_some((node, part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(text: &str) -> Ways {
        let shape = Shape::parse(text).expect("a shape");
        Ways::new(&shape, &shape.distances(false))
    }

    #[test]
    fn what_counts_in_a_cycle_is_enough() {
        use Counting::{Nothing, Visits};
        // e, h, a, b, l, x
        let ways = ways("e: h; h: a b; a: l; b: l; l: h x");
        let end = |h, l| {
            let nodes = vec![Nothing, h, Nothing, Nothing, l, Nothing];
            ways.end(&Counted { nodes, anew: vec![None; 6] }, u64::MAX)
        };
        assert!(!end(Nothing, Nothing));
        assert!(!end(Visits, Nothing), "the latch can go back for ever");
        assert!(end(Nothing, Visits));
    }

    #[test]
    fn an_inner_loop_may_count_anew() {
        use Counting::{Nothing, Rounds, Visits};
        // e, h, i, l, x
        let ways = ways("e: h; h: i; i: i l; l: h x");
        assert_eq!(ways.heads(2), [1, 2]);
        assert_eq!(ways.heads(1), [1]);
        let end = |i, l, anew: Option<usize>| {
            let nodes = vec![Nothing, Nothing, i, l, Nothing];
            ways.end(&Counted { nodes, anew: vec![None, None, anew, None, None] }, u64::MAX)
        };
        assert!(end(Rounds(2), Visits, Some(1)));
        assert!(end(Rounds(2), Rounds(1), Some(1)));
        assert!(end(Rounds(2), Rounds(2), None));
        assert!(!end(Rounds(2), Rounds(2), Some(1)), "they begin anew in each round around them");
        assert!(!end(Rounds(2), Nothing, None));
        assert!(!end(Nothing, Visits, None));
        assert!(!end(Rounds(1), Visits, None), "the outer head is not visited in the inner loop");
    }
}
