//! What is known where ways meet.
//!
//! Two kinds of meeting are different. Where a uniform branch is behind them, all active lanes come the same way
//! together: what is known of two lanes is what was known of them on one of the ways. At a join, lanes that
//! went different ways run on together. Of a pair of them it is known what each side says of its lane, and
//! what was known of the two when they parted, as far as neither side changed it.
//!
//! What nobody reads any more is forgotten.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::lanes::{Condition, Lanes};
use super::live::Live;
use super::places::Place;
use super::sets::Set;
use super::state::{Form, Kept, Number, Numbers, Scratch, State, Value, union};
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
struct Way<'a> {
    lanes: &'a Lanes,
    pairs: Set,
    active: OnceCell<Set>,
    values: Vec<Value>,
}

impl Way<'_> {
    /// Of a set of lanes those that come this way.
    fn among(&self, set: Set) -> Set {
        match set {
            Set::NONE => Set::NONE,
            _ => {
                let active = *self.active.get_or_init(|| self.lanes.first(self.pairs));
                self.lanes.and(set, active)
            }
        }
    }
}

/// What is known where `ways` meet that all active lanes came together.
pub(super) fn meet(ways: &[&State], meeting: Meeting<'_>) -> State {
    let lanes = meeting.lanes;
    let plans = plans(ways, meeting);
    let prepared: Vec<Way<'_>> = ways.iter().map(|way| prepare(way, &plans, meeting)).collect();
    let pairs = prepared.iter().fold(Set::NONE, |all, way| lanes.or(all, way.pairs));
    let mut state = outline(ways, &plans, meeting);
    state.pairs = pairs;
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        value.undefined = undefined(&prepared, index, lanes);
        if !meeting.live.is_shared(Place::from_index(index)) && value.has_others() {
            value.differs = Set::ALL;
            continue;
        }
        let differ = |way: &Way<'_>| way.values[index].differs;
        let first = differ(&prepared[0]);
        value.differs = if prepared.iter().all(|way| differ(way) == first) {
            first
        } else {
            prepared
                .iter()
                .fold(Set::NONE, |all, way| lanes.or(all, lanes.and(differ(way), way.pairs)))
        };
    }
    finish(state, lanes)
}

/// What is known at a join, where both sides of a split meet.
pub(super) fn join(parted: Sides<'_>, meeting: Meeting<'_>) -> State {
    let lanes = meeting.lanes;
    let Sides { sides, before, guard, branch } = parted;
    let plans = plans(&sides, meeting);
    let prepared = sides.map(|side| prepare(side, &plans, meeting));
    let [passed, taken] = &prepared;
    // Pairs whose first lane passed by and whose second one was taken.
    let truth = before.not_zero(lanes, guard);
    let parting = lanes.and(lanes.not(truth), lanes.other(truth));
    let parting = lanes.and(parting, before.pairs);
    let origins = sides.map(|side| origins(side, branch));
    let rest = Rest::new(lanes, before, &plans, [&origins[0], &origins[1]]);
    let known = rest.of(parting);
    let [all_passed, all_taken] = [passed, taken].map(|way| way.among(Set::ALL));
    let mixed = lanes.and(all_passed, lanes.and(lanes.other(all_taken), known));
    let mut state = outline(&sides, &plans, meeting);
    state.pairs = [passed.pairs, taken.pairs, mixed, lanes.other(mixed)]
        .into_iter()
        .fold(Set::NONE, |all, pairs| lanes.or(all, pairs));
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        value.undefined = undefined(&prepared, index, lanes);
        let origin = origins[0][index].filter(|_| origins[0][index] == origins[1][index]);
        if value.form == Form::OnStack && origin.is_none() {
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
        let differed = match origin {
            _ if shared => Set::NONE,
            Some(origin) => match before.differing(lanes, origin) {
                Set::NONE => Set::NONE,
                Set::ALL => Set::ALL,
                differing => rest.of(lanes.and(parting, differing)),
            },
            None => Set::ALL,
        };
        let [a, b] = [&passed.values[index], &taken.values[index]];
        // Nobody asks for differences to lanes in which it is not meant to be read.
        let meant = lanes.and(lanes.not(a.undefined), lanes.other(lanes.not(b.undefined)));
        let apart = lanes.and(lanes.and(mixed, differed), meant);
        let parts = [
            lanes.and(a.differs, passed.pairs),
            lanes.and(b.differs, taken.pairs),
            apart,
            lanes.other(apart),
        ];
        value.differs = parts.into_iter().fold(Set::NONE, |all, part| lanes.or(all, part));
    }
    finish(state, lanes)
}

/// Where the values of each place were at a split.
fn origins(side: &State, branch: usize) -> Rc<Vec<Option<Place>>> {
    let kept = side.kept.iter().rfind(|kept| kept.branch == branch);
    kept.map_or_else(|| Rc::new(vec![None; side.values.len()]), |kept| Rc::clone(&kept.origins))
}

/// In which lanes, of all ways, a place is not what is meant to be read.
fn undefined(ways: &[Way<'_>], index: usize, lanes: &Lanes) -> Set {
    let of = |way: &Way<'_>| way.values[index].undefined;
    let first = of(&ways[0]);
    if ways.iter().all(|way| of(way) == first) {
        return first;
    }
    ways.iter().fold(Set::NONE, |all, way| lanes.or(all, way.among(of(way))))
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
fn outline(ways: &[&State], plans: &[Plan], meeting: Meeting<'_>) -> State {
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
    let kept = meeting.open.iter().filter_map(|open| {
        let each: Option<SmallVec<[&Kept; 4]>> = (ways.iter())
            .map(|way| way.kept.iter().rfind(|kept| kept.branch == open.branch))
            .collect();
        let each = each?;
        let first = each[0];
        let mut origins = Rc::clone(&first.origins);
        for other in &each[1..] {
            if other.origins != origins {
                let both = origins.iter().zip(&*other.origins);
                origins = Rc::new(both.map(|(a, b)| a.filter(|_| a == b)).collect());
            }
        }
        Some(Kept { branch: open.branch, origins })
    });
    let kept = kept.collect();
    State { values, pairs: Set::ALL, kept, free, scratch: Scratch::Anything }
}

/// A way with lanes told apart as they are behind the meeting.
fn prepare<'a>(way: &State, plans: &[Plan], meeting: Meeting<'a>) -> Way<'a> {
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
    let pairs = lanes.and(state.pairs, lanes.both(one));
    Way { lanes, pairs, active: OnceCell::new(), values: state.values }
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
            |&&number: &&Number| !lanes.apart(state.pairs, state.holds(lanes, place, number));
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
    /// What the sides that the lanes took say about the numbers that there were.
    possible: Set,
    /// What is not there any more, and in no other place.
    gone: Set,
    /// What is in another place: what it was, what it becomes, and what is not asked for after that.
    /// One after the other, first to where nothing else is, then to where it belongs.
    moves: Vec<(Set, Set, Set)>,
}

impl<'a> Rest<'a> {
    fn new(
        lanes: &'a Lanes,
        before: &State,
        plans: &[Plan],
        origins: [&[Option<Place>]; 2],
    ) -> Rest<'a> {
        let mut rest = Rest { lanes, possible: Set::ALL, gone: Set::ALL, moves: Vec::new() };
        for (side, origins) in origins.into_iter().enumerate() {
            rest.add_side(before, plans, origins, |set| match side {
                0 => set,
                _ => lanes.other(set),
            });
        }
        rest
    }

    fn add_side(
        &mut self,
        before: &State,
        plans: &[Plan],
        origins: &[Option<Place>],
        of_side: impl Fn(Set) -> Set,
    ) {
        let lanes = self.lanes;
        let is = |condition| of_side(lanes.condition(condition));
        let hidden = |condition| of_side(lanes.hidden([condition]));
        // How often each condition is asked for: those that stay where they are, for good.
        let mut uses: HashMap<Condition, usize> = HashMap::new();
        let mut moved = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            let (Plan::Numbers(numbers), Some(origin)) = (plan, origins[index]) else { continue };
            let place = Place::from_index(index);
            for number in before.value(origin).told_apart() {
                let from = Condition::Holds(origin, number);
                if !numbers.contains(&number) {
                    self.possible = lanes.minus(self.possible, is(from));
                } else if numbers.len() > 1 {
                    *uses.entry(from).or_insert(0) += 1;
                    if origin != place {
                        moved.push((
                            from,
                            Condition::Next(place, number),
                            Condition::Holds(place, number),
                        ));
                    }
                }
            }
        }
        for (index, value) in before.values.iter().enumerate() {
            let all = value.told_apart().map(|n| Condition::Holds(Place::from_index(index), n));
            for condition in all.filter(|condition| !uses.contains_key(condition)) {
                self.gone = lanes.and(self.gone, hidden(condition));
            }
        }
        for &(from, next, _) in &moved {
            let left = uses.get_mut(&from).expect("it was counted above");
            *left -= 1;
            let gone = if *left == 0 { hidden(from) } else { Set::ALL };
            self.moves.push((is(from), is(next), gone));
        }
        self.moves.extend(moved.iter().map(|&(_, next, now)| (is(next), is(now), hidden(next))));
    }

    fn of(&self, pairs: Set) -> Set {
        let lanes = self.lanes;
        let left = lanes.hide(lanes.and(pairs, self.possible), self.gone);
        self.moves.iter().fold(left, |left, &(from, to, gone)| {
            lanes.hide(lanes.and(left, lanes.same(from, to)), gone)
        })
    }
}
