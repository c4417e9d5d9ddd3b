//! What is known where ways meet.
//!
//! Two kinds of meeting are different. Where a uniform branch is behind them, all active lanes come the same way
//! together: what is uniform on each way is uniform. At a join, lanes that went different ways run on
//! together: a value is uniform only if it was before the split and neither side changed it, or if both
//! sides leave the same constant, or among lanes that all come from one side.
//!
//! Values that meet get a new name, the same for places that hold the same values on every way. A
//! value that is the same on all ways keeps its name; at a join, only if it existed before the split. What
//! nobody reads any more is forgotten.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use super::conditions::{Conditions, Met, Truths};
use super::live::Live;
use super::record::Name;
use super::state::{Fact, Form, Id, Implied, Literal, MOST_NUMBERS, Origin, State, Where};

/// The ways that lead to a join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    pub(super) sides: [&'a State; 2],
    /// At the split.
    pub(super) before: &'a State,
    /// What holds there in the lanes that take the side where its predicate is true.
    pub(super) split: Literal,
}

/// Where ways meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The first instruction behind.
    pub(super) at: usize,
    /// What is read there or later.
    pub(super) live: &'a Live,
}

/// What is known where `ways` meet that all active lanes came together.
pub(super) fn meet(ways: &[&State], place: Place<'_>, origin: Origin) -> State {
    let keeps = |id: Id| !(id.origin == origin && id.at as usize == place.at);
    let (mut state, met) = names(ways, place, origin, keeps);
    let conditions = Conditions::new(ways, &met);
    for value in &met {
        let common = common(ways, value, &conditions);
        let among = |pick: fn(&Fact) -> &Where| {
            let ways = value.parts.iter().zip(ways).enumerate();
            let known =
                ways.map(|(index, (&part, way))| conditions.covered(index, pick(&way.fact(part))));
            conditions.literals(known.fold(Truths::everywhere(), Truths::and))
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

/// What is known at a join, where both sides of a split meet. `inside` tells which values came to be in
/// the sides.
pub(super) fn join(sides: Sides<'_>, place: Place<'_>, inside: impl Fn(Id) -> bool) -> State {
    let ways = sides.sides;
    let (mut state, met) = names(&ways, place, Origin::Met, |id| !inside(id));
    let conditions = Conditions::new(&ways, &met);
    let before = Conditions::new(&[sides.before], &met.iter().map(Met::kept).collect::<Vec<_>>());
    let together = together(sides, &conditions);
    for value in &met {
        let common = common(&ways, value, &conditions);
        let facts = [ways[0].fact(value.parts[0]), ways[1].fact(value.parts[1])];
        let on = |side: usize| conditions.covered(side, &facts[side].uniform);
        let equal = matches!(common.form, Form::Constant(_) | Form::Scratch);
        let uniform = if equal {
            Where::Everywhere
        } else {
            // Lanes of one side only, or lanes that agreed which side to take.
            let alone = |side: usize, other: usize| on(side).and(conditions.impossible(other));
            let each = on(0).and(on(1)).and(together.clone());
            let known = alone(0, 1).or(alone(1, 0)).or(each);
            let unchanged = match value.kept {
                true => before.covered(0, &sides.before.fact(value.id).uniform),
                false => Truths::nowhere(),
            };
            // Of what neither side changed, only conditions that no side changed tell.
            let unchanged = conditions.same_as(&before, unchanged);
            conditions.literals(known.or(unchanged))
        };
        let defined = (0..2).map(|side| conditions.covered(side, &facts[side].defined));
        let defined = conditions.literals(defined.fold(Truths::everywhere(), Truths::and));
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

/// Where all lanes behind a join come from one side, whichever that is: lanes that agreed at the split.
fn together(Sides { before, split, .. }: Sides<'_>, conditions: &Conditions<'_>) -> Truths {
    let inside = |side: usize, among: Literal| {
        let all = if side == 1 { split } else { !split };
        match before.implies(all, among) {
            true => Truths::everywhere(),
            false => conditions.antecedents(side, among),
        }
    };
    let fact = before.fact(split.id);
    match &fact.uniform {
        Where::Everywhere => Truths::everywhere(),
        Where::In(known) => {
            let both = known.iter().map(|&among| inside(0, among).and(inside(1, among)));
            both.fold(Truths::nowhere(), Truths::or)
        }
    }
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

/// Names for the values in all places behind a meeting.
fn names(
    ways: &[&State],
    place: Place<'_>,
    origin: Origin,
    keeps: impl Fn(Id) -> bool,
) -> (State, Vec<Met>) {
    let mut known: HashMap<SmallVec<[Id; 2]>, Id> = HashMap::new();
    let mut met = Vec::new();
    let mut held = Vec::new();
    let mut dead = Vec::new();
    for holder in ways[0].places() {
        if !place.live.is_live(holder) {
            let id = Id::new(Origin::Dead, 0, holder);
            dead.push(id);
            held.push(id);
            continue;
        }
        let parts: SmallVec<[Id; 2]> = ways.iter().map(|way| way.held(holder)).collect();
        let id = match known.entry(parts) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let parts = new.key().clone();
                let kept = parts.iter().all(|&part| part == parts[0]) && keeps(parts[0]);
                let id = if kept { parts[0] } else { Id::new(origin, place.at, holder) };
                new.insert(id);
                met.push(Met { id, parts, kept });
                id
            }
        };
        held.push(id);
    }
    let mut state = State::holding(held);
    for id in dead {
        state.know(id, Fact::undefined());
    }
    state.free = ways[0].free.clone();
    state.free.retain(|name| ways.iter().all(|way| way.free.contains(name)));
    (state, met)
}

/// What is known of a value lane by lane, whatever way a lane came.
fn common(ways: &[&State], value: &Met, conditions: &Conditions<'_>) -> Fact {
    let facts: SmallVec<[_; 2]> =
        value.parts.iter().zip(ways).map(|(&part, way)| way.fact(part)).collect();
    let first = facts[0].form;
    let form = if facts.iter().all(|fact| fact.form == first) { first } else { Form::Unknown };
    let numbers = numbers(facts.iter().map(|fact| &**fact));
    let told = Fact { numbers: numbers.clone(), ..Fact::unknown() };
    let mut implies = Implied::new();
    if numbers.as_ref().is_some_and(|numbers| numbers.len() > 1) {
        for (number, truth) in told.told_apart().flat_map(|n| [(n, false), (n, true)]) {
            let found = conditions.consequences(value.id, number, truth);
            implies.insert((number, truth), found);
        }
    }
    let mut names: BTreeSet<Name> = facts.iter().flat_map(|fact| fact.names.clone()).collect();
    names.retain(|name| {
        let mut each = facts.iter().zip(ways);
        each.all(|(fact, way)| fact.names.contains(name) || way.free.contains(name))
    });
    Fact { form, numbers, implies, names, ..Fact::unknown() }
}

/// What a value can be that is one of several; where it is not meant to be read, it is none of them.
pub(super) fn numbers<'a>(facts: impl Iterator<Item = &'a Fact>) -> Option<BTreeSet<u64>> {
    let mut all = BTreeSet::new();
    for fact in facts.filter(|fact| fact.defined != Where::NOWHERE) {
        all.extend(fact.numbers.as_ref()?);
    }
    (all.len() <= MOST_NUMBERS).then_some(all)
}
