//! The values that sides of a split compute from those that existed at the split.
//!
//! Both sides may come through the same block, one after the other, or do the same for another reason. What an
//! instruction makes of the same operands is the same, so it is given a name by what it is made of (hash
//! consing, as in value numbering).
//!
//! So are values where ways meet, and at the heads of loops. By which of the ways a lane came, and in which round it
//! is, is what the branches in a [region](crate::regions) decide: the [`Dependence`] through it says what that depends
//! on. It is taken to depend on nothing, until it is found out better.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use harp_isa::{Op, Opcode, Operand};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::number::Precision;
use crate::op::operands;
use crate::places::Place;
use crate::regions::Decided;

/// The name of something that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Term(u32);

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// It was in this place.
    Place(Place),
    /// It was computed.
    Term(Term),
    /// It is nothing that is meant to be read: where it meets something else, it is taken to be that.
    Nothing,
    Unknown,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Source {
    Constant(u64),
    Immediate(i64),
    From(Origin),
}

/// The operation and operands that made a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Expression {
    function: Function,
    sources: SmallVec<[Source; 3]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Operation(Opcode),
    /// The second in the lanes where the first is true, the third elsewhere.
    Select,
    /// What a place holds where lanes come by one of several ways: one source for each.
    Gamma(Passage, Place),
    /// What a place holds at the head of a loop where it was entered with the source.
    Mu(Passage, Place),
}

/// A way through the region of a block, of lanes that were parted by a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Passage {
    /// The branch of the split.
    pub(crate) branch: usize,
    pub(crate) block: usize,
    pub(crate) decided: Decided,
}

/// The way itself, or what it does to a place in each round.
type Part = (Passage, Option<Place>);

/// The dependences of a value or a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Dependence {
    places: BTreeSet<Place>,
    parts: BTreeSet<Part>,
    /// Whether it depends on something else.
    unknown: bool,
}

impl Dependence {
    fn add(&mut self, other: &Dependence) {
        self.places.extend(&other.places);
        self.parts.extend(&other.parts);
        self.unknown |= other.unknown;
    }
}

#[derive(Clone, Debug, Default)]
struct Entry {
    on: Dependence,
    depth: u32,
}

/// No more is followed than so many steps one after the other, and so many places. Where values get no names at
/// the heads of loops, each round adds steps.
const MOST_DEPTH: u32 = 12;
const MOST_DEPTH_BETWEEN_NAMES: u32 = 48;
const MOST_PLACES: usize = 8;

/// All that was computed.
#[derive(Debug)]
pub(crate) struct Terms {
    most_depth: u32,
    known: RefCell<HashMap<Expression, Term>>,
    entries: RefCell<Vec<Entry>>,
    courses: RefCell<BTreeMap<Part, Dependence>>,
    /// Whether courses were found to depend on more.
    changed: Cell<bool>,
}

impl Terms {
    pub(crate) fn new(precision: Precision) -> Terms {
        let most_depth = if precision.names_ways() { MOST_DEPTH_BETWEEN_NAMES } else { MOST_DEPTH };
        Terms {
            most_depth,
            known: RefCell::default(),
            entries: RefCell::default(),
            courses: RefCell::default(),
            changed: Cell::default(),
        }
    }

    /// What `op` makes of these operands, its result left out; unknown if that is not followed.
    pub(crate) fn result(&self, op: Op, source: impl Fn(Operand) -> Source) -> Origin {
        let sources: SmallVec<[Source; 3]> =
            operands(op)[1..].iter().map(|&operand| source(operand)).collect();
        self.operation(op.opcode(), sources)
    }

    /// What an operation of this kind makes of these.
    pub(crate) fn operation(&self, opcode: Opcode, sources: SmallVec<[Source; 3]>) -> Origin {
        if sources.contains(&Source::From(Origin::Nothing)) {
            return Origin::Unknown;
        }
        self.name(Function::Operation(opcode), sources)
    }

    /// The second where the first is true, the third elsewhere.
    pub(crate) fn selected(&self, sources: [Source; 3]) -> Origin {
        match sources {
            [_, Source::From(one), Source::From(Origin::Nothing)]
            | [_, Source::From(Origin::Nothing), Source::From(one)] => return one,
            _ => {}
        }
        self.name(Function::Select, SmallVec::from_buf(sources))
    }

    /// What a place holds where ways meet on which it is this.
    pub(crate) fn gamma(&self, at: Passage, place: Place, ways: &[Origin]) -> Origin {
        let mut meant = ways.iter().copied().filter(|&way| way != Origin::Nothing);
        let first = meant.next().unwrap_or(Origin::Nothing);
        match meant.all(|other| other == first) {
            true => first,
            false => {
                let ways = ways.iter().copied().map(Source::From).collect();
                self.name(Function::Gamma(at, place), ways)
            }
        }
    }

    /// What a place holds at the head of a loop, where it is `entry` in the first round and `back` in each one
    /// behind that.
    pub(crate) fn mu(&self, at: Passage, place: Place, [entry, back]: [Origin; 2]) -> Origin {
        if self.varies(entry, at) || back == Origin::Unknown {
            return Origin::Unknown;
        }
        if entry == back || back == Origin::Nothing {
            return entry;
        }
        let round = self.name(Function::Mu(at, place), smallvec![Source::From(entry)]);
        if round != Origin::Unknown {
            [entry, back].iter().for_each(|&origin| self.note((at, Some(place)), origin));
        }
        round
    }

    /// The name of an expression; unknown if it is not followed.
    fn name(&self, function: Function, sources: SmallVec<[Source; 3]>) -> Origin {
        let mut entry = Entry { depth: 1, ..Entry::default() };
        for source in &sources {
            if let Source::From(origin) = *source {
                let Entry { on, depth } = self.entry(origin);
                entry.on.add(&on);
                entry.depth = entry.depth.max(depth + 1);
            }
        }
        let more: &[Part] = match function {
            Function::Operation(_) | Function::Select => &[],
            Function::Gamma(at, _) => &[(at, None)],
            Function::Mu(at, place) => &[(at, None), (at, Some(place))],
        };
        entry.on.parts.extend(more);
        if matches!(function, Function::Mu(..)) {
            entry.depth = 0;
        }
        let Entry { on, depth } = &entry;
        if on.unknown {
            return Origin::Unknown;
        }
        let mut courses = self.courses.borrow_mut();
        for &part in more {
            courses.entry(part).or_insert_with(|| {
                self.changed.set(true);
                Dependence::default()
            });
        }
        let is_followed = *depth <= self.most_depth && on.places.len() <= MOST_PLACES;
        if !is_followed || more.iter().any(|part| courses[part].unknown) {
            return Origin::Unknown;
        }
        let mut entries = self.entries.borrow_mut();
        let expression = Expression { function, sources };
        let term = *self.known.borrow_mut().entry(expression).or_insert_with(|| {
            entries.push(entry);
            Term((entries.len() - 1) as u32)
        });
        Origin::Term(term)
    }

    fn entry(&self, origin: Origin) -> Entry {
        let mut entry = Entry::default();
        match origin {
            Origin::Term(Term(index)) => return self.entries.borrow()[index as usize].clone(),
            Origin::Place(place) => _ = entry.on.places.insert(place),
            Origin::Nothing => {}
            Origin::Unknown => entry.on.unknown = true,
        }
        entry
    }

    /// All that a value depends on, by way of what its parts do, too.
    fn dependence(&self, origin: Origin) -> Dependence {
        let mut on = self.entry(origin).on;
        let courses = self.courses.borrow();
        let mut todo: Vec<Part> = on.parts.iter().copied().collect();
        while let Some(part) = todo.pop() {
            if let Some(course) = courses.get(&part) {
                todo.extend(course.parts.difference(&on.parts));
                on.add(course);
            }
        }
        on
    }

    /// Whether a value may change in each round of a loop.
    pub(crate) fn varies(&self, origin: Origin, at: Passage) -> bool {
        self.dependence(origin).parts.contains(&(at, None))
    }

    /// The places that a value depends on; none if that is not known.
    pub(crate) fn places(&self, origin: Origin) -> Option<SmallVec<[Place; 4]>> {
        let on = self.dependence(origin);
        (!on.unknown).then(|| on.places.into_iter().collect())
    }

    /// All ways that were asked for.
    pub(crate) fn passages(&self) -> Vec<Passage> {
        let courses = self.courses.borrow();
        courses.keys().filter(|(_, place)| place.is_none()).map(|&(at, _)| at).collect()
    }

    /// This value decides which path lanes take.
    pub(crate) fn decides(&self, at: Passage, origin: Origin) {
        self.note((at, None), origin);
    }

    /// Whether courses were found to depend on more since this was asked last.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.take()
    }

    fn note(&self, part: Part, origin: Origin) {
        let on = self.dependence(origin);
        let mut courses = self.courses.borrow_mut();
        let course = courses.entry(part).or_default();
        let before = course.clone();
        course.add(&on);
        if *course != before {
            self.changed.set(true);
        }
    }
}
