//! Which blocks count their visits, so that every run ends.
//!
//! A block that counts goes the shortest way to an end when its count is used up. If all on cycles with several ways to
//! go on do, everything ends, but then hardly any branch in a loop is left that all lanes take alike: a count that lanes
//! reach by different ways differs. So blocks are let off at random, or count anew for each visit of a block that heads
//! a cycle around them, as the loops of programs do, as long as everything still ends.

use super::super::choices::Choices;
use super::shape::Shape;

/// Blocks of a kernel that count anew: what they count multiplies.
const MOST_ANEW: usize = 4;

/// Whether a block counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    Never,
    /// All visits of a run.
    Always,
    /// The visits since the last one of this node.
    AnewFrom(usize),
}

/// The ways of a graph that lanes may take.
pub(super) struct Ways {
    /// By node, those that it may go on to.
    next: Vec<u64>,
    /// Those of them that are on the shortest ways to an end.
    shortest: Vec<u64>,
    order: Vec<usize>,
}

impl Ways {
    /// No way leads where nothing ends, which `distances` say.
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
        };
        for node in nodes() {
            result.next[node] = set(node);
            result.shortest[node] = nearest(node).map_or(0, |&to| 1 << to);
        }
        result
    }

    /// How nodes count, at random. All on cycles with several ways to go on do at first.
    pub(super) fn counting(&self, shape: &Shape, choices: &mut Choices<'_>) -> Vec<Counting> {
        let cycles = shape.on_cycles();
        let must = |node: &usize| cycles >> node & 1 == 1 && shape.nodes[*node].next.len() > 1;
        let mut nodes: Vec<usize> = (0..shape.len()).filter(must).collect();
        let mut all = vec![Counting::Never; shape.len()];
        nodes.iter().for_each(|&node| all[node] = Counting::Always);
        for at in (1..nodes.len()).rev() {
            nodes.swap(at, choices.below(at + 1));
        }
        let less = choices.below(4);
        let mut anew = 0;
        for node in nodes {
            if choices.below(4) >= less {
                continue;
            }
            let heads = self.heads(node);
            all[node] = if heads.is_empty() || anew == MOST_ANEW || choices.below(2) == 0 {
                Counting::Never
            } else {
                Counting::AnewFrom(choices.one(&heads))
            };
            if self.end(&all, u64::MAX) {
                anew += usize::from(all[node] != Counting::Never);
            } else {
                all[node] = Counting::Always;
            }
        }
        all
    }

    /// Whether every run among these nodes ends.
    ///
    /// A run that does not stays in one strongly connected part. If it comes to the part's head again and again, all that
    /// count and do not begin anew in the part have used up their counts at last. So it is enough that no cycle
    /// through the head is left then, and that every run ends among the part's other nodes.
    fn end(&self, counting: &[Counting], nodes: u64) -> bool {
        self.parts(nodes).all(|(head, part)| {
            let next = |node: usize| match counting[node] {
                Counting::Always => self.shortest[node],
                Counting::AnewFrom(other) if part >> other & 1 == 0 => self.shortest[node],
                Counting::AnewFrom(_) | Counting::Never => self.next[node],
            };
            let again = reached(next(head) & part, |node| next(node) & part) >> head & 1 == 1;
            !again && self.end(counting, part & !(1 << head))
        })
    }

    /// The heads of cycles around a node, from the outermost on.
    fn heads(&self, node: usize) -> Vec<usize> {
        let mut heads = Vec::new();
        let mut nodes = u64::MAX;
        while let Some((head, part)) = self.parts(nodes).find(|(_, part)| part >> node & 1 == 1)
            && head != node
        {
            heads.push(head);
            nodes = part & !(1 << head);
        }
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

/// The nodes that ways lead to from these, themselves included.
fn reached(from: u64, next: impl Fn(usize) -> u64) -> u64 {
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

    fn ways(text: &str) -> Ways {
        let shape = Shape::parse(text).expect("a shape");
        Ways::new(&shape, &shape.distances(false))
    }

    #[test]
    fn what_counts_in_a_cycle_is_enough() {
        use Counting::{Always, Never};
        // e, h, a, b, l, x
        let ways = ways("e: h; h: a b; a: l; b: l; l: h x");
        let mut counting = [Never; 6];
        assert!(!ways.end(&counting, u64::MAX));
        counting[1] = Always;
        assert!(!ways.end(&counting, u64::MAX), "the latch can go back for ever");
        counting[1] = Never;
        counting[4] = Always;
        assert!(ways.end(&counting, u64::MAX));
    }

    #[test]
    fn an_inner_loop_may_count_anew() {
        use Counting::{Always, AnewFrom, Never};
        // e, h, i, l, x
        let ways = ways("e: h; h: i; i: i l; l: h x");
        assert_eq!(ways.heads(2), [1]);
        assert!(ways.heads(1).is_empty());
        let counting = |i, l| [Never, Never, i, l, Never];
        assert!(ways.end(&counting(AnewFrom(1), Always), u64::MAX));
        assert!(!ways.end(&counting(AnewFrom(1), Never), u64::MAX));
        assert!(!ways.end(&counting(Never, Always), u64::MAX));
        assert!(!ways.end(&counting(Always, AnewFrom(1)), u64::MAX));
    }
}
