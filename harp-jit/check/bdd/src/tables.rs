//! Nodes, by what they are, and operations on them.

use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};

/// A function: twice the number of its first node, and one more if it is the opposite of what that says.
pub(crate) type Edge = u32;

pub(crate) const ALL: Edge = 0;
pub(crate) const NONE: Edge = OPPOSITE;

/// In the place of a conjunction of variables: all that there are.
pub(crate) const EVERY: Edge = 2;

/// The bit that makes a function its opposite.
pub(crate) const OPPOSITE: Edge = 1;

#[inline]
pub(crate) fn is_constant(edge: Edge) -> bool {
    edge | OPPOSITE == NONE
}

/// Where a variable decides. On the high side there is no opposite, so that each function has one way to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) variable: u32,
    pub(crate) low: Edge,
    pub(crate) high: Edge,
}

/// Behind all variables.
const LEAF: u32 = u32::MAX;

/// What is computed of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    And(Edge, Edge),
    /// The second where the first is true, the third elsewhere.
    Ite(Edge, Edge, Edge),
    /// What is in both, without these variables.
    AndExists(Edge, Edge, Edge),
    Rename(Edge, Exchange),
    /// The first, as simple as it can be said where the second is known.
    Restrict(Edge, Edge),
}

/// How many nodes there may be. Once there are more, what is computed means nothing.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// At a time; 2^30 at most.
    pub nodes: usize,
    /// In all, and other results besides.
    pub made: usize,
}

/// Variables that become others, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Each even variable becomes the odd one behind it, and the other way round.
    Swap,
    /// What is there under this number.
    Given(u32),
}

/// All nodes, and what was computed of them.
#[derive(Debug)]
pub(crate) struct Tables {
    limits: Limits,
    nodes: Vec<Node>,
    /// Nodes that are no set's any more.
    free: Vec<u32>,
    /// The numbers of nodes, by what they are.
    unique: HashTable<u32>,
    /// What was computed, each in the only place where it can be.
    known: Vec<Option<(Operation, Edge)>>,
    /// What variables become that become others, since room was made.
    renamings: Vec<HashMap<u32, u32>>,
    /// Nodes that were made so far, and what else was computed.
    made: usize,
    /// From so many nodes on, it is time to make room.
    crowded: usize,
    full: bool,
}

/// The most nodes that have numbers.
const MOST_NODES: usize = 1 << 30;

/// Room is made when there are so many times fewer nodes than there may be, or twice those that were kept. What was
/// computed is found out anew then: with 16 instead, hard proofs take up to four times as many steps.
const CROWDED: usize = 4;

/// Places for what was computed: as many as nodes, within these bounds.
const FEWEST_KNOWN: usize = 1 << 9;
const MOST_KNOWN: usize = 1 << 20;

/// A number that is different for most keys, and the same in all runs: limits would be met at different times otherwise.
fn hash([a, b, c, d]: [u32; 4]) -> u64 {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let product = (pair(a, b) ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let product = (product.rotate_left(29) ^ pair(c, d)).wrapping_mul(0x94d0_49bb_1331_11eb);
    product ^ (product >> 32)
}

impl Node {
    fn hash(self) -> u64 {
        hash([self.variable, self.low, self.high, 0])
    }
}

impl Operation {
    /// Where it is among so many places, a power of two.
    fn place(self, places: usize) -> usize {
        let key = match self {
            Operation::And(a, b) => [a, b, 0, 1],
            Operation::Ite(a, b, c) => [a, b, c, 2],
            Operation::AndExists(a, b, c) => [a, b, c, 3],
            Operation::Rename(a, Exchange::Swap) => [a, 0, 0, 4],
            Operation::Rename(a, Exchange::Given(index)) => [a, index, 0, 5],
            Operation::Restrict(a, b) => [a, b, 0, 6],
        };
        hash(key) as usize & (places - 1)
    }
}

impl Tables {
    pub(crate) fn new(limits: Limits) -> Tables {
        let leaf = |edge| Node { variable: LEAF, low: edge, high: edge };
        let limits = Limits { nodes: limits.nodes.min(MOST_NODES), ..limits };
        Tables {
            limits,
            nodes: [ALL, EVERY].map(leaf).into(),
            free: Vec::new(),
            unique: HashTable::new(),
            known: vec![None; FEWEST_KNOWN],
            renamings: Vec::new(),
            made: 0,
            crowded: limits.nodes / CROWDED,
            full: false,
        }
    }

    /// Whether there were too many nodes.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether it is time to make room.
    pub(crate) fn is_crowded(&self) -> bool {
        self.nodes.len() - self.free.len() > self.crowded
    }

    /// Keeps names of variables that become others.
    pub(crate) fn exchange(&mut self, others: HashMap<u32, u32>) -> Exchange {
        self.renamings.push(others);
        Exchange::Given((self.renamings.len() - 1) as u32)
    }

    pub(crate) fn collect_garbage(&mut self, mut todo: Vec<Edge>) {
        let mut kept = vec![false; self.nodes.len()];
        kept[..=(EVERY / 2) as usize].fill(true);
        while let Some(edge) = todo.pop() {
            if !std::mem::replace(&mut kept[(edge / 2) as usize], true) {
                let Node { low, high, .. } = self.at(edge);
                todo.extend([low, high]);
            }
        }
        self.free = (0..kept.len()).filter(|&at| !kept[at]).map(|at| at as u32).collect();
        self.unique.retain(|node| kept[*node as usize]);
        self.known.fill(None);
        self.renamings.clear();
        self.crowded = (self.limits.nodes / CROWDED).max(2 * self.unique.len());
    }

    pub(crate) fn node(&mut self, variable: u32, low: Edge, high: Edge) -> Edge {
        if low == high {
            return low;
        }
        let opposite = high & OPPOSITE;
        let node = Node { variable, low: low ^ opposite, high: high ^ opposite };
        let Tables { nodes, free, made, full, limits, unique, .. } = self;
        let is_it = |&at: &u32| nodes[at as usize] == node;
        let number = match unique.entry(node.hash(), is_it, |&at| nodes[at as usize].hash()) {
            Entry::Occupied(there) => *there.get(),
            Entry::Vacant(place) => {
                *made += 1;
                let number = free.pop().unwrap_or(nodes.len() as u32);
                place.insert(number);
                match nodes.get_mut(number as usize) {
                    Some(old) => *old = node,
                    None => nodes.push(node),
                }
                *full |= nodes.len() - free.len() > limits.nodes || *made > limits.made;
                number
            }
        };
        2 * number + opposite
    }

    /// Where the first variable of a function decides.
    pub(crate) fn at(&self, edge: Edge) -> Node {
        let opposite = edge & OPPOSITE;
        let Node { variable, low, high } = self.nodes[(edge / 2) as usize];
        Node { variable, low: low ^ opposite, high: high ^ opposite }
    }

    /// The first variable that one of these depends on.
    fn first(&self, edges: &[Edge]) -> u32 {
        edges.iter().map(|&edge| self.at(edge).variable).min().unwrap_or(LEAF)
    }

    /// What is left of `edge` where `variable`, which is none behind its first one, is false, and true.
    fn split(&self, edge: Edge, variable: u32) -> [Edge; 2] {
        let node = self.at(edge);
        if node.variable == variable { [node.low, node.high] } else { [edge, edge] }
    }

    /// What is known, or else found out now. Even what makes no node is counted. Once there is too much, any result
    /// will do.
    fn cached(&mut self, operation: Operation, find: impl FnOnce(&mut Tables) -> Edge) -> Edge {
        match self.known[operation.place(self.known.len())] {
            Some((known, result)) if known == operation => return result,
            _ => {}
        }
        self.made += 1;
        self.full |= self.made > self.limits.made;
        if self.full {
            return NONE;
        }
        let result = find(self);
        if self.unique.len() > self.known.len() && self.known.len() < MOST_KNOWN {
            let more = vec![None; 4 * self.known.len()];
            for (operation, result) in
                std::mem::replace(&mut self.known, more).into_iter().flatten()
            {
                self.remember(operation, result);
            }
        }
        self.remember(operation, result);
        result
    }

    fn remember(&mut self, operation: Operation, result: Edge) {
        let place = operation.place(self.known.len());
        self.known[place] = Some((operation, result));
    }

    fn and(&mut self, a: Edge, b: Edge) -> Edge {
        let (a, b) = (a.min(b), a.max(b));
        match a {
            ALL => return b,
            NONE => return NONE,
            _ if a == b => return a,
            _ if a ^ b == OPPOSITE => return NONE,
            _ => {}
        }
        self.cached(Operation::And(a, b), |sets| {
            let variable = sets.first(&[a, b]);
            let [[a0, a1], [b0, b1]] = [a, b].map(|edge| sets.split(edge, variable));
            let low = sets.and(a0, b0);
            let high = sets.and(a1, b1);
            sets.node(variable, low, high)
        })
    }

    pub(crate) fn ite(&mut self, set: Edge, yes: Edge, no: Edge) -> Edge {
        // A function and its opposite are looked up as one.
        let (set, yes, no) =
            if set & OPPOSITE == 0 { (set, yes, no) } else { (set ^ OPPOSITE, no, yes) };
        let same = |side: Edge, value: Edge| match side ^ set {
            0 => value,
            OPPOSITE => value ^ OPPOSITE,
            _ => side,
        };
        let (yes, no) = (same(yes, ALL), same(no, NONE));
        match (yes, no) {
            _ if set == ALL || yes == no => return yes,
            (ALL, no) => return self.and(set ^ OPPOSITE, no ^ OPPOSITE) ^ OPPOSITE,
            (NONE, no) => return self.and(set ^ OPPOSITE, no),
            (yes, NONE) => return self.and(set, yes),
            (yes, ALL) => return self.and(set, yes ^ OPPOSITE) ^ OPPOSITE,
            _ => {}
        }
        let opposite = yes & OPPOSITE;
        let (yes, no) = (yes ^ opposite, no ^ opposite);
        // Where exactly one of two is true, either may be asked first.
        let is_symmetric = yes ^ no == OPPOSITE && yes < set;
        let (set, yes, no) = if is_symmetric { (yes, set, set ^ OPPOSITE) } else { (set, yes, no) };
        let result = self.cached(Operation::Ite(set, yes, no), |sets| {
            let variable = sets.first(&[set, yes, no]);
            let [[s0, s1], [y0, y1], [n0, n1]] =
                [set, yes, no].map(|edge| sets.split(edge, variable));
            let low = sets.ite(s0, y0, n0);
            let high = sets.ite(s1, y1, n1);
            sets.node(variable, low, high)
        });
        result ^ opposite
    }

    pub(crate) fn and_exists(&mut self, a: Edge, b: Edge, mut cube: Edge) -> Edge {
        let (a, b) = if a == b { (ALL, b) } else { (a.min(b), a.max(b)) };
        if b == ALL {
            return ALL;
        }
        if a == NONE || b == NONE || a ^ b == OPPOSITE {
            return NONE;
        }
        let variable = self.first(&[a, b]);
        while self.at(cube).variable < variable {
            cube = self.at(cube).high;
        }
        if cube == ALL {
            return self.and(a, b);
        }
        self.cached(Operation::AndExists(a, b, cube), |sets| {
            let [[a0, a1], [b0, b1]] = [a, b].map(|edge| sets.split(edge, variable));
            let is_hidden = cube == EVERY || sets.at(cube).variable == variable;
            let low = sets.and_exists(a0, b0, cube);
            if is_hidden && low == ALL {
                return ALL;
            }
            let high = sets.and_exists(a1, b1, cube);
            if is_hidden { sets.ite(low, ALL, high) } else { sets.node(variable, low, high) }
        })
    }

    pub(crate) fn rename(&mut self, edge: Edge, exchange: Exchange) -> Edge {
        let opposite = edge & OPPOSITE;
        let plain = edge ^ opposite;
        let Node { variable, low, high } = self.at(plain);
        let other = match exchange {
            _ if variable == LEAF => return edge,
            Exchange::Swap => variable ^ 1,
            Exchange::Given(index) if self.renamings[index as usize].is_empty() => return edge,
            Exchange::Given(index) => {
                self.renamings[index as usize].get(&variable).copied().unwrap_or(variable)
            }
        };
        let result = self.cached(Operation::Rename(plain, exchange), |sets| {
            let [low, high] = [low, high].map(|side| sets.rename(side, exchange));
            if sets.first(&[low, high]) > other {
                return sets.node(other, low, high);
            }
            let decides = sets.node(other, NONE, ALL);
            sets.ite(decides, high, low)
        });
        result ^ opposite
    }

    pub(crate) fn restrict(&mut self, edge: Edge, care: Edge) -> Edge {
        if is_constant(care) || is_constant(edge) {
            return edge;
        }
        match edge ^ care {
            0 => return ALL,
            OPPOSITE => return NONE,
            _ => {}
        }
        let opposite = edge & OPPOSITE;
        let edge = edge ^ opposite;
        let result = self.cached(Operation::Restrict(edge, care), |sets| {
            let Node { variable, low, high } = sets.at(edge);
            let first = sets.at(care).variable;
            let [no, yes] = sets.split(care, first.min(variable));
            if first < variable {
                let care = sets.ite(no, ALL, yes);
                sets.restrict(edge, care)
            } else if no == NONE {
                sets.restrict(high, yes)
            } else if yes == NONE {
                sets.restrict(low, no)
            } else {
                let low = sets.restrict(low, no);
                let high = sets.restrict(high, yes);
                sets.node(variable, low, high)
            }
        });
        result ^ opposite
    }
}
