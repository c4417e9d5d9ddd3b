//! What is known at one place of the code about the values in registers and spill slots.
//!
//! All of it is about the lanes that are active. Lanes are told apart by what is in places with one of a few
//! numbers, predicates above all: which combinations there are, in one lane and in any two lanes at a time, is
//! known exactly. Of the others it is known in which pairs of lanes they may differ. Both say in which lanes something
//! else was written than what is meant to be read.
//!
//! What is not meant to be read can be taken to be anything, as nothing that can be seen depends on it: that is
//! what the checker proves.

use std::collections::BTreeSet;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::bdd::Set;
use crate::fact::{Detail, Form, Mixed, New, Relation, Scratch, Valuation, Value};
use crate::lanes::{Condition, Lanes};
use crate::number::{Number, Numbers, union};
use crate::places::{Place, Places};
use crate::provenance::Provenance;
use crate::record::Name;
use crate::term::Origin;

/// All that is known at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// What each place holds.
    pub(crate) values: Vec<Value>,
    /// The combinations of numbers in a lane.
    pub(crate) active: Set,
    /// What is known of the numbers in two lanes at a time, beyond what is known of each.
    pub(crate) pairs: Set,
    /// Of open splits, from the outermost on.
    pub(crate) provenance: Vec<Provenance>,
    /// Names of selected predicates that are whatever a place holds: nobody looks at them.
    pub(crate) free: BTreeSet<Name>,
    /// What the lanes wrote to the warp's scratch word last.
    pub(crate) scratch: Scratch,
}

impl State {
    /// A state in which nothing is known of any place.
    pub(crate) fn new(places: &Places) -> State {
        State {
            values: vec![Value::unknown(); places.count()],
            active: Set::ALL,
            pairs: Set::ALL,
            provenance: Vec::new(),
            free: BTreeSet::new(),
            scratch: Scratch::Anything,
        }
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        let voted = match self.scratch {
            Scratch::Vote(voted) => Some(voted),
            Scratch::Anything | Scratch::Zero => None,
        };
        let origins = self.provenance.iter().flat_map(Provenance::sets);
        let values = self.values.iter().flat_map(Value::sets);
        [self.active, self.pairs].into_iter().chain(voted).chain(origins).chain(values)
    }

    pub(crate) fn value(&self, place: Place) -> &Value {
        &self.values[place.index()]
    }

    /// The lanes in which a place that holds one of a few numbers holds this one.
    pub(crate) fn holds(&self, lanes: &Lanes, place: Place, number: Number) -> Set {
        let value = self.value(place);
        match (value.form, &value.numbers) {
            (Form::Constant(constant), _) if Number::Is(constant) == number => Set::ALL,
            (Form::Constant(_), _) => Set::NONE,
            (_, None) if number == Number::Other => Set::ALL,
            (_, None) => Set::NONE,
            (_, Some(numbers)) if !numbers.contains(&number) => Set::NONE,
            _ if number == Number::ZERO => lanes.not(self.not_zero(lanes, place)),
            _ => lanes.condition(Condition::Holds(place, number)),
        }
    }

    /// The lanes in which a place that holds one of a few numbers does not hold 0.
    pub(crate) fn not_zero(&self, lanes: &Lanes, place: Place) -> Set {
        let value = self.value(place);
        if let Form::Constant(constant) = value.form {
            return if constant == 0 { Set::NONE } else { Set::ALL };
        }
        let each = value.distinguished().map(|n| lanes.condition(Condition::Holds(place, n)));
        each.fold(Set::NONE, |all, holds| lanes.or(all, holds))
    }

    /// The pairs of lanes, there or not, in which a place may hold different values.
    pub(crate) fn differing(&self, lanes: &Lanes, place: Place) -> Set {
        let value = self.value(place);
        if value.numbers.is_none() {
            return value.differs;
        }
        let others = match value.has_others() {
            true => lanes.condition(Condition::Holds(place, Number::Other)),
            false => Set::NONE,
        };
        let others = lanes.and(value.differs, lanes.both(others));
        value.distinguished().fold(others, |all, number| {
            let one = lanes.condition(Condition::Holds(place, number));
            lanes.or(all, lanes.xor(one, lanes.other(one)))
        })
    }

    /// Whether all lanes hold the same in a place.
    pub(crate) fn is_uniform(&self, lanes: &Lanes, place: Place) -> bool {
        self.is_impossible(lanes, self.differing(lanes, place))
    }

    /// Whether what a place holds is the same in all active lanes of a set.
    pub(crate) fn agrees(&self, lanes: &Lanes, place: Place, among: Set) -> bool {
        let pairs = lanes.and(among, lanes.other(among));
        self.is_impossible(lanes, lanes.and(self.differing(lanes, place), pairs))
    }

    /// Pairs of active lanes that may hold different values in a place.
    pub(crate) fn disagreeing(&self, lanes: &Lanes, place: Place) -> Set {
        let there = lanes.and(self.pairs, lanes.both(self.active));
        lanes.and(self.differing(lanes, place), there)
    }

    /// Whether there are no such pairs of active lanes.
    fn is_impossible(&self, lanes: &Lanes, pairs: Set) -> bool {
        let left = lanes.and(lanes.and(pairs, self.pairs), self.active);
        lanes.disjoint(left, lanes.other(self.active))
    }

    /// Whether what a place holds is meant to be read in all active lanes of a set.
    pub(crate) fn is_defined(&self, lanes: &Lanes, place: Place, among: Set) -> bool {
        let undefined = self.value(place).undefined;
        undefined == Set::NONE || lanes.disjoint(self.active, lanes.and(undefined, among))
    }

    /// Only lanes of `set` stay active. Whether there can be any.
    pub(crate) fn assume(&mut self, lanes: &Lanes, set: Set) -> bool {
        self.active = lanes.and(self.active, set);
        self.active != Set::NONE
    }

    /// Lanes are told apart by whether a place holds 0, which a predicate says of it.
    pub(crate) fn refine_zero(&mut self, lanes: &Lanes, place: Place, predicate: (Place, bool)) {
        let (predicate, inverted) = predicate;
        let (value, truth) = (self.value(place), self.value(predicate));
        // Where it was made of what is not meant, the predicate says nothing.
        let vain = lanes.and_not(truth.undefined, value.undefined);
        if !value.has_others()
            || value.form != Form::Unknown
            || !truth.is_truth()
            || !lanes.disjoint(self.active, vain)
        {
            return;
        }
        let yes = self.not_zero(lanes, predicate);
        let other = if inverted { lanes.not(yes) } else { yes };
        let told = value.distinguished().filter(|&number| number != Number::Other);
        let mut each: Vec<_> = told.map(|n| (n, self.holds(lanes, place, n))).collect();
        each.push((Number::Other, lanes.and(self.holds(lanes, place, Number::Other), other)));
        let not_zero = each.iter().fold(Set::NONE, |all, &(_, set)| lanes.or(all, set));
        each.push((Number::ZERO, lanes.not(not_zero)));
        let new = New { value: value.clone(), numbers: Valuation::Each(each) };
        self.assign_kept(lanes, place, new);
    }

    /// A place holds the same truth value as another, or the opposite of it, in the lanes where that is meant. In
    /// the others it may have been taken to be anything where ways met.
    pub(crate) fn equate(&mut self, lanes: &Lanes, place: Place, (other, inverted): (Place, bool)) {
        let undefined = self.value(other).undefined;
        let [one, other] = [place, other].map(|place| self.not_zero(lanes, place));
        let same = lanes.iff(one, other);
        let agreeing = if inverted { lanes.not(same) } else { same };
        self.active = lanes.and(self.active, lanes.or(agreeing, undefined));
        self.find_names(lanes, place);
    }

    /// All lanes hold the same in a place.
    pub(crate) fn equalize(&mut self, lanes: &Lanes, place: Place) {
        self.values[place.index()].differs = Set::NONE;
        self.pairs = lanes.and_not(self.pairs, self.differing(lanes, place));
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
    pub(crate) fn drop(&mut self, lanes: &Lanes, place: Place) {
        self.assign(lanes, place, New::of(Value::undefined()));
    }

    /// As [`State::drop`], of what nobody reads any more.
    pub(crate) fn forget(&mut self, lanes: &Lanes, place: Place) {
        if *self.value(place) != Value::undefined() {
            self.drop(lanes, place);
        }
    }

    /// `place` gets what `source` holds.
    pub(crate) fn copy(&mut self, lanes: &Lanes, place: Place, source: Place, detail: Detail) {
        if place == source {
            return;
        }
        let mut value = self.value(source).clone();
        if detail != Detail::Numbers && value.numbers.as_ref().is_some_and(|n| n.len() > 1) {
            value.differs = match detail {
                Detail::Nothing => Set::ALL,
                _ => self.differing(lanes, source),
            };
            value.numbers = None;
        }
        let each = value.distinguished().map(|n| (n, self.holds(lanes, source, n)));
        let mut each: Vec<(Number, Set)> = each.collect();
        let truth = value.is_truth().then(|| self.not_zero(lanes, source));
        if !self.is_true_in(lanes, place, truth) {
            self.provenance.iter_mut().for_each(|kept| kept.copy(place, source));
        }
        if each.is_empty() {
            self.assign_kept(lanes, place, New::of(value));
        } else {
            if value.numbers.as_ref().is_some_and(|numbers| numbers.contains(&Number::ZERO)) {
                each.push((Number::ZERO, self.holds(lanes, source, Number::ZERO)));
            }
            self.assign_kept(lanes, place, New { value, numbers: Valuation::Each(each) });
        }
    }

    /// `place` gets the opposite of the truth value that `source` holds.
    pub(crate) fn copy_opposite(&mut self, lanes: &Lanes, place: Place, source: Place) {
        let value = self.value(source);
        if !value.is_truth() {
            return self.drop(lanes, place);
        }
        let undefined = value.undefined;
        let no = self.not_zero(lanes, source);
        let each = vec![(Number::ZERO, no), (Number::ONE, lanes.not(no))];
        let value = Value { undefined, ..Value::uniform() };
        self.assign(lanes, place, New { value, numbers: Valuation::Each(each) });
    }

    /// `place` gets what `source` holds in the lanes where `guard` is true. Elsewhere it keeps what it
    /// had, or nothing that is meant, if that is dead.
    pub(crate) fn select(
        &mut self,
        lanes: &Lanes,
        place: Place,
        (guard, source): (Place, Place),
        old_is_dead: bool,
        detail: Detail,
    ) {
        let (new, old) = (self.value(source).clone(), self.value(place).clone());
        let guarded = self.not_zero(lanes, guard);
        let elsewhere = lanes.not(guarded);
        let missing = lanes.and(elsewhere, lanes.not(old.undefined));
        let dead = old_is_dead || lanes.disjoint(self.active, missing);
        let old_undefined = if dead { Set::ALL } else { old.undefined };
        let undefined = lanes.ite(guarded, new.undefined, old_undefined);
        let undefined = lanes.or(undefined, self.value(guard).undefined);
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
            let yes = self.holds(lanes, source, number);
            let no = if dead { yes } else { self.holds(lanes, place, number) };
            (number, lanes.ite(guarded, yes, no))
        };
        let each = numbers.as_deref().map(|numbers| numbers.iter().map(holds).collect());
        let differs = match &numbers {
            Some(numbers) if !numbers.contains(&Number::Other) => Set::NONE,
            _ if form == Form::Scratch => Set::NONE,
            _ if detail == Detail::Nothing => Set::ALL,
            _ => {
                let new = self.differing(lanes, source);
                let (other, old) = (lanes.other(guarded), self.differing(lanes, place));
                let (mixed, old) = if dead { (Set::NONE, Set::NONE) } else { (Set::ALL, old) };
                let differs =
                    lanes.ite(guarded, lanes.ite(other, new, mixed), lanes.ite(other, mixed, old));
                // Nobody asks for differences to lanes in which it is not meant to be read.
                lanes.and(differs, lanes.both(lanes.not(undefined)))
            }
        };
        let (names, mixed) = (SmallVec::new(), SmallVec::new());
        let value = Value { form, numbers, computed, undefined, differs, names, mixed };
        let new = New { value, numbers: each.map_or(Valuation::Unknown, Valuation::Each) };
        let truth = new.truth();
        if self.is_true_in(lanes, guard, truth) {
            // A predicate goes into a register so.
            self.provenance.iter_mut().for_each(|kept| kept.copy(place, guard));
        } else if !self.is_true_in(lanes, place, truth) {
            for kept in &mut self.provenance {
                let origins = match dead {
                    true => kept.of(source).clone(),
                    false => kept.chosen(lanes, place, (guarded, source)),
                };
                kept.set(place, origins);
            }
        }
        self.assign_kept(lanes, place, new);
    }

    /// `place` gets a value that was computed from what places held before.
    pub(crate) fn assign(&mut self, lanes: &Lanes, place: Place, new: New) {
        if !self.is_true_in(lanes, place, new.truth()) {
            self.provenance.iter_mut().for_each(|kept| kept.lose(place));
        }
        self.assign_kept(lanes, place, new);
    }

    /// What was assigned to a place last comes from there, by open splits, if nothing else is known.
    pub(crate) fn derive(&mut self, place: Place, origins: &[Origin]) {
        for (kept, &origin) in self.provenance.iter_mut().zip(origins) {
            kept.name(place, origin);
        }
    }

    /// Whether a place holds a truth value that is true in just these lanes.
    fn is_true_in(&self, lanes: &Lanes, place: Place, truth: Option<Set>) -> bool {
        truth.is_some_and(|truth| {
            let differ = || lanes.xor(truth, self.not_zero(lanes, place));
            self.value(place).is_truth() && lanes.disjoint(self.active, differ())
        })
    }

    /// The same with where it comes from known already.
    fn assign_kept(&mut self, lanes: &Lanes, place: Place, new: New) {
        let New { mut value, numbers } = new;
        let numbers = self.possible(lanes, numbers, &mut value);
        let old: SmallVec<[Number; 4]> = self.value(place).distinguished().collect();
        let holds = |number| Condition::Holds(place, number);
        let next = |number| Condition::Next(place, number);
        let hidden = lanes.cube(old.iter().map(|&number| holds(number)));
        let gone = lanes.both(hidden);
        let mixed = value.mixed.iter().flat_map(|mixed| [mixed.undefined, mixed.other]);
        let sets = mixed.chain([value.undefined, value.differs]);
        let depends = sets.into_iter().any(|set| lanes.depends_on(set, gone))
            || match &numbers {
                Valuation::Unknown => false,
                Valuation::Truth { yes, no } => {
                    lanes.depends_on(*yes, gone) || lanes.depends_on(*no, gone)
                }
                Valuation::Each(each) => each.iter().any(|&(_, set)| lanes.depends_on(set, gone)),
            };
        let relation = if depends {
            Relation::new(lanes, &numbers, &value, |n| lanes.condition(next(n)))
        } else {
            Relation::new(lanes, &numbers, &value, |n| lanes.condition(holds(n)))
        };
        if !depends {
            self.project(lanes, hidden);
        }
        self.active = relation.lanes(lanes, self.active);
        self.pairs = relation.pairs(lanes, self.pairs);
        if !value.has_others() {
            value.differs = Set::NONE;
        }
        let told: SmallVec<[Number; 4]> = value.distinguished().collect();
        self.values[place.index()] = value;
        if depends {
            self.project(lanes, hidden);
            // What was next is now.
            for &number in &told {
                let [now, next] = [holds(number), next(number)].map(|c| lanes.condition(c));
                self.active = lanes.and(self.active, lanes.iff(now, next));
            }
            let hidden = lanes.cube(told.iter().map(|&number| next(number)));
            self.project(lanes, hidden);
        }
    }

    /// The numbers that a new value can really be.
    fn possible(&self, lanes: &Lanes, numbers: Valuation, value: &mut Value) -> Valuation {
        let each = match numbers {
            Valuation::Unknown => return Valuation::Unknown,
            Valuation::Truth { yes, no } => {
                value.numbers = Some(Rc::new([Number::ZERO, Number::ONE]));
                return Valuation::Truth { yes, no };
            }
            Valuation::Each(each) => each,
        };
        let mut each = each;
        each.retain(|&(_, set)| !lanes.disjoint(self.active, set));
        each.sort_unstable_by_key(|&(number, _)| number);
        let numbers: Numbers = each.iter().map(|&(number, _)| number).collect();
        match *numbers {
            [Number::Is(number)] => {
                let Value { form, numbers, .. } = Value::constant(number);
                (value.form, value.numbers) = (form, numbers);
                Valuation::Unknown
            }
            // None are left on ways that nobody goes.
            [] | [Number::Other] => {
                value.numbers = None;
                Valuation::Unknown
            }
            _ => {
                value.numbers = Some(numbers);
                Valuation::Each(each)
            }
        }
    }

    /// Conditions are about to mean something else.
    pub(crate) fn project(&mut self, lanes: &Lanes, hidden: Set) {
        if hidden == Set::ALL {
            return;
        }
        let gone = lanes.both(hidden);
        // What is said in terms of them is said in others, as far as they are known to be the same.
        let of_lane = lanes.constraint_on(self.active, hidden);
        let of_pair = lanes.and(lanes.constraint_on(self.pairs, gone), of_lane);
        // One lane after the other: of both at a time there is much more to say.
        let [other, other_hidden] = [of_lane, hidden].map(|set| lanes.other(set));
        let left = |pairs: Set, known: Set| {
            lanes.and_exists(lanes.and_exists(pairs, known, hidden), other, other_hidden)
        };
        for value in &mut self.values {
            if lanes.depends_on(value.undefined, hidden) {
                value.undefined = lanes.and_exists(value.undefined, of_lane, hidden);
            }
            for Mixed { undefined, other, .. } in &mut value.mixed {
                for set in [undefined, other] {
                    *set = lanes.and_exists(*set, of_lane, hidden);
                }
            }
            if lanes.depends_on(value.differs, gone) {
                value.differs = left(value.differs, of_pair);
            }
        }
        self.provenance.iter_mut().for_each(|kept| kept.project(lanes, hidden, of_lane));
        if let Scratch::Vote(voted) = self.scratch
            && lanes.depends_on(voted, hidden)
        {
            // Of votes, those count of which it is known.
            let others = lanes.exists(lanes.and_not(of_lane, voted), hidden);
            self.scratch = Scratch::Vote(lanes.not(others));
        }
        self.pairs = left(self.pairs, of_lane);
        self.active = lanes.exists(self.active, hidden);
    }

    /// The same facts, said in one way only.
    pub(crate) fn normalize(&mut self, lanes: &Lanes) {
        let active = self.active;
        let other = lanes.other(active);
        let simple = |set: Set| lanes.restrict(lanes.restrict(set, active), other);
        self.pairs = simple(self.pairs);
        self.provenance.iter_mut().for_each(|kept| kept.normalize(lanes, active));
        for (index, value) in self.values.iter_mut().enumerate() {
            value.undefined = match lanes.and(value.undefined, active) {
                Set::NONE => Set::NONE,
                undefined => lanes.restrict(undefined, active),
            };
            if value.undefined == Set::ALL {
                let place = Place::from_index(index);
                self.provenance.iter_mut().for_each(|kept| kept.drop(place));
            }
            value.names.sort_unstable();
            value.differs = simple(value.differs);
        }
    }
}
