//! What is known about the value in one place.
//!
//! A value is one of a few numbers, by which lanes can be told apart, or it is known in which pairs of lanes it may
//! differ. Both say in which lanes something else was written than what is meant to be read.

use std::collections::BTreeSet;
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::lanes::Lanes;
use super::numbering::Numbered;
use super::record::Name;
use super::sets::Set;

/// What a value is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Unknown,
    Constant(u64),
    /// The stack pointer at the entry plus this.
    Stack(i64),
    /// The address of a word of data in the code, which nobody writes.
    Code,
    /// The address of the warp's scratch word.
    Scratch,
    /// What was loaded from the warp's scratch word as it is now.
    Voted,
    /// The address of the warp's group control block, which nobody writes meanwhile.
    GroupBlock,
    /// A stack address without the bits below the size of a stack.
    StackNumber,
    /// The address of the lane control block plus this.
    LaneBlock(i64),
    /// An address in the lane's stack, as far from its base as in the other lanes.
    OnStack,
}

/// No more numbers than these are kept apart.
pub(super) const MOST_NUMBERS: usize = 16;

/// What lanes are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Number {
    Is(u64),
    /// None of the others that are told apart, and perhaps one of them.
    Other,
}

impl Number {
    pub(super) const ZERO: Number = Number::Is(0);
    pub(super) const ONE: Number = Number::Is(1);
}

/// A few numbers, ascending.
pub(super) type Numbers = Rc<[Number]>;

/// What is known about what a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) form: Form,
    /// The numbers that it can be, if they are few. A constant is one number.
    pub(super) numbers: Option<Numbers>,
    /// Whether it was computed from other numbers: it can be compared, but it is not what says where lanes
    /// go.
    pub(super) computed: bool,
    /// In which lanes it is not what is meant to be read.
    pub(super) undefined: Set,
    /// In which pairs of lanes it may differ, unless one of them holds one of a few numbers.
    pub(super) differs: Set,
    /// Predicates that were selected and are what this value is: true where it is not zero.
    pub(super) names: SmallVec<[Name; 1]>,
    /// What is left of other predicates where this value is taken from some.
    pub(super) mixed: SmallVec<[Mixed; 1]>,
}

/// A predicate that was exchanged for another: where it is taken from that, it is left itself. What was not meant
/// to be read in the one does not matter then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mixed {
    /// The other.
    pub(super) with: Numbered,
    /// In which lanes what is left is not what is meant to be read.
    pub(super) undefined: Set,
    /// In which lanes the other is not.
    pub(super) other: Set,
}

impl Value {
    pub(super) fn unknown() -> Value {
        Value { differs: Set::ALL, ..Value::uniform() }
    }

    /// Nothing that is meant to be read.
    pub(super) fn undefined() -> Value {
        Value { undefined: Set::ALL, ..Value::uniform() }
    }

    pub(super) fn uniform() -> Value {
        Value {
            form: Form::Unknown,
            numbers: None,
            computed: false,
            undefined: Set::NONE,
            differs: Set::NONE,
            names: SmallVec::new(),
            mixed: SmallVec::new(),
        }
    }

    pub(super) fn constant(number: u64) -> Value {
        let numbers: Numbers = Rc::new([Number::Is(number)]);
        Value { form: Form::Constant(number), numbers: Some(numbers), ..Value::uniform() }
    }

    /// All sets that say something.
    pub(super) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        let mixed = self.mixed.iter().flat_map(|mixed| [mixed.undefined, mixed.other]);
        [self.undefined, self.differs].into_iter().chain(mixed)
    }

    /// Whether it is 0 or 1.
    pub(super) fn is_truth(&self) -> bool {
        self.numbers
            .as_ref()
            .is_some_and(|numbers| numbers.iter().all(|&number| number <= Number::ONE))
    }

    /// The numbers that lanes are told apart by: none if there is only one. That it is 0 is said by its
    /// being none of the others.
    pub(super) fn told_apart(&self) -> impl Iterator<Item = Number> + '_ {
        let several = self.numbers.as_deref().filter(|numbers| numbers.len() > 1);
        several.into_iter().flatten().copied().filter(|&number| number != Number::ZERO)
    }

    /// Whether it can be something that is not told apart.
    pub(super) fn has_others(&self) -> bool {
        self.numbers.as_deref().is_none_or(|numbers| numbers.contains(&Number::Other))
    }
}

/// What the warp's scratch word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scratch {
    Anything,
    Zero,
    /// Something else than zero if any of these lanes is active.
    Vote(Set),
}

/// What a place is to hold.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) value: Value,
    pub(super) numbers: Told,
}

/// Which numbers a new value is in which lanes.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Nothing is known, or what the value itself says.
    Nothing,
    /// It is 0 or 1: equal in lanes that do not differ, 1 in the lanes of the one set, 0 in the other.
    Truth { yes: Set, no: Set },
    /// It is these numbers, in these lanes.
    Each(Vec<(Number, Set)>),
}

/// How much is found out. Less is cheaper and mostly enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precision {
    /// Lanes are told apart by numbers where all lanes have one of a few.
    Coarse,
    /// Also where only some have, and values get names where ways meet.
    Fine,
    /// Also by numbers of which the program itself makes conditions, if a warp must agree on what comes of these.
    Thorough,
}

impl Precision {
    pub(super) const ALL: [Precision; 3] =
        [Precision::Coarse, Precision::Fine, Precision::Thorough];

    /// Whether values get names where ways meet.
    pub(super) fn names_ways(self) -> bool {
        self >= Precision::Fine
    }
}

/// What is to be known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// In which lanes it is meant to be read.
    Nothing,
    /// And in which pairs of lanes it may differ.
    Differences,
    /// And which numbers it is.
    Numbers,
}

impl New {
    pub(super) fn of(value: Value) -> New {
        New { value, numbers: Told::Nothing }
    }

    /// Only what is to be known about it.
    pub(super) fn blurred(self, detail: Detail) -> New {
        let New { mut value, numbers } = self;
        let numbers = match numbers {
            numbers if detail == Detail::Numbers => numbers,
            Told::Each(each) => match *each {
                [(Number::Is(number), _)] => {
                    let undefined = value.undefined;
                    return New::of(Value { undefined, ..Value::constant(number) });
                }
                _ => Told::Nothing,
            },
            _ => Told::Nothing,
        };
        if detail == Detail::Nothing && value.numbers.is_none() && value.form == Form::Unknown {
            value.differs = Set::ALL;
        }
        New { value, numbers }
    }

    /// In which lanes it is true, if it is a truth value of which that is known.
    pub(super) fn truth(&self) -> Option<Set> {
        match &self.numbers {
            Told::Nothing => match self.value.form {
                Form::Constant(0) => Some(Set::NONE),
                Form::Constant(1) => Some(Set::ALL),
                _ => None,
            },
            Told::Truth { .. } => None,
            Told::Each(each) if each.iter().all(|&(number, _)| number <= Number::ONE) => {
                let yes = each.iter().find(|&&(number, _)| number == Number::ONE);
                Some(yes.map_or(Set::NONE, |&(_, yes)| yes))
            }
            Told::Each(_) => None,
        }
    }
}

/// What a new value's numbers say of a lane, and of a pair of lanes. One thing after the other: all of
/// it at once is much to say where nothing else is known.
pub(super) struct Relation {
    lanes: SmallVec<[Set; 2]>,
    pairs: Set,
}

impl Relation {
    pub(super) fn new(
        lanes: &Lanes,
        numbers: &Told,
        value: &Value,
        condition: impl Fn(Number) -> Set,
    ) -> Relation {
        match numbers {
            Told::Nothing => Relation { lanes: smallvec![], pairs: Set::ALL },
            Told::Truth { yes, no } => {
                let truth = condition(Number::ONE);
                let [yes, no] = [lanes.minus(*yes, truth), lanes.and(truth, *no)];
                let equal = lanes.same(truth, lanes.other(truth));
                let pairs = lanes.or(equal, value.differs);
                Relation { lanes: smallvec![lanes.not(yes), lanes.not(no)], pairs }
            }
            Told::Each(each) => {
                let told = each.iter().filter(|&&(number, _)| number != Number::ZERO);
                let one = told.map(|&(number, set)| lanes.same(condition(number), set));
                Relation { lanes: one.collect(), pairs: Set::ALL }
            }
        }
    }

    pub(super) fn lanes(&self, lanes: &Lanes, known: Set) -> Set {
        self.lanes.iter().fold(known, |known, &one| lanes.and(known, one))
    }

    pub(super) fn pairs(&self, lanes: &Lanes, known: Set) -> Set {
        lanes.and(known, self.pairs)
    }
}

/// All numbers that any of several values can be, if they are few; none if nothing is known of all.
pub(super) fn union<'a>(all: impl Iterator<Item = &'a Option<Numbers>>) -> Option<Numbers> {
    let mut union = BTreeSet::new();
    for numbers in all {
        union.extend(numbers.as_deref().unwrap_or(&[Number::Other]));
    }
    let known = union.first().is_some_and(|&first| first != Number::Other);
    (known && union.len() <= MOST_NUMBERS).then(|| union.into_iter().collect())
}
