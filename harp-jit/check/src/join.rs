//! What is known at a join.
//!
//! Lanes that went different ways run on together there. Of a pair of them it is known what each side says of its lane,
//! and what was known of the two when they parted, as far as neither side changed it, or both did the same.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::bdd::{Renaming, Set};
use crate::fact::Form;
use crate::lanes::{Condition, Lanes};
use crate::merge::{MergePoint, Plan, Way, finish, gather, outline, plans, prepare, undefined};
use crate::places::Place;
use crate::provenance::{Origins, Provenance};
use crate::state::State;
use crate::term::Origin;
use crate::term::Terms;

/// The ways that lead to a join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub(crate) sides: [&'a State; 2],
    /// At the split.
    pub(crate) before: &'a State,
    /// The predicate of the split.
    pub(crate) guard: Place,
    /// Its branch.
    pub(crate) branch: usize,
    pub(crate) terms: &'a Terms,
    /// The splits around it.
    pub(crate) around: &'a [Enclosing<'a>],
}

/// A split that both sides are within.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enclosing<'a> {
    /// Its branch.
    pub(crate) branch: usize,
    /// The predicate.
    pub(crate) guard: Place,
    /// What was known there.
    pub(crate) before: &'a State,
}

impl Enclosing<'_> {
    /// Whether a place held the same in all lanes that went the same way, if that is one of `sides`.
    fn is_uniform(&self, lanes: &Lanes, place: Place, sides: [bool; 2]) -> bool {
        let truth = self.before.not_zero(lanes, self.guard);
        let ways = [lanes.not(truth), truth].into_iter().zip(sides);
        ways.filter(|(_, taken)| *taken).all(|(way, _)| self.before.agrees(lanes, place, way))
    }
}

/// What is known at a join, where both sides of a split meet.
pub(crate) fn join(parted: Sides<'_>, meeting: MergePoint<'_>) -> State {
    let lanes = meeting.lanes;
    let Sides { sides, before, guard, branch, .. } = parted;
    let plans = plans(&sides, meeting);
    let mut prepared = sides.map(|side| prepare(side, &plans, meeting));
    let mut state = outline(&sides, &plans);
    gather(&mut state, &mut prepared, meeting);
    let [passed, taken] = &prepared;
    let truth = before.not_zero(lanes, guard);
    let parting = [lanes.and_not(before.active, truth), lanes.and(before.active, truth)];
    let unknown = Provenance::unknown(branch, before.values.len());
    let origins = [passed, taken].map(|way| way.of(branch).unwrap_or(&unknown));
    let rest = Rest::new(lanes, before, parting, &plans, origins);
    let differences = Differences { lanes, parted, ways: [passed, taken], origins, rest };
    let known = differences.left(Set::ALL);
    let mixed = lanes.and(passed.taken, lanes.and(lanes.other(taken.taken), known));
    state.pairs = [
        passed.pairs_among(lanes, passed.pairs),
        taken.pairs_among(lanes, taken.pairs),
        mixed,
        lanes.other(mixed),
    ]
    .into_iter()
    .fold(Set::NONE, |all, pairs| lanes.or(all, pairs));
    for (index, value) in state.values.iter_mut().enumerate() {
        if plans[index] == Plan::Dead {
            continue;
        }
        value.undefined = undefined(&prepared, index, lanes);
        let place = Place::from_index(index);
        let unchanged = matches!(origins[0].only(place), Origin::Place(_))
            && origins[0].of(place) == origins[1].of(place);
        if value.form == Form::OnStack && !unchanged {
            // How far away the lanes' own addresses are from each other is known only for what no
            // side changed.
            value.form = Form::Unknown;
        }
        if !value.has_others() {
            continue;
        }
        if !meeting.live.is_shared(Place::from_index(index)) {
            value.differs = Set::ALL;
            continue;
        }
        let shared = matches!(value.form, Form::Scratch | Form::GroupBlock);
        let differed = if shared { Set::NONE } else { differences.of(place) };
        let [a, b] = [&passed.values[index], &taken.values[index]];
        // Nobody asks for differences to lanes in which it is not meant to be read.
        let meant = lanes.and(lanes.not(a.undefined), lanes.other(lanes.not(b.undefined)));
        let apart = lanes.and(lanes.and(mixed, differed), meant);
        let parts = [
            passed.pairs_among(lanes, a.differs),
            taken.pairs_among(lanes, b.differs),
            apart,
            lanes.other(apart),
        ];
        value.differs = parts.into_iter().fold(Set::NONE, |all, part| lanes.or(all, part));
    }
    finish(state, lanes)
}

/// In which pairs of lanes that come by different sides a place may hold different values.
struct Differences<'a> {
    lanes: &'a Lanes,
    parted: Sides<'a>,
    ways: [&'a Way; 2],
    /// Where values come from on the two sides.
    origins: [&'a Provenance; 2],
    rest: Rest<'a>,
}

impl Differences<'_> {
    fn of(&self, place: Place) -> Set {
        let lanes = self.lanes;
        let mut differing = self.crossed(self.origins, place, |origin| match self.before(origin) {
            differed @ (Set::NONE | Set::ALL) => differed,
            some => self.left(some),
        });
        for around in self.parted.around.iter().rev() {
            let ways = self.ways.map(|way| way.of(around.branch));
            let [Some(passed), Some(taken)] = ways else { continue };
            if differing == Set::NONE {
                break;
            }
            // They went the same way there, and what all held that did so is the same whenever it is taken from there.
            let sides = [0, 1].map(|side| passed.sides[side] && taken.sides[side]);
            let differed = self.crossed([passed, taken], place, |origin| {
                let places = self.parted.terms.places(origin);
                let is_same = |place: &Place| around.is_uniform(lanes, *place, sides);
                let same = places.is_some_and(|places| places.iter().all(is_same));
                if same { Set::NONE } else { Set::ALL }
            });
            differing = lanes.and(differing, differed);
        }
        differing
    }

    /// By where the values come from: what comes from the same differs as `differing` says.
    fn crossed(
        &self,
        kept: [&Provenance; 2],
        place: Place,
        differing: impl Fn(Origin) -> Set,
    ) -> Set {
        let lanes = self.lanes;
        let origins = kept.map(|kept| kept.of(place));
        let [passed, taken] = origins.map(Origins::lists);
        let lists = if origins.iter().all(|origins| origins.is_one()) { 1 } else { 2 };
        passed.into_iter().zip(taken).take(lists).fold(Set::ALL, |known, (passed, taken)| {
            let pairs = passed.iter().flat_map(|a| taken.iter().map(move |b| (*a, *b)));
            let each = pairs.fold(Set::NONE, |all, ((one, passed), (other, taken))| {
                let pair = lanes.and(passed, lanes.other(taken));
                let differing = match (one, other) {
                    (Origin::Nothing, _) | (_, Origin::Nothing) => Set::NONE,
                    _ if one == other => differing(one),
                    _ => Set::ALL,
                };
                lanes.or(all, lanes.and(pair, differing))
            });
            lanes.and(known, each)
        })
    }

    /// Where lanes differed when they parted in what this comes from.
    fn before(&self, origin: Origin) -> Set {
        let Some(places) = self.parted.terms.places(origin) else { return Set::ALL };
        let each = places.iter().map(|&place| self.parted.before.differing(self.lanes, place));
        each.fold(Set::NONE, |all, differing| self.lanes.or(all, differing))
    }

    /// What is left of pairs of lanes that parted.
    fn left(&self, pairs: Set) -> Set {
        let [passed, taken] = self.ways;
        let left = self.lanes.restrict(self.rest.of(pairs), passed.active);
        self.lanes.restrict(left, self.lanes.other(taken.active))
    }
}

/// What remains behind a join of what was known of a pair of lanes when they parted. The first one passed by, the second
/// one was taken.
struct Rest<'a> {
    lanes: &'a Lanes,
    /// The pairs that there were.
    pairs: Set,
    /// Of each lane what was known of what is not there any more, and that.
    told: [(Set, Set); 2],
    /// What is in another place.
    moved: Renaming,
}

impl<'a> Rest<'a> {
    /// Lanes that part are in the sets in `parting`.
    fn new(
        lanes: &'a Lanes,
        before: &State,
        parting: [Set; 2],
        plans: &[Plan],
        origins: [&Provenance; 2],
    ) -> Rest<'a> {
        let sides = origins.map(|origins| Moves::of(before, plans, origins));
        let moved = lanes.renaming(sides.each_ref().map(|side| &*side.moved));
        let told = [0, 1].map(|number| {
            let of_side = |set| if number == 0 { set } else { lanes.other(set) };
            let Moves { impossible, gone, .. } = &sides[number];
            let possible = impossible.iter().fold(parting[number], |possible, &condition| {
                lanes.and_not(possible, lanes.condition(condition))
            });
            let gone = lanes.cube(gone.iter().copied());
            (of_side(lanes.constraint_on(possible, gone)), of_side(gone))
        });
        Rest { lanes, pairs: before.pairs, told, moved }
    }

    /// Of the pairs that parted those of `pairs`, in terms of what there is now.
    fn of(&self, pairs: Set) -> Set {
        let lanes = self.lanes;
        let left = self.told.iter().fold(lanes.and(pairs, self.pairs), |pairs, &(told, gone)| {
            lanes.and_exists(pairs, told, gone)
        });
        lanes.rename(left, self.moved)
    }
}

/// What became of the conditions that there were at a split, on one of its sides.
#[derive(Default)]
struct Moves {
    /// The numbers are not there any more.
    impossible: Vec<Condition>,
    /// Nothing says of them any more whether they are true.
    gone: Vec<Condition>,
    /// What they are in terms of other places.
    moved: Vec<(Condition, Condition)>,
}

impl Moves {
    fn of(before: &State, plans: &[Plan], origins: &Provenance) -> Moves {
        let mut moves = Moves::default();
        // What each condition is called behind the join.
        let mut names: HashMap<Condition, SmallVec<[Condition; 2]>> = HashMap::new();
        for (index, plan) in plans.iter().enumerate() {
            let place = Place::from_index(index);
            let (Plan::Numbers(numbers), Origin::Place(origin)) = (plan, origins.only(place))
            else {
                continue;
            };
            for number in before.value(origin).distinguished() {
                let from = Condition::Holds(origin, number);
                if !numbers.contains(&number) {
                    moves.impossible.push(from);
                } else if numbers.len() > 1 {
                    names.entry(from).or_default().push(Condition::Holds(place, number));
                }
            }
        }
        for (index, value) in before.values.iter().enumerate() {
            let place = Place::from_index(index);
            for from in value.distinguished().map(|number| Condition::Holds(place, number)) {
                let names = names.get(&from).map_or(&[][..], |names| &**names);
                let first = names.iter().find(|&&name| name == from).or(names.first());
                match first {
                    None => moves.gone.push(from),
                    Some(&first) if first != from => moves.moved.push((from, first)),
                    Some(_) => {}
                }
            }
        }
        moves
    }
}
