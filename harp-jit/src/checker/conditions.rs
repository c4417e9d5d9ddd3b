//! What lanes may be told apart by where ways meet: for each value that is one of a few numbers, that it
//! is the one or the other.
//!
//! What holds in which lanes is asked for all conditions at once, on each way, and answered from lists of
//! what implies what that are made once a meeting.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::merge::numbers;
use super::state::{Fact, Id, Literal, State, Where};

/// A value behind a meeting.
#[derive(Clone, Debug)]
pub(super) struct Met {
    pub(super) id: Id,
    /// Its names on each way.
    pub(super) parts: SmallVec<[Id; 2]>,
    /// Whether it is the value that it was before, on all ways.
    pub(super) kept: bool,
}

impl Met {
    /// The value as it was where it was the only way.
    pub(super) fn kept(&self) -> Met {
        Met { id: self.id, parts: SmallVec::from_elem(self.id, 1), kept: self.kept }
    }
}

/// For which literals of all conditions something is so: the value is not the number, the value is the
/// number, and so on for the next.
#[derive(Clone, Debug)]
pub(super) enum Truths {
    Everywhere,
    For(Rc<Vec<bool>>),
    Nowhere,
}

impl Truths {
    pub(super) fn everywhere() -> Truths {
        Truths::Everywhere
    }

    pub(super) fn nowhere() -> Truths {
        Truths::Nowhere
    }

    pub(super) fn and(self, other: Truths) -> Truths {
        match (self, other) {
            (Truths::Everywhere, known) | (known, Truths::Everywhere) => known,
            (Truths::For(a), Truths::For(b)) => {
                Truths::For(Rc::new(a.iter().zip(&*b).map(|(a, b)| *a && *b).collect()))
            }
            _ => Truths::Nowhere,
        }
    }

    pub(super) fn or(self, other: Truths) -> Truths {
        match (self, other) {
            (Truths::Nowhere, known) | (known, Truths::Nowhere) => known,
            (Truths::For(a), Truths::For(b)) => {
                Truths::For(Rc::new(a.iter().zip(&*b).map(|(a, b)| *a || *b).collect()))
            }
            _ => Truths::Everywhere,
        }
    }
}

struct Condition {
    id: Id,
    parts: SmallVec<[Id; 2]>,
    kept: bool,
    number: u64,
}

/// The conditions of one meeting.
pub(super) struct Conditions<'a> {
    ways: Vec<&'a State>,
    all: Vec<Condition>,
    /// By way and literal, which literals of the conditions imply it there.
    antecedents: RefCell<HashMap<(usize, Literal), Truths>>,
    impossible: Vec<Truths>,
    /// By way, what the literals of the conditions are known to imply there, from the implied one on.
    implied: Vec<Index>,
}

/// Numbers of literals of conditions.
#[derive(Default)]
struct Index {
    by_consequence: HashMap<Literal, SmallVec<[usize; 4]>>,
    by_value: HashMap<Id, SmallVec<[usize; 4]>>,
}

impl Index {
    fn new(way: &State, literals: impl Iterator<Item = Literal>) -> Index {
        let mut index = Index::default();
        for (number, literal) in literals.enumerate() {
            index.by_value.entry(literal.id).or_default().push(number);
            for consequence in way.consequences(way.normal(literal)) {
                index.by_consequence.entry(consequence).or_default().push(number);
            }
        }
        index
    }

    fn of(&self, literal: Literal) -> &[usize] {
        self.by_consequence.get(&literal).map_or(&[], SmallVec::as_slice)
    }
}

impl<'a> Conditions<'a> {
    pub(super) fn new(ways: &[&'a State], met: &[Met]) -> Conditions<'a> {
        let mut all = Vec::new();
        for value in met {
            let facts = value.parts.iter().zip(ways).map(|(&part, way)| way.fact(part));
            let facts: SmallVec<[_; 2]> = facts.collect();
            let numbers = numbers(facts.iter().map(|fact| &**fact));
            if numbers.as_ref().is_none_or(|numbers| numbers.len() < 2) {
                continue;
            }
            let fact = Fact { numbers, ..Fact::unknown() };
            all.extend(fact.told_apart().map(|number| Condition {
                id: value.id,
                parts: value.parts.clone(),
                kept: value.kept,
                number,
            }));
        }
        let mut conditions = Conditions {
            ways: ways.to_vec(),
            all,
            antecedents: RefCell::default(),
            impossible: Vec::new(),
            implied: Vec::new(),
        };
        let impossible = (0..ways.len()).map(|way| {
            conditions
                .each(|condition, truth| ways[way].settled(condition.on(way, truth)) == Some(false))
        });
        conditions.impossible = impossible.collect();
        let index = |(way, state): (usize, &&State)| {
            Index::new(state, (0..2 * conditions.all.len()).map(|at| conditions.on(way, at)))
        };
        conditions.implied = ways.iter().enumerate().map(index).collect();
        conditions
    }

    fn each(&self, holds: impl Fn(&Condition, bool) -> bool) -> Truths {
        let both = self.all.iter().flat_map(|condition| [(condition, false), (condition, true)]);
        Truths::For(Rc::new(both.map(|(condition, truth)| holds(condition, truth)).collect()))
    }

    /// In which lanes of a way there are none.
    pub(super) fn impossible(&self, way: usize) -> Truths {
        self.impossible[way].clone()
    }

    /// Which lanes of a way are among those in which `literal` holds.
    pub(super) fn antecedents(&self, way: usize, literal: Literal) -> Truths {
        if let Some(known) = self.antecedents.borrow().get(&(way, literal)) {
            return known.clone();
        }
        let found = self.find_antecedents(way, literal);
        self.antecedents.borrow_mut().insert((way, literal), found.clone());
        found
    }

    /// As [`State::implies`], for all literals of the conditions at once.
    fn find_antecedents(&self, way: usize, literal: Literal) -> Truths {
        let state = self.ways[way];
        let literal = state.normal(literal);
        if state.settled(literal) == Some(true) {
            return Truths::Everywhere;
        }
        let mut found = match &self.impossible[way] {
            Truths::For(known) => (**known).clone(),
            _ => vec![false; 2 * self.all.len()],
        };
        let index = &self.implied[way];
        let mut mark = |numbers: &[usize]| numbers.iter().for_each(|&number| found[number] = true);
        mark(index.of(literal));
        // What contradicts something that follows from the contrary.
        for contrary in state.consequences(!literal) {
            mark(index.of(!contrary));
        }
        // What is one number is no other.
        let same = index.by_value.get(&literal.id).map_or(&[] as &[usize], SmallVec::as_slice);
        let differs = |&&at: &&usize| {
            let one = self.on(way, at);
            !literal.truth && one.truth && one.number != literal.number
        };
        mark(&same.iter().filter(differs).copied().collect::<SmallVec<[usize; 4]>>());
        Truths::For(Rc::new(found))
    }

    /// The literal with this number, on a way.
    fn on(&self, way: usize, number: usize) -> Literal {
        self.all[number / 2].on(way, number % 2 == 1)
    }

    /// Among which lanes of a way something is so that is known there.
    pub(super) fn covered(&self, way: usize, known: &Where) -> Truths {
        match known {
            Where::Everywhere => Truths::Everywhere,
            Where::In(literals) => {
                let each = literals.iter().map(|&literal| self.antecedents(way, literal));
                each.fold(self.impossible(way), Truths::or)
            }
        }
    }

    /// The same for these conditions as for those of another list, as far as they are the same values.
    pub(super) fn same_as(&self, other: &Conditions<'_>, truths: Truths) -> Truths {
        let Truths::For(known) = &truths else { return truths };
        let places = other.all.iter().enumerate();
        let index: HashMap<(Id, u64), usize> =
            places.filter(|(_, c)| c.kept).map(|(at, c)| ((c.id, c.number), at)).collect();
        self.each(|condition, truth| {
            let at = index.get(&(condition.id, condition.number)).filter(|_| condition.kept);
            at.is_some_and(|at| known[2 * at + usize::from(truth)])
        })
    }

    /// The literals behind the meeting for which something is so.
    pub(super) fn literals(&self, truths: Truths) -> Where {
        let known = match truths {
            Truths::Everywhere => return Where::Everywhere,
            Truths::Nowhere => return Where::NOWHERE,
            Truths::For(known) => known,
        };
        let both = self.all.iter().flat_map(|condition| [(condition, false), (condition, true)]);
        let kept = both.zip(known.iter()).filter(|(_, holds)| **holds);
        Where::In(kept.map(|((condition, truth), _)| condition.literal(truth)).collect())
    }

    /// What holds behind the meeting where a value is a number, or is not.
    pub(super) fn consequences(&self, id: Id, number: u64, truth: bool) -> BTreeSet<Literal> {
        let mut found = BTreeSet::new();
        let own = self.all.iter().position(|own| own.id == id && own.number == number);
        let Some(own) = own.map(|own| 2 * own + usize::from(truth)) else { return found };
        for (at, condition) in self.all.iter().enumerate().filter(|(_, other)| other.id != id) {
            for other in [false, true] {
                let at = 2 * at + usize::from(other);
                let implied = |way: usize| match self.antecedents(way, self.on(way, at)) {
                    Truths::Everywhere => true,
                    Truths::For(known) => known[own],
                    Truths::Nowhere => false,
                };
                if (0..self.ways.len()).all(implied) {
                    found.insert(condition.literal(other));
                }
            }
        }
        found
    }
}

impl Condition {
    /// That the value is the number, or is not, on one of the ways.
    fn on(&self, way: usize, truth: bool) -> Literal {
        Literal { id: self.parts[way], number: self.number, truth }
    }

    fn literal(&self, truth: bool) -> Literal {
        Literal { id: self.id, number: self.number, truth }
    }
}
