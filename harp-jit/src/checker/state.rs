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

use smallvec::{SmallVec, smallvec};

use super::lanes::{Condition, Lanes};
use super::places::{Place, Places};
use super::record::{Name, Passes};
use super::sets::Set;

/// What a value is, as far as that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
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

/// No more numbers than these are kept apart.
pub(super) const MOST_NUMBERS: usize = 16;

/// What lanes are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Number {
    Is(u64),
    /// None of the others that are told apart, and perhaps one of them.
    Other,
}

impl Number {
    pub(super) const ZERO: Number = Number::Is(0);
    pub(super) const ONE: Number = Number::Is(1);
}

/// A few numbers, ascending.
pub(super) type Numbers = Rc<[Number]>;

/// What is known about what a place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) form: Form,
    /// The numbers that it can be, if they are few. A constant is one number.
    pub(super) numbers: Option<Numbers>,
    /// Whether it was computed from other numbers: it can be compared, but it is not what says where lanes
    /// go.
    pub(super) computed: bool,
    /// In which lanes it is not what is meant to be read.
    pub(super) undefined: Set,
    /// In which pairs of lanes it may differ, unless one of them holds one of a few numbers.
    pub(super) differs: Set,
    /// Predicates that were selected and are what this value is: true where it is not zero.
    pub(super) names: SmallVec<[Name; 1]>,
}

impl Value {
    pub(super) fn unknown() -> Value {
        Value { differs: Set::ALL, ..Value::uniform() }
    }

    /// Nothing that is meant to be read.
    pub(super) fn undefined() -> Value {
        Value { undefined: Set::ALL, ..Value::uniform() }
    }

    pub(super) fn uniform() -> Value {
        Value {
            form: Form::Unknown,
            numbers: None,
            computed: false,
            undefined: Set::NONE,
            differs: Set::NONE,
            names: SmallVec::new(),
        }
    }

    pub(super) fn constant(number: u64) -> Value {
        let numbers: Numbers = Rc::new([Number::Is(number)]);
        Value { form: Form::Constant(number), numbers: Some(numbers), ..Value::uniform() }
    }

    /// Whether it is 0 or 1.
    pub(super) fn is_truth(&self) -> bool {
        self.numbers
            .as_ref()
            .is_some_and(|numbers| numbers.iter().all(|&number| number <= Number::ONE))
    }

    /// The numbers that lanes are told apart by: none if there is only one. That it is 0 is said by its
    /// being none of the others.
    pub(super) fn told_apart(&self) -> impl Iterator<Item = Number> + '_ {
        let several = self.numbers.as_deref().filter(|numbers| numbers.len() > 1);
        several.into_iter().flatten().copied().filter(|&number| number != Number::ZERO)
    }

    /// Whether it can be something that is not told apart.
    pub(super) fn has_others(&self) -> bool {
        self.numbers.as_deref().is_none_or(|numbers| numbers.contains(&Number::Other))
    }
}

/// What the warp's scratch word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scratch {
    Anything,
    Zero,
    /// Something else than zero if any of these lanes is active.
    Vote(Set),
}

/// The places whose values at an open split are still somewhere: by place, the one that held its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The branch of the split.
    pub(super) branch: usize,
    pub(super) origins: Rc<Vec<Option<Place>>>,
}

/// All that is known at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// What each place holds.
    pub(super) values: Vec<Value>,
    /// The combinations of numbers in pairs of lanes.
    pub(super) pairs: Set,
    /// Of open splits, from the outermost on.
    pub(super) kept: Vec<Kept>,
    /// Names of selected predicates that are whatever a place holds: nobody looks at them.
    pub(super) free: BTreeSet<Name>,
    /// What the lanes wrote to the warp's scratch word last.
    pub(super) scratch: Scratch,
}

/// What a place is to hold.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) value: Value,
    pub(super) numbers: Told,
}

/// Which numbers a new value is in which lanes.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Nothing is known, or what the value itself says.
    Nothing,
    /// It is 0 or 1: equal in lanes that do not differ, 1 in the lanes of the one set, 0 in the other.
    Truth { yes: Set, no: Set },
    /// It is these numbers, in these lanes.
    Each(Vec<(Number, Set)>),
}

impl New {
    pub(super) fn of(value: Value) -> New {
        New { value, numbers: Told::Nothing }
    }
}

impl State {
    /// A state in which nothing is known of any place.
    pub(super) fn new(places: &Places) -> State {
        State {
            values: vec![Value::unknown(); places.count()],
            pairs: Set::ALL,
            kept: Vec::new(),
            free: BTreeSet::new(),
            scratch: Scratch::Anything,
        }
    }

    pub(super) fn value(&self, place: Place) -> &Value {
        &self.values[place.index()]
    }

    /// The lanes in which a place that holds one of a few numbers holds this one.
    pub(super) fn holds(&self, lanes: &Lanes, place: Place, number: Number) -> Set {
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
    pub(super) fn not_zero(&self, lanes: &Lanes, place: Place) -> Set {
        let value = self.value(place);
        if let Form::Constant(constant) = value.form {
            return if constant == 0 { Set::NONE } else { Set::ALL };
        }
        let each = value.told_apart().map(|n| lanes.condition(Condition::Holds(place, n)));
        each.fold(Set::NONE, |all, holds| lanes.or(all, holds))
    }

    /// The pairs of lanes, there or not, in which a place may hold different values.
    pub(super) fn differing(&self, lanes: &Lanes, place: Place) -> Set {
        let value = self.value(place);
        if value.numbers.is_none() {
            return value.differs;
        }
        let others = match value.has_others() {
            true => lanes.condition(Condition::Holds(place, Number::Other)),
            false => Set::NONE,
        };
        let others = lanes.and(value.differs, lanes.both(others));
        value.told_apart().fold(others, |all, number| {
            let one = lanes.condition(Condition::Holds(place, number));
            lanes.or(all, lanes.either(one, lanes.other(one)))
        })
    }

    /// Whether all lanes hold the same in a place.
    pub(super) fn is_uniform(&self, lanes: &Lanes, place: Place) -> bool {
        lanes.apart(self.pairs, self.differing(lanes, place))
    }

    /// Whether what a place holds is meant to be read in all active lanes of a set.
    pub(super) fn is_defined(&self, lanes: &Lanes, place: Place, among: Set) -> bool {
        let undefined = self.value(place).undefined;
        undefined == Set::NONE || lanes.apart(self.pairs, lanes.and(undefined, among))
    }

    /// Only lanes of `set` stay active. Whether there can be any.
    pub(super) fn assume(&mut self, lanes: &Lanes, set: Set) -> bool {
        self.pairs = lanes.and(self.pairs, lanes.both(set));
        self.pairs != Set::NONE
    }

    /// All lanes hold the same in a place.
    pub(super) fn equalize(&mut self, lanes: &Lanes, place: Place) {
        self.values[place.index()].differs = Set::NONE;
        self.pairs = lanes.minus(self.pairs, self.differing(lanes, place));
    }

    /// Where values at an open split are is followed from here on.
    pub(super) fn open(&mut self, branch: usize) {
        let all = (0..self.values.len()).map(|index| Some(Place::from_index(index)));
        self.kept.push(Kept { branch, origins: Rc::new(all.collect()) });
    }

    /// `place` holds what `from` held where splits were opened.
    fn keep(&mut self, place: Place, from: impl Fn(&[Option<Place>]) -> Option<Place>) {
        for kept in &mut self.kept {
            let origin = from(&kept.origins);
            if kept.origins[place.index()] != origin {
                Rc::make_mut(&mut kept.origins)[place.index()] = origin;
            }
        }
    }

    /// What a place is known to hold is forgotten: it is nothing that is meant to be read.
    pub(super) fn drop(&mut self, lanes: &Lanes, place: Place) {
        self.assign(lanes, place, New::of(Value::undefined()));
    }

    /// `place` gets what `source` holds.
    pub(super) fn copy(&mut self, lanes: &Lanes, place: Place, source: Place) {
        if place == source {
            return;
        }
        let value = self.value(source).clone();
        let each = value.told_apart().map(|n| (n, self.holds(lanes, source, n)));
        let mut each: Vec<(Number, Set)> = each.collect();
        if each.is_empty() {
            self.assign(lanes, place, New::of(value));
        } else {
            if value.numbers.as_ref().is_some_and(|numbers| numbers.contains(&Number::ZERO)) {
                each.push((Number::ZERO, self.holds(lanes, source, Number::ZERO)));
            }
            self.assign(lanes, place, New { value, numbers: Told::Each(each) });
        }
        self.keep(place, |origins| origins[source.index()]);
    }

    /// `place` gets what `source` holds in the lanes where `guard` is true. Elsewhere it keeps what it
    /// had, or nothing that is meant, if that is dead.
    pub(super) fn select(
        &mut self,
        lanes: &Lanes,
        place: Place,
        (guard, source): (Place, Place),
        old_is_dead: bool,
    ) {
        let (new, old) = (self.value(source).clone(), self.value(place).clone());
        let guarded = self.not_zero(lanes, guard);
        let elsewhere = lanes.not(guarded);
        let missing = lanes.and(elsewhere, lanes.not(old.undefined));
        let dead = old_is_dead || lanes.apart(self.pairs, missing);
        let old_undefined = if dead { Set::ALL } else { old.undefined };
        let undefined = lanes.choice(guarded, new.undefined, old_undefined);
        let undefined = lanes.or(undefined, self.value(guard).undefined);
        // What is nowhere meant may as well be what it is elsewhere.
        let numbers = match dead {
            true => new.numbers.clone(),
            false => union([&new.numbers, &old.numbers].into_iter()),
        };
        let form = match new.form == old.form {
            _ if dead => new.form,
            true if new.form != Form::OnStack => new.form,
            _ => Form::Unknown,
        };
        let holds = |&number: &Number| {
            let yes = self.holds(lanes, source, number);
            let no = if dead { yes } else { self.holds(lanes, place, number) };
            (number, lanes.choice(guarded, yes, no))
        };
        let told = numbers.as_deref().map(|numbers| numbers.iter().map(holds).collect());
        let differs = match &numbers {
            Some(numbers) if !numbers.contains(&Number::Other) => Set::NONE,
            _ if form == Form::Scratch => Set::NONE,
            _ => {
                let new = self.differing(lanes, source);
                let (other, old) = (lanes.other(guarded), self.differing(lanes, place));
                let (mixed, old) = if dead { (Set::NONE, Set::NONE) } else { (Set::ALL, old) };
                let differs = lanes.choice(
                    guarded,
                    lanes.choice(other, new, mixed),
                    lanes.choice(other, mixed, old),
                );
                // Nobody asks for differences to lanes in which it is not meant to be read.
                lanes.and(differs, lanes.both(lanes.not(undefined)))
            }
        };
        let computed = new.computed || old.computed && !dead;
        let value = Value { form, numbers, computed, undefined, differs, names: SmallVec::new() };
        let new = New { value, numbers: told.map_or(Told::Nothing, Told::Each) };
        let origin = |origins: &[Option<Place>]| {
            let (new, old) = (origins[source.index()], origins[place.index()]);
            if dead || new == old { new } else { None }
        };
        let origins: SmallVec<[_; 8]> =
            self.kept.iter().map(|kept| origin(&kept.origins)).collect();
        self.assign(lanes, place, new);
        for (kept, origin) in self.kept.iter_mut().zip(origins) {
            Rc::make_mut(&mut kept.origins)[place.index()] = origin;
        }
    }

    /// `place` gets a value that was computed from what places held before.
    pub(super) fn assign(&mut self, lanes: &Lanes, place: Place, new: New) {
        let New { mut value, numbers } = new;
        let numbers = self.possible(lanes, numbers, &mut value);
        let old: SmallVec<[Number; 4]> = self.value(place).told_apart().collect();
        let holds = |number| Condition::Holds(place, number);
        let next = |number| Condition::Next(place, number);
        let gone = self.both(lanes, old.iter().map(|&number| holds(number)));
        let told: SmallVec<[Number; 4]> = value.told_apart().collect();
        let depends = [&value.undefined, &value.differs].into_iter().any(|&s| lanes.tells(s, gone))
            || match &numbers {
                Told::Nothing => false,
                Told::Truth { yes, no } => lanes.tells(*yes, gone) || lanes.tells(*no, gone),
                Told::Each(each) => each.iter().any(|&(_, set)| lanes.tells(set, gone)),
            };
        let relation = if depends {
            Relation::new(lanes, &numbers, &value, |n| lanes.condition(next(n)))
        } else {
            Relation::new(lanes, &numbers, &value, |n| lanes.condition(holds(n)))
        };
        if !depends {
            self.hide(lanes, gone);
            self.pairs = relation.pairs(lanes, self.pairs);
        } else {
            let active = relation.lanes(lanes, lanes.first(self.pairs));
            let pairs = relation.pairs(lanes, self.pairs);
            let others = self.values.iter_mut().chain([&mut value]);
            for other in others {
                relate(lanes, other, gone, (active, pairs));
            }
            self.forget_vote(lanes, gone);
            self.pairs = lanes.hide(pairs, gone);
            // What was next is now.
            for &number in &told {
                let gone = self.both(lanes, [next(number)].into_iter());
                let [now, next] = [holds(number), next(number)].map(|c| lanes.condition(c));
                let one = lanes.same(now, next);
                let both = lanes.both(one);
                for other in self.values.iter_mut().chain([&mut value]) {
                    relate(lanes, other, gone, (one, both));
                }
                self.pairs = lanes.hide(lanes.and(self.pairs, both), gone);
            }
        }
        if !value.has_others() {
            value.differs = Set::NONE;
        }
        self.values[place.index()] = value;
        self.keep(place, |_| None);
    }

    /// The numbers that a new value can really be.
    fn possible(&self, lanes: &Lanes, numbers: Told, value: &mut Value) -> Told {
        let each = match numbers {
            Told::Nothing => return Told::Nothing,
            Told::Truth { yes, no } => {
                value.numbers = Some(Rc::new([Number::ZERO, Number::ONE]));
                return Told::Truth { yes, no };
            }
            Told::Each(each) => each,
        };
        let mut each = each;
        each.retain(|&(_, set)| !lanes.apart(self.pairs, set));
        each.sort_unstable_by_key(|&(number, _)| number);
        let numbers: Numbers = each.iter().map(|&(number, _)| number).collect();
        match *numbers {
            [Number::Is(number)] => {
                let Value { form, numbers, .. } = Value::constant(number);
                (value.form, value.numbers) = (form, numbers);
                Told::Nothing
            }
            // None are left on ways that nobody goes.
            [] | [Number::Other] => {
                value.numbers = None;
                Told::Nothing
            }
            _ => {
                value.numbers = Some(numbers);
                Told::Each(each)
            }
        }
    }

    fn both(&self, lanes: &Lanes, conditions: impl Iterator<Item = Condition>) -> Set {
        let hidden = lanes.hidden(conditions);
        lanes.both(hidden)
    }

    /// Conditions are about to mean something else.
    pub(super) fn hide(&mut self, lanes: &Lanes, gone: Set) {
        if gone == Set::ALL {
            return;
        }
        let tells =
            |value: &Value| lanes.tells(value.undefined, gone) || lanes.tells(value.differs, gone);
        if self.values.iter().any(tells) {
            let active = lanes.first(self.pairs);
            for value in &mut self.values {
                relate(lanes, value, gone, (active, self.pairs));
            }
        }
        self.forget_vote(lanes, gone);
        self.pairs = lanes.hide(self.pairs, gone);
    }

    fn forget_vote(&mut self, lanes: &Lanes, gone: Set) {
        if let Scratch::Vote(voted) = self.scratch
            && lanes.tells(voted, gone)
        {
            self.scratch = Scratch::Anything;
        }
    }

    /// The same facts, said in one way only.
    pub(super) fn settle(&mut self, lanes: &Lanes) {
        let mut active = None;
        for value in &mut self.values {
            if !matches!(value.undefined, Set::NONE | Set::ALL) {
                let active = *active.get_or_insert_with(|| lanes.first(self.pairs));
                value.undefined = within(lanes, value.undefined, active);
            }
            value.names.sort_unstable();
            if !matches!(value.differs, Set::NONE | Set::ALL) {
                value.differs = within(lanes, value.differs, self.pairs);
            }
        }
    }
}

/// What a new value's numbers say of a lane, and of a pair of lanes. One thing after the other: all of
/// it at once is much to say where nothing else is known.
struct Relation {
    lanes: SmallVec<[Set; 2]>,
    pairs: Set,
}

impl Relation {
    fn new(
        lanes: &Lanes,
        numbers: &Told,
        value: &Value,
        condition: impl Fn(Number) -> Set,
    ) -> Relation {
        match numbers {
            Told::Nothing => Relation { lanes: smallvec![], pairs: Set::ALL },
            Told::Truth { yes, no } => {
                let truth = condition(Number::ONE);
                let [yes, no] = [lanes.minus(*yes, truth), lanes.and(truth, *no)];
                let equal = lanes.same(truth, lanes.other(truth));
                let pairs = lanes.or(equal, value.differs);
                Relation { lanes: smallvec![lanes.not(yes), lanes.not(no)], pairs }
            }
            Told::Each(each) => {
                let told = each.iter().filter(|&&(number, _)| number != Number::ZERO);
                let one = told.map(|&(number, set)| lanes.same(condition(number), set));
                Relation { lanes: one.collect(), pairs: Set::ALL }
            }
        }
    }

    fn lanes(&self, lanes: &Lanes, known: Set) -> Set {
        self.lanes.iter().fold(known, |known, &one| lanes.and(known, one))
    }

    fn pairs(&self, lanes: &Lanes, known: Set) -> Set {
        let known = lanes.and(known, self.pairs);
        self.lanes
            .iter()
            .fold(known, |known, &one| lanes.and(lanes.and(known, one), lanes.other(one)))
    }
}

/// The part of a set that is in another; all, if it is all of that.
fn within(lanes: &Lanes, set: Set, all: Set) -> Set {
    let part = lanes.and(set, all);
    if part == all { Set::ALL } else { part }
}

/// What a value's sets say of others than the conditions in `gone`, with what is known before these are
/// gone of a lane and of two.
fn relate(lanes: &Lanes, value: &mut Value, gone: Set, (active, pairs): (Set, Set)) {
    if lanes.tells(value.undefined, gone) {
        value.undefined = lanes.hide(lanes.and(value.undefined, active), gone);
    }
    if lanes.tells(value.differs, gone) {
        value.differs = lanes.hide(lanes.and(value.differs, pairs), gone);
    }
}

/// All numbers that any of several values can be, if they are few; none if nothing is known of all.
pub(super) fn union<'a>(all: impl Iterator<Item = &'a Option<Numbers>>) -> Option<Numbers> {
    let mut union = BTreeSet::new();
    for numbers in all {
        union.extend(numbers.as_deref().unwrap_or(&[Number::Other]));
    }
    let known = union.first().is_some_and(|&first| first != Number::Other);
    (known && union.len() <= MOST_NUMBERS).then(|| union.into_iter().collect())
}

impl State {
    /// `name` now is what `place` holds and nothing else.
    pub(super) fn rename(&mut self, name: Name, place: Place) {
        self.unname(name);
        self.values[place.index()].names.push(name);
    }

    /// `name` is no value any more.
    fn unname(&mut self, name: Name) {
        self.free.remove(&name);
        for value in &mut self.values {
            value.names.retain(|other| *other != name);
        }
    }

    /// Parameters become what is passed to them, all at once.
    pub(super) fn pass(&mut self, passes: &Passes) {
        type Given = (Name, SmallVec<[usize; 2]>, bool);
        let holders = |name: Name| {
            let all = self.values.iter().enumerate();
            all.filter(move |(_, value)| value.names.contains(&name)).map(|(index, _)| index)
        };
        let given: SmallVec<[Given; 2]> = (passes.iter())
            .map(|&(param, arg)| match arg {
                Some(arg) => (param, holders(arg).collect(), self.free.contains(&arg)),
                None => (param, smallvec![], true),
            })
            .collect();
        for &(param, ..) in &given {
            self.unname(param);
        }
        for (param, holders, free) in given {
            for index in holders {
                self.values[index].names.push(param);
            }
            if free {
                self.free.insert(param);
            }
        }
    }

    /// A value that is true exactly where others are goes by their names, too.
    pub(super) fn find_names(&mut self, lanes: &Lanes, place: Place) {
        if !self.value(place).is_truth() {
            return;
        }
        let truth = self.not_zero(lanes, place);
        let undefined = self.value(place).undefined;
        let mut names = self.value(place).names.clone();
        for (index, value) in self.values.iter().enumerate() {
            if value.names.is_empty() || value.numbers.is_none() || index == place.index() {
                continue;
            }
            let other = self.not_zero(lanes, Place::from_index(index));
            let differ = lanes.minus(lanes.either(truth, other), undefined);
            if lanes.apart(self.pairs, differ) {
                names.extend(
                    value
                        .names
                        .iter()
                        .filter(|name| !names.contains(name))
                        .copied()
                        .collect::<SmallVec<[Name; 4]>>(),
                );
            }
        }
        self.values[place.index()].names = names;
    }
}
