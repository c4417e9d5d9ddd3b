//! Where values come from that were there when lanes parted.
//!
//! Sides of a split execute the same instructions at different times, if they execute them. That two lanes of
//! different sides hold the same behind the join is known of values that both had when they parted, wherever
//! these have been moved, and of what was computed from such values in the same way ([`derived`](super::derived)).

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::derived::Derived;
use super::lanes::Lanes;
use super::places::Place;
use super::sets::Set;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Origin {
    /// It was in this place.
    Place(Place),
    /// It was computed.
    Derived(Derived),
    Unknown,
}

/// Where the value that a place holds may come from, with the lanes in which it may.
pub(super) type Origins = SmallVec<[(Origin, Set); 1]>;

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
        let own = |index| smallvec![(Origin::Place(Place::from_index(index)), Set::ALL)];
        let origins = Rc::new((0..places).map(own).collect());
        Kept { branch, sides: [!taken, taken], origins }
    }

    /// Where nothing is known.
    pub(super) fn unknown(branch: usize, places: usize) -> Kept {
        Kept {
            branch,
            sides: [true; 2],
            origins: Rc::new(vec![smallvec![(Origin::Unknown, Set::ALL)]; places]),
        }
    }

    /// All sets that say something.
    pub(super) fn sets(&self) -> impl Iterator<Item = Set> + '_ {
        self.origins.iter().flatten().map(|&(_, set)| set)
    }

    pub(super) fn of(&self, place: Place) -> &Origins {
        &self.origins[place.index()]
    }

    /// The origin of what a place holds, unless that depends on the lane.
    pub(super) fn only(&self, place: Place) -> Origin {
        match **self.of(place) {
            [(origin, _)] => origin,
            _ => Origin::Unknown,
        }
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
        self.set(place, smallvec![(origin, Set::ALL)]);
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
        let each = sides.into_iter().flat_map(|(place, among)| {
            self.of(place).iter().map(move |&(origin, set)| (origin, lanes.and(set, among)))
        });
        union(lanes, each)
    }

    /// Says in other terms what it says in terms of the conditions in `gone`, of which `known` is known.
    pub(super) fn hide(&mut self, lanes: &Lanes, gone: Set, known: Set) {
        let tells = |origins: &Origins| origins.iter().any(|&(_, set)| lanes.tells(set, gone));
        if !self.origins.iter().any(tells) {
            return;
        }
        for origins in Rc::make_mut(&mut self.origins).iter_mut().filter(|origins| tells(origins)) {
            for (_, set) in origins.iter_mut() {
                *set = lanes.image(*set, known, gone);
            }
        }
    }

    /// What is known where ways meet that lanes come which are in these sets.
    pub(super) fn meet(lanes: &Lanes, ways: &[(&Kept, Set)]) -> Kept {
        let (first, _) = ways[0];
        let sides = [0, 1].map(|side| ways.iter().any(|(way, _)| way.sides[side]));
        if ways.iter().all(|(way, _)| way.origins == first.origins) {
            return Kept { sides, ..first.clone() };
        }
        let all = |index: usize| {
            let place = Place::from_index(index);
            if ways.iter().all(|(way, _)| way.of(place) == first.of(place)) {
                return first.of(place).clone();
            }
            let each = ways.iter().flat_map(|&(way, taken)| {
                way.of(place).iter().map(move |&(origin, set)| (origin, lanes.and(set, taken)))
            });
            union(lanes, each)
        };
        let origins = (0..first.origins.len()).map(all).collect();
        Kept { branch: first.branch, sides, origins: Rc::new(origins) }
    }
}

/// Each origin once.
fn union(lanes: &Lanes, each: impl Iterator<Item = (Origin, Set)>) -> Origins {
    let mut origins = Origins::new();
    for (origin, set) in each.filter(|&(_, set)| set != Set::NONE) {
        match origins.iter_mut().find(|(other, _)| *other == origin) {
            Some((_, all)) => *all = lanes.or(*all, set),
            None => origins.push((origin, set)),
        }
    }
    origins.sort_unstable();
    match &*origins {
        [(only, _)] => smallvec![(*only, Set::ALL)],
        _ if origins.len() > MOST_ORIGINS => smallvec![(Origin::Unknown, Set::ALL)],
        _ => origins,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Number;
    use super::super::lanes::Condition;
    use super::*;

    #[test]
    fn what_sides_did_to_a_value_is_known_lane_by_lane() {
        let lanes = Lanes::new();
        let [a, b, c] = [0, 1, 2].map(Place::from_index);
        let truth = lanes.condition(Condition::Holds(c, Number::ONE));
        let mut one = Kept::new(7, false, 3);
        assert_eq!(one.only(a), Origin::Place(a));
        one.copy(a, b);
        assert_eq!(one.only(a), Origin::Place(b));
        one.lose(b);
        assert_eq!(one.only(b), Origin::Unknown);
        one.set(c, one.chosen(&lanes, c, (truth, a)));
        assert_eq!(**one.of(c), [(Origin::Place(b), truth), (Origin::Place(c), lanes.not(truth))]);
        assert_eq!(one.only(c), Origin::Unknown, "it depends on the lane");
        let other = Kept::new(7, true, 3);
        let both = Kept::meet(&lanes, &[(&one, truth), (&other, lanes.not(truth))]);
        assert_eq!(**both.of(a), [(Origin::Place(a), lanes.not(truth)), (Origin::Place(b), truth)]);
        assert_eq!((other.sides, both.sides), ([false, true], [true, true]));
        let unknown = Kept::unknown(7, 3);
        assert_eq!(unknown.only(a), Origin::Unknown);
    }

    #[test]
    fn origins_are_said_in_other_terms() {
        let lanes = Lanes::new();
        let [a, b, c] = [0, 1, 2].map(Place::from_index);
        let [x, y] = [b, c].map(|place| Condition::Holds(place, Number::ONE));
        let [truth, copy] = [x, y].map(|condition| lanes.condition(condition));
        let mut kept = Kept::new(7, false, 3);
        kept.set(a, kept.chosen(&lanes, a, (truth, b)));
        let gone = lanes.hidden([x]);
        kept.hide(&lanes, gone, lanes.same(truth, copy));
        assert_eq!(**kept.of(a), [(Origin::Place(a), lanes.not(copy)), (Origin::Place(b), copy)]);
    }
}
