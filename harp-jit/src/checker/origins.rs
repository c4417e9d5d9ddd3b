//! Where values come from that were there when lanes parted.
//!
//! Sides of a split execute the same instructions at different times, if they execute them. That two lanes of
//! different sides hold the same behind the join is known of values that both had when they parted, wherever
//! these have been moved, and of what was computed from such values in the same way ([`derived`](super::derived)).

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::derived::{Computations, Derived, Passage};
use super::lanes::Lanes;
use super::places::Place;
use super::regions::Decided;
use super::sets::Set;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// It was in this place.
    Place(Place),
    /// It was computed.
    Derived(Derived),
    /// It is nothing that is meant to be read: where it meets something else, it is taken to be that.
    Nothing,
    Unknown,
}

/// What a value may be, with the lanes in which it may.
type List = SmallVec<[(Origin, Set); 1]>;

/// Where the value that a place holds comes from. Both is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origins {
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
    pub(super) fn lists(&self) -> [&[(Origin, Set)]; 2] {
        [&self.parts, self.wholes.as_ref().unwrap_or(&self.parts)]
    }

    /// Whether both ways are the same.
    pub(super) fn is_one(&self) -> bool {
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
pub(super) struct Gate<'a> {
    pub(super) block: usize,
    /// What decides about each of the ways.
    pub(super) decided: &'a [Decided],
    pub(super) computations: &'a Computations,
}

impl Gate<'_> {
    fn is_loop(&self) -> bool {
        self.decided.contains(&Decided::Round)
    }

    /// What a place holds there.
    fn name(&self, place: Place, ways: &[(&Kept, Set)]) -> Origin {
        let [entry, back] = [Decided::Entry, Decided::Round].map(|decided| {
            let those = ways.iter().zip(self.decided).filter(|&(_, &other)| other == decided);
            let each: SmallVec<[Origin; 4]> = those.map(|((way, _), _)| way.only(place)).collect();
            self.computations.gate(self.passage(ways, decided), place, &each)
        });
        match self.is_loop() {
            true => {
                self.computations.round(self.passage(ways, Decided::Round), place, [entry, back])
            }
            false => entry,
        }
    }

    /// What changes in each round of the loop is not the same any more in the next.
    fn held(&self, origin: Origin, ways: &[(&Kept, Set)]) -> Origin {
        let at = self.passage(ways, Decided::Round);
        let changes = self.is_loop() && self.computations.varies(origin, at);
        if changes { Origin::Unknown } else { origin }
    }

    fn passage(&self, ways: &[(&Kept, Set)], decided: Decided) -> Passage {
        Passage { branch: ways[0].0.branch, block: self.block, decided }
    }
}

/// No more origins than these are told apart.
const MOST_ORIGINS: usize = 4;

/// What places held at an open split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The branch of the split.
    pub(super) branch: usize,
    /// The sides that lanes came by: the one where the predicate is false, the one where it is true.
    pub(super) sides: [bool; 2],
    origins: Rc<Vec<Origins>>,
}

impl Kept {
    /// At the split itself, on one of its sides.
    pub(super) fn new(branch: usize, taken: bool, places: usize) -> Kept {
        let own = |index| Origins::only(Origin::Place(Place::from_index(index)));
        let origins = Rc::new((0..places).map(own).collect());
        Kept { branch, sides: [!taken, taken], origins }
    }

    /// Where nothing is known.
    pub(super) fn unknown(branch: usize, places: usize) -> Kept {
        Kept {
            branch,
            sides: [true; 2],
            origins: Rc::new(vec![Origins::only(Origin::Unknown); places]),
        }
    }

    /// Of open splits the one of this branch.
    pub(super) fn find(open: &[Kept], branch: usize) -> Option<&Kept> {
        open.iter().rfind(|kept| kept.branch == branch)
    }

    /// All sets that say something.
    pub(super) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        self.origins.iter().flat_map(Origins::sets)
    }

    pub(super) fn of(&self, place: Place) -> &Origins {
        &self.origins[place.index()]
    }

    /// What a place holds in all lanes.
    pub(super) fn only(&self, place: Place) -> Origin {
        self.of(place).whole()
    }

    /// `place` holds what came from these origins.
    pub(super) fn set(&mut self, place: Place, origins: Origins) {
        if self.origins[place.index()] != origins {
            Rc::make_mut(&mut self.origins)[place.index()] = origins;
        }
    }

    /// `place` holds something else.
    pub(super) fn lose(&mut self, place: Place) {
        self.derive(place, Origin::Unknown);
    }

    /// `place` holds what comes from there.
    pub(super) fn derive(&mut self, place: Place, origin: Origin) {
        self.set(place, Origins::only(origin));
    }

    /// `place` holds what comes from there, if nothing else is known of all lanes.
    pub(super) fn name(&mut self, place: Place, origin: Origin) {
        self.set(place, self.of(place).clone().named(origin));
    }

    /// `place` holds nothing that is meant to be read.
    pub(super) fn drop(&mut self, place: Place) {
        if self.only(place) != Origin::Nothing {
            self.derive(place, Origin::Nothing);
        }
    }

    /// `place` holds what `source` does.
    pub(super) fn copy(&mut self, place: Place, source: Place) {
        self.set(place, self.of(source).clone());
    }

    /// The origins of what is in `source` in the lanes of `among`, and in `place` in the others.
    pub(super) fn chosen(
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
    pub(super) fn hide(&mut self, lanes: &Lanes, gone: Set, known: Set) {
        let tells = |origins: &Origins| origins.sets().any(|set| lanes.tells(set, gone));
        if !self.origins.iter().any(tells) {
            return;
        }
        for origins in Rc::make_mut(&mut self.origins).iter_mut().filter(|origins| tells(origins)) {
            for (_, set) in origins.parts.iter_mut().chain(origins.wholes.iter_mut().flatten()) {
                *set = lanes.image(*set, known, gone);
            }
        }
    }

    /// Leaves out where the value of no active lane comes from.
    pub(super) fn settle(&mut self, lanes: &Lanes, active: Set) {
        let vain = |origins: &Origins| {
            origins.parts.len() > 1 && origins.sets().any(|set| lanes.apart(set, active))
        };
        if !self.origins.iter().any(vain) {
            return;
        }
        for origins in Rc::make_mut(&mut self.origins).iter_mut().filter(|origins| vain(origins)) {
            let left = |list: &List| {
                let left = list.iter().copied().filter(|&(_, set)| !lanes.apart(set, active));
                union(lanes, left)
            };
            let wholes = origins.wholes.as_ref().map(left);
            *origins = Origins::new(left(&origins.parts), wholes);
        }
    }

    /// What is known where ways meet that lanes come which are in these sets.
    pub(super) fn meet(lanes: &Lanes, ways: &[(&Kept, Set)], gate: Option<Gate<'_>>) -> Kept {
        let (first, _) = ways[0];
        let sides = [0, 1].map(|side| ways.iter().any(|(way, _)| way.sides[side]));
        let is_head = gate.is_some_and(|gate| gate.is_loop());
        if !is_head && ways.iter().all(|(way, _)| way.origins == first.origins) {
            return Kept { sides, ..first.clone() };
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
        Kept { branch: first.branch, sides, origins: Rc::new(origins) }
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
    use super::super::fact::{Number, Precision};
    use super::super::lanes::Condition;
    use super::*;

    fn places<const N: usize>() -> [Place; N] {
        std::array::from_fn(Place::from_index)
    }

    #[test]
    fn what_sides_did_to_a_value_is_known_lane_by_lane() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b, c] = places();
        let truth = lanes.condition(Condition::Holds(c, Number::ONE));
        let elsewhere = lanes.not(truth);
        let mut one = Kept::new(7, false, 3);
        assert_eq!(one.only(a), Origin::Place(a));
        one.copy(a, b);
        assert_eq!(one.only(a), Origin::Place(b));
        one.lose(b);
        assert_eq!(one.only(b), Origin::Unknown);
        one.set(c, one.chosen(&lanes, c, (truth, a)));
        let chosen = [(Origin::Place(b), truth), (Origin::Place(c), elsewhere)];
        assert_eq!(one.of(c).lists(), [&chosen[..]; 2]);
        assert_eq!(one.only(c), Origin::Unknown, "it depends on the lane");
        let other = Kept::new(7, true, 3);
        let both = Kept::meet(&lanes, &[(&one, truth), (&other, elsewhere)], None);
        let parts = [(Origin::Place(a), elsewhere), (Origin::Place(b), truth)];
        assert_eq!(both.of(a).lists(), [&parts[..]; 2]);
        assert_eq!((other.sides, both.sides), ([false, true], [true, true]));
        let unknown = Kept::unknown(7, 3);
        assert_eq!(unknown.only(a), Origin::Unknown);
    }

    #[test]
    fn origins_are_said_in_other_terms() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b, c] = places();
        let [x, y] = [b, c].map(|place| Condition::Holds(place, Number::ONE));
        let [truth, copy] = [x, y].map(|condition| lanes.condition(condition));
        let mut kept = Kept::new(7, false, 3);
        kept.set(a, kept.chosen(&lanes, a, (truth, b)));
        let gone = lanes.hidden([x]);
        kept.hide(&lanes, gone, lanes.same(truth, copy));
        let chosen = [(Origin::Place(a), lanes.not(copy)), (Origin::Place(b), copy)];
        assert_eq!(kept.of(a).lists(), [&chosen[..]; 2]);
        kept.settle(&lanes, copy);
        assert_eq!(kept.only(a), Origin::Place(b), "no other lanes are left");
    }

    #[test]
    fn what_is_not_meant_comes_from_where_the_rest_comes_from() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b] = places();
        let truth = lanes.condition(Condition::Holds(b, Number::ONE));
        let [mut one, mut other] = [false, true].map(|taken| Kept::new(7, taken, 2));
        one.derive(a, Origin::Nothing);
        let met = |one: &Kept, other: &Kept| {
            let ways = [(one, truth), (other, lanes.not(truth))];
            Kept::meet(&lanes, &ways, None).only(a)
        };
        assert_eq!(met(&one, &other), Origin::Place(a));
        other.derive(a, Origin::Nothing);
        assert_eq!(met(&one, &other), Origin::Nothing);
    }

    #[test]
    fn where_ways_meet_values_get_names() {
        let (lanes, computations) =
            (Lanes::new(Precision::Coarse), Computations::new(Precision::Coarse));
        let [a, b] = places();
        let truth = lanes.condition(Condition::Holds(b, Number::ONE));
        let [one, mut other] = [false, false].map(|taken| Kept::new(7, taken, 2));
        other.copy(a, b);
        let ways = [(&one, truth), (&other, lanes.not(truth))];
        let meet = |decided| {
            let gate = Gate { block: 3, decided, computations: &computations };
            Kept::meet(&lanes, &ways, Some(gate))
        };
        let met = meet(&[Decided::Entry; 2]);
        assert!(matches!(met.only(a), Origin::Derived(_)));
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
        let gate = Gate { block: 3, decided, computations: &computations };
        assert_eq!(Kept::meet(&lanes, &ways, Some(gate)).only(b), Origin::Unknown);
    }
}
