//! What is known where ways meet.
//!
//! Two kinds of meeting are different. Where a uniform branch is behind them, all active lanes come the same way
//! together: what is known of two lanes is what was known of them on one of the ways. At a join, lanes that
//! went different ways run on together. Of a pair of them it is known what each side says of its lane, and
//! what was known of the two when they parted, as far as neither side changed it.
//!
//! What nobody reads any more is forgotten.

use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::derived::Computations;
use super::fact::{Form, Number, Numbers, Scratch, Value, union};
use super::lanes::{Condition, Lanes};
use super::live::Live;
use super::origins::{Kept, Origin};
use super::places::Place;
use super::sets::{Renaming, Set};
use super::state::State;
use super::structure::Open;

/// The ways that lead to a join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'a> {
    pub(super) sides: [&'a State; 2],
    /// At the split.
    pub(super) before: &'a State,
    /// The predicate of the split.
    pub(super) guard: Place,
    /// Its branch.
    pub(super) branch: usize,
    pub(super) computations: &'a Computations,
}

/// Where ways meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting<'a> {
    pub(super) lanes: &'a Lanes,
    /// What is read there or later.
    pub(super) live: &'a Live,
    /// The splits that are open.
    pub(super) open: &'a [Open],
    /// How much the numbers became that places can hold there.
    pub(super) growth: &'a Growth,
    pub(super) precision: Precision,
}

/// How much is found out. Less is cheaper and mostly enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// Lanes are told apart by numbers where all lanes have one of a few.
    Coarse,
    /// Also where only some have.
    Fine,
}

/// How often the numbers became more that each place can hold, and how many they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth(RefCell<HashMap<usize, (usize, usize)>>);

/// If they become more more often than this, they are counted by the code, and not told apart.
const MOST_GROWTH: usize = 6;

impl Growth {
    /// Whether numbers may be so many now.
    fn allows(&self, index: usize, count: usize) -> bool {
        let mut growth = self.0.borrow_mut();
        let (times, last) = growth.entry(index).or_insert((0, count));
        if count > *last {
            (*times, *last) = (*times + 1, count);
        }
        *times <= MOST_GROWTH
    }
}

/// How lanes are told apart by a place behind a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    /// It is not read.
    Dead,
    /// By these numbers, if there are several.
    Numbers(Numbers),
    Unknown,
}

/// A way, in terms of what lanes are told apart by behind the meeting.
struct Way {
    active: Set,
    pairs: Set,
    /// In which lanes, of all that meet, it is the way that they came.
    taken: Set,
    values: Vec<Value>,
    kept: Vec<Kept>,
}

impl Way {
    /// Of pairs of lanes those of which both came this way.
    fn pairs_among(&self, lanes: &Lanes, pairs: Set) -> Set {
        lanes.and(pairs, lanes.both(self.taken))
    }
}

/// The lanes that meet come to `state`.
fn gather(state: &mut State, ways: &mut [Way], meeting: Meeting<'_>) {
    let lanes = meeting.lanes;
    state.active = ways.iter().fold(Set::NONE, |all, way| lanes.or(all, way.active));
    ways.iter_mut().for_each(|way| way.taken = lanes.given(way.active, state.active));
    let kept = meeting.open.iter().filter_map(|open| {
        let each = ways.iter().map(|way| {
            let kept = way.kept.iter().rfind(|kept| kept.branch == *open)?;
            Some((kept, way.taken))
        });
        let each = each.collect::<Option<SmallVec<[_; 4]>>>()?;
        Some(Kept::meet(lanes, &each))
    });
    state.kept = kept.collect();
}

/// What is known where `ways` meet that all active lanes came together.
pub(super) fn meet(ways: &[&State], meeting: Meeting<'_>) -> State {
    let lanes = meeting.lanes;
    let plans = plans(ways, meeting);
    let mut prepared: Vec<Way> = ways.iter().map(|way| prepare(way, &plans, meeting)).collect();
    let mut state = outline(ways, &plans);
    gather(&mut state, &mut prepared, meeting);
    state.pairs = prepared
        .iter()
        .fold(Set::NONE, |all, way| lanes.or(all, way.pairs_among(lanes, way.pairs)));
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        value.undefined = undefined(&prepared, index, lanes);
        if !meeting.live.is_shared(Place::from_index(index)) && value.has_others() {
            value.differs = Set::ALL;
            continue;
        }
        let differ = |way: &Way| way.values[index].differs;
        let first = differ(&prepared[0]);
        value.differs = if prepared.iter().all(|way| differ(way) == first) {
            first
        } else {
            prepared
                .iter()
                .fold(Set::NONE, |all, way| lanes.or(all, way.pairs_among(lanes, differ(way))))
        };
    }
    finish(state, lanes)
}

/// What is known at a join, where both sides of a split meet.
pub(super) fn join(parted: Sides<'_>, meeting: Meeting<'_>) -> State {
    let lanes = meeting.lanes;
    let Sides { sides, before, guard, branch, computations } = parted;
    let plans = plans(&sides, meeting);
    let mut prepared = sides.map(|side| prepare(side, &plans, meeting));
    let mut state = outline(&sides, &plans);
    gather(&mut state, &mut prepared, meeting);
    let [passed, taken] = &prepared;
    // Pairs whose first lane passed by and whose second one was taken.
    let truth = before.not_zero(lanes, guard);
    let parting = lanes.and(lanes.not(truth), lanes.other(truth));
    let parting = lanes.and(lanes.and(parting, before.pairs), lanes.both(before.active));
    let unknown = Kept::unknown(branch, before.values.len());
    let origins = prepared.each_ref().map(|way| {
        let kept = way.kept.iter().rfind(|kept| kept.branch == branch);
        kept.unwrap_or(&unknown)
    });
    let rest = Rest::new(lanes, before, parting, &plans, origins);
    let simple =
        |pairs: Set| lanes.given(lanes.given(pairs, passed.active), lanes.other(taken.active));
    let known = simple(rest.of(Set::ALL));
    let mixed = lanes.and(passed.taken, lanes.and(lanes.other(taken.taken), known));
    state.pairs = [
        passed.pairs_among(lanes, passed.pairs),
        taken.pairs_among(lanes, taken.pairs),
        mixed,
        lanes.other(mixed),
    ]
    .into_iter()
    .fold(Set::NONE, |all, pairs| lanes.or(all, pairs));
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        value.undefined = undefined(&prepared, index, lanes);
        let place = Place::from_index(index);
        let unchanged = matches!(origins[0].only(place), Origin::Place(_))
            && origins[0].of(place) == origins[1].of(place);
        if value.form == Form::OnStack && !unchanged {
            // How far away the lanes' own addresses are from each other is known only for what no
            // side changed.
            value.form = Form::Unknown;
        }
        if !value.has_others() {
            continue;
        }
        if !meeting.live.is_shared(Place::from_index(index)) {
            value.differs = Set::ALL;
            continue;
        }
        let shared = matches!(value.form, Form::Scratch | Form::GroupBlock);
        let differed = if shared {
            Set::NONE
        } else {
            let each = origins[0].of(place).iter();
            let pairs = each.flat_map(|a| origins[1].of(place).iter().map(move |b| (*a, *b)));
            pairs.fold(Set::NONE, |all, ((one, passed), (other, taken))| {
                let same = computations.places(one).filter(|_| one == other);
                let differing = match same {
                    Some(places) => places.iter().fold(Set::NONE, |all, &place| {
                        lanes.or(all, before.differing(lanes, place))
                    }),
                    None => Set::ALL,
                };
                let differing = match differing {
                    Set::NONE | Set::ALL => differing,
                    some => simple(rest.of(some)),
                };
                let pair = lanes.and(passed, lanes.other(taken));
                lanes.or(all, lanes.and(pair, differing))
            })
        };
        let [a, b] = [&passed.values[index], &taken.values[index]];
        // Nobody asks for differences to lanes in which it is not meant to be read.
        let meant = lanes.and(lanes.not(a.undefined), lanes.other(lanes.not(b.undefined)));
        let apart = lanes.and(lanes.and(mixed, differed), meant);
        let parts = [
            passed.pairs_among(lanes, a.differs),
            taken.pairs_among(lanes, b.differs),
            apart,
            lanes.other(apart),
        ];
        value.differs = parts.into_iter().fold(Set::NONE, |all, part| lanes.or(all, part));
    }
    finish(state, lanes)
}

/// In which lanes, of all ways, a place is not what is meant to be read.
fn undefined(ways: &[Way], index: usize, lanes: &Lanes) -> Set {
    let of = |way: &Way| way.values[index].undefined;
    let first = of(&ways[0]);
    if ways.iter().all(|way| of(way) == first) {
        return first;
    }
    ways.iter().fold(Set::NONE, |all, way| lanes.or(all, lanes.and(of(way), way.taken)))
}

/// By which numbers of which places lanes are told apart behind a meeting.
fn plans(ways: &[&State], meeting: Meeting<'_>) -> Vec<Plan> {
    let plan = |index: usize| {
        if !meeting.live.is_live(Place::from_index(index)) {
            return Plan::Dead;
        }
        // What is not meant to be read is any of the numbers that it is elsewhere.
        let values = ways.iter().map(|way| &way.values[index]);
        let meant: SmallVec<[&Value; 4]> =
            values.filter(|value| value.undefined != Set::ALL).collect();
        let computed = meant.iter().any(|value| value.computed);
        match union(meant.iter().map(|value| &value.numbers)) {
            Some(numbers)
                if !numbers.is_empty()
                    && (numbers.len() == 1
                        || !computed && meeting.live.is_compared(Place::from_index(index)))
                    && !(meeting.precision == Precision::Coarse
                        && numbers.contains(&Number::Other))
                    && meeting.growth.allows(index, numbers.len()) =>
            {
                Plan::Numbers(numbers)
            }
            _ => Plan::Unknown,
        }
    };
    (0..ways[0].values.len()).map(plan).collect()
}

/// What all ways agree on without a look at sets.
fn outline(ways: &[&State], plans: &[Plan]) -> State {
    let mut free = ways[0].free.clone();
    free.retain(|name| ways.iter().all(|way| way.free.contains(name)));
    let values = plans.iter().enumerate().map(|(index, plan)| {
        if *plan == Plan::Dead {
            return Value::undefined();
        }
        let values: SmallVec<[&Value; 4]> = ways.iter().map(|way| &way.values[index]).collect();
        let mut names: SmallVec<[_; 1]> = smallvec![];
        for name in values.iter().flat_map(|value| &value.names) {
            let mut each = values.iter().zip(ways);
            let known = each.all(|(value, way)| {
                value.undefined == Set::ALL || value.names.contains(name) || way.free.contains(name)
            });
            if known && !names.contains(name) {
                names.push(*name);
            }
        }
        if let Plan::Numbers(numbers) = plan {
            let value = match **numbers {
                [Number::Is(number)] => Value::constant(number),
                _ => Value { numbers: Some(Rc::clone(numbers)), ..Value::uniform() },
            };
            let computed = values.iter().any(|value| value.computed);
            return Value { names, computed, ..value };
        }
        let mut forms = values.iter().filter(|v| v.undefined != Set::ALL).map(|v| v.form);
        let first = forms.next().unwrap_or(Form::Unknown);
        let form = if forms.all(|form| form == first) { first } else { Form::Unknown };
        Value { form, names, ..Value::uniform() }
    });
    let values: Vec<Value> = values.collect();
    State {
        values,
        active: Set::ALL,
        pairs: Set::ALL,
        kept: Vec::new(),
        free,
        scratch: Scratch::Anything,
    }
}

/// A way with lanes told apart as they are behind the meeting.
fn prepare(way: &State, plans: &[Plan], meeting: Meeting<'_>) -> Way {
    let lanes = meeting.lanes;
    let shared = |place: Place| meeting.live.is_shared(place);
    let mut state = way.clone();
    let mut gone = SmallVec::<[Condition; 16]>::new();
    for (index, plan) in plans.iter().enumerate() {
        let place = Place::from_index(index);
        let value = way.value(place);
        let wanted = match plan {
            Plan::Dead => false,
            Plan::Numbers(numbers) => numbers.len() > 1 && value.undefined != Set::ALL,
            Plan::Unknown => {
                if value.numbers.is_some() && shared(place) {
                    state.values[index].differs = way.differing(lanes, place);
                }
                false
            }
        };
        if *plan == Plan::Dead {
            state.values[index] = Value::undefined();
        }
        if !shared(place) {
            state.values[index].differs = Set::ALL;
        }
        if !wanted {
            gone.extend(value.told_apart().map(|number| Condition::Holds(place, number)));
        }
    }
    let gone = lanes.hidden(gone);
    state.hide(lanes, lanes.both(gone));
    let mut one = Set::ALL;
    for (index, plan) in plans.iter().enumerate() {
        let Plan::Numbers(numbers) = plan else { continue };
        let place = Place::from_index(index);
        let value = way.value(place);
        if numbers.len() < 2 {
            continue;
        }
        for &number in numbers.iter().filter(|&&number| number != Number::ZERO) {
            let condition = lanes.condition(Condition::Holds(place, number));
            let holds = match (value.form, &value.numbers) {
                _ if value.undefined == Set::ALL => false,
                (Form::Constant(constant), _) => Number::Is(constant) == number,
                (_, None) => number == Number::Other,
                (_, Some(numbers)) if numbers.contains(&number) => continue,
                _ => false,
            };
            let known = if holds { condition } else { lanes.not(condition) };
            one = lanes.and(one, known);
        }
    }
    let active = lanes.and(state.active, one);
    Way { active, pairs: state.pairs, taken: Set::ALL, values: state.values, kept: state.kept }
}

/// Numbers that no lane has are left out.
fn finish(mut state: State, lanes: &Lanes) -> State {
    let mut gone = SmallVec::<[Condition; 16]>::new();
    for index in 0..state.values.len() {
        let place = Place::from_index(index);
        let value = state.value(place);
        let Some(numbers) = value.numbers.clone().filter(|numbers| numbers.len() > 1) else {
            continue;
        };
        let there =
            |&&number: &&Number| !lanes.apart(state.active, state.holds(lanes, place, number));
        let left: Numbers = numbers.iter().filter(there).copied().collect();
        if left.len() == numbers.len() || left.is_empty() {
            continue;
        }
        let told: SmallVec<[Number; 4]> = value.told_apart().collect();
        let kept: SmallVec<[Number; 4]> = match *left {
            [Number::Other] => {
                state.values[index].numbers = None;
                smallvec![]
            }
            [Number::Is(number)] => {
                let Value { form, numbers, .. } = Value::constant(number);
                let value = &mut state.values[index];
                (value.form, value.numbers) = (form, numbers);
                smallvec![]
            }
            _ => {
                state.values[index].numbers = Some(left);
                state.values[index].told_apart().collect()
            }
        };
        let left_out = told.into_iter().filter(|number| !kept.contains(number));
        gone.extend(left_out.map(|number| Condition::Holds(place, number)));
    }
    let gone = lanes.hidden(gone);
    state.hide(lanes, lanes.both(gone));
    state.settle(lanes);
    state
}

/// What remains behind a join of what was known of a pair of lanes when they parted.
struct Rest<'a> {
    lanes: &'a Lanes,
    /// The pairs that parted, as far as the sides that the lanes took say that they can be there.
    parted: Set,
    /// What is not there any more, and in no other place.
    gone: Set,
    /// What is in another place.
    moved: Renaming,
    /// What is in several places is the same in all of them.
    copies: Vec<Set>,
}

impl<'a> Rest<'a> {
    fn new(
        lanes: &'a Lanes,
        before: &State,
        parting: Set,
        plans: &[Plan],
        origins: [&Kept; 2],
    ) -> Rest<'a> {
        let sides = origins.map(|origins| Moves::of(before, plans, origins));
        let moved = lanes.renaming(sides.each_ref().map(|side| &*side.moved));
        let mut rest = Rest { lanes, parted: parting, gone: Set::ALL, moved, copies: Vec::new() };
        for (number, side) in sides.into_iter().enumerate() {
            let of_side = |set| if number == 0 { set } else { lanes.other(set) };
            let is = |condition| of_side(lanes.condition(condition));
            for condition in side.impossible {
                rest.parted = lanes.minus(rest.parted, is(condition));
            }
            rest.gone = lanes.and(rest.gone, of_side(lanes.hidden(side.gone)));
            let copies = side.copies.into_iter().map(|(one, other)| lanes.same(is(one), is(other)));
            rest.copies.extend(copies);
        }
        rest
    }

    /// Of the pairs that parted those of `pairs`, in terms of what there is now.
    fn of(&self, pairs: Set) -> Set {
        let lanes = self.lanes;
        let left = lanes.image(self.parted, pairs, self.gone);
        let moved = lanes.rename(left, self.moved);
        self.copies.iter().fold(moved, |pairs, &copies| lanes.and(pairs, copies))
    }
}

/// What became of the conditions that there were at a split, on one of its sides.
#[derive(Default)]
struct Moves {
    /// The numbers are not there any more.
    impossible: Vec<Condition>,
    /// Nothing says of them any more whether they are true.
    gone: Vec<Condition>,
    /// What they are in terms of other places.
    moved: Vec<(Condition, Condition)>,
    /// What is the same behind the join.
    copies: Vec<(Condition, Condition)>,
}

impl Moves {
    fn of(before: &State, plans: &[Plan], origins: &Kept) -> Moves {
        let mut moves = Moves::default();
        // What each condition is called behind the join.
        let mut names: HashMap<Condition, SmallVec<[Condition; 2]>> = HashMap::new();
        for (index, plan) in plans.iter().enumerate() {
            let place = Place::from_index(index);
            let (Plan::Numbers(numbers), Origin::Place(origin)) = (plan, origins.only(place))
            else {
                continue;
            };
            for number in before.value(origin).told_apart() {
                let from = Condition::Holds(origin, number);
                if !numbers.contains(&number) {
                    moves.impossible.push(from);
                } else if numbers.len() > 1 {
                    names.entry(from).or_default().push(Condition::Holds(place, number));
                }
            }
        }
        for (index, value) in before.values.iter().enumerate() {
            let place = Place::from_index(index);
            for from in value.told_apart().map(|number| Condition::Holds(place, number)) {
                let names = names.get(&from).map_or(&[][..], |names| &**names);
                let first = names.iter().find(|&&name| name == from).or(names.first());
                match first {
                    None => moves.gone.push(from),
                    Some(&first) => {
                        if first != from {
                            moves.moved.push((from, first));
                        }
                        let others = names.iter().filter(|&&name| name != first);
                        moves.copies.extend(others.map(|&name| (first, name)));
                    }
                }
            }
        }
        moves
    }
}
