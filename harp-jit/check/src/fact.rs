//! What is known about the value in one place.
//!
//! A value is one of a few numbers, by which lanes can be told apart, or it is known in which pairs of lanes it may
//! differ. Both say in which lanes something else was written than what is meant to be read.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use crate::bdd::Set;
use crate::lanes::Lanes;
use crate::number::{Number, Numbers};
use crate::numbering::ValueNumber;
use crate::record::Name;

/// What a value is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
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

/// What is known about what a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) form: Form,
    /// The numbers that it can be, if they are few. A constant is one number.
    pub(crate) numbers: Option<Numbers>,
    /// Whether it was computed from other numbers: it can be compared, but it is not what says where lanes
    /// go.
    pub(crate) computed: bool,
    /// In which lanes it is not what is meant to be read.
    pub(crate) undefined: Set,
    /// In which pairs of lanes it may differ, unless one of them holds one of a few numbers.
    pub(crate) differs: Set,
    /// Predicates that were selected and are what this value is: true where it is not zero.
    pub(crate) names: SmallVec<[Name; 1]>,
    /// What is left of other predicates where this value is taken from some.
    pub(crate) mixed: SmallVec<[Mixed; 1]>,
}

/// A predicate that was exchanged for another: where it is taken from that, it is left itself. What was not meant
/// to be read in the one does not matter then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mixed {
    /// The other.
    pub(crate) with: ValueNumber,
    /// In which lanes what is left is not what is meant to be read.
    pub(crate) undefined: Set,
    /// In which lanes the other is not.
    pub(crate) other: Set,
}

impl Value {
    pub(crate) fn unknown() -> Value {
        Value { differs: Set::ALL, ..Value::uniform() }
    }

    /// Nothing that is meant to be read.
    pub(crate) fn undefined() -> Value {
        Value { undefined: Set::ALL, ..Value::uniform() }
    }

    pub(crate) fn uniform() -> Value {
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

    pub(crate) fn constant(number: u64) -> Value {
        let numbers: Numbers = Rc::new([Number::Is(number)]);
        Value { form: Form::Constant(number), numbers: Some(numbers), ..Value::uniform() }
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        let mixed = self.mixed.iter().flat_map(|mixed| [mixed.undefined, mixed.other]);
        [self.undefined, self.differs].into_iter().chain(mixed)
    }

    /// Whether it is 0 or 1.
    pub(crate) fn is_truth(&self) -> bool {
        self.numbers
            .as_ref()
            .is_some_and(|numbers| numbers.iter().all(|&number| number <= Number::ONE))
    }

    /// The numbers that lanes are told apart by: none if there is only one. That it is 0 is said by its
    /// being none of the others.
    pub(crate) fn distinguished(&self) -> impl Iterator<Item = Number> + '_ {
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
pub(crate) enum Scratch {
    Anything,
    Zero,
    /// Something else than zero if any of these lanes is active.
    Vote(Set),
}

/// What a place is to hold.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) value: Value,
    pub(crate) numbers: Valuation,
}

/// Which numbers a new value is in which lanes.
#[derive(Clone, Debug)]
pub(crate) enum Valuation {
    /// Nothing is known, or what the value itself says.
    Unknown,
    /// It is 0 or 1: equal in lanes that do not differ, 1 in the lanes of the one set, 0 in the other.
    Truth { yes: Set, no: Set },
    /// It is these numbers, in these lanes.
    Each(Vec<(Number, Set)>),
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

impl New {
    pub(crate) fn of(value: Value) -> New {
        New { value, numbers: Valuation::Unknown }
    }

    /// Only what is to be known about it.
    pub(crate) fn blurred(self, detail: Detail) -> New {
        let New { mut value, numbers } = self;
        let numbers = match numbers {
            numbers if detail == Detail::Numbers => numbers,
            Valuation::Each(each) => match *each {
                [(Number::Is(number), _)] => {
                    let undefined = value.undefined;
                    return New::of(Value { undefined, ..Value::constant(number) });
                }
                _ => Valuation::Unknown,
            },
            _ => Valuation::Unknown,
        };
        if detail == Detail::Nothing && value.numbers.is_none() && value.form == Form::Unknown {
            value.differs = Set::ALL;
        }
        New { value, numbers }
    }

    /// In which lanes it is true, if it is a truth value of which that is known.
    pub(crate) fn truth(&self) -> Option<Set> {
        match &self.numbers {
            Valuation::Unknown => match self.value.form {
                Form::Constant(0) => Some(Set::NONE),
                Form::Constant(1) => Some(Set::ALL),
                _ => None,
            },
            Valuation::Truth { .. } => None,
            Valuation::Each(each) if each.iter().all(|&(number, _)| number <= Number::ONE) => {
                let yes = each.iter().find(|&&(number, _)| number == Number::ONE);
                Some(yes.map_or(Set::NONE, |&(_, yes)| yes))
            }
            Valuation::Each(_) => None,
        }
    }
}

/// What a new value's numbers say of a lane, and of a pair of lanes. One thing after the other: all of
/// it at once is much to say where nothing else is known.
pub(crate) struct Relation {
    lanes: SmallVec<[Set; 2]>,
    pairs: Set,
}

impl Relation {
    pub(crate) fn new(
        lanes: &Lanes,
        numbers: &Valuation,
        value: &Value,
        condition: impl Fn(Number) -> Set,
    ) -> Relation {
        match numbers {
            Valuation::Unknown => Relation { lanes: smallvec![], pairs: Set::ALL },
            Valuation::Truth { yes, no } => {
                let truth = condition(Number::ONE);
                let [yes, no] = [lanes.and_not(*yes, truth), lanes.and(truth, *no)];
                let equal = lanes.iff(truth, lanes.other(truth));
                let pairs = lanes.or(equal, value.differs);
                Relation { lanes: smallvec![lanes.not(yes), lanes.not(no)], pairs }
            }
            Valuation::Each(each) => {
                let told = each.iter().filter(|&&(number, _)| number != Number::ZERO);
                let one = told.map(|&(number, set)| lanes.iff(condition(number), set));
                Relation { lanes: one.collect(), pairs: Set::ALL }
            }
        }
    }

    pub(crate) fn lanes(&self, lanes: &Lanes, known: Set) -> Set {
        self.lanes.iter().fold(known, |known, &one| lanes.and(known, one))
    }

    pub(crate) fn pairs(&self, lanes: &Lanes, known: Set) -> Set {
        lanes.and(known, self.pairs)
    }
}
