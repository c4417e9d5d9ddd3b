//! Boolean functions, as reduced ordered decision diagrams (R. Bryant, "Graph-based algorithms for boolean function
//! manipulation", 1986; the operation of which all others are made: K. Brace, R. Rudell and R. Bryant, "Efficient
//! implementation of a BDD package", 1990).
//!
//! Equal functions are equal numbers, so what was computed once is looked up from then on, in every round of
//! a fixpoint. What is not kept then makes room, from time to time.

use std::cell::RefCell;
use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use hashbrown::HashMap;

/// A boolean function: the set of assignments for which it is true. Constants are of any manager.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    node: Index,
    manager: Option<&'a Manager>,
}

/// A function, by its first node.
type Index = u32;

const NONE: Index = 0;
const ALL: Index = 1;

/// In the place of a conjunction of variables: all that there are.
const EVERY: Index = 2;

/// Where a variable decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    variable: u32,
    low: Index,
    high: Index,
}

/// Behind all variables.
const LEAF: u32 = u32::MAX;

/// What is computed of a set, and with what else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// The one set where the first is, the other elsewhere.
    Ite(Index, Index),
    /// What is in both, without these variables.
    AndExists(Index, Index),
    Rename(Renaming),
    /// As simple as it can be said where this is known.
    Restrict(Index),
}

/// Names of variables that are exchanged for others, all at once: an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    free: Vec<Index>,
    unique: HashMap<Node, Index>,
    known: HashMap<(Index, Operation), Index>,
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

impl Manager {
    pub(crate) fn new(limits: Limits) -> Manager {
        let leaf = |set| Node { variable: LEAF, low: set, high: set };
        Manager(RefCell::new(Tables {
            limits,
            nodes: [NONE, ALL, EVERY].map(leaf).into(),
            free: Vec::new(),
            unique: HashMap::new(),
            known: HashMap::new(),
            renamings: Vec::new(),
            made: 0,
            crowded: limits.nodes / CROWDED,
            full: false,
        }))
    }

    fn set(&self, node: Index) -> Set<'_> {
        Set { node, manager: Some(self) }
    }

    /// Whether there were too many nodes: then no result can be relied on.
    pub(crate) fn is_full(&self) -> bool {
        self.0.borrow().full
    }

    /// Makes room, if it is time to: only these sets are kept, and no renaming.
    pub(crate) fn collect_garbage<'a>(&self, sets: impl Iterator<Item = Set<'a>>) {
        let mut tables = self.0.borrow_mut();
        if tables.nodes.len() - tables.free.len() > tables.crowded {
            tables.collect_garbage(sets.map(|set| set.node).collect());
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
    pub(crate) const NONE: Set<'static> = Set { node: NONE, manager: None };
    pub(crate) const ALL: Set<'static> = Set { node: ALL, manager: None };

    /// Whether it says nothing of any variable.
    pub(crate) fn is_constant(self) -> bool {
        self.node <= ALL
    }

    /// What is computed of it; of constants, nothing is left to compute.
    fn with(self, compute: impl FnOnce(&mut Tables) -> Index) -> Set<'a> {
        let compute = |manager: &'a Manager| manager.set(compute(&mut manager.0.borrow_mut()));
        self.manager.map_or(self, compute)
    }

    /// `yes` where it is, `no` elsewhere.
    pub(crate) fn ite(self, yes: Set<'a>, no: Set<'a>) -> Set<'a> {
        match self.node {
            ALL => yes,
            NONE => no,
            _ => self.with(|sets| sets.ite(self.node, yes.node, no.node)),
        }
    }

    /// Whether nothing is in both.
    pub(crate) fn disjoint(self, other: Set<'a>) -> bool {
        self.and_exists(other, Set { node: EVERY, manager: None }) == Set::NONE
    }

    /// Without what it says of the variables whose conjunction is `cube`: where there is a way to assign them.
    pub(crate) fn exists(self, cube: Set<'a>) -> Set<'a> {
        self.and_exists(Set::ALL, cube)
    }

    /// As [`Set::exists`], of what is in both, which is not made itself: it can be much larger (J. Burch and others,
    /// "Symbolic model checking: 10^20 states and beyond", 1990: the relational product).
    pub(crate) fn and_exists(self, other: Set<'a>, cube: Set<'a>) -> Set<'a> {
        let (one, other) = if self.is_constant() { (other, self) } else { (self, other) };
        match other.node {
            NONE => other,
            _ => one.with(|sets| sets.and_exists(one.node, other.node, cube.node)),
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
            self.with(|sets| sets.restrict(self.node, care.node))
        }
    }

    /// The same, said of other variables.
    pub(crate) fn rename(self, renaming: Renaming) -> Set<'a> {
        self.with(|sets| sets.rename(self.node, renaming))
    }

    /// Variables with values for which it is true, whatever the others are; nothing if it is empty.
    pub(crate) fn model(self) -> Vec<(u32, bool)> {
        let mut model = Vec::new();
        let Some(manager) = self.manager else { return model };
        let mut at = self.node;
        while at > ALL {
            let Node { variable, low, high } = manager.0.borrow().at(at);
            let value = low == NONE;
            model.push((variable, value));
            at = if value { high } else { low };
        }
        model
    }
}

impl Tables {
    fn collect_garbage(&mut self, mut todo: Vec<Index>) {
        let mut kept = vec![false; self.nodes.len()];
        kept[..=EVERY as usize].fill(true);
        while let Some(set) = todo.pop() {
            if !std::mem::replace(&mut kept[set as usize], true) {
                let Node { low, high, .. } = self.at(set);
                todo.extend([low, high]);
            }
        }
        self.free = (0..kept.len()).filter(|&at| !kept[at]).map(|at| at as Index).collect();
        self.unique.retain(|_, set| kept[*set as usize]);
        self.known.clear();
        self.renamings.clear();
        self.crowded = (self.limits.nodes / CROWDED).max(2 * self.unique.len());
    }

    fn node(&mut self, variable: u32, low: Index, high: Index) -> Index {
        if low == high {
            return low;
        }
        let node = Node { variable, low, high };
        let Tables { nodes, free, made, full, limits, .. } = self;
        *self.unique.entry(node).or_insert_with(|| {
            *made += 1;
            let set = free.pop().unwrap_or_else(|| {
                nodes.push(node);
                (nodes.len() - 1) as Index
            });
            nodes[set as usize] = node;
            *full |= nodes.len() - free.len() > limits.nodes || *made > limits.made;
            set
        })
    }

    fn at(&self, set: Index) -> Node {
        self.nodes[set as usize]
    }

    /// The first variable that one of these depends on.
    fn first(&self, sets: &[Index]) -> u32 {
        sets.iter().map(|&set| self.at(set).variable).min().unwrap_or(LEAF)
    }

    /// What is left of `set` where `variable`, which is none behind its first one, is false, and true.
    fn split(&self, set: Index, variable: u32) -> [Index; 2] {
        let node = self.at(set);
        if node.variable == variable { [node.low, node.high] } else { [set, set] }
    }

    /// What is known, or else found out now. Even what makes no node is counted. Once there is too much, any result
    /// will do.
    fn cached(
        &mut self,
        set: Index,
        operation: Operation,
        find: impl FnOnce(&mut Tables) -> Index,
    ) -> Index {
        if let Some(&known) = self.known.get(&(set, operation)) {
            return known;
        }
        self.made += 1;
        self.full |= self.made > self.limits.made;
        if self.full {
            return set;
        }
        let result = find(self);
        self.known.insert((set, operation), result);
        result
    }

    fn ite(&mut self, set: Index, yes: Index, no: Index) -> Index {
        let yes = if yes == set { ALL } else { yes };
        let no = if no == set { NONE } else { no };
        let (set, yes, no) = match (set, yes, no) {
            (ALL, ..) => return yes,
            (NONE, ..) => return no,
            (_, ALL, NONE) => return set,
            _ if yes == no => return yes,
            // Of both orders of what is in both, or in one of them, one is looked up.
            (a, b, NONE) => (a.min(b), a.max(b), NONE),
            (a, ALL, b) => (a.min(b), ALL, a.max(b)),
            all => all,
        };
        self.cached(set, Operation::Ite(yes, no), |sets| {
            let variable = sets.first(&[set, yes, no]);
            let [[s0, s1], [y0, y1], [n0, n1]] =
                [set, yes, no].map(|set| sets.split(set, variable));
            let low = sets.ite(s0, y0, n0);
            let high = sets.ite(s1, y1, n1);
            sets.node(variable, low, high)
        })
    }

    fn and_exists(&mut self, a: Index, b: Index, mut cube: Index) -> Index {
        let (a, b) = (a.min(b), a.max(b));
        if a == NONE || b == ALL {
            return a;
        }
        let a = if a == b { ALL } else { a };
        let variable = self.first(&[a, b]);
        while self.at(cube).variable < variable {
            cube = self.at(cube).high;
        }
        if cube == ALL {
            return self.ite(a, b, NONE);
        }
        self.cached(a, Operation::AndExists(b, cube), |sets| {
            let [[a0, a1], [b0, b1]] = [a, b].map(|set| sets.split(set, variable));
            let is_hidden = cube == EVERY || sets.at(cube).variable == variable;
            let low = sets.and_exists(a0, b0, cube);
            if is_hidden && low == ALL {
                return ALL;
            }
            let high = sets.and_exists(a1, b1, cube);
            if is_hidden { sets.ite(low, ALL, high) } else { sets.node(variable, low, high) }
        })
    }

    fn rename(&mut self, set: Index, renaming: Renaming) -> Index {
        let Node { variable, low, high } = self.at(set);
        let other = match renaming {
            _ if variable == LEAF => return set,
            Renaming::Swap => variable ^ 1,
            Renaming::Given(index) if self.renamings[index as usize].is_empty() => return set,
            Renaming::Given(index) => {
                self.renamings[index as usize].get(&variable).copied().unwrap_or(variable)
            }
        };
        self.cached(set, Operation::Rename(renaming), |sets| {
            let [low, high] = [low, high].map(|side| sets.rename(side, renaming));
            if sets.first(&[low, high]) > other {
                return sets.node(other, low, high);
            }
            let decides = sets.node(other, NONE, ALL);
            sets.ite(decides, high, low)
        })
    }

    fn restrict(&mut self, set: Index, care: Index) -> Index {
        if care <= ALL || set <= ALL {
            return set;
        }
        if set == care {
            return ALL;
        }
        self.cached(set, Operation::Restrict(care), |sets| {
            let Node { variable, low, high } = sets.at(set);
            let first = sets.at(care).variable;
            let [no, yes] = sets.split(care, first.min(variable));
            if first < variable {
                let care = sets.ite(no, ALL, yes);
                sets.restrict(set, care)
            } else if no == NONE {
                sets.restrict(high, yes)
            } else if yes == NONE {
                sets.restrict(low, no)
            } else {
                let low = sets.restrict(low, no);
                let high = sets.restrict(high, yes);
                sets.node(variable, low, high)
            }
        })
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
        self.ite(Set::NONE, Set::ALL)
    }
}

impl PartialEq for Set<'_> {
    fn eq(&self, other: &Set<'_>) -> bool {
        self.node == other.node
    }
}

impl Eq for Set<'_> {}

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { nodes: 100_000, made: 100_000 };

    /// Variables of the functions that are tried.
    const VARIABLES: u32 = 6;

    /// The function with this truth table: bit by bit, with the first variable as the highest bit.
    fn of_table(sets: &Manager, table: u64, variable: u32) -> Set<'_> {
        if variable == VARIABLES {
            return if table & 1 == 1 { Set::ALL } else { Set::NONE };
        }
        let half = 1 << (VARIABLES - variable - 1);
        let low = of_table(sets, table, variable + 1);
        let high = of_table(sets, table >> half, variable + 1);
        sets.variable(variable).ite(high, low)
    }

    /// The number of a table's bit with the bit of a variable taken out, and that bit.
    fn bit(index: u64, variable: u32) -> u64 {
        index >> (VARIABLES - variable - 1) & 1
    }

    /// The table whose bits are those of `table` at other numbers.
    fn exchanged(table: u64, index: impl Fn(u64) -> u64) -> u64 {
        (0..1 << VARIABLES).fold(0, |all, at| all | (table >> index(at) & 1) << at)
    }

    #[test]
    fn limits_hold_for_good() {
        let sets = Manager::new(Limits { nodes: 4, made: 100 });
        (0..4).fold(Set::ALL, |all, variable| all & sets.variable(variable));
        assert!(sets.is_full());
        sets.0.borrow_mut().collect_garbage(Vec::new());
        assert!(sets.is_full());
        let sets = Manager::new(Limits { nodes: 100, made: 10 });
        for variable in 0..10 {
            sets.variable(variable);
            sets.0.borrow_mut().collect_garbage(Vec::new());
        }
        assert!(!sets.is_full());
        sets.variable(0);
        assert!(sets.is_full());
    }

    proptest! {
        #[test]
        fn operations_are_those_of_truth_tables(
            [a, b, c]: [u64; 3],
            hidden in 0..1u32 << VARIABLES,
            [one, two, three] in Just([0, 1, 2]).prop_shuffle(),
        ) {
            let sets = Manager::new(LIMITS);
            let [x, y, z] = [a, b, c].map(|table| of_table(&sets, table, 0));
            let hidden = (0..VARIABLES).rev().filter(|variable| hidden >> variable & 1 == 1);
            let cube = hidden.clone().fold(Set::ALL, |all, variable| sets.variable(variable) & all);
            let without = |table| hidden.clone().fold(table, |table, variable| {
                let bit = 1 << (VARIABLES - variable - 1);
                exchanged(table, |at| at | bit) | exchanged(table, |at| at & !bit)
            });
            // Round about among the first three; the last one becomes one that is not there, and back.
            let last = VARIABLES - 1;
            let others = [(one, two), (two, three), (three, one), (last, last + 2)];
            let there = sets.renaming(others.into_iter().collect());
            let back = sets.renaming([(last + 2, last)].into_iter().collect());
            let moved = |at| others[..3].iter().fold(at & 0o7, |all, &(from, to)| {
                all | bit(at, to) << (VARIABLES - from - 1)
            });
            for (set, table) in [
                (x.ite(y, z), a & b | !a & c),
                (x & y, a & b),
                (x | y, a | b),
                (x ^ y, a ^ b),
                (!x, !a),
                (x.restrict(y) & y, a & b),
                (x.exists(cube), without(a)),
                (x.and_exists(y, cube), without(a & b)),
                (x.rename(Renaming::Swap), exchanged(a, |at| (at & 0o25) << 1 | at >> 1 & 0o25)),
                (x.rename(there).rename(back), exchanged(a, moved)),
            ] {
                prop_assert_eq!(set, of_table(&sets, table, 0), "equal functions are equal numbers");
            }
            prop_assert_eq!(x.disjoint(y), a & b == 0);
            prop_assert!(x.disjoint(y & !x));
            prop_assert_eq!(x.depends_on(cube), without(a) != a);
        }

        #[test]
        fn what_is_kept_stays_what_it_is([a, b, c]: [u64; 3]) {
            let sets = Manager::new(LIMITS);
            let [x, y] = [a, b].map(|table| of_table(&sets, table, 0));
            _ = x & y;
            sets.0.borrow_mut().collect_garbage(vec![x.node, y.node]);
            of_table(&sets, c, 0);
            prop_assert_eq!([a, b].map(|table| of_table(&sets, table, 0)), [x, y]);
            prop_assert_eq!(x & y, of_table(&sets, a & b, 0));
            for at in 0..1 << VARIABLES {
                let each = (0..VARIABLES).map(|variable| match bit(at, variable) {
                    1 => sets.variable(variable),
                    _ => !sets.variable(variable),
                });
                let is_there = !each.fold(x, |all, one| all & one).disjoint(Set::ALL);
                prop_assert_eq!(is_there, a >> at & 1 == 1);
            }
        }
    }
}
