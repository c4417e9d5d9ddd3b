//! Sets of lanes, and of pairs of lanes, described by the contents of places.
//!
//! A *condition* says of a place that it holds a number. Each has two variables: an even one for a lane, the odd one
//! behind it for another lane. A set of lanes is a function of even variables.

use std::cell::RefCell;

use harp_bdd::{Limits, Manager, Renaming, Set};
use hashbrown::HashMap;

use crate::number::{Number, Precision};
use crate::places::Place;

/// A condition, which has a variable of its own in the sets.
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

/// The same where more is found out: proofs that need that were seen to take up to 42 million, and what is no proof at all
/// is not worth minutes.
const LIMITS_AGAIN: Limits = Limits { made: 50_000_000, ..LIMITS };

/// Makes and keeps all sets of a proof.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(crate) sets: Manager,
    variables: RefCell<HashMap<Condition, u32>>,
    /// Whether it is followed in which lanes places hold the same.
    pub(crate) follows_copies: bool,
}

impl PartialEq for Lanes {
    /// A proof has only one.
    fn eq(&self, other: &Lanes) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Lanes {}

impl Lanes {
    pub(crate) fn new(precision: Precision) -> Lanes {
        let limits = match precision {
            Precision::Coarse => LIMITS,
            Precision::Fine | Precision::Thorough => LIMITS_AGAIN,
        };
        Lanes {
            sets: Manager::new(limits),
            variables: RefCell::default(),
            follows_copies: precision.names_ways(),
        }
    }

    fn number(&self, condition: Condition) -> u32 {
        let mut variables = self.variables.borrow_mut();
        let next = variables.len() as u32;
        *variables.entry(condition).or_insert(next)
    }

    /// The lanes in which a condition is true.
    pub(crate) fn condition(&self, condition: Condition) -> Set<'_> {
        self.sets.variable(2 * self.number(condition))
    }

    /// Conditions of one lane, as a conjunction that is to be hidden.
    pub(crate) fn cube(&self, conditions: impl IntoIterator<Item = Condition>) -> Set<'_> {
        let mut variables: Vec<u32> =
            conditions.into_iter().map(|condition| 2 * self.number(condition)).collect();
        variables.sort_unstable();
        let each = variables.into_iter().rev().map(|variable| self.sets.variable(variable));
        each.fold(Set::ALL, |all, one| one & all)
    }

    /// The first condition of each two becomes the second, of one lane of a pair and of the other.
    pub(crate) fn renaming(&self, both: [&[(Condition, Condition)]; 2]) -> Renaming {
        let lanes = (0..).zip(both);
        let others = lanes.flat_map(|(lane, conditions)| {
            let variable = move |condition| 2 * self.number(condition) + lane;
            conditions.iter().map(move |&(from, to)| (variable(from), variable(to)))
        });
        self.sets.renaming(others)
    }

    /// An example: conditions of the first and of the second lane of some pair in a set.
    pub(crate) fn example(&self, pairs: Set<'_>) -> [Vec<(Condition, bool)>; 2] {
        let variables = self.variables.borrow();
        let conditions: HashMap<u32, Condition> =
            variables.iter().map(|(&condition, &number)| (number, condition)).collect();
        let mut example = [Vec::new(), Vec::new()];
        for (variable, value) in pairs.model() {
            example[(variable % 2) as usize].push((conditions[&(variable / 2)], value));
        }
        example
    }
}
