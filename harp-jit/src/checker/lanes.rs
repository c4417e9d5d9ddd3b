//! Sets of lanes, and of pairs of lanes, by what places hold in them.
//!
//! A *condition* says of a place that it holds a number. Each has two variables: an even one for a lane, the odd one
//! behind it for another lane. A set of lanes is a function of even variables.

use std::cell::RefCell;

use hashbrown::HashMap;

use super::fact::{Number, Precision};
use super::places::Place;
use super::sets::{Limits, Renaming, Set, Sets};
use super::state::State;

/// What has a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Condition {
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
pub(super) struct Lanes {
    sets: RefCell<Sets>,
    variables: RefCell<HashMap<Condition, u32>>,
}

impl Lanes {
    pub(super) fn new(precision: Precision) -> Lanes {
        let limits = match precision {
            Precision::Coarse => LIMITS,
            Precision::Fine | Precision::Thorough => LIMITS_AGAIN,
        };
        Lanes { sets: RefCell::new(Sets::new(limits)), variables: RefCell::default() }
    }

    /// Whether the proof takes too long.
    pub(super) fn is_full(&self) -> bool {
        self.sets.borrow().is_full()
    }

    /// Makes room for other sets than those of these states, if it is time to.
    pub(super) fn make_room<'a>(&self, states: impl Iterator<Item = &'a State>) {
        let mut sets = self.sets.borrow_mut();
        if sets.is_crowded() {
            sets.keep(states.flat_map(State::sets));
        }
    }

    fn number(&self, condition: Condition) -> u32 {
        let mut variables = self.variables.borrow_mut();
        let next = variables.len() as u32;
        *variables.entry(condition).or_insert(next)
    }

    /// The lanes in which a condition is true.
    pub(super) fn condition(&self, condition: Condition) -> Set {
        let variable = 2 * self.number(condition);
        self.sets.borrow_mut().variable(variable)
    }

    pub(super) fn not(&self, set: Set) -> Set {
        self.sets.borrow_mut().not(set)
    }

    pub(super) fn and(&self, a: Set, b: Set) -> Set {
        self.sets.borrow_mut().and(a, b)
    }

    pub(super) fn or(&self, a: Set, b: Set) -> Set {
        self.sets.borrow_mut().or(a, b)
    }

    /// Those of `a` that are not in `b`.
    pub(super) fn minus(&self, a: Set, b: Set) -> Set {
        let b = self.not(b);
        self.and(a, b)
    }

    pub(super) fn choice(&self, set: Set, yes: Set, no: Set) -> Set {
        self.sets.borrow_mut().choice(set, yes, no)
    }

    /// Those in both or in neither.
    pub(super) fn same(&self, a: Set, b: Set) -> Set {
        let no = self.not(b);
        self.choice(a, b, no)
    }

    /// Those in one of them.
    pub(super) fn either(&self, a: Set, b: Set) -> Set {
        let no = self.not(b);
        self.choice(a, no, b)
    }

    /// The same, said of the other lane of a pair.
    pub(super) fn other(&self, set: Set) -> Set {
        self.sets.borrow_mut().swap(set)
    }

    /// The pairs of which both lanes are in `set`.
    pub(super) fn both(&self, set: Set) -> Set {
        let other = self.other(set);
        self.and(set, other)
    }

    /// A simple set that is `set` among those in `care`.
    pub(super) fn given(&self, set: Set, care: Set) -> Set {
        if set <= Set::ALL { set } else { self.sets.borrow_mut().given(set, care) }
    }

    /// What `set` says that it does not say any more without the conditions in `hidden`.
    pub(super) fn told_by(&self, set: Set, hidden: Set) -> Set {
        self.given(set, self.hide(set, hidden))
    }

    /// Conditions of one lane, to be hidden.
    pub(super) fn hidden(&self, conditions: impl IntoIterator<Item = Condition>) -> Set {
        let mut variables: Vec<u32> =
            conditions.into_iter().map(|condition| 2 * self.number(condition)).collect();
        variables.sort_unstable();
        let mut sets = self.sets.borrow_mut();
        variables.into_iter().rev().fold(Set::ALL, |all, variable| {
            let variable = sets.variable(variable);
            sets.and(variable, all)
        })
    }

    /// `set` without what it says of the conditions in `hidden`.
    pub(super) fn hide(&self, set: Set, hidden: Set) -> Set {
        self.sets.borrow_mut().hide(set, hidden)
    }

    /// What both say, without what they say of the conditions in `hidden`.
    pub(super) fn image(&self, a: Set, b: Set, hidden: Set) -> Set {
        self.sets.borrow_mut().image(a, b, hidden)
    }

    /// The first condition of each two becomes the second, of one lane of a pair and of the other.
    pub(super) fn renaming(&self, both: [&[(Condition, Condition)]; 2]) -> Renaming {
        let mut others = HashMap::new();
        for (lane, conditions) in (0..).zip(both) {
            for &(from, to) in conditions {
                let [from, to] = [from, to].map(|condition| 2 * self.number(condition) + lane);
                others.insert(from, to);
            }
        }
        self.sets.borrow_mut().renaming(others)
    }

    pub(super) fn rename(&self, set: Set, renaming: Renaming) -> Set {
        self.sets.borrow_mut().rename(set, renaming)
    }

    /// Whether `set` says something of the conditions in `hidden`.
    pub(super) fn tells(&self, set: Set, hidden: Set) -> bool {
        set > Set::ALL && self.sets.borrow_mut().tells(set, hidden)
    }

    /// Whether nothing is in both.
    pub(super) fn apart(&self, a: Set, b: Set) -> bool {
        self.sets.borrow_mut().apart(a, b)
    }
}
