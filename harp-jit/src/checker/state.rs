//! What is known at one place of the code about the values in registers and spill slots.
//!
//! A *place* is a general register, a predicate, or a word of the private part of the frame. It holds a
//! value, named by where it came to be: an instruction, the meeting of two ways, or the entry. Places with
//! copies of one value hold the same name, so facts survive moves and spills. All facts are about the lanes
//! that are active.
//!
//! Many facts hold in some lanes only: those where a *literal* is true, which says of a value that it is, or is
//! not, some number. Predicates are 0 or 1 and treated like general registers, so one that is spilled keeps
//! its meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use harp_isa::{Gpr, Pred};
use hashbrown::HashMap;

use super::record::{Entry, Holder, Name, Passes};

/// A register or a word of the frame, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place(u32);

/// The numbers of places.
#[derive(Clone, Debug)]
pub(super) struct Places {
    word: i64,
    /// Words of the frame: the offset of the first from the stack pointer at the entry, how many, and whether
    /// stores through pointers leave them alone.
    slots: Vec<(i64, u32, bool)>,
}

/// General registers and predicates have at most so many names.
const CLASS: u32 = 64;

impl Places {
    pub(super) fn new(entry: &Entry, word: i64) -> Places {
        let part = |range: &std::ops::Range<i64>, private| {
            let words = (range.end - range.start).max(0) / word;
            (range.start, words as u32, private)
        };
        let mut slots: Vec<_> = entry.private.iter().map(|range| part(range, true)).collect();
        slots.push(part(&entry.scratch, false));
        Places { word, slots }
    }

    pub(super) fn gpr(reg: Gpr) -> Place {
        Place(u32::from(reg.index()))
    }

    pub(super) fn pred(reg: Pred) -> Place {
        Place(CLASS + u32::from(reg.index()))
    }

    /// Where a value is kept; none if that is not followed.
    pub(super) fn of(&self, holder: Holder) -> Option<Place> {
        match holder {
            Holder::Gpr(reg) => Some(Places::gpr(reg)),
            Holder::Pred(reg) => Some(Places::pred(reg)),
            Holder::Frame(offset) => self.slot(offset),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        let slots: u32 = self.slots.iter().map(|&(_, words, _)| words).sum();
        (2 * CLASS + slots) as usize
    }

    /// The word of the frame at an offset from the stack pointer at the entry; a private one before
    /// others that lie there.
    pub(super) fn slot(&self, offset: i64) -> Option<Place> {
        let mut first = 2 * CLASS;
        for &(start, words, _) in &self.slots {
            let distance = offset - start;
            if distance >= 0 && distance % self.word == 0 && distance / self.word < words.into() {
                return Some(Place(first + (distance / self.word) as u32));
            }
            first += words;
        }
        None
    }

    /// The words of the frame that an access to the bytes from `offset` on may touch.
    pub(super) fn touched(&self, offset: i64, bytes: i64) -> impl Iterator<Item = Place> {
        let start = offset - offset.rem_euclid(self.word);
        let starts = (start..offset + bytes).step_by(self.word as usize);
        starts.filter_map(|start| self.slot(start))
    }

    /// All words of the frame that are followed.
    pub(super) fn slots(&self) -> impl Iterator<Item = Place> {
        (2 * CLASS..self.count() as u32).map(Place)
    }

    /// The words that a call, or a store through a pointer, may change.
    pub(super) fn exposed(&self) -> impl Iterator<Item = Place> {
        let private: u32 = self.slots.iter().filter(|slots| slots.2).map(|slots| slots.1).sum();
        (2 * CLASS + private..self.count() as u32).map(Place)
    }
}

impl Place {
    pub(super) fn is_pred(self) -> bool {
        (CLASS..2 * CLASS).contains(&self.0)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) origin: Origin,
    /// The instruction, or the first one behind where ways meet.
    pub(super) at: u32,
    /// The place that held it first.
    place: Place,
}

/// How a value came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    Entry,
    /// Nobody reads it.
    Dead,
    /// The instruction wrote it.
    Written,
    /// Ways meet.
    Met,
    /// Ways within the side of a split meet at its join: the side where the predicate is false, or true.
    MetOnSide(bool),
    /// A value of the instruction that runs again; this is what it wrote before.
    Former,
}

impl Id {
    pub(super) fn new(origin: Origin, at: usize, place: Place) -> Id {
        Id { origin, at: at as u32, place }
    }
}

/// Whether a value is a number, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Literal {
    pub(super) id: Id,
    pub(super) number: u64,
    pub(super) truth: bool,
}

impl Literal {
    /// The value is not zero, or it is.
    pub(super) fn new(id: Id, not_zero: bool) -> Literal {
        Literal { id, number: 0, truth: !not_zero }
    }

    /// Both that it is zero and that it is not.
    pub(super) fn both(id: Id) -> [Literal; 2] {
        [false, true].map(|not_zero| Literal::new(id, not_zero))
    }
}

impl std::ops::Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        Literal { truth: !self.truth, ..self }
    }
}

/// In which of the active lanes something is so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    Everywhere,
    /// Among the lanes in which the first literal holds, and among those in which the second one does, and
    /// so on.
    In(BTreeSet<Literal>),
}

impl Where {
    pub(super) const NOWHERE: Where = Where::In(BTreeSet::new());

    pub(super) fn literals(&self) -> impl Iterator<Item = Literal> + '_ {
        match self {
            Where::Everywhere => None,
            Where::In(literals) => Some(literals.iter().copied()),
        }
        .into_iter()
        .flatten()
    }
}

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

/// What holds where a value is a number, or is not.
pub(super) type Implied = BTreeMap<(u64, bool), BTreeSet<Literal>>;

/// What is known about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) form: Form,
    /// The numbers that it can be, if they are few.
    pub(super) numbers: Option<BTreeSet<u64>>,
    /// Of which of them all lanes agree whether it is that number, even if it varies.
    pub(super) agreed: BTreeSet<u64>,
    /// What it is for each of the few numbers that another value can be, if it depends on that alone.
    pub(super) follows: Option<(Id, BTreeMap<u64, u64>)>,
    /// Among which lanes it is equal.
    pub(super) uniform: Where,
    /// In which lanes it was written, and meant to be read.
    pub(super) defined: Where,
    /// What else holds where it is, or is not, a number.
    pub(super) implies: Implied,
    /// Predicates that were selected and are what this value is: true where it is not zero.
    pub(super) names: BTreeSet<Name>,
}

impl Fact {
    pub(super) fn unknown() -> Fact {
        Fact {
            form: Form::Unknown,
            numbers: None,
            agreed: BTreeSet::new(),
            follows: None,
            uniform: Where::NOWHERE,
            defined: Where::Everywhere,
            implies: BTreeMap::new(),
            names: BTreeSet::new(),
        }
    }

    /// Nothing that is meant to be read. It is no number, and as good as uniform: whoever looks at it is
    /// objected to.
    pub(super) fn undefined() -> Fact {
        Fact { defined: Where::NOWHERE, ..Fact::uniform() }
    }

    pub(super) fn uniform() -> Fact {
        Fact { uniform: Where::Everywhere, ..Fact::unknown() }
    }

    pub(super) fn constant(value: u64) -> Fact {
        let numbers = Some(BTreeSet::from([value]));
        Fact { form: Form::Constant(value), numbers, ..Fact::uniform() }
    }

    /// Whether it is 0 or 1.
    pub(super) fn is_truth(&self) -> bool {
        self.numbers.as_ref().is_some_and(|numbers| numbers.iter().all(|&number| number < 2))
    }

    /// What else holds where it is not zero, or is.
    pub(super) fn implied(&self, not_zero: bool) -> BTreeSet<Literal> {
        self.implies.get(&(0, !not_zero)).cloned().unwrap_or_default()
    }

    /// The numbers that tell lanes apart: of 0 and 1, only 0 is asked for.
    pub(super) fn told_apart(&self) -> impl Iterator<Item = u64> + '_ {
        let all = self.numbers.iter().flatten().copied();
        let is_truth = self.is_truth();
        all.filter(move |&number| !is_truth || number == 0)
    }
}

/// What the warp's scratch word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scratch {
    Anything,
    Zero,
    /// Zero, unless the literal holds in some lane.
    Vote(Literal),
}

/// All that is known at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// What each place holds.
    pub(super) held: Vec<Id>,
    /// What is known; nothing of values that are missing.
    facts: HashMap<Id, Rc<Fact>>,
    /// Names of selected predicates that are whatever a place holds: nobody looks at them.
    pub(super) free: BTreeSet<Name>,
    /// What the lanes wrote to the warp's scratch word last.
    pub(super) scratch: Scratch,
    /// That nothing is known.
    unknown: Rc<Fact>,
}

impl State {
    /// Every place holds its own value, of which nothing is known.
    pub(super) fn new(places: &Places) -> State {
        let entry = |place| Id::new(Origin::Entry, 0, Place(place as u32));
        State::holding((0..places.count()).map(entry).collect())
    }

    /// A state in which places hold these values.
    pub(super) fn holding(held: Vec<Id>) -> State {
        State {
            held,
            facts: HashMap::new(),
            free: BTreeSet::new(),
            scratch: Scratch::Anything,
            unknown: Rc::new(Fact::unknown()),
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.held.len() as u32).map(Place)
    }

    pub(super) fn held(&self, place: Place) -> Id {
        self.held[place.index()]
    }

    pub(super) fn fact(&self, id: Id) -> Rc<Fact> {
        Rc::clone(self.facts.get(&id).unwrap_or(&self.unknown))
    }

    pub(super) fn know(&mut self, id: Id, fact: Fact) {
        self.facts.insert(id, Rc::new(fact));
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut Fact)) {
        let mut fact = (*self.fact(id)).clone();
        change(&mut fact);
        self.know(id, fact);
    }

    /// `place` holds a value that did not exist before.
    pub(super) fn define(&mut self, id: Id, place: Place, fact: Fact) {
        self.forget(id);
        self.held[place.index()] = id;
        self.know(id, fact);
    }

    /// The value named `id` is about to be made anew: what is left of the former one gets other names.
    fn forget(&mut self, id: Id) {
        let stale =
            |other: &Id| *other == id || (other.origin == Origin::Former && other.at == id.at);
        let holders: Vec<Place> = self.places().filter(|&place| stale(&self.held(place))).collect();
        if holders.is_empty() && !self.facts.keys().any(stale) {
            return;
        }
        let olds: Vec<(Place, Rc<Fact>)> =
            holders.iter().map(|&place| (place, self.fact(self.held(place)))).collect();
        if let Scratch::Vote(literal) = self.scratch
            && stale(&literal.id)
        {
            self.scratch = Scratch::Anything;
        }
        self.facts.retain(|key, _| !stale(key));
        let mentions = |literals: &BTreeSet<Literal>| literals.iter().any(|l| stale(&l.id));
        let touched: Vec<Id> = (self.facts.iter())
            .filter(|(_, fact)| {
                let places = [&fact.uniform, &fact.defined];
                fact.implies.values().any(mentions)
                    || fact.follows.as_ref().is_some_and(|(source, _)| stale(source))
                    || places.iter().any(|w| w.literals().any(|l| stale(&l.id)))
            })
            .map(|(&key, _)| key)
            .collect();
        for key in touched {
            self.change(key, |fact| clean(fact, &stale));
        }
        for (place, old) in olds {
            let mut fact = (*old).clone();
            clean(&mut fact, &stale);
            let former = Id::new(Origin::Former, id.at as usize, place);
            self.held[place.index()] = former;
            self.know(former, fact);
        }
    }

    /// `name` now is the value `id` and no other.
    pub(super) fn rename(&mut self, name: Name, id: Id) {
        self.unname(name);
        self.change(id, |fact| {
            fact.names.insert(name);
        });
    }

    /// `name` is no value any more.
    fn unname(&mut self, name: Name) {
        self.free.remove(&name);
        for id in self.named(name) {
            self.change(id, |fact| {
                fact.names.remove(&name);
            });
        }
    }

    /// The values that are a selected predicate.
    fn named(&self, name: Name) -> Vec<Id> {
        let named = self.facts.iter().filter(|(_, fact)| fact.names.contains(&name));
        named.map(|(&id, _)| id).collect()
    }

    /// Parameters become what is passed to them, all at once.
    pub(super) fn pass(&mut self, passes: &Passes) {
        let given: Vec<(Name, Vec<Id>, bool)> = (passes.iter())
            .map(|&(param, arg)| {
                let free = arg.is_none_or(|arg| self.free.contains(&arg));
                (param, arg.map(|arg| self.named(arg)).unwrap_or_default(), free)
            })
            .collect();
        for (param, ids, free) in given {
            self.unname(param);
            for id in ids {
                self.change(id, |fact| {
                    fact.names.insert(param);
                });
            }
            if free {
                self.free.insert(param);
            }
        }
    }

    /// Whether a literal is known to hold, or not to hold, in all lanes.
    pub(super) fn settled(&self, literal: Literal) -> Option<bool> {
        let fact = self.fact(literal.id);
        if fact.defined == Where::NOWHERE {
            return Some(!literal.truth);
        }
        match (fact.form, &fact.numbers) {
            (Form::Constant(value), _) => Some((value == literal.number) == literal.truth),
            (_, Some(numbers)) if !numbers.contains(&literal.number) => Some(!literal.truth),
            _ => None,
        }
    }

    /// Whether all lanes agree if a value is a number or not.
    pub(super) fn agrees(&self, id: Id, number: u64) -> bool {
        let fact = self.fact(id);
        fact.uniform == Where::Everywhere
            || fact.agreed.contains(&number)
            || self.settled(Literal { id, number, truth: true }).is_some()
    }

    /// The literal that is asked for: of 0 and 1, whether it is 0.
    pub(super) fn normal(&self, literal: Literal) -> Literal {
        if literal.number == 1 && self.fact(literal.id).is_truth() {
            return Literal { number: 0, truth: !literal.truth, ..literal };
        }
        literal
    }

    /// Whether the lanes in which `one` holds are among those in which `other` does.
    pub(super) fn implies(&self, one: Literal, other: Literal) -> bool {
        let (one, other) = (self.normal(one), self.normal(other));
        if one == other || self.settled(one) == Some(false) || self.settled(other) == Some(true) {
            return true;
        }
        // What is one number is no other.
        let differs = one.truth && !other.truth && one.number != other.number;
        if one.id == other.id && differs {
            return true;
        }
        let (fact, contrary) = (self.fact(one.id), self.fact(other.id));
        let none = BTreeSet::new();
        let direct = fact.implies.get(&(one.number, one.truth)).unwrap_or(&none);
        let inverse = contrary.implies.get(&(other.number, !other.truth)).unwrap_or(&none);
        direct.contains(&other)
            || inverse.contains(&!one)
            || direct.iter().any(|&step| inverse.contains(&!step))
    }

    /// Whether something that is so in the lanes of `known` is so in those of `literal`.
    pub(super) fn covers(&self, known: &Where, literal: Literal) -> bool {
        match known {
            Where::Everywhere => true,
            Where::In(literals) => {
                self.settled(literal) == Some(false)
                    || literals.iter().any(|&known| self.implies(literal, known))
            }
        }
    }

    /// Whether `known` covers `literal`, or all lanes if there is none.
    pub(super) fn covers_lanes(&self, known: &Where, literal: Option<Literal>) -> bool {
        match literal {
            Some(literal) => self.covers(known, literal),
            None => *known == Where::Everywhere,
        }
    }

    /// Where both are so.
    pub(super) fn both(&self, one: &Where, other: &Where) -> Where {
        match (one, other) {
            (Where::Everywhere, known) | (known, Where::Everywhere) => known.clone(),
            (Where::In(a), Where::In(b)) => {
                let common = a.union(b).copied();
                Where::In(
                    common.filter(|&l| self.covers(one, l) && self.covers(other, l)).collect(),
                )
            }
        }
    }

    /// The literals that hold where `literal` does, itself included.
    pub(super) fn consequences(&self, literal: Literal) -> BTreeSet<Literal> {
        let fact = self.fact(literal.id);
        let known = fact.implies.get(&(literal.number, literal.truth));
        let mut all = known.cloned().unwrap_or_default();
        all.insert(literal);
        all
    }

    /// Only lanes in which `literal` holds stay active.
    pub(super) fn assume(&mut self, literal: Literal) {
        let mut held: Vec<Id> = self.held.clone();
        held.sort_unstable();
        held.dedup();
        let mut changes = Vec::new();
        for id in held {
            let fact = self.fact(id);
            let numbers = self.numbers_where(literal, id, &fact);
            let settled = match &numbers {
                Some(left) if left.len() == 1 => left.first().copied(),
                _ => None,
            };
            let settled = settled.filter(|_| !matches!(fact.form, Form::Constant(_)));
            let numbers = numbers.filter(|left| Some(left) != fact.numbers.as_ref());
            let narrow = |known: &Where| *known != Where::Everywhere && self.covers(known, literal);
            let (uniform, defined) = (narrow(&fact.uniform), narrow(&fact.defined));
            if uniform || defined || settled.is_some() || numbers.is_some() {
                changes.push((id, settled, numbers, uniform, defined));
            }
        }
        for (id, settled, numbers, uniform, defined) in changes {
            self.change(id, |fact| {
                if numbers.is_some() {
                    fact.numbers = numbers;
                }
                if let Some(value) = settled {
                    fact.form = Form::Constant(value);
                    fact.uniform = Where::Everywhere;
                }
                if uniform {
                    fact.uniform = Where::Everywhere;
                }
                if defined {
                    fact.defined = Where::Everywhere;
                }
            });
        }
    }
}

impl State {
    /// The numbers that a value can be where a literal holds, if they are few.
    fn numbers_where(&self, literal: Literal, id: Id, fact: &Fact) -> Option<BTreeSet<u64>> {
        let holds = |number, truth| self.implies(literal, Literal { id, number, truth });
        let Some(numbers) = &fact.numbers else {
            return holds(0, true).then(|| BTreeSet::from([0]));
        };
        let left: BTreeSet<u64> =
            numbers.iter().copied().filter(|&number| !holds(number, false)).collect();
        // None is left on ways that nobody goes.
        if left.is_empty() { fact.numbers.clone() } else { Some(left) }
    }
}

/// Removes what is said in terms of stale values.
fn clean(fact: &mut Fact, stale: &impl Fn(&Id) -> bool) {
    if fact.follows.as_ref().is_some_and(|(source, _)| stale(source)) {
        fact.follows = None;
    }
    for literals in fact.implies.values_mut() {
        literals.retain(|literal| !stale(&literal.id));
    }
    for known in [&mut fact.uniform, &mut fact.defined] {
        if let Where::In(literals) = known {
            literals.retain(|literal| !stale(&literal.id));
        }
    }
}
