//! Where values come from that were there when lanes parted.
//!
//! Sides of a split execute the same instructions at different times, if they execute them. That two lanes of
//! different sides hold the same behind the join is known of values that both had when they parted, wherever
//! these have been moved.

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::lanes::Lanes;
use super::places::Place;
use super::sets::Set;

/// The places whose values a place may hold, with the lanes in which it may; none, if it is another value.
pub(super) type Origins = SmallVec<[(Option<Place>, Set); 1]>;

/// No more origins than these are told apart.
const MOST_ORIGINS: usize = 4;

/// What places held at an open split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The branch of the split.
    pub(super) branch: usize,
    origins: Rc<Vec<Origins>>,
}

impl Kept {
    /// At the split itself.
    pub(super) fn new(branch: usize, places: usize) -> Kept {
        let own = |index| smallvec![(Some(Place::from_index(index)), Set::ALL)];
        Kept { branch, origins: Rc::new((0..places).map(own).collect()) }
    }

    /// Where nothing is known.
    pub(super) fn unknown(branch: usize, places: usize) -> Kept {
        Kept { branch, origins: Rc::new(vec![smallvec![(None, Set::ALL)]; places]) }
    }

    pub(super) fn of(&self, place: Place) -> &Origins {
        &self.origins[place.index()]
    }

    /// The only origin of what a place holds.
    pub(super) fn only(&self, place: Place) -> Option<Place> {
        match **self.of(place) {
            [(origin, _)] => origin,
            _ => None,
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
        self.set(place, smallvec![(None, Set::ALL)]);
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
                *set = lanes.hide(lanes.and(*set, known), gone);
            }
        }
    }

    /// What is known where ways meet that lanes come which are in these sets.
    pub(super) fn meet(lanes: &Lanes, ways: &[(&Kept, Set)]) -> Kept {
        let (first, _) = ways[0];
        if ways.iter().all(|(way, _)| way.origins == first.origins) {
            return first.clone();
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
        Kept { branch: first.branch, origins: Rc::new(origins) }
    }
}

/// Each origin once.
fn union(lanes: &Lanes, each: impl Iterator<Item = (Option<Place>, Set)>) -> Origins {
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
        _ if origins.len() > MOST_ORIGINS => smallvec![(None, Set::ALL)],
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
        let mut one = Kept::new(7, 3);
        assert_eq!(one.only(a), Some(a));
        one.copy(a, b);
        assert_eq!(one.only(a), Some(b));
        one.lose(b);
        assert_eq!(one.only(b), None);
        one.set(c, one.chosen(&lanes, c, (truth, a)));
        assert_eq!(**one.of(c), [(Some(b), truth), (Some(c), lanes.not(truth))]);
        assert_eq!(one.only(c), None, "it depends on the lane");
        let other = Kept::new(7, 3);
        let both = Kept::meet(&lanes, &[(&one, truth), (&other, lanes.not(truth))]);
        assert_eq!(**both.of(a), [(Some(a), lanes.not(truth)), (Some(b), truth)]);
        let unknown = Kept::unknown(7, 3);
        assert_eq!(unknown.only(a), None);
    }

    #[test]
    fn origins_are_said_in_other_terms() {
        let lanes = Lanes::new();
        let [a, b, c] = [0, 1, 2].map(Place::from_index);
        let [x, y] = [b, c].map(|place| Condition::Holds(place, Number::ONE));
        let [truth, copy] = [x, y].map(|condition| lanes.condition(condition));
        let mut kept = Kept::new(7, 3);
        kept.set(a, kept.chosen(&lanes, a, (truth, b)));
        let gone = lanes.hidden([x]);
        kept.hide(&lanes, gone, lanes.same(truth, copy));
        assert_eq!(**kept.of(a), [(Some(a), lanes.not(copy)), (Some(b), copy)]);
    }
}
