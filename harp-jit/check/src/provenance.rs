//! The origins of values that existed when lanes diverged.
//!
//! The sides of a split execute the same instructions at different times, if at all. Two lanes of different sides hold
//! the same value after the join if both had it at the split, wherever it was moved since, or if both computed it in
//! the same way from such values ([`term`](crate::term)).

use std::rc::Rc;

use harp_bdd::Set;
use smallvec::{SmallVec, smallvec};

use crate::places::Place;
use crate::regions::Decided;
use crate::term::{Origin, Passage, Terms};

/// The possible origins of a value, each with the lanes in which it is possible.
type List<'a> = SmallVec<[(Origin, Set<'a>); 1]>;

/// Where the value that a place holds comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origins<'a> {
    /// From there in all lanes.
    Only([(Origin, Set<'a>); 1]),
    Several(Rc<Several<'a>>),
}

/// Where a value comes from that is not the same in all lanes. Both is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Several<'a> {
    /// What it is in lanes that came by one way, and what in those that came by another.
    parts: List<'a>,
    /// The same, where what decides about the way is part of what it is, if that is something else.
    wholes: Option<List<'a>>,
}

impl<'a> Origins<'a> {
    fn only(origin: Origin) -> Origins<'a> {
        Origins::Only([(origin, Set::ALL)])
    }

    fn several(parts: List<'a>, wholes: Option<List<'a>>) -> Origins<'a> {
        match (&*parts, wholes.as_deref()) {
            (&[(origin, _)], None) | ([(Origin::Unknown, _)], Some(&[(origin, _)])) => {
                Origins::only(origin)
            }
            _ => Origins::Several(Rc::new(Several { parts, wholes })),
        }
    }

    /// Whether both lists are the same.
    fn is_one(&self) -> bool {
        match self {
            Origins::Only(_) => true,
            Origins::Several(several) => several.wholes.is_none(),
        }
    }

    /// What it may be, in two ways.
    pub(crate) fn lists(&self) -> [&[(Origin, Set<'a>)]; 2] {
        match self {
            Origins::Only(only) => [only; 2],
            Origins::Several(several) => {
                [&several.parts, several.wholes.as_ref().unwrap_or(&several.parts)]
            }
        }
    }

    /// All sets that say something.
    fn sets(&self) -> impl Iterator<Item = Set<'a>> {
        let several = match self {
            Origins::Only(_) => None,
            Origins::Several(several) => Some(several),
        };
        let lists =
            several.into_iter().flat_map(|several| several.wholes.iter().chain([&several.parts]));
        lists.flatten().map(|&(_, set)| set)
    }

    /// The same, of which it is known what it is in all lanes.
    fn named(self, whole: Origin) -> Origins<'a> {
        if whole == Origin::Unknown || self.whole() != Origin::Unknown {
            return self;
        }
        match self {
            Origins::Only(_) => Origins::only(whole),
            Origins::Several(several) => {
                Origins::several(several.parts.clone(), Some(smallvec![(whole, Set::ALL)]))
            }
        }
    }

    /// What it is in all lanes.
    fn whole(&self) -> Origin {
        match self.lists()[1] {
            &[(origin, _)] => origin,
            _ => Origin::Unknown,
        }
    }

    /// All of them, each in the lanes that it is for.
    fn union<'o>(
        all: impl Iterator<Item = (&'o Origins<'a>, Set<'a>)> + Clone,
        held: impl Fn(Origin) -> Origin,
    ) -> Origins<'a>
    where
        'a: 'o,
    {
        let is_one = all.clone().all(|(origins, _)| origins.is_one());
        let list = |list: usize| {
            let each = all.clone().flat_map(|(origins, among)| {
                origins.lists()[list].iter().map(move |&(origin, set)| (origin, set & among))
            });
            union(each.map(|(origin, set)| (held(origin), set)))
        };
        let parts = list(0);
        let wholes = (!is_one).then(|| list(1)).filter(|wholes| *wholes != parts);
        Origins::several(parts, wholes)
    }

    /// The same with both lists changed.
    fn map(&mut self, mut change: impl FnMut(&[(Origin, Set<'a>)]) -> List<'a>) {
        if let Origins::Several(several) = self {
            *self = Origins::several(change(&several.parts), several.wholes.as_deref().map(change));
        }
    }
}

/// A block where paths meet, with the conditions that decide along which path lanes come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'p> {
    pub(crate) block: usize,
    /// What decides about each of the ways.
    pub(crate) decided: &'p [Decided],
    pub(crate) terms: &'p Terms,
}

impl Gate<'_> {
    fn is_loop(&self) -> bool {
        self.decided.contains(&Decided::Round)
    }

    fn passage(&self, branch: usize, decided: Decided) -> Passage {
        Passage { branch, block: self.block, decided }
    }

    /// What a place holds there.
    fn name(&self, place: Place, ways: &[(&Provenance<'_>, Set<'_>)]) -> Origin {
        let branch = ways[0].0.branch;
        let [entry, back] = [Decided::Entry, Decided::Round].map(|decided| {
            let those = ways.iter().zip(self.decided).filter(|&(_, &other)| other == decided);
            let each: SmallVec<[Origin; 4]> = those.map(|((way, _), _)| way.only(place)).collect();
            self.terms.gamma(self.passage(branch, decided), place, &each)
        });
        match self.is_loop() {
            true => self.terms.mu(self.passage(branch, Decided::Round), place, [entry, back]),
            false => entry,
        }
    }

    /// What changes in each round of the loop is not the same any more in the next.
    fn held(&self, branch: usize, origin: Origin) -> Origin {
        let changes =
            self.is_loop() && self.terms.varies(origin, self.passage(branch, Decided::Round));
        if changes { Origin::Unknown } else { origin }
    }
}

/// The most origins that are told apart.
const MOST_ORIGINS: usize = 4;

/// The values that places held at an open split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Provenance<'a> {
    /// The branch of the split.
    pub(crate) branch: usize,
    /// The sides that lanes came by: the one where the predicate is false, the one where it is true.
    pub(crate) sides: [bool; 2],
    origins: Rc<Vec<Origins<'a>>>,
}

impl<'a> Provenance<'a> {
    /// At the split itself, on one of its sides.
    pub(crate) fn new(branch: usize, taken: bool, places: usize) -> Provenance<'a> {
        let own = |index| Origins::only(Origin::Place(Place::from_index(index)));
        let origins = Rc::new((0..places).map(own).collect());
        Provenance { branch, sides: [!taken, taken], origins }
    }

    /// Where nothing is known.
    pub(crate) fn unknown(branch: usize, places: usize) -> Provenance<'a> {
        let origins = Rc::new(vec![Origins::only(Origin::Unknown); places]);
        Provenance { branch, sides: [true; 2], origins }
    }

    /// Of open splits the one of this branch.
    pub(crate) fn find<'p>(
        open: &'p [Provenance<'a>],
        branch: usize,
    ) -> Option<&'p Provenance<'a>> {
        open.iter().rfind(|kept| kept.branch == branch)
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set<'a>> {
        self.origins.iter().flat_map(Origins::sets)
    }

    pub(crate) fn of(&self, place: Place) -> &Origins<'a> {
        &self.origins[place.index()]
    }

    /// What a place holds in all lanes.
    pub(crate) fn only(&self, place: Place) -> Origin {
        self.of(place).whole()
    }

    /// `place` holds what came from these origins.
    fn set(&mut self, place: Place, origins: Origins<'a>) {
        if *self.of(place) != origins {
            Rc::make_mut(&mut self.origins)[place.index()] = origins;
        }
    }

    /// `place` holds what comes from there.
    pub(crate) fn derive(&mut self, place: Place, origin: Origin) {
        self.set(place, Origins::only(origin));
    }

    /// `place` holds what comes from there, if nothing else is known of all lanes.
    pub(crate) fn name(&mut self, place: Place, origin: Origin) {
        self.set(place, self.of(place).clone().named(origin));
    }

    /// `place` holds what `source` does.
    pub(crate) fn copy(&mut self, place: Place, source: Place) {
        self.set(place, self.of(source).clone());
    }

    /// `place` holds what `source` does in the lanes of `among`.
    pub(crate) fn choose(&mut self, place: Place, (among, source): (Set<'a>, Place)) {
        let sides = [(source, among), (place, !among)];
        let all = sides.into_iter().map(|(place, among)| (self.of(place), among));
        self.set(place, Origins::union(all, |origin| origin));
    }

    /// Changes some of the origins that are not the same in all lanes.
    fn change(
        &mut self,
        wanted: impl Fn(&Origins<'a>) -> bool,
        change: impl Fn(&[(Origin, Set<'a>)]) -> List<'a>,
    ) {
        if self.origins.iter().any(&wanted) {
            let all = Rc::make_mut(&mut self.origins).iter_mut();
            all.filter(|origins| wanted(origins)).for_each(|origins| origins.map(&change));
        }
    }

    /// Says in other terms what it says in terms of the conditions in `gone`, of which `known` is known.
    pub(crate) fn project(&mut self, gone: Set<'a>, known: Set<'a>) {
        let tells = |origins: &Origins<'a>| origins.sets().any(|set| set.depends_on(gone));
        let other = |&(origin, set): &(Origin, Set<'a>)| (origin, set.and_exists(known, gone));
        self.change(tells, |list| list.iter().map(other).collect());
    }

    /// Leaves out where the value of no active lane comes from.
    pub(crate) fn normalize(&mut self, active: Set<'a>) {
        let vain = |origins: &Origins<'a>| {
            origins.lists()[0].len() > 1 && origins.sets().any(|set| set.disjoint(active))
        };
        let is_left = |&(_, set): &(Origin, Set<'a>)| !set.disjoint(active);
        self.change(vain, |list| union(list.iter().copied().filter(is_left)));
    }

    /// What is known where ways meet that lanes come which are in these sets.
    pub(crate) fn meet(
        ways: &[(&Provenance<'a>, Set<'a>)],
        gate: Option<Gate<'_>>,
    ) -> Provenance<'a> {
        let (first, _) = ways[0];
        let sides = [0, 1].map(|side| ways.iter().any(|(way, _)| way.sides[side]));
        let is_head = gate.is_some_and(|gate| gate.is_loop());
        if !is_head && ways.iter().all(|(way, _)| way.origins == first.origins) {
            return Provenance { sides, ..first.clone() };
        }
        let held = |origin| gate.map_or(origin, |gate| gate.held(first.branch, origin));
        let all = |index: usize| {
            let place = Place::from_index(index);
            let agree = ways.iter().all(|(way, _)| way.of(place) == first.of(place));
            if agree && !is_head {
                return first.of(place).clone();
            }
            let whole = match gate {
                _ if agree => held(first.only(place)),
                Some(gate) => gate.name(place, ways),
                None => Origin::Unknown,
            };
            let each = ways.iter().map(|&(way, taken)| (way.of(place), taken));
            Origins::union(each, held).named(whole)
        };
        let origins = (0..first.origins.len()).map(all).collect();
        Provenance { branch: first.branch, sides, origins: Rc::new(origins) }
    }
}

/// Each origin once, if there are not too many.
fn union<'a>(each: impl Iterator<Item = (Origin, Set<'a>)>) -> List<'a> {
    let mut origins = List::new();
    let mut nothing = false;
    for (origin, set) in each.filter(|&(_, set)| set != Set::NONE) {
        if origin == Origin::Nothing {
            nothing = true;
            continue;
        }
        match origins.iter_mut().find(|(other, _)| *other == origin) {
            Some((_, all)) => *all = *all | set,
            None => origins.push((origin, set)),
        }
    }
    origins.sort_unstable_by_key(|&(origin, _)| origin);
    match *origins {
        [] if nothing => smallvec![(Origin::Nothing, Set::ALL)],
        [(only, _)] => smallvec![(only, Set::ALL)],
        [_, _, ..] if origins.len() <= MOST_ORIGINS => origins,
        _ => smallvec![(Origin::Unknown, Set::ALL)],
    }
}
