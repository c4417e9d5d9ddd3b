//! Boolean functions, as reduced ordered decision diagrams (R. Bryant, "Graph-based algorithms for boolean function
//! manipulation", 1986) with opposites that take no nodes, and tables for what is there and what was computed (K. Brace, R.
//! Rudell and R. Bryant, "Efficient implementation of a BDD package", 1990).
//!
//! Equal functions are equal numbers. What was computed is looked up, unless something else took its place in the
//! table since, in every round of a fixpoint. Nodes that are not kept make room, from time to time.

use std::cell::RefCell;
use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};

#[cfg(test)]
mod tests;

/// A boolean function: the set of assignments for which it is true. Constants are of any manager.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    edge: Edge,
    manager: Option<&'a Manager>,
}

/// A function: twice the number of its first node, and one more if it is the opposite of what that says.
type Edge = u32;

const ALL: Edge = 0;
const NONE: Edge = OPPOSITE;

/// In the place of a conjunction of variables: all that there are.
const EVERY: Edge = 2;

/// The bit that makes a function its opposite.
const OPPOSITE: Edge = 1;

fn is_constant(edge: Edge) -> bool {
    edge | OPPOSITE == NONE
}

/// Where a variable decides. On the high side there is no opposite, so that each function has one way to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    variable: u32,
    low: Edge,
    high: Edge,
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
    Rename(Edge, Renaming),
    /// The first, as simple as it can be said where the second is known.
    Restrict(Edge, Edge),
}

/// Names of variables that are exchanged for others, all at once: an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renaming {
    /// Each even variable becomes the odd one behind it, and the other way round.
    Swap,
    /// The one with this index.
    Given(u32),
}

/// All sets of one proof.
#[derive(Debug)]
pub(crate) struct Manager(RefCell<Tables>);

#[derive(Debug)]
struct Tables {
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

/// How many nodes there may be. Once there are more, what is computed means nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// At a time.
    pub(crate) nodes: usize,
    /// In all.
    pub(crate) made: usize,
}

/// Room is made when there are so many times fewer nodes than there may be, or twice those that were kept. What was
/// computed is found out anew then: with 16 instead, hard proofs take up to four times as many steps.
const CROWDED: usize = 4;

/// Places for what was computed: as many as nodes, within these bounds.
const FEWEST_KNOWN: usize = 1 << 9;
const MOST_KNOWN: usize = 1 << 20;

impl Manager {
    pub(crate) fn new(limits: Limits) -> Manager {
        let leaf = |edge| Node { variable: LEAF, low: edge, high: edge };
        Manager(RefCell::new(Tables {
            limits,
            nodes: [ALL, EVERY].map(leaf).into(),
            free: Vec::new(),
            unique: HashTable::new(),
            known: vec![None; FEWEST_KNOWN],
            renamings: Vec::new(),
            made: 0,
            crowded: limits.nodes / CROWDED,
            full: false,
        }))
    }

    fn set(&self, edge: Edge) -> Set<'_> {
        Set { edge, manager: Some(self) }
    }

    /// Whether there were too many nodes: then no result can be relied on.
    pub(crate) fn is_full(&self) -> bool {
        self.0.borrow().full
    }

    /// Makes room, if it is time to: only these sets are kept, and no renaming.
    pub(crate) fn collect_garbage<'a>(&self, sets: impl Iterator<Item = Set<'a>>) {
        let mut tables = self.0.borrow_mut();
        if tables.nodes.len() - tables.free.len() > tables.crowded {
            tables.collect_garbage(sets.map(|set| set.edge).collect());
        }
    }

    /// Where a variable is true.
    pub(crate) fn variable(&self, variable: u32) -> Set<'_> {
        self.set(self.0.borrow_mut().node(variable, NONE, ALL))
    }

    /// Variables that become others, all at once.
    pub(crate) fn renaming(&self, others: HashMap<u32, u32>) -> Renaming {
        let renamings = &mut self.0.borrow_mut().renamings;
        renamings.push(others);
        Renaming::Given((renamings.len() - 1) as u32)
    }
}

impl<'a> Set<'a> {
    pub(crate) const NONE: Set<'static> = Set { edge: NONE, manager: None };
    pub(crate) const ALL: Set<'static> = Set { edge: ALL, manager: None };

    /// Whether it says nothing of any variable.
    pub(crate) fn is_constant(self) -> bool {
        is_constant(self.edge)
    }

    /// What is computed of it; of constants, nothing is left to compute.
    fn with(self, compute: impl FnOnce(&mut Tables) -> Edge) -> Set<'a> {
        let compute = |manager: &'a Manager| manager.set(compute(&mut manager.0.borrow_mut()));
        self.manager.map_or(self, compute)
    }

    /// `yes` where it is, `no` elsewhere.
    pub(crate) fn ite(self, yes: Set<'a>, no: Set<'a>) -> Set<'a> {
        match self.edge {
            ALL => yes,
            NONE => no,
            _ => self.with(|sets| sets.ite(self.edge, yes.edge, no.edge)),
        }
    }

    /// Whether nothing is in both.
    pub(crate) fn disjoint(self, other: Set<'a>) -> bool {
        self.and_exists(other, Set { edge: EVERY, manager: None }) == Set::NONE
    }

    /// Without what it says of the variables whose conjunction is `cube`: where there is a way to assign them.
    pub(crate) fn exists(self, cube: Set<'a>) -> Set<'a> {
        self.and_exists(Set::ALL, cube)
    }

    /// As [`Set::exists`], of what is in both, which is not made itself: it can be much larger (J. Burch and others,
    /// "Symbolic model checking: 10^20 states and beyond", 1990: the relational product).
    pub(crate) fn and_exists(self, other: Set<'a>, cube: Set<'a>) -> Set<'a> {
        let (one, other) = if self.is_constant() { (other, self) } else { (self, other) };
        match other.edge {
            NONE => other,
            _ => one.with(|sets| sets.and_exists(one.edge, other.edge, cube.edge)),
        }
    }

    /// Whether it says something of one of the variables whose conjunction is `cube`.
    pub(crate) fn depends_on(self, cube: Set<'a>) -> bool {
        self.exists(cube) != self
    }

    /// A set that is the same among those in `care`, and whatever is simple elsewhere (O. Coudert and J. Madre, "A
    /// unified framework for the formal verification of sequential circuits", 1990: `restrict`).
    pub(crate) fn restrict(self, care: Set<'a>) -> Set<'a> {
        if self.is_constant() {
            self
        } else {
            self.with(|sets| sets.restrict(self.edge, care.edge))
        }
    }

    /// The same, said of other variables.
    pub(crate) fn rename(self, renaming: Renaming) -> Set<'a> {
        self.with(|sets| sets.rename(self.edge, renaming))
    }

    /// Variables with values for which it is true, whatever the others are; nothing if it is empty.
    pub(crate) fn model(self) -> Vec<(u32, bool)> {
        let mut model = Vec::new();
        let Some(manager) = self.manager else { return model };
        let mut at = self.edge;
        while !is_constant(at) {
            let Node { variable, low, high } = manager.0.borrow().at(at);
            let value = low == NONE;
            model.push((variable, value));
            at = if value { high } else { low };
        }
        model
    }
}

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
            Operation::Rename(a, Renaming::Swap) => [a, 0, 0, 4],
            Operation::Rename(a, Renaming::Given(index)) => [a, index, 0, 5],
            Operation::Restrict(a, b) => [a, b, 0, 6],
        };
        hash(key) as usize & (places - 1)
    }
}

impl Tables {
    fn collect_garbage(&mut self, mut todo: Vec<Edge>) {
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

    fn node(&mut self, variable: u32, low: Edge, high: Edge) -> Edge {
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

    fn at(&self, edge: Edge) -> Node {
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

    fn ite(&mut self, set: Edge, yes: Edge, no: Edge) -> Edge {
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

    fn and_exists(&mut self, a: Edge, b: Edge, mut cube: Edge) -> Edge {
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

    fn rename(&mut self, edge: Edge, renaming: Renaming) -> Edge {
        let opposite = edge & OPPOSITE;
        let plain = edge ^ opposite;
        let Node { variable, low, high } = self.at(plain);
        let other = match renaming {
            _ if variable == LEAF => return edge,
            Renaming::Swap => variable ^ 1,
            Renaming::Given(index) if self.renamings[index as usize].is_empty() => return edge,
            Renaming::Given(index) => {
                self.renamings[index as usize].get(&variable).copied().unwrap_or(variable)
            }
        };
        let result = self.cached(Operation::Rename(plain, renaming), |sets| {
            let [low, high] = [low, high].map(|side| sets.rename(side, renaming));
            if sets.first(&[low, high]) > other {
                return sets.node(other, low, high);
            }
            let decides = sets.node(other, NONE, ALL);
            sets.ite(decides, high, low)
        });
        result ^ opposite
    }

    fn restrict(&mut self, edge: Edge, care: Edge) -> Edge {
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

impl<'a> BitAnd for Set<'a> {
    type Output = Set<'a>;

    fn bitand(self, other: Set<'a>) -> Set<'a> {
        self.ite(other, Set::NONE)
    }
}

impl<'a> BitOr for Set<'a> {
    type Output = Set<'a>;

    fn bitor(self, other: Set<'a>) -> Set<'a> {
        self.ite(Set::ALL, other)
    }
}

impl<'a> BitXor for Set<'a> {
    type Output = Set<'a>;

    fn bitxor(self, other: Set<'a>) -> Set<'a> {
        self.ite(!other, other)
    }
}

impl<'a> Not for Set<'a> {
    type Output = Set<'a>;

    fn not(self) -> Set<'a> {
        Set { edge: self.edge ^ OPPOSITE, ..self }
    }
}

impl PartialEq for Set<'_> {
    fn eq(&self, other: &Set<'_>) -> bool {
        self.edge == other.edge
    }
}

impl Eq for Set<'_> {}

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}", self.edge)
    }
}
