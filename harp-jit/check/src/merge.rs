//! The state where paths meet.
//!
//! Where a uniform branch is behind them, all active lanes come the same way together: what is known of two lanes is
//! what was known of them on one of the ways. At a join instruction there are pairs of lanes that came different ways
//! besides, see `join`.
//!
//! Facts about dead places are dropped.

use std::collections::{BTreeMap, BTreeSet};

use harp_bdd::Set;
use smallvec::SmallVec;

use crate::fact::Value;
use crate::join::{Across, Parted, Plan, Way};
use crate::lanes::Condition;
use crate::live::Live;
use crate::number::{Number, Precision, union};
use crate::op::Form;
use crate::places::Place;
use crate::provenance::{Gate, Provenance};
use crate::state::State;
use crate::structure::Open;

/// A place where paths meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergePoint<'p> {
    /// The live places.
    pub(crate) live: &'p Live,
    /// The splits that are open.
    pub(crate) open: &'p [Open],
    pub(crate) precision: Precision,
    /// The conditions that decide along which path lanes come, if they are known.
    pub(crate) gate: Option<Gate<'p>>,
}

/// The state where `ways` meet: all active lanes came along one of them together, or they are the sides of a split.
pub(crate) fn merge<'a>(
    ways: Vec<State<'a>>,
    meeting: MergePoint<'_>,
    parted: Option<Parted<'_, 'a>>,
) -> State<'a> {
    let plans: Vec<Plan> =
        (0..ways[0].values.len()).map(|index| plan(&ways, meeting, index)).collect();
    let values =
        plans.iter().enumerate().map(|(index, plan)| outline(&ways, plan, index)).collect();
    let mut state = State::new(ways[0].lanes, values);
    state.free.clone_from(&ways[0].free);
    state.free.retain(|name| ways.iter().all(|way| way.free.contains(name)));
    let mut prepared: Vec<Way<'a>> =
        ways.into_iter().map(|way| prepare(way, &plans, meeting.live)).collect();
    state.active = prepared.iter().fold(Set::NONE, |all, way| all | way.state.active);
    prepared.iter_mut().for_each(|way| way.taken = way.state.active.restrict(state.active));
    state.equal = copies(&prepared, &plans);
    let kept = meeting.open.iter().filter_map(|&open| {
        let each = prepared.iter().map(|way| Some((way.of(open)?, way.taken)));
        Some(Provenance::meet(&each.collect::<Option<SmallVec<[_; 4]>>>()?, meeting.gate))
    });
    state.provenance = kept.collect();
    let across = parted.map(|parted| Across::new(parted, &prepared, &plans));
    let all = |of: &dyn Fn(&Way<'a>) -> Set<'a>| {
        prepared.iter().fold(Set::NONE, |all, way| all | (of(way) & way.taken.both()))
    };
    state.pairs = all(&|way| way.state.pairs);
    if let Some(across) = &across {
        state.pairs = state.pairs | across.pairs | across.pairs.other();
    }
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        let undefined = |way: &Way<'a>| way.state.values[index].undefined;
        let first = undefined(&prepared[0]);
        value.undefined = match prepared.iter().all(|way| undefined(way) == first) {
            true => first,
            false => prepared.iter().fold(Set::NONE, |all, way| all | (undefined(way) & way.taken)),
        };
        let place = Place::from_index(index);
        if let Some(across) = &across
            && value.form == Form::OnStack
            && !across.is_unchanged(place)
        {
            // How far away the lanes' own addresses are from each other is known only for what no
            // side changed.
            value.form = Form::Unknown;
        }
        if !value.has_others() {
            continue;
        }
        let differs = |way: &Way<'a>| way.state.values[index].differs;
        let first = differs(&prepared[0]);
        value.differs = match &across {
            _ if !meeting.live.is_shared(place) => Set::ALL,
            None if prepared.iter().all(|way| differs(way) == first) => first,
            None => all(&differs),
            Some(across) => {
                let apart = across.differing(place, value.form);
                all(&differs) | apart | apart.other()
            }
        };
    }
    state.leave_out();
    state.normalize();
    state
}

/// In which lanes places hold the same behind a meeting.
fn copies<'a>(ways: &[Way<'a>], plans: &[Plan]) -> BTreeMap<(Place, Place), Set<'a>> {
    let is_live = |place: Place| plans[place.index()] != Plan::Dead;
    let known = ways.iter().flat_map(|way| way.state.equal.keys().copied());
    let known: BTreeSet<_> = known.filter(|&(a, b)| is_live(a) && is_live(b)).collect();
    // Lanes that are not told apart may have come by any way.
    let of = |way: &Way<'a>, (a, b)| way.state.equal(a, b) | !way.taken;
    let all = |pair| ways.iter().fold(Set::ALL, |all, way| all & of(way, pair));
    known.into_iter().map(|pair| (pair, all(pair))).collect()
}

/// By which numbers of a place lanes are told apart behind a meeting.
fn plan(ways: &[State<'_>], meeting: MergePoint<'_>, index: usize) -> Plan {
    let place = Place::from_index(index);
    if !meeting.live.is_live(place) {
        return Plan::Dead;
    }
    // An undefined value is any of the numbers that it is elsewhere.
    let meant = ways.iter().map(|way| way.value(place)).filter(|value| value.undefined != Set::ALL);
    let is_told = !meant.clone().any(|value| value.computed) && meeting.live.is_compared(place);
    let is_coarse = meeting.precision == Precision::Coarse;
    union(meant.map(|value| &value.numbers))
        .filter(|numbers| {
            (numbers.len() == 1 || is_told) && !(is_coarse && numbers.contains(&Number::Other))
        })
        .map_or(Plan::Unknown, Plan::Numbers)
}

/// What all ways agree on without a look at sets.
fn outline<'a>(ways: &[State<'a>], plan: &Plan, index: usize) -> Value<'a> {
    if *plan == Plan::Dead {
        return Value::undefined();
    }
    let mut value = Value::uniform();
    for &name in ways.iter().flat_map(|way| &way.values[index].names) {
        let is_known = ways.iter().all(|way| {
            let value = &way.values[index];
            value.undefined == Set::ALL || value.names.contains(&name) || way.free.contains(&name)
        });
        if is_known && !value.names.contains(&name) {
            value.names.push(name);
        }
    }
    let values = ways.iter().map(|way| &way.values[index]);
    if let Plan::Numbers(numbers) = plan {
        value.computed = values.clone().any(|value| value.computed);
        return value.among(numbers.clone());
    }
    let mut forms = values.filter(|value| value.undefined != Set::ALL).map(|value| value.form);
    let first = forms.next().unwrap_or(Form::Unknown);
    value.form = if forms.all(|form| form == first) { first } else { Form::Unknown };
    value
}

/// A way with lanes told apart as they are behind the meeting.
fn prepare<'a>(mut state: State<'a>, plans: &[Plan], live: &Live) -> Way<'a> {
    let mut gone = SmallVec::<[Condition; 16]>::new();
    let mut known = Set::ALL;
    for (index, plan) in plans.iter().enumerate() {
        let place = Place::from_index(index);
        let value = state.value(place);
        let is_meant = value.undefined != Set::ALL;
        let told = match plan {
            Plan::Numbers(numbers) if numbers.len() > 1 => Some(numbers),
            _ => None,
        };
        if told.is_none() || !is_meant {
            gone.extend(value.distinguished().map(|number| Condition::Holds(place, number)));
        }
        let numbers = told.into_iter().flat_map(|numbers| numbers.iter().copied());
        for number in numbers.filter(|&number| number != Number::ZERO) {
            let holds = if is_meant { state.holds(place, number) } else { Set::NONE };
            // Where lanes were not told apart by it, all have the number, or none has.
            if holds.is_constant() {
                let condition = state.lanes.condition(Condition::Holds(place, number));
                known = known & !(condition ^ holds);
            }
        }
        let differs = match plan {
            Plan::Dead => {
                state.values[index] = Value::undefined();
                continue;
            }
            _ if !live.is_shared(place) => Set::ALL,
            Plan::Unknown => state.differing(place),
            Plan::Numbers(_) => continue,
        };
        state.values[index].differs = differs;
    }
    state.project(state.lanes.cube(gone));
    state.active = state.active & known;
    Way { state, taken: Set::ALL }
}
