//! The state at a join, where lanes that took different paths reconverge.
//!
//! Two facts survive about a pair of lanes from different sides: what each side knows of its own lane, and what was
//! known of the pair at the split, as far as neither side changed it or both sides did the same.

use harp_bdd::{Renaming, Set};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::lanes::Condition;
use crate::number::Numbers;
use crate::op::Form;
use crate::places::Place;
use crate::provenance::{Origins, Provenance};
use crate::state::State;
use crate::term::{Origin, Terms};

/// How a place tells lanes apart after a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It is not read.
    Dead,
    /// By these numbers, if there are several.
    Numbers(Numbers),
    Unknown,
}

/// An incoming path, in terms of the numbers that tell lanes apart after the join.
pub(crate) struct Way<'a> {
    pub(crate) state: State<'a>,
    /// The lanes, of all that meet, that came along this path.
    pub(crate) taken: Set<'a>,
}

impl<'a> Way<'a> {
    /// The origins of values that existed at an open split.
    pub(crate) fn of(&self, branch: usize) -> Option<&Provenance<'a>> {
        Provenance::find(&self.state.provenance, branch)
    }
}

/// A split at which the paths begin, or which encloses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split<'p, 'a> {
    /// Its branch.
    pub(crate) branch: usize,
    /// The predicate.
    pub(crate) guard: Place,
    /// What was known there.
    pub(crate) before: &'p State<'a>,
}

impl<'a> Split<'_, 'a> {
    /// The lanes of its sides.
    fn parting(&self) -> [Set<'a>; 2] {
        let truth = self.before.not_zero(self.guard);
        [!truth, truth]
    }

    /// The pairs of lanes, there or not, in which a place may have held different values.
    fn differing(&self, place: Place) -> Set<'a> {
        self.before.differing_by_copies(place)
    }

    /// Whether a place held the same in all lanes that went the same way, if that is one of `sides`.
    fn is_uniform(&self, place: Place, sides: [bool; 2]) -> bool {
        let differing = self.differing(place) & self.before.pairs & self.before.active.both();
        let ways = self.parting().into_iter().zip(sides);
        ways.filter(|(_, taken)| *taken).all(|(way, _)| differing.disjoint(way.both()))
    }
}

/// The two paths that lead to a join: the one on which the predicate was false, and the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parted<'p, 'a> {
    pub(crate) split: Split<'p, 'a>,
    /// The splits around it.
    pub(crate) around: &'p [Split<'p, 'a>],
    pub(crate) terms: &'p Terms,
}

/// Pairs of lanes from different sides: the first lane of each did not take the branch, the second did.
pub(crate) struct Across<'p, 'a> {
    parted: Parted<'p, 'a>,
    ways: [&'p Way<'a>; 2],
    /// Where values come from on the two sides.
    origins: [Provenance<'a>; 2],
    rest: Rest<'a>,
    /// All that there are.
    pub(crate) pairs: Set<'a>,
}

impl<'p, 'a> Across<'p, 'a> {
    pub(crate) fn new(
        parted: Parted<'p, 'a>,
        ways: &'p [Way<'a>],
        plans: &[Plan],
    ) -> Across<'p, 'a> {
        let Split { branch, before, .. } = parted.split;
        let ways = [&ways[0], &ways[1]];
        let unknown = Provenance::unknown(branch, before.values.len());
        let origins = ways.map(|way| way.of(branch).unwrap_or(&unknown).clone());
        let rest = Rest::new(parted.split, plans, &origins);
        let mut across = Across { parted, ways, origins, rest, pairs: Set::ALL };
        across.pairs = ways[0].taken & (ways[1].taken.other() & across.left(Set::ALL));
        across
    }

    /// Whether no side changed what a place holds.
    pub(crate) fn is_unchanged(&self, place: Place) -> bool {
        let [passed, taken] = &self.origins;
        matches!(passed.only(place), Origin::Place(_)) && passed.of(place) == taken.of(place)
    }

    /// The pairs in which a place may hold different values of such a form.
    pub(crate) fn differing(&self, place: Place, form: Form) -> Set<'a> {
        if matches!(form, Form::Scratch | Form::GroupBlock) {
            return Set::NONE;
        }
        let [passed, taken] = self.ways.map(|way| !way.state.value(place).undefined);
        // Differences do not matter where one of the lanes holds an undefined value.
        self.pairs & self.differed(place) & (passed & taken.other())
    }

    fn differed(&self, place: Place) -> Set<'a> {
        let split = &self.parted.split;
        let mut differing = self.crossed(split, self.origins.each_ref(), place, |origin| {
            let differed = self.before(origin);
            if differed.is_constant() { differed } else { self.left(differed) }
        });
        for around in self.parted.around.iter().rev() {
            let [Some(passed), Some(taken)] = self.ways.map(|way| way.of(around.branch)) else {
                continue;
            };
            if differing == Set::NONE {
                break;
            }
            // They went the same way there, and what all held that did so is the same whenever it is taken from there.
            let sides = [0, 1].map(|side| passed.sides[side] && taken.sides[side]);
            let differed = self.crossed(around, [passed, taken], place, |origin| {
                let places = self.parted.terms.places(origin);
                let is_same = |place: &Place| around.is_uniform(*place, sides);
                let same = places.is_some_and(|places| places.iter().all(is_same));
                if same { Set::NONE } else { Set::ALL }
            });
            differing = differing & differed;
        }
        differing
    }

    /// By where the values come from, or what they are copies of, the pairs in which a place may hold different ones.
    fn crossed(
        &self,
        split: &Split<'_, 'a>,
        kept: [&Provenance<'a>; 2],
        place: Place,
        differing: impl Fn(Origin) -> Set<'a>,
    ) -> Set<'a> {
        let mut sources = kept.map(|kept| Sources::of(kept.of(place)));
        let known = crossed(&sources, &differing);
        if known == Set::NONE {
            return known;
        }
        for (side, sources) in sources.iter_mut().enumerate() {
            let Way { state, .. } = self.ways[side];
            for (copy, lanes) in state.copies(place) {
                sources.add(kept[side].of(copy), lanes & !state.value(copy).undefined);
            }
            sources.add_copies(split.before);
        }
        crossed(&sources, &differing)
    }

    /// Where lanes differed when they parted in what this comes from.
    fn before(&self, origin: Origin) -> Set<'a> {
        let Some(places) = self.parted.terms.places(origin) else { return Set::ALL };
        let each = places.iter().map(|&place| self.parted.split.differing(place));
        each.fold(Set::NONE, |all, differing| all | differing)
    }

    /// What is left of pairs of lanes that parted.
    fn left(&self, pairs: Set<'a>) -> Set<'a> {
        let [passed, taken] = self.ways.map(|way| way.state.active);
        self.rest.of(pairs).restrict(passed).restrict(taken.other())
    }
}

/// From where a value surely comes in which lanes. It may come from several places that hold the same: all of it is true.
struct Sources<'a>(SmallVec<[(Origin, Set<'a>); 2]>);

impl<'a> Sources<'a> {
    fn of(origins: &Origins<'a>) -> Sources<'a> {
        let mut sources = Sources(SmallVec::new());
        sources.add(origins, Set::ALL);
        sources
    }

    /// In the lanes of `among`, it comes from where something does that has these origins.
    fn add(&mut self, origins: &Origins<'a>, among: Set<'a>) {
        origins.lists().into_iter().for_each(|list| self.add_possible(list, among));
    }

    /// It comes from one of these, from each in some of its lanes: from just one where no other is possible.
    fn add_possible(&mut self, list: &[(Origin, Set<'a>)], among: Set<'a>) {
        for &(origin, _) in list.iter().filter(|&&(origin, _)| origin != Origin::Unknown) {
            let others = list.iter().filter(|&&(other, _)| other != origin);
            let lanes = others.fold(among, |lanes, &(_, other)| lanes & !other);
            self.add_lanes(origin, lanes);
        }
    }

    /// What was in several places before comes from the first of them, too.
    fn add_copies(&mut self, before: &State<'a>) {
        for index in 0..self.0.len() {
            let (origin, lanes) = self.0[index];
            if let Origin::Place(place) = origin {
                let first = Origin::Place(before.first_copy(place));
                if first != origin {
                    self.add_lanes(first, lanes);
                }
            }
        }
    }

    fn add_lanes(&mut self, origin: Origin, lanes: Set<'a>) {
        match self.0.iter_mut().find(|(known, _)| *known == origin) {
            Some((_, known)) => *known = *known | lanes,
            None => self.0.push((origin, lanes)),
        }
    }

    /// The lanes in which it comes from there.
    fn lanes(&self, origin: Origin) -> Set<'a> {
        let found = self.0.iter().find(|&&(known, _)| known == origin);
        found.map_or(Set::NONE, |&(_, lanes)| lanes)
    }
}

/// The pairs in which values from these sources may differ. What comes from the same differs as `differing` says.
fn crossed<'a>(
    [passed, taken]: &[Sources<'a>; 2],
    differing: impl Fn(Origin) -> Set<'a>,
) -> Set<'a> {
    // Nothing that is meant differs from nothing.
    let nothing = passed.lanes(Origin::Nothing) | taken.lanes(Origin::Nothing).other();
    passed.0.iter().fold(!nothing, |known, &(origin, lanes)| {
        let both = lanes & taken.lanes(origin).other();
        match known == Set::NONE || both == Set::NONE {
            true => known,
            false => known & (differing(origin) | !both),
        }
    })
}

/// What a join keeps of the facts that were known about a pair of lanes at the split.
struct Rest<'a> {
    /// The pairs that there were.
    pairs: Set<'a>,
    /// Of each lane what was known of what is not there any more, and that.
    told: [(Set<'a>, Set<'a>); 2],
    /// What is in another place.
    moved: Renaming,
}

impl<'a> Rest<'a> {
    fn new(split: Split<'_, 'a>, plans: &[Plan], origins: &[Provenance<'a>; 2]) -> Rest<'a> {
        let Split { before, .. } = split;
        let lanes = before.lanes;
        let sides = origins.each_ref().map(|origins| Moves::of(before, plans, origins));
        let moved = lanes.renaming(sides.each_ref().map(|side| &*side.moved));
        let parting = split.parting();
        let told = [0, 1].map(|number| {
            let of_side = |set: Set<'a>| if number == 0 { set } else { set.other() };
            let Moves { impossible, gone, .. } = &sides[number];
            let parting = before.active & parting[number];
            let possible = impossible
                .iter()
                .fold(parting, |possible, &condition| possible & !lanes.condition(condition));
            let gone = lanes.cube(gone.iter().copied());
            (of_side(possible.constraint_on(gone)), of_side(gone))
        });
        Rest { pairs: before.pairs, told, moved }
    }

    /// Of the pairs that parted those of `pairs`, in terms of what there is now.
    fn of(&self, pairs: Set<'a>) -> Set<'a> {
        let left = self.told.iter();
        let left =
            left.fold(pairs & self.pairs, |pairs, &(told, gone)| pairs.and_exists(told, gone));
        left.rename(self.moved)
    }
}

/// What one side of a split did to the conditions that were known at the split.
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
    fn of(before: &State<'_>, plans: &[Plan], origins: &Provenance<'_>) -> Moves {
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
                match names.iter().find(|&&name| name == from).or(names.first()) {
                    None => moves.gone.push(from),
                    Some(&first) if first != from => moves.moved.push((from, first)),
                    Some(_) => {}
                }
            }
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Lanes;
    use crate::number::{Number, Precision};

    /// As many kinds of lanes are told apart by two conditions.
    const KINDS: usize = 4;

    /// Where lanes are, as a bit for each kind.
    type Kinds = u8;

    /// Every way in which a value may come from two places, all lanes from one of them at least.
    fn possible() -> impl Iterator<Item = [Kinds; 2]> {
        let all = (1 << KINDS) - 1;
        (0..=all)
            .flat_map(move |a| (0..=all).map(move |b| [a, b]))
            .filter(move |[a, b]| a | b == all)
    }

    #[test]
    fn values_differ_unless_they_surely_come_from_the_same() {
        let lanes = Lanes::new(Precision::Coarse);
        let [a, b, c] = [0, 1, 2].map(Place::from_index);
        let conditions = [a, b].map(|place| lanes.condition(Condition::Holds(place, Number::ONE)));
        let kind = |kind: usize| {
            let each = conditions.iter().enumerate();
            each.fold(Set::ALL, |all, (bit, &condition)| {
                all & if kind >> bit & 1 == 1 { condition } else { !condition }
            })
        };
        let set = |kinds: Kinds| {
            let each = (0..KINDS).filter(|at| kinds >> at & 1 == 1);
            each.fold(Set::NONE, |all, at| all | kind(at))
        };
        let origins = [a, b].map(Origin::Place);
        let list = |[one, other]: [Kinds; 2]| [(origins[0], set(one)), (origins[1], set(other))];
        // What is in the second place was different everywhere.
        let differing = |origin| if origin == origins[1] { Set::ALL } else { Set::NONE };
        let is_one =
            |kinds: [Kinds; 2], at: usize| kinds.map(|kinds| kinds >> at & 1 == 1) == [true, false];
        for passed in possible() {
            for taken in possible().step_by(3) {
                // A copy of the one side's, in the lanes of two kinds, that is what the first place was.
                for copied in [0, 0b0110] {
                    let mut sides = [passed, taken].map(|kinds| {
                        let mut sources = Sources(SmallVec::new());
                        sources.add_possible(&list(kinds), Set::ALL);
                        sources
                    });
                    sides[0].add_possible(&[(origins[0], Set::ALL)], set(copied));
                    let found = crossed(&sides, differing);
                    for (one, other) in (0..KINDS).flat_map(|one| (0..KINDS).map(move |b| (one, b)))
                    {
                        let same =
                            (is_one(passed, one) || copied >> one & 1 == 1) && is_one(taken, other);
                        let pair = kind(one) & kind(other).other();
                        assert_eq!(
                            found.disjoint(pair),
                            same,
                            "{passed:?} {taken:?} {copied} {one} {other}"
                        );
                    }
                }
            }
        }
        // What is not meant to be read differs from nothing, what is not known from everything.
        for (origin, result) in [(Origin::Nothing, Set::NONE), (Origin::Unknown, Set::ALL)] {
            let sides = [origin, Origin::Place(c)].map(|origin| {
                let mut sources = Sources(SmallVec::new());
                sources.add_possible(&[(origin, Set::ALL)], Set::ALL);
                sources
            });
            assert_eq!(crossed(&sides, differing), result);
        }
    }
}
