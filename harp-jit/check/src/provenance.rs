//! Where values come from that were there when lanes parted.
//!
//! Sides of a split execute the same instructions at different times, if they execute them. That two lanes of
//! different sides hold the same behind the join is known of values that both had when they parted, wherever
//! these have been moved, and of what was computed from such values in the same way ([`term`](crate::term)).

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use crate::bdd::Set;
use crate::lanes::Lanes;
use crate::places::Place;
use crate::regions::Decided;
use crate::term::{Origin, Passage, Terms};

/// What a value may be, with the lanes in which it may.
type List = SmallVec<[(Origin, Set); 1]>;

/// Where the value that a place holds comes from. Both is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origins {
    /// What it is in lanes that came by one way, and what in those that came by another.
    parts: List,
    /// The same, where what decides about the way is part of what it is, if that is something else.
    wholes: Option<List>,
}

impl Origins {
    fn only(origin: Origin) -> Origins {
        Origins { parts: smallvec![(origin, Set::ALL)], wholes: None }
    }

    fn new(parts: List, wholes: Option<List>) -> Origins {
        let wholes = wholes.filter(|wholes| *wholes != parts);
        Origins { parts, wholes }
    }

    /// What it may be, in two ways.
    pub(crate) fn lists(&self) -> [&[(Origin, Set)]; 2] {
        [&self.parts, self.wholes.as_ref().unwrap_or(&self.parts)]
    }

    /// Whether both ways are the same.
    pub(crate) fn is_one(&self) -> bool {
        self.wholes.is_none()
    }

    fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        self.parts.iter().chain(self.wholes.iter().flatten()).map(|&(_, set)| set)
    }

    /// The same, of which it is known what it is in all lanes.
    fn named(self, whole: Origin) -> Origins {
        if whole == Origin::Unknown || self.whole() != Origin::Unknown {
            return self;
        }
        match *self.parts {
            [(Origin::Unknown, _)] => Origins::only(whole),
            _ => Origins::new(self.parts, Some(smallvec![(whole, Set::ALL)])),
        }
    }

    /// What it is in all lanes.
    fn whole(&self) -> Origin {
        match *self.lists()[1] {
            [(origin, _)] => origin,
            _ => Origin::Unknown,
        }
    }

    /// All of them, each in the lanes that it is for.
    fn union<'a>(
        lanes: &Lanes,
        all: impl Iterator<Item = (&'a Origins, Set)> + Clone,
        held: impl Fn(Origin) -> Origin,
    ) -> Origins {
        let list = |list: usize| {
            let each = all.clone().flat_map(|(origins, among)| {
                origins.lists()[list].iter().map(move |&(origin, set)| (origin, set, among))
            });
            union(lanes, each.map(|(origin, set, among)| (held(origin), lanes.and(set, among))))
        };
        let parts = list(0);
        let is_one = all.clone().all(|(origins, _)| origins.is_one());
        Origins::new(parts, (!is_one).then(|| list(1)))
    }
}

/// A block where ways meet, of which it is known what decides by which of them lanes come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'a> {
    pub(crate) block: usize,
    /// What decides about each of the ways.
    pub(crate) decided: &'a [Decided],
    pub(crate) terms: &'a Terms,
}

impl Gate<'_> {
    fn is_loop(&self) -> bool {
        self.decided.contains(&Decided::Round)
    }

    /// What a place holds there.
    fn name(&self, place: Place, ways: &[(&Provenance, Set)]) -> Origin {
        let [entry, back] = [Decided::Entry, Decided::Round].map(|decided| {
            let those = ways.iter().zip(self.decided).filter(|&(_, &other)| other == decided);
            let each: SmallVec<[Origin; 4]> = those.map(|((way, _), _)| way.only(place)).collect();
            self.terms.gamma(self.passage(ways, decided), place, &each)
        });
        match self.is_loop() {
            true => self.terms.mu(self.passage(ways, Decided::Round), place, [entry, back]),
            false => entry,
        }
    }

    /// What changes in each round of the loop is not the same any more in the next.
    fn held(&self, origin: Origin, ways: &[(&Provenance, Set)]) -> Origin {
        let at = self.passage(ways, Decided::Round);
        let changes = self.is_loop() && self.terms.varies(origin, at);
        if changes { Origin::Unknown } else { origin }
    }

    fn passage(&self, ways: &[(&Provenance, Set)], decided: Decided) -> Passage {
        Passage { branch: ways[0].0.branch, block: self.block, decided }
    }
}

/// No more origins than these are told apart.
const MOST_ORIGINS: usize = 4;

/// What places held at an open split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Provenance {
    /// The branch of the split.
    pub(crate) branch: usize,
    /// The sides that lanes came by: the one where the predicate is false, the one where it is true.
    pub(crate) sides: [bool; 2],
    origins: Rc<Vec<Origins>>,
}

impl Provenance {
    /// At the split itself, on one of its sides.
    pub(crate) fn new(branch: usize, taken: bool, places: usize) -> Provenance {
        let own = |index| Origins::only(Origin::Place(Place::from_index(index)));
        let origins = Rc::new((0..places).map(own).collect());
        Provenance { branch, sides: [!taken, taken], origins }
    }

    /// Where nothing is known.
    pub(crate) fn unknown(branch: usize, places: usize) -> Provenance {
        Provenance {
            branch,
            sides: [true; 2],
            origins: Rc::new(vec![Origins::only(Origin::Unknown); places]),
        }
    }

    /// Of open splits the one of this branch.
    pub(crate) fn find(open: &[Provenance], branch: usize) -> Option<&Provenance> {
        open.iter().rfind(|kept| kept.branch == branch)
    }

    /// All sets that say something.
    pub(crate) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        self.origins.iter().flat_map(Origins::sets)
    }

    pub(crate) fn of(&self, place: Place) -> &Origins {
        &self.origins[place.index()]
    }

    /// What a place holds in all lanes.
    pub(crate) fn only(&self, place: Place) -> Origin {
        self.of(place).whole()
    }

    /// `place` holds what came from these origins.
    pub(crate) fn set(&mut self, place: Place, origins: Origins) {
        if self.origins[place.index()] != origins {
            Rc::make_mut(&mut self.origins)[place.index()] = origins;
        }
    }

    /// `place` holds something else.
    pub(crate) fn lose(&mut self, place: Place) {
        self.derive(place, Origin::Unknown);
    }

    /// `place` holds what comes from there.
    pub(crate) fn derive(&mut self, place: Place, origin: Origin) {
        self.set(place, Origins::only(origin));
    }

    /// `place` holds what comes from there, if nothing else is known of all lanes.
    pub(crate) fn name(&mut self, place: Place, origin: Origin) {
        self.set(place, self.of(place).clone().named(origin));
    }

    /// `place` holds nothing that is meant to be read.
    pub(crate) fn drop(&mut self, place: Place) {
        if self.only(place) != Origin::Nothing {
            self.derive(place, Origin::Nothing);
        }
    }

    /// `place` holds what `source` does.
    pub(crate) fn copy(&mut self, place: Place, source: Place) {
        self.set(place, self.of(source).clone());
    }

    /// The origins of what is in `source` in the lanes of `among`, and in `place` in the others.
    pub(crate) fn chosen(
        &self,
        lanes: &Lanes,
        place: Place,
        (among, source): (Set, Place),
    ) -> Origins {
        let sides = [(source, among), (place, lanes.not(among))];
        let all = sides.into_iter().map(|(place, among)| (self.of(place), among));
        Origins::union(lanes, all, |origin| origin)
    }

    /// Says in other terms what it says in terms of the conditions in `gone`, of which `known` is known.
    pub(crate) fn project(&mut self, lanes: &Lanes, gone: Set, known: Set) {
        let tells = |origins: &Origins| origins.sets().any(|set| lanes.depends_on(set, gone));
        if !self.origins.iter().any(tells) {
            return;
        }
        for origins in Rc::make_mut(&mut self.origins).iter_mut().filter(|origins| tells(origins)) {
            for (_, set) in origins.parts.iter_mut().chain(origins.wholes.iter_mut().flatten()) {
                *set = lanes.and_exists(*set, known, gone);
            }
        }
    }

    /// Leaves out where the value of no active lane comes from.
    pub(crate) fn normalize(&mut self, lanes: &Lanes, active: Set) {
        let vain = |origins: &Origins| {
            origins.parts.len() > 1 && origins.sets().any(|set| lanes.disjoint(set, active))
        };
        if !self.origins.iter().any(vain) {
            return;
        }
        for origins in Rc::make_mut(&mut self.origins).iter_mut().filter(|origins| vain(origins)) {
            let left = |list: &List| {
                let left = list.iter().copied().filter(|&(_, set)| !lanes.disjoint(set, active));
                union(lanes, left)
            };
            let wholes = origins.wholes.as_ref().map(left);
            *origins = Origins::new(left(&origins.parts), wholes);
        }
    }

    /// What is known where ways meet that lanes come which are in these sets.
    pub(crate) fn meet(
        lanes: &Lanes,
        ways: &[(&Provenance, Set)],
        gate: Option<Gate<'_>>,
    ) -> Provenance {
        let (first, _) = ways[0];
        let sides = [0, 1].map(|side| ways.iter().any(|(way, _)| way.sides[side]));
        let is_head = gate.is_some_and(|gate| gate.is_loop());
        if !is_head && ways.iter().all(|(way, _)| way.origins == first.origins) {
            return Provenance { sides, ..first.clone() };
        }
        let held = |origin| gate.map_or(origin, |gate| gate.held(origin, ways));
        let all = |index: usize| {
            let place = Place::from_index(index);
            let agree = ways.iter().all(|(way, _)| way.of(place) == first.of(place));
            if agree && !is_head {
                return first.of(place).clone();
            }
            let each = ways.iter().map(|&(way, taken)| (way.of(place), taken));
            let whole = match gate {
                _ if agree => held(first.only(place)),
                Some(gate) => gate.name(place, ways),
                None => Origin::Unknown,
            };
            Origins::union(lanes, each, held).named(whole)
        };
        let origins = (0..first.origins.len()).map(all).collect();
        Provenance { branch: first.branch, sides, origins: Rc::new(origins) }
    }
}

/// Each origin once, if there are not too many.
fn union(lanes: &Lanes, each: impl Iterator<Item = (Origin, Set)>) -> List {
    let mut origins = List::new();
    let mut nothing = false;
    for (origin, set) in each.filter(|&(_, set)| set != Set::NONE) {
        if origin == Origin::Nothing {
            nothing = true;
            continue;
        }
        match origins.iter_mut().find(|(other, _)| *other == origin) {
            Some((_, all)) => *all = lanes.or(*all, set),
            None => origins.push((origin, set)),
        }
    }
    origins.sort_unstable();
    match *origins {
        [] if nothing => smallvec![(Origin::Nothing, Set::ALL)],
        [(only, _)] => smallvec![(only, Set::ALL)],
        [_, _, ..] if origins.len() <= MOST_ORIGINS => origins,
        _ => smallvec![(Origin::Unknown, Set::ALL)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Condition;
    use crate::number::{Number, Precision};

    fn places<const N: usize>() -> [Place; N] {
        std::array::from_fn(Place::from_index)
    }

    #[test]
    fn what_sides_did_to_a_value_is_known_lane_by_lane() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b, c] = places();
        let truth = lanes.condition(Condition::Holds(c, Number::ONE));
        let elsewhere = lanes.not(truth);
        let mut one = Provenance::new(7, false, 3);
        assert_eq!(one.only(a), Origin::Place(a));
        one.copy(a, b);
        assert_eq!(one.only(a), Origin::Place(b));
        one.lose(b);
        assert_eq!(one.only(b), Origin::Unknown);
        one.set(c, one.chosen(&lanes, c, (truth, a)));
        let chosen = [(Origin::Place(b), truth), (Origin::Place(c), elsewhere)];
        assert_eq!(one.of(c).lists(), [&chosen[..]; 2]);
        assert_eq!(one.only(c), Origin::Unknown, "it depends on the lane");
        let other = Provenance::new(7, true, 3);
        let both = Provenance::meet(&lanes, &[(&one, truth), (&other, elsewhere)], None);
        let parts = [(Origin::Place(a), elsewhere), (Origin::Place(b), truth)];
        assert_eq!(both.of(a).lists(), [&parts[..]; 2]);
        assert_eq!((other.sides, both.sides), ([false, true], [true, true]));
        let unknown = Provenance::unknown(7, 3);
        assert_eq!(unknown.only(a), Origin::Unknown);
    }

    #[test]
    fn origins_are_said_in_other_terms() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b, c] = places();
        let [x, y] = [b, c].map(|place| Condition::Holds(place, Number::ONE));
        let [truth, copy] = [x, y].map(|condition| lanes.condition(condition));
        let mut kept = Provenance::new(7, false, 3);
        kept.set(a, kept.chosen(&lanes, a, (truth, b)));
        let gone = lanes.cube([x]);
        kept.project(&lanes, gone, lanes.iff(truth, copy));
        let chosen = [(Origin::Place(a), lanes.not(copy)), (Origin::Place(b), copy)];
        assert_eq!(kept.of(a).lists(), [&chosen[..]; 2]);
        kept.normalize(&lanes, copy);
        assert_eq!(kept.only(a), Origin::Place(b), "no other lanes are left");
    }

    #[test]
    fn what_is_not_meant_comes_from_where_the_rest_comes_from() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b] = places();
        let truth = lanes.condition(Condition::Holds(b, Number::ONE));
        let [mut one, mut other] = [false, true].map(|taken| Provenance::new(7, taken, 2));
        one.derive(a, Origin::Nothing);
        let met = |one: &Provenance, other: &Provenance| {
            let ways = [(one, truth), (other, lanes.not(truth))];
            Provenance::meet(&lanes, &ways, None).only(a)
        };
        assert_eq!(met(&one, &other), Origin::Place(a));
        other.derive(a, Origin::Nothing);
        assert_eq!(met(&one, &other), Origin::Nothing);
    }

    #[test]
    fn where_ways_meet_values_get_names() {
        let (lanes, terms) = (Lanes::new(Precision::Coarse), Terms::new(Precision::Coarse));
        let [a, b] = places();
        let truth = lanes.condition(Condition::Holds(b, Number::ONE));
        let [one, mut other] = [false, false].map(|taken| Provenance::new(7, taken, 2));
        other.copy(a, b);
        let ways = [(&one, truth), (&other, lanes.not(truth))];
        let meet = |decided| {
            let gate = Gate { block: 3, decided, terms: &terms };
            Provenance::meet(&lanes, &ways, Some(gate))
        };
        let met = meet(&[Decided::Entry; 2]);
        assert!(matches!(met.only(a), Origin::Term(_)));
        assert_eq!(met.only(b), Origin::Place(b));
        let parts = [(Origin::Place(a), truth), (Origin::Place(b), lanes.not(truth))];
        assert_eq!(met.of(a).lists()[0], parts, "and it is still known what it may be");
        let round = meet(&[Decided::Entry, Decided::Round]).only(a);
        assert_ne!(round, met.only(a));
        // In the next round it is something else.
        let mut next = one.clone();
        next.derive(b, round);
        let ways = [(&next, truth), (&next, lanes.not(truth))];
        let decided = &[Decided::Entry, Decided::Round];
        let gate = Gate { block: 3, decided, terms: &terms };
        assert_eq!(Provenance::meet(&lanes, &ways, Some(gate)).only(b), Origin::Unknown);
    }
}
