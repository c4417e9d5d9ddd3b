//! The few numbers that lanes are told apart by, and how closely a proof looks at them.

use std::collections::BTreeSet;
use std::rc::Rc;

/// The most numbers that are kept apart.
pub(crate) const MOST_NUMBERS: usize = 16;

/// What lanes are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Number {
    Is(u64),
    /// None of the others that are told apart, and perhaps one of them.
    Other,
}

impl Number {
    pub(crate) const ZERO: Number = Number::Is(0);
    pub(crate) const ONE: Number = Number::Is(1);
}

/// A few numbers, ascending.
pub(crate) type Numbers = Rc<[Number]>;

/// How much is found out. Less is cheaper and mostly enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precision {
    /// Lanes are told apart by numbers where all lanes have one of a few.
    Coarse,
    /// Also where only some lanes have one, and values get names where paths meet.
    Fine,
    /// Also by numbers of which the program itself makes conditions, if a warp must agree on what comes of these.
    Thorough,
}

impl Precision {
    pub(crate) const ALL: [Precision; 3] =
        [Precision::Coarse, Precision::Fine, Precision::Thorough];

    /// Whether values get names where paths meet.
    pub(crate) fn names_ways(self) -> bool {
        self >= Precision::Fine
    }
}

/// All numbers that any of several values can be, if they are few; none if nothing is known of all.
pub(crate) fn union<'a>(all: impl Iterator<Item = &'a Option<Numbers>>) -> Option<Numbers> {
    let mut union = BTreeSet::new();
    for numbers in all {
        union.extend(numbers.as_deref().unwrap_or(&[Number::Other]));
    }
    let known = union.first().is_some_and(|&first| first != Number::Other);
    (known && union.len() <= MOST_NUMBERS).then(|| union.into_iter().collect())
}
