//! Facts about the value in one place.
//!
//! Either the value is one of a few numbers, which tell lanes apart, or the fact states in which pairs of lanes it may
//! differ. Both forms state in which lanes the place holds an undefined value.

use std::rc::Rc;

use harp_bdd::Set;
use smallvec::SmallVec;

use crate::number::{Number, Numbers};
use crate::numbering::ValueNumber;
use crate::op::Form;
use crate::record::Name;

/// A fact about the value that a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) form: Form,
    /// The numbers that the value can be, if they are few. A constant is one number.
    pub(crate) numbers: Option<Numbers>,
    /// Whether it was computed from other numbers: it can be compared, but it is not what says where lanes
    /// go.
    pub(crate) computed: bool,
    /// The lanes in which it is undefined.
    pub(crate) undefined: Set<'a>,
    /// The pairs of lanes in which it may differ, unless one of them holds one of a few numbers.
    pub(crate) differs: Set<'a>,
    /// Predicates that were selected and are what this value is: true where it is not zero.
    pub(crate) names: SmallVec<[Name; 1]>,
    /// What is left of other predicates where this value is taken from some.
    pub(crate) mixed: Vec<Mixed<'a>>,
}

/// A predicate that was exchanged for another: where it is taken from that, it is left itself. What was not meant
/// to be read in the one does not matter then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mixed<'a> {
    /// The other.
    pub(crate) with: ValueNumber,
    /// In which lanes what is left is not what is meant to be read.
    pub(crate) undefined: Set<'a>,
    /// In which lanes the other is not.
    pub(crate) other: Set<'a>,
}

impl<'a> Value<'a> {
    pub(crate) fn unknown() -> Value<'a> {
        Value { differs: Set::ALL, ..Value::uniform() }
    }

    /// Nothing that is meant to be read.
    pub(crate) fn undefined() -> Value<'a> {
        Value { undefined: Set::ALL, ..Value::uniform() }
    }

    pub(crate) fn uniform() -> Value<'a> {
        Value {
            form: Form::Unknown,
            numbers: None,
            computed: false,
            undefined: Set::NONE,
            differs: Set::NONE,
            names: SmallVec::new(),
            mixed: Vec::new(),
        }
    }

    pub(crate) fn constant(number: u64) -> Value<'a> {
        Value::uniform().among(Rc::new([Number::Is(number)]))
    }

    /// The same, of which it is known that it is one of these numbers.
    pub(crate) fn among(mut self, numbers: Numbers) -> Value<'a> {
        if let [Number::Is(number)] = *numbers {
            self.form = Form::Constant(number);
        }
        // On a path that no lane takes no number is left.
        let says_nothing = matches!(*numbers, [] | [Number::Other]);
        self.numbers = (!says_nothing).then_some(numbers);
        self
    }

    /// All sets of lanes that say something.
    pub(crate) fn of_lane(&mut self) -> impl Iterator<Item = &mut Set<'a>> {
        let mixed = self.mixed.iter_mut();
        let mixed = mixed.flat_map(|mixed| [&mut mixed.undefined, &mut mixed.other]);
        std::iter::once(&mut self.undefined).chain(mixed)
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set<'a>> {
        let mixed = self.mixed.iter().flat_map(|mixed| [mixed.undefined, mixed.other]);
        [self.undefined, self.differs].into_iter().chain(mixed)
    }

    /// Whether it is 0 or 1.
    pub(crate) fn is_truth(&self) -> bool {
        let numbers = self.numbers.as_deref();
        numbers.is_some_and(|numbers| numbers.iter().all(|&number| number <= Number::ONE))
    }

    /// The numbers that lanes are told apart by: none if there is only one. That it is 0 is said by its
    /// being none of the others.
    pub(crate) fn distinguished(&self) -> impl Iterator<Item = Number> {
        let several = self.numbers.as_deref().filter(|numbers| numbers.len() > 1);
        several.into_iter().flatten().copied().filter(|&number| number != Number::ZERO)
    }

    /// Whether it can be something that is not told apart.
    pub(crate) fn has_others(&self) -> bool {
        self.numbers.as_deref().is_none_or(|numbers| numbers.contains(&Number::Other))
    }
}

/// What the warp's scratch word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scratch<'a> {
    Anything,
    Zero,
    /// Something else than zero if any of these lanes is active.
    Vote(Set<'a>),
}

/// What a place is to hold.
#[derive(Clone, Debug)]
pub(crate) struct New<'a> {
    pub(crate) value: Value<'a>,
    pub(crate) numbers: Valuation<'a>,
}

/// Which numbers a new value is in which lanes.
#[derive(Clone, Debug)]
pub(crate) enum Valuation<'a> {
    /// Nothing is known, or what the value itself says.
    Unknown,
    /// It is 0 or 1: equal in lanes that do not differ, 1 in the lanes of the one set, 0 in the other.
    Truth { yes: Set<'a>, no: Set<'a> },
    /// It is these numbers, in these lanes.
    Each(Vec<(Number, Set<'a>)>),
}

/// What is to be known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// In which lanes it is meant to be read.
    Nothing,
    /// And in which pairs of lanes it may differ.
    Differences,
    /// And which numbers it is.
    Numbers,
}

impl<'a> New<'a> {
    pub(crate) fn of(value: Value<'a>) -> New<'a> {
        New { value, numbers: Valuation::Unknown }
    }

    /// One thing or the other, of which nothing else is known.
    pub(crate) fn truth_of(value: Value<'a>) -> New<'a> {
        New { value, numbers: Valuation::Truth { yes: Set::NONE, no: Set::NONE } }
    }

    /// Only what is to be known about it.
    pub(crate) fn blurred(self, detail: Detail) -> New<'a> {
        let New { mut value, numbers } = self;
        if detail == Detail::Numbers {
            return New { value, numbers };
        }
        if let Valuation::Each(each) = numbers
            && let [(Number::Is(number), _)] = *each
        {
            return New::of(Value { undefined: value.undefined, ..Value::constant(number) });
        }
        if detail == Detail::Nothing && value.numbers.is_none() && value.form == Form::Unknown {
            value.differs = Set::ALL;
        }
        New::of(value)
    }

    /// In which lanes it is true, if it is a truth value of which that is known.
    pub(crate) fn truth(&self) -> Option<Set<'a>> {
        match (&self.numbers, self.value.form) {
            (Valuation::Unknown, Form::Constant(0)) => Some(Set::NONE),
            (Valuation::Unknown, Form::Constant(1)) => Some(Set::ALL),
            (Valuation::Each(each), _) => {
                let is_truth = each.iter().all(|&(number, _)| number <= Number::ONE);
                is_truth.then(|| self.numbers.lanes(Number::ONE))
            }
            _ => None,
        }
    }
}

impl<'a> Valuation<'a> {
    /// The lanes in which it is this number.
    pub(crate) fn lanes(&self, wanted: Number) -> Set<'a> {
        let Valuation::Each(each) = self else { return Set::NONE };
        let found = each.iter().find(|&&(number, _)| number == wanted);
        found.map_or(Set::NONE, |&(_, lanes)| lanes)
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> SmallVec<[Set<'a>; 4]> {
        match self {
            Valuation::Unknown => SmallVec::new(),
            Valuation::Truth { yes, no } => [*yes, *no].into_iter().collect(),
            Valuation::Each(each) => each.iter().map(|&(_, lanes)| lanes).collect(),
        }
    }
}
