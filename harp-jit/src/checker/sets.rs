//! Boolean functions, as reduced ordered decision diagrams (R. Bryant, "Graph-based algorithms for boolean function
//! manipulation", 1986; the operation of which all others are made: K. Brace, R. Rudell and R. Bryant, "Efficient
//! implementation of a BDD package", 1990).
//!
//! Equal functions are equal numbers, so what was computed once is looked up from then on, in every round of
//! a fixpoint. Nothing is freed before the proof is over.

use hashbrown::HashMap;

/// A boolean function: the set of assignments for which it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Set(u32);

impl Set {
    pub(super) const NONE: Set = Set(0);
    pub(super) const ALL: Set = Set(1);
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
    Choice(Set, Set),
    /// Without these variables.
    Hide(Set),
    HideOdd,
    Swap,
}

/// All sets of one proof.
#[derive(Debug)]
pub(super) struct Sets {
    nodes: Vec<Node>,
    unique: HashMap<Node, Set>,
    known: HashMap<(Set, Operation), Set>,
}

impl Sets {
    pub(super) fn new() -> Sets {
        let leaf = |set| Node { variable: LEAF, low: set, high: set };
        let nodes = vec![leaf(Set::NONE), leaf(Set::ALL)];
        Sets { nodes, unique: HashMap::new(), known: HashMap::new() }
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Where a variable is true.
    pub(super) fn variable(&mut self, variable: u32) -> Set {
        self.node(variable, Set::NONE, Set::ALL)
    }

    fn node(&mut self, variable: u32, low: Set, high: Set) -> Set {
        if low == high {
            return low;
        }
        let node = Node { variable, low, high };
        let nodes = &mut self.nodes;
        *self.unique.entry(node).or_insert_with(|| {
            nodes.push(node);
            Set((nodes.len() - 1) as u32)
        })
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
    pub(super) fn choice(&mut self, set: Set, yes: Set, no: Set) -> Set {
        let yes = if yes == set { Set::ALL } else { yes };
        let no = if no == set { Set::NONE } else { no };
        match (set, yes, no) {
            (Set::ALL, ..) => return yes,
            (Set::NONE, ..) => return no,
            (_, Set::ALL, Set::NONE) => return set,
            _ if yes == no => return yes,
            _ => {}
        }
        let key = (set, Operation::Choice(yes, no));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let variable = self.at(set).variable.min(self.at(yes).variable).min(self.at(no).variable);
        let [[s0, s1], [y0, y1], [n0, n1]] = [set, yes, no].map(|set| self.split(set, variable));
        let low = self.choice(s0, y0, n0);
        let high = self.choice(s1, y1, n1);
        let result = self.node(variable, low, high);
        self.known.insert(key, result);
        result
    }

    pub(super) fn not(&mut self, set: Set) -> Set {
        self.choice(set, Set::NONE, Set::ALL)
    }

    pub(super) fn and(&mut self, a: Set, b: Set) -> Set {
        // Of both orders, one is looked up.
        let (a, b) = (a.min(b), a.max(b));
        self.choice(a, b, Set::NONE)
    }

    pub(super) fn or(&mut self, a: Set, b: Set) -> Set {
        let (a, b) = (a.min(b), a.max(b));
        self.choice(a, Set::ALL, b)
    }

    /// Where there is a way to assign the variables whose conjunction is `hidden`.
    pub(super) fn hide(&mut self, set: Set, mut hidden: Set) -> Set {
        let Node { variable, low, high } = self.at(set);
        while self.at(hidden).variable < variable {
            hidden = self.at(hidden).high;
        }
        if variable == LEAF || hidden == Set::ALL {
            return set;
        }
        let key = (set, Operation::Hide(hidden));
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.hide(side, hidden));
        let result = if self.at(hidden).variable == variable {
            self.or(low, high)
        } else {
            self.node(variable, low, high)
        };
        self.known.insert(key, result);
        result
    }

    /// Where there is a way to assign the variables with odd numbers.
    pub(super) fn hide_odd(&mut self, set: Set) -> Set {
        let Node { variable, low, high } = self.at(set);
        if variable == LEAF {
            return set;
        }
        let key = (set, Operation::HideOdd);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.hide_odd(side));
        let result = match variable % 2 {
            0 => self.node(variable, low, high),
            _ => self.or(low, high),
        };
        self.known.insert(key, result);
        result
    }

    /// The same with each even variable in the place of the odd one behind it, and the other way round.
    pub(super) fn swap(&mut self, set: Set) -> Set {
        let Node { variable, low, high } = self.at(set);
        if variable == LEAF {
            return set;
        }
        let key = (set, Operation::Swap);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let [low, high] = [low, high].map(|side| self.swap(side));
        let other = self.variable(variable ^ 1);
        let result = self.choice(other, high, low);
        self.known.insert(key, result);
        result
    }
}
