//! The abstract state at one program point: facts about the values in registers and spill slots.
//!
//! Every fact is about the active lanes. Places that hold one of a few numbers, predicates above all, tell lanes apart:
//! the state knows exactly which combinations of numbers occur in one lane and in any two lanes at a time. Of all other
//! places it knows in which pairs of lanes they may differ. Both kinds of fact state in which lanes a place holds an
//! undefined value.
//!
//! An undefined value may be taken to be anything, because nothing observable depends on it: the checker proves that.

use std::collections::{BTreeMap, BTreeSet};

use harp_bdd::Set;
use smallvec::SmallVec;

use crate::fact::{Detail, New, Scratch, Valuation, Value};
use crate::lanes::{Condition, Lanes};
use crate::number::{Number, Numbers, union};
use crate::op::Form;
use crate::places::Place;
use crate::provenance::Provenance;
use crate::record::Name;
use crate::term::Origin;

/// All facts at one program point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State<'a> {
    pub(crate) lanes: &'a Lanes,
    /// What each place holds.
    pub(crate) values: Vec<Value<'a>>,
    /// The combinations of numbers in a lane.
    pub(crate) active: Set<'a>,
    /// In which lanes two places hold the same because the one was copied to the other, meant or not. The lesser place
    /// comes first.
    pub(crate) equal: BTreeMap<(Place, Place), Set<'a>>,
    /// What is known of the numbers in two lanes at a time, beyond what is known of each.
    pub(crate) pairs: Set<'a>,
    /// Of open splits, from the outermost on.
    pub(crate) provenance: Vec<Provenance<'a>>,
    /// Names of selected predicates that are dead, so that they may equal whatever a place holds.
    pub(crate) free: BTreeSet<Name>,
    /// What the lanes wrote to the warp's scratch word last.
    pub(crate) scratch: Scratch<'a>,
}

impl<'a> State<'a> {
    /// A state with no facts but those about the places.
    pub(crate) fn new(lanes: &'a Lanes, values: Vec<Value<'a>>) -> State<'a> {
        State {
            lanes,
            equal: BTreeMap::new(),
            values,
            active: Set::ALL,
            pairs: Set::ALL,
            provenance: Vec::new(),
            free: BTreeSet::new(),
            scratch: Scratch::Anything,
        }
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set<'a>> {
        let voted = match self.scratch {
            Scratch::Vote(voted) => Some(voted),
            Scratch::Anything | Scratch::Zero => None,
        };
        let origins = self.provenance.iter().flat_map(Provenance::sets);
        let values = self.values.iter().flat_map(Value::sets);
        let equal = self.equal.values().copied();
        [self.active, self.pairs].into_iter().chain(voted).chain(origins).chain(values).chain(equal)
    }

    pub(crate) fn value(&self, place: Place) -> &Value<'a> {
        &self.values[place.index()]
    }

    fn condition(&self, place: Place, number: Number) -> Set<'a> {
        self.lanes.condition(Condition::Holds(place, number))
    }

    /// The lanes in which a place that holds one of a few numbers holds this one.
    pub(crate) fn holds(&self, place: Place, number: Number) -> Set<'a> {
        match self.value(place).numbers.as_deref().unwrap_or(&[Number::Other]) {
            numbers if !numbers.contains(&number) => Set::NONE,
            [_] => Set::ALL,
            _ if number == Number::ZERO => !self.not_zero(place),
            _ => self.condition(place, number),
        }
    }

    /// The lanes in which a place that holds one of a few numbers does not hold 0.
    pub(crate) fn not_zero(&self, place: Place) -> Set<'a> {
        let value = self.value(place);
        match value.form {
            Form::Constant(0) => Set::NONE,
            Form::Constant(_) => Set::ALL,
            _ => {
                let each = value.distinguished().map(|number| self.condition(place, number));
                each.fold(Set::NONE, |all, holds| all | holds)
            }
        }
    }

    /// The pairs of lanes, there or not, in which a place may hold different values.
    pub(crate) fn differing(&self, place: Place) -> Set<'a> {
        let value = self.value(place);
        if value.numbers.is_none() {
            return value.differs;
        }
        let others = match value.has_others() {
            true => value.differs & self.condition(place, Number::Other).both(),
            false => Set::NONE,
        };
        value.distinguished().fold(others, |all, number| {
            let one = self.condition(place, number);
            all | (one ^ one.other())
        })
    }

    /// The same by all places that hold what this one does.
    pub(crate) fn differing_by_copies(&self, place: Place) -> Set<'a> {
        self.copies(place).into_iter().fold(self.differing(place), |differing, (other, lanes)| {
            let same = lanes & !self.value(other).undefined;
            if differing == Set::NONE {
                differing
            } else {
                differing & (self.differing(other) | !same.both())
            }
        })
    }

    /// Of the places that hold what this one does in all lanes, and are meant where this one is, the first.
    pub(crate) fn first_copy(&self, place: Place) -> Place {
        let is_copy = |&(other, lanes): &(Place, Set<'a>)| {
            let is_less = self.value(other).undefined & !self.value(place).undefined;
            self.active.disjoint(!lanes | is_less)
        };
        let copies = self.copies(place).into_iter().filter(is_copy);
        copies.map(|(other, _)| other).fold(place, Place::min)
    }

    /// Whether all lanes hold the same in a place.
    pub(crate) fn is_uniform(&self, place: Place) -> bool {
        (self.differing(place) & self.pairs & self.active).disjoint(self.active.other())
    }

    /// Pairs of active lanes that may hold different values in a place.
    pub(crate) fn disagreeing(&self, place: Place) -> Set<'a> {
        self.differing(place) & self.pairs & self.active.both()
    }

    /// Whether what a place holds is meant to be read in all active lanes of a set.
    pub(crate) fn is_defined(&self, place: Place, among: Set<'a>) -> bool {
        self.active.disjoint(self.value(place).undefined & among)
    }

    /// Lanes are told apart by whether a place holds 0, which a predicate says of it.
    pub(crate) fn refine_zero(&mut self, place: Place, (predicate, inverted): (Place, bool)) {
        let (value, truth) = (self.value(place), self.value(predicate));
        // Where it was computed from an undefined value, the predicate says nothing.
        let vain = truth.undefined & !value.undefined;
        if !value.has_others()
            || value.form != Form::Unknown
            || !truth.is_truth()
            || !self.active.disjoint(vain)
        {
            return;
        }
        let yes = self.not_zero(predicate);
        let other = if inverted { !yes } else { yes };
        let told = value.distinguished().filter(|&number| number != Number::Other);
        let mut each: Vec<_> = told.map(|number| (number, self.holds(place, number))).collect();
        each.push((Number::Other, self.holds(place, Number::Other) & other));
        let not_zero = each.iter().fold(Set::NONE, |all, &(_, lanes)| all | lanes);
        each.push((Number::ZERO, !not_zero));
        let new = New { value: value.clone(), numbers: Valuation::Each(each) };
        self.assign_kept(place, new);
    }

    /// All other places that hold what a place does because it was copied, with the lanes in which they do.
    pub(crate) fn copies(&self, place: Place) -> SmallVec<[(Place, Set<'a>); 4]> {
        let copy = |(&(one, other), &lanes): (&(Place, Place), &Set<'a>)| match () {
            () if one == place => Some((other, lanes)),
            () if other == place => Some((one, lanes)),
            () => None,
        };
        self.equal.iter().filter_map(copy).collect()
    }

    /// In which lanes two places are known to hold the same.
    pub(crate) fn equal(&self, one: Place, other: Place) -> Set<'a> {
        if one == other {
            return Set::ALL;
        }
        let key = (one.min(other), one.max(other));
        self.equal.get(&key).copied().unwrap_or(Set::NONE)
    }

    /// A place is written: it holds what others do in just these lanes.
    fn part(&mut self, place: Place, copies: impl IntoIterator<Item = (Place, Set<'a>)>) {
        if self.lanes.follows_copies {
            self.equal.retain(|&(one, other), _| one != place && other != place);
            let known =
                copies.into_iter().filter(|&(other, lanes)| other != place && lanes != Set::NONE);
            self.equal
                .extend(known.map(|(other, lanes)| ((place.min(other), place.max(other)), lanes)));
        }
    }

    /// A place holds the same truth value as another, or the opposite of it, in the lanes where that is meant. In
    /// the others it may have been taken to be anything where ways met.
    pub(crate) fn equate(&mut self, place: Place, (other, inverted): (Place, bool)) {
        let differ = self.not_zero(place) ^ self.not_zero(other);
        let agreeing = if inverted { differ } else { !differ };
        self.active = self.active & (agreeing | self.value(other).undefined);
        self.find_names(place);
    }

    /// All lanes hold the same in a place.
    pub(crate) fn equalize(&mut self, place: Place) {
        self.values[place.index()].differs = Set::NONE;
        self.pairs = self.pairs & !self.differing(place);
    }

    /// Where values at an open split are is followed from here on.
    pub(crate) fn open(&mut self, branch: usize, taken: bool) {
        self.provenance.push(Provenance::new(branch, taken, self.values.len()));
    }

    /// Whether there may be lanes that came by this side of an open split.
    pub(crate) fn comes_from(&self, branch: usize, taken: bool) -> bool {
        let kept = Provenance::find(&self.provenance, branch);
        kept.is_none_or(|kept| kept.sides[usize::from(taken)])
    }

    /// What a place is known to hold is forgotten: it is nothing that is meant to be read.
    pub(crate) fn drop(&mut self, place: Place) {
        self.assign(place, New::of(Value::undefined()));
    }

    /// As [`State::drop`], of what nobody reads any more.
    pub(crate) fn forget(&mut self, place: Place) {
        if *self.value(place) != Value::undefined() {
            self.drop(place);
        }
    }

    /// `place` gets what `source` holds.
    pub(crate) fn copy(&mut self, place: Place, source: Place, detail: Detail) {
        if place == source {
            return;
        }
        let mut value = self.value(source).clone();
        if detail != Detail::Numbers && value.distinguished().next().is_some() {
            value.differs = match detail {
                Detail::Nothing => Set::ALL,
                // Of other pairs than there are it would say that they differ.
                _ if self.is_uniform(source) => Set::NONE,
                _ => self.differing(source),
            };
            value.numbers = None;
        }
        let truth = value.is_truth().then(|| self.not_zero(source));
        if !self.is_true_in(place, truth) {
            self.provenance.iter_mut().for_each(|kept| kept.copy(place, source));
        }
        let numbers = value.numbers.iter().flat_map(|numbers| numbers.iter().copied());
        let each = numbers.map(|number| (number, self.holds(source, number))).collect();
        let numbers =
            if value.numbers.is_some() { Valuation::Each(each) } else { Valuation::Unknown };
        let copies = self.copies(source);
        self.part(place, copies.into_iter().chain([(source, Set::ALL)]));
        self.assign_kept(place, New { value, numbers });
    }

    /// `place` gets the opposite of the truth value that `source` holds.
    pub(crate) fn copy_opposite(&mut self, place: Place, source: Place) {
        let value = self.value(source);
        if !value.is_truth() {
            return self.drop(place);
        }
        let value = Value { undefined: value.undefined, ..Value::uniform() };
        let no = self.not_zero(source);
        let numbers = Valuation::Each(vec![(Number::ZERO, no), (Number::ONE, !no)]);
        self.assign(place, New { value, numbers });
    }

    /// `place` gets what `source` holds in the lanes where `guard` is true. Elsewhere it keeps what it
    /// had, or nothing that is meant, if that is dead.
    pub(crate) fn select(
        &mut self,
        place: Place,
        (guard, source): (Place, Place),
        old_is_dead: bool,
        detail: Detail,
    ) {
        let (new, old) = (self.value(source), self.value(place));
        let guarded = self.not_zero(guard);
        let dead = old_is_dead || self.active.disjoint(!guarded & !old.undefined);
        let old_undefined = if dead { Set::ALL } else { old.undefined };
        let undefined = guarded.ite(new.undefined, old_undefined) | self.value(guard).undefined;
        // What is nowhere meant may as well be what it is elsewhere.
        let numbers = match dead {
            true => new.numbers.clone(),
            false => union([&new.numbers, &old.numbers].into_iter()),
        };
        let computed = new.computed || old.computed && !dead;
        // What is counted or computed does not say where lanes go.
        let told = detail == Detail::Numbers && !computed;
        let numbers = numbers.filter(|numbers| told || numbers.len() == 1);
        let form = match new.form == old.form {
            _ if dead => new.form,
            true if new.form != Form::OnStack => new.form,
            _ => Form::Unknown,
        };
        let holds = |&number: &Number| {
            let yes = self.holds(source, number);
            (number, if dead { yes } else { guarded.ite(yes, self.holds(place, number)) })
        };
        let each = numbers.as_deref().map(|numbers| numbers.iter().map(holds).collect());
        let differs = match &numbers {
            Some(numbers) if !numbers.contains(&Number::Other) => Set::NONE,
            _ if form == Form::Scratch => Set::NONE,
            _ if detail == Detail::Nothing => Set::ALL,
            _ => {
                let (mixed, kept) =
                    if dead { (Set::NONE, Set::NONE) } else { (Set::ALL, self.differing(place)) };
                let other = guarded.other();
                let differs =
                    guarded.ite(other.ite(self.differing(source), mixed), other.ite(mixed, kept));
                // Differences do not matter where one of the lanes holds an undefined value.
                differs & (!undefined).both()
            }
        };
        let value = Value { form, numbers, computed, undefined, differs, ..Value::uniform() };
        let new = New { value, numbers: each.map_or(Valuation::Unknown, Valuation::Each) };
        let truth = new.truth();
        if self.is_true_in(guard, truth) {
            // A predicate goes into a register so.
            self.provenance.iter_mut().for_each(|kept| kept.copy(place, guard));
        } else if !self.is_true_in(place, truth) {
            let among = if dead { Set::ALL } else { guarded };
            self.provenance.iter_mut().for_each(|kept| kept.choose(place, (among, source)));
        }
        let others = self.copies(place).into_iter().chain(self.copies(source));
        // Where the predicate is not meant, it may have been taken to be what it is not.
        let known = !self.value(guard).undefined;
        let copy = |other: Place| {
            let equal = guarded.ite(self.equal(source, other), self.equal(place, other));
            (other, known & equal)
        };
        let copies: SmallVec<[_; 8]> =
            others.map(|(other, _)| other).chain([source]).map(copy).collect();
        self.part(place, copies);
        self.assign_kept(place, new);
    }

    /// `place` gets a value that was computed from what places held before.
    pub(crate) fn assign(&mut self, place: Place, new: New<'a>) {
        if !self.is_true_in(place, new.truth()) {
            self.provenance.iter_mut().for_each(|kept| kept.derive(place, Origin::Unknown));
        }
        self.part(place, []);
        self.assign_kept(place, new);
    }

    /// What was assigned to a place last comes from there, by open splits, if nothing else is known.
    pub(crate) fn derive(&mut self, place: Place, origins: &[Origin]) {
        for (kept, &origin) in self.provenance.iter_mut().zip(origins) {
            kept.name(place, origin);
        }
    }

    /// Whether a place holds a truth value that is true in just these lanes.
    fn is_true_in(&self, place: Place, truth: Option<Set<'a>>) -> bool {
        truth.is_some_and(|truth| {
            self.value(place).is_truth() && self.active.disjoint(truth ^ self.not_zero(place))
        })
    }

    /// The same with where it comes from known already.
    fn assign_kept(&mut self, place: Place, new: New<'a>) {
        let New { mut value, numbers } = self.possible(new);
        let old: SmallVec<[Number; 4]> = self.value(place).distinguished().collect();
        let holds = |number| Condition::Holds(place, number);
        let next = |number| Condition::Next(place, number);
        let hidden = self.lanes.cube(old.into_iter().map(holds));
        let gone = hidden.both();
        let depends = value.sets().chain(numbers.sets()).any(|set| set.depends_on(gone));
        if !depends {
            self.project(hidden);
        }
        let condition =
            |number| self.lanes.condition(if depends { next(number) } else { holds(number) });
        // One thing after the other: all of it at once is much to say where nothing else is known.
        match numbers {
            Valuation::Unknown => {}
            Valuation::Truth { yes, no } => {
                let truth = condition(Number::ONE);
                self.active = self.active & !(yes & !truth) & !(truth & no);
                self.pairs = self.pairs & (!(truth ^ truth.other()) | value.differs);
            }
            Valuation::Each(each) => {
                for (number, lanes) in
                    each.into_iter().filter(|&(number, _)| number != Number::ZERO)
                {
                    self.active = self.active & !(condition(number) ^ lanes);
                }
            }
        }
        if !value.has_others() {
            value.differs = Set::NONE;
        }
        let told: SmallVec<[Number; 4]> = value.distinguished().collect();
        self.values[place.index()] = value;
        if depends {
            self.project(hidden);
            // What was next is now.
            for &number in &told {
                let [now, next] = [holds(number), next(number)].map(|c| self.lanes.condition(c));
                self.active = self.active & !(now ^ next);
            }
            self.project(self.lanes.cube(told.into_iter().map(next)));
        }
    }

    /// The numbers that a new value can really be.
    fn possible(&self, New { mut value, numbers }: New<'a>) -> New<'a> {
        match numbers {
            Valuation::Unknown => New::of(value),
            Valuation::Truth { .. } => {
                value = value.among([Number::ZERO, Number::ONE].into());
                New { value, numbers }
            }
            Valuation::Each(mut each) => {
                each.retain(|&(_, lanes)| !self.active.disjoint(lanes));
                each.sort_unstable_by_key(|&(number, _)| number);
                let value = value.among(each.iter().map(|&(number, _)| number).collect());
                let is_told = value.numbers.as_ref().is_some_and(|numbers| numbers.len() > 1);
                let numbers = if is_told { Valuation::Each(each) } else { Valuation::Unknown };
                New { value, numbers }
            }
        }
    }

    /// Conditions are about to mean something else.
    pub(crate) fn project(&mut self, hidden: Set<'a>) {
        if hidden == Set::ALL {
            return;
        }
        let gone = hidden.both();
        // What is said in terms of them is said in others, as far as they are known to be the same.
        let of_lane = self.active.constraint_on(hidden);
        let of_pair = self.pairs.constraint_on(gone) & of_lane;
        // One lane after the other: of both at a time there is much more to say.
        let (other, other_hidden) = (of_lane.other(), hidden.other());
        let left = |pairs: Set<'a>, known: Set<'a>| {
            pairs.and_exists(known, hidden).and_exists(other, other_hidden)
        };
        for value in &mut self.values {
            for set in value.of_lane().filter(|set| set.depends_on(hidden)) {
                *set = set.and_exists(of_lane, hidden);
            }
            if value.differs.depends_on(gone) {
                value.differs = left(value.differs, of_pair);
            }
        }
        self.provenance.iter_mut().for_each(|kept| kept.project(hidden, of_lane));
        // Of votes and copies, those count of which it is known.
        let voted = match &mut self.scratch {
            Scratch::Vote(voted) => Some(voted),
            Scratch::Anything | Scratch::Zero => None,
        };
        for known in self.equal.values_mut().chain(voted).filter(|set| set.depends_on(hidden)) {
            *known = !(of_lane & !*known).exists(hidden);
        }
        self.pairs = left(self.pairs, of_lane);
        self.active = self.active.exists(hidden);
    }

    /// Numbers that no lane has are left out.
    pub(crate) fn leave_out(&mut self) {
        let mut gone = SmallVec::<[Condition; 16]>::new();
        for index in 0..self.values.len() {
            let place = Place::from_index(index);
            let value = self.value(place);
            let Some(numbers) = value.numbers.as_deref().filter(|numbers| numbers.len() > 1) else {
                continue;
            };
            let there = |&&number: &&Number| !self.active.disjoint(self.holds(place, number));
            let left: Numbers = numbers.iter().filter(there).copied().collect();
            if left.len() == numbers.len() || left.is_empty() {
                continue;
            }
            let told: SmallVec<[Number; 4]> = value.distinguished().collect();
            let value = value.clone().among(left);
            let left_out = |number: &Number| !value.distinguished().any(|kept| kept == *number);
            let left_out = told.into_iter().filter(left_out);
            gone.extend(left_out.map(|number| Condition::Holds(place, number)));
            self.values[index] = value;
        }
        self.project(self.lanes.cube(gone));
    }

    /// The same facts in canonical form.
    pub(crate) fn normalize(&mut self) {
        let active = self.active;
        let other = active.other();
        let simple = |set: Set<'a>| set.restrict(active).restrict(other);
        self.equal.retain(|_, lanes| {
            *lanes = lanes.restrict(active);
            !active.disjoint(*lanes)
        });
        self.pairs = simple(self.pairs);
        self.provenance.iter_mut().for_each(|kept| kept.normalize(active));
        for (index, value) in self.values.iter_mut().enumerate() {
            value.undefined = match active.disjoint(value.undefined) {
                true => Set::NONE,
                false => value.undefined.restrict(active),
            };
            if value.undefined == Set::ALL {
                // Where it comes from proves nothing, and would only be more to follow.
                let place = Place::from_index(index);
                self.provenance.iter_mut().for_each(|kept| kept.derive(place, Origin::Nothing));
            }
            value.names.sort_unstable();
            value.differs = simple(value.differs);
        }
    }
}
