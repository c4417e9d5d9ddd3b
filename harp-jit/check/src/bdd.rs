//! Boolean functions, as reduced ordered decision diagrams (R. Bryant, "Graph-based algorithms for boolean function
//! manipulation", 1986; the operation of which all others are made: K. Brace, R. Rudell and R. Bryant, "Efficient
//! implementation of a BDD package", 1990).
//!
//! Equal functions are equal numbers, so what was computed once is looked up from then on, in every round of
//! a fixpoint. What is not kept then makes room, from time to time.

use hashbrown::HashMap;

/// A boolean function: the set of assignments for which it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Set(u32);

impl Set {
    pub(crate) const NONE: Set = Set(0);
    pub(crate) const ALL: Set = Set(1);
}

/// Where a variable decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    variable: u32,
    low: Set,
    high: Set,
}

/// Behind all variables.
const LEAF: u32 = u32::MAX;

/// What is computed of a set, and with what else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// The one set where the first is, the other elsewhere.
    Ite(Set, Set),
    /// Without these variables.
    Exists(Set),
    /// Among the first, without these variables.
    AndExists(Set, Set),
    Rename(Renaming),
    Swap,
    /// As simple as it can be said where this is known.
    Restrict(Set),
    /// Whether nothing is in both: all then.
    Disjoint(Set),
    /// Whether some of these variables decide: all then.
    DependsOn(Set),
}

/// Names of variables that are exchanged for others, all at once: an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Renaming(usize);

/// All sets of one proof.
#[derive(Debug)]
pub(crate) struct Manager {
    limits: Limits,
    nodes: Vec<Node>,
    /// Nodes that are no set's any more.
    free: Vec<Set>,
    unique: HashMap<Node, Set>,
    known: HashMap<(Set, Operation), Set>,
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

/// Room is made when there are so many times fewer nodes than there may be, or twice those that were kept.
const CROWDED: usize = 16;

impl Manager {
    pub(crate) fn new(limits: Limits) -> Manager {
        let leaf = |set| Node { variable: LEAF, low: set, high: set };
        Manager {
            limits,
            nodes: vec![leaf(Set::NONE), leaf(Set::ALL)],
            free: Vec::new(),
            unique: HashMap::new(),
            known: HashMap::new(),
            renamings: Vec::new(),
            made: 0,
            crowded: limits.nodes / CROWDED,
            full: false,
        }
    }

    /// Whether there were too many nodes: then no result can be relied on.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Whether it is time to make room.
    pub(crate) fn wants_collection(&self) -> bool {
        self.nodes.len() - self.free.len() > self.crowded
    }

    /// Makes room: only these sets are kept, and no renaming.
    pub(crate) fn collect_garbage(&mut self, sets: impl Iterator<Item = Set>) {
        let mut kept = vec![false; self.nodes.len()];
        kept[..2].fill(true);
        let mut todo: Vec<Set> = sets.collect();
        while let Some(set) = todo.pop() {
            if !std::mem::replace(&mut kept[set.0 as usize], true) {
                let Node { low, high, .. } = self.at(set);
                todo.extend([low, high]);
            }
        }
        self.free = (0..kept.len()).filter(|&at| !kept[at]).map(|at| Set(at as u32)).collect();
        self.unique.retain(|_, set| kept[set.0 as usize]);
        self.known.clear();
        self.renamings.clear();
        self.crowded = (self.limits.nodes / CROWDED).max(2 * self.unique.len());
    }

    /// Where a variable is true.
    pub(crate) fn variable(&mut self, variable: u32) -> Set {
        self.node(variable, Set::NONE, Set::ALL)
    }

    fn node(&mut self, variable: u32, low: Set, high: Set) -> Set {
        if low == high {
            return low;
        }
        let node = Node { variable, low, high };
        let Manager { nodes, free, made, full, limits, .. } = self;
        *self.unique.entry(node).or_insert_with(|| {
            *made += 1;
            let set = free.pop().unwrap_or_else(|| {
                nodes.push(node);
                Set((nodes.len() - 1) as u32)
            });
            nodes[set.0 as usize] = node;
            *full |= nodes.len() - free.len() > limits.nodes || *made > limits.made;
            set
        })
    }

    /// Something is computed that makes no node. Whether there may still be more of it.
    fn work(&mut self) -> bool {
        self.made += 1;
        self.full |= self.made > self.limits.made;
        !self.full
    }

    fn at(&self, set: Set) -> Node {
        self.nodes[set.0 as usize]
    }

    /// What is left of `set` where `variable`, which is none behind its first one, is false, and true.
    fn split(&self, set: Set, variable: u32) -> [Set; 2] {
        let node = self.at(set);
        if node.variable == variable { [node.low, node.high] } else { [set, set] }
    }

    /// `yes` where `set` is, `no` elsewhere.
    pub(crate) fn ite(&mut self, set: Set, yes: Set, no: Set) -> Set {
        let yes = if yes == set { Set::ALL } else { yes };
        let no = if no == set { Set::NONE } else { no };
        match (set, yes, no) {
            (Set::ALL, ..) => return yes,
            (Set::NONE, ..) => return no,
            (_, Set::ALL, Set::NONE) => return set,
            _ if yes == no => return yes,
            _ => {}
        }
        let key = (set, Operation::Ite(yes, no));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        if self.is_full() {
            return set;
        }
        let variable = self.at(set).variable.min(self.at(yes).variable).min(self.at(no).variable);
        let [[s0, s1], [y0, y1], [n0, n1]] = [set, yes, no].map(|set| self.split(set, variable));
        let low = self.ite(s0, y0, n0);
        let high = self.ite(s1, y1, n1);
        let result = self.node(variable, low, high);
        self.known.insert(key, result);
        result
    }

    pub(crate) fn not(&mut self, set: Set) -> Set {
        self.ite(set, Set::NONE, Set::ALL)
    }

    pub(crate) fn and(&mut self, a: Set, b: Set) -> Set {
        // Of both orders, one is looked up.
        let (a, b) = (a.min(b), a.max(b));
        self.ite(a, b, Set::NONE)
    }

    pub(crate) fn or(&mut self, a: Set, b: Set) -> Set {
        let (a, b) = (a.min(b), a.max(b));
        self.ite(a, Set::ALL, b)
    }

    /// Whether nothing is in both.
    pub(crate) fn disjoint(&mut self, a: Set, b: Set) -> bool {
        let (a, b) = (a.min(b), a.max(b));
        match (a, b) {
            (Set::NONE, _) => return true,
            (Set::ALL, _) => return false,
            _ if a == b => return false,
            _ => {}
        }
        let key = (a, Operation::Disjoint(b));
        if let Some(&known) = self.known.get(&key) {
            return known == Set::ALL;
        }
        if !self.work() {
            return false;
        }
        let variable = self.at(a).variable.min(self.at(b).variable);
        let [[a0, a1], [b0, b1]] = [a, b].map(|set| self.split(set, variable));
        let result = self.disjoint(a0, b0) && self.disjoint(a1, b1);
        self.known.insert(key, if result { Set::ALL } else { Set::NONE });
        result
    }

    /// Whether `set` depends on one of the variables whose conjunction is `cube`.
    pub(crate) fn depends_on(&mut self, set: Set, cube: Set) -> bool {
        let Node { variable, low, high } = self.at(set);
        let cube = self.from(cube, variable);
        if variable == LEAF || cube == Set::ALL {
            return false;
        }
        if self.at(cube).variable == variable {
            return true;
        }
        let key = (set, Operation::DependsOn(cube));
        if let Some(&known) = self.known.get(&key) {
            return known == Set::ALL;
        }
        let result = self.depends_on(low, cube) || self.depends_on(high, cube);
        self.known.insert(key, if result { Set::ALL } else { Set::NONE });
        result
    }

    /// Of the variables whose conjunction is `cube` those from `variable` on.
    fn from(&self, mut cube: Set, variable: u32) -> Set {
        while self.at(cube).variable < variable {
            cube = self.at(cube).high;
        }
        cube
    }

    /// Where there is a way to assign the variables whose conjunction is `cube`.
    pub(crate) fn exists(&mut self, set: Set, cube: Set) -> Set {
        let Node { variable, low, high } = self.at(set);
        let cube = self.from(cube, variable);
        if variable == LEAF || cube == Set::ALL {
            return set;
        }
        let key = (set, Operation::Exists(cube));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.exists(side, cube));
        let result = if self.at(cube).variable == variable {
            self.or(low, high)
        } else {
            self.node(variable, low, high)
        };
        self.known.insert(key, result);
        result
    }

    /// As [`Manager::exists`], of what is in both, which is not made itself: it can be much larger (J. Burch and others,
    /// "Symbolic model checking: 10^20 states and beyond", 1990: the relational product).
    pub(crate) fn and_exists(&mut self, a: Set, b: Set, cube: Set) -> Set {
        let (a, b) = (a.min(b), a.max(b));
        if a == Set::NONE {
            return Set::NONE;
        }
        if a == Set::ALL || a == b {
            return self.exists(b, cube);
        }
        let variable = self.at(a).variable.min(self.at(b).variable);
        let cube = self.from(cube, variable);
        if cube == Set::ALL {
            return self.and(a, b);
        }
        let key = (a, Operation::AndExists(b, cube));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [[a0, a1], [b0, b1]] = [a, b].map(|set| self.split(set, variable));
        let is_hidden = self.at(cube).variable == variable;
        let low = self.and_exists(a0, b0, cube);
        let result = if is_hidden && low == Set::ALL {
            Set::ALL
        } else {
            let high = self.and_exists(a1, b1, cube);
            if is_hidden { self.or(low, high) } else { self.node(variable, low, high) }
        };
        self.known.insert(key, result);
        result
    }

    /// Variables with values for which a set is true, whatever the others are; nothing if it is empty.
    pub(crate) fn model(&self, set: Set) -> Vec<(u32, bool)> {
        let mut model = Vec::new();
        let mut at = set;
        while self.at(at).variable != LEAF {
            let Node { variable, low, high } = self.at(at);
            let value = low == Set::NONE;
            model.push((variable, value));
            at = if value { high } else { low };
        }
        model
    }

    /// Variables that become others, all at once.
    pub(crate) fn renaming(&mut self, others: HashMap<u32, u32>) -> Renaming {
        self.renamings.push(others);
        Renaming(self.renamings.len() - 1)
    }

    /// The same, said of other variables.
    pub(crate) fn rename(&mut self, set: Set, renaming: Renaming) -> Set {
        let others = &self.renamings[renaming.0];
        let Node { variable, low, high } = self.at(set);
        if variable == LEAF || others.is_empty() {
            return set;
        }
        let variable = others.get(&variable).copied().unwrap_or(variable);
        let key = (set, Operation::Rename(renaming));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.rename(side, renaming));
        let decides = self.variable(variable);
        let result = self.ite(decides, high, low);
        self.known.insert(key, result);
        result
    }

    /// A set that is `set` among those in `care`, and whatever is simple elsewhere (O. Coudert and J. Madre, "A
    /// unified framework for the formal verification of sequential circuits", 1990: `restrict`).
    pub(crate) fn restrict(&mut self, set: Set, care: Set) -> Set {
        if care == Set::ALL || care == Set::NONE || matches!(set, Set::ALL | Set::NONE) {
            return set;
        }
        if set == care {
            return Set::ALL;
        }
        let key = (set, Operation::Restrict(care));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let Node { variable, low, high } = self.at(set);
        let first = self.at(care).variable;
        let [no, yes] = self.split(care, first.min(variable));
        let result = if first < variable {
            let care = self.or(no, yes);
            self.restrict(set, care)
        } else if no == Set::NONE {
            self.restrict(high, yes)
        } else if yes == Set::NONE {
            self.restrict(low, no)
        } else {
            let low = self.restrict(low, no);
            let high = self.restrict(high, yes);
            self.node(variable, low, high)
        };
        self.known.insert(key, result);
        result
    }

    /// The same with each even variable in the place of the odd one behind it, and the other way round.
    pub(crate) fn swap(&mut self, set: Set) -> Set {
        let Node { variable, low, high } = self.at(set);
        if variable == LEAF {
            return set;
        }
        let key = (set, Operation::Swap);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.swap(side));
        let other = variable ^ 1;
        let behind = self.at(low).variable.min(self.at(high).variable);
        let result = if behind > variable.max(other) {
            self.node(other, low, high)
        } else {
            let other = self.variable(other);
            self.ite(other, high, low)
        };
        self.known.insert(key, result);
        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { nodes: 100_000, made: 100_000 };

    /// Variables of the functions that are tried.
    const VARIABLES: u32 = 6;

    /// A function with this truth table.
    fn of_table(sets: &mut Manager, table: u64, variable: u32) -> Set {
        if variable == VARIABLES {
            return if table & 1 == 1 { Set::ALL } else { Set::NONE };
        }
        let half = 1 << (VARIABLES - variable - 1);
        let low = of_table(sets, table, variable + 1);
        let high = of_table(sets, table >> half, variable + 1);
        let decides = sets.variable(variable);
        sets.ite(decides, high, low)
    }

    /// The truth table of a function: bit by bit, with the first variable as the highest bit.
    fn table(sets: &Manager, set: Set) -> u64 {
        (0..1 << VARIABLES).fold(0, |table, index: u64| {
            let mut at = set;
            while sets.at(at).variable != LEAF {
                let node = sets.at(at);
                let bit = VARIABLES - node.variable - 1;
                at = if index >> bit & 1 == 1 { node.high } else { node.low };
            }
            table | u64::from(at == Set::ALL) << index
        })
    }

    /// The bits of a table whose index has a bit exchanged.
    fn exchanged(table: u64, index: impl Fn(u64) -> u64) -> u64 {
        (0..1 << VARIABLES).fold(0, |all, at| all | (table >> index(at) & 1) << at)
    }

    #[test]
    fn limits_hold_for_good() {
        let mut sets = Manager::new(Limits { nodes: 4, made: 100 });
        let all = (0..4).fold(Set::ALL, |all, variable| {
            let one = sets.variable(variable);
            sets.and(all, one)
        });
        assert!(sets.is_full(), "{all:?}");
        sets.collect_garbage(std::iter::empty());
        assert!(sets.is_full());
        let mut sets = Manager::new(Limits { nodes: 100, made: 10 });
        for variable in 0..10 {
            sets.variable(variable);
            sets.collect_garbage(std::iter::empty());
        }
        assert!(!sets.is_full());
        sets.variable(0);
        assert!(sets.is_full());
    }

    proptest! {
        #[test]
        fn operations_are_those_of_truth_tables(a: u64, b: u64, c: u64) {
            let mut sets = Manager::new(LIMITS);
            let [x, y, z] = [a, b, c].map(|table| of_table(&mut sets, table, 0));
            prop_assert_eq!(table(&sets, x), a);
            let choice = sets.ite(x, y, z);
            prop_assert_eq!(table(&sets, choice), a & b | !a & c);
            let and = sets.and(x, y);
            prop_assert_eq!(table(&sets, and), a & b);
            let or = sets.or(x, y);
            prop_assert_eq!(table(&sets, or), a | b);
            let not = sets.not(x);
            prop_assert_eq!(table(&sets, not), !a);
            prop_assert_eq!(of_table(&mut sets, a & b, 0), and, "equal functions are equal numbers");
        }

        #[test]
        fn what_is_given_is_right_where_it_matters(a: u64, care: u64) {
            let mut sets = Manager::new(LIMITS);
            let [set, among] = [a, care].map(|table| of_table(&mut sets, table, 0));
            let given = sets.restrict(set, among);
            prop_assert_eq!(table(&sets, given) & care, a & care);
        }

        #[test]
        fn what_is_kept_stays_what_it_is(a: u64, b: u64, c: u64) {
            let mut sets = Manager::new(LIMITS);
            let [x, y] = [a, b].map(|table| of_table(&mut sets, table, 0));
            let before = sets.and(x, y);
            sets.collect_garbage([x, y].into_iter());
            of_table(&mut sets, c, 0);
            prop_assert_eq!([x, y].map(|set| table(&sets, set)), [a, b]);
            prop_assert_eq!(of_table(&mut sets, a, 0), x, "it is still found");
            let after = sets.and(x, y);
            prop_assert_eq!(table(&sets, after), a & b, "{:?} was forgotten", before);
        }

        #[test]
        fn an_image_is_what_is_hidden_of_both(a: u64, b: u64, cube in 0..1u32 << VARIABLES) {
            let mut sets = Manager::new(LIMITS);
            let [x, y] = [a, b].map(|table| of_table(&mut sets, table, 0));
            let each = (0..VARIABLES).rev().filter(|variable| cube >> variable & 1 == 1);
            let cube = each.fold(Set::ALL, |all, variable| {
                let one = sets.variable(variable);
                sets.and(one, all)
            });
            let image = sets.and_exists(x, y, cube);
            let both = sets.and(x, y);
            prop_assert_eq!(image, sets.exists(both, cube));
        }

        #[test]
        fn variables_become_others_at_once(a: u64, [one, two, three] in Just([0, 1, 2]).prop_shuffle()) {
            let mut sets = Manager::new(LIMITS);
            let set = of_table(&mut sets, a, 0);
            // Round about among the first three; the last one becomes one that is not there.
            let last = VARIABLES - 1;
            let others = [(one, two), (two, three), (three, one), (last, last + 2)];
            let renaming = sets.renaming(others.into_iter().collect());
            let renamed = sets.rename(set, renaming);
            let bit = |variable: u32| VARIABLES - variable - 1;
            let expected = exchanged(a, |at| {
                let moved = others[..3].iter().fold(0, |all, &(from, to)| all | (at >> bit(to) & 1) << bit(from));
                at & 0o7 | moved
            });
            let back = sets.renaming([(last + 2, last)].into_iter().collect());
            let renamed = sets.rename(renamed, back);
            prop_assert_eq!(table(&sets, renamed), expected);
        }

        #[test]
        fn variables_are_hidden_and_exchanged(a: u64, cube in 0..VARIABLES) {
            let mut sets = Manager::new(LIMITS);
            let set = of_table(&mut sets, a, 0);
            let bit = 1 << (VARIABLES - cube - 1);
            let variable = sets.variable(cube);
            let without = sets.exists(set, variable);
            let expected = exchanged(a, |at| at | bit) | exchanged(a, |at| at & !bit);
            prop_assert_eq!(table(&sets, without), expected);
            let swapped = sets.swap(set);
            let expected = exchanged(a, |at| (at & 0o25) << 1 | at >> 1 & 0o25);
            prop_assert_eq!(table(&sets, swapped), expected);
        }
    }
}
