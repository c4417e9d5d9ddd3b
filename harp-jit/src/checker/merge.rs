//! What is known where ways meet.
//!
//! Two kinds of meeting are different. Where a uniform branch is behind them, all active lanes come the same way
//! together: what is uniform on each way is uniform. At a join, lanes that went different ways run on
//! together: a value is uniform only if it was before the split and neither side changed it, or if both
//! sides leave the same constant, or among lanes that all come from one side.
//!
//! Values that meet get a new name, the same for places that hold the same values on every way. A
//! value that is the same on all ways keeps its name; at a join, only if it existed before the split.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use super::record::Name;
use super::state::{Fact, Form, Id, Implied, Literal, MOST_NUMBERS, Origin, State, Where};

/// A number that a value behind the meeting may be, which lanes may be told apart by.
struct Condition<'a> {
    value: &'a Met,
    number: u64,
}

impl Condition<'_> {
    /// That the value is the number, or is not, on one of the ways.
    fn on(&self, way: usize, truth: bool) -> Literal {
        Literal { id: self.value.parts[way], number: self.number, truth }
    }

    fn literal(&self, truth: bool) -> Literal {
        Literal { id: self.value.id, number: self.number, truth }
    }
}

/// The names of a value on each way.
type Parts = SmallVec<[Id; 2]>;

/// A value behind the meeting.
struct Met {
    id: Id,
    parts: Parts,
    /// Whether it is the value that it was before, on all ways.
    kept: bool,
}

/// The ways that lead to a join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    pub(super) sides: [&'a State; 2],
    /// At the split.
    pub(super) before: &'a State,
    /// What holds there in the lanes that take the side where its predicate is true.
    pub(super) split: Literal,
}

/// What is known at the instruction `at`, where `ways` meet that all active lanes came together.
pub(super) fn meet(ways: &[&State], at: usize, origin: Origin) -> State {
    let keeps = |id: Id| !(id.origin == origin && id.at as usize == at);
    let (mut state, met) = names(ways, at, origin, keeps);
    let conditions = conditions(ways, &met);
    for value in &met {
        let common = common(ways, value, &conditions);
        let all = |whole: &dyn Fn(&Fact) -> bool| {
            value.parts.iter().zip(ways).all(|(&part, way)| whole(&way.fact(part)))
        };
        let among = |pick: fn(&Fact) -> &Where| {
            if all(&|fact| *pick(fact) == Where::Everywhere) {
                return Where::Everywhere;
            }
            Where::In(literals_where(&conditions, |condition, truth| {
                (value.parts.iter().enumerate().zip(ways)).all(|((index, &part), way)| {
                    way.covers(pick(&way.fact(part)), condition.on(index, truth))
                })
            }))
        };
        let agrees = |number: &u64| {
            value.parts.iter().zip(ways).all(|(&part, way)| way.agrees(part, *number))
        };
        let fact = Fact {
            uniform: among(|fact| &fact.uniform),
            defined: among(|fact| &fact.defined),
            agreed: common.told_apart().filter(agrees).collect(),
            ..common
        };
        state.know(value.id, fact);
    }
    state
}

/// What is known at the join `at`, where both sides of a split meet. `inside` tells which values came
/// to be in the sides.
pub(super) fn join(sides: Sides<'_>, at: usize, inside: impl Fn(Id) -> bool) -> State {
    let ways = sides.sides;
    let (mut state, met) = names(&ways, at, Origin::Met, |id| !inside(id));
    let conditions = conditions(&ways, &met);
    for value in &met {
        let common = common(&ways, value, &conditions);
        let facts = [ways[0].fact(value.parts[0]), ways[1].fact(value.parts[1])];
        let before = sides.before.fact(value.id);
        let constant = matches!(common.form, Form::Constant(_) | Form::Scratch | Form::GroupBlock);
        let uniform = if constant || (value.kept && before.uniform == Where::Everywhere) {
            Where::Everywhere
        } else {
            let known = value.kept.then_some(&before.uniform);
            Where::In(literals_where(&conditions, |condition, truth| {
                uniform_where(sides, &facts, known, condition, truth)
            }))
        };
        let defined = if facts.iter().all(|fact| fact.defined == Where::Everywhere) {
            Where::Everywhere
        } else {
            Where::In(literals_where(&conditions, |condition, truth| {
                (0..2)
                    .all(|side| ways[side].covers(&facts[side].defined, condition.on(side, truth)))
            }))
        };
        // How far away the lanes' own addresses are from each other is known only for what no side
        // changed.
        let form = match common.form {
            Form::OnStack if !value.kept => Form::Unknown,
            form => form,
        };
        let agrees = |number: &u64| agreed(sides, value, *number, &inside);
        let agreed = common.told_apart().filter(agrees).collect();
        state.know(value.id, Fact { uniform, defined, form, agreed, ..common });
    }
    state
}

/// Whether all lanes behind a join agree if a value is a number or not.
fn agreed(
    Sides { sides, before, split }: Sides<'_>,
    value: &Met,
    number: u64,
    inside: &impl Fn(Id) -> bool,
) -> bool {
    let literal = |id: Id| Literal { id, number, truth: true };
    let settled = |side: usize| sides[side].settled(literal(value.parts[side]));
    if value.kept && before.agrees(value.id, number) {
        return true;
    }
    if settled(0).is_some() && settled(0) == settled(1) {
        return true;
    }
    // One side keeps a value on which all agreed, and the lanes of the other side, for which it was the same,
    // come to the same.
    [(0, 1), (1, 0)].into_iter().any(|(keeps, other)| {
        let kept = value.parts[keeps];
        let others = if other == 1 { split } else { !split };
        settled(other).is_some_and(|truth| {
            !inside(kept)
                && before.agrees(kept, number)
                && before.implies(others, Literal { truth, ..literal(kept) })
        })
    })
}

/// Whether a value is uniform among the lanes behind a join in which a condition is `truth`.
fn uniform_where(
    Sides { sides, before, split }: Sides<'_>,
    facts: &[std::rc::Rc<Fact>; 2],
    known: Option<&Where>,
    condition: &Condition<'_>,
    truth: bool,
) -> bool {
    let literal = |side: usize| condition.on(side, truth);
    let none = |side: usize| sides[side].settled(literal(side)) == Some(false);
    // Lanes of one side only, among which it is.
    let one_side = |side: usize, other: usize| {
        none(other) && sides[side].covers(&facts[side].uniform, literal(side))
    };
    // Neither side changed anything.
    let unchanged = || {
        known.is_some_and(|known| {
            condition.value.kept && before.covers(known, condition.literal(truth))
        })
    };
    // Lanes that agreed which side to take: all of them come from one side, whichever that is.
    let together = || {
        let inside = |side: usize, among: Literal| {
            let all = if side == 1 { split } else { !split };
            before.implies(all, among) || sides[side].implies(literal(side), among)
        };
        match &before.fact(split.id).uniform {
            Where::Everywhere => true,
            Where::In(known) => known.iter().any(|&among| inside(0, among) && inside(1, among)),
        }
    };
    let on_each = || (0..2).all(|side| sides[side].covers(&facts[side].uniform, literal(side)));
    one_side(0, 1) || one_side(1, 0) || unchanged() || (on_each() && together())
}

/// Names for the values in all places behind a meeting.
fn names(
    ways: &[&State],
    at: usize,
    origin: Origin,
    keeps: impl Fn(Id) -> bool,
) -> (State, Vec<Met>) {
    let mut known: HashMap<Parts, Id> = HashMap::new();
    let mut met = Vec::new();
    let mut held = Vec::new();
    for place in ways[0].places() {
        let parts: Parts = ways.iter().map(|way| way.held(place)).collect();
        let id = match known.entry(parts) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let parts = new.key().clone();
                let kept = parts.iter().all(|&part| part == parts[0]) && keeps(parts[0]);
                let id = if kept { parts[0] } else { Id::new(origin, at, place) };
                new.insert(id);
                met.push(Met { id, parts, kept });
                id
            }
        };
        held.push(id);
    }
    let mut state = State::holding(held);
    state.free = ways[0].free.clone();
    state.free.retain(|name| ways.iter().all(|way| way.free.contains(name)));
    (state, met)
}

/// What lanes may be told apart by.
fn conditions<'a>(ways: &[&State], met: &'a [Met]) -> Vec<Condition<'a>> {
    let mut conditions = Vec::new();
    for value in met {
        let facts = value.parts.iter().zip(ways).map(|(&part, way)| way.fact(part));
        let facts: SmallVec<[_; 2]> = facts.collect();
        if facts.iter().any(|fact| fact.defined == Where::NOWHERE) {
            continue;
        }
        let numbers = numbers(facts.iter().map(|fact| &**fact));
        let fact = Fact { numbers, ..Fact::unknown() };
        let numbers = fact.told_apart();
        if fact.numbers.as_ref().is_some_and(|numbers| numbers.len() > 1) {
            conditions.extend(numbers.map(|number| Condition { value, number }));
        }
    }
    conditions
}

/// What a value can be that is one of several.
fn numbers<'a>(facts: impl Iterator<Item = &'a Fact>) -> Option<BTreeSet<u64>> {
    let mut all = BTreeSet::new();
    for fact in facts {
        all.extend(fact.numbers.as_ref()?);
    }
    (all.len() <= MOST_NUMBERS).then_some(all)
}

fn literals_where(
    conditions: &[Condition<'_>],
    holds: impl Fn(&Condition<'_>, bool) -> bool,
) -> BTreeSet<Literal> {
    let both = conditions.iter().flat_map(|condition| [(condition, false), (condition, true)]);
    let kept = both.filter(|&(condition, truth)| holds(condition, truth));
    kept.map(|(condition, truth)| condition.literal(truth)).collect()
}

/// What is known of a value lane by lane, whatever way a lane came.
fn common(ways: &[&State], value: &Met, conditions: &[Condition<'_>]) -> Fact {
    let facts: SmallVec<[_; 2]> =
        value.parts.iter().zip(ways).map(|(&part, way)| way.fact(part)).collect();
    let first = facts[0].form;
    let form = if facts.iter().all(|fact| fact.form == first) { first } else { Form::Unknown };
    let implied = |literals: [Literal; 2], ways_literal: &dyn Fn(usize) -> Literal| {
        let implied = |other: &Condition<'_>, truth: bool| {
            (ways.iter().enumerate())
                .all(|(index, way)| way.implies(ways_literal(index), other.on(index, truth)))
        };
        let mut found = literals_where(conditions, implied);
        found.retain(|literal| !literals.contains(literal));
        found
    };
    let mut implies = Implied::new();
    for own in conditions.iter().filter(|condition| condition.value.id == value.id) {
        for truth in [false, true] {
            let both = [own.literal(false), own.literal(true)];
            let found = implied(both, &|way| own.on(way, truth));
            implies.insert((own.number, truth), found);
        }
    }
    let mut names: BTreeSet<Name> = facts.iter().flat_map(|fact| fact.names.clone()).collect();
    names.retain(|name| {
        let mut each = facts.iter().zip(ways);
        each.all(|(fact, way)| fact.names.contains(name) || way.free.contains(name))
    });
    Fact {
        form,
        numbers: numbers(facts.iter().map(|fact| &**fact)),
        implies,
        names,
        ..Fact::unknown()
    }
}
