//! Manager of lanes, and of pairs of lanes, by what places hold in them.
//!
//! A *condition* says of a place that it holds a number. Each has two variables: an even one for a lane, the odd one
//! behind it for another lane. A set of lanes is a function of even variables.

use std::cell::RefCell;

use hashbrown::HashMap;

use crate::bdd::{Limits, Manager, Renaming, Set};
use crate::number::{Number, Precision};
use crate::places::Place;

/// What has a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// The place holds the number, which is not 0.
    Holds(Place, Number),
    /// The place is about to.
    Next(Place, Number),
}

/// Where there are more nodes than these, the proof takes too long: some three hundred megabytes, and two
/// minutes.
const LIMITS: Limits = Limits { nodes: 4_000_000, made: 150_000_000 };

/// The same where more is found out: proofs that need that were seen to take a fiftieth of that, and what is no proof at all
/// is not worth minutes.
const LIMITS_AGAIN: Limits = Limits { made: 10_000_000, ..LIMITS };

/// Makes and keeps all sets of a proof.
#[derive(Debug)]
pub(crate) struct Lanes {
    sets: RefCell<Manager>,
    variables: RefCell<HashMap<Condition, u32>>,
}

impl Lanes {
    pub(crate) fn new(precision: Precision) -> Lanes {
        let limits = match precision {
            Precision::Coarse => LIMITS,
            Precision::Fine | Precision::Thorough => LIMITS_AGAIN,
        };
        Lanes { sets: RefCell::new(Manager::new(limits)), variables: RefCell::default() }
    }

    /// Whether the proof takes too long.
    pub(crate) fn is_full(&self) -> bool {
        self.sets.borrow().is_full()
    }

    /// Makes room for other sets than these, if it is time to.
    pub(crate) fn collect_garbage(&self, roots: impl Iterator<Item = Set>) {
        let mut sets = self.sets.borrow_mut();
        if sets.wants_collection() {
            sets.collect_garbage(roots);
        }
    }

    fn number(&self, condition: Condition) -> u32 {
        let mut variables = self.variables.borrow_mut();
        let next = variables.len() as u32;
        *variables.entry(condition).or_insert(next)
    }

    /// The lanes in which a condition is true.
    pub(crate) fn condition(&self, condition: Condition) -> Set {
        let variable = 2 * self.number(condition);
        self.sets.borrow_mut().variable(variable)
    }

    pub(crate) fn not(&self, set: Set) -> Set {
        self.sets.borrow_mut().not(set)
    }

    pub(crate) fn and(&self, a: Set, b: Set) -> Set {
        self.sets.borrow_mut().and(a, b)
    }

    pub(crate) fn or(&self, a: Set, b: Set) -> Set {
        self.sets.borrow_mut().or(a, b)
    }

    /// Those of `a` that are not in `b`.
    pub(crate) fn and_not(&self, a: Set, b: Set) -> Set {
        let b = self.not(b);
        self.and(a, b)
    }

    pub(crate) fn ite(&self, set: Set, yes: Set, no: Set) -> Set {
        self.sets.borrow_mut().ite(set, yes, no)
    }

    /// Those in both or in neither.
    pub(crate) fn iff(&self, a: Set, b: Set) -> Set {
        let no = self.not(b);
        self.ite(a, b, no)
    }

    /// Those in one of them.
    pub(crate) fn xor(&self, a: Set, b: Set) -> Set {
        let no = self.not(b);
        self.ite(a, no, b)
    }

    /// The same, said of the other lane of a pair.
    pub(crate) fn other(&self, set: Set) -> Set {
        self.sets.borrow_mut().swap(set)
    }

    /// The pairs of which both lanes are in `set`.
    pub(crate) fn both(&self, set: Set) -> Set {
        let other = self.other(set);
        self.and(set, other)
    }

    /// A simple set that is `set` among those in `care`.
    pub(crate) fn restrict(&self, set: Set, care: Set) -> Set {
        if set <= Set::ALL { set } else { self.sets.borrow_mut().restrict(set, care) }
    }

    /// What `set` says that it does not say any more without the conditions in `cube`.
    pub(crate) fn constraint_on(&self, set: Set, cube: Set) -> Set {
        self.restrict(set, self.exists(set, cube))
    }

    /// Conditions of one lane, to be cube.
    pub(crate) fn cube(&self, conditions: impl IntoIterator<Item = Condition>) -> Set {
        let mut variables: Vec<u32> =
            conditions.into_iter().map(|condition| 2 * self.number(condition)).collect();
        variables.sort_unstable();
        let mut sets = self.sets.borrow_mut();
        variables.into_iter().rev().fold(Set::ALL, |all, variable| {
            let variable = sets.variable(variable);
            sets.and(variable, all)
        })
    }

    /// `set` without what it says of the conditions in `cube`.
    pub(crate) fn exists(&self, set: Set, cube: Set) -> Set {
        self.sets.borrow_mut().exists(set, cube)
    }

    /// What both say, without what they say of the conditions in `cube`.
    pub(crate) fn and_exists(&self, a: Set, b: Set, cube: Set) -> Set {
        self.sets.borrow_mut().and_exists(a, b, cube)
    }

    /// The first condition of each two becomes the second, of one lane of a pair and of the other.
    pub(crate) fn renaming(&self, both: [&[(Condition, Condition)]; 2]) -> Renaming {
        let mut others = HashMap::new();
        for (lane, conditions) in (0..).zip(both) {
            for &(from, to) in conditions {
                let [from, to] = [from, to].map(|condition| 2 * self.number(condition) + lane);
                others.insert(from, to);
            }
        }
        self.sets.borrow_mut().renaming(others)
    }

    pub(crate) fn rename(&self, set: Set, renaming: Renaming) -> Set {
        self.sets.borrow_mut().rename(set, renaming)
    }

    /// Whether `set` says something of the conditions in `cube`.
    pub(crate) fn depends_on(&self, set: Set, cube: Set) -> bool {
        set > Set::ALL && self.sets.borrow_mut().depends_on(set, cube)
    }

    /// What is true of the first lane of some pair in a set, and of the second.
    pub(crate) fn example(&self, pairs: Set) -> [Vec<(Condition, bool)>; 2] {
        let mut example = [Vec::new(), Vec::new()];
        let variables = self.variables.borrow();
        let conditions: HashMap<u32, Condition> =
            variables.iter().map(|(&condition, &number)| (number, condition)).collect();
        for (variable, value) in self.sets.borrow().model(pairs) {
            example[(variable % 2) as usize].push((conditions[&(variable / 2)], value));
        }
        example
    }

    /// Whether nothing is in both.
    pub(crate) fn disjoint(&self, a: Set, b: Set) -> bool {
        self.sets.borrow_mut().disjoint(a, b)
    }
}
