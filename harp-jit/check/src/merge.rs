//! What is known where ways meet.
//!
//! Where a uniform branch is behind them, all active lanes come the same way together: what is known of two lanes is
//! what was known of them on one of the ways. Join instructions are different, see `join`.
//!
//! What nobody reads any more is forgotten.

use std::cell::RefCell;
use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::bdd::Set;
use crate::fact::{Form, Scratch, Value};
use crate::lanes::{Condition, Lanes};
use crate::live::Live;
use crate::number::{Number, Numbers, Precision, union};
use crate::places::Place;
use crate::provenance::{Gate, Provenance};
use crate::state::State;
use crate::structure::Open;

/// Where ways meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergePoint<'a> {
    pub(crate) lanes: &'a Lanes,
    /// What is read there or later.
    pub(crate) live: &'a Live,
    /// The splits that are open.
    pub(crate) open: &'a [Open],
    /// How much the numbers became that places can hold there.
    pub(crate) growth: &'a Growth,
    pub(crate) precision: Precision,
    /// If it is known what decides by which way lanes come.
    pub(crate) gate: Option<Gate<'a>>,
}

/// How often the numbers became more that each place can hold, and how many they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Growth(RefCell<HashMap<usize, (usize, usize)>>);

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
pub(crate) enum Plan {
    /// It is not read.
    Dead,
    /// By these numbers, if there are several.
    Numbers(Numbers),
    Unknown,
}

/// A way, in terms of what lanes are told apart by behind the meeting.
pub(crate) struct Way {
    pub(crate) active: Set,
    pub(crate) pairs: Set,
    /// In which lanes, of all that meet, it is the way that they came.
    pub(crate) taken: Set,
    pub(crate) values: Vec<Value>,
    pub(crate) provenance: Vec<Provenance>,
}

impl Way {
    /// Where values come from that were there at an open split.
    pub(crate) fn of(&self, branch: usize) -> Option<&Provenance> {
        Provenance::find(&self.provenance, branch)
    }

    /// Of pairs of lanes those of which both came this way.
    pub(crate) fn pairs_among(&self, lanes: &Lanes, pairs: Set) -> Set {
        lanes.and(pairs, lanes.both(self.taken))
    }
}

/// The lanes that meet come to `state`.
pub(crate) fn gather(state: &mut State, ways: &mut [Way], meeting: MergePoint<'_>) {
    let lanes = meeting.lanes;
    state.active = ways.iter().fold(Set::NONE, |all, way| lanes.or(all, way.active));
    ways.iter_mut().for_each(|way| way.taken = lanes.restrict(way.active, state.active));
    let kept = meeting.open.iter().filter_map(|open| {
        let each = ways.iter().map(|way| Some((way.of(*open)?, way.taken)));
        let each = each.collect::<Option<SmallVec<[_; 4]>>>()?;
        Some(Provenance::meet(lanes, &each, meeting.gate))
    });
    state.provenance = kept.collect();
}

/// What is known where `ways` meet that all active lanes came together.
pub(crate) fn merge(ways: &[&State], meeting: MergePoint<'_>) -> State {
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

/// In which lanes, of all ways, a place is not what is meant to be read.
pub(crate) fn undefined(ways: &[Way], index: usize, lanes: &Lanes) -> Set {
    let of = |way: &Way| way.values[index].undefined;
    let first = of(&ways[0]);
    if ways.iter().all(|way| of(way) == first) {
        return first;
    }
    ways.iter().fold(Set::NONE, |all, way| lanes.or(all, lanes.and(of(way), way.taken)))
}

/// By which numbers of which places lanes are told apart behind a meeting.
pub(crate) fn plans(ways: &[&State], meeting: MergePoint<'_>) -> Vec<Plan> {
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
pub(crate) fn outline(ways: &[&State], plans: &[Plan]) -> State {
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
        provenance: Vec::new(),
        free,
        scratch: Scratch::Anything,
    }
}

/// A way with lanes told apart as they are behind the meeting.
pub(crate) fn prepare(way: &State, plans: &[Plan], meeting: MergePoint<'_>) -> Way {
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
            gone.extend(value.distinguished().map(|number| Condition::Holds(place, number)));
        }
    }
    let gone = lanes.cube(gone);
    state.project(lanes, gone);
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
    Way {
        active,
        pairs: state.pairs,
        taken: Set::ALL,
        values: state.values,
        provenance: state.provenance,
    }
}

/// Numbers that no lane has are left out.
pub(crate) fn finish(mut state: State, lanes: &Lanes) -> State {
    let mut gone = SmallVec::<[Condition; 16]>::new();
    for index in 0..state.values.len() {
        let place = Place::from_index(index);
        let value = state.value(place);
        let Some(numbers) = value.numbers.clone().filter(|numbers| numbers.len() > 1) else {
            continue;
        };
        let there =
            |&&number: &&Number| !lanes.disjoint(state.active, state.holds(lanes, place, number));
        let left: Numbers = numbers.iter().filter(there).copied().collect();
        if left.len() == numbers.len() || left.is_empty() {
            continue;
        }
        let told: SmallVec<[Number; 4]> = value.distinguished().collect();
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
                state.values[index].distinguished().collect()
            }
        };
        let left_out = told.into_iter().filter(|number| !kept.contains(number));
        gone.extend(left_out.map(|number| Condition::Holds(place, number)));
    }
    let gone = lanes.cube(gone);
    state.project(lanes, gone);
    state.normalize(lanes);
    state
}
